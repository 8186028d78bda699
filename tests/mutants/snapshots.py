"""Dangerous changes of what a job reads, of what is charged for it, and of who chooses what is drawn."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SNAPSHOTS = "tests/snapshots/test_snapshots.py"
FIRST = "tests/snapshots/test_first_snapshots.py"
NEIGHBOURS = "tests/interference/test_neighbours.py"
CHARGING = "tests/vertical/test_charging.py"
SEATS = "tests/vertical/test_seats.py"
SCHEDULE = "tests/snapshots/test_schedule.py"
DRAW = "tests/protocols/test_draw.py"

MUTANTS = (
    Mutant(
        "a-party-that-is-up-undoes-what-was-published",
        (26,),
        "blindfit.parties.snapshots.snapshots:Snapshots.current",
        "        if rows[-1].number > self._then.get(dataset, 0):",
        "        if rows[-1].number < self._then.get(dataset, 0):",
        (
            "tests/snapshots/test_snapshots.py"
            "::test_a_party_that_is_up_does_not_undo_what_its_operator_published_in_other_words",
        ),
    ),
    Mutant(
        "a-snapshots-id-is-a-hash-of-its-content",
        (25,),
        "blindfit.parties.snapshots.snapshots:Snapshots._enter",
        "                id=new,\n",
        "                id=written.content_sha256[:32],\n",
        (f"{SNAPSHOTS}::test_ids_are_random_and_say_nothing_of_rows",),
    ),
    Mutant(
        "a-finished-snapshot-that-the-database-does-not-know-is-removed",
        (17,),
        "blindfit.parties.snapshots.directories:remove_unfinished",
        "    for row in rows:\n",
        "    for path in directory.iterdir():\n        if path.name not in known:\n            _remove(path)\n"
        "    for row in rows:\n",
        (f"{SNAPSHOTS}::test_an_older_database_that_is_put_back_destroys_no_snapshot",),
    ),
    Mutant(
        "rows-of-a-killed-publisher-stay",
        (24,),
        "blindfit.parties.snapshots.directories:remove_unfinished",
        "            _remove(directory / marked)\n",
        "            continue\n",
        (f"{SNAPSHOTS}::test_a_kill_while_publishing_leaves_nothing_that_counts",),
    ),
    Mutant(
        "rows-of-a-killed-publisher-stay-at-a-start",
        (24,),
        "blindfit.parties.node:PartyNode.start",
        "        party.snapshots.settle()\n",
        "",
        (f"{SCHEDULE}::test_a_start_removes_what_a_killed_publisher_left",),
    ),
    Mutant(
        "what-is-unknown-is-not-told",
        (24,),
        "blindfit.parties.snapshots.snapshots:Snapshots.settle",
        "            log.warning(unknown)\n",
        "            pass\n",
        (f"{SNAPSHOTS}::test_an_older_database_that_is_put_back_destroys_no_snapshot",),
    ),
    Mutant(
        "a-publish-waits-for-ever",
        (27,),
        "blindfit.parties.snapshots.directories:only_publisher",
        "if time.monotonic() >= ends:",
        "if time.monotonic() >= ends + 90:",
        (f"{SNAPSHOTS}::test_another_publish_is_not_waited_for_for_ever",),
    ),
    Mutant(
        "every-job-publishes",
        (25, 26),
        "blindfit.parties.snapshots.snapshots:Snapshots.published",
        "        found = self.current(dataset)\n        if found is None:\n            raise PolicyRefused",
        "        found = self.publish(dataset)\n        if found is None:\n            raise PolicyRefused",
        (f"{SNAPSHOTS}::test_jobs_read_the_same_until_its_owner_publishes_again",),
    ),
    Mutant(
        "a-job-makes-the-first-snapshot",
        (25,),
        "blindfit.parties.snapshots.snapshots:Snapshots.published",
        "        if found is None:\n            raise PolicyRefused",
        "        if found is None:\n            return self.publish(dataset)\n            raise PolicyRefused",
        (f"{NEIGHBOURS}::test_others_see_the_same[walr-never-published-shop]",),
    ),
    Mutant(
        "a-party-publishes-though-another-population-is-known",
        (25,),
        "blindfit.parties.snapshots.snapshots:Snapshots.make_next",
        "        if reason := self.waits_for_operator(dataset):\n",
        '        if reason := "":\n',
        (f"{FIRST}::test_a_party_leaves_a_second_population_to_its_operator",),
    ),
    Mutant(
        "a-file-in-two-populations",
        (22, 26),
        "blindfit.parties.snapshots.snapshots:Snapshots._enter",
        "            refuse_another_population(row, known)\n",
        "",
        (SNAPSHOTS,),
    ),
    Mutant(
        "a-renamed-population-has-a-fresh-budget",
        (22, 26),
        "blindfit.parties.snapshots.populations:refuse_another_population",
        "(k.dataset == row.dataset or k.content_sha256 == row.content_sha256)",
        "k.content_sha256 == row.content_sha256 and k.dataset != row.dataset",
        (f"{SNAPSHOTS}::test_a_population_that_is_renamed_is_no_fresh_budget",),
    ),
    Mutant(
        "duplicates-are-published",
        (3,),
        "blindfit.parties.snapshots.rows_file:write_rows",
        "    seen.refuse_duplicates(source)\n",
        "",
        (f"{SNAPSHOTS}::test_bad_rows_make_no_snapshot_and_leave_the_old_one",),
    ),
    Mutant(
        "a-resumed-training-reads-the-newest-snapshot",
        (17, 22),
        "blindfit.parties.snapshots.snapshots:Snapshots._row_of",
        "wanted = self._store.reader().session_snapshot(session)",
        "wanted = self._store.reader().snapshots()[-1].id",
        (f"{SNAPSHOTS}::test_what_a_session_read_it_reads_when_it_goes_on",),
    ),
    Mutant(
        "a-name-pays",
        (1, 26),
        "blindfit.parties.training.budget:charge_of",
        "        parts = (session.question, snapshot",
        "        parts = (session.id.encode(), snapshot",
        (f"{CHARGING}::test_the_same_question_is_charged_once_by_whatever_name_it_is_asked_or_resumed",),
    ),
    Mutant(
        "other-noise-is-not-charged",
        (26,),
        "blindfit.parties.training.budget:charge_of",
        "event.encode(), *(name.encode() for name in drawn))\n",
        "event.encode())\n",
        (f"{CHARGING}::test_another_snapshot_or_draw_is_another_question",),
    ),
    Mutant(
        "what-was-charged-is-charged-again",
        (26,),
        "blindfit.parties.training.budget:charge",
        "if not charging.paid(transaction, asked):",
        "if True:",
        (f"{CHARGING}::test_the_same_question_is_charged_once_by_whatever_name_it_is_asked_or_resumed",),
    ),
    Mutant(
        "one-jitter-in-all-sizes",
        (12,),
        "blindfit.parties.taylor.data_party:Taylor._jitter",
        'bytes.fromhex(session.published.id), struct.pack("<d", size)',
        'bytes.fromhex(session.published.id), struct.pack("<d", 0.0)',
        ("tests/vertical/test_seats.py::test_another_size_of_jitter_is_another_draw",),
    ),
    Mutant(
        "a-jitter-for-each-place-and-not-for-each-row",
        (12,),
        "blindfit.parties.taylor.data_party:Taylor._jitter",
        "drawn[np.maximum(positions, 0)]",
        "drawn[: len(positions)]",
        ("tests/vertical/test_seats.py::test_a_row_has_one_jitter_in_all_trainings_on_a_snapshot",),
    ),
    Mutant(
        "held-out-by-place",
        (5, 25),
        "blindfit.parties.training.split:hold_out",
        'return randomness.choose("split", ids.to_pylist(), job.split.test_fraction)',
        'return randomness.generator("split").random(len(ids)) < job.split.test_fraction',
        ("tests/dp_lr/test_neighbours.py",),
    ),
    Mutant(
        "an-opened-draw-is-not-held-to-its-commitment",
        (25,),
        "blindfit.algorithms.protocols.draw:step_4_key",
        "if len(opened) != KEY_BYTES or step_2_commit(owner, context, opened) != commitments[owner]:",
        "if len(opened) != KEY_BYTES:",
        (DRAW,),
    ),
    Mutant(
        "a-draw-that-one-has-lost-is-used",
        (25,),
        "blindfit.algorithms.protocols.draw:run_data_party",
        "if known is not None and all(digest == mine for digest in theirs):",
        "if known is not None:",
        (DRAW,),
    ),
    Mutant(
        "what-is-a-partys-own-is-told",
        (19, 25),
        "blindfit.parties.wire.error_codes:_row_of",
        'if isinstance(error, e.BlindfitError) and error.told == "own":',
        "if isinstance(error, e.CannotTakePart):",
        ("tests/wire/test_error_codes.py",),
    ),
)
