"""Scores rows from the parties' parts of a model and csv files of their raw features, with Python alone.

    python scorer.py MODEL.json ROWS.csv MODEL.json ROWS.csv ... > scores.csv

A pair for each party of the model, in any order; the id is the column `id`, or another: --id NAME. Columns are found by
name, and others are ignored. Scored is whoever is in every file. docs/prediction.md has the format and the arithmetic:
the bits are those of a joint prediction.
"""

import csv
import json
import math
import pathlib
import sys

FORMAT = "blindfit vertical model part v1"


def score_part(model, row):
    """{column: text or number} -> this party's part of the score, in steps of 2^-42."""
    scaling, grid, bound = model["standardiser"], model["grid"], model["feature_bound"]
    values = {name: number(row, name, scaling) for name in scaling["columns"]}
    names = list(model["weights"])
    columns = [(values[name] - scaling["mean"][name]) / scaling["std"][name] for name in names]
    weights = [model["weights"][name] for name in names]
    if model.get("intercept") is not None:
        columns, weights = [*columns, 1.0], [*weights, model["intercept"]]
    steps = [round(max(-bound, min(bound, x)) * 2.0 ** grid["feature_bits"]) for x in columns]
    if model["row_bound"] is not None:
        steps = shortened(steps, model["row_bound"])
    part = sum(x * round(w * 2.0 ** grid["weight_bits"]) for x, w in zip(steps, weights, strict=True))
    rounding = model["score_rounding"]
    return (part + (1 << rounding >> 1)) >> rounding << rounding


def number(row, name, scaling):
    """Of a column of the file, or made of one: region=north is 1 where region is north, age= where age is empty."""
    if name not in row:
        column = behind(name, row)
        return float(str(row[column]).strip() == name[len(column) + 1 :])
    try:
        value = math.nan if "_" in str(row[name]) else float(row[name])  # Python alone reads 1_000
    except (TypeError, ValueError):
        value = math.nan
    if name + "=" in scaling["columns"] and not str(row[name]).strip():
        return scaling["mean"].get(name, 0.0)
    if not math.isfinite(value):
        raise ValueError(f"column {name}: a value is missing or no finite number")
    return value


def behind(name, names):
    """The column of a file that a model's column is of: itself, or that before one of its signs =; None: none is."""
    whole = [name, *(name[:place] for place, character in enumerate(name) if character == "=")]
    return next((column for column in whole if column in names), None)


def shortened(steps, most):
    """A row longer than `most` steps, scaled to it and cut toward zero."""
    square = sum(x * x for x in steps)
    if square <= most * most:
        return steps
    length = math.isqrt(square) + 1
    return [(abs(x) * most // length) * (1 if x > 0 else -1) for x in steps]


def prediction(active, score):
    """The sum of all parts -> (the real score, the probability or the value)."""
    real = math.ldexp(score, -active["grid"]["feature_bits"] - active["grid"]["weight_bits"])
    if active["model"] == "linear":
        return real, real * active["label_scale"] + active["label_mean"]
    odds = real * active["slope"] + active["offset"]  # log odds
    if odds >= 0:
        return real, 1.0 / (1.0 + math.exp(-odds))
    return real, math.exp(odds) / (1.0 + math.exp(odds))


def main(arguments):
    id_column = "id"
    if arguments[:1] == ["--id"]:
        id_column, arguments = arguments[1], arguments[2:]
    models = [json.loads(pathlib.Path(model).read_text("utf-8")) for model in arguments[::2]]
    pairs = [(model, read(rows, id_column, model)) for model, rows in zip(models, arguments[1::2], strict=True)]
    pairs.sort(key=lambda pair: pair[0]["role"])  # the active party first
    models = [model for model, _ in pairs]
    if sorted(m["party"] for m in models) != sorted(models[0]["data_parties"]):
        raise ValueError(f"the model needs one part of each of {', '.join(models[0]['data_parties'])}")
    if {m["format"] for m in models} != {FORMAT} or len({m["session"] for m in models}) != 1:
        raise ValueError("the parts are not of this format, or not of one training")
    common = [row for row in pairs[0][1] if all(row in rows for _, rows in pairs)]
    totals = [sum(score_part(model, rows[row]) for model, rows in pairs) for row in common]
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["id", "score", "value" if models[0]["model"] == "linear" else "probability"])
    table.writerows([row, *prediction(models[0], total)] for row, total in zip(common, totals, strict=True))


def read(path, id_column, model):
    """{id: {column: text}}, in the order of the file; columns by name, those that are not the model's are ignored."""
    columns = model["standardiser"]["columns"]
    with open(path, encoding="utf-8-sig", newline="") as file:
        table = csv.DictReader(file)
        names = table.fieldnames or []
        listed = list(table)
    if missing := [name for name in (id_column, *columns) if behind(name, names) is None]:
        raise ValueError(f"{path} has no column {', '.join(missing)}")
    wanted = [id_column, *dict.fromkeys(behind(name, names) for name in columns)]
    if twice := [name for name in wanted if names.count(name) > 1]:
        raise ValueError(f"{path} has the column {', '.join(twice)} twice")
    if any(None in row for row in listed):
        raise ValueError(f"{path} has a row with more values than there are columns")
    rows = {row[id_column]: row for row in listed}
    if len(rows) != len(listed):
        raise ValueError(f"{path} has an id twice")
    return rows


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (KeyError, OSError, TypeError, ValueError) as error:
        sys.exit(f"error: {error if not isinstance(error, KeyError) else f'no field {error}'}")
