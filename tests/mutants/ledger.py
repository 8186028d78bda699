"""The measurement server: charges, stored answers, receipts, the privacy unit, and the database beneath."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LEDGER = "tests/privacy/test_ledger.py"
RELEASE = "tests/measurement/test_release.py"
CHARGES = "tests/privacy/test_charges.py"
ROLLBACKS = "tests/measurement/test_rollbacks.py"
UNIT = "tests/measurement/test_privacy_unit.py"
DISK = "tests/measurement/test_disk.py"
RACES = "tests/measurement/test_crashes_and_races.py"
INDEX = "tests/measurement/test_label_index.py"
ACCOUNTANT = "tests/privacy/test_accountant.py"
LABELS = "tests/release_labels/test_release.py"

MUTANTS = (
    # --- charging
    Mutant(
        "charge-skipped",
        (1,),
        "parties/measurement/charging.py",
        "        transaction.add_entry(entry)\n        charges = ",
        "        charges = ",
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
        "parties/measurement/server.py",
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
        "parties/measurement/server.py",
        "            stored = snapshot.answer(consumer, request.request_id)\n            if stored is not None:\n",
        "            stored = None\n            if stored is not None:\n",
        (f"{RELEASE}::test_the_same_request_gets_the_same_answer_without_rows_or_charge",),
    ),
    Mutant(
        "two-draws-for-two-at-once",
        (1, 3),
        "parties/measurement/server.py",
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
        "again: NDArray[np.bool_] = (used[byte] & bit) != 0",
        "again: NDArray[np.bool_] = (used[byte] & bit) > bit",
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
        "events = self._books.events(reader, dataset.population)",
        "events = self._books.events(reader, dataset.population) if len(self.datasets) == 1 else []",
        (f"{UNIT}::test_two_datasets_of_one_population_draw_on_one_budget",),
    ),
    Mutant(
        "an-older-snapshot-will-do",
        (22,),
        "parties/measurement/charging.py",
        "if request.dataset_version != dataset.index.version:",
        "if not request.dataset_version:",
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
        "parties/measurement/charging.py",
        "            compare_receipt(receipt, self.store)\n",
        "",
        (f"{ROLLBACKS}::test_a_deleted_database_is_noticed",),
    ),
    Mutant(
        "forged-receipt-believed",
        (21,),
        "parties/measurement/charging.py",
        "if not signing.verify(self.key.public_bytes, request.receipt, request.receipt_signature):",
        "if not request.receipt:",
        (f"{ROLLBACKS}::test_a_foreign_or_forged_receipt_is_refused_and_freezes_nothing",),
    ),
    Mutant(
        "client-keeps-an-unsigned-receipt",
        (21,),
        "parties/store/receipts.py",
        "if not signing.verify(description.receipt_key, statement, signature):",
        "if not statement:",
        ("tests/measurement/test_receipts_held.py",),
    ),
    Mutant(
        "edited-ledger-used",
        (21,),
        "parties/measurement/charging.py",
        "        book.verify_chain(store.reader().ledger())\n",
        "",
        (f"{RELEASE}::test_a_ledger_that_was_edited_is_not_used",),
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
        "return math.ceil(releases * cost * UNITS_OF_ONE)",
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
        "a-recovered-sum-recovered-again",
        (21,),
        "algorithms/privacy/charges.py",
        "            if charge.is_sum:\n                _add(less, charge.event)\n",
        "            if charge.is_sum:\n                pass\n",
        (CHARGES,),
    ),
    Mutant(
        "charges-that-were-taken-back-stay-in-the-book",
        (1, 21),
        "parties/measurement/books.py",
        "if known is not None and reader.entry_at(known.position) != known:",
        "if known is not None and reader.entry_at(known.position) == known and not self._books:",
        (f"{RELEASE}::test_a_charge_that_was_taken_back_is_in_no_book",),
    ),
    Mutant(
        "a-noticed-rollback-forgotten",
        (21,),
        "parties/measurement/rollbacks.py",
        "    noticed = reader.rollbacks()\n",
        "    noticed = reader.rollbacks()[:0]\n",
        (f"{ROLLBACKS}::test_a_deleted_database_is_noticed",),
    ),
    Mutant(
        "a-known-name-pays",
        (1, 5),
        "parties/training/budget.py",
        "is_paid = bool(session.job.resumes) and any(",
        "is_paid = any(",
        ("tests/vertical/test_charging.py::test_a_known_name_pays_for_nothing",),
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
