"""The wire: codec, frames, exchange, guard, limits, identity, handshake, logs."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CODEC = "tests/wire/test_codec.py"
FRAMES = "tests/wire/test_frames.py"
EXCHANGE = "tests/wire/test_exchange.py"
SESSIONS = "tests/wire/test_sessions_on_disk.py"
GUARD = "tests/wire/test_guard.py"
LIMITS = "tests/wire/test_limits.py"
HANDSHAKE = "tests/wire/test_handshake.py"
CONNECTIONS = "tests/identity/test_connections.py"
IDENTITY_FILES = "tests/identity/test_identity_files.py"

MUTANTS = (
    # --- what is read
    Mutant(
        "numbers-that-are-not-finite",
        (14,),
        "parties/wire/codec.py",
        '"<f8").astype(np.float64, copy=False)\n    if not np.isfinite(array).all():',
        '"<f8").astype(np.float64, copy=False)\n    if np.isnan(array).any():',
        (f"{CODEC}::test_a_malformed_field_is_named",),
    ),
    Mutant(
        "data-of-another-length",
        (14,),
        "parties/wire/codec.py",
        "elements * np.dtype(dtype).itemsize != len(data):",
        "elements * np.dtype(dtype).itemsize > len(data):",
        (f"{CODEC}::test_a_malformed_field_is_named",),
    ),
    Mutant(
        "an-element-outside-the-field",
        (14,),
        "parties/wire/codec.py",
        "int(shares.max()) >= MODULUS:",
        "int(shares.max()) > MODULUS:",
        (f"{CODEC}::test_a_malformed_field_is_named",),
    ),
    Mutant(
        "a-step-that-was-not-expected",
        (12, 14),
        "parties/wire/codec.py",
        "if message.kind != kind.__name__:",
        "if not message.kind:",
        (f"{CODEC}::test_another_message_is_an_unexpected_step",),
    ),
    Mutant(
        "received-text-executed",
        (20,),
        "parties/files/written.py",
        'return json.loads(path.read_text("utf-8"))',
        'return eval(path.read_text("utf-8"))',
        ("tests/wire/test_nothing_is_executed.py",),
    ),
    # --- frames and cuts
    Mutant(
        "frames-that-leave-a-gap",
        (18,),
        "parties/wire/frames.py",
        "self._require(frame.sequence == self.received + 1,",
        "self._require(frame.sequence >= self.received + 1,",
        (f"{FRAMES}::test_a_frame_that_breaks_a_rule_is_refused_and_changes_nothing",),
    ),
    Mutant(
        "duplicate-frames-delivered",
        (3, 18),
        "parties/wire/frames.py",
        "            return  # sent again after a cut\n",
        "            self.received = frame.sequence - 1\n",
        (f"{FRAMES}::TestSchedules",),
    ),
    Mutant(
        "a-sender-that-began-anew-not-noticed",
        (17, 18),
        "parties/wire/frames.py",
        'self._require(self._outbox in ("", outbox),',
        'self._require(self._outbox in ("", outbox) or self.received > 0,',
        (f"{EXCHANGE}::test_a_sender_that_starts_the_session_anew_is_found_out",),
    ),
    Mutant(
        "a-receiver-that-lost-frames-not-noticed",
        (17, 18),
        "parties/wire/frames.py",
        "if received < self._first_kept - 1:",
        "if received < 0:",
        (f"{EXCHANGE}::test_a_receiver_that_starts_the_session_anew_is_found_out",),
    ),
    Mutant(
        "frames-let-go-before-they-arrived",
        (17, 18),
        "parties/wire/frames.py",
        "self._kept[0].sequence <= received:",
        "self._kept[0].sequence <= received + 1:",
        (f"{FRAMES}::TestSchedules",),
    ),
    # --- who may
    Mutant(
        "any-known-peer-may-call-anything",
        (15,),
        "parties/wire/guard.py",
        "if self._roles.get(caller) not in ALLOWED.get(method, frozenset()):",
        "if caller not in self._roles:",
        (f"{GUARD}::test_exactly_the_cells_of_the_table_pass",),
    ),
    Mutant(
        "revoked-clients-stay",
        (15,),
        "parties/identity/connections.py",
        "if identity.revoked and identity.revoked.has(certificate):",
        "if identity.revoked is None and certificate is None:",
        (f"{CONNECTIONS}::test_a_revoked_client_is_refused_even_on_a_connection_it_had",),
    ),
    Mutant(
        "revoked-servers-stay",
        (15,),
        "parties/identity/connections.py",
        "if identity.revoked and identity.revoked.has(leaf):",
        "if identity.revoked is None and leaf is None:",
        (f"{CONNECTIONS}::test_a_revoked_server",),
    ),
    Mutant(
        "any-party-may-answer",
        (15,),
        "parties/identity/connections.py",
        "    if name != peer:\n",
        "    if not peer:\n",
        (f"{CONNECTIONS}::test_another_partys_server_even_if_its_certificate_lists_the_name_as_a_host",),
    ),
    Mutant(
        "expired-clients-stay",
        (15,),
        "parties/identity/connections.py",
        "if certificate.not_valid_after_utc <= datetime.now(UTC):",
        "if certificate.not_valid_after_utc <= certificate.not_valid_before_utc:",
        (f"{CONNECTIONS}::test_a_caller_without_a_usable_certificate",),
    ),
    Mutant(
        "an-old-list-of-the-revoked",
        (15,),
        "parties/identity/connections.py",
        "if ends is None or ends <= datetime.now(UTC):",
        "if ends is None:",
        (f"{IDENTITY_FILES}::test_a_revocation_list_ages_and_changes_while_it_is_in_use",),
    ),
    Mutant(
        "strangers-in-a-session",
        (15,),
        "parties/wire/exchange.py",
        "if channel is None or sender not in channel.peers:",
        "if channel is None:",
        (f"{EXCHANGE}::test_a_stranger_learns_nothing_of_a_session",),
    ),
    # --- limits
    Mutant(
        "too-many-calls-of-one-caller",
        (16,),
        "parties/wire/guard.py",
        "if self._calls[caller] >= CALLS_PER_CALLER:",
        "if self._calls[caller] >= 16 * CALLS_PER_CALLER:",
        (f"{GUARD}::test_a_caller_with_too_many_calls_is_refused_and_others_are_served",),
    ),
    Mutant(
        "too-many-sessions",
        (16,),
        "parties/sessions/sessions.py",
        ">= self._limits.sessions:",
        "> self._limits.sessions:",
        (f"{LIMITS}::test_too_many_sessions",),
    ),
    Mutant(
        "messages-of-any-size",
        (16,),
        "parties/wire/limits.py",
        '("grpc.max_receive_message_length", limits.max_message_bytes)',
        '("grpc.max_receive_message_length", -1)',
        (f"{LIMITS}::test_a_message_too_large",),
    ),
    Mutant(
        "chunks-without-end",
        (14, 16),
        "parties/wire/frames.py",
        "if len(self._part) + len(chunk.data) > self.limits.max_typed_message_bytes:",
        "if len(chunk.data) > self.limits.max_typed_message_bytes:",
        (f"{FRAMES}::test_a_frame_past_a_limit_is_refused",),
    ),
    Mutant(
        "a-full-inbox-reads-on",
        (14, 16),
        "parties/wire/exchange.py",
        "                await arrivals.changed.until(lambda: mine.done() or not arrivals.inbox.is_full)\n",
        "",
        (f"{EXCHANGE}::test_who_does_not_read_holds_the_sender_back",),
    ),
    Mutant(
        "a-stream-without-a-hello-stays",
        (16,),
        "parties/wire/exchange.py",
        "async with asyncio.timeout(HELLO_S):",
        "async with asyncio.timeout(None):",
        (f"{LIMITS}::test_a_stream_that_says_nothing",),
    ),
    # --- versions
    Mutant(
        "other-parameters-ignored",
        (23,),
        "algorithms/protocols/handshake.py",
        "if type(ours) is not type(theirs) or ours != theirs:",
        "if type(ours) is not type(theirs):",
        (HANDSHAKE,),
    ),
    Mutant(
        "other-versions-ignored",
        (23,),
        "algorithms/protocols/handshake.py",
        '    _require_equal("protocol version", mine.version, theirs.version, peer)\n',
        "",
        (f"{HANDSHAKE}::test_another_version_is_one_line_on_both_sides_even_if_all_else_differs",),
    ),
    Mutant(
        "requests-of-another-version",
        (23,),
        "algorithms/protocols/walr.py",
        '        request.protocol_version == PROTOCOL_VERSION,\n        "protocol_version",\n',
        '        bool(request.protocol_version),\n        "protocol_version",\n',
        ("tests/walr/test_steps.py::test_a_wrong_number_is_refused_by_name",),
    ),
    # --- texts
    Mutant(
        "exception-text-for-the-peer",
        (14, 19),
        "parties/wire/guard.py",
        "error_codes.name_of(detail.code), trailing_metadata=metadata)",
        "str(error), trailing_metadata=metadata)",
        (f"{GUARD}::test_a_foreign_exception_leaves_without_a_word",),
    ),
    Mutant(
        "exception-text-in-the-log",
        (19,),
        "parties/wire/guard.py",
        "error=type(error).__name__, where=where(error))",
        "error=type(error).__name__, where=repr(error))",
        (f"{GUARD}::test_a_foreign_exception_leaves_without_a_word",),
    ),
    Mutant(
        "private-key-in-a-text",
        (19,),
        "parties/identity/connections.py",
        "    key_pem: bytes = field(repr=False)\n",
        "    key_pem: bytes = field()\n",
        (f"{IDENTITY_FILES}::test_a_good_identity_knows_its_name_and_shows_no_secret",),
    ),
    Mutant(
        "keys-that-others-can-use",
        (19, 24),
        "parties/files/private_files.py",
        "if status.st_mode & 0o777 & ~allowed & ~0o100:",
        "if status.st_mode & 0o002:",
        ("tests/identity/test_authority.py::test_a_key_that_others_can_use_is_refused",),
    ),
    # --- what no table lists
    Mutant(
        "sent-without-a-line-in-the-table",
        (12, 14),
        "parties/wire/exchange.py",
        "        self._gate.check_sent(message, to)\n",
        "",
        (f"{EXCHANGE}::test_what_no_table_lists_does_not_leave",),
    ),
    Mutant(
        "taken-in-without-a-line-in-the-table",
        (12, 14),
        "parties/wire/frames.py",
        "        self.check_name(step)\n",
        "",
        (f"{EXCHANGE}::test_what_arrives_and_no_table_lists_is_its_senders_fault",),
    ),
    Mutant(
        "unread-messages-at-a-good-end",
        (14,),
        "parties/wire/exchange.py",
        "            self.require_all_read()\n        self._is_closed = True\n",
        "        self._is_closed = True\n",
        (f"{EXCHANGE}::test_a_message_that_nobody_read_is_no_good_end",),
    ),
    # --- names of sessions
    Mutant(
        "a-name-used-again-after-a-restart",
        (1, 17),
        "parties/sessions/sessions.py",
        "if session in self._sessions or self._store.reader().session(session) is not None:",
        "if session in self._sessions:",
        (f"{SESSIONS}::test_a_name_is_used_once_also_after_a_restart",),
    ),
    Mutant(
        "a-second-start-ends-the-firsts-sessions",
        (17,),
        "parties/node.py",
        "        self.port = self._bind()  # a second start by mistake ends here, and has changed nothing\n"
        "        party.sessions.end_what_ran_before()\n",
        "        party.sessions.end_what_ran_before()\n        self.port = self._bind()\n",
        (f"{SESSIONS}::test_a_second_start_by_mistake_changes_nothing",),
    ),
)
