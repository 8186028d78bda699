"""Run an exported model in the system that it was exported to, each of which knows nothing of Blindfit."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from blindfit.algorithms.model_export.formula import Formula
from blindfit.algorithms.model_export.sql import TABLE

ROOT = Path(__file__).parents[2]
Row = Mapping[str, Any]
Scores = list[dict[str, float | None]]


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def run_sqlite(statement: str, rows: Sequence[Row]) -> Scores:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        names = list(rows[0])
        connection.execute(f"CREATE TABLE {TABLE} ({', '.join(map(quote, names))})")
        marks = ", ".join("?" for _ in names)
        connection.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", [list(row.values()) for row in rows])
        connection.row_factory = sqlite3.Row
        return [dict(found) for found in connection.execute(statement)]


def run_postgresql(
    connection: psycopg.Connection, statement: str, rows: Sequence[Row], types: Mapping[str, str] | None = None
) -> Scores:
    names, kinds = list(rows[0]), types or {}
    columns = ", ".join(f"{quote(name)} {kinds.get(name, 'text')}" for name in names)
    with connection.transaction(force_rollback=True), connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {TABLE} ({columns})")
        marks = ", ".join("%s" for _ in names)
        for row in rows:
            cursor.execute(f"INSERT INTO {TABLE} VALUES ({marks})", list(row.values()))
        return cursor.execute(statement).fetchall()


def run_onnx(content: bytes, rows: Sequence[Row], formula: Formula) -> Scores:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(content)
    feed = {}
    for source in formula.inputs:
        values = [row[source.name] for row in rows]
        if source.column.kind == "category":
            column = np.array([[value or ""] for value in values], dtype=object)
        else:
            column = np.array([[math.nan if value is None else float(value)] for value in values])
        feed[source.name] = column
    names = [each.name for each in session.get_outputs()]
    found = dict(zip(names, session.run(names, feed), strict=True))
    return [{n: _or_none(array[place, 0]) for n, array in found.items()} for place in range(len(rows))]


def _or_none(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def run_pmml(cases: Sequence[tuple[bytes, Sequence[Row], Formula]]) -> list[Scores]:
    """Score with pypmml in a separate process: the Java machine would take over this process's signals.

    Skip the test on a machine without Java; fail it under CI, which must have Java.
    """
    if shutil.which("java") is None:
        unavailable = "no Java on this machine: apt-get install default-jre-headless"
        pytest.fail(unavailable) if os.environ.get("CI") else pytest.skip(unavailable)
    asked = [{"pmml": content.decode(), "rows": [_for_pmml(row, f) for row in rows]} for content, rows, f in cases]
    command = [sys.executable, "-m", "tests.model_export.score_pmml"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _for_pmml(row: Row, formula: Formula) -> Row:
    texts = {source.name for source in formula.categories}
    return {n: value if value is None or n in texts else float(value) for n, value in row.items()}


def run_python(text: str, rows: Sequence[Row]) -> Scores:
    module: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), module)
    found: Scores = []
    for row in rows:
        try:
            found.append(module["score"](row))
        except ValueError:
            found.append(dict.fromkeys(("score", "score_part", "probability", "value")))
    return found
