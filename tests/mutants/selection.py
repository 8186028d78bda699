"""Choosing options by cross-validation could reveal something uncounted."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FALCON, JOBS = "tests/falcon/test_selection.py", "tests/falcon/test_selecting_jobs.py"
TAYLOR = "tests/vertical/test_selecting.py"
COUNTED = f"{JOBS}::test_all_that_the_grid_and_the_training_open_is_counted_at_the_beginning_and_once"

MUTANTS = [
    Mutant(
        "figures-of-a-grid-are-free",
        (28,),
        "blindfit.parties.falcon.weight_bits:begin_bits",
        "end_bits(parameters, epochs) + parameters.selection_bits",
        "end_bits(parameters, epochs)",
        (COUNTED,),
    ),
    Mutant(
        "the-epochs-of-folds-end-nothing",
        (28,),
        "blindfit.parties.falcon.weight_bits:end_bits",
        " + parameters.selection_epochs",
        "",
        (COUNTED,),
    ),
    Mutant(
        "a-passive-party-counts-no-figure-of-a-grid",
        (28,),
        "blindfit.parties.falcon.data_party:Falcon.count_grid",
        "self._grid_bits_of_a_row(compared.agreed)",
        "0.0",
        (f"{JOBS}::test_a_passive_party_counts_the_figures_of_the_grid_on_its_rows",),
    ),
    Mutant(
        "a-grid-is-refused-after-its-folds",
        (28,),
        "blindfit.parties.falcon.data_party:Falcon.check_grid",
        "self._grid_bits_of_a_row(agreed)",
        "0.0",
        (f"{JOBS}::test_rows_that_hold_too_little_for_a_grid_refuse_it_before_the_first_fold",),
    ),
    Mutant(
        "figures-of-a-grid-are-not-rounded",
        (12,),
        "blindfit.algorithms.statistics.vertical.selection:LossSteps.mean_bits",
        "min(MOST_MEAN_BITS, 3 + math.floor(math.log2(math.sqrt(self.n_rows))))",
        "MOST_MEAN_BITS",
        (f"{FALCON}::test_a_mean_loss_has_steps_of_a_quarter_of_its_standard_error_and_as_few_values_as_counted",),
    ),
    Mutant(
        "a-fold-of-a-few-rows",
        (12,),
        "blindfit.algorithms.statistics.vertical.selection:Selection.check",
        "if least < LEAST_FOLD_ROWS:",
        "if False:",
        (f"{FALCON}::test_folds_of_few_rows_are_refused_with_what_would_do",),
    ),
    Mutant(
        "a-point-outside-the-grid",
        (14,),
        "blindfit.algorithms.protocols.falcon.selection:select",
        "if not 0 <= point < len(chosen.points):",
        "if False:",
        (f"{FALCON}::test_a_point_that_the_grid_does_not_have_is_refused_by_every_party",),
    ),
    Mutant(
        "losses-of-a-grid-are-free",
        (28,),
        "blindfit.parties.taylor.label_layouts:_entries",
        " + grid_bits(job, plan)",
        "",
        (f"{TAYLOR}::test_folds_are_made_of_the_batches_of_the_final_training_and_no_two_trainings_share_noise",),
    ),
    Mutant(
        "folds-cut-batches",
        (28,),
        "blindfit.algorithms.protocols.taylor.selection:Folds.plan_of",
        "if number not in left_out",
        "if number in left_out",
        (f"{TAYLOR}::test_figures_are_the_losses_of_the_rows_that_each_fold_leaves_out",),
    ),
    Mutant(
        "trainings-of-folds-share-their-noise",
        (12,),
        "blindfit.algorithms.protocols.taylor.selection:derive_noise_key",
        "% (point, fold)",
        "% (point, 0)",
        (f"{TAYLOR}::test_folds_are_made_of_the_batches_of_the_final_training_and_no_two_trainings_share_noise",),
    ),
    Mutant(
        "trainings-of-folds-are-no-models",
        (28,),
        "blindfit.parties.taylor.data_party:Taylor._fit",
        "selection.models_on_a_row",
        "1",
        (f"{TAYLOR}::test_each_training_of_a_fold_is_a_model_on_each_row",),
    ),
]
