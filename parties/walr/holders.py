"""Several parties that hold columns of the same people: the steps of each of them in a WALR job, except the server."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import structlog

from blindfit.algorithms import fixed_point
from blindfit.algorithms.errors import BlindfitError, MalformedMessage, PolicyRefused
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.protocols.walr import lone_rows, several_parties
from blindfit.algorithms.protocols.walr.blocks import Block
from blindfit.algorithms.protocols.walr.grid import Grid
from blindfit.algorithms.protocols.walr.messages import BlockColumns, BlockContent, BlockFit, BlockGrid, BlockWanted
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.linear.logistic import Floats
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS, VerticalModelPart
from blindfit.parties.account.account import Account
from blindfit.parties.measurement.patience import patient
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.training.randomness import name_randomness
from blindfit.parties.walr.partitions import ReadParts
from blindfit.parties.walr.rows import PreparedRows, ReadColumns
from blindfit.parties.walr.settings import WalrJob

log = structlog.get_logger(__name__)

LEAVES_ROOM = fixed_point.MAX_NORM_BOUND * 49 // 50  # leaves a margin for blocks whose bounds are rounded up to a step
GRID_MARGIN = 0.99  # each block's bound is rounded down to whole steps, and the noise must still be wide enough


def chain_of(session: Session[WalrJob]) -> tuple[str, ...]:
    """Return the parties with columns: the active party, then the passive parties by name."""
    return (session.with_role("active").name, *passives_of(session))


def passives_of(session: Session[WalrJob]) -> tuple[str, ...]:
    return tuple(sorted(m.name for m in session.members.values() if m.role == "passive"))


async def hear(session: Session[WalrJob], sender: str, kind: type[Any]) -> Any:
    """Return a message that another party sends after it has read its rows, or has an answer. This may take longer than
    a step.
    """
    return await patient(lambda: session.channel.receive(sender, kind), session.job.timeouts.session_s)


# --- the active party ----------------------------------------------------------------------------------


async def agree_on_grid(session: Session[WalrJob], read: ReadColumns | ReadParts) -> tuple[Grid, list[Block]]:
    """Do steps 1 to 3: agree on the grid of the active party's own block, and on the blocks that the passive parties
    will send.

    Raises:
        MalformedMessage: a passive party reports an impossible value.
        RangeError: no grid holds the rows, or is fine enough for the noise.
    """
    job, told = session.job, dict[str, BlockColumns]()
    for name in passives_of(session):
        told[name] = await hear(session, name, BlockColumns)
        several_parties.step_2_check_columns(told[name], passive=name)
    own = BlockColumns(read.columns.width, read.norm_bound(job.walr))
    own_grid, grids = grids_of(job, told, own)
    for name, grid in grids.items():
        await session.channel.send(name, BlockGrid(grid.frac_bits, grid.norm_bound))
    return own_grid, [await _block(session, name, told[name], grids[name]) for name in grids]


def grids_of(job: WalrJob, told: Mapping[str, BlockColumns], own: BlockColumns) -> tuple[Grid, dict[str, Grid]]:
    """Return the active party's own grid, and those of the others. If bounds depend on rows, there is a grid for any
    rows.

    Raises:
        RangeError: no grid holds a norm bound of the job, or is fine enough for the noise.
    """
    if job.walr.norm_bound != "auto":
        bounds, own_bound, whole = several_parties.step_2_bounds(told, own, job.walr.norm_bound)
        bits = job.grid(GRID_MARGIN * whole).frac_bits
        return Grid.of(own_bound, bits), {name: Grid.of(bound, bits) for name, bound in bounds.items()}
    cut = partial(_cut, job, 1 + len(told))
    bounds, own_bound, whole = several_parties.step_2_bounds({n: cut(c) for n, c in told.items()}, cut(own), None)
    bits = job.room(LEAVES_ROOM).grid(GRID_MARGIN * whole, job.walr.fixed_bits).frac_bits
    step = math.ldexp(1.0, -bits)
    return Grid.of(max(own_bound, step), bits), {n: Grid.of(max(bound, step), bits) for n, bound in bounds.items()}


def _cut(job: WalrJob, holders: int, columns: BlockColumns) -> BlockColumns:
    """Return a block with its bound limited, so that a grid of whole rows holds it with any bounds of the others.

    The limit depends only on this block. Otherwise a passive party could learn, from the change of its bound, how long
    the others' rows are.
    """
    bits = job.walr.fixed_bits
    least, most = job.room(LEAVES_ROOM).bounds(bits)
    finest = math.ldexp(1.0, -fixed_point.MAX_FRAC_BITS if bits is None else -bits)
    least = least / (GRID_MARGIN * math.sqrt(holders)) + 2 * finest  # each bound is rounded down to whole steps
    return replace(columns, norm_bound=min(max(columns.norm_bound, least), most / math.sqrt(holders)))


async def _block(session: Session[WalrJob], name: str, columns: BlockColumns, grid: Grid) -> Block:
    content: BlockContent = await hear(session, name, BlockContent)
    if len(content.content_sha256) != 32:
        raise MalformedMessage(culprit=name, field="content_sha256", reason="is not 32 bytes", step="BlockContent")
    return Block(name, columns.n_columns, grid.norm_bound, content.content_sha256)


# --- a passive party -----------------------------------------------------------------------------------


async def round_as_told(
    party: Party, session: Session[WalrJob], read: ReadColumns | ReadParts, salt: bytes, drawn: PublicRandomness
) -> tuple[PreparedRows, BlockContent]:
    """Do steps 1 to 3 of a passive party.

    Args:
        drawn: randomness by which `read` was split.
    """
    active, channel = session.with_role("active").name, session.channel
    bound = several_parties.step_1_bound(read.norm_bound(session.job.walr))
    if session.job.walr.norm_bound == "auto":
        count_bound(party, session, len(read.norms), drawn)
    await channel.send(active, BlockColumns(read.columns.width, bound))
    grid: BlockGrid = await hear(session, active, BlockGrid)
    if not fixed_point.MIN_FRAC_BITS <= grid.frac_bits <= fixed_point.MAX_FRAC_BITS:
        raise MalformedMessage(culprit=active, field="frac_bits", reason="is out of range", step="BlockGrid")
    if not 1 <= grid.norm_bound <= fixed_point.MAX_NORM_BOUND:
        raise MalformedMessage(culprit=active, field="norm_bound", reason="is out of range", step="BlockGrid")
    session.report("prepare rows")
    prepared = await asyncio.to_thread(read.round, Grid(grid.frac_bits, grid.norm_bound))
    content = await asyncio.to_thread(several_parties.step_3_content, prepared.train, salt)
    await channel.send(active, content)
    return prepared, content


def count_bound(party: Party, session: Session[WalrJob], n_rows: int, drawn: PublicRandomness) -> None:
    """Count the disclosure of a norm bound that depends on the party's rows.

    Bounds for other quantiles or other splits would together reveal all norms. A new draw of the split counts too, even
    with the same settings.

    Raises:
        PolicyRefused: the bound was sent under too many settings.
    """

    def refuse() -> BlindfitError:
        reason = "this party's norm bound was sent under too many settings: set walr.norm_bound to a number"
        return PolicyRefused(party=session.me.name, field="walr.norm_bound", reason=reason)

    fields = session.job.digest_fields()
    asked = {name: v for name, v in fields.items() if name.startswith(("walr.norm", "split.")) or name == "seed"}
    snapshots = {f"snapshot.{name}": snapshot for name, snapshot in session.snapshots.items()}
    request_id = parameters_digest({**asked, **snapshots, "drawn": name_randomness(drawn)}).hex()
    account, read = Account.of(party.settings, session.me.dataset), (session.published.id, session.id)
    learners, bits = [session.with_role("active").name], several_parties.BOUND_BITS + several_parties.EXPONENT_BITS
    entry = account.entry("columns", session.me.name, learners, "norm bound", request_id, bits, read)
    with party.store.transaction() as transaction:
        account.enter_below(transaction, entry, several_parties.max_bits(n_rows), refuse)


async def send_if_wanted(
    session: Session[WalrJob], prepared: PreparedRows, content: BlockContent, salt: bytes, *, count: Callable[[], None]
) -> None:
    """Send this party's rows, unless the server has a fit of them already.

    Args:
        count: function that records what a new fit reveals; a fit that the server sends again reveals nothing new.
    """
    server = session.with_role("measurement").name
    session.report("wait for the request", waiting_for=server)
    wanted: BlockWanted = await hear(session, server, BlockWanted)
    if wanted.send_rows:
        await asyncio.to_thread(count)
        rows, bound = prepared.train, prepared.grid.norm_bound
        session.report("send rows", 0, len(rows.ids), "rows")
        await several_parties.run_passive(rows, bound, content, salt, server, session.channel)


# --- both ----------------------------------------------------------------------------------------------


async def receive_fit(session: Session[WalrJob], width: int) -> BlockFit:
    """Do step 8: receive the weights of the party's own columns.

    Raises:
        MalformedMessage: their number is wrong, or no fit gives such weights.
    """
    server = session.with_role("measurement").name
    session.report("wait for the fit", waiting_for=server)
    fit: BlockFit = await hear(session, server, BlockFit)

    def require(condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=server, field=name, reason=reason, step="BlockFit")

    require(fit.weights.shape == (width,), "weights", "not one for each column")
    require(bool((np.abs(fit.weights) <= several_parties.LARGEST_WEIGHT).all()), "weights", "are out of range")
    require(1 <= fit.rows_kept <= fixed_point.MAX_ROWS, "rows_kept", "is out of range")
    require(bool(np.isfinite([fit.l2, fit.gradient_norm]).all()) and fit.l2 >= 0, "l2", "is not finite")
    require(fit.feasible in (-1, 0, 1) and fit.converged in (0, 1), "converged", "is out of range")
    left_out = fit.left_out.tolist()
    require(left_out == sorted(set(left_out) & set(range(width))), "left_out", "are not places of columns")
    require(not fit.weights[left_out].any(), "weights", "of a column that was left out is not 0")
    return fit


def find_left_out(prepared: PreparedRows, fit: BlockFit) -> tuple[str, ...]:
    """Return the names of the party's own columns that the server left out, and log them for its operator."""
    names = (*prepared.standardiser.columns, "the constant")
    left_out = tuple(names[place] for place in fit.left_out if place not in _without_values(prepared.standardiser))
    if left_out:
        log.warning(
            f"columns are not in the model: fewer than {lone_rows.LEAST_EFFECTIVE_ROWS} common rows stand out in each, "
            "or each follows from the others",
            columns=left_out,
        )
    return left_out


def _without_values(standardiser: Standardiser) -> set[int]:
    """Return the places of columns that are constant in the party's own rows."""
    return set(range(len(standardiser.columns))) - set(standardiser.kept)


def part_of(session: Session[WalrJob], prepared: PreparedRows, fit: BlockFit, *, intercept: bool) -> VerticalModelPart:
    """Return the part of the model by which joint predictions score this party's columns."""
    columns = fit.weights[:-1] if intercept else fit.weights
    standardiser = prepared.standardiser
    own = float(fit.weights[-1]) if intercept else None
    return walr_part(
        session.me.name, chain_of(session), standardiser, columns[list(standardiser.kept)], own, prepared.grid
    )


def walr_part(
    party: str,
    holders: tuple[str, ...],
    standardiser: Standardiser,
    weights: Floats,
    intercept: float | None,
    grid: Grid,
) -> VerticalModelPart:
    """Return a party's part of a model.

    Args:
        holders: the active party, then the passive parties by name.
        grid: grid with the bound of the party's own rows.
    """
    return VerticalModelPart(
        party=party,
        role="active" if party == holders[0] else "passive",
        model="logistic",
        data_parties=holders,
        standardiser=standardiser,
        weights=weights,
        intercept=intercept,
        row_bound=max(1, int(np.ldexp(grid.real_bound, FEATURE_BITS))),
    )
