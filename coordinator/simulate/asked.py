"""Options of a simulation that cuts one table into parties, and their checks."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.init.files import COORDINATOR, KEY_NODE, OTHER_FILES
from blindfit.coordinator.init.systems import PLANS
from blindfit.coordinator.terminal.wording import join_names
from blindfit.parties.job.tables import LEAST_EPSILON, MOST_EPSILON

ALL: tuple[str, ...] = tuple(PLANS)
AT_ONE_PARTY = ("label-dp", "dp-lr")  # systems whose features one party has
#: Systems that take an epsilon.
PRIVATE = frozenset(name for name, plan in PLANS.items() if plan.charges_budget)
#: Names of the parties that the cut adds: the party with the labels, and the parties with columns of all parties.
LABELS, FEATURES, JOINED = "label-server", "feature-party", "single-party"
TAKEN = (*OTHER_FILES, KEY_NODE, COORDINATOR, LABELS, FEATURES, JOINED)
NAME, NAME_LENGTH = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*"), 40  # form of names that `init` makes from file names
MOST_MISSING = 0.9
Range = tuple[float, float]


@dataclass(frozen=True)
class Asked:
    """Options of a simulation.

    Attributes:
        label: column to learn.
        row_id: column that names a row; None if the cut numbers the rows.
        parties: number of parties that get columns at random, or the columns of each party by name. The first is
            active.
        positive: text of label 1; None to guess it as `init` does.
        label_range: public range of labels for label-dp; None for the range of the table's labels.
        bounds: public bounds of features for dp-lr; columns without bounds here have those of the table.
        overlap: share of a party's rows that every party has.
        duplicates: share of a party's ids that are twice in its records. No dataset may have such an id, so the
            party leaves out all of its rows.
        missing: share of the values of training rows that are emptied.
        shuffle: True if each party has its rows in a separate order.
        test_fraction: share of all rows that no party trains on.
        epsilons: one or more budgets, each for a separate run.
        repeats: number of cuts of the table, each with other held-out rows and other draws.
    """

    label: str
    row_id: str | None = None
    parties: int | Mapping[str, tuple[str, ...]] = 3
    positive: str | None = None
    label_range: Range | None = None
    bounds: Mapping[str, Range] = field(default_factory=dict)
    overlap: float = 1.0
    duplicates: float = 0.0
    missing: float = 0.0
    shuffle: bool = True
    test_fraction: float = 0.25
    seed: int = 0
    systems: tuple[str, ...] = ALL
    epsilons: tuple[float, ...] = (1.0,)
    repeats: int = 1

    @property
    def n_parties(self) -> int:
        return self.parties if isinstance(self.parties, int) else len(self.parties)

    def check(self) -> None:
        """Raise ConfigError: an option is out of its range for every table."""
        if not self.label:
            raise ConfigError("no column to learn is named", hint="name it: --label COLUMN")
        if self.row_id == self.label:
            raise ConfigError(f"--id and --label both name {self.label}", hint="name two columns")
        _refuse_share("--overlap", self.overlap, 0.0, 1.0, takes_low=False)
        _refuse_share("--duplicates", self.duplicates, 0.0, 1.0, takes_high=False)
        _refuse_share("--missing", self.missing, 0.0, MOST_MISSING)
        _refuse_share("--test-fraction", self.test_fraction, 0.0, 1.0, takes_low=False, takes_high=False)
        if self.seed < 0:
            raise ConfigError(f"--seed {self.seed}: a seed is not negative", hint="take a whole number from 0 up")
        if self.repeats < 1:
            raise ConfigError(f"--repeat {self.repeats}: at least one repeat is needed", hint="take 1 or more")
        self._check_systems()
        self._check_ranges()
        self._check_parties()

    def _check_systems(self) -> None:
        if not self.systems:
            raise ConfigError("no system is named", hint=f"take some of {', '.join(ALL)}, or all")
        if unknown := [name for name in self.systems if name not in ALL]:
            raise ConfigError(f"--systems: {unknown[0]!a} is not a system", hint=f"take some of {', '.join(ALL)}")
        refuse_repeats("--systems", "system", self.systems)
        if not self.epsilons:
            raise ConfigError("no epsilon is named", hint="give one or more, such as --epsilon 0.5,1")
        for epsilon in self.epsilons:
            if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
                raise ConfigError(
                    f"--epsilon {epsilon:g}: an epsilon lies between {LEAST_EPSILON:g} and {MOST_EPSILON:g}",
                    hint="take a number such as --epsilon 1",
                )
        refuse_repeats("--epsilon", "epsilon", [f"{epsilon:g}" for epsilon in self.epsilons])

        in_vain = {
            "--label-range": self.label_range is not None and "label-dp" not in self.systems,
            "--bounds": bool(self.bounds) and "dp-lr" not in self.systems,
            "--epsilon": self.epsilons != Asked.epsilons and not PRIVATE.intersection(self.systems),
        }
        if options := [option for option, is_in_vain in in_vain.items() if is_in_vain]:
            raise ConfigError(
                f"{options[0]} does nothing with --systems {','.join(self.systems)}", hint=f"leave {options[0]} out"
            )

    def _check_ranges(self) -> None:
        ranges = {"--label-range": self.label_range, **{f"--bounds {name}": pair for name, pair in self.bounds.items()}}
        for option, pair in ranges.items():
            if pair is not None and not -math.inf < pair[0] < pair[1] < math.inf:
                raise ConfigError(
                    f"{option}: {pair[0]:g}:{pair[1]:g} is not LOW:HIGH, two numbers with the smaller one first",
                    hint="such as 0:110",
                )

    def _check_parties(self) -> None:
        if self.n_parties < 2:
            raise ConfigError(
                f"a table is cut into at least 2 parties, not {self.n_parties}",
                hint='take --parties 2 or more, or name them: --party "shop: age, income" --party "bank: rate"',
            )
        if isinstance(self.parties, int):
            return
        for name, columns in self.parties.items():
            if not NAME.fullmatch(name) or len(name) > NAME_LENGTH:
                raise ConfigError(
                    f"--party {name!a}: this is not a name of a party",
                    hint=f"take words of lower-case letters and digits, begin with a letter, write one - between two "
                    f"words, and take at most {NAME_LENGTH} characters",
                )
            if name in TAKEN:
                raise ConfigError(f"--party {name}: this name is taken", hint=f"take none of {', '.join(TAKEN)}")
            if not columns:
                raise ConfigError(f"--party {name} has no column", hint=f'name its columns: --party "{name}: age"')
            if self.label in columns:
                raise ConfigError(
                    f"--party {name}: {self.label} is the label, and no party learns from it",
                    hint=f"leave {self.label} out: the first party gets the label",
                )
            if self.row_id in columns:
                raise ConfigError(
                    f"--party {name}: {self.row_id} names the rows, and every party has it",
                    hint=f"leave {self.row_id} out",
                )
        refuse_repeats("--party", "column", [column for columns in self.parties.values() for column in columns])


def read_parties(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of each party, from "shop: age, income".

    Raises:
        ConfigError: a text does not have this form, or a party is named twice.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, colon, columns = text.partition(":")
        name = name.strip()
        if not colon:
            raise ConfigError(
                f"--party {text!a} is not NAME: COLUMN, COLUMN", hint='such as --party "shop: age, income"'
            )
        if name in found:
            raise ConfigError(f"--party {name!a} is named twice", hint="name all its columns at once")
        found[name] = tuple(column.strip() for column in columns.split(",") if column.strip())
    return found


def _refuse_share(
    option: str, share: float, low: float, high: float, *, takes_low: bool = True, takes_high: bool = True
) -> None:
    if not (low <= share <= high) or (share == low and not takes_low) or (share == high and not takes_high):
        least = "at least" if takes_low else "above"
        most = "at most" if takes_high else "below"
        raise ConfigError(
            f"{option} {share:g}: it is a share, {least} {low:g} and {most} {high:g}",
            hint=f"take a number such as {option} {0.8 if option == '--overlap' else 0.1:g}",
        )


def refuse_repeats(option: str, what: str, names: Sequence[str]) -> None:
    """Raise ConfigError: a name occurs twice."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ConfigError(f"{option}: the {what} {join_names(twice)} is named twice", hint="name it once")
