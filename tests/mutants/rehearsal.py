"""Rehearsals: nothing that a party or a user keeps is touched, and nothing is released or taken for a real result."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ALL = "tests/rehearsal/test_all_systems.py"
WALR = "tests/rehearsal/test_walr.py"
HINTS = "tests/rehearsal/test_hints.py"
RELEASED = f"{WALR}::test_nothing_is_released_from_it"

MUTANTS = (
    Mutant(
        "a-rehearsal-uses-the-partys-own-state",
        (1, 28),
        "blindfit.coordinator.running.rehearsal:on_stage",
        '{"data_dir": stage.folder / settings.name}',
        "{}",
        (f"{ALL}::test_a_training", "tests/rehearsal/test_check.py::test_the_parties_own_state_does_not_matter"),
    ),
    Mutant(
        "a-rehearsal-adds-to-the-users-receipts",
        (21,),
        "blindfit.coordinator.running.receipts:receipts_of",
        "of_this_user() if job.stage is None else HeldReceipts(job.stage.receipts)",
        "of_this_user()",
        (f"{ALL}::test_a_training",),
    ),
    Mutant(
        "a-rehearsal-writes-where-scores-go",
        (25,),
        "blindfit.parties.settings:PartySettings.in_rehearsal",
        'update={"scores": ScoresSettings()}',
        "update={}",
        (f"{ALL}::test_a_prediction_leaves_the_training_as_it_is",),
    ),
    Mutant(
        "a-rehearsal-has-no-stamp",
        (25,),
        "blindfit.parties.sessions.party:Party.stamp_text",
        'STAMP if self.settings.rehearses else ""',
        '""',
        (f"{WALR}::test_all_that_it_writes_has_the_stamp",),
    ),
    Mutant(
        "scores-of-a-rehearsal-have-no-stamp",
        (25,),
        "blindfit.parties.sessions.party:Party.stamp_table",
        "if not self.settings.rehearses:",
        "if self.settings.rehearses or True:",
        (f"{WALR}::test_all_that_it_writes_has_the_stamp",),
    ),
    Mutant(
        "a-rehearsed-release-is-read-as-a-real-one",
        (25,),
        "blindfit.parties.walr.release_document:encode",
        "STAMP if rehearses else FORMAT",
        "FORMAT",
        (RELEASED,),
    ),
    Mutant(
        "a-rehearsed-model-is-exported",
        (25,),
        "blindfit.coordinator.export_model.command:export_model",
        'getattr(model, "rehearsal", "")',
        '""',
        (RELEASED,),
    ),
    Mutant(
        "a-rehearsed-training-is-exported",
        (25,),
        "blindfit.coordinator.verify.export:export",
        'if stamp_of(read_json(source.parent / "model.json")):',
        "if not source.exists():",
        (f"{HINTS}::test_a_release_that_was_rehearsed",),
    ),
    Mutant(
        "a-real-job-takes-a-rehearsed-model",
        (1,),
        "blindfit.coordinator.job.trained:training_session",
        "if stamp_of(content) and not rehearses:",
        "if stamp_of(content) and rehearses is None:",
        (f"{HINTS}::test_a_real_job_does_not_take_what_was_rehearsed",),
    ),
    Mutant(
        "a-real-fit-starts-from-a-rehearsed-model",
        (1,),
        "blindfit.parties.walr.start:read_start",
        "and not settings.rehearses",
        "and not settings",
        (f"{WALR}::test_a_real_job_does_not_start_from_its_model",),
    ),
    Mutant(
        "a-rehearsal-replaces-real-reports",
        (17,),
        "blindfit.coordinator.job.out_dir:make_folder",
        "if rehearses and (real := _find_real_report(found)):",
        "if (real := _find_real_report(found)) and not real:",
        (f"{WALR}::test_no_job_writes_over_the_reports_of_the_other_kind",),
    ),
    Mutant(
        "a-rehearsal-removes-a-folder-of-the-user",
        (17,),
        "blindfit.coordinator.job.out_dir:make_folder",
        "and not is_stage(found / STATE)",
        "and not (found / STATE).is_dir()",
        (f"{WALR}::test_a_folder_that_no_rehearsal_has_made_is_left_alone",),
    ),
    Mutant(
        "any-party-may-be-started-so-that-it-only-warns",
        (2, 16),
        "blindfit.coordinator.job.stage:check_is_stage",
        "if not is_stage(data_dir.parent):",
        "if not data_dir.parent.name:",
        (f"{HINTS}::test_a_party_that_somebody_else_operates",),
    ),
    Mutant(
        "every-party-only-warns",
        (2, 16),
        "blindfit.parties.store.excess:Excess",
        "only_warns: bool = False",
        "only_warns: bool = True",
        ("tests/processes/test_run.py::test_a_job_over_the_budget_is_refused_in_one_line_before_any_row",),
    ),
    Mutant(
        "a-rehearsal-of-its-own-accord-only-warns",
        (16,),
        "blindfit.coordinator.job.stage:Stage.excess_at",
        "Excess(self.warn_only)",
        "Excess(True)",
        ("tests/rehearsal/test_check.py::test_a_limit_is_a_refusal_or_a_warning",),
    ),
)
