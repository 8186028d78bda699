"""Columns that recipes compute."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

JOBS, NEW = "tests/columns/test_recipes_in_jobs.py", "tests/columns/test_recipes_of_new_rows.py"
RECORD, CONTENT = "tests/columns/test_recipes.py", "tests/snapshots/test_row_content.py"
SETTINGS = "tests/data/test_recipe_settings.py"

MUTANTS = (
    Mutant(
        "recipes-fitted-to-all-rows-of-a-party",
        (12,),
        "blindfit.parties.data.source:Source.with_recipes",
        "held.append(values if choose is None else values[choose(batch.ids)])",
        "held.append(values)",
        (f"{SETTINGS}::test_only_chosen_rows_decide_the_numbers",),
    ),
    Mutant(
        "recipes-fitted-to-rows-under-differential-privacy-of-rows",
        (12,),
        "blindfit.parties.training.unit:refuse_dependent_rows",
        "        if not recipe.has_numbers:",
        "        if False:",
        (f"{JOBS}::test_numbers_of_rows_are_no_part_of_a_promise_about_rows",),
    ),
    Mutant(
        "a-logarithm-that-the-dataset-does-not-declare",
        (31,),
        "blindfit.parties.snapshots.snapshot:check_recipes",
        "if recipe.by == Log1p.by and (recipe.by, recipe.of) not in checked:",
        "if False:",
        (f"{NEW}::test_a_logarithm_is_declared_by_the_dataset_of_new_rows",),
    ),
    Mutant(
        "a-number-that-a-recipe-cannot-take-is-published",
        (31,),
        "blindfit.parties.snapshots.rows_file:write_rows",
        "            source.check_recipes(batch, source.feature_names, problems)\n",
        "",
        (f"{NEW}::test_a_number_without_a_logarithm_is_refused_before_anything_is_published",),
    ),
    Mutant(
        "bins-of-a-source-hold-as-much-as-the-source",
        (12,),
        "blindfit.parties.snapshots.row_content:content_of_columns",
        "held[name] = int(min(distinct, bounds[name]))",
        "held[name] = distinct",
        (f"{CONTENT}::test_rows_hold_no_more_than_a_model_sees_of_them",),
    ),
    Mutant(
        "sources-of-one-product-are-several-unknowns",
        (12,),
        "blindfit.parties.snapshots.row_content:count_unknowns",
        "min(only_in_products, _count_products(record))",
        "only_in_products",
        (f"{CONTENT}::test_rows_hold_no_more_than_a_model_sees_of_them",),
    ),
    Mutant(
        "knots-of-a-stored-model-in-any-order",
        (31,),
        "blindfit.algorithms.columns.recipes:Spline.read",
        "        if not are_apart(knots):",
        "        if False:",
        (f"{RECORD}::test_a_damaged_recipe_is_refused_by_its_field",),
    ),
    Mutant(
        "a-recipe-of-any-number-of-columns",
        (31,),
        "blindfit.algorithms.columns.recipes:Spline.read",
        "not max(1, len(knots) - 1) <= columns < MOST_KNOTS",
        "columns < 1",
        (f"{RECORD}::test_a_damaged_recipe_is_refused_by_its_field",),
    ),
    Mutant(
        "a-pre-trained-model-with-other-recipes",
        (12,),
        "blindfit.algorithms.statistics.linear.pretraining:Pretrained.check_columns",
        "        if recipes:\n",
        "        if False:\n",
        (f"{NEW}::test_a_pre_trained_model_has_the_recipes_of_the_data",),
    ),
)
