"""The content of a status for a client that knows only the standard: `google.rpc.Status` and its details."""

from __future__ import annotations

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status


def info_of(status: Status) -> ErrorInfo:
    (info,) = [packed for packed in status.details if packed.Is(ErrorInfo.DESCRIPTOR)]
    found = ErrorInfo()
    assert info.Unpack(found)
    return found


def reason_of(status: Status) -> str:
    return info_of(status).reason


def fields_of(status: Status) -> dict[str, str]:
    return dict(info_of(status).metadata)


def reason_of_call(error: grpc.aio.AioRpcError) -> str:
    """Return the reason of a call that a server of ours refused."""
    status = rpc_status.from_call(error)
    assert status is not None, error
    return reason_of(status)
