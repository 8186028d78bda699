"""Every limit of a connection, and its names in gRPC.

Each limit is what one peer can make another hold or wait for; several are unlimited in gRPC by default.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from blindfit.algorithms.errors import ConfigError

MIB = 2**20
CALLS_BEING_REFUSED = 64


@dataclass(frozen=True)
class Limits:
    """The limits of one process; every limit is a positive number.

    Attributes:
        max_message_bytes: size of one gRPC message. A chunk and its envelope must fit.
        chunk_bytes: size of the payload of one frame.
        max_typed_message_bytes: size of one protocol message, put together from its chunks.
        window_bytes: size of the data that a stream may hold unacknowledged or unread before it waits.
        max_metadata_bytes: size of the headers of one call.
        concurrent_streams: number of calls at once on one connection.
        calls_of_a_peer: number of calls at once of one peer, over all its connections. Each peer has its own: no peer
            can take another's.
        connections: number of connections to one process, from anywhere; connections during the handshake count.
        connection_idle_s: time after which a connection without a call is closed.
        sessions: number of sessions at once that one coordinator has proposed.
        running: number of sessions of one coordinator that run at once; more of its sessions wait in a queue of their
            own.
        proposals_a_day: number of accepted proposals of one coordinator; the name of each is kept for ever.
        peer_bytes: size of the messages that one peer may make a process hold, over all sessions, unread or incomplete.
        unstarted_bytes: the same size for a session that has not started; later messages wait in their streams.
        connect_timeout_s: time from the first packet to an authenticated peer.
        keepalive_time_s: time after which a silent connection is pinged.
        keepalive_timeout_s: time without an answer to a ping after which the connection is given up.
        min_ping_interval_s: least time between a peer's pings; a peer that pings more often is cut off.
        reconnect_first_s: wait before the second attempt to connect; it doubles up to `reconnect_max_s`.
    """

    max_message_bytes: int = 4 * MIB
    chunk_bytes: int = MIB
    max_typed_message_bytes: int = 256 * MIB
    window_bytes: int = 8 * MIB
    max_metadata_bytes: int = 16 * 1024
    concurrent_streams: int = 64
    calls_of_a_peer: int = 64
    connections: int = 1024
    connection_idle_s: float = 300.0
    sessions: int = 32
    running: int = 4
    proposals_a_day: int = 5000
    peer_bytes: int = 512 * MIB
    unstarted_bytes: int = MIB
    connect_timeout_s: float = 10.0
    keepalive_time_s: float = 30.0
    keepalive_timeout_s: float = 10.0
    min_ping_interval_s: float = 15.0
    reconnect_first_s: float = 0.5
    reconnect_max_s: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ConfigError(f"limits.{field.name} is {getattr(self, field.name)}: it must be positive")
        self._must_fit("chunk_bytes", "max_message_bytes")
        self._must_fit("chunk_bytes", "window_bytes")
        self._must_fit("max_message_bytes", "max_typed_message_bytes")
        self._must_fit("max_typed_message_bytes", "peer_bytes")
        self._must_fit("min_ping_interval_s", "keepalive_time_s")
        self._must_fit("reconnect_first_s", "reconnect_max_s")

    def _must_fit(self, smaller: str, larger: str) -> None:
        if getattr(self, smaller) >= getattr(self, larger):
            raise ConfigError(
                f"limits.{smaller} is {getattr(self, smaller)}: "
                f"it must be less than limits.{larger}, {getattr(self, larger)}"
            )

    def calls_of(self, peers: int) -> int:
        """Return the number of calls at once in one process, for `grpc.aio.server(maximum_concurrent_rpcs=...)`.

        It is the sum of all peers' calls, and some calls for strangers and for peers above their limit, until they are
        refused.
        """
        return self.calls_of_a_peer * peers + CALLS_BEING_REFUSED


Options = list[tuple[str, int]]


def server_options(limits: Limits) -> Options:
    return [
        *_common_options(limits),
        ("grpc.max_concurrent_streams", limits.concurrent_streams),
        ("grpc.server_handshake_timeout_ms", _ms(limits.connect_timeout_s)),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.max_connection_idle_ms", _ms(limits.connection_idle_s)),
        ("grpc.http2.min_ping_interval_without_data_ms", _ms(limits.min_ping_interval_s)),
        # Two processes must not share a port by accident: each would get half of the calls.
        ("grpc.so_reuseport", 0),
    ]


def channel_options(limits: Limits) -> Options:
    return [
        *_common_options(limits),
        ("grpc.initial_reconnect_backoff_ms", _ms(limits.reconnect_first_s)),
        ("grpc.min_reconnect_backoff_ms", _ms(limits.connect_timeout_s)),
        ("grpc.max_reconnect_backoff_ms", _ms(limits.reconnect_max_s)),
        ("grpc.http2.max_pings_without_data", 0),  # 0: no limit, or a silent stream would lose its keepalive
        # The exchange and the measurement server's request ids decide what is sent again, not gRPC.
        ("grpc.enable_retries", 0),
        # Only the party's own settings may decide where a connection goes and how it behaves.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
    ]


def _common_options(limits: Limits) -> Options:
    return [
        ("grpc.max_send_message_length", limits.max_message_bytes),
        ("grpc.max_receive_message_length", limits.max_message_bytes),
        # Between the first of these and the second, gRPC refuses at random; with equal values the limit is exact.
        ("grpc.max_metadata_size", limits.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", limits.max_metadata_bytes),
        # By default gRPC reads ahead as far as the line is fast: 32 streams that nobody read took 1.1 GiB.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", limits.window_bytes),
        ("grpc.keepalive_time_ms", _ms(limits.keepalive_time_s)),
        ("grpc.keepalive_timeout_ms", _ms(limits.keepalive_timeout_s)),
        ("grpc.http2.ping_timeout_ms", _ms(limits.keepalive_timeout_s)),  # else a minute, in spite of the option above
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
