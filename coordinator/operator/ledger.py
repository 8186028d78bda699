"""`blindfit ledger`: what was spent, on what, by whom, what is left; and the chain for an auditor."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from shlex import quote

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.accountant import composed_epsilon, spent_by_neighbours
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.coordinator.operator import account
from blindfit.coordinator.operator.account import MOST_REASON_CHARS, is_reason
from blindfit.coordinator.operator.deciding import open_store
from blindfit.coordinator.running import snapshots as changed
from blindfit.coordinator.systems import VIEWS, view
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.whole_table import WholeTable
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.files.written import write_file
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.answers import StoredLabels
from blindfit.parties.store.database import Store, make_lost_error, path_of
from blindfit.parties.store.losses import Loss, find_unexplained
from blindfit.parties.store.receipts import acknowledge_losses
from blindfit.parties.store.uploads import FailedUploads


def describe(settings: PartySettings, base_dir: Path) -> Found:
    """Return budgets, charges, and what was revealed without a charge.

    Raises:
        DataError: the chain of entries is broken.
    """
    if not settings.datasets:
        raise ConfigError(f"{settings.name} has no datasets, so it has neither a budget nor an account to show")
    store = open_store(settings, base_dir)
    entries = store.reader().ledger()
    book.verify_chain(entries)
    moved_on = list(changed.find_changed(settings, base_dir))  # before any output, because it may need a passphrase
    shown = tuple(_render(settings, entries, moved_on, store))
    return Found(_document(settings, entries, moved_on, store), shown)


def _render(
    settings: PartySettings, entries: list[LedgerEntry], changed: list[Snapshot], store: Store
) -> Iterator[RenderableType]:
    if settings.populations:
        yield _budgets(settings, entries)
        yield from _explain_composition(settings, entries)
    yield from _describe_protection(settings, entries)
    if entries:
        labels = {stored.position: stored for stored in store.reader().label_releases()}
        yield _entries(settings, entries, labels)
    yield from account.render(settings, store)
    for snapshot in changed:
        read = f"snapshot {snapshot.row.number}, which jobs read"
        yield f"{snapshot.row.dataset} has changed since {read}: publish it"
    if failed := store.reader().uploads():
        yield _uploads(failed)
    if losses := store.reader().losses():
        yield _losses(losses)
    if unexplained := find_unexplained(store.path.parent, store.reader()):
        error = make_lost_error(store.path, unexplained)
        yield line(f"[bold red]{escape(error.message)}[/]: {escape(error.hint)}")
    if store.reader().rollbacks():
        yield line(
            "[bold red]a receipt of another party proves entries that this ledger does not have[/]: nothing is "
            "released until `--acknowledge REASON` charges them again"
        )


def _document(
    settings: PartySettings, entries: list[LedgerEntry], changed: list[Snapshot], store: Store
) -> dict[str, object]:
    spent = {name: book.spent(_of(name, entries), p.delta) for name, p in settings.populations.items()}
    return {
        "populations": {
            name: {
                "releases": len(_of(name, entries)),
                "spent": spent[name],
                "budget": population.epsilon,
                "left": max(0.0, population.epsilon - spent[name]),
                "delta": population.delta,
            }
            for name, population in settings.populations.items()
        },
        "entries": [json.loads(book.to_json_line(entry)) for entry in entries],
        "revealed": account.document(store),
        "changed_since_published": [snapshot.row.dataset for snapshot in changed],
        "uploads_without_an_answer": store.reader().uploads(),
        "losses": store.reader().losses(),
        "is_behind_a_receipt": bool(store.reader().rollbacks()),
    }


def _of(population: str, entries: list[LedgerEntry]) -> list[LedgerEntry]:
    return [entry for entry in entries if entry.population == population]


def _budgets(settings: PartySettings, entries: list[LedgerEntry]) -> WholeTable:
    table = WholeTable("population", "releases", "spent", "budget", "left", "at delta", title="Budget", box=SIMPLE_HEAD)
    for name, population in settings.populations.items():
        own = _of(name, entries)
        spent = book.spent(own, population.delta)
        table.add_row(
            escape(name),
            str(len(own)),
            f"{spent:.4g}",
            f"{population.epsilon:g}",
            f"{max(0.0, population.epsilon - spent):.4g}",
            f"{population.delta:g}",
        )
    return table


def _explain_composition(settings: PartySettings, entries: list[LedgerEntry]) -> Iterator[str]:
    """Yield why the releases to a population have spent less than the sum of their epsilons."""
    for name, population in settings.populations.items():
        own = _of(name, entries)
        epsilons, spent = [_spent_by(entry, settings)[0] for entry in own], book.spent(own, population.delta)
        if len(own) < 2 or spent >= 0.995 * sum(epsilons):
            continue
        is_same = max(epsilons) - min(epsilons) < 0.005 * max(epsilons)
        each = f"of epsilon {epsilons[0]:.3g}" if is_same else "of different epsilons"
        yield (
            f"{name}: {quantity(len(own), 'release')} {each} compose to {spent:.3g} at delta {population.delta:g}, not "
            f"to their sum of {sum(epsilons):.3g}: the noise of one release is independent of another's"
        )


def _describe_protection(settings: PartySettings, entries: list[LedgerEntry]) -> Iterator[str]:
    """Yield what was spent against whom, for each population whose releases do not all protect the same."""
    for name, population in settings.populations.items():
        events = [ReleaseEvent.from_canonical(entry.event) for entry in entries if entry.population == name]
        spent = spent_by_neighbours(events, population.delta)
        if len(spent) > 1:
            common, *others = spent.items()
            yield f"{name}: {common[1]:.4g} is spent on protection where {common[0]}: all releases together"
            yield from (
                f"{name}: {epsilon:.4g} is spent on protection where {neighbours}: only by the releases that protect "
                "this; the others do not"
                for neighbours, epsilon in others
            )


def _entries(settings: PartySettings, entries: list[LedgerEntry], labels: dict[int, StoredLabels]) -> WholeTable:
    columns = ("#", "when (UTC)", "by whom", "on what", "what", "epsilon", "at delta", "hash")
    table = WholeTable(*columns, title="Ledger", box=SIMPLE_HEAD)
    for entry in entries:
        epsilon, delta = _spent_by(entry, settings)
        cells = (
            str(entry.position),
            entry.time[:16].replace("T", " "),
            entry.requester or "(recovered)",
            f"{entry.population}/{entry.dataset or '?'}",
            _what(entry, labels.get(entry.position)),
            f"{epsilon:.4g}",
            f"{delta:g}",
            entry.hash[:8],
        )
        table.add_row(*map(escape, cells))  # an active party named its release: its words are not markup
    return table


def _uploads(failed: list[FailedUploads]) -> WholeTable:
    table = WholeTable(
        "by whom", "to what", "how many", "the last (UTC)", title="Uploads without an answer", box=SIMPLE_HEAD
    )
    for uploads in failed:
        last = uploads.last[:16].replace("T", " ")
        table.add_row(escape(uploads.consumer), escape(uploads.dataset), str(uploads.count), last)
    return table


def _losses(losses: list[Loss]) -> WholeTable:
    """Return a table of the losses that the operator acknowledged, and why the database lacks the entries."""
    table = WholeTable("when (UTC)", "what was found", "reason", title="Lost and acknowledged", box=SIMPLE_HEAD)
    for (when, reason), found in groupby(losses, lambda loss: (loss.acknowledged, loss.reason)):
        whats = [loss.what for loss in found]
        more = f" and {len(whats) - 1} more" if whats[1:] else ""
        table.add_row(when[:16].replace("T", " "), escape(whats[0] + more), escape(reason))
    return table


def _what(entry: LedgerEntry, labels: StoredLabels | None) -> str:
    """Return a description of the release."""
    if entry.kind == "recovered-sum":
        return "many, charged again as one"
    if entry.kind == "recovered" and labels is None:
        return "charged again"
    found = (view(protocol).released(entry, labels) for protocol in VIEWS)
    return next(filter(None, found), "a release")


def _spent_by(entry: LedgerEntry, settings: PartySettings) -> tuple[float, float]:
    """Return epsilon and delta.

    A recovered charge is only an event: its epsilon is the one at the population's delta.
    """
    if entry.kind == "release":
        return entry.epsilon, entry.delta
    population = settings.populations.get(entry.population)
    delta = population.delta if population else 1e-5
    return composed_epsilon([ReleaseEvent.from_canonical(entry.event)], delta), delta


def export(settings: PartySettings, base_dir: Path, path: Path) -> Found:
    entries = open_store(settings, base_dir).reader().ledger()
    book.verify_chain(entries)
    write_file(path, "".join(book.to_json_line(entry) + "\n" for entry in entries).encode())
    check = f"check them with `blindfit ledger --verify {quote(str(path))}`"
    line = f"{path}: {quantity(len(entries), 'entry', 'entries')}; {check}"
    return Found({"file": path, "entries": len(entries)}, (line,))


def verify(path: Path) -> Found:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    try:
        entries = [book.from_json_line(line, number) for number, line in enumerate(lines, 1)]
        book.verify_chain(entries)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from None
    document = {"file": path, "entries": len(entries), "last_hash": entries[-1].hash if entries else None}
    last = f"; its last hash is {entries[-1].hash}" if entries else ""
    shown = f"{path}: the chain of {quantity(len(entries), 'entry', 'entries')} is whole{last}"
    return Found({**document, "whole": True}, (shown,))


def acknowledge(settings: PartySettings, base_dir: Path, reason: str) -> Found:
    """Keep the operator's reason for a database that was lost or restored, even if the database is gone."""
    reason = reason.strip()
    if not is_reason(reason):
        raise ConfigError(
            f"--acknowledge: a reason has 1 to {MOST_REASON_CHARS} printable characters",
            hint="write what happened to the database, such as --acknowledge 'disk failed, no backup since 3 May'",
        )
    path = path_of(settings, base_dir)
    if not path.exists() and not find_unexplained(path.parent, None):
        open_store(settings, base_dir)
    with contextlib.closing(Store(path)) as store:
        recovered = acknowledge_losses(store, reason)
    return Found({"charged_again": recovered}, (f"acknowledged: {recovered} lost charges were charged again",))
