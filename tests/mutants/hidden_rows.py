"""Rows that a measurement server does not read."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STEPS, JOBS = "tests/walr_encrypted/test_steps.py", "tests/walr_encrypted/test_jobs.py"
SHORT, SHARED = "tests/walr_shares/test_short_rows.py", "tests/walr_shares/test_protocol.py"
FILES = "tests/export/test_encrypted_rows.py"
COALITIONS = "tests/attacks/test_walr_coalitions.py"
SHARED_JOBS = "tests/walr_shares/test_jobs.py"

MUTANTS = (
    Mutant(
        "the-work-on-encrypted-rows-tells-how-many-labels-are-1",
        (12,),
        "blindfit.algorithms.protocols.walr.encrypted_rows:EncryptedTally._multiply",
        "for label in range(CHOICES):",
        "for label in range(1, CHOICES):",
        (f"{STEPS}::test_the_work_is_the_same_whatever_the_labels",),
    ),
    Mutant(
        "an-encrypted-sum-without-noise",
        (4, 5),
        "blindfit.algorithms.protocols.walr.encrypted_rows:EncryptedTally.released",
        "self.request.frac_bits, bound) + noise",
        "self.request.frac_bits, bound)",
        (f"{STEPS}::test_the_released_integers_are_those_of_a_server_that_reads_the_rows",),
    ),
    Mutant(
        "a-key-that-nobody-checked",
        (9,),
        "blindfit.algorithms.protocols.walr.encrypted_rows:step_2_key",
        "    check_public_key(key, maker_trusted=False, culprit=consumer)\n",
        "",
        (f"{STEPS}::test_a_weak_key_is_refused",),
    ),
    Mutant(
        "an-auditor-takes-the-active-partys-word-for-an-encrypted-sum",
        (21,),
        "blindfit.coordinator.verify.checks:_sum",
        "    if opening is not None:\n        consumer",
        "    if False:\n        consumer",
        (f"{FILES}::test_a_sealed_lie_is_noticed",),
    ),
    Mutant(
        "an-auditor-takes-any-key-of-an-encrypted-sum",
        (9, 21),
        "blindfit.algorithms.protocols.walr.encrypted_rows:step_6_check_opening",
        "    key = step_2_key(request, consumer=consumer)  # first: a power under a huge one takes for ever\n",
        "    key = PublicKey.from_bytes(request.public_key)\n",
        (f"{FILES}::test_a_sealed_lie_is_noticed",),
    ),
    Mutant(
        "an-active-party-is-its-own-measurement-server",
        (21,),
        "blindfit.coordinator.verify.server_checks:_names",
        "    require(server.name != party,",
        "    require(True,",
        ("tests/export/test_own_server.py::test_a_party_is_not_its_own_measurement_server",),
    ),
    Mutant(
        "rows-may-be-hidden-where-no-policy-says-so",
        (5, 15),
        "blindfit.parties.measurement.ways.encrypted_rows:AtServer.check",
        "        check_is_allowed(self.call.service, self.request, self.call.consumer)\n",
        "",
        (f"{JOBS}::test_a_consumer_that_encrypts_rows_in_a_job_that_does_not_say_so_is_refused",),
    ),
    Mutant(
        "the-salt-of-hidden-rows-goes-along",
        (12,),
        "blindfit.algorithms.protocols.walr.encrypted_rows:step_1_open",
        'slot_bits=slot_bits, content_salt=b"")',
        "slot_bits=slot_bits)",
        (f"{STEPS}::test_the_request_is_named_by_its_key_and_keeps_its_salt",),
    ),
    Mutant(
        "rows-in-shares-of-any-length",
        (5, 13),
        "blindfit.algorithms.protocols.walr.shared_rows:Server._require_zero",
        "        if value.any():",
        "        if not value.size:",
        (f"{SHARED}::test_a_shop_that_sends_both_a_longer_row_is_refused_by_both",),
    ),
    Mutant(
        "huge-rows-whose-squares-are-small-modulo-p",
        (5, 11),
        "blindfit.algorithms.sharing.short_rows:Verifier.of_bits",
        "return are_bits + difference.total()",
        "return are_bits + difference.total() - difference.total()",
        (f"{SHORT}::test_huge_numbers_whose_squares_are_small_modulo_p_are_noticed",),
    ),
    Mutant(
        "bits-of-any-size",
        (5, 11),
        "blindfit.algorithms.sharing.short_rows:Verifier.of_bits",
        "return are_bits + difference.total()",
        "return difference.total()",
        (f"{SHORT}::test_bits_that_are_no_bits_are_noticed",),
    ),
    Mutant(
        "the-zero-has-no-mac",
        (13,),
        "blindfit.algorithms.protocols.walr.shared_rows:Server._require_zero",
        "        self.opened.add(value, total)\n",
        "",
        (f"{SHARED}::test_a_server_that_hides_a_long_row_is_caught_by_the_mac",),
    ),
    Mutant(
        "masks-serve-twice",
        (12,),
        "blindfit.parties.measurement.ways.shared_rows:Meeting.add_up",
        "        self._is_used = True\n",
        "",
        (f"{SHARED_JOBS}::test_masks_serve_once",),
    ),
    Mutant(
        "shares-of-two-dealings-are-added",
        (1,),
        "blindfit.algorithms.protocols.walr.two_servers:step_2_difference",
        "if mine.answered_in != theirs.answered_in:",
        "if False:",
        (f"{SHARED_JOBS}::test_where_one_server_has_lost_its_answer_both_refuse",),
    ),
    Mutant(
        "answers-are-not-reshared",
        (12,),
        "blindfit.algorithms.protocols.walr.shared_rows:step_6_reshare",
        "return f.subtract(share, u) if place else f.add(share, u)",
        "return share if place < 2 else u",
        (f"{COALITIONS}::test_the_key_node_with_the_active_party_reads_no_label_once_answers_are_reshared",),
    ),
    Mutant(
        "one-share-of-zero-serves-two-sums",
        (12,),
        "blindfit.algorithms.protocols.walr.shared_rows:step_6_zero_share_seed",
        'hmac.digest(b"".join(parts), context, "sha256")',
        'hmac.digest(b"shares of zero", context[:0], "sha256")',
        (f"{SHARED}::test_shares_of_zero_serve_one_sum_and_need_both_servers",),
    ),
    Mutant(
        "a-report-says-of-hidden-scores-that-servers-learnt-them",
        (12,),
        "blindfit.coordinator.evaluate.report:_servers_learnt",
        "    if trust == ENCRYPTED_ROWS:\n",
        "    if not trust:\n",
        ("tests/report/test_evaluate.py::test_what_servers_learnt_hangs_on_how_they_are_trusted",),
    ),
)
