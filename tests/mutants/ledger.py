"""The measurement server: charges, stored answers, receipts, the privacy unit, and the database beneath."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LEDGER = "tests/privacy/test_ledger.py"
RELEASE = "tests/measurement/test_release.py"
CHARGES = "tests/privacy/test_charges.py"
ROLLBACKS = "tests/measurement/test_rollbacks.py"
TRAININGS = "tests/vertical/test_rollbacks.py"
DP_LR_TRAININGS = "tests/dp_lr/test_rollbacks.py"
UNIT = "tests/measurement/test_privacy_unit.py"
DISK = "tests/measurement/test_disk.py"
RACES = "tests/measurement/test_crashes_and_races.py"
JOINS = "tests/measurement/test_joins_do_not_tell.py"
SPLIT = "tests/walr_split/test_jobs.py"
UPLOADS = "tests/measurement/test_uploads.py"
INDEX = "tests/measurement/test_label_index.py"
ACCOUNTANT = "tests/privacy/test_accountant.py"
SPELLING = "tests/data/test_spelling.py"
LABELS = "tests/release_labels/test_release.py"
CHARGED_FIRST = "tests/release_labels/test_charged_first.py"
WHOLE = "tests/keeping/test_whole_ledger.py"

MUTANTS = (
    # --- charging
    Mutant(
        "charge-skipped",
        (1,),
        "parties/store/charging.py",
        "    transaction.add_entry(entry)\n",
        "",
        (f"{RELEASE}::test_a_release_is_charged_and_says_how",),
    ),
    Mutant(
        "half-a-transaction-stays",
        (1, 17),
        "parties/store/store.py",
        "                    with contextlib.suppress(sqlite3.Error):\n"
        '                        self._db.execute("ROLLBACK")\n',
        '                    self._db.execute("COMMIT")\n',
        (f"{DISK}::test_a_transaction_is_all_or_nothing",),
    ),
    Mutant(
        "answer-leaves-before-the-disk-has-it",
        (1, 17),
        "parties/store/store.py",
        'PRAGMA synchronous = FULL"',
        'PRAGMA synchronous = OFF"',
        (f"{DISK}::test_a_commit_waits_for_the_disk",),
    ),
    Mutant(
        "transactions-begin-as-readers",
        (2,),
        "parties/store/store.py",
        '"BEGIN IMMEDIATE"',
        '"BEGIN"',
        (f"{RACES}::test_the_last_unit_has_one_winner",),
    ),
    Mutant(
        "budget-not-checked-when-charging",
        (2,),
        "parties/measurement/service.py",
        "            self.check_kept(tally.rows_kept)\n"
        "            self.check_chargeable(transaction, request, dataset, consumer, cost)\n",
        "            self.check_kept(tally.rows_kept)\n",
        (f"{RACES}::test_the_last_unit_has_one_winner",),
    ),
    Mutant(
        "budget-compared-the-wrong-way",
        (2,),
        "algorithms/privacy/accountant.py",
        "budget_delta) <= budget_epsilon",
        "budget_delta) >= budget_epsilon",
        (f"{LEDGER}::test_a_budget_of_one_admits_one_release_of_one",),
    ),
    Mutant(
        "budget-forgets-what-was-spent",
        (2, 7),
        "algorithms/privacy/accountant.py",
        "composed_epsilon([*events, new_event], budget_delta)",
        "composed_epsilon([new_event], budget_delta)",
        (f"{LEDGER}::test_a_budget_of_one_admits_one_release_of_one",),
    ),
    Mutant(
        "budget-with-one-part-in-a-hundred-more",
        (2,),
        "algorithms/privacy/accountant.py",
        "BUDGET_SLACK = 1e-9",
        "BUDGET_SLACK = 1e-2",
        (LEDGER, f"{ACCOUNTANT}::test_a_budget_admits_exactly_one_release_of_its_size"),
    ),
    # --- asking again
    Mutant(
        "stored-answer-not-returned",
        (1, 3),
        "parties/measurement/service.py",
        "            stored = view.answer(consumer, request.request_id)\n            if stored is not None:\n",
        "            stored = None\n            if stored is not None:\n",
        (f"{RELEASE}::test_the_same_request_gets_the_same_answer_without_rows_or_charge",),
    ),
    Mutant(
        "two-draws-for-two-at-once",
        (1, 3),
        "parties/measurement/service.py",
        "            stored = transaction.answer(consumer, request.request_id)\n            if stored is not None:\n"
        "                return _stored_answer(stored, request)\n",
        "",
        (f"{RELEASE}::test_the_same_request_that_is_answered_at_this_moment",),
    ),
    Mutant(
        "known-id-with-other-content",
        (1, 3),
        "parties/measurement/charging.py",
        "if stored.request_digest != request_digest.hex():",
        "if not stored.request_digest:",
        (f"{RELEASE}::test_a_known_id_with_other_content_is_a_conflict",),
    ),
    Mutant(
        "other-rows-than-were-hashed",
        (3,),
        "algorithms/protocols/walr.py",
        "if self.content.digest() != self.request.content_sha256:",
        "if not self.content.digest():",
        ("tests/walr/test_protocol.py::test_a_fault_is_named_and_nothing_is_released",),
    ),
    Mutant(
        "released-labels-drawn-anew",
        (1,),
        "parties/measurement/label_index_frozen.py",
        "if digest.hexdigest() == sha256:",
        "if digest.hexdigest():",
        (f"{LABELS}::test_damaged_labels_are_never_drawn_anew",),
    ),
    # --- what counts
    Mutant(
        "a-row-counts-twice",
        (3,),
        "parties/measurement/label_index.py",
        "again: NDArray[np.bool_] = ((used[byte] & bit) != 0) & known",
        "again: NDArray[np.bool_] = ((used[byte] & bit) > bit) & known",
        (f"{INDEX}::test_an_id_twice_in_a_request",),
    ),
    Mutant(
        "one-row-more-of-a-person",
        (22,),
        "parties/measurement/label_index.py",
        "_count(self._counts.array, person[part]) < self._cap",
        "_count(self._counts.array, person[part]) <= self._cap",
        (f"{UNIT}::test_rows_of_a_person_beyond_m_never_count",),
    ),
    Mutant(
        "labels-of-withheld-rows-released",
        (22,),
        "algorithms/protocols/release_labels.py",
        "steps[eligible] = mechanism.draw(mechanism.grid.steps(labels[eligible]), uniform)",
        "steps[:] = mechanism.draw(mechanism.grid.steps(labels), uniform)",
        (f"{LABELS}::test_no_more_rows_of_a_person_are_ever_released",),
    ),
    Mutant(
        "a-budget-for-each-dataset",
        (22,),
        "parties/measurement/charging.py",
        "events = self.receipts.books.events(reader, dataset.population)",
        "events = self.receipts.books.events(reader, dataset.population) if len(self.datasets) == 1 else []",
        (f"{UNIT}::test_two_datasets_of_one_population_draw_on_one_budget",),
    ),
    Mutant(
        "an-older-snapshot-will-do",
        (22,),
        "parties/measurement/charging.py",
        "if request.snapshot != dataset.snapshot:",
        "if not request.snapshot:",
        (f"{UNIT}::test_a_changed_label_is_a_new_version_with_its_own_charge",),
    ),
    Mutant(
        "one-row-fewer-than-the-policy",
        (12,),
        "parties/measurement/charging.py",
        "if request.n_rows < self.policy.least_rows:",
        "if request.n_rows + 1 < self.policy.least_rows:",
        (f"{RELEASE}::test_least_rows",),
    ),
    Mutant(
        "rows-that-do-not-count-make-up-the-number",
        (12,),
        "parties/measurement/charging.py",
        "if rows_kept < self.policy.least_rows:",
        "if rows_kept < 1:",
        (f"{RELEASE}::test_least_rows_are_rows_that_count",),
    ),
    # --- uploads of ids
    Mutant(
        "known-ids-cost-more",
        (12,),
        "parties/measurement/label_index.py",
        "joined.again[part] = again\n",
        "joined.again[part[known]] = again[known]\n",
        (f"{JOINS}::test_an_upload_is_the_same_whoever_is_in_the_table",),
    ),
    Mutant(
        "rows-of-one-person-cost-less",
        (12,),
        "parties/measurement/label_index.py",
        "np.add.at(counts, person, np.ones(len(person), counts.dtype))",
        "counts[person[is_first]] += np.unique(person, return_counts=True)[1].astype(counts.dtype)",
        (f"{JOINS}::test_an_upload_is_the_same_whose_ever_the_rows_are",),
    ),
    Mutant(
        "unknown-ids-answered",
        (3, 12),
        "parties/measurement/uploads.py",
        "            joined.check()\n",
        "",
        (f"{UPLOADS}::test_every_other_end_of_an_upload_counts",),
    ),
    Mutant(
        "a-refusal-tells-who-is-in-the-table",
        (12,),
        "parties/measurement/uploads.py",
        "if self._dataset.settings.rows_are_public:",
        "if self._number:",
        (f"{JOINS}::test_a_refusal_is_the_same_for_whatever_private_reason",),
    ),
    Mutant(
        "uploads-without-an-answer-are-free",
        (12, 16),
        "parties/measurement/uploads.py",
        "transaction.add_upload(self._consumer, self._dataset.name, stamp())",
        "0",
        (UPLOADS,),
    ),
    Mutant(
        "many-uploads-at-once-pass-the-limit",
        (16,),
        "parties/measurement/uploads.py",
        "                self.check_quota(transaction)\n",
        "",
        (f"{UPLOADS}::test_many_at_once_do_not_pass_the_limit",),
    ),
    Mutant(
        "an-answer-forgives-all-uploads",
        (16,),
        "parties/store/store.py",
        '"DELETE FROM uploads WHERE number = ?"',
        '"DELETE FROM uploads WHERE number <= ?"',
        (f"{UPLOADS}::test_labels_that_are_asked_for_again_have_the_same_limits",),
    ),
    Mutant(
        "the-coordinator-is-told-how-many-rows-there-are",
        (12,),
        "parties/measurement/seat.py",
        "if dataset.settings.rows_are_public else {}",
        "if dataset.index.n_rows else {}",
        (f"{UPLOADS}::test_how_many_rows_there_are_is_told_only_where_it_is_public",),
    ),
    # --- two servers with shares of labels
    Mutant(
        "servers-of-shares-do-not-compare-requests",
        (12,),
        "algorithms/protocols/walr_split.py",
        "if mine.request_sha256 != theirs.request_sha256:",
        "if mine.split_id != theirs.split_id:",
        (f"{SPLIT}::test_a_consumer_that_sends_the_servers_different_rows_is_refused",),
    ),
    Mutant(
        "a-server-of-shares-charges-before-the-other-can-answer",
        (12,),
        "parties/measurement/desk.py",
        "await meeting.counted(await",
        "meeting.counted_before(await",
        (f"{SPLIT}::test_a_server_whose_rows_come_waits_for_the_other_whose_rows_do_not",),
    ),
    # --- who may ask
    Mutant(
        "any-consumer-may-ask",
        (15,),
        "parties/measurement/charging.py",
        "if dataset is None or consumer not in dataset.settings.consumers:",
        "if dataset is None:",
        (f"{RELEASE}::test_an_unknown_dataset_and_somebody_elses_are_refused_alike",),
    ),
    Mutant(
        "one-approval-for-many-answers",
        (15,),
        "parties/measurement/charging.py",
        "elif not made_before and reader.has_answered(consumer, request.session):",
        "elif not made_before and not request.session:",
        (f"{RELEASE}::test_one_approved_job_is_one_answer",),
    ),
    # --- receipts and rollbacks
    Mutant(
        "receipt-not-compared",
        (21,),
        "parties/store/own_receipts.py",
        "        compare_receipt(receipt, self._store)\n",
        "",
        (f"{ROLLBACKS}::test_a_deleted_database_is_noticed",),
    ),
    Mutant(
        "forged-receipt-believed",
        (21,),
        "parties/store/own_receipts.py",
        "not signing.verify(self.public_key, statement, signature):",
        "not statement:",
        (
            f"{ROLLBACKS}::test_a_foreign_or_forged_receipt_is_refused_and_freezes_nothing",
            f"{TRAININGS}::test_a_receipt_that_the_bank_did_not_sign_is_refused_and_freezes_nothing",
            f"{DP_LR_TRAININGS}::test_a_proposal_with_a_receipt_that_the_party_did_not_sign",
        ),
    ),
    Mutant(
        "peers-show-no-receipt",
        (21,),
        "algorithms/protocols/receipts.py",
        "ReceiptHeld(*held(population))",
        'ReceiptHeld(b"", b"")',
        (f"{TRAININGS}::test_every_rollback_is_noticed_and_charged_again",),
    ),
    Mutant(
        "a-coordinator-shows-no-receipt",
        (21,),
        "coordinator/session.py",
        "held = self.receipts.of(name, self._keys[name]) if name in self._keys else []",
        "held = [] if name in self._keys else []",
        (f"{DP_LR_TRAININGS}::test_a_job_after_a_restored_backup",),
    ),
    Mutant(
        "receipts-of-a-proposal-not-looked-at",
        (21,),
        "parties/sessions/sessions.py",
        "        self._take_receipts(proposal, proposed_by)\n",
        "",
        (f"{DP_LR_TRAININGS}::test_a_job_after_a_restored_backup",),
    ),
    Mutant(
        "no-receipt-to-the-coordinator-before-the-end",
        (21,),
        "parties/sessions/sessions.py",
        "error=error_codes.detail_of(session.error), receipt=receipt)",
        "error=error_codes.detail_of(session.error))",
        (f"{DP_LR_TRAININGS}::test_a_job_that_fails_after_its_charge_leaves_its_receipt",),
    ),
    Mutant(
        "acknowledged-without-charging",
        (21,),
        "parties/store/rollbacks.py",
        "                    transaction.add_entry(_recovered_entry(transaction, receipt, charge))\n",
        "",
        (
            f"{TRAININGS}::test_what_was_lost_counts_against_the_budget",
            f"{DP_LR_TRAININGS}::test_what_was_lost_counts_against_the_budget",
        ),
    ),
    Mutant(
        "a-ledger-that-is-behind-pays-again",
        (21,),
        "parties/training/budget.py",
        "        charging.check_rollbacks(transaction, asked.population)\n",
        "",
        (f"{TRAININGS}::test_a_training_that_was_paid_before_is_refused_too",),
    ),
    Mutant(
        "any-neighbours-compose",
        (5, 7),
        "algorithms/privacy/accountant.py",
        "    if len(bounded) > 1:\n",
        "    if not said:\n",
        (f"{ACCOUNTANT}::test_what_bounds_no_common_neighbours_is_told_what_to_do",),
    ),
    Mutant(
        "client-keeps-an-unsigned-receipt",
        (21,),
        "parties/store/receipts.py",
        "not signing.verify(key, statement, signature):",
        "not statement:",
        (
            "tests/measurement/test_receipts_held.py",
            f"{TRAININGS}::test_what_the_bank_did_not_sign_is_not_kept",
            f"{DP_LR_TRAININGS}::test_what_the_party_did_not_sign_is_not_kept",
        ),
    ),
    Mutant(
        "edited-ledger-used",
        (21,),
        "parties/node.py",
        "        check_chain(store)\n",
        "",
        (f"{WHOLE}::test_no_party_starts_with_it",),
    ),
    Mutant(
        "charged-though-an-entry-is-missing",
        (21,),
        "parties/store/charging.py",
        "    if reader.entries_missing():\n",
        "    if False:\n",
        (f"{WHOLE}::test_an_entry_that_goes_missing_meanwhile_ends_all_charges",),
    ),
    Mutant(
        "hashes-of-the-chain-not-checked",
        (21,),
        "algorithms/privacy/ledger.py",
        "if entry.hash != entry_hash(entry):",
        "if not entry.hash:",
        (f"{LEDGER}::test_a_changed_field_is_noticed_at_its_position",),
    ),
    Mutant(
        "a-fork-passes-for-the-ledger",
        (21,),
        "algorithms/privacy/ledger.py",
        "if entry is None or entry.hash != receipt.entry_hash:",
        "if entry is None:",
        (f"{LEDGER}::test_a_ledger_that_went_on_after_a_rollback_is_noticed",),
    ),
    Mutant(
        "what-was-lost-stands-for-what-came-after",
        (21,),
        "algorithms/privacy/ledger.py",
        'if entry.position > common and entry.kind != "release"]',
        "if entry.position > common]",
        (f"{ROLLBACKS}::test_a_fork_is_noticed_and_its_own_releases_stand_for_nothing",),
    ),
    Mutant(
        "different-charges-past-the-limit-forgotten",
        (7, 21),
        "algorithms/privacy/charges.py",
        "            _add(self._sums, charge.event)\n",
        "            pass\n",
        (CHARGES,),
    ),
    Mutant(
        "sums-rounded-down",
        (7, 21),
        "algorithms/privacy/charges.py",
        "return rounded(releases * cost * UNITS_OF_ONE)",
        "return max(1, math.floor(releases * cost * UNITS_OF_ONE))",
        (CHARGES,),
    ),
    Mutant(
        "receipts-of-any-size",
        (16, 27),
        "algorithms/privacy/charges.py",
        "(charge.event in self._counted or len(self._counted) < MOST_DIFFERENT)",
        "charge.event",
        (CHARGES,),
    ),
    Mutant(
        "what-was-recovered-is-rounded-up-before-it-is-taken-off",
        (7, 21),
        "algorithms/privacy/charges.py",
        "while _units(law, multiplier, rounded=math.floor) < units:",
        "while _units(law, multiplier) < units:",
        (CHARGES,),
    ),
    Mutant(
        "a-recovered-sum-recovered-again",
        (21,),
        "algorithms/privacy/charges.py",
        "            if charge.is_sum:\n                _add(less, charge.event, rounded=math.floor)",
        "            if charge.is_sum:\n                pass",
        (CHARGES,),
    ),
    Mutant(
        "charges-that-were-taken-back-stay-in-the-book",
        (1, 21),
        "parties/store/books.py",
        "if known is not None and reader.entry_at(known.position) != known:",
        "if known is not None and reader.entry_at(known.position) == known and not self._books:",
        (f"{RELEASE}::test_a_charge_that_was_taken_back_is_in_no_book",),
    ),
    Mutant(
        "a-noticed-rollback-forgotten",
        (21,),
        "parties/store/charging.py",
        "    noticed = reader.rollbacks()\n",
        "    noticed = reader.rollbacks()[:0]\n",
        (f"{ROLLBACKS}::test_a_deleted_database_is_noticed",),
    ),
    # --- the privacy unit, and what a fit may take
    Mutant(
        "two-spellings-are-two-persons",
        (3, 22),
        "parties/data/columns.py",
        "    texts = one_spelling(texts)\n",
        "",
        (f"{SPELLING}::test_a_person_of_four_spellings_has_one_cap",),
    ),
    Mutant(
        "two-spellings-in-a-request-are-two-rows",
        (3,),
        "parties/measurement/label_index.py",
        "one_spelling(pa.array(ids, pa.string()) if isinstance(ids, list) else ids)",
        "pa.array(ids, pa.string()) if isinstance(ids, list) else ids",
        (f"{SPELLING}::test_a_servers_join_finds_every_spelling",),
    ),
    Mutant(
        "rows-that-count-counted-after-the-fit",
        (25,),
        "parties/measurement/release_labels.py",
        "            self._charging.check_kept(self._count_kept())\n"
        "            self._remembered = self._releases.release(roll.request, self._dataset, self._consumer)\n",
        "            self._remembered = self._releases.release(roll.request, self._dataset, self._consumer)\n"
        "            self._charging.check_kept(self._count_kept())\n",
        (f"{CHARGED_FIRST}::test_too_few_rows_that_count_are_refused_before_a_prior_is_estimated",),
    ),
    Mutant(
        "rows-that-do-not-count-are-counted",
        (16, 22),
        "parties/measurement/label_index.py",
        "count += int((used & first).sum())",
        "count += int(used.sum())",
        (f"{INDEX}::test_rows_of_a_request_that_are_among_the_first_of_their_person",),
    ),
    Mutant(
        "labels-charged-after-the-fit",
        (1, 25),
        "parties/measurement/release_labels.py",
        "            charged = self._charge(request, dataset, consumer, directory.name)\n",
        "            fitted = fitted or self._fit_to_labels(request, dataset)\n"
        "            charged = self._charge(request, dataset, consumer, directory.name)\n",
        (
            f"{CHARGED_FIRST}::test_the_slower_of_two_that_take_the_rest_estimates_nothing",
            f"{CHARGED_FIRST}::test_the_charge_is_on_the_disk_when_a_prior_is_estimated",
        ),
    ),
    Mutant(
        "labels-charged-without-a-look-at-the-budget",
        (2,),
        "parties/measurement/release_labels.py",
        "            self._charging.check_chargeable(transaction, request, dataset, consumer, cost)\n",
        "",
        (f"{CHARGED_FIRST}::test_the_slower_of_two_that_take_the_rest_estimates_nothing",),
    ),
    Mutant(
        "a-lost-release-is-no-charge",
        (1, 17),
        "parties/measurement/release_labels.py",
        "    return reader.label_release(_digest(request)) is not None\n",
        "    stored = reader.label_release(_digest(request))\n"
        "    return stored is not None and not stored.is_under_way\n",
        (f"{CHARGED_FIRST}::test_one_that_is_killed_is_charged_once_and_never_drawn_again",),
    ),
    Mutant(
        "a-lost-answer-is-drawn-again",
        (1, 17),
        "parties/measurement/release_labels.py",
        "            if self._is_answered(transaction, request, consumer) or _is_charged(transaction, request):\n"
        "                return None\n",
        "            stored = transaction.label_release(digest)\n"
        "            if stored is not None:\n"
        "                again = replace(stored, directory=directory)\n"
        "                return Charged(request, dataset, cost, (b'', b''), again) if stored.is_under_way else None\n",
        (f"{CHARGED_FIRST}::test_the_same_that_lost_a_race_to_a_process_that_died",),
    ),
    Mutant(
        "labels-that-were-never-told-stay",
        (24,),
        "parties/measurement/release_labels.py",
        "for labels in stored if not labels.is_under_way}",
        "for labels in stored}",
        (f"{CHARGED_FIRST}::test_one_that_is_killed_is_charged_once_and_never_drawn_again",),
    ),
    Mutant(
        "what-is-under-way-is-told-as-lost",
        (17,),
        "parties/measurement/release_labels.py",
        "with _locked(directory, fcntl.LOCK_EX):",
        "with _locked(directory, fcntl.LOCK_SH):",
        (f"{CHARGED_FIRST}::test_who_asks_for_one_that_is_under_way_waits_and_gets_the_same",),
    ),
    Mutant(
        "fit-without-a-deadline",
        (16,),
        "parties/measurement/fitting.py",
        "ours.poll(self._limits.time_limit_s)",
        "ours.poll(None)",
        ("tests/release_labels/test_limits.py::test_a_limit_ends_it",),
    ),
    # --- files
    Mutant(
        "database-that-others-can-read",
        (19, 24),
        "parties/store/store.py",
        "os.O_CREAT | os.O_EXCL, 0o600))",
        "os.O_CREAT | os.O_EXCL, 0o644))",
        (f"{DISK}::test_only_its_owner_can_read_it",),
    ),
)
