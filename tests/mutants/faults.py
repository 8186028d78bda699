"""Faults that a person asks for."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TRAININGS, GRAMMAR = "tests/faults/test_trainings.py", "tests/faults/test_grammar.py"

MUTANTS = (
    Mutant(
        "a-party-has-two-faults-at-once",
        (32,),
        "blindfit.coordinator.running.faults:parse_faults",
        "if other.party == fault.party",
        "if other == fault",
        (f"{GRAMMAR}::test_a_party_has_one_fault",),
    ),
    Mutant(
        "a-cut-of-a-job-without-a-connection-does-nothing",
        (32,),
        "blindfit.coordinator.running.faults:check_faults",
        "len(parties) == 1",
        "not parties",
        ("tests/faults/test_other_jobs.py::test_one_party_has_nothing_to_be_cut_from",),
    ),
    Mutant(
        "a-frozen-party-stays-frozen-when-the-job-has-ended",
        (17,),
        "blindfit.coordinator.running.study:Study.run",
        "for party in list(self._standing):",
        "for party in ():",
        (f"{TRAININGS}::test_a_party_that_stays_frozen_is_named_when_a_deadline_passes",),
    ),
    Mutant(
        "a-training-that-stopped-in-a-check-of-its-shares-has-a-checkpoint",
        (13,),
        "blindfit.parties.vertical.checkpoints:Checkpoints.stopped_in_check",
        "return (self.directory / CHECK_BEGUN).exists()",
        "return False",
        ("tests/vertical/test_checkpoints.py::test_a_training_that_a_party_does_not_know_is_refused_before_it_starts",),
    ),
)
