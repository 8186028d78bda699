"""The disclosure account of a party's people: what was revealed about them without a charge, and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.markup import escape

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.vertical.score_leaks import MODEL_BITS
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.whole_table import WholeTable
from blindfit.coordinator.terminal.wording import join_names, quantity
from blindfit.parties.account.account import MOST_MEMBERSHIP, Account
from blindfit.parties.settings import PartySettings
from blindfit.parties.snapshots.people import join
from blindfit.parties.snapshots.row_content import count_unknowns
from blindfit.parties.snapshots.snapshot import record_of
from blindfit.parties.store.account import RESET, AccountReads, Disclosure
from blindfit.parties.store.database import Reads, Store
from blindfit.parties.training import randomness
from blindfit.parties.vertical import linkages
from blindfit.parties.vertical.scored_rows import OPENED_FIT, SCORES, find_most, models_of

WITHOUT = "(no population)"
MOST_REASON_CHARS = 500


def accounts_of(settings: PartySettings) -> dict[str, Account]:
    """Return the account of each population by name, and under "" the account of all datasets without a population."""
    return {account.population: account for account in (Account.of(settings, name) for name in settings.datasets)}


def render(settings: PartySettings, store: Store) -> Iterator[RenderableType]:
    """Yield the tables of the account; nothing if nothing was revealed."""
    reader = store.reader()
    entries = reader.disclosures()
    if not entries:
        return
    yield _limits(settings, store)
    table = WholeTable("when (UTC)", "who learns", "about", "what", "bits", title="Revealed", box=SIMPLE_HEAD)
    for entry in entries:
        cells = (entry.made[:16].replace("T", " "), entry.learner, about(entry), entry.event, f"{entry.bits:,.1f}")
        table.add_row(*map(escape, cells))
    yield table
    yield (
        "A limit bounds a total. It promises nothing to a single person: privacy.epsilon does, and so does "
        'falcon.weights = "shared" for weights.'
    )


def document(store: Store) -> list[dict[str, object]]:
    """Return the entries for a program, without bitmaps of people."""
    return [
        {name: value for name, value in asdict(entry).items() if name != "people"}
        for entry in store.reader().disclosures()
    ]


def about(entry: Disclosure) -> str:
    people = entry.population or WITHOUT
    what = {"labels": f"labels {entry.about}", "scores": "scores of rows", "columns": f"columns of {entry.about}"}
    return f"{people}: {what.get(entry.subject, f'membership in {entry.about}' if entry.about else entry.subject)}"


def _limits(settings: PartySettings, store: Store) -> WholeTable:
    table = WholeTable("people", "about", "revealed", "limit", "left", title="Disclosure account", box=SIMPLE_HEAD)
    reader = store.reader()
    for dataset in settings.datasets:
        account = Account.of(settings, dataset)
        people = account.population or WITHOUT
        if account.counts_labels:
            spent, limit = account.spent(reader, "labels", account.label), account.label_limit(reader)
            cells = (people, f"labels {account.label}", f"{spent:,.0f} bits", f"{limit:,.0f} bits")
            table.add_row(*map(escape, cells), f"{max(0.0, limit - spent):,.0f} bits")
        for cells in _scores(settings, dataset, reader):
            table.add_row(escape(people), *map(escape, cells))
    for population, account in accounts_of(settings).items():
        people = population or WITHOUT
        for owner, bits in _columns(account, reader).items():
            cells = (people, f"columns of {owner}", f"{bits:,.0f} bits", "1/4 bit for each row of a job")
            table.add_row(*map(escape, cells), "")
        counts = Counter(text for entry in account.entries(reader, "membership") for text in _membership(entry))
        for text, count in sorted(counts.items()):
            table.add_row(escape(people), escape(text), str(count), str(MOST_MEMBERSHIP), str(MOST_MEMBERSHIP - count))
    return table


def _models(account: Account, reader: AccountReads) -> int:
    """Return the number of models that revealed something of rows' scores; a fit and its scores are one model.

    An entry of an older version names the model and a snapshot.
    """
    entries = [entry for entry in account.entries(reader, "scores") if entry.event in (SCORES, OPENED_FIT)]
    scored = {entry.about for entry in entries if entry.event == SCORES}
    return len({e.question.partition(" ")[0] for e in entries if e.event == SCORES or e.about not in scored})


def _scores(settings: PartySettings, dataset: str, reader: Reads) -> Iterator[tuple[str, str, str, str]]:
    """Yield what was revealed about the row with the most revelations, and the limit."""
    account, declared = Account.of(settings, dataset), settings.datasets[dataset]
    snapshots = reader.snapshots(dataset)
    entries = account.entries(reader, "scores")
    if not entries or not snapshots:
        return
    models, bits = find_most(entries, len(join(reader.people(account.population))))
    what = f"each row's score, {dataset}"
    if declared.public or declared.models_per_row == "unlimited":
        yield what, f"{quantity(models, 'model')}, {bits:,.0f} bits", "none", ""
        return
    most = max(1, models_of(declared, count_unknowns(record_of(snapshots[-1]))))
    yield what, quantity(models, "model"), quantity(most, "model"), quantity(max(0, most - models), "model")
    yield "", f"{bits:,.0f} bits", f"{most * MODEL_BITS} bits", f"{max(0.0, most * MODEL_BITS - bits):,.0f} bits"


def _columns(account: Account, reader: AccountReads) -> dict[str, float]:
    """Return the bits that were revealed about each party's columns."""
    entries = account.entries(reader, "columns")
    owners = dict.fromkeys(entry.about for entry in entries)
    return {owner: account.spent(reader, "columns", owner) for owner in owners}


def _membership(entry: Disclosure) -> list[str]:
    """Return the limits of membership that count an entry: those with each party, and the limit of draws."""
    if entry.event == randomness.EVENT:
        return ["draws of held-out rows"]
    kinds = {linkages.BY_IDS: "unsuccessful alignments", linkages.COMMON_ROWS: "numbers of rows in common"}
    kind = "linkages" if entry.event.startswith(linkages.EVENT) else kinds.get(entry.event)
    return [f"{kind} with {other}" for other in entry.learner.split(",")] if kind else []


def summarise(settings: PartySettings, store: Store, dataset: str) -> str:
    """Return what was revealed about a dataset's people, for the operator who decides on a job."""
    account, reader = Account.of(settings, dataset), store.reader()
    parts = []
    if account.counts_labels:
        spent, limit = account.spent(reader, "labels", account.label), account.label_limit(reader)
        parts.append(f"{spent:,.0f} of at most {limit:,.0f} bits about labels")
    parts.append(f"scores of {quantity(_models(account, reader), 'model')}")
    revealed = f"revealed before about these people: {join_names(parts)}; a limit bounds a total, not one person"
    days = settings.policy.account_period_days
    period = f"; an entry counts for {days:g} days" if days is not None else ""
    resets = [entry for entry in reader.disclosures(account.population) if entry.subject == RESET]
    return revealed + period + "".join(f"; {entry.event} ({entry.made[:10]})" for entry in resets)


def is_reason(reason: str) -> bool:
    """Return True if the operator's words can be kept and shown on a terminal."""
    return 1 <= len(reason) <= MOST_REASON_CHARS and reason.isprintable()


def reset(settings: PartySettings, store: Store, dataset: str, reason: str) -> Found:
    """Start the account of a dataset's people again; the reason stays in it.

    Raises:
        ConfigError: the dataset does not exist, or the reason is missing.
    """
    if dataset not in settings.datasets:
        raise ConfigError(
            f"{settings.name} has no dataset {dataset}", hint=f"name one of {', '.join(settings.datasets)}"
        )
    if not reason.strip():
        raise ConfigError("--reset-account needs --reason: every later approval shows it")
    reason = reason.strip()
    if not is_reason(reason):
        raise ConfigError(f"--reason must have at most {MOST_REASON_CHARS} characters, all printable")
    account = Account.of(settings, dataset)
    with store.transaction() as transaction:
        number = sum(entry.subject == RESET for entry in transaction.disclosures(account.population))
        event = f"the account starts again: {reason}"
        transaction.add_disclosure(account.entry(RESET, "", [], event, f"reset {number + 1}", 0))
    people = account.population or "the people of all datasets without a population"
    said = f"the account of {people} starts again; what was revealed before stays in it"
    return Found({"account_started_again": dataset, "reason": reason}, (said,))
