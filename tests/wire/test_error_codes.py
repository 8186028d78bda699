"""Errors <-> codes: every class is in the table or leaves as INTERNAL, and nothing that a peer says raises."""

from __future__ import annotations

import inspect
import math

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms import errors as e
from blindfit.algorithms.errors import DuplicateId, UnknownId
from blindfit.parties.wire import error_codes
from blindfit.protos import errors_pb2 as pb
from tests.each_case import each_case

# One of each class that can leave a party, and the class that its peer sees (None: the same).
SAMPLES: list[tuple[e.BlindfitError, type[e.BlindfitError] | None]] = [
    (e.HandshakeMismatch(culprit="p1", field="rows", ours="1", theirs="2"), None),
    (e.PeerAborted(culprit="p2", code="DATA", step="Masked"), None),
    (e.BudgetExhausted(population="p", spent=0.5, budget=1.0, requested=0.75), None),
    (e.UnsupportedEvent("x"), None),
    (e.RequestConflict("x"), None),
    (e.LedgerBehind(population="p", ledger_position=3, receipt_position=5), None),
    (e.LedgerUnavailable("x"), None),
    (e.TooFewRows(rows=5, least=100), None),
    (e.CannotAnswer(party="p1"), None),
    (e.PolicyRefused(party="p1", field="privacy.epsilon", reason="too much"), None),
    (e.PeerTimeout(peer="p2", step="Masked", timeout_s=1.5), None),
    (e.PeerUnreachable(peer="p2", address="host:1", step="Masked"), None),
    (e.PeerUnauthenticated(peer="p2", reason="expired"), None),
    (e.CallNotAllowed(peer="p1", method="/a/B"), None),
    (e.LimitExceeded(peer="p1", step="Open", limit="size"), None),
    (e.CannotTakePart("p1"), None),
    (e.ScoresOutOfRange(epoch=3), None),
    (e.MacCheckFailed(), e.PeerAborted),
    (e.SharesDoNotFit(), e.PeerAborted),
    # What hangs on the party's own rows, files and machine.
    (e.DataError("x"), e.CannotTakePart),
    (e.ConfigError("x"), e.CannotTakePart),
    (e.RangeError("x"), e.CannotTakePart),
    (e.ComputeFailed(backend="loky", reason="x"), e.CannotTakePart),
    # The peer found fault with us: our own mistake, or a peer of another make.
    (e.MalformedMessage(culprit="p1", field="d", reason="is short", step="Masked"), e.PeerAborted),
    (e.UnexpectedStep(culprit="p1", expected="A", got="B"), e.PeerAborted),
    (e.SessionUnknown("x"), e.PeerAborted),
    (e.ProtocolError("x", step="Masked"), e.PeerAborted),
    (e.LocalProtocolError("x", step="Masked"), e.PeerAborted),
    (e.PeerError("x", culprit="p1", step="Masked"), e.PeerAborted),
    (DuplicateId(4), e.DataError),
    (UnknownId(4, 2), e.DataError),
]
# The bare roots of the tree: raised nowhere a peer could see, so they leave without a word.
INTERNAL = {e.PrivacyError, e.TransportError}
SAID_FROM_THE_OTHER_SIDE = {"hint", "culprit", "peer", "ours", "theirs", "reason", "session", "step"}


def test_every_class_is_in_the_table_or_internal() -> None:
    classes = {c for _, c in inspect.getmembers(e, inspect.isclass) if issubclass(c, e.BlindfitError)}
    assert classes - INTERNAL - {e.BlindfitError} == {type(sample) for sample, _ in SAMPLES}
    for error in (e.PrivacyError("x"), e.TransportError("x", peer="p"), ValueError("canary")):
        assert error_codes.detail_of(error) == pb.ErrorDetail(code=pb.INTERNAL)
        assert error_codes.status_of(error) is grpc.StatusCode.INTERNAL


def test_an_error_that_says_nothing_of_whom_to_tell_is_told_its_own_operator_alone() -> None:
    class Late(e.BlindfitError):
        """Written by somebody who had other things in mind."""

    assert error_codes.detail_of(Late("the label of row 5")) == pb.ErrorDetail(code=pb.CANNOT_TAKE_PART)
    assert {type(sample) for sample, _ in SAMPLES if sample.told == "own"} == {
        e.DataError,
        e.ConfigError,
        e.RangeError,
        e.ComputeFailed,
    }


@each_case("error", [e.DataError("row 5"), e.ConfigError("x"), e.RangeError("y")])
def test_what_is_a_partys_own_looks_the_same_whatever_it_is(error: Exception) -> None:
    if isinstance(error, e.BlindfitError):
        assert error_codes.detail_of(error) == pb.ErrorDetail(code=pb.CANNOT_TAKE_PART)
        assert error_codes.status_of(error) is error_codes.status_of(e.DataError("another"))


def test_codes_are_used_once_and_every_code_has_an_error() -> None:
    used = {error_codes.detail_of(sample).code for sample, _ in SAMPLES}
    assert set(pb.ErrorCode.values()) - used == {pb.ERROR_CODE_UNSPECIFIED, pb.INTERNAL, pb.CANCELLED}
    assert len(error_codes._BY_CODE) == len(error_codes._TABLE)


@each_case(("error", "seen_as"), SAMPLES, ids=lambda v: type(v).__name__)
def test_a_round_trip_keeps_class_and_public_fields(
    error: e.BlindfitError, seen_as: type[e.BlindfitError] | None
) -> None:
    detail = pb.ErrorDetail.FromString(error_codes.detail_of(error).SerializeToString())
    back = error_codes.error_of(detail, peer="p1")
    assert type(back) is (seen_as or type(error))
    if seen_as is None:
        for name in {f.name for f in detail.fields} - SAID_FROM_THE_OTHER_SIDE:
            assert getattr(back, name) == getattr(error, name), name
    assert str(error) == str(back) or "p1" in str(back)


def test_what_both_sides_call_ours_and_theirs_is_exchanged() -> None:
    mismatch = e.HandshakeMismatch(culprit="p2", field="rows", ours="1", theirs="2")
    back = error_codes.error_of(error_codes.detail_of(mismatch), peer="p1")
    assert (back.culprit, back.ours, back.theirs) == ("p1", "2", "1")


def test_what_a_peer_blames_us_for_is_told() -> None:
    malformed = e.MalformedMessage(culprit="us", field="d", reason="is short", step="Masked")
    back = error_codes.error_of(error_codes.detail_of(malformed), peer="p1")
    assert back.message == "p1 ended the session: it could not accept d: is short at step Masked"


def test_only_the_listed_fields_leave() -> None:
    for error in (
        e.DataError("canary", hint="canary"),
        e.ConfigError("canary"),
        e.RequestConflict("canary"),
        e.ProtocolError("canary", session="canary"),
        RuntimeError("canary"),
    ):
        assert b"canary" not in error_codes.detail_of(error).SerializeToString()


@each_case(
    ("value", "text"),
    [
        ("x" * 5000, "x" * 256),
        ("a\x1b[31m\nb", "a\ufffd[31m\ufffdb"),
        ("\ud800lone", "\ufffdlone"),
        (2**70, str(2**70)),
    ],
)
def test_a_field_of_any_size_or_text_can_leave(value: object, text: str) -> None:
    error = e.PolicyRefused(party="p1", field=value, reason="r")
    assert error_codes.error_of(error_codes.detail_of(error), peer="p1").field == text


VALUES = st.one_of(
    st.builds(dict, text=st.text(max_size=400)),
    st.builds(dict, real=st.floats() | st.sampled_from([math.inf, -math.inf, math.nan])),
    st.builds(dict, integer=st.integers(-(2**63), 2**63 - 1)),
    st.just({}),
)
NAMES = st.sampled_from(sorted({n for row in error_codes._TABLE.values() for n in row.fields})) | st.text(max_size=9)
DETAILS = st.builds(
    lambda code, fields: pb.ErrorDetail(code=code, fields=[pb.ErrorField(name=n, **v) for n, v in fields]),
    st.sampled_from(pb.ErrorCode.values()) | st.integers(-(2**31), 2**31 - 1),
    st.lists(st.tuples(NAMES, VALUES), max_size=8),
)


@settings(max_examples=500, deadline=None)
@given(DETAILS)
def test_a_hostile_detail_never_raises(detail: pb.ErrorDetail) -> None:
    error = error_codes.error_of(detail, peer="p1")
    assert isinstance(error, e.BlindfitError)
    assert len(str(error)) < 2000
    assert str(error).isprintable()


@each_case("code", [0, 9998, 9999, -1])
def test_an_unknown_code_is_just_a_code(code: int) -> None:
    error = error_codes.error_of(pb.ErrorDetail(code=code), peer="p1")
    assert isinstance(error, e.PeerAborted)
    assert error.code in ("UNKNOWN", "ERROR_CODE_UNSPECIFIED")


def failed(code: grpc.StatusCode, *metadata: tuple[str, bytes | str]) -> e.BlindfitError:
    call = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), "secret canary")
    error = error_codes.error_of_call(call, peer="p1", address="host:1", step="Open")
    assert "canary" not in str(error) + error.hint
    return error


def test_a_failed_call_is_what_the_peer_says_or_what_grpc_says() -> None:
    key, status = error_codes.ERROR_METADATA_KEY, grpc.StatusCode
    detail = error_codes.detail_of(e.TooFewRows(rows=1, least=2)).SerializeToString()
    assert isinstance(failed(status.FAILED_PRECONDITION, (key, detail)), e.TooFewRows)
    for code, kind in (
        (status.DEADLINE_EXCEEDED, e.TransportError),
        (status.RESOURCE_EXHAUSTED, e.LimitExceeded),
        (status.UNIMPLEMENTED, e.CallNotAllowed),
        (status.UNAVAILABLE, e.PeerUnreachable),
        (status.INTERNAL, e.PeerUnreachable),
        (status.UNKNOWN, e.PeerUnreachable),
        (status.CANCELLED, e.PeerUnreachable),
        (status.DATA_LOSS, e.TransportError),
    ):
        assert type(failed(code)) is kind
        assert type(failed(code, (key, b"\xff\xff junk"))) is kind  # a detail that does not parse
