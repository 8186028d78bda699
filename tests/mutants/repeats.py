"""Dangerous changes of what repeats give away, and of how it is counted."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ROWS = "tests/predict/test_scored_rows.py"
ATTACKS = "tests/attacks/test_score_equations.py"
LEAKS = "tests/statistics/test_score_leaks.py"
REPEATS = "tests/vertical/test_repeats.py"
MATCHES = "tests/attacks/test_matches_counted.py"
FITS = "tests/account/test_fits.py"
MEMBERSHIP = "tests/account/test_membership.py"
MIGRATIONS = "tests/store/test_migrations.py"
POLICY = "tests/approval/test_policy.py"

MUTANTS = (
    # --- features, by scores
    Mutant(
        "scores-leave-uncounted",
        (28,),
        "blindfit.parties.vertical.scored_rows:give_scores",
        "    await asyncio.to_thread(quota.count, session, part, rows)\n",
        "",
        (f"{ROWS}::test_nothing_leaves_before_it_is_counted", ATTACKS),
    ),
    Mutant(
        "scores-leave-before-they-are-counted",
        (28,),
        "blindfit.parties.vertical.scored_rows:give_scores",
        "    await asyncio.to_thread(quota.count, session, part, rows)\n"
        "    await predict.run_passive(own, seats.me, seats.passives, seats.chain[0], session.channel)\n",
        "    await predict.run_passive(own, seats.me, seats.passives, seats.chain[0], session.channel)\n"
        "    await asyncio.to_thread(quota.count, session, part, rows)\n",
        (f"{ROWS}::test_nothing_leaves_before_it_is_counted",),
    ),
    Mutant(
        "one-model-too-many",
        (28,),
        "blindfit.parties.vertical.scored_rows:ScoreQuota._check",
        "len(before.models) and before.models.max() >= models",
        "len(before.models) and before.models.max() > models",
        (f"{ATTACKS}::test_fewer_models_than_half_of_the_columns_and_no_more",),
    ),
    Mutant(
        "as-many-models-as-an-operator-declares",
        (28,),
        "blindfit.parties.snapshots.scored:refuse_weak_rows",
        "if models > content.models:",
        "if models > 10 * content.models:",
        (f"{ATTACKS}::test_more_models_than_the_rows_allow_are_not_published",),
    ),
    Mutant(
        "as-many-models-as-columns",
        (28,),
        "blindfit.algorithms.statistics.vertical.score_leaks:RowContent.max_models",
        "max(self.columns - 1, 0) // 2",
        "max(self.columns - 1, 0)",
        (LEAKS,),
    ),
    Mutant(
        "rows-that-were-counted-are-forgotten",
        (28,),
        "blindfit.parties.vertical.scored_rows:ScoreQuota._write",
        "                here |= unpack(entry.people, len(known))\n",
        "                here |= False\n",
        (f"{ROWS}::test_rows_are_counted_each_alone", f"{ROWS}::test_a_smaller_question_forgets_no_row"),
    ),
    Mutant(
        "another-partys-model-counts-for-its-own-rows",
        (28,),
        "blindfit.parties.vertical.scored_rows:_counts",
        "here if to_same and entry.people else np.ones_like(here)",
        "here",
        ("tests/attacks/test_scored_by_others.py",),
    ),
    Mutant(
        "exact-scores-are-no-bits",
        (28,),
        "blindfit.parties.vertical.scored_rows:ScoreQuota._check",
        "len(before.bits) and most + asked.bits > self._most_bits",
        "len(before.bits) and most > self._most_bits",
        (f"{ROWS}::test_scores_that_were_exact_leave_no_room_for_others",),
    ),
    Mutant(
        "columns-that-one-score-tells-are-scored",
        (28,),
        "blindfit.parties.snapshots.scored:refuse_weak_rows",
        "if weakness := content.weakness():",
        "if (weakness := content.weakness()) and not models:",
        (ATTACKS, REPEATS),
    ),
    Mutant(
        "all-columns-may-be-binary",
        (28,),
        "blindfit.algorithms.statistics.vertical.score_leaks:RowContent.weakness",
        "if not self.continuous:",
        "if not self.columns:",
        (LEAKS, f"{ATTACKS}::test_columns_that_one_score_would_tell_are_not_published_without_a_declaration"),
    ),
    Mutant(
        "scores-are-exact",
        (28,),
        "blindfit.parties.taylor.data_party:Taylor._evaluate",
        "part = replace(part, score_rounding=self._quota.rounding(part))",
        "part = replace(part, score_rounding=0)",
        (f"{REPEATS}::test_test_rows_are_scored_by_one_model_and_the_next_training_ends_before_it_begins",),
    ),
    Mutant(
        "a-training-that-may-not-be-evaluated-runs",
        (28,),
        "blindfit.parties.taylor.data_party:Taylor.check_models_per_row",
        "            self._quota.check_new_model(self._session, test_positions)\n",
        "            pass\n",
        (f"{REPEATS}::test_test_rows_are_scored_by_one_model_and_the_next_training_ends_before_it_begins",),
    ),
    Mutant(
        "a-job-shows-what-the-rows-hold",
        (12, 28),
        "blindfit.parties.vertical.scored_rows:ScoreQuota.of",
        "return cls(party, snapshot.row.dataset, snapshot.table_columns)",
        "from blindfit.parties.snapshots.snapshot import content_of\n"
        "        return cls(party, snapshot.row.dataset, 4 * content_of(snapshot.row).models)",
        ("tests/attacks/test_score_equations.py::test_the_number_of_models_is_that_of_the_columns",),
    ),
    Mutant(
        "the-schedule-shows-what-the-rows-hold",
        (12, 28),
        "blindfit.parties.snapshots.snapshots:Snapshots.make_overdue",
        "self.make_next(dataset, by_schedule=True)",
        "self.make_next(dataset)",
        (f"{ROWS}::test_the_schedule_publishes_weak_rows_with_a_caution_and_others_see_the_same",),
    ),
    # --- who matches, by linkages
    Mutant(
        "linkages-are-not-counted",
        (28,),
        "blindfit.parties.vertical.alignment:_link",
        "begin=partial(begin_linkage, session, party.settings, party.store),",
        "begin=lambda: None,",
        (f"{MATCHES}::test_people_are_linked_at_one_number",),
    ),
    Mutant(
        "a-linkage-is-counted-when-its-filters-have-left",
        (28,),
        "blindfit.algorithms.protocols.link:run_data_party",
        """    begin()
    secret = step_1_secret(private_key, theirs, me=me, other=other, first=first)
    order = await in_thread(partial(permutation, n_records, uniform))
    await channel.send(key_node, await in_thread(partial(step_1_filters, records, order, settings, secret)))
""",
        """    secret = step_1_secret(private_key, theirs, me=me, other=other, first=first)
    order = await in_thread(partial(permutation, n_records, uniform))
    await channel.send(key_node, await in_thread(partial(step_1_filters, records, order, settings, secret)))
    begin()
""",
        (f"{MATCHES}::test_it_is_written_before_a_filter_leaves",),
    ),
    Mutant(
        "a-linkage-that-is-refused-counts-at-the-other-party",
        (28,),
        "blindfit.parties.vertical.alignment:_link",
        "    check_linkage(session, party.settings, party.store)\n",
        "",
        (f"{MATCHES}::test_people_are_linked_at_one_number",),
    ),
    Mutant(
        "matches-may-be-counted-down",
        (28,),
        "blindfit.parties.vertical.linkages:_check",
        "if session.job.align.min_common != first:",
        "if session.job.align.min_common > first:",
        (f"{MATCHES}::test_people_are_linked_at_one_number",),
    ),
    Mutant(
        "another-number-for-whoever-publishes-anew",
        (28,),
        "blindfit.parties.vertical.linkages:_check",
        "    before = _begun(reader, account, other)\n",
        "    before = [entry for entry in _begun(reader, account, other) if entry.snapshot == session.published.id]\n",
        (f"{MATCHES}::test_people_are_linked_at_one_number",),
    ),
    Mutant(
        "a-draw-counts-as-a-linkage",
        (28,),
        "blindfit.parties.vertical.linkages:_begun",
        " if entry.event.startswith(EVENT)]",
        "]",
        (f"{MATCHES}::test_a_draw_of_who_is_held_out_is_no_linkage",),
    ),
    Mutant(
        "one-linkage-too-many",
        (28,),
        "blindfit.parties.vertical.linkages:_check",
        "if len(before) >= MOST_MEMBERSHIP",
        "if len(before) > MOST_MEMBERSHIP",
        (f"{MATCHES}::test_of_the_same_people_so_many_bits_are_told_and_no_more",),
    ),
    Mutant(
        "a-new-snapshot-of-the-other-is-no-new-question",
        (28,),
        "blindfit.parties.vertical.linkages:digest_linkage",
        "parameters_digest({**session.snapshots, **how})",
        "parameters_digest({**how})",
        (f"{MATCHES}::test_of_the_same_people_so_many_bits_are_told_and_no_more",),
    ),
    Mutant(
        "another-threshold-is-no-new-question",
        (28,),
        "blindfit.parties.vertical.linkages:digest_linkage",
        'if name.startswith("align.")}',
        'if name == "align.method"}',
        (f"{MATCHES}::test_another_way_to_link_is_another_question",),
    ),
    Mutant(
        "any-number-of-common-rows",
        (28,),
        "blindfit.parties.job.parameters:AlignedParameters.refusals",
        'if role != "key-node" and asked < least:',
        'if role != "key-node" and asked < 0:',
        (f"{POLICY}::test_so_few_common_rows", f"{MATCHES}::test_by_default_no_job_asks_about_so_few"),
    ),
    Mutant(
        "as-few-by-linkage-as-by-ids",
        (28,),
        "blindfit.parties.taylor.settings:TaylorJob.min_common_of",
        'if self.align.method != "linkage":\n            return super().min_common_of(policy)',
        "if True:\n            return super().min_common_of(policy)",
        (
            "tests/approval/test_policy.py::test_so_few_common_rows",
            "tests/attacks/test_matches_counted.py::test_by_default_no_linkage_asks_about_so_few",
        ),
    ),
    # --- labels, by layouts of batches
    Mutant(
        "layouts-are-not-added-up",
        (12, 28),
        "blindfit.parties.account.account:Account.fits",
        " + bits > limit * (1 + 1e-9)",
        " * 0 + bits > limit * (1 + 1e-9)",
        (f"{REPEATS}::test_the_same_training_again_is_free_and_other_batches_add_up",),
    ),
    Mutant(
        "others-are-told-how-many-layouts-there-were",
        (12,),
        "blindfit.parties.account.account:Account.enter_below",
        "            raise error\n",
        "            error.hint = f'{spent} bits were revealed before'\n            raise error\n",
        (f"{REPEATS}::test_a_layout_is_refused_in_the_same_words_whatever_was_revealed_before",),
    ),
    Mutant(
        "layouts-are-not-remembered",
        (12, 28),
        "blindfit.parties.taylor.label_layouts:count_label_bits",
        "(LAYOUT, question, bits, bits + end)",
        "(LAYOUT, question, 0.0, bits + end)",
        (REPEATS,),
    ),
    Mutant(
        "a-layout-is-its-number-of-batches",
        (12, 28),
        "blindfit.parties.taylor.label_layouts:_digest_batches",
        'np.sort(people[batch]).astype("<u8").tobytes()',
        'b""',
        (f"{REPEATS}::test_what_makes_other_equations_is_another_layout_and_the_flag_lets_more_pass",),
    ),
    Mutant(
        "a-partners-new-columns-are-the-old-layout",
        (12, 28),
        "blindfit.parties.taylor.label_layouts:_digest",
        '[session.snapshots.get(name, ""), count]',
        "[count]",
        (f"{REPEATS}::test_columns_that_a_partner_publishes_anew_are_new_equations",),
    ),
    Mutant(
        "labels-that-changed-are-the-old-layout",
        (12, 28),
        "blindfit.parties.taylor.label_layouts:_digest",
        '        "labels": session.published.id,\n',
        "",
        (f"{REPEATS}::test_labels_that_are_published_again_are_new_equations",),
    ),
    Mutant(
        "a-new-snapshot-begins-the-count-of-labels-again",
        (12, 28),
        "blindfit.parties.account.account:Account.entries",
        "if entry.subject == subject and",
        "if entry.subject == subject and entry.snapshot == reader.snapshots()[-1].id and",
        (f"{REPEATS}::test_a_new_snapshot_of_the_labels_begins_no_count_again",),
    ),
    Mutant(
        "every-snapshot-of-the-same-people-raises-the-limit",
        (12, 28),
        "blindfit.parties.account.account:Account.label_limit",
        "return people *",
        "return len(reader.snapshots()) * people *",
        (f"{REPEATS}::test_a_new_snapshot_of_the_labels_begins_no_count_again",),
    ),
    Mutant(
        "labels-that-are-rare-have-the-limit-of-others",
        (12, 28),
        "blindfit.parties.account.account:Account.label_limit",
        "people * self.label_entropy * BITS_OF_A_LABEL",
        "people * BITS_OF_A_LABEL",
        (f"{REPEATS}::test_the_same_training_again_is_free_and_other_batches_add_up",),
    ),
    Mutant(
        "a-new-snapshot-begins-the-count-of-models-again",
        (28,),
        "blindfit.parties.vertical.scored_rows:ScoreQuota._check",
        "_reveal(self._entries(reader), asked,",
        "_reveal([e for e in self._entries(reader) if e.snapshot == session.published.id], asked,",
        (f"{REPEATS}::test_test_rows_are_scored_by_one_model_and_the_next_training_ends_before_it_begins",),
    ),
    # --- features, by weights and gradients
    Mutant(
        "opened-weights-are-no-model-of-a-row",
        (28,),
        "blindfit.parties.falcon.data_party:Falcon.count_fit",
        "is not None",
        "is None",
        (FITS,),
    ),
    Mutant(
        "gradients-are-no-model-of-a-row",
        (28,),
        "blindfit.parties.taylor.data_party:Taylor.count_fit",
        "self.make_quota().count_fit(",
        "self.make_quota().check_fit(",
        (FITS,),
    ),
    Mutant(
        "a-fit-is-only-scores",
        (28,),
        "blindfit.parties.vertical.scored_rows:ScoreQuota._check",
        "asked.event in (SCORES, OPENED_FIT)",
        "asked.event in (SCORES,)",
        (FITS,),
    ),
    Mutant(
        "scores-of-a-fit-are-a-second-model",
        (28,),
        "blindfit.parties.vertical.scored_rows:_reveal",
        "model_of_fit.setdefault(asked.training, asked.question)",
        "pass",
        (FITS,),
    ),
    Mutant(
        "every-fit-is-the-same-question",
        (28,),
        "blindfit.parties.vertical.scored_rows:ScoreQuota._asked",
        "entry.question == fit.question and set",
        "set",
        (FITS,),
    ),
    # --- who is among a party's people
    Mutant(
        "alignments-that-find-too-few-rows-are-not-counted",
        (28,),
        "blindfit.parties.vertical.alignment:align_by_id",
        "    await asyncio.to_thread(begin_alignment, session, party.settings, party.store)\n",
        "",
        (MEMBERSHIP,),
    ),
    Mutant(
        "one-alignment-too-many",
        (28,),
        "blindfit.parties.vertical.linkages:_count",
        "count >= MOST_MEMBERSHIP",
        "count > MOST_MEMBERSHIP",
        (MEMBERSHIP,),
    ),
    Mutant(
        "alignments-that-find-enough-rows-have-a-limit",
        (28,),
        "blindfit.parties.vertical.alignment:align_by_id",
        "    await asyncio.to_thread(end_alignment, session, party.settings, party.store)\n",
        "",
        (MEMBERSHIP,),
    ),
    Mutant(
        "numbers-of-common-rows-are-not-counted-at-a-passive-party",
        (28,),
        "blindfit.parties.walr.passive:ColumnHolder.run",
        "            count_common_rows(session, party.settings, party.store)\n",
        "",
        (MEMBERSHIP,),
    ),
    Mutant(
        "numbers-of-common-rows-are-not-counted-at-the-active-party",
        (28,),
        "blindfit.parties.walr.lead:lead",
        "    await asyncio.to_thread(count_common_rows, session, party.settings, party.store)\n",
        "",
        (MEMBERSHIP,),
    ),
    Mutant(
        "draws-of-before-the-account-do-not-count",
        (28,),
        "blindfit.parties.store.migrations:to_version_5",
        "range(min(begun, MOST_DRAWS))",
        "range(0)",
        (MIGRATIONS,),
    ),
    Mutant(
        "counts-of-before-the-account-end-early",
        (28,),
        "blindfit.parties.store.migrations:to_version_5",
        "    database.execute(_TODAY, (now,))\n",
        "",
        (MIGRATIONS,),
    ),
)
