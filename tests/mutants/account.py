"""The disclosure account: of people, not of snapshots; every learner's share; one limit over all jobs."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PEOPLE = "tests/account/test_people.py"
JOBS = "tests/account/test_through_jobs.py"

JITTER = "tests/vertical/test_label_jitter.py"
REPEATS = "tests/vertical/test_repeats.py"
PREPARED = "tests/vertical/test_prepared.py"

MUTANTS = (
    Mutant(
        "the-jitter-of-numbers-follows-the-scale-of-each-training",
        (12,),
        "blindfit.parties.taylor.data_party:Taylor.draw_jitter",
        "size *= unit_of(party.store, account, rows.labels, party.settings.datasets[dataset].label_range)",
        "size *= float(common.labels.std())",
        (f"{JITTER}::test_many_trainings_on_other_splits_and_scales_show_the_same_number_of_each_person",),
    ),
    Mutant(
        "the-unit-of-jitter-follows-the-snapshot",
        (12,),
        "blindfit.parties.taylor.label_jitter:unit_of",
        "    return unit\n",
        "    return spread or 1.0\n",
        (f"{JITTER}::test_many_trainings_on_other_splits_and_scales_show_the_same_number_of_each_person",),
    ),
    Mutant(
        "numbers-are-clipped-before-their-jitter",
        (12,),
        "blindfit.parties.vertical.prepared:_numbers",
        "np.clip(x, *label_range) for x in (read, read + jitter)",
        "np.clip(read, *label_range) + x - read for x in (read, read + jitter)",
        (f"{JITTER}::test_a_label_beyond_its_range_is_clipped_after_its_jitter",),
    ),
    Mutant(
        "numbers-are-scaled-by-true-labels",
        (12,),
        "blindfit.parties.vertical.prepared:_numbers",
        "train = jittered[",
        "train = labels[",
        (f"{PREPARED}::test_gradients_depend_on_numbers_only_through_their_jitter",),
    ),
    Mutant(
        "numbers-are-counted-as-classes",
        (28,),
        "blindfit.parties.taylor.label_layouts:bits_of",
        "parameters.grid.loss.cross)",
        "0.5)",
        (f"{JITTER}::test_bits_are_those_of_a_label_of_the_units_variance",),
    ),
    Mutant(
        "each-snapshot-begins-the-account-again",
        (3, 25),
        "blindfit.parties.account.account:Account.spent",
        "for entry in self.entries(reader, subject, about)",
        "for entry in self.entries(reader, subject, about)[-1:]",
        (f"{JOBS}::test_rows_that_are_published_and_trained_on_daily_stay_below_one_limit",),
    ),
    Mutant(
        "the-same-person-published-again-has-another-label",
        (3, 25),
        "blindfit.parties.snapshots.people:add_people",
        "np.setdiff1d(digests, known)",
        "np.unique(digests)",
        (f"{PEOPLE}::test_the_same_people_in_another_snapshot_are_added_once",),
    ),
    Mutant(
        "ids-in-upper-case-are-other-people",
        (5, 25),
        "blindfit.parties.snapshots.people:fold",
        "pc.utf8_lower(ids)",
        "ids",
        (f"{PEOPLE}::test_what_a_copy_of_a_table_often_changes_does_not_matter",),
    ),
    Mutant(
        "an-approval-does-not-say-whom-bits-hold-against",
        (28,),
        "blindfit.coordinator.operator.held:HeldJob.describe",
        "if asked.job.holds_against:",
        "if False:",
        ("tests/approval/test_shown.py::test_an_operator_reads_whom_the_bits_of_a_training_hold_against",),
    ),
    Mutant(
        "where-a-training-ends-counts-once-for-all-sessions",
        (28,),
        "blindfit.parties.taylor.label_layouts:count_label_bits",
        'f"{END} {session.id}"',
        "END",
        (f"{REPEATS}::test_where_a_training_may_end_counts_in_each_session",),
    ),
    Mutant(
        "a-training-begins-where-its-end-does-not-fit",
        (28,),
        "blindfit.parties.taylor.label_layouts:count_label_bits",
        '(END, f"{END} {session.id}", end, end),',
        '(END, f"{END} {session.id}", end, 0.0),',
        (f"{REPEATS}::test_a_training_does_not_begin_where_its_end_does_not_fit",),
    ),
    Mutant(
        "people-whose-ids-look-alike-share-a-jitter",
        (12,),
        "blindfit.parties.snapshots.people:PeopleKey.digests_of",
        "folded[again] = spelled[again]",
        "folded[again] = folded[again]",
        (f"{JITTER}::test_two_people_whose_ids_look_alike_do_not_share_a_draw",),
    ),
    Mutant(
        "a-renamed-label-has-a-new-limit-unsaid",
        (28,),
        "blindfit.parties.snapshots.populations:_warn_of_two_labels",
        "if others and row.population:",
        "if False:",
        (f"{JOBS}::test_an_operator_who_renames_the_label_is_told_that_its_limit_is_a_new_one",),
    ),
    Mutant(
        "people-of-two-populations-are-not-compared",
        (1, 25),
        "blindfit.parties.snapshots.populations:_find_shared_people",
        '        if other in (population, ""):\n',
        '        if other not in (population, ""):\n',
        (f"{PEOPLE}::test_people_of_another_population_have_one_budget",),
    ),
    Mutant(
        "jitter-does-not-depend-on-the-label",
        (3, 25),
        "blindfit.parties.snapshots.people:PeopleKey.uniforms",
        'self._encrypt(digests, values.astype("<f8").view(np.uint64))',
        "self._encrypt(digests, digests)",
        (f"{PEOPLE}::test_a_number_of_a_person_depends_on_person_value_and_purpose_alone",),
    ),
    Mutant(
        "an-account-starts-again-without-a-reason",
        (25,),
        "blindfit.coordinator.operator.account:reset",
        "if not reason.strip():",
        "if reason is None:",
        (f"{JOBS}::test_an_operator_starts_the_account_again_with_a_reason",),
    ),
)
