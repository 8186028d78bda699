"""Two registers of people: names, birth dates and postcodes with typing errors. Some people are in both registers.

About a fifth of the people have the surname and the postcode of the person before, as in one household. Such pairs make
linkage hard, because they are similar and not the same person. Everything follows from the generator's seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Record = dict[str, str]
Columns = dict[str, list[str]]
Person = tuple[str, str, str, str]  # first name, last name, birth date, postcode

COLUMNS = ("first_name", "last_name", "birth_date", "postcode")


def _words(*lines: str) -> list[str]:
    return [word for line in lines for word in line.split()]


FIRST_NAMES = _words(
    "Mary James Patricia Robert Jennifer John Linda Michael Elizabeth David Barbara William Susan Richard",
    "Jessica Joseph Sarah Thomas Karen Charles Lisa Christopher Nancy Daniel Betty Matthew Margaret Anthony",
    "Sandra Mark Ashley Donald Kimberly Steven Emily Paul Donna Andrew Michelle Joshua Carol Kenneth Amanda",
    "Kevin Dorothy Brian Melissa George Deborah Edward Stephanie Ronald Rebecca Timothy Sharon Jason Laura",
    "Jeffrey Cynthia Ryan Kathleen Jacob Amy Gary José Zoë Renée André Chloé Jürgen Søren Anaïs Nicolás Łukasz",
    "Mohammed Fatima Wei Yuki Priya Arjun Olga Dmitri Ngozi Jean-Luc Anne-Marie Mary-Jane Siobhán",
)
LAST_NAMES = _words(
    "Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson",
    "Anderson Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis",
    "Robinson Walker Young Allen King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker Hall",
    "Rivera Campbell Mitchell Carter Roberts Müller O'Brien MacDonald D'Angelo Lefèvre García Jørgensen Nowak",
    "Kowalski Petrov Haddad Okafor Tanaka Patel",
)
SYLLABLES = _words(
    "ba bel bro cha cor da den el fer gan har hol ing kar ken lan lor man mer mon nor pen ran ros sen ston tor vin"
)
KEYBOARD_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "1234567890")


@dataclass(frozen=True)
class Registers:
    """Two registers and the truth: first[i] and second[j] are the same person for each (i, j) of `true_pairs`."""

    first: Columns
    second: Columns
    true_pairs: npt.NDArray[np.int64]


def registers(n_first: int, n_second: int, n_both: int, seed: int, *, error_rate: float = 0.12) -> Registers:
    """Make two registers.

    Args:
        n_both: number of people in both registers.
        error_rate: probability of an error in each field, independently.
    """
    rng = np.random.default_rng(seed)
    people = list(_people(n_first + n_second - n_both, rng))
    order = rng.permutation(len(people))
    in_first, in_second = order[:n_first], order[n_first - n_both :]
    in_first, in_second = rng.permutation(in_first), rng.permutation(in_second)
    place = {int(person): i for i, person in enumerate(in_first)}
    pairs = [(place[int(person)], j) for j, person in enumerate(in_second) if int(person) in place]
    return Registers(
        _typed([people[i] for i in in_first], rng, error_rate),
        _typed([people[i] for i in in_second], rng, error_rate),
        np.array(pairs, np.int64).reshape(-1, 2),
    )


# --- people -----------------------------------------------------------------------------------------


def _people(count: int, rng: np.random.Generator) -> list[Person]:
    people: list[Person] = []
    for _ in range(count):
        last_name, postcode = _last_name(rng), f"{rng.integers(10_000, 99_999)}"
        if people and rng.random() < 0.2:
            last_name, postcode = people[-1][1], people[-1][3]
        people.append((_zipf(FIRST_NAMES, rng), last_name, _birth_date(rng), postcode))
    return people


def _last_name(rng: np.random.Generator) -> str:
    """Draw half of the surnames from the list, and make the others of syllables, so that most surnames are rare."""
    if rng.random() < 0.5:
        return _zipf(LAST_NAMES, rng)
    return "".join(rng.choice(SYLLABLES, size=rng.integers(2, 5))).capitalize()


def _zipf(names: list[str], rng: np.random.Generator) -> str:
    """Return the name of rank r with a weight of 1 / (r + 10)."""
    weights = 1 / (np.arange(len(names)) + 10)
    return names[int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum()))]


def _birth_date(rng: np.random.Generator) -> str:
    return str(np.datetime64("1940-01-01") + rng.integers(0, 365 * 65))


# --- typing errors ------------------------------------------------------------------------------------------


def _typed(people: list[Person], rng: np.random.Generator, error_rate: float) -> Columns:
    typed = [_typed_person(person, rng, error_rate) for person in people]
    return {name: [person[c] for person in typed] for c, name in enumerate(COLUMNS)}


def _typed_person(person: Person, rng: np.random.Generator, error_rate: float) -> Person:
    first, last, date, postcode = person
    if rng.random() < error_rate:
        first = _choose(rng, TEXT_ERRORS)(first, rng)
    if rng.random() < error_rate:
        last = _choose(rng, TEXT_ERRORS)(last, rng)
    if rng.random() < error_rate:
        date = _choose(rng, (_wrong_digit, _day_for_month, _missing))(date, rng)
    if rng.random() < error_rate:
        postcode = _choose(rng, (_wrong_digit, _swapped, _moved, _missing))(postcode, rng)
    return first, last, date, postcode


Mistake = Callable[[str, np.random.Generator], str]


def _choose(rng: np.random.Generator, mistakes: tuple[Mistake, ...]) -> Mistake:
    return mistakes[int(rng.integers(len(mistakes)))]


def _neighbouring_key(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(text)))
    row = next((row for row in KEYBOARD_ROWS if text[at].lower() in row), "e")
    place = row.find(text[at].lower())
    return text[:at] + row[max(place - 1, 0) if rng.random() < 0.5 else min(place + 1, len(row) - 1)] + text[at + 1 :]


def _left_out(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(text)))
    return text[:at] + text[at + 1 :]


def _doubled(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(text)))
    return text[:at] + text[at] + text[at:]


def _swapped(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(max(len(text) - 1, 1)))
    return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]


def _capitals(text: str, _: np.random.Generator) -> str:
    return f" {text.upper()} "


def _without_accents(text: str, _: np.random.Generator) -> str:
    return text.encode("ascii", "ignore").decode()


def _initial(text: str, _: np.random.Generator) -> str:
    return text[:1] + "."


def _missing(_text: str, _: np.random.Generator) -> str:
    return ""


def _moved(_text: str, rng: np.random.Generator) -> str:
    return f"{rng.integers(10_000, 99_999)}"


def _wrong_digit(text: str, rng: np.random.Generator) -> str:
    at = int(rng.choice([i for i, character in enumerate(text) if character.isdigit()]))
    return text[:at] + str(rng.integers(10)) + text[at + 1 :]


def _day_for_month(date: str, _: np.random.Generator) -> str:
    return f"{date[:4]}-{date[8:]}-{date[5:7]}"


TEXT_ERRORS: tuple[Mistake, ...] = (
    *(_neighbouring_key, _neighbouring_key, _left_out, _left_out, _doubled, _swapped, _swapped),
    *(_capitals, _without_accents, _initial, _missing),
)
