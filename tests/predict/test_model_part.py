"""A party's part of a model: it is stored and read exactly, refused when malformed, and scores rows one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit import WALRModel, load_model
from blindfit.algorithms.errors import DataError, RangeError
from blindfit.algorithms.statistics.vertical.model import LARGEST_SCORE, VerticalModelPart, real_scores
from blindfit.parties.files import written
from tests.each_case import each_case
from tests.predict.parts import DATA_PARTIES, PASSIVES, model_parts, part_of, rows_for, standardiser

LAW = settings(deadline=None, max_examples=150)


def equal(one: VerticalModelPart, other: VerticalModelPart) -> bool:
    pairs = [(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else (a, type(a)) == (b, type(b)) for a, b in pairs)


# --- stored and read --------------------------------------------------------------------------------------


@LAW
@given(st.sampled_from(DATA_PARTIES).flatmap(model_parts))
def test_a_stored_part_is_read_back_exactly(part):
    stored = json.loads(json.dumps(part.to_dict(), allow_nan=False))
    again = VerticalModelPart.from_dict(stored)
    assert equal(part, again)
    assert again.to_dict() == stored


def test_load_model_reads_both_kinds(tmp_path):
    part = part_of()
    written.write_json(tmp_path / "part.json", {**part.to_dict(), "session": "s"})
    loaded = load_model(tmp_path / "part.json")
    assert isinstance(loaded, VerticalModelPart)
    assert equal(loaded, part)
    whole = WALRModel(standardiser(), np.array([1.0, 2.0, 3.0, 4.0]), intercept=True, norm_bound=2.0)
    written.write_json(tmp_path / "model.json", whole.to_dict())
    assert isinstance(load_model(tmp_path / "model.json"), WALRModel)


@each_case("content", ["[]", "3", "{}", '{"format": "x"}', "{", '{"format": ["a"]}', "\x00", "[" * 99999])
def test_load_model_refuses_what_is_no_model(tmp_path, content):
    path = tmp_path / "model.json"
    path.write_text(content)
    with pytest.raises(DataError, match=str(path)):
        load_model(path)


def without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda content: content.pop(name)


def setting(*path: Any) -> Callable[[dict[str, Any]], object]:
    *parents, last, value = path

    def change(content: dict[str, Any]) -> None:
        for name in parents:
            content = content[name]
        content[last] = value

    return change


MALFORMED = [
    *((without(name), name) for name in part_of().to_dict()),
    (setting("format", "blindfit vertical model part v2"), "format"),
    (setting("grid", "feature_bits", 13), "grid"),
    (setting("grid", 12), "grid"),
    (setting("party", 3), "party"),
    (setting("party", "stranger"), "data_parties"),
    (setting("role", "measurement"), "role"),
    (setting("role", "passive"), "data_parties"),
    (setting("model", "tree"), "model"),
    (setting("data_parties", "bank"), "data_parties"),
    (setting("data_parties", [["bank"]]), "data_parties"),
    (setting("data_parties", [*DATA_PARTIES, "shop"]), "data_parties"),
    (setting("data_parties", [*PASSIVES, "bank"]), "data_parties"),
    (setting("standardiser", "columns", ["c0", "c1", "c1"]), "columns"),
    (setting("standardiser", "mean", "c0", None), "mean"),
    (setting("standardiser", "mean", "c0", 10**400), "mean"),
    (setting("standardiser", "std", "c0", 0), "std"),
    (setting("standardiser", "std", "c0", -1.0), "std"),
    (setting("weights", {}), "weights"),
    (setting("weights", [1, 2, 3]), "weights"),
    (setting("weights", "c9", 1.0), "weights"),
    (setting("weights", "c0", "1.0"), "c0"),
    (setting("weights", "c0", True), "c0"),
    (setting("weights", "c0", math.nan), "c0"),
    (setting("weights", "c0", 1e300), "weights"),
    (setting("intercept", "0.5"), "intercept"),
    (setting("intercept", -math.inf), "intercept"),
    (setting("intercept", 1e5), "weights"),
    (setting("feature_bound", 0), "feature_bound"),
    (setting("feature_bound", -8.0), "feature_bound"),
    (setting("feature_bound", 1e300), "feature_bound"),
    (setting("row_bound", 0), "row_bound"),
    (setting("row_bound", 7.5), "row_bound"),
    (setting("row_bound", True), "row_bound"),
    (setting("score_rounding", -1), "score_rounding"),
    (setting("score_rounding", 61), "score_rounding"),
    (setting("score_rounding", 7.5), "score_rounding"),
    (setting("score_rounding", True), "score_rounding"),
    (setting("score_rounding", None), "score_rounding"),
    (setting("label_mean", None), "label_mean"),
    (setting("slope", None), "slope"),
    (setting("slope", 0.0), "slope: not above 0"),
    (setting("offset", "much"), "offset"),
    (setting("label_scale", 0.0), "label_scale"),
]


@each_case(("change", "field"), MALFORMED, ids=lambda value: value if isinstance(value, str) else "")
def test_a_malformed_part_is_refused_by_field(tmp_path, change, field):
    content = part_of().to_dict() | {"grid": {"feature_bits": 12, "weight_bits": 30}}
    change(content)
    with pytest.raises((DataError, RangeError), match=field):
        VerticalModelPart.from_dict(content)
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"model\.json"):
        load_model(tmp_path / "model.json")


def test_a_part_of_numbers_that_are_none_is_not_made():
    part = part_of()
    with pytest.raises(DataError, match="weights: another number than of columns"):
        replace(part, weights=part.weights[1:])
    for name, value in (
        ("weights", part.weights * math.nan),
        ("feature_bound", math.inf),
        ("label_mean", math.nan),
        ("offset", math.nan),
    ):
        with pytest.raises(DataError, match="a number of the model is not finite"):
            replace(part, **{name: value})


@pytest.mark.parametrize("norm_bound", [0.0, -1.0])
def test_a_walr_model_of_rows_without_a_length(norm_bound):
    content = WALRModel(standardiser(), np.array([1.0, 2.0, 3.0]), intercept=False, norm_bound=2.0).to_dict()
    assert WALRModel.from_dict(content).intercept is False
    with pytest.raises(DataError, match=r"^norm_bound: not above 0$"):
        WALRModel.from_dict(content | {"norm_bound": norm_bound})


def test_the_intercept_is_the_active_partys():
    with pytest.raises(DataError, match="intercept"):
        part_of(PASSIVES[0], intercept=1.0)


# --- scores ---------------------------------------------------------------------------------------------


@LAW
@given(st.data())
def test_a_rows_score_depends_on_no_other_row(data):
    part = data.draw(model_parts())
    rows = data.draw(rows_for(part))
    scores = part.score_parts(rows)
    order = np.array(data.draw(st.permutations(range(len(rows)))), dtype=np.int64)
    assert part.score_parts(rows[order]).tolist() == scores[order].tolist()
    cut = data.draw(st.integers(0, len(rows)))
    assert [*part.score_parts(rows[:cut]), *part.score_parts(rows[cut:])] == scores.tolist()
    assert part.score_parts(np.asfortranarray(rows)).tolist() == scores.tolist()


@LAW
@given(st.data())
def test_no_part_of_a_score_passes_the_bound(data):
    """The sum of seventeen parties' parts never wraps round."""
    part = data.draw(model_parts())
    scores = part.score_parts(data.draw(rows_for(part)))
    # Rounding: half of 2^-30 in each weight, half of 2^-12 in a bound that is no whole number of steps.
    slack = 1 + 2.0**-12 + 2.0**-13 / part.feature_bound
    assert all(
        abs(score) <= (LARGEST_SCORE * slack + 6 * 1024 * 2.0**-31) * 2**42 for score in real_scores(scores) * 2**42
    )


def test_a_score_is_what_the_real_model_says():
    """Within half a step of each feature and of each weight."""
    part = part_of(intercept=0.25)
    rows = np.random.default_rng(3).normal(size=(200, 3)) * 100
    x = np.clip(part.standardiser.transform(rows), -8, 8)
    expected = x @ part.weights + 0.25
    bound = (2.0**-13 * np.abs(part.weights) + 2.0**-31 * 8).sum() + 2.0**-31 + 1e-12
    assert np.abs(real_scores(part.score_parts(rows)) - expected).max() <= bound


def test_predictions_are_probabilities_or_values():
    scores = np.array([0, 3 << 42, -(3 << 42), 2**56, -(2**56)])
    logistic = part_of().predictions(scores)
    assert logistic.tolist() == [0.5, 1 / (1 + math.exp(-3)), math.exp(-3) / (1 + math.exp(-3)), 1.0, 0.0]
    linear = part_of(model="linear", label_mean=10.0, label_scale=2.0).predictions(scores[:3])
    assert linear.tolist() == [10.0, 16.0, 4.0]
    with pytest.raises(DataError, match="active"):
        part_of(PASSIVES[0]).predictions(scores)


@each_case("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_also_in_a_column_without_a_weight(value):
    part = part_of(standardiser=standardiser(dropped=(2,)), weights=np.ones(2))
    for column in range(3):
        row = np.zeros((2, 3))
        row[1, column] = value
        with pytest.raises(DataError, match=f"row 1, column c{column}: "):
            part.score_parts(row)


def test_rows_of_another_width_are_refused():
    with pytest.raises(DataError, match="rows have 2 columns; the model was made for 3"):
        part_of().score_parts(np.zeros((4, 2)))
