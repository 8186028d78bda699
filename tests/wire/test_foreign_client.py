"""A client with gRPC and the `google.rpc` details, and nothing of Blindfit's, can read every refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, QuotaFailure, RetryInfo
from grpc_status import rpc_status

from blindfit.algorithms.errors import BlindfitError
from blindfit.parties.measurement.codec import request_to_pb
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.node import PartyNode
from blindfit.protos import measurement_pb2 as pb
from tests.certificates import make_identity
from tests.wire.error_samples import SAMPLES
from tests.wire.meter import connect, metering
from tests.wire.opened import OPEN

OURS = (ErrorInfo, BadRequest, QuotaFailure, RetryInfo)
PAGE = Path(__file__).parents[2] / "docs/reference/measurement_api.md"
AGGREGATE, DESCRIBE = "/blindfit.v1.Measurement/Aggregate", "/blindfit.v1.Measurement/Describe"

# Each reason in docs/reference/measurement_api.md: status, the details next to ErrorInfo, a part of the sentence.
MEANT: dict[str, tuple[str, set[type[Message]], str]] = {
    "HANDSHAKE_MISMATCH": ("FAILED_PRECONDITION", set(), "disagree on rows: this party has 1, the caller has 2"),
    "PEER_ABORTED": ("ABORTED", set(), "p2 ended the session with DATA"),
    "BUDGET_EXHAUSTED": ("RESOURCE_EXHAUSTED", {QuotaFailure}, "epsilon 0.5 of 1 is spent"),
    "UNSUPPORTED_EVENT": ("INVALID_ARGUMENT", set(), "cannot bound this release"),
    "REQUEST_CONFLICT": ("ALREADY_EXISTS", set(), "Choose another request id"),
    "LEDGER_BEHIND": ("FAILED_PRECONDITION", set(), "proves entry 5 of the ledger of p, but the ledger has 3 entries"),
    "LEDGER_UNAVAILABLE": ("UNAVAILABLE", {RetryInfo}, "released nothing and charged nothing"),
    "TOO_FEW_ROWS": ("FAILED_PRECONDITION", set(), "5 rows are fewer than 100"),
    "CANNOT_ANSWER": ("FAILED_PRECONDITION", set(), "p1 cannot answer this request"),
    "POLICY_REFUSED": ("PERMISSION_DENIED", set(), "p1 refuses the request: privacy.epsilon: too much."),
    "PEER_TIMEOUT": ("DEADLINE_EXCEEDED", set(), "did not do step Masked in "),
    "PEER_UNREACHABLE": ("UNAVAILABLE", set(), "p2 cannot be reached"),
    "CUT_OFF": ("UNAVAILABLE", set(), "p1 is cut off"),
    "PEER_UNAUTHENTICATED": ("UNAUTHENTICATED", set(), "not authenticated: expired"),
    "CALL_NOT_ALLOWED": ("PERMISSION_DENIED", set(), "may not call /a/B"),
    "LIMIT_EXCEEDED": ("RESOURCE_EXHAUSTED", {QuotaFailure}, "exceeds a limit: size"),
    "CANNOT_TAKE_PART": ("FAILED_PRECONDITION", set(), "This party cannot take part"),
    "SCORES_OUT_OF_RANGE": ("FAILED_PRECONDITION", set(), "in epoch 3"),
    "MAC_CHECK_FAILED": ("DATA_LOSS", set(), "do not fit their MACs"),
    "PROTOCOL": ("FAILED_PRECONDITION", set(), "cannot go on"),
    "MALFORMED_MESSAGE": ("INVALID_ARGUMENT", {BadRequest}, "malformed: d: is short. Correct"),
    "UNEXPECTED_STEP": ("FAILED_PRECONDITION", set(), "B came where A was expected"),
    "SESSION_UNKNOWN": ("NOT_FOUND", set(), "no such session"),
    "DUPLICATE_ID": ("INVALID_ARGUMENT", {BadRequest}, "Row 4 of the request"),
    "UNKNOWN_ID": ("INVALID_ARGUMENT", {BadRequest}, "Row 4 of the request"),
    "INTERNAL": ("INTERNAL", set(), "This party failed"),
}


@pytest.fixture
async def node(authority: Path, tmp_path: Path) -> Any:
    async with metering(authority, tmp_path) as up:
        yield up


async def refused(node: PartyNode, authority: Path, request: bytes, method: str = DESCRIBE) -> grpc.aio.AioRpcError:
    """Return the error for raw bytes, on a channel that knows no message of ours."""
    async with connect(node, make_identity(authority, "shop")) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(method)(request)
    return caught.value


def details_of(error: grpc.aio.AioRpcError) -> Iterator[Message]:
    """Yield the details as any gRPC library does: code and sentence of the status are those of the call."""
    status = rpc_status.from_call(error)
    assert status is not None
    for packed in status.details:
        (kind,) = [kind for kind in OURS if packed.Is(kind.DESCRIPTOR)]
        found = kind()
        assert packed.Unpack(found)
        yield found


@pytest.mark.parametrize(
    "error", [*(sample for sample, _ in SAMPLES), ValueError("canary")], ids=lambda e: type(e).__name__
)
async def test_every_refusal_is_a_sentence_with_standard_details(
    node: PartyNode, authority: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(MeasurementService, "describe", fails)
    seen = await refused(node, authority, pb.DescribeDatasetRequest(dataset="labels").SerializeToString())
    by_kind = {type(detail): detail for detail in details_of(seen)}
    info: Any = by_kind.pop(ErrorInfo)
    status, beside, part = MEANT[info.reason]
    assert (seen.code().name, set(by_kind), info.domain) == (status, beside, "blindfit")
    sentence = seen.details() or ""
    assert part in sentence
    assert sentence.endswith(".")
    assert sentence.count(". ") >= 1  # the fault, and what to do
    assert sentence.isprintable()
    assert "canary" not in repr(seen)
    if isinstance(error, BlindfitError) and error.told != "own":
        for name, text in info.metadata.items():
            value = getattr(error, name)
            assert text == (value if isinstance(value, str) else ", ".join(value) if name == "through" else repr(value))
    for detail in by_kind.values():
        if isinstance(detail, BadRequest):
            (violation,) = detail.field_violations
            assert violation.field in (info.metadata.get("field"), "ids")
            assert violation.description
        if isinstance(detail, QuotaFailure):
            (used,) = detail.violations
            assert used.subject
            assert used.description
        if isinstance(detail, RetryInfo):
            assert detail.retry_delay.seconds > 0


async def test_every_reason_is_meant() -> None:
    """The table above is complete."""
    from blindfit.protos import errors_pb2

    assert MEANT.keys() == set(errors_pb2.ErrorCode.keys()) - {"ERROR_CODE_UNSPECIFIED", "CANCELLED"}


async def test_the_documented_client_prints_what_the_page_says(node: PartyNode, authority: Path) -> None:
    page = PAGE.read_text()
    _, snippet, shown = re.search(r"(```python\n(import grpc.*?)```.*?```\n(.*?)\n```)", page, re.S).groups()  # type: ignore[union-attr]
    names: dict[str, Any] = {}
    exec(snippet, names)
    request = replace(OPEN, content_sha256=b"abc")
    seen = await refused(node, authority, request_to_pb(request).SerializeToString(), AGGREGATE)
    assert names["explain"](seen) == shown


async def test_the_page_has_every_reason_of_a_measurement_server() -> None:
    rows = re.findall(r"^\| ([A-Z_, ]+) \| ([A-Z_]+) \|", PAGE.read_text(), re.M)
    documented = {reason: status for reasons, status in rows for reason in reasons.split(", ")}
    assert documented == {reason: MEANT[reason][0] for reason in documented}
    of_sessions = {
        "CUT_OFF",
        "HANDSHAKE_MISMATCH",
        "PEER_ABORTED",
        "PEER_UNREACHABLE",
        "CANNOT_TAKE_PART",
        "SCORES_OUT_OF_RANGE",
    }
    of_sessions |= {"MAC_CHECK_FAILED", "PROTOCOL", "SESSION_UNKNOWN", "INTERNAL"}
    assert MEANT.keys() - documented.keys() == of_sessions


async def test_a_request_that_is_no_message_names_the_field(node: PartyNode, authority: Path) -> None:
    seen = await refused(node, authority, b"\xff")
    assert seen.code() is grpc.StatusCode.INVALID_ARGUMENT
    (bad,) = [detail for detail in details_of(seen) if isinstance(detail, BadRequest)]
    assert bad.field_violations[0].field == "request"


async def test_a_peers_texts_reach_no_terminal_unprintable(
    node: PartyNode, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from blindfit.algorithms.errors import MalformedMessage

    def fails(*_: object) -> None:
        raise MalformedMessage(culprit="shop", field="\x1b[31mred\n", reason="{field} \u202e" + "x" * 5000, step="Rows")

    monkeypatch.setattr(MeasurementService, "describe", fails)
    seen = await refused(node, authority, pb.DescribeDatasetRequest(dataset="labels").SerializeToString())
    assert (seen.details() or "").isprintable()
    assert len(seen.details() or "") <= 600
    for detail in details_of(seen):
        if isinstance(detail, BadRequest):
            assert detail.field_violations[0].field.isprintable()
        if isinstance(detail, ErrorInfo):
            assert all(text.isprintable() and len(text) <= 512 for text in detail.metadata.values())
