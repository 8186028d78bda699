"""WALR with labels split between two measurement servers, neither of which knows a label: the differences from `walr`.

Source: ours. X^T y is linear in y, and both servers see X.
Model: the party with the labels splits each, y = y_1 + y_2 mod p with p = 2^61 - 1 and y_1 uniform; server k has y_k.
    The servers do not reveal their shares to each other. Each answers as in `walr`, with noise enough for
    (epsilon, delta) label DP against the active party *together with the other server*, which knows the other shares.
    So it is also enough against the active party by itself, which sees the noise of both.

    step  who     does                                                                        sends
    2     server  admits the request as in walr 2, with its budget; goes on once the          Agreement.
                  other's is the same: the same split, ids, parameters, hash of the rows.
    4     server  X^T y_k mod p over the rows that walr 4 keeps, exactly; goes on once the    Counted.
                  same rows counted at the other.
    5     server  + a whole discrete Gaussian of its own, mod p; charge and answer as walr 5  nothing.
    6     active  adds both answers and centres them mod p; goes on as walr 6                 nothing.

Departures: the variance of the released sum is twice that of one trusted server.
Learns: each server learns rows and ids as in `walr`, and that the other has the same table of ids; it learns nothing
    about labels. The active party learns one noisy sum, from two answers of which each by itself is uniform mod p.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from blindfit.algorithms.errors import DataError, MalformedMessage, RangeError
from blindfit.algorithms.fixed_point import IntegerRows
from blindfit.algorithms.messages import Octets, Text, parameters_digest
from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols.table import MEASUREMENT, ONCE, Arrow, Table
from blindfit.algorithms.protocols.walr.messages import AggregateOpen, Bits, NoisySum
from blindfit.algorithms.protocols.walr.request import NAMED, mechanism_of
from blindfit.algorithms.protocols.walr.tally import Tally
from blindfit.algorithms.randomness import UniformInt, system_uniform
from blindfit.algorithms.sharing import field

P = field.P
SERVERS = 2

# Fields that must be equal in both servers' requests. Each server has its own dataset, snapshot and request name.
_OWN = ("dataset", "snapshot")
_ASKED_ALIKE = ("protocol_version", *(name for name in NAMED if name not in _OWN), "in_shares")


# --- messages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Agreement:
    split_id: Text
    ids_sha256: Octets  # of all ids of the table, under a key that follows from the split id
    request_sha256: Octets  # of all fields that must be equal at both, with the hash of the rows
    answered_in: Text  # the session that answered the request, if rows are in shares; empty: it was not answered


@dataclass(frozen=True, slots=True, repr=False)
class Counted:
    kept_sha256: Octets  # of one bit for each row that was sent


_SAME = "whether both have the same request, about tables of the same split and ids"
TABLE = Table(
    "walr-split",
    Arrow("2", MEASUREMENT, MEASUREMENT, Agreement, ONCE, _SAME),
    Arrow("4", MEASUREMENT, MEASUREMENT, Counted, ONCE, "its readiness to answer, and whether the same rows counted"),
)


# --- the party with the labels --------------------------------------------------------------------------


def split(labels: npt.NDArray[np.uint8], uniform: UniformInt = system_uniform) -> tuple[field.Elements, field.Elements]:
    """Return y_1 uniform and y_2 = y - y_1 mod p: each by itself has the same law for all labels."""
    first = np.array([uniform(P) for _ in range(len(labels))], np.uint64)
    return first, field.subtract(field.elements(labels), first)


# --- steps of a server --------------------------------------------------------------------------------


def step_2_check(request: AggregateOpen, *, consumer: str) -> None:
    """Check the range of a request.

    Raises:
        MalformedMessage: the sum could pass p / 2, and would be read as another sum.
    """
    if not fits(request):
        raise MalformedMessage(culprit=consumer, field="frac_bits", reason=TOO_LARGE, step="AggregateOpen")


TOO_LARGE = "the noisy sum could pass half of 2^61 - 1"
LOWER_IT = "lower frac_bits in [walr] or [evaluate]; raise privacy.epsilon; or use fewer rows"


def fits(request: AggregateOpen) -> bool:
    return reach_of(request) < P / 2


def reach_of(request: AggregateOpen) -> float:
    """Return `reach` of a request, in grid steps."""
    return reach(request.n_rows, request.norm_bound, math.sqrt(mechanism_of(request).sigma_squared))


def reach(n_rows: int, norm_bound: int, noise_std: float) -> float:
    """Return |sum| + 64 standard deviations of both noises together, which must stay below p / 2."""
    return n_rows * norm_bound + gaussian.NOISE_REACH * math.sqrt(SERVERS) * noise_std


def step_2_agreement(request: AggregateOpen, split_id: str, ids_sha256: bytes, answered_in: str = "") -> Agreement:
    asked = {name: getattr(request, name) for name in _ASKED_ALIKE}
    request_sha256 = parameters_digest({**asked, "rows": request.content_sha256.hex()})
    return Agreement(split_id, ids_sha256, request_sha256, answered_in)


def find_difference(mine: AggregateOpen, theirs: AggregateOpen) -> str:
    """Return the first field that differs although both servers' requests must agree on it; empty if they agree."""
    alike = (*_ASKED_ALIKE, "content_sha256")
    return next((name for name in alike if getattr(mine, name) != getattr(theirs, name)), "")


def step_2_difference(mine: Agreement, theirs: Agreement) -> str:
    """Describe the difference; empty if the two agree."""
    if mine.split_id != theirs.split_id:
        return "the two tables are of different splits: publish both tables of one `blindfit split-labels`"
    if mine.ids_sha256 != theirs.ids_sha256:
        return "the two tables do not list the same ids: publish both tables of one `blindfit split-labels`"
    if mine.request_sha256 != theirs.request_sha256:
        return "the two servers were asked for different things, or sent different rows"
    if mine.answered_in != theirs.answered_in:
        return (
            "one server does not remember the other's answer: set privacy.release to another name, which draws the "
            "noise again and is charged again"
        )
    return ""


def step_4_counted(kept: bytes) -> Counted:
    """Return the digest of one bit for each row that was sent, packed."""
    return Counted(hashlib.sha256(kept).digest())


class ShareTally(Tally):
    """The growing sum X^T y_k mod p."""

    def add_up(self, labels: npt.NDArray[Any], kept: Bits, rows: IntegerRows) -> None:
        """Add exactly, with the same work for all shares, which are 0 where a row does not count."""
        shares = labels.astype(np.uint64) * kept
        part = field.transposed_times(field.contiguous(field.elements(rows)), shares)
        self.sums = field.integers(field.add(field.elements(self.sums), part))

    def wrap(self, noisy: Sequence[int]) -> npt.NDArray[np.int64]:
        return np.array([number % P for number in noisy], np.int64)


def epsilon_of_both(request: AggregateOpen) -> float:
    """Return epsilon against the active party by itself, which sees the noise of both; at the request's delta."""
    multiplier = gaussian.noise_multiplier(request.mechanism, request.epsilon, request.delta)
    return gaussian.gaussian_epsilon(multiplier * SERVERS**0.5, request.delta)


# --- steps of the active party --------------------------------------------------------------------------


def step_1_check(request: AggregateOpen) -> None:
    """Raise RangeError, before anything is sent, if the sum could be too large."""
    if not fits(request):
        raise RangeError(TOO_LARGE, hint=LOWER_IT)


def step_6_check(answer: NoisySum, request: AggregateOpen, *, server: str) -> None:
    """Raise MalformedMessage for an answer that an honest server would not give."""

    def require(condition: bool, name: str, reason: str) -> None:
        if not condition:
            raise MalformedMessage(culprit=server, field=name, reason=reason, step="NoisySum")

    in_range = bool((answer.sums >= 0).all() and (answer.sums < P).all())
    require(in_range, "sums", "are not from 0 to 2^61 - 2")
    wanted = math.sqrt(mechanism_of(request).sigma_squared)
    # Another version of a library may compute it slightly differently.
    require(math.isclose(answer.noise_std, wanted, rel_tol=1e-6), "noise_std", "is not that of the request")


def step_6_add(answers: Sequence[NoisySum], request: AggregateOpen, *, servers: Sequence[str]) -> NoisySum:
    """Return the released sum with the deviation of both noises; receipt and event are the first server's.

    Raises:
        DataError: the answers do not belong together. Sums of two splits are uniform mod p, and so out of range.
    """
    first, second = answers
    alike = ("sensitivity", "unit", "neighbours", "rows_kept", "rows_scaled", "rows_unknown")
    names = " and ".join(servers)
    if different := [name for name in alike if getattr(first, name) != getattr(second, name)]:
        raise DataError(f"{names} gave different answers: {different[0]} differs", hint="ask their operators")
    sums = field.integers(field.add(*(answer.sums.astype(np.uint64) for answer in answers)))
    if float(np.abs(sums).max()) > reach_of(request):
        raise DataError(
            f"the answers of {names} add up to a sum that no labels can have",
            hint="ask their operators whether both have published the tables of one split",
        )
    return replace(first, sums=sums, noise_std=math.hypot(first.noise_std, second.noise_std))
