"""Keep people from having two budgets: refuse rows that another population has, and let datasets wait for the
operator.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import numpy as np

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.data.content_digest import ContentDigest
from blindfit.parties.data.source import Source
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.people import Digests, PeopleKey, join
from blindfit.parties.store.database import Reads, Store
from blindfit.parties.store.snapshots import SnapshotRow


def schedule_waits(settings: PartySettings, dataset: str) -> str:
    """Return how the operator starts the schedule of a dataset that waits."""
    if settings.datasets[dataset].public:
        return f"the schedule of {dataset} does not run: only `blindfit snapshot` and `blindfit run` publish it"
    return (
        f"the schedule of {dataset} does not run, as the party has another population: publish it once with "
        "--other-people if its people are not those of the other one"
    )


def why_it_waits(settings: PartySettings, dataset: str, known: Sequence[SnapshotRow]) -> str:
    """Return why only the operator publishes a dataset; empty if the party does so by itself.

    The answer follows from the party's file and from which populations were published before, never from rows.
    Otherwise a job could learn from a publication that the dataset's rows are those of another population.

    Args:
        known: all snapshots of the party, removed ones included.
    """
    population = settings.datasets[dataset].population
    if not population or _is_of_other_people(dataset, population, known):
        return ""
    before = itertools.takewhile(lambda name: name != dataset, settings.datasets)
    populations = [*(row.population for row in known), *(settings.datasets[name].population for name in before)]
    others = [other for other in populations if other and other != population]
    if not others:
        return ""
    return (
        f"{dataset} waits for `blindfit snapshot`: the party also has the population {others[0]}, and people in both "
        "would have two budgets"
    )


def why_public_waits(settings: PartySettings, dataset: str, known: Sequence[SnapshotRow]) -> str:
    """Return why neither a party's start nor its schedule publishes a dataset that is declared public.

    It is refused if people of a population with a budget are in it. Others would see the refusal, so only the operator
    may try. The answer follows from the party's file and from which populations were published before, never from rows.
    """
    if not settings.datasets[dataset].public:
        return ""
    others = [name for name in (*(row.population for row in known), *_populations(settings)) if name]
    if not others:
        return ""
    return (
        f"{dataset} waits for `blindfit snapshot`: it is declared public, and its rows are compared with the people of "
        f"{others[0]}, who have a budget"
    )


def _populations(settings: PartySettings) -> list[str | None]:
    return [dataset.population for dataset in settings.datasets.values()]


def _is_of_other_people(dataset: str, population: str, known: Sequence[SnapshotRow]) -> bool:
    """Return True if the operator has declared that the dataset's people are not those of another population."""
    return any(k.other_people and (k.dataset, k.population) == (dataset, population) for k in known)


def refuse_private_rows(reader: Reads, row: SnapshotRow, digests: Digests, settings: PartySettings) -> None:
    """Refuse the snapshot of a dataset that is declared public and holds rows or people of a population.

    Raises:
        ConfigError: the ids and labels are those of a dataset with a population, or people are the same.
    """
    if settings.datasets[row.dataset].public:
        known = reader.snapshots()
        _refuse_content(row.dataset, row.content_sha256, known)
        if not row.other_people and not _is_of_other_people(row.dataset, row.population, known):
            _refuse_private_people(reader, row.dataset, digests)


def refuse_private_copy(settings: PartySettings, base_dir: Path, dataset: str, source: Source) -> None:
    """Refuse rows that are declared public and are those of a snapshot with a population. Only the operator calls it.

    Raises:
        ConfigError: the ids and labels are those of a dataset with a population, or people are the same.
    """
    store = Store.existing(settings, base_dir)
    if store is None:
        return
    with contextlib.closing(store):
        reader = store.reader()
        known = reader.snapshots()
        if not any(row.population for row in known):
            return
        content, key, digests = ContentDigest(), PeopleKey.of_party(settings, base_dir), []
        for batch in source.batches():
            content.add(batch)
            digests.append(key.digests(batch.ids))
        _refuse_content(dataset, content.hexdigest(), known)
        if not _is_of_other_people(dataset, "", known):
            _refuse_private_people(reader, dataset, np.concatenate(digests))


def _refuse_content(dataset: str, content_sha256: str, known: Sequence[SnapshotRow]) -> None:
    others = [k for k in known if k.population and k.content_sha256 == content_sha256]
    if others:
        other = others[-1]
        raise ConfigError(
            f"datasets.{dataset}.public = true, but its ids and labels are those of snapshot {other.number} of "
            f"{other.dataset}, whose population {other.population} has a budget",
            hint=f"remove datasets.{dataset}, or name another file with rows that are public",
        )


def _refuse_private_people(reader: Reads, dataset: str, digests: Digests) -> None:
    for other, shared in _find_shared_people(reader, "", digests):
        raise ConfigError(
            f"datasets.{dataset}.public = true, but {shared} of its {len(np.unique(digests))} ids also occur in the "
            f"population {other}, which has a budget",
            hint=f"remove datasets.{dataset}, or name another file with rows that are public; or, if these are other "
            f"people, `blindfit snapshot PARTY.TOML {quote(dataset)} --other-people`",
        )


def public_copy(row: SnapshotRow, known: Sequence[SnapshotRow], settings: PartySettings) -> str:
    """Return the public dataset that holds the rows of this snapshot; empty if no dataset does."""
    described = settings.datasets
    copies = [k.dataset for k in known if k.content_sha256 == row.content_sha256 and k.dataset in described]
    return next((name for name in copies if described[name].public), "") if row.population else ""


MOST_SHARED = 20
MOST_SHARED_FRACTION = 0.01


def refuse_people_of_another(reader: Reads, row: SnapshotRow, digests: Digests) -> None:
    """Refuse a snapshot whose people another population has: they would have two accounts, and two budgets.

    Raises:
        ConfigError: 20 people, or one in a hundred of the smaller population, are the same.
    """
    if not row.population or row.other_people:
        return
    if _is_of_other_people(row.dataset, row.population, reader.snapshots()):
        return
    for other, shared in _find_shared_people(reader, row.population, digests):
        raise ConfigError(
            f"datasets.{row.dataset}: {shared} of its {len(np.unique(digests))} ids also occur in the population "
            f"{other}: the same people would have two budgets and two accounts of what was revealed",
            hint=f'set datasets.{row.dataset}.population = "{other}"; or, if these are other people, '
            f"`blindfit snapshot PARTY.TOML {quote(row.dataset)} --other-people`",
        )


def warn_of_two_accounts(reader: Reads, row: SnapshotRow, digests: Digests) -> Iterator[str]:
    """Warn the operator of people who have two accounts, with a population and without one.

    This does not refuse the snapshot. The party publishes such a dataset by itself, and others would learn from a
    refusal who is in it.
    """
    of_it = [one.population for one in reader.snapshots() if one.dataset == row.dataset]
    if row.population and "" not in of_it and reader.disclosures(""):  # else its account was carried over
        shared = len(np.intersect1d(digests, join(reader.people(""))))
        if shared:
            yield (
                f"{shared} of its ids were published in a dataset without a population before. What was revealed about "
                f"them then stays in the account of datasets without a population, and the account of {row.population} "
                "does not count it"
            )
    yield from _warn_of_two_labels(reader, row)
    for other, shared in _find_shared_people(reader, "", digests) if not row.population else ():
        yield (
            f"{shared} of its ids also occur in the population {other}, and have an account of their own here: set "
            f'datasets.{row.dataset}.population = "{other}" if its role allows it'
        )


def _warn_of_two_labels(reader: Reads, row: SnapshotRow) -> Iterator[str]:
    """Warn the operator of a label column whose people have published labels under another name."""
    label = json.loads(row.meaning).get("label")
    known = reader.labels_of(row.population)
    if not row.population:  # the people of all datasets without a population: another label may be other people's
        known = [json.loads(one.meaning).get("label") for one in reader.snapshots(row.dataset)]
    others = {name for name in known if name and name != label} if label else set()
    if others:
        before = ", ".join(sorted(others))
        yield (
            f"the labels of {row.population or row.dataset} were published as {before} before, and {label} has a "
            "limit and a jitter of its own. If these are the same labels, give the column its old name: otherwise "
            "twice as much of them may be revealed"
        )


def _find_shared_people(reader: Reads, population: str, digests: Digests) -> Iterator[tuple[str, int]]:
    """Yield each other population that shares too many people with these rows, and how many it shares."""
    people = np.unique(digests)
    for other in reader.populations_with_people():
        if other in (population, ""):
            continue
        theirs = join(reader.people(other))
        shared = len(np.intersect1d(people, theirs))
        if shared >= min(MOST_SHARED, max(1, MOST_SHARED_FRACTION * min(len(people), len(theirs)))):
            yield other, shared


def refuse_another_population(row: SnapshotRow, known: list[SnapshotRow]) -> None:
    """Refuse rows that are known under another population: two budgets for the same people would be twice the
    budget.
    """
    others = [
        k for k in known if k.population and k.population != row.population
        and (k.dataset == row.dataset or k.content_sha256 == row.content_sha256)
    ]  # fmt: skip
    if not row.population or not others or row.other_people:
        return
    if _is_of_other_people(row.dataset, row.population, known):
        return
    other = others[-1]
    raise ConfigError(
        f"datasets.{row.dataset}: its rows are known under the population {other.population}, as snapshot "
        f"{other.number} of {other.dataset}: people who are in two populations have two budgets",
        hint=f'set datasets.{row.dataset}.population = "{other.population}"; or, if these are other people, '
        f"`blindfit snapshot PARTY.TOML {quote(row.dataset)} --other-people`",
    )
