"""The pre-flight of a WALR job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow.compute as pc

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.paillier.keys import KEY_BITS
from blindfit.algorithms.privacy.events import UNITS
from blindfit.algorithms.protocols.walr import encrypted_rows, several_parties, two_servers
from blindfit.algorithms.protocols.walr.grid import Grid
from blindfit.algorithms.sharing.short_rows import Plan
from blindfit.algorithms.statistics.walr import defaults
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.measured.rows_of_unit import RowsOfUnit
from blindfit.coordinator.measured.trust import ANSWERED_BEFORE, leaks_of_shares, rows_are_hidden
from blindfit.coordinator.measured.unknown_ids import check_ids, ids_of
from blindfit.coordinator.preflight.findings import Finding, Level, catch_error, large_delta, on_the_wire
from blindfit.coordinator.preflight.parties import PartyHere, check_least_rows, describe_budget, list_derived
from blindfit.coordinator.terminal.wording import join_names, quantity
from blindfit.parties.walr.reading import prepare_rows
from blindfit.parties.walr.rows import ReadColumns, read_columns
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.walr.start import Start, read_start

BYTES_PER_ID = 12
MASKED_BYTES = 8  # for each number
ROW_KEY_BITS = min(KEY_BITS)
CLIPPED_SHARE_WARNING = 0.05
Check = Callable[[Job[WalrJob], PartyHere], Iterator[Finding]]


def leaks(job: Job[WalrJob]) -> Iterator[Finding]:
    privacy = job.parameters.required_privacy
    (active,), servers = job.with_role("active"), job.with_role("measurement")
    server = " and ".join(servers)
    if job.parameters.asks_shares:
        yield from leaks_of_shares(job, active, server)
        return
    if job.parameters.encrypts_rows:
        yield from rows_are_hidden(active, server)
    else:
        holders = join_names([active, *job.with_role("passive")])
        yield Finding(
            "note", "who learns what", f"{server} sees the ids and the rounded rows of {holders}, to train on"
        )
    if passives := job.with_role("passive"):
        yield from _leaks_of_holders(active, passives, server)
    yield Finding(
        "note",
        "who learns what",
        f"{active} learns one noisy sum; (epsilon {privacy.epsilon:g}, delta {privacy.delta:g}) label DP",
    )


def _leaks_of_holders(active: str, passives: Sequence[str], server: str) -> Iterator[Finding]:
    about, others = "who learns what", join_names(passives)
    yield Finding(
        "note", about, f"{server} fits the model, and knows all of it; each party gets the weights of its columns"
    )
    text = f"{active} learns about {others} the number of columns, the norm bound, and the number of common rows"
    yield Finding("note", about, text)


def check_rows(job: Job[WalrJob], here: Sequence[PartyHere]) -> Iterator[Finding]:
    unit, servers = RowsOfUnit.of(job, here), [party for party in here if party.settings.role == "measurement"]
    active = partial(_check_features, unit=unit, servers=servers)
    checks: dict[str, Check] = {"measurement": _check_labels, "active": active}
    if passives := job.with_role("passive"):
        holders = [p for p in here if p.settings.role in ("active", "passive")]
        yield from _check_holders(job, holders, servers, 1 + len(passives), unit)
        checks = {"measurement": _check_labels}
    for party in here:
        if check := checks.get(party.settings.role):
            yield from catch_error(party.name, partial(check, job, party))
    yield from catch_error("ids", partial(check_ids, job, here))


def _check_holders(
    job: Job[WalrJob], holders: Sequence[PartyHere], servers: Sequence[PartyHere], of_all: int, unit: RowsOfUnit
) -> Iterator[Finding]:
    """Yield findings on columns of the same people, and on the noise if all parties with columns are here."""
    told: list[ReadColumns] = []
    for party in holders:
        yield from catch_error(party.name, partial(_check_columns, job, party, told))
    (server,) = job.with_role("measurement")
    yield from catch_error(server, partial(_check_rows_for_columns, server, told, servers))
    if len(told) == of_all:
        squares = sum(read.norm_bound(job.parameters.walr) ** 2 for read in told)
        whole = job.parameters.walr.norm_bound
        bound = math.sqrt(squares) if whole == "auto" else whole
        rows, columns = min(len(read.norms) for read in told), sum(read.columns.width for read in told)
        yield _noise(job, rows, columns, bound, unit)


def _check_rows_for_columns(
    server: str, told: Sequence[ReadColumns], servers: Sequence[PartyHere]
) -> Iterator[Finding]:
    """Refuse as the server would, from the tables that are here: all parties have at most their common rows.

    Raises:
        PolicyRefused: the weights would reveal too much, and no limit only warns.
    """
    if not told:
        return
    widths = [read.columns.width for read in told]
    rows = min(len(read.norms) for read in told)
    if reason := several_parties.too_few_rows(rows, widths):
        yield Finding("refuses", server, str(PolicyRefused(party=server, field="rows", reason=reason)))
        return
    if not several_parties.fits_rows(widths, _count_common(told, servers)):
        error = PolicyRefused(party=server, field="parties", reason=several_parties.TOO_MANY_BITS)
        if not servers:
            raise error
        servers[0].settings.excess.stop(error)
    bits = several_parties.score_bits_of_a_fit(rows)
    text = f"the weights of this fit count as {bits:.2g} bits about each row's score"
    yield Finding("note", "who learns what", text)


def _count_common(told: Sequence[ReadColumns], servers: Sequence[PartyHere]) -> int:
    """Return the number of training rows that the parties here have in common."""
    common, *others = (read.train.all_ids() for read in told)
    others += [ids_of(server) for server in servers if server.dataset.unknown_rows != "zero"]
    for ids in others:
        common = common.filter(pc.is_in(common, value_set=ids))
    return len(common)


def _check_labels(job: Job[WalrJob], party: PartyHere) -> Iterator[Finding]:
    event = job.parameters.event_at_server(UNITS["person" if party.dataset.person else "row"][1])
    yield from describe_budget(party, event, ANSWERED_BEFORE)


def _check_features(
    job: Job[WalrJob], party: PartyHere, *, unit: RowsOfUnit, servers: Sequence[PartyHere]
) -> Iterator[Finding]:
    if (start := read_start(job.parameters, party.base_dir, party.source(), party.settings)) is not None:
        yield _start(start, str(job.parameters.walr.init))
    prepared = prepare_rows(party.source(), job.parameters, job.parameters.trial_randomness, lambda *_: None)
    ids = [*prepared.train.ids, *prepared.test_ids]
    if twice := len(ids) - len(set(ids)):
        text = f"{quantity(twice, 'row')} have the id of another row: the next publication names the first two"
        yield Finding("refuses", party.name, text)
    n, k = prepared.train.weights.shape
    grid, bound = prepared.grid, prepared.grid.real_bound
    yield Finding("ok", party.name, f"{n:,} rows to train on, {len(prepared.test_ids):,} held out, {k} columns")
    yield from list_derived(party, party.source())
    for server in servers:
        yield from check_least_rows(server, n)
    share = prepared.rows_clipped / n
    level: Level = "warning" if share > CLIPPED_SHARE_WARNING else "ok"
    yield Finding(level, party.name, f"row norms are clipped at {bound:.3g}: {share:.1%} of the rows")
    yield Finding("ok", party.name, f"rows are rounded to steps of 2^-{grid.frac_bits}: {grid.row_bits}-bit integers")
    yield _noise(job, n, k, bound, unit)
    if job.parameters.asks_shares:
        yield from _fits(job, n, grid.norm_bound, unit)
    if job.parameters.shares_rows:
        Plan(n, k, grid.norm_bound)
    yield from large_delta(job.parameters.delta, n)
    row_bytes = _row_bytes(job, n, k, grid, unit)
    yield Finding("note", "bytes", on_the_wire(len(job.with_role("measurement")) * n * (row_bytes + BYTES_PER_ID), job))


def _start(start: Start, path: str) -> Finding:
    text = f"the fit shrinks towards the weights of {path}"
    if start.public:
        return Finding("ok", "walr.init", f"{text}, fitted to {start.public}, which is declared public")
    if start.release:
        return Finding("ok", "walr.init", f"{text}, the model of an earlier release")
    return Finding(
        "warning",
        "walr.init",
        f"{text}, which no declaration covers: epsilon does not bound what they reveal, and `blindfit verify` reports "
        "this. Take the file of `blindfit pretrain`, or a model.json with its release.json next to it",
    )


def _check_columns(job: Job[WalrJob], party: PartyHere, told: list[ReadColumns]) -> Iterator[Finding]:
    """Yield findings on the columns of one of several parties; the grid is agreed on when the job runs."""
    settings, randomness = job.parameters, job.parameters.trial_randomness
    intercept = settings.walr.intercept and party.settings.role == "active"
    read = read_columns(party.source(), settings, randomness, lambda *_: None, intercept=intercept)
    n, k, bound = len(read.norms), read.columns.width, read.norm_bound(settings.walr)
    told.append(read)
    yield Finding("ok", party.name, f"{n:,} rows to train on, {k} columns, row norms up to {bound:.3g}")
    yield from list_derived(party, read.source)
    yield Finding("note", "bytes", on_the_wire(n * (4 * k + BYTES_PER_ID), job))
    yield from large_delta(settings.delta, n)


def _row_bytes(job: Job[WalrJob], n: int, k: int, grid: Grid, unit: RowsOfUnit) -> int:
    if job.parameters.shares_rows:
        return MASKED_BYTES * Plan(n, k, grid.norm_bound).width
    if not job.parameters.encrypts_rows:
        return grid.row_bits // 8 * k
    bound = grid.norm_bound
    noise_std = job.parameters.noise_multiplier * bound * unit.count
    slots = ROW_KEY_BITS // encrypted_rows.slot_bits_of(n, bound, noise_std)
    return 2 * ROW_KEY_BITS // 8 * -(-k // slots)


def _fits(job: Job[WalrJob], n: int, bound: int, unit: RowsOfUnit) -> Iterator[Finding]:
    noise_std = job.parameters.noise_multiplier * bound * unit.count
    if two_servers.reach(n, bound, noise_std) >= two_servers.P / 2:
        yield Finding("refuses", "walr.frac_bits", f"{two_servers.TOO_LARGE}: {two_servers.LOWER_IT}")


def _noise(job: Job[WalrJob], n: int, k: int, bound: float, unit: RowsOfUnit) -> Finding:
    noise_std = job.parameters.noise_multiplier * bound * unit.count / n
    noise_std *= math.sqrt(len(job.with_role("measurement")))
    l2 = defaults.default_l2(noise_std, bound, k, job.parameters.required_privacy.epsilon)
    text = f"standard deviation {noise_std:.2g} on each coordinate of the mean, default l2 {l2:.2g}{unit.caveat}"
    if noise_std > 0.05:
        return Finding("warning", "noise", f"{text}: expect a weak model; use more rows or a larger privacy.epsilon")
    return Finding("ok", "noise", text)
