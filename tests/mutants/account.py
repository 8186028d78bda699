"""The disclosure account: of people, not of snapshots; every learner's share; one limit over all jobs."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PEOPLE = "tests/account/test_people.py"
JOBS = "tests/account/test_through_jobs.py"

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
        "a-population-that-is-named-later-begins-the-account-again",
        (25,),
        "blindfit.parties.snapshots.carried:carry_account",
        "if not before or before[-1] == row.population or row.other_people:",
        "if True or before[-1] == row.population or row.other_people:",
        (f"{JOBS}::test_a_population_that_is_named_later_has_the_account_of_its_people",),
    ),
    Mutant(
        "a-new-snapshot-is-taken-for-a-repeat",
        (28,),
        "blindfit.coordinator.preflight.parties:PartyHere.may_repeat_a_training",
        "any(entry.snapshot == current.id for entry in entries)",
        "bool(entries)",
        (f"{JOBS}::test_check_says_of_a_full_account_what_run_does",),
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
