"""Release of numeric labels row by row: each label is randomised by itself under label DP, once and for ever.

Source: local randomisation of only the label (Chaudhuri and Hsu 2011; Ghazi et al. 2021), with the mechanisms of
    algorithms/privacy/label_mechanisms. A repeated request gives the same noisy label, the permanent response of RAPPOR
    (Erlingsson, Pihur, Korolova 2014): without it the noise would average out.
Model: the measurement server is trusted with the labels and sees the active party's ids. Active parties may deviate and
    collude. They learn no more about a label than the epsilons of all releases together allow, for any rows that they
    request, in any order and any number of times.

    step  who       does                                                                 sends
    1     active    names mechanism and release, hashes its ids                          LabelsOpen.
    2     server    checks ranges, policy, receipt; budget, unless the release exists    LabelsOpened.
    3     active    its ids, in batches                                                  LabelIds ..., LabelIdsEnd.
    4     server    looks every id up; refuses, after the last one, if any is unknown    nothing.
                    or repeated, or if too few rows count.
    5     server    unless the release exists: charges; then fits the mechanism to the   FittedRelease.
                    dataset's labels, randomises all of them, and stores them
    6     server    the stored labels, in the order of the ids                           NoisyLabels.
    7     active    checks every number, makes the mechanism from its parameters         nothing.

A release is (dataset, its version, settings, rows of a person, name): one fit, one draw of each label, one charge.
Labels of different rows compose in parallel. If the unit is a person, m rows of each are randomised, chosen by a secret
hash of their ids. They compose one after the other, and are charged so. All other rows are withheld for good.

Departures: labels and noise are integers of a public grid; the estimate of a prior is a part of the release and is
    charged with it. The charge comes before any estimate and any fit to one, so their durations, and whether they fail,
    are paid for. If the server ends after the charge, the charge stays and the release is never made.
Learns: the server learns the ids. Active parties learn the noisy labels, the fitted mechanism with all its parameters,
    and which of their rows are withheld (this depends on ids and persons, not on labels).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import BlindfitError, MalformedMessage, RangeError
from blindfit.algorithms.messages import Channel, parameters_digest
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.label_mechanisms import (
    FittedMechanism,
    LabelMechanism,
    MakeMechanism,
    MechanismSettings,
    fit,
    from_parameters,
    make_mechanism,
)
from blindfit.algorithms.privacy.label_mechanisms.intervals import IntervalMechanism
from blindfit.algorithms.protocols.handshake import PROTOCOL_VERSION
from blindfit.algorithms.protocols.label_dp.messages import (
    FittedRelease,
    LabelIds,
    LabelIdsEnd,
    LabelsOpen,
    LabelsOpened,
    NoisyLabels,
)
from blindfit.algorithms.protocols.label_dp.request import release_parameters, step_2_check, step_2_cost, step_2_event
from blindfit.algorithms.protocols.table import ACTIVE, CHUNKS, MEASUREMENT, ONCE, Arrow, Table
from blindfit.algorithms.protocols.walr import ConsumerRows, ContentDigest, WeightRows
from blindfit.algorithms.randomness import UniformInt

LABELS_A_MESSAGE = 2**16  # of at most ten bytes each
MAX_IDS_A_MESSAGE = 2**20
MOST_OUTPUT_STEPS = 2**53  # of a mechanism without bounds; larger integers have no exact real on the grid
WITHHELD = int(np.iinfo(np.int64).min)
"""The stored value of a row whose label is not released."""

Steps = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]
R = TypeVar("R")


# --- messages ------------------------------------------------------------------------------------


TABLE = Table(
    "release_labels",
    Arrow("1", ACTIVE, MEASUREMENT, LabelsOpen, ONCE, "the request, and the hash of the ids"),
    Arrow("2", MEASUREMENT, ACTIVE, LabelsOpened, ONCE, "whether the release was made before"),
    Arrow("3", ACTIVE, MEASUREMENT, LabelIds, CHUNKS, "ids"),
    Arrow("3", ACTIVE, MEASUREMENT, LabelIdsEnd, ONCE, "the end of the ids"),
    Arrow("5", MEASUREMENT, ACTIVE, FittedRelease, ONCE, "the mechanism, its cost, a receipt"),
    Arrow("6", MEASUREMENT, ACTIVE, NoisyLabels, CHUNKS, "noisy labels, and the rows without one"),
)


# --- steps of the active party ---------------------------------------------------------------------


def step_1_open(
    ids: Sequence[str],
    settings: MechanismSettings,
    *,
    dataset: str,
    snapshot: str,
    release: str = "first",
    max_rows_per_person: int = 0,
    receipt: tuple[bytes, bytes] = (b"", b""),
    session: str = "",
) -> LabelsOpen:
    """Return the request; its id follows from the content."""
    content = ContentDigest()
    for batch in _batches(ids):
        content.update(batch)
    digest = content.digest()
    named = release_parameters(dataset, snapshot, max_rows_per_person, release, settings)
    return LabelsOpen(
        protocol_version=PROTOCOL_VERSION,
        request_id=parameters_digest({**named, "content": digest.hex()}).hex(),
        dataset=dataset,
        snapshot=snapshot,
        n_rows=len(ids),
        max_rows_per_person=max_rows_per_person,
        release=release,
        settings=settings,
        content_sha256=digest,
        receipt=receipt[0],
        receipt_signature=receipt[1],
        session=session,
    )


def _batches(ids: Sequence[str]) -> Iterator[WeightRows]:
    """Return ids as rows without weights, hashed and cut into messages like those of an aggregate."""
    return ConsumerRows(tuple(ids), np.zeros((len(ids), 0), np.int32)).batches()


def step_7_mechanism(release: FittedRelease, request: LabelsOpen, *, server: str) -> LabelMechanism:
    """Return the mechanism that drew the labels; check that it was requested and costs no more."""

    def require(condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=server, field=name, reason=reason, step="FittedRelease")

    settings, slack = request.settings, 1 + 1e-9
    try:
        mechanism = from_parameters(json.loads(release.parameters))
    except (BlindfitError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise MalformedMessage(
            culprit=server, field="parameters", reason="are no mechanism's", step="FittedRelease"
        ) from None
    require(mechanism.name == settings.name, "parameters", "are another mechanism's")
    require(mechanism.grid == settings.grid, "parameters", "are on another grid")
    require(release.epsilon_prior >= 0, "epsilon_prior", "is negative")
    require(mechanism.epsilon + release.epsilon_prior <= settings.epsilon * slack, "parameters", "cost more than asked")
    require(mechanism.delta <= settings.delta * slack, "parameters", "cost more than asked")
    require(0 < release.epsilon <= request.rows_per_unit * settings.epsilon * slack, "epsilon", "is out of range")
    require(0 <= release.delta <= settings.delta * slack, "delta", "is out of range")
    outside = release.share_outside
    require(outside is None or 0 <= outside <= 1, "share_outside", "is out of range")
    return mechanism


def step_7_check_labels(piece: NoisyLabels, rows_before: int, support: Support, n_rows: int, *, server: str) -> Bits:
    """Return which of the piece's rows are withheld.

    Raises:
        MalformedMessage: a label that the mechanism never gives, or a wrong number of labels.
    """

    def require(condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=server, field=name, reason=reason, step="NoisyLabels")

    n = len(piece.steps)
    require(0 < n <= n_rows - rows_before, "labels", "are more or fewer than the rows")
    require(len(piece.withheld) in (0, -(-n // 8)), "withheld", "is not one bit a row")
    withheld = np.zeros(n, np.bool_)
    if piece.withheld:
        withheld = np.unpackbits(np.frombuffer(piece.withheld, np.uint8), count=n).astype(np.bool_)
    require(support.holds(piece.steps[~withheld]), "labels", "hold a number that the mechanism never gives")
    require(not piece.steps[withheld].any(), "labels", "hold a number for a row that is withheld")
    return withheld


@dataclass(frozen=True)
class Support:
    """The outputs that a mechanism can give. With epsilon-DP they are the same at every label."""

    outputs: Steps | None  # None: all integers

    @classmethod
    def of(cls, mechanism: LabelMechanism) -> Support:
        law = mechanism.law(mechanism.grid.lo)
        if law.weights is None or law.total is None:
            return cls(None)
        return cls(law.outputs[law.weights > 0])

    def holds(self, steps: Steps) -> bool:
        if self.outputs is None:
            return bool(((steps >= -MOST_OUTPUT_STEPS) & (steps <= MOST_OUTPUT_STEPS)).all())
        return bool(np.isin(steps, self.outputs).all())


# --- steps of the measurement server ---------------------------------------------------------------


@dataclass(repr=False)
class RollCall:
    """The rows of a request, counted and hashed as they come."""

    request: LabelsOpen
    content: ContentDigest = field(default_factory=ContentDigest)
    rows: int = 0

    def add(self, batch: LabelIds, look_up: Callable[[Sequence[str]], None], *, consumer: str) -> None:
        """Do step 4 for one batch."""
        n = len(batch.ids)
        if not 0 < n <= MAX_IDS_A_MESSAGE:
            raise _error(consumer, "ids", f"not 1 to {MAX_IDS_A_MESSAGE} in a batch", "LabelIds")
        if self.rows + n > self.request.n_rows:
            raise _error(consumer, "ids", "more rows than n_rows", "LabelIds")
        self.content.update(WeightRows(batch.ids, np.zeros((n, 0), np.int32)))
        look_up(batch.ids)
        self.rows += n

    def finish(self, *, consumer: str) -> None:
        if self.rows != self.request.n_rows:
            raise _error(consumer, "n_rows", "is not the number of rows that came", "LabelIdsEnd")
        if self.content.digest() != self.request.content_sha256:
            raise _error(consumer, "content_sha256", "is not the hash of the ids", "LabelIdsEnd")


def _error(culprit: str, name: str, reason: str, step: str) -> MalformedMessage:
    return MalformedMessage(culprit=culprit, field=name, reason=reason, step=step)


def step_5_fit(
    settings: MechanismSettings, labels: Floats, uniform: UniformInt, make: MakeMechanism = make_mechanism
) -> FittedMechanism:
    """Fit the mechanism; raise RangeError if these settings make no mechanism."""
    fitted = fit(settings, labels, uniform, make)
    if fitted.epsilon > settings.epsilon * (1 + 1e-9) or fitted.delta > settings.delta * (1 + 1e-9):
        raise RangeError(f"{settings.name} would cost epsilon {fitted.epsilon!r}, more than {settings.epsilon!r}")
    return fitted


def step_5_labels_to_fit(settings: MechanismSettings, blocks: Iterable[tuple[Floats, Bits]]) -> Floats:
    """Return the labels on which the fit depends: all that may be released, or none without a prior's estimate."""
    if not settings.estimates_prior:
        return np.zeros(0)
    return np.concatenate([labels[eligible] for labels, eligible in blocks])


def step_5_randomise(
    mechanism: LabelMechanism, blocks: Iterable[tuple[Floats, Bits]], uniform: UniformInt
) -> Iterator[Steps]:
    """Yield every label that may be released, randomised; the others are never even drawn."""
    for labels, eligible in blocks:
        steps = np.full(len(labels), WITHHELD, np.int64)
        steps[eligible] = mechanism.draw(mechanism.grid.steps(labels[eligible]), uniform)
        yield steps


def step_5_release(
    fitted: FittedMechanism,
    event: ReleaseEvent,
    cost: tuple[float, float],
    *,
    unit: str,
    receipt: tuple[bytes, bytes],
) -> FittedRelease:
    """Return the public facts about a fit."""
    return FittedRelease(
        parameters=json.dumps(fitted.mechanism.parameters(), allow_nan=False, sort_keys=True),
        epsilon=cost[0],
        delta=cost[1],
        epsilon_prior=fitted.epsilon_prior,
        prior_mechanism=fitted.prior_mechanism or "",
        share_outside=share_outside(fitted),
        event=event.canonical(),
        unit=unit,
        neighbours=event.neighbours,
        receipt=receipt[0],
        receipt_signature=receipt[1],
    )


def share_outside(fitted: FittedMechanism) -> float | None:
    """Return a share of the labels, not a number, because the number of the dataset's rows is not public."""
    mechanism, prior = fitted.mechanism, fitted.prior
    if prior is None or not isinstance(mechanism, IntervalMechanism):
        return None
    return min(1.0, max(0.0, mechanism.share_outside(prior)))


def step_6_pieces(remembered: Steps) -> Iterator[NoisyLabels]:
    """Yield the stored labels in messages."""
    for start in range(0, len(remembered), LABELS_A_MESSAGE):
        steps = remembered[start : start + LABELS_A_MESSAGE]
        withheld = steps == WITHHELD
        bits = np.packbits(withheld).tobytes() if withheld.any() else b""
        yield NoisyLabels(np.where(withheld, 0, steps), bits)


# --- roles -----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Received:
    """Result at the active party; `steps` are on the mechanism's grid, 0 where withheld."""

    release: FittedRelease
    mechanism: LabelMechanism
    steps: Steps
    withheld: Bits


async def run_consumer(
    ids: Sequence[str],
    request: LabelsOpen,
    server: str,
    channel: Channel,
    on_rows: Callable[[int], None] = lambda _: None,
) -> Received:
    await channel.send(server, request)
    await channel.receive(server, LabelsOpened)
    for batch in _batches(ids):
        await channel.send(server, LabelIds(batch.ids))
        on_rows(len(batch.ids))
    await channel.send(server, LabelIdsEnd())
    release = await channel.receive(server, FittedRelease)
    mechanism = step_7_mechanism(release, request, server=server)
    support, steps, withheld = Support.of(mechanism), np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
    start = 0
    while start < len(ids):
        piece = await channel.receive(server, NoisyLabels)
        bits = step_7_check_labels(piece, start, support, len(ids), server=server)
        stop = start + len(bits)
        steps[start:stop], withheld[start:stop] = piece.steps, bits
        start = stop
    return Received(release, mechanism, steps, withheld)


class Desk(Protocol):
    """Operations of the measurement server: policy, ledger, labels, and a place for the ids meanwhile."""

    def admit(self, request: LabelsOpen) -> bool:
        """Raise if the request is refused; return whether its release was made before."""

    def look_up(self, ids: Sequence[str]) -> None:
        """Look ids up, with the same work for all ids, and keep them for step 6."""

    def release(self, roll: RollCall) -> FittedRelease:
        """Raise if an id is refused; return the stored release, or charge, draw and store a new one."""

    def labels(self) -> Iterator[Steps]:
        """Return the remembered labels in the order of the ids that came."""

    def in_background(self, work: Callable[[], R]) -> Awaitable[R]: ...


async def run_measurement_server(consumer: str, channel: Channel, desk: Desk) -> FittedRelease:
    request = await channel.receive(consumer, LabelsOpen)
    await desk.in_background(partial(step_2_check, request, consumer=consumer))
    made_before = await desk.in_background(partial(desk.admit, request))
    await channel.send(consumer, LabelsOpened(int(made_before)))
    roll = await receive_ids(request, consumer, channel, desk)
    release = await desk.in_background(partial(desk.release, roll))
    await channel.send(consumer, release)
    blocks = desk.labels()
    while (block := await desk.in_background(partial(next, blocks, None))) is not None:
        for piece in step_6_pieces(block):
            await channel.send(consumer, piece)
    return release


async def receive_ids(request: LabelsOpen, consumer: str, channel: Channel, desk: Desk) -> RollCall:
    roll = RollCall(request)
    while roll.rows < request.n_rows:
        batch = await channel.receive(consumer, LabelIds)
        await desk.in_background(partial(roll.add, batch, desk.look_up, consumer=consumer))
    await channel.receive(consumer, LabelIdsEnd)
    roll.finish(consumer=consumer)
    return roll


# --- the specification: both seats in one process, no channel ---------------------------------------


def run_locally(
    ids: Sequence[str], request: LabelsOpen, table: Mapping[str, float], uniform: UniformInt
) -> tuple[FittedRelease, Steps]:
    """Run both roles with unit = row and no ledger; the table's labels are randomised in its order, for any rows."""
    step_2_check(request, consumer="consumer")
    roll = RollCall(request)
    for batch in _batches(ids):
        roll.add(LabelIds(batch.ids), lambda _: None, consumer="consumer")
    roll.finish(consumer="consumer")
    labels = np.array(list(table.values()))
    blocks = [(labels, np.ones(len(labels), np.bool_))]
    fitted = step_5_fit(request.settings, step_5_labels_to_fit(request.settings, blocks), uniform)
    (drawn,) = step_5_randomise(fitted.mechanism, blocks, uniform)
    remembered = dict(zip(table, drawn.tolist(), strict=True))
    event = step_2_event(request, neighbours="row")
    cost = step_2_cost(request, event)
    release = step_5_release(fitted, event, cost, unit="row", receipt=(b"", b""))
    return release, np.array([remembered[name] for name in ids], np.int64)
