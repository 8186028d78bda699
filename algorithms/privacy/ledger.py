"""The budget's book: one hash-chained ledger for each server, over all its populations.

An entry's hash covers every field and the hash before it, so one hash fixes all entries before it. A receipt carries
such a hash to the party that asked. A server that was restored from a backup cannot show the entry, and its lost
charges can be charged again from the receipts.

Nothing here stores or signs anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, astuple, dataclass, fields, replace
from typing import Literal, get_args

from blindfit.algorithms.errors import BudgetExhausted, DataError, LedgerBehind
from blindfit.algorithms.privacy.accountant import composed_epsilon, fits, spent_epsilon
from blindfit.algorithms.privacy.charges import MOST_POSITION, Charges, CountedCharge
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import check_delta, check_epsilon

Kind = Literal["release", "recovered", "recovered-sum"]
"""A recovered entry charges again what a receipt proves and a lost ledger no longer shows: one release, or many."""

NO_PREVIOUS_HASH = "0" * 64
NEAR_LANDMARKS = 32


@dataclass(frozen=True)
class LedgerEntry:
    """One charge.

    `position` counts from 1 over all populations; `event` is canonical; the hashes are lower-case hex.
    """

    position: int
    population: str
    dataset: str
    snapshot: str
    requester: str
    request_id: str
    content_sha256: str
    kind: Kind
    event: str
    epsilon: float
    delta: float
    unit: str
    answer_sha256: str
    time: str
    previous_hash: str
    hash: str


# --- the chain ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Charge:
    """One charge: a question about a snapshot, and the population that pays.

    Args:
        snapshot: random id of the snapshot that was read.
        request_id: id of the question: the same for the same mechanism, parameters, public randomness and purpose.
        content_sha256: hash of the whole question; for a recovered charge, the hash of the entry whose receipt proved
            it.
        epsilon, delta: numbers as they are displayed; the event is what composes.
    """

    population: str
    event: ReleaseEvent
    dataset: str = ""
    snapshot: str = ""
    requester: str = ""
    request_id: str = ""
    content_sha256: str = ""
    epsilon: float = 0.0
    delta: float = 0.0
    unit: str = ""


def append(
    previous: LedgerEntry | None, charge: Charge, *, time: str, answer_sha256: str = "", kind: Kind = "release"
) -> LedgerEntry:
    """Return the entry that follows `previous`, which is None for the first of all."""
    entry = LedgerEntry(
        position=previous.position + 1 if previous else 1,
        population=charge.population,
        dataset=charge.dataset,
        snapshot=charge.snapshot,
        requester=charge.requester,
        request_id=charge.request_id,
        content_sha256=charge.content_sha256,
        kind=kind,
        event=charge.event.canonical(),
        epsilon=float(charge.epsilon),
        delta=float(charge.delta),
        unit=charge.unit,
        answer_sha256=answer_sha256,
        time=time,
        previous_hash=previous.hash if previous else NO_PREVIOUS_HASH,
        hash="",
    )
    return replace(entry, hash=entry_hash(entry))


def entry_hash(entry: LedgerEntry) -> str:
    """Return the correct hash of an entry: sha256 over every other field."""
    return hashlib.sha256(_frame("blindfit ledger entry v1", *astuple(entry)[:-1])).hexdigest()


def verify_chain(entries: Iterable[LedgerEntry]) -> None:
    """Check a whole ledger from its first entry on.

    Raises:
        DataError: an entry is wrong; the error names the first such position.
    """
    previous_hash = NO_PREVIOUS_HASH
    for position, entry in enumerate(entries, start=1):
        if entry.position != position:
            raise DataError(f"ledger entry {position} is wrong: it calls itself entry {entry.position}")
        if entry.previous_hash != previous_hash:
            raise DataError(f"ledger entry {position} is wrong: it does not follow from the entry before it")
        if entry.hash != entry_hash(entry):
            raise DataError(f"ledger entry {position} is wrong: its hash is not that of its content")
        previous_hash = entry.hash


def _frame(*parts: str | float) -> bytes:
    """Return the parts one after another, each after its length, so that no two lists of parts share an encoding."""
    texts = (part.hex() if isinstance(part, float) else str(part) for part in parts)
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(len(part).to_bytes(8, "big") + part for part in encoded)


# --- the budget ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """The most that all releases about one population may spend together."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)


def spent(entries_of_population: Iterable[LedgerEntry], delta: float) -> float:
    """Return the epsilon at this delta that one population's entries have spent."""
    return spent_epsilon((ReleaseEvent.from_canonical(entry.event) for entry in entries_of_population), delta)


def check_budget(events: Iterable[ReleaseEvent], new_event: ReleaseEvent, budget: Budget, population: str) -> None:
    """Refuse a release that would carry the population past its budget.

    Raises:
        BudgetExhausted: the release does not fit; the error has the epsilon spent, allowed and requested.
        UnsupportedEvent: the new event cannot be composed with the others.
    """
    events = list(events)
    if not fits(events, new_event, budget.epsilon, budget.delta):
        raise BudgetExhausted(
            population=population,
            spent=spent_epsilon(events, budget.delta),
            budget=budget.epsilon,
            requested=composed_epsilon([new_event], budget.delta),
        )


# --- the auditor's export -----------------------------------------------------------------------

_JSON_TYPES: dict[str, type] = {
    field.name: {"int": int, "float": float}.get(str(field.type), str) for field in fields(LedgerEntry)
}


def to_json_line(entry: LedgerEntry) -> str:
    """Return the entry as one line of JSON, without a line end."""
    return json.dumps(asdict(entry), allow_nan=False, separators=(",", ":"))


def from_json_line(line: str, line_number: int) -> LedgerEntry:
    """Return the entry of a line that `to_json_line` wrote; `verify_chain`, not this function, checks its hash.

    Raises:
        DataError: the line is wrong; the error names the line and the fault.
    """
    where = f"line {line_number} of the ledger"
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON") from error
    if not isinstance(content, dict) or content.keys() != _JSON_TYPES.keys():
        raise DataError(f"{where} must have exactly the fields {', '.join(_JSON_TYPES)}")
    for name, expected in _JSON_TYPES.items():
        if type(content[name]) is not expected:
            raise DataError(f"{where}: {name} must be of type {expected.__name__}")
    if not 1 <= content["position"] <= MOST_POSITION:
        raise DataError(f"{where}: position must lie between 1 and {MOST_POSITION}")
    if content["kind"] not in get_args(Kind):
        raise DataError(f"{where}: kind must be one of {', '.join(get_args(Kind))}")
    entry = LedgerEntry(**content)
    if not _is_line_of(entry, line):
        # A repeated key or a number such as 1e999 reads differently in different readers.
        raise DataError(f"{where} is not written as Blindfit writes it")
    return entry


def _is_line_of(entry: LedgerEntry, line: str) -> bool:
    try:
        return to_json_line(entry) == line.removesuffix("\n")
    except ValueError:  # not a finite number
        return False


# --- receipts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Receipt:
    """A proof of the ledger's state when an answer was given; the party that asked keeps it.

    Args:
        server: party that gave the answer.
        population: population that the answer is about.
        position: the ledger's entry that charged the answer.
        entry_hash: hash of this entry, which fixes every entry before it.
        charges: charges of this population up to that entry; enough to charge them again if the ledger is lost.
        landmarks: (position, hash) of earlier entries, newest first. They show up to which entry a ledger that no
            longer has `entry_hash` agrees with this one.
    """

    server: str
    population: str
    position: int
    entry_hash: str
    charges: Charges
    landmarks: tuple[tuple[int, str], ...] = ()

    def statement(self) -> bytes:
        """Return canonical JSON, which the server signs and which travels."""
        content = {
            "server": self.server,
            "population": self.population,
            "position": self.position,
            "entry_hash": self.entry_hash,
            "charges": [list(charge) for charge in self.charges.counted],
            "sums": [list(of_law) for of_law in self.charges.sums],
            "landmarks": [list(landmark) for landmark in self.landmarks],
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def from_statement(cls, statement: bytes) -> Receipt:
        """Read a receipt.

        Raises:
            DataError: these bytes are not an output of `statement`.
        """
        try:
            content = json.loads(statement)
            counted = tuple((str(event), int(count)) for event, count in content.pop("charges"))
            sums = tuple((law, str(neighbours), int(units)) for law, neighbours, units in content.pop("sums"))
            landmarks = tuple((int(position), str(at)) for position, at in content.pop("landmarks"))
            receipt = cls(**content, charges=Charges(counted, sums), landmarks=landmarks)
            whole = receipt.statement() == statement
        except (DataError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            whole = False
        if not whole or type(receipt.position) is not int or not receipt._is_possible():
            raise DataError("not a receipt")
        return receipt

    def _is_possible(self) -> bool:
        """Return whether a ledger can give this receipt: at most one charge an entry, no landmark after it."""
        positions = [position for position, _ in self.landmarks]
        in_order = positions == sorted({p for p in positions if 1 <= p < self.position}, reverse=True)
        charged = sum(count for _, count in self.charges.counted) + len(self.charges.sums)
        return 1 <= self.position <= MOST_POSITION and in_order and charged <= self.position

    def is_of_one_ledger_with(self, other: Receipt) -> bool:
        """Return True if both prove the same entry, or one has the other's entry among its landmarks."""
        mine, its = (self.position, self.entry_hash), (other.position, other.entry_hash)
        return mine == its or mine in other.landmarks or its in self.landmarks

    def covers(self, other: Receipt) -> bool:
        """Return True if this receipt includes all charges that the other receipt proves."""
        return self.charges.covers(other.charges)


def receipt_for(
    server: str, entry: LedgerEntry, charges: Charges, entry_at: Callable[[int], LedgerEntry | None]
) -> Receipt:
    """Return the receipt of an entry; `charges` are its population's, up to this entry and with it."""
    earlier = (entry_at(position) for position in _landmark_positions(entry.position))
    landmarks = tuple((e.position, e.hash) for e in earlier if e is not None)
    return Receipt(server, entry.population, entry.position, entry.hash, charges, landmarks)


def _landmark_positions(position: int) -> list[int]:
    """Return each of the last NEAR_LANDMARKS, then ever fewer, so that a receipt of a long ledger stays small."""
    near = range(1, NEAR_LANDMARKS + 1)
    far = (2**power for power in range(NEAR_LANDMARKS.bit_length(), position.bit_length()))
    return [position - distance for distance in (*near, *far) if position > distance]


def common_position(receipt: Receipt, entry_at: Callable[[int], LedgerEntry | None]) -> int:
    """Return the last position up to which our ledger is known to agree with the receipt's ledger; 0 for none."""
    for position, at in ((receipt.position, receipt.entry_hash), *receipt.landmarks):
        entry = entry_at(position)
        if entry is not None and entry.hash == at:
            return position
    return 0


def check_receipt(receipt: Receipt, entry_at: Callable[[int], LedgerEntry | None], *, last_position: int) -> None:
    """Check that our ledger still has the entry that a receipt proves.

    Args:
        receipt: a receipt whose signature is known to be ours.
        entry_at: function from a position to the ledger's entry, or to None if there is no such entry.
        last_position: position of the ledger's last entry; 0 for an empty ledger.

    Raises:
        LedgerBehind: the ledger ends before that entry, or has another in its place.
    """
    entry = entry_at(receipt.position)
    if entry is None or entry.hash != receipt.entry_hash:
        raise LedgerBehind(
            population=receipt.population, ledger_position=last_position, receipt_position=receipt.position
        )


def missing_charges(
    receipt: Receipt, entries: Iterable[LedgerEntry], common: int, noticed: Iterable[Receipt]
) -> Iterator[tuple[CountedCharge, int]]:
    """Yield the charges that a receipt proves and the ledger does not show, each with its number.

    A release after the two ledgers parted is not in common; otherwise it would stand in for an equal release that was
    lost. A charge recovered from receipts of the same lost ledger is in common. A backup may have been restored twice,
    and two lost ledgers' charges after it are two releases, even if they are equal.

    Args:
        common: the last position that this ledger has in common with the ledger that gave the receipt.
        noticed: receipts from which charges were recovered.
    """
    ours = [entry for entry in entries if entry.population == receipt.population]
    beginning = [charge_of(entry) for entry in ours if entry.position <= common]
    proved_by = {known.entry_hash for known in noticed if known.is_of_one_ledger_with(receipt)}
    later = [entry for entry in ours if entry.position > common and entry.kind != "release"]
    recovered = [charge_of(entry) for entry in later if entry.content_sha256 in proved_by]
    return receipt.charges.without(beginning, recovered)


def kind_of_recovery(charge: CountedCharge) -> Kind:
    return "recovered-sum" if charge.is_sum else "recovered"


def charge_of(entry: LedgerEntry) -> CountedCharge:
    return CountedCharge(entry.event, is_sum=entry.kind == "recovered-sum")
