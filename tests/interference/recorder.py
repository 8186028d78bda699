"""Listens on the wires of a run in this process: records what each party sends to whom, normalised as it is sent.

Every call of Blindfit goes through a channel of parties/identity/connections.py. The server's owner sees its requests;
the caller sees its responses and errors. So the callers hear all there is. Progress is taken from the place where a
party reports it, because timing decides how much of it reaches a coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from google.rpc.status_pb2 import Status

from blindfit.coordinator.running.progress import EPOCH
from blindfit.parties.identity import connections
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.database import Store, Writes
from blindfit.protos import control_pb2, exchange_pb2, payload_pb2
from tests.interference.kinds import RELEASED, treatment_of
from tests.interference.views import DONE, FELL, RACING, Line, Record, Shown, shown
from tests.statuses import fields_of, reason_of


@dataclass
class Recorder:
    """
    Attributes:
        coordinator: name of the coordinator. It has no data, so what it sends is not recorded.
        session: name of the session that runs.
    """

    record: Record = field(default_factory=Record)
    coordinator: str = "coordinator"
    session: str = ""
    _chunks: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    _heard: dict[tuple[str, str, str], int] = field(default_factory=dict)  # frames are sent again after a cut

    def hear(self, sender: str, receiver: str, over: str, message: Any) -> None:
        if sender == self.coordinator or isinstance(message, exchange_pb2.Ack):
            return
        if over == "Waiting":  # timing decides how long a party waits; `report` records for whom and for what
            return
        if isinstance(message, exchange_pb2.Frame):
            self._frame(sender, receiver, message)
        elif isinstance(message, control_pb2.Event):
            self._event(sender, receiver, message)
        else:
            charged = self.record.charged
            line = Line(type(message).__name__, tuple(_fields(message, charged)))
            self.record.add(sender, receiver, over, line)

    def error(self, sender: str, receiver: str, over: str, status: Status) -> None:
        if over == "Open":  # a stream between parties: timing decides its end; the session's end is recorded
            return
        line = Line(f"error {reason_of(status)}", tuple(_error_fields(status, self.record.charged)))
        self.record.add(sender, receiver, over, line)

    def report(self, party: str, session: str, step: str, told: Sequence[object]) -> None:
        """Record progress. Steps whose number a release decides become one step; a loss is a field of its own."""
        with_loss, charged = EPOCH.fullmatch(step), self.record.charged
        loss = with_loss[2] if with_loss else None
        name = f"progress/epoch {with_loss[1]}" if with_loss else f"progress/{step}"
        stream = self.record.streams[party, self.coordinator, f"progress {session}"]
        fields = [shown(name, value, charged=charged) for value in told]
        if loss is not None:
            fields.append(shown("progress/hold-out loss", loss, charged=charged))
        line = Line(name, tuple(fields))
        if not (stream and stream[-1].what == name and charged and treatment_of(name) is RELEASED):
            stream.append(line)

    # --- between parties

    def _frame(self, sender: str, receiver: str, frame: exchange_pb2.Frame) -> None:
        stream = (sender, receiver, frame.session)
        body = frame.WhichOneof("body")
        if body == "hello" or frame.sequence <= self._heard.get(stream, 0):
            return
        self._heard[stream] = frame.sequence
        if body == "abort":
            return  # the sender's end gives the reason; timing decides who hears of it first
        data = self._chunks.pop(stream, b"") + frame.chunk.data
        if frame.chunk.last:
            self.record.add(sender, receiver, f"Exchange {frame.session}", _message_line(data, self.record.charged))
        else:
            self._chunks[stream] = data

    # --- to the coordinator

    def _event(self, sender: str, receiver: str, event: control_pb2.Event) -> None:
        """Record only the last event: every session has the same states before it, and `report` records progress."""
        body = event.WhichOneof("body")
        if body == "summary":
            fields = [_parameter(item, self.record.charged) for item in event.summary.items]
            self._end(sender, receiver, "", Line(DONE, tuple(fields)))
        elif body == "error":
            code = reason_of(event.error)
            line = Line(f"ends with {code}", tuple(_error_fields(event.error, self.record.charged)))
            self._end(sender, receiver, code, Line(FELL) if code in RACING else line)

    def _end(self, sender: str, receiver: str, code: str, line: Line) -> None:
        if (self.session, sender) not in self.record.ends:  # a patient coordinator looks twice
            self.record.ends[self.session, sender] = code
            self.record.add(sender, receiver, f"end {self.session}", line)


def _over(path: str) -> str:
    """Return the name under which a call is recorded. A client calls a measurement server in order, so
    the order shows.
    """
    service, _, method = path.removeprefix("/blindfit.v1.").partition("/")
    return service if service == "Measurement" else method


def _message_line(data: bytes, charged: bool) -> Line:
    message = payload_pb2.Message.FromString(data)
    fields = [shown(f"{message.kind}.size", len(data), charged=charged)]
    for item in message.fields:
        name, kind = f"{message.kind}.{item.name}", item.WhichOneof("value") or ""
        if kind == "parameters":
            fields += [_parameter(p, charged, f"{name}/") for p in item.parameters.items]
        else:
            fields.append(shown(name, _value_of(getattr(item, kind)), charged=charged, kind=kind))
    return Line(message.kind, tuple(fields))


def _parameter(item: payload_pb2.Parameter, charged: bool, prefix: str = "summary/") -> Shown:
    value = getattr(item, item.WhichOneof("value") or "text")
    return shown(prefix + item.name, _value_of(value), charged=charged)


def _value_of(value: Any) -> Any:
    """Return the value in a message of payload.proto."""
    if isinstance(value, payload_pb2.TextList):
        return tuple(value.items)
    if isinstance(value, payload_pb2.RealTensor):
        return np.frombuffer(value.data, "<f8").reshape(tuple(value.shape))
    if isinstance(value, payload_pb2.IntegerTensor):
        return np.frombuffer(value.data, f"<i{value.width_bytes}").reshape(tuple(value.shape))
    if hasattr(value, "width_bytes"):
        return np.frombuffer(value.data, "u1").reshape(-1, value.width_bytes)
    return value.data if hasattr(value, "data") else value


def _fields(message: Any, charged: bool) -> Iterator[Shown]:
    """Yield the fields of a service's message at all depths; a name is that of the innermost message."""
    for descriptor, value in message.ListFields():
        name = f"{type(message).__name__}.{descriptor.name}"
        if hasattr(value, "ListFields"):
            yield from _fields(value, charged)
        else:
            yield shown(name, list(value) if isinstance(value, MutableSequence) else value, charged=charged)


def _error_fields(status: Status, charged: bool) -> Iterator[Shown]:
    """Yield the fields from which the error's sentence and its other details are made."""
    for name, text in sorted(fields_of(status).items()):
        yield shown(f"error.{name}", text, charged=charged)


# --- on the wires ---------------------------------------------------------------------------------------


class _Tapped:
    """A gRPC channel whose calls are recorded."""

    def __init__(self, channel: Any, recorder: Recorder, caller: str, peer: str) -> None:
        self._channel, self._recorder, self._caller, self._peer = channel, recorder, caller, peer

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._channel, name)
        return self._multicallable(attribute) if name.endswith(("_unary", "_stream")) else attribute

    def _multicallable(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def tapped(path: str, request_serializer: Any, response_deserializer: Any, **how: Any) -> Any:
            over = _over(path)

            def serialise(message: Any) -> bytes:
                self._recorder.hear(self._caller, self._peer, over, message)
                return request_serializer(message)

            def deserialise(data: bytes) -> Any:
                message = response_deserializer(data)
                self._recorder.hear(self._peer, self._caller, over, message)
                return message

            call_of = make(path, serialise, deserialise, **how)

            def call(*arguments: Any, **options: Any) -> Any:
                call = call_of(*arguments, **options)
                call.add_done_callback(lambda done: self._ended(over, done))
                return call

            return call

        return tapped

    def _ended(self, over: str, call: Any) -> None:
        for key, value in _value_now(call.trailing_metadata()) or ():
            if key == "grpc-status-details-bin":
                self._recorder.error(self._peer, self._caller, over, Status.FromString(value))


def _value_now(value: Any) -> Any:
    """Return the result of a coroutine that does not wait."""
    try:
        value.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a call has ended without its metadata")


@contextmanager
def listening(record: Record) -> Iterator[Recorder]:
    """Record every party of this process."""
    recorder = Recorder(record)
    open_channel, report, transaction = connections.channel, Session.report, Store.transaction

    def channel(identity: Any, peer: str, *rest: Any) -> Any:
        return _Tapped(open_channel(identity, peer, *rest), recorder, identity.name, peer)

    def told(session: Any, step: str, done: int = 0, total: int = 0, unit: str = "", waiting_for: str = "") -> None:
        recorder.report(session.me.name, session.id, step, (done, total, unit, waiting_for))
        report(session, step, done, total, unit, waiting_for)

    @contextmanager
    def committed(store: Store) -> Iterator[Writes]:
        with transaction(store) as open_transaction:
            yield open_transaction
        recorder.record.charged = recorder.record.charged or store.reader().last_entry() is not None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "channel", channel)
        patch.setattr(Session, "report", told)
        patch.setattr(Store, "transaction", committed)
        yield recorder
