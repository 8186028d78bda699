"""Columns that are made of text and of missing values."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ENCODING, JOBS = "tests/data/test_encoding.py", "tests/vertical/test_text_columns.py"

MUTANTS = (
    Mutant(
        "levels-of-a-category-count-as-columns-of-their-own",
        (12,),
        "parties/snapshots/snapshots.py",
        "            counts[column.name] = counts.get(column.name, 1) + 1",
        "            counts[name] = distinct[name]",
        (f"{JOBS}::test_levels_of_one_category_are_one_column_of_what_scores_may_tell",),
    ),
    Mutant(
        "levels-found-in-rows-under-differential-privacy-of-rows",
        (12,),
        "parties/training/unit.py",
        "    if dataset.levels_are_found:",
        "    if dataset.levels_are_found and not dataset.categories:",
        (f"{ENCODING}::test_levels_that_rows_tell_are_no_part_of_a_promise_about_rows",),
    ),
    Mutant(
        "a-missing-value-of-new-rows-is-their-own-mean",
        (12,),
        "parties/predict/prediction.py",
        "scored_by(scale.record, scale.columns, scale.means())",
        "scored_by(scale.record, scale.columns, {})",
        (f"{JOBS}::test_new_rows_with_other_levels_are_scored_alike_by_the_job_and_the_scorer",),
    ),
)
