"""A simulation: nothing is charged, and figures of two tables are never mixed."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMAND = "tests/simulate/test_command.py"

MUTANTS = (
    Mutant(
        "simulate-mixes-figures-of-two-cuts",
        (23,),
        "blindfit.coordinator.simulate.kept:Kept.open",
        "if before.get(name) != value and any(",
        "if False and any(",
        (f"{COMMAND}::test_a_folder_of_another_simulation_is_refused",),
    ),
    Mutant(
        "simulate-takes-another-table-for-the-same",
        (23,),
        "blindfit.coordinator.simulate.command:_digest",
        "writer.write_table(content)",
        "pass",
        (f"{COMMAND}::test_a_changed_value_is_another_table",),
    ),
    Mutant(
        "simulate-runs-a-real-job",
        (26,),
        "blindfit.coordinator.simulate.runs:Runner._try",
        "rehearsal=self._rehearsal,",
        "rehearsal=None,",
        (f"{COMMAND}::test_every_system_has_its_figures",),
    ),
)
