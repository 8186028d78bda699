"""The cut of a simulation: no party trains on a held-out row, and nothing is cut that no run could compare."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DEAL = "tests/simulate/test_deal.py"
ASKED = "tests/simulate/test_asked.py::test_a_bad_table_or_option_is_refused_in_one_line"
CUT = "tests/simulate/test_cut.py"

MUTANTS = (
    Mutant(
        "simulate-trains-on-held-out-rows",
        (31,),
        "blindfit.coordinator.simulate.deal:deal_rows",
        "training = np.setdiff1d(np.arange(len(labels)), held_out)",
        "training = np.arange(len(labels))",
        (f"{DEAL}::test_every_row_is_accounted_for",),
    ),
    Mutant(
        "simulate-cuts-a-table-of-few-rows",
        (12,),
        "blindfit.coordinator.simulate.deal:_refuse_too_few",
        "if len(common) < LEAST_COMMON:",
        "if not len(common):",
        (ASKED,),
    ),
    Mutant(
        "simulate-cuts-rows-of-one-label",
        (31,),
        "blindfit.coordinator.simulate.deal:_refuse_too_few",
        "if not 0 < found.sum() < len(found):",
        "if not len(found):",
        (ASKED,),
    ),
    Mutant(
        "simulate-takes-an-id-that-stands-twice",
        (3,),
        "blindfit.coordinator.simulate.table:_ids_of",
        "    if len(often):",
        "    if len(often) > len(ids):",
        (ASKED,),
    ),
    Mutant(
        "simulate-takes-any-share",
        (16,),
        "blindfit.coordinator.simulate.asked:_refuse_share",
        "if not (low <= share <= high) or",
        "if",
        (ASKED,),
    ),
    Mutant(
        "simulate-gives-scores-of-few-columns",
        (12,),
        "blindfit.coordinator.simulate.cut:_Cutter._seat",
        'models_per_row=0 if seat.role == "passive" else None',
        "models_per_row=None",
        (f"{CUT}::test_party_files_are_those_of_init",),
    ),
    Mutant(
        "simulate-writes-over-a-folder",
        (17,),
        "blindfit.coordinator.init.command:refuse_existing",
        "if out.exists() and (not out.is_dir() or any(out.iterdir())):",
        "if out.is_file():",
        ("tests/simulate/test_asked.py::test_a_folder_with_files_is_not_written_over",),
    ),
    Mutant(
        "simulate-leaves-half-a-folder",
        (17,),
        "blindfit.coordinator.init.command:build_folder",
        "            shutil.rmtree(building, ignore_errors=True)\n            raise\n",
        "            raise\n",
        ("tests/simulate/test_asked.py::test_a_disk_that_fills_is_one_line_and_nothing_stays",),
    ),
)
