"""Exported models: what names and levels could do to the text around them, and what is refused."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

AGREES = "tests/model_export/test_agreement.py::test_every_model_agrees"
COLUMNS = "tests/model_export/test_sql_columns.py"
COMMAND = "tests/model_export/test_command.py"
ALL_PARTS = f"{COMMAND}::test_parts_must_be_all_of_one_training"

MUTANTS = (
    Mutant(
        "a-level-ends-its-text-in-postgresql",
        (20, 31),
        "blindfit.algorithms.model_export.postgresql:PostgreSQL.text",
        ".replace(chr(92), chr(92) * 2)",
        "",
        (AGREES,),
    ),
    Mutant(
        "a-level-ends-its-text-in-sqlite",
        (20, 31),
        "blindfit.algorithms.model_export.sqlite:SQLite.text",
        """value.replace("'", "''")""",
        "value",
        (AGREES,),
    ),
    Mutant(
        "a-columns-name-ends-its-quotes",
        (20, 31),
        "blindfit.algorithms.model_export.sql_names:quote",
        """name.replace('"', '""')""",
        "name",
        (AGREES,),
    ),
    Mutant(
        "a-name-ends-the-comment-that-it-is-in",
        (20,),
        "blindfit.algorithms.model_export.about:comment_lines",
        'printable(f"{name}: {text}")',
        'f"{name}: {text}"',
        (f"{COMMAND}::test_no_name_ends_the_comment_that_it_is_in",),
    ),
    Mutant(
        "a-day-that-is-not-in-its-month-has-a-score",
        (31,),
        "blindfit.algorithms.model_export.sqlite:_date",
        ", '+0 days')",
        ")",
        (f"{COLUMNS}::test_dates_in_texts",),
    ),
    Mutant(
        "another-spelling-of-a-level-is-scored-as-none-in-sqlite",
        (31,),
        "blindfit.algorithms.model_export.sqlite:SQLite._level",
        "GLOB '*[^ -~]*' THEN ''",
        "GLOB '*[^ -~]*' THEN {text}",
        (f"{COLUMNS}::test_sqlite_has_no_score_where_a_level_may_have_another_spelling",),
    ),
    Mutant(
        "an-infinite-number-has-a-score",
        (31,),
        "blindfit.algorithms.model_export.expressions:keep_within",
        'call("if", call("and", call("<=", low, value), call("<=", value, high)), value)',
        "value",
        (f"{COLUMNS}::test_texts_of_every_kind_of_column",),
    ),
    Mutant(
        "parts-of-two-trainings-are-one-model",
        (31,),
        "blindfit.coordinator.export_model.command:_about",
        "if len(set(sessions.values())) > 1:",
        "if not sessions and fitted is None:",
        (ALL_PARTS,),
    ),
    Mutant(
        "a-model-without-a-part-is-whole",
        (31,),
        "blindfit.algorithms.model_export.formula:_all_of_one_training",
        "if len(parts) > 1 and (",
        "if len(parts) > 99 and (",
        (ALL_PARTS,),
    ),
    Mutant(
        "doubles-may-round-a-part",
        (11, 31),
        "blindfit.algorithms.model_export.formula:Formula.refuse_inexact",
        "if part.on_grid and too_large:",
        "if part.on_grid and too_large is None:",
        (f"{COMMAND}::test_what_doubles_would_round_is_refused",),
    ),
    Mutant(
        "a-name-that-a-format-cannot-write",
        (20, 31),
        "blindfit.algorithms.model_export.formula:_inputs_of",
        "elif not each.name or any(",
        "elif not each.column and any(",
        (f"{COMMAND}::test_a_name_that_not_every_format_can_write_is_refused",),
    ),
    Mutant(
        "control-characters-in-xml",
        (31,),
        "blindfit.algorithms.model_export.pmml:write_pmml",
        "if any(NOT_IN_XML.search(text)",
        "if any(NOT_IN_XML.search(text[:0])",
        (f"{COMMAND}::test_xml_has_no_control_characters",),
    ),
)
