"""Errors <-> statuses: every class is in the table or leaves as INTERNAL, and no status of a peer raises
an exception.
"""

from __future__ import annotations

import copy
import inspect

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms import errors as e
from blindfit.parties.wire import error_codes
from blindfit.protos import errors_pb2 as pb
from tests.each_case import each_case
from tests.statuses import fields_of, reason_of
from tests.wire.error_samples import SAMPLES

# The bare roots of the tree: raised nowhere a peer could see, so they leave without a message.
INTERNAL = {e.PrivacyError, e.TransportError}


def read(error: BaseException) -> tuple[str, dict[str, str]]:
    status = error_codes.status_of(error)
    return reason_of(status), fields_of(status)


SAID_FROM_THE_OTHER_SIDE = {"hint", "culprit", "peer", "ours", "theirs", "reason", "session", "step"}


def test_every_class_is_in_the_table_or_internal() -> None:
    classes = {c for _, c in inspect.getmembers(e, inspect.isclass) if issubclass(c, e.BlindfitError)}
    assert classes - INTERNAL - {e.BlindfitError} == {type(sample) for sample, _ in SAMPLES}
    for error in (e.PrivacyError("x"), e.TransportError("x", peer="p"), ValueError("canary")):
        assert read(error) == ("INTERNAL", {})
        assert error_codes.status_of(error).code == grpc.StatusCode.INTERNAL.value[0]


def test_an_error_that_says_nothing_of_whom_to_tell_is_told_its_own_operator_alone() -> None:
    class Late(e.BlindfitError):
        """An error class whose author did not decide who may read it."""

    assert read(Late("the label of row 5")) == ("CANNOT_TAKE_PART", {})
    assert {type(sample) for sample, _ in SAMPLES if sample.told == "own"} == {
        e.DataError,
        e.ConfigError,
        e.RangeError,
        e.ComputeFailed,
    }


@each_case("error", [e.DataError("row 5"), e.ConfigError("x"), e.RangeError("y")])
def test_what_is_a_partys_own_looks_the_same_whatever_it_is(error: Exception) -> None:
    if isinstance(error, e.BlindfitError):
        assert read(error) == ("CANNOT_TAKE_PART", {})
        assert error_codes.status_of(error) == error_codes.status_of(e.DataError("another", hint="and another"))


def test_codes_are_used_once_and_every_code_has_an_error() -> None:
    used = {error_codes.code_of(sample) for sample, _ in SAMPLES}
    assert set(pb.ErrorCode.values()) - used == {pb.ERROR_CODE_UNSPECIFIED, pb.INTERNAL, pb.CANCELLED}
    assert len(error_codes._BY_NAME) == len(error_codes._TABLE)


@each_case(("error", "seen_as"), SAMPLES, ids=lambda v: type(v).__name__)
def test_a_round_trip_keeps_class_and_public_fields(
    error: e.BlindfitError, seen_as: type[e.BlindfitError] | None
) -> None:
    status = Status.FromString(error_codes.status_of(error).SerializeToString())
    back = error_codes.error_of(status, peer="p1")
    assert type(back) is (seen_as or type(error))
    if seen_as is None:
        for name in fields_of(status).keys() - SAID_FROM_THE_OTHER_SIDE:
            assert getattr(back, name) == getattr(error, name), name
    assert str(error) == str(back) or "p1" in str(back)


def test_what_both_sides_call_ours_and_theirs_is_exchanged() -> None:
    mismatch = e.HandshakeMismatch(culprit="p2", field="rows", ours="1", theirs="2")
    back = error_codes.error_of(error_codes.status_of(mismatch), peer="p1")
    assert (back.culprit, back.ours, back.theirs) == ("p1", "2", "1")


def test_what_a_peer_blames_us_for_is_told() -> None:
    malformed = e.MalformedMessage(culprit="us", field="d", reason="is short", step="Masked")
    back = error_codes.error_of(error_codes.status_of(malformed), peer="p1")
    assert back.message == "p1 ended the session: it could not accept d: is short at step Masked"


def test_only_the_listed_fields_leave() -> None:
    for error in (
        e.DataError("canary", hint="canary"),
        e.ConfigError("canary"),
        e.RequestConflict("canary"),
        e.ProtocolError("canary", session="canary"),
        RuntimeError("canary"),
    ):
        assert b"canary" not in error_codes.status_of(error).SerializeToString()


@each_case(
    ("value", "text"),
    [
        ("x" * 5000, "x" * 512),
        ("\N{LOCK}" * 5000, "\N{LOCK}" * 128),
        ("a\x1b[31m\nb", "a\ufffd[31m\ufffdb"),
        ("\ud800lone", "\ufffdlone"),
        (2**70, str(2**70)),
    ],
)
def test_a_field_of_any_size_or_text_can_leave(value: object, text: str) -> None:
    error = e.PolicyRefused(party="p1", field=value, reason="r")
    assert error_codes.error_of(error_codes.status_of(error), peer="p1").field == text


TEXTS = st.text(max_size=700) | st.sampled_from(["inf", "nan", "-1", "9" * 600, "1e999", "{0}"])
NAMES = st.sampled_from(sorted({n for row in error_codes._TABLE.values() for n in row.fields})) | st.text(max_size=9)
REASONS = st.sampled_from([*pb.ErrorCode.keys(), "", "NEVER_HEARD_OF", "\x1b[31m"])
INFOS = st.builds(
    ErrorInfo, reason=REASONS, domain=st.sampled_from(["blindfit", "else"]), metadata=st.dictionaries(NAMES, TEXTS)
)


@settings(max_examples=500, deadline=None)
@given(st.lists(INFOS, max_size=3), st.binary(max_size=9), st.integers(-(2**31), 2**31 - 1), TEXTS)
def test_a_hostile_status_never_raises(infos: list[ErrorInfo], junk: bytes, code: int, message: str) -> None:
    status = Status(code=code, message=message)
    status.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=junk)
    for info in infos:
        status.details.add().Pack(info)
    error = error_codes.error_of(status, peer="p1")
    assert isinstance(error, e.BlindfitError)
    assert len(str(error)) < 3000
    assert str(error).isprintable()


@each_case("reason", ["", "ERROR_CODE_UNSPECIFIED", "NEVER_HEARD_OF", "MALFORMED_MESSAGE"])
def test_a_reason_without_its_fields_is_just_a_code(reason: str) -> None:
    status = Status()
    status.details.add().Pack(ErrorInfo(reason=reason, domain="blindfit"))
    error = error_codes.error_of(status, peer="p1")
    assert isinstance(error, e.PeerAborted)
    assert error.code == (reason if reason in pb.ErrorCode.keys() else "UNKNOWN")  # noqa: SIM118 - no dict


def test_every_field_at_its_longest_fits_in_the_headers_of_every_client() -> None:
    """gRPC for Java takes 8 KiB, names and base64 included, and each byte of a sentence may become three."""
    for error in map(copy.copy, (sample for sample, _ in SAMPLES)):
        for name in error_codes._row_of(error).fields:  # type: ignore[union-attr]
            if isinstance(getattr(error, name, None), str):
                setattr(error, name, "\N{LOCK}" * 10000)
        status = error_codes.status_of(error)
        assert 3 * len(status.message.encode()) + 4 * status.ByteSize() / 3 < 7500


def failed(code: grpc.StatusCode, said: str = "", *metadata: tuple[str, bytes | str]) -> e.BlindfitError:
    call = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*metadata), said)
    error = error_codes.error_of_call(call, peer="p1", address="host:1", step="Open")
    assert "canary" not in str(error) + error.hint
    return error


GRPC_ITSELF = (
    (grpc.StatusCode.DEADLINE_EXCEEDED, e.TransportError),
    (grpc.StatusCode.RESOURCE_EXHAUSTED, e.LimitExceeded),
    (grpc.StatusCode.UNIMPLEMENTED, e.CallNotAllowed),
    (grpc.StatusCode.UNAVAILABLE, e.PeerUnreachable),
    (grpc.StatusCode.INTERNAL, e.PeerUnreachable),
    (grpc.StatusCode.UNKNOWN, e.PeerUnreachable),
    (grpc.StatusCode.CANCELLED, e.PeerUnreachable),
    (grpc.StatusCode.DATA_LOSS, e.TransportError),
)


def test_a_failed_call_is_what_the_peer_says() -> None:
    status = error_codes.status_of(e.TooFewRows(rows=1, least=2))
    trailer = ("grpc-status-details-bin", status.SerializeToString())
    assert isinstance(failed(grpc.StatusCode.FAILED_PRECONDITION, status.message, trailer), e.TooFewRows)


@each_case(("code", "kind"), GRPC_ITSELF)
def test_a_failed_call_is_what_grpc_says_where_no_peer_of_ours_has_spoken(
    code: grpc.StatusCode, kind: type[e.BlindfitError]
) -> None:
    key, somebody = "grpc-status-details-bin", Status(code=code.value[0], message="canary")
    somebody.details.add().Pack(ErrorInfo(reason="TOO_FEW_ROWS", domain="somebody.example"))
    ours = error_codes.status_of(e.TooFewRows(rows=1, least=2))  # another code and sentence than this call's
    assert type(failed(code, "canary")) is kind
    assert type(failed(code, "canary", (key, b"\xff\xff junk"))) is kind
    assert type(failed(code, "canary", (key, somebody.SerializeToString()))) is kind
    assert type(failed(code, "canary", (key, ours.SerializeToString()))) is kind
