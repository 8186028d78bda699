"""Columns that are made of text and of missing values."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ENCODING, JOBS = "tests/data/test_encoding.py", "tests/vertical/test_text_columns.py"
AGREE = "tests/columns/test_scorers_agree.py"

MUTANTS = (
    Mutant(
        "levels-of-a-category-count-as-columns-of-their-own",
        (12,),
        "blindfit.parties.snapshots.row_content:content_of_columns",
        "            held[column.name] = held.get(column.name, 1) + 1",
        "            held[name] = distinct",
        (f"{JOBS}::test_levels_of_one_category_are_one_column_of_what_scores_may_tell",),
    ),
    Mutant(
        "levels-found-in-rows-under-differential-privacy-of-rows",
        (12,),
        "blindfit.parties.training.unit:refuse_dependent_rows",
        'if any(column.kind == "category" and not column.declared',
        'if any(column.kind == "category" and column.declared',
        (f"{ENCODING}::test_levels_that_rows_tell_are_no_part_of_a_promise_about_rows",),
    ),
    Mutant(
        "a-missing-value-of-new-rows-is-their-own-mean",
        (12,),
        "blindfit.parties.predict.prediction:JointPrediction._rows",
        "scored_by(scale.record, scale.columns, scale.means())",
        "scored_by(scale.record, scale.columns, {})",
        (f"{JOBS}::test_new_rows_with_other_levels_are_scored_alike_by_the_job_and_the_scorer",),
    ),
    Mutant(
        "nanoseconds-are-taken-for-microseconds",
        (31,),
        "blindfit.algorithms.columns.values:to_moments",
        "zero_copy_only=False) // 1000",
        "zero_copy_only=False) // 1",
        (f"{AGREE}::test_every_type_of_a_table_is_the_same_numbers",),
    ),
    Mutant(
        "the-zone-of-a-text-is-ignored",
        (31,),
        "blindfit.algorithms.columns.values:_moments_in_texts",
        "pc.add(clock, fraction)), offset)",
        "pc.add(clock, fraction)), pc.multiply(offset, 0))",
        (f"{AGREE}::test_every_type_of_a_table_is_the_same_numbers",),
    ),
    Mutant(
        "whole-numbers-are-dates",
        (31,),
        "blindfit.algorithms.columns.values:to_moments",
        '        raise BadValue("its values are whole numbers, not dates", hint=hint)',
        "        return column.cast(pa.int64())",
        (f"{AGREE}::test_what_a_column_cannot_be_is_refused_by_its_name",),
    ),
    Mutant(
        "an-array-of-dates-is-numbers",
        (31,),
        "blindfit.algorithms.statistics.linear.named_columns:real_matrix",
        'found.dtype.kind not in "biufO"',
        'found.dtype.kind not in "biufOM"',
        (f"{AGREE}::test_an_array_holds_numbers_and_nothing_that_numpy_would_make_one_of",),
    ),
    Mutant(
        "a-quoted-word-is-missing",
        (31,),
        "blindfit.parties.data.files:CsvFile._open_arrow",
        "quoted_strings_can_be_null=False",
        "quoted_strings_can_be_null=True",
        ("tests/columns/test_missing_words.py::test_an_unquoted_word_is_no_value_and_a_quoted_one_is_a_text",),
    ),
    Mutant(
        "new-levels-are-scored-in-silence",
        (31,),
        "blindfit.algorithms.columns.tables:columns_of",
        "        if unseen:\n",
        "        if unseen and unseen.near:\n",
        ("tests/columns/test_unseen_levels.py::test_a_local_scorer_warns_of_its_column_with_a_class_of_its_own",),
    ),
    Mutant(
        "a-training-leaves-out-a-column-that-cannot-be-read",
        (31,),
        "blindfit.parties.snapshots.snapshot:Snapshot.source",
        "            raise _unusable(self.row, name, problem)",
        "            pass",
        ("tests/columns/test_joint_scoring.py::test_a_column_that_cannot_be_read_is_refused_to_whoever_needs_it",),
    ),
    Mutant(
        "scored-rows-are-counted-at-other-places",
        (28,),
        "blindfit.parties.predict.prediction:JointPrediction._scores",
        "rows.features[positions], rows.in_snapshot[positions]",
        "rows.features[positions], positions",
        ("tests/predict/test_scored_rows.py::test_rows_that_are_left_out_do_not_move_the_count_to_others",),
    ),
    Mutant(
        "a-warning-of-new-levels-names-a-line-of-the-package",
        (31,),
        "blindfit.algorithms.user_warnings:warn_user",
        "frame, level = frame.f_back, level + 1",
        "frame, level = frame.f_back, level + (level < 2)",
        ("tests/columns/test_unseen_levels.py::test_a_warning_names_the_line_of_whoever_scores",),
    ),
)
