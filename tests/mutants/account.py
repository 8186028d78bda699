"""The disclosure account: of people, not of snapshots; every learner's share; one limit over all jobs."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PEOPLE = "tests/account/test_people.py"
JOBS = "tests/account/test_through_jobs.py"
ENTRIES = "tests/account/test_account.py"

MUTANTS = (
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
    Mutant(
        "a-learner-is-every-learner-whose-name-has-its-name",
        (28,),
        "blindfit.parties.account.account:Account.fits",
        'if learner in entry.learner.split(",")',
        "if learner in entry.learner",
        (f"{ENTRIES}::test_bits_fit_as_far_as_each_learners_share",),
    ),
    Mutant(
        "the-share-of-the-first-learner-only",
        (28,),
        "blindfit.parties.account.account:Account.fits",
        "for learner in learners if shares else ():",
        "for learner in list(learners)[:1] if shares else ():",
        (f"{ENTRIES}::test_bits_fit_as_far_as_each_learners_share",),
    ),
    Mutant(
        "a-learner-without-a-share-has-all-of-the-limit",
        (28,),
        "blindfit.parties.account.account:Account.fits",
        "shares.get(learner, 0.0)",
        "shares.get(learner, 1.0)",
        (f"{ENTRIES}::test_bits_fit_as_far_as_each_learners_share",),
    ),
    Mutant(
        "a-period-of-half-the-days",
        (28,),
        "blindfit.parties.account.account:Account._since",
        "-timedelta(days=days)",
        "-timedelta(days=days / 2)",
        (f"{ENTRIES}::test_an_entry_counts_for_the_period",),
    ),
    Mutant(
        "the-first-reset-is-the-last-one",
        (28,),
        "blindfit.parties.account.account:Account.entries",
        "found[starts[-1] :]",
        "found[starts[:2][-1] :]",
        (f"{ENTRIES}::test_entries_count_that_came_after_the_last_reset_of_these_people",),
    ),
    Mutant(
        "nothing-of-a-public-dataset-counts",
        (28,),
        "blindfit.parties.account.account:Account.enter_below",
        'if entry.subject == "labels" and not self.counts_labels:',
        "if not self.counts_labels:",
        (f"{ENTRIES}::test_public_labels_do_not_count_and_columns_do",),
    ),
    Mutant(
        "what-one-learnt-is-free-for-all-who-ask-with-it",
        (28,),
        "blindfit.parties.account.account:Account.enter_below",
        'set(learners) <= set(one.learner.split(","))',
        'set(learners) & set(one.learner.split(","))',
        (f"{ENTRIES}::test_only_the_same_question_of_the_same_learner_is_free",),
    ),
)
