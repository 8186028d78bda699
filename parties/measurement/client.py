"""The measurement server's client for notebooks and programs: plain arrays in, plain results out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from operator import index

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blindfit.algorithms import fixed_point
from blindfit.algorithms.columns.spelling import one_spelling
from blindfit.algorithms.errors import DataError, DuplicateId, MalformedMessage, RangeError
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.label_mechanisms import MechanismSettings
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import ConsumerRows, ReleaseSettings, statement
from blindfit.algorithms.protocols.walr.grid import Grid, auto_grid
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.parties.identity.identity import Identity
from blindfit.parties.measurement.calls import (
    MeasurementCalls,
    ReleasedLabels,
    check_description,
    check_receipt_key,
    check_rows_scaled,
)
from blindfit.parties.store.receipts import check_given
from blindfit.protos import measurement_pb2 as pb

Receipt = tuple[bytes, bytes]
NO_RECEIPT: Receipt = (b"", b"")
NOT_NUMBERS = (str, bytes, complex, np.datetime64, np.timedelta64)


@dataclass(frozen=True, slots=True)
class DatasetDescription:
    """Declaration of one dataset by its measurement server.

    Attributes:
        dataset: name of the dataset.
        snapshot: id of the newest snapshot, random.
        population: name of the people; datasets of one population draw on one budget.
        unit: "row" or "person": what one change of a label is.
        max_rows_per_person: the most rows of one person that may count; 0 if the unit is a row.
        unknown_rows: "refuse" or "zero": the fate of ids that the table does not have.
        min_rows: the fewest rows of a request.
        max_epsilon: the largest epsilon of one request.
        mechanisms: names of the mechanisms that the dataset offers.
        label_kind: "binary" (`aggregate`), "number" (`release_labels`), or "share" (only within a job of two servers).
        label_range: declared range of the labels; None unless they are numbers.
        receipt_key: Ed25519 public key of the server's receipts, 32 bytes.

    Example:
        >>> (description.label_kind, description.unit, description.min_rows)  # of `await client.describe("visits")`
        ('binary', 'row', 100)
    """

    dataset: str
    snapshot: str
    population: str
    unit: str
    max_rows_per_person: int
    unknown_rows: str
    min_rows: int
    max_epsilon: float
    mechanisms: tuple[str, ...]
    label_kind: str
    label_range: tuple[float, float] | None
    receipt_key: bytes


@dataclass(frozen=True, slots=True)
class DatasetBudget:
    """The budget of a dataset's population, and what of it is spent.

    Attributes:
        population: name of the people who share the budget.
        epsilon: the most epsilon that may be spent, at `delta`.
        delta: delta of the budget.
        spent_epsilon: epsilon of all releases so far, composed, at `delta`.
        releases: number of these releases.

    Example:
        >>> budget.epsilon - budget.spent_epsilon > 0  # of `await client.budget("visits")`
        True
    """

    population: str
    epsilon: float
    delta: float
    spent_epsilon: float
    releases: int


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NoisyAggregate:
    """A noisy sum of label x row, with the rows as the server summed them.

    Attributes:
        sums: float64 array of shape (columns,): the sum over all counted rows of label x row, plus the noise.
        noise_std: standard deviation of the noise of each sum, in the same units.
        rows: float64 array of shape (rows, columns): the features after clipping and rounding. Fit to these.
        kept: bool array of shape (rows,): True where the row counted. Divide sums by `kept.sum()` for means.
        rows_clipped: number of rows that were longer than the norm bound and were made shorter.
        norm_bound: L2 norm bound of a row, rounded down to the grid.
        epsilon: epsilon of the release.
        delta: delta of the release.
        unit: "row" or "person": what one change of a label is.
        neighbours: relation between neighbouring datasets, in words.
        request_id: name of the request. The same content has the same name, and is charged once.
        receipt: signed statement and signature of the receipt that proves most: that of this charge, or the one that
            was passed. Keep it, and pass it to the next call.
        bytes_sent: bytes of all messages that this party sent.
        messages_sent: number of these messages.

    Example:
        >>> mean = aggregate.sums / aggregate.kept.sum()  # of `await client.aggregate("visits", ids, features, ...)`
        >>> mean.shape == (aggregate.rows.shape[1],)
        True
    """

    sums: npt.NDArray[np.float64]
    noise_std: float
    rows: npt.NDArray[np.float64]
    kept: npt.NDArray[np.bool_]
    rows_clipped: int
    norm_bound: float
    epsilon: float
    delta: float
    unit: str
    neighbours: str
    request_id: str
    receipt: Receipt
    bytes_sent: int
    messages_sent: int

    def __repr__(self) -> str:
        columns = self.rows.shape[1]
        return f"<noisy sum of {columns} columns over {int(self.kept.sum())} rows, epsilon {self.epsilon:g}>"


class MeasurementClient:
    """A client of one measurement server, over mutual TLS. Its methods are coroutines: `await` them.

    Args:
        own: identity of the active party, from `load_identity`.
        server: name in the server's certificate.
        address: "host:port".
        step_timeout_s: the longest time that the server may take for one step, in seconds.
        reconnect_s: time in seconds after which a call to an unreachable server fails. After a cut, a request begins
            again under the same id, which is charged once.

    Example:
        >>> identity = blindfit.load_identity("shop/certificate.pem", "shop/key.pem", "shop/authority.pem")
        >>> client = blindfit.MeasurementClient(identity, "meter", address)
        >>> client
        <client of meter>
    """

    def __init__(
        self,
        own: Identity,
        server: str,
        address: str,
        *,
        step_timeout_s: float = 120.0,
        reconnect_s: float = 30.0,
    ) -> None:
        self._own, self._server = own, server
        self._calls = MeasurementCalls(own, server, address, step_timeout_s=step_timeout_s, reconnect_s=reconnect_s)

    def __repr__(self) -> str:
        return f"<client of {self._server}>"

    async def describe(self, dataset: str) -> DatasetDescription:
        """Return what the server declares of a dataset.

        Args:
            dataset: name of the dataset at the server.

        Returns:
            The description; it has no count of rows and nothing of any label.

        Raises:
            PolicyRefused: the server does not offer the dataset to this party.
            MalformedMessage: the description is not valid.
            TransportError: names the server and the step.

        Example:
            >>> description = wait_for(client.describe("visits"))  # in a notebook: await client.describe("visits")
            >>> description.unknown_rows
            'refuse'
        """
        found = await self._describe(dataset)
        return DatasetDescription(
            dataset=found.dataset,
            snapshot=found.snapshot,
            population=found.population,
            unit=found.unit,
            max_rows_per_person=found.max_rows_per_person,
            unknown_rows=found.unknown_rows,
            min_rows=found.min_rows,
            max_epsilon=found.max_epsilon,
            mechanisms=tuple(found.mechanisms),
            label_kind=found.label_kind,
            label_range=(found.label_lo, found.label_hi) if found.label_kind == "number" else None,
            receipt_key=found.receipt_key,
        )

    async def budget(self, dataset: str) -> DatasetBudget:
        """Return what the dataset's population may spend and has spent.

        Args:
            dataset: name of the dataset at the server.

        Returns:
            The budget.

        Raises:
            PolicyRefused: the server does not offer the dataset to this party.
            TransportError: names the server and the step.

        Example:
            >>> budget = wait_for(client.budget("visits"))  # in a notebook: await client.budget("visits")
            >>> budget.spent_epsilon <= budget.epsilon
            True
        """
        found = await self._calls.budget(dataset)
        return DatasetBudget(found.population, found.epsilon, found.delta, found.spent_epsilon, int(found.releases))

    async def aggregate(
        self,
        dataset: str,
        ids: Sequence[str],
        features: npt.ArrayLike,
        *,
        epsilon: float,
        delta: float,
        norm_bound: float,
        frac_bits: int | None = None,
        max_rows_per_person: int | None = None,
        release: str = "",
        receipt: Receipt | None = None,
        content_salt: bytes = b"",
        on_rows: Callable[[int], None] | None = None,
    ) -> NoisyAggregate:
        """Return the noisy sum of label x row over these rows, from a server that reads the rows.

        The same rows with the same arguments give the same answer, byte for byte, and are charged once.

        Args:
            dataset: name of the dataset at the server; its labels are 0 and 1.
            ids: ids of the rows, each once.
            features: numbers of shape (rows, columns), finite; an array or a data frame. Standardise columns first.
            epsilon: epsilon of the release, 1e-6 to 50.
            delta: delta of the release, 1e-100 to 0.5.
            norm_bound: L2 norm to which rows are clipped, above 0. A larger one clips fewer rows and needs more noise.
            frac_bits: fraction bits of the grid to which rows are rounded; None takes the finest one that is cheap.
            max_rows_per_person: the most rows of one person that count; None takes the dataset's own limit. Only a
                dataset whose unit is a person takes a number.
            release: name of the draw. Another name gives fresh noise, and another charge.
            receipt: newest receipt of this server that the caller has: statement and signature.
            content_salt: 32 secret bytes, always the same for the same rows, that keep the hash of the rows in the
                server's ledger from being tried out; or empty.
            on_rows: function that is called with the number of rows sent since its last call. When the request
                begins, also again after a cut, it is called with -1.

        Returns:
            The noisy sums and the rows as they were summed.

        Raises:
            DataError: ids and features do not fit, an id came twice, or the server does not know an id.
            RangeError: an argument or a feature is out of range, or no grid fits the norm bound and the noise.
            BudgetExhausted, PolicyRefused, TooFewRows, LedgerBehind: before any row is sent.
            MalformedMessage: the answer, its receipt or its charge is not valid.
            TransportError: names the server and the step.

        Example:
            >>> aggregate = wait_for(  # in a notebook: await client.aggregate(...)
            ...     client.aggregate("visits", ids, features, epsilon=1.0, delta=1e-6, norm_bound=3.0)
            ... )
            >>> aggregate
            <noisy sum of 2 columns over 500 rows, epsilon 1>
        """
        named = _ids_of(ids)
        table = _features_of(named, features)
        description = await self._describe(dataset)
        if description.label_kind != "binary":
            raise DataError(
                f"the labels of {dataset} at {self._server} are of kind {description.label_kind!r}, not 0 and 1",
                hint="call release_labels" if description.label_kind == "number" else "run a job of two servers",
            )
        most = description.max_rows_per_person if max_rows_per_person is None else index(max_rows_per_person)
        grid = _grid_of(norm_bound, frac_bits, gaussian.noise_multiplier("analytic", epsilon, delta), max(1, most))
        rows = ConsumerRows(
            named, await asyncio.to_thread(fixed_point.quantise_rows, table, grid.norm_bound, grid.frac_bits)
        )
        settings = ReleaseSettings(
            dataset=dataset,
            snapshot=description.snapshot,
            epsilon=epsilon,
            delta=delta,
            frac_bits=grid.frac_bits,
            max_rows_per_person=most,
            release=release,
            content_salt=content_salt,
        )
        request = await asyncio.to_thread(walr.step_1_open, rows, grid.norm_bound, settings, receipt or NO_RECEIPT)
        try:
            walr.step_2_check(request, consumer=self._own.name)
        except MalformedMessage as error:  # of this party's own making: the server would refuse it
            raise RangeError(f"{error.field} {error.reason}") from None
        found = await self._calls.aggregate(rows, request, on_rows or _ignore)
        answer = found.answer
        kept_receipt = self._newest(receipt, (answer.receipt, answer.receipt_signature), description)
        statement.check_proof(request, answer, Between(self._server, self._own.name, description.population))
        check_rows_scaled(answer.rows_scaled, server=self._server)
        return NoisyAggregate(
            sums=_in_reals(answer.sums, grid),
            noise_std=answer.noise_std * grid.step,
            rows=_in_reals(rows.weights, grid),
            kept=found.kept,
            rows_clipped=_count_longer(table, grid.real_bound),
            norm_bound=grid.real_bound,
            epsilon=request.epsilon,
            delta=request.delta,
            unit=answer.unit,
            neighbours=answer.neighbours,
            request_id=request.request_id,
            receipt=kept_receipt,
            bytes_sent=found.bytes_sent,
            messages_sent=found.messages_sent,
        )

    async def release_labels(
        self,
        dataset: str,
        ids: Sequence[str],
        settings: MechanismSettings,
        *,
        release: str = "first",
        max_rows_per_person: int | None = None,
        receipt: Receipt | None = None,
        on_rows: Callable[[int], None] | None = None,
    ) -> ReleasedLabels:
        """Return noisy labels of these rows. The server draws them once and charges the whole dataset once.

        Args:
            dataset: name of the dataset at the server; its labels are numbers.
            ids: ids of the rows, each once.
            settings: mechanism, grid and epsilon of one row. The grid's ends are the dataset's declared label range.
            release: name of the draw. Another name gives another draw of every label, and another charge.
            max_rows_per_person: the most rows of one person that have a label, each charged; None takes the dataset's
                own limit. It has no effect if the dataset's unit is a row.
            receipt: newest receipt of this server that the caller has: statement and signature.
            on_rows: function that is called with the number of ids sent since its last call. When the request
                begins, also again after a cut, it is called with -1.

        Returns:
            The noisy labels, in the order of `ids`, and the mechanism that made them.

        Raises:
            BudgetExhausted, PolicyRefused, TooFewRows, LedgerBehind: before any id is sent.
            DataError: an id came twice, or the server does not know it. Nothing was charged.
            MalformedMessage: the server sent a label that its mechanism never gives.
            TransportError: names the server and the step.

        Example:
            >>> settings = blindfit.MechanismSettings("staircase", blindfit.LabelGrid(0.0, 100.0), epsilon=2.0)
            >>> released_labels = wait_for(client.release_labels("prices", ids, settings))  # in a notebook: await ...
            >>> len(released_labels.labels) == len(ids)
            True
        """
        named = _ids_of(ids)
        description = await self._describe(dataset)
        released = await self._calls.release_labels(
            description,
            named,
            settings,
            release=release,
            max_rows_per_person=max_rows_per_person,
            receipt=receipt,
            on_rows=on_rows or _ignore,
        )
        return replace(released, receipt=self._newest(receipt, released.receipt, description))

    def _newest(self, passed: Receipt | None, given: Receipt, description: pb.DatasetDescription) -> Receipt:
        """Return the receipt that proves more: the answer to an old request comes with its old receipt.

        Raises:
            MalformedMessage: the server did not sign the given receipt, or it is about something else.
        """
        proven = check_given(given, self._server, description.receipt_key, description.population)
        if not passed or not passed[0]:
            return given
        try:
            known = check_given(passed, self._server, description.receipt_key, description.population)
        except MalformedMessage:  # about another population of this server
            return given
        return given if proven.covers(known) else passed

    async def _describe(self, dataset: str) -> pb.DatasetDescription:
        description = await self._calls.describe(dataset)
        check_description(description, server=self._server)
        check_receipt_key(self._own, description, server=self._server)
        return description


def _ignore(_: int) -> None:
    """Do nothing with a number of rows."""


def _ids_of(ids: object) -> tuple[str, ...]:
    """Return the ids in their order.

    Raises:
        DataError: they have no order, or one of them is not a text, is empty or occurs twice.
    """
    if isinstance(ids, str | bytes | Set | Mapping) or not isinstance(ids, Iterable):
        raise DataError(
            f"ids are a {type(ids).__name__}, not a list", hint="pass one text for each row, in their order"
        )
    listed = tuple(ids)
    if not listed:
        raise DataError("ids and features have no rows", hint="pass at least as many rows as the server's min_rows")
    for row, text in enumerate(listed, 1):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise DataError(f"the id of row {row} is a {kind}, not a text", hint="write ids as in the table of labels")
    _check_spelling(listed)
    return listed


def _check_spelling(ids: tuple[str, ...]) -> None:
    """Raise DataError: an id is empty or occurs twice, in the one spelling in which the server joins ids."""
    seen: set[str] = set()
    for row, text in enumerate(one_spelling(_as_arrow(ids)).to_pylist(), 1):
        if not text:
            raise DataError(f"the id of row {row} is empty", hint="remove the row, or give it an id")
        if text in seen:
            raise DuplicateId(row)
        seen.add(text)


def _as_arrow(ids: tuple[str, ...]) -> pa.StringArray:
    try:
        return pa.array(ids, pa.string())
    except UnicodeEncodeError:
        row = next(row for row, text in enumerate(ids, 1) if any("\ud800" <= char <= "\udfff" for char in text))
        raise DataError(f"the id of row {row} is not valid Unicode", hint="read the ids again as UTF-8") from None


def _features_of(ids: Sequence[str], features: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the features as an array of shape (rows, columns), one row for each id.

    Raises:
        DataError: a value is not a number. Dates and texts are refused, because numpy would convert them silently.
        RangeError: a number is not finite. It is found before any message, so no server learns that a row has one.
    """
    if np.ma.is_masked(features):
        raise DataError("features have masked values", hint="fill them, or leave their rows out")
    try:
        given = np.asarray(features)
        kind = "" if given.dtype.kind in "biuf" else str(given.dtype)
        if given.dtype.kind == "O":
            kind = next((type(value).__name__ for value in given.flat if isinstance(value, NOT_NUMBERS)), "")
        if kind:
            raise TypeError(kind)
        table = given.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"features are not numbers: {error}", hint="convert texts and dates to numbers first") from None
    if table.ndim != 2:
        raise DataError(f"features have {table.ndim} dimensions, not 2", hint="pass rows x columns")
    if len(table) != len(ids):
        raise DataError(f"there are {len(ids)} ids and {len(table)} rows of features", hint="pass one id for each row")
    if not (finite := np.isfinite(table).all(axis=1)).all():
        raise RangeError(f"row {int(np.argmin(finite)) + 1} of features has a number that is not finite")
    return table


def _count_longer(table: npt.NDArray[np.float64], norm_bound: float) -> int:
    with np.errstate(over="ignore"):  # an infinite norm is a long one
        return int((np.linalg.norm(table, axis=1) > norm_bound).sum())


def _grid_of(norm_bound: float, frac_bits: int | None, noise_multiplier: float, rows_of_unit: int) -> Grid:
    if not 0 < norm_bound < float("inf"):
        raise RangeError(f"norm_bound must be finite and above 0, not {norm_bound:g}")
    if frac_bits is None:
        return auto_grid(norm_bound, noise_multiplier, rows_of_unit)
    return Grid.of(norm_bound, index(frac_bits))


def _in_reals(steps: npt.NDArray[np.signedinteger], grid: Grid) -> npt.NDArray[np.float64]:
    return np.asarray(steps, np.float64) * grid.step
