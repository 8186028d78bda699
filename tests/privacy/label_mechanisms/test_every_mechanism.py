"""All seven mechanisms have a law that sums to one, keeps epsilon, is the law that is drawn, and is published."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from blindfit.algorithms.errors import BlindfitError, ConfigError, DataError
from blindfit.algorithms.privacy.label_mechanisms import NAMES, LabelGrid, LabelMechanism, from_parameters
from blindfit.algorithms.privacy.label_mechanisms.drawing import exp_bounds
from tests.each_case import each_case
from tests.privacy.label_mechanisms.examples import (
    DEBIASABLE,
    EPSILONS,
    OPTIONS,
    PURE,
    SMALL,
    all_labels,
    example,
    uniform,
)
from tests.privacy.noise_checks import FALSE_ALARM


def test_every_name_has_an_example():
    assert tuple(OPTIONS) == NAMES


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", PURE)
def test_law_sums_to_one_and_agrees_with_its_weights(name, epsilon):
    for label in all_labels():
        law = example(name, epsilon).law(label)
        assert law.probabilities.sum() + law.tail == pytest.approx(1, abs=1e-12)
        assert (np.diff(law.outputs) > 0).all()
        if law.total is not None:
            assert sum(law.weights) == law.total
            assert law.tail == 0
        total = int(law.weights.sum())
        shares = np.array([int(w) / total for w in law.weights])
        np.testing.assert_allclose(law.probabilities, shares * (1 - law.tail), rtol=1e-9, atol=1e-300)


def worst_ratio(mechanism: LabelMechanism) -> Fraction:
    """Return the worst ratio over all pairs of labels and all outputs that both laws list; a single zero makes it
    infinite.
    """
    laws = [mechanism.law(label) for label in all_labels(mechanism.grid)]
    least: dict[int, int] = {}
    most: dict[int, int] = {}
    listed: dict[int, int] = {}
    for law in laws:
        for output, weight in zip(law.outputs.tolist(), law.weights, strict=True):
            least[output] = min(least.get(output, weight), weight)
            most[output] = max(most.get(output, weight), weight)
            listed[output] = listed.get(output, 0) + 1
    if laws[0].total is not None:
        assert len({law.total for law in laws}) == 1
        assert set(listed.values()) == {len(laws)}
        assert min(least.values()) > 0
    return max(Fraction(int(most[output]), int(least[output])) for output in listed)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", PURE)
def test_epsilon_is_kept_exactly_and_reported(name, epsilon):
    mechanism = example(name, epsilon)
    ratio = worst_ratio(mechanism)
    assert ratio <= exp_bounds(epsilon)[0]
    loss, delta = mechanism.privacy_loss()
    assert delta == 0
    assert ratio <= exp_bounds(loss)[1]
    assert loss <= epsilon
    assert math.log(ratio) == pytest.approx(loss, rel=1e-6)


@each_case("epsilon", [0.3, 1.0, 3.0])
@each_case("name", PURE)
def test_epsilon_is_nearly_used_up(name, epsilon):
    mechanism = example(name, epsilon)
    if mechanism.privacy_loss()[0] == 0:  # one band or one bin: nothing of the label is revealed
        assert len({tuple(mechanism.law(label).outputs) for label in all_labels()}) == 1
    else:
        assert mechanism.privacy_loss()[0] == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("name", NAMES)
def test_draws_follow_the_law(name, epsilon):
    mechanism, n = example(name, epsilon), 20_000
    for seed, label in enumerate((-1.0, -0.3, 0.5, 3.0)):
        law = mechanism.law(label)
        drawn = np.rint((mechanism.randomise(np.full(n, label), uniform(seed)) + 1) / SMALL.step).astype(int)
        assert chi_square(drawn, law.outputs, law.probabilities) > FALSE_ALARM


def chi_square(drawn: np.ndarray, outputs: np.ndarray, probabilities: np.ndarray) -> float:
    """Compute the statistic on neighbouring outputs, pooled until at least eight are expected.

    Unlisted outputs join the last pool.
    """
    counts = dict(zip(*np.unique(drawn, return_counts=True), strict=True))
    observed, expected = [0.0], [0.0]
    for output, probability in zip(outputs.tolist(), probabilities.tolist(), strict=True):
        if expected[-1] >= 8:
            observed.append(0.0)
            expected.append(0.0)
        observed[-1] += counts.pop(output, 0)
        expected[-1] += probability * len(drawn)
    observed[-1] += sum(counts.values())
    expected[-1] += len(drawn) - sum(expected)
    if expected[-1] < 8 and len(expected) > 1:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    return 1.0 if len(expected) == 1 else float(stats.chisquare(observed, expected).pvalue)


def test_the_test_of_draws_finds_one_wrong_cell():
    law = example("laplace", 1.0).law(0.5)
    drawn = np.random.default_rng(1).choice(law.outputs, 20_000, p=law.probabilities / law.probabilities.sum())
    assert chi_square(drawn, law.outputs, law.probabilities) > FALSE_ALARM
    assert chi_square(np.where(drawn == 9, 10, drawn), law.outputs, law.probabilities) < FALSE_ALARM


@each_case("name", NAMES)
def test_mean_and_variance_are_those_of_the_law(name):
    mechanism = example(name, 1.0)
    for label in (-1.0, 0.2, 3.0):
        law = mechanism.law(label)
        values = SMALL.reals(law.outputs)
        mean = law.probabilities @ values
        assert mechanism.mean(label) == pytest.approx(mean, abs=1e-6)
        assert mechanism.variance(label) == pytest.approx(law.probabilities @ (values - mean) ** 2, rel=1e-6)


@each_case("epsilon", EPSILONS)
@each_case("name", DEBIASABLE)
def test_debiased_mean_is_the_label(name, epsilon):
    mechanism = example(name, epsilon)
    assert mechanism.can_debias
    low, high = getattr(mechanism, "low", 0), getattr(mechanism, "high", SMALL.cells)
    for label in SMALL.reals(np.arange(low, high + 1)):
        law = mechanism.law(label)
        distances = mechanism.debias(SMALL.reals(law.outputs)) - label
        widest = float(np.abs(distances).max())
        assert law.probabilities @ distances == pytest.approx(0, abs=1e-12 * widest)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(DEBIASABLE)))
def test_debiasing_is_refused_where_it_cannot_be(name):
    mechanism = example(name, 1.0)
    assert not mechanism.can_debias
    with pytest.raises(ConfigError, match="cannot be debiased"):
        mechanism.debias([0.0])


# --- published ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_parameters_make_the_same_mechanism(name):
    mechanism = example(name, 1.3)
    copy = from_parameters(json.loads(json.dumps(mechanism.parameters())))
    assert copy == mechanism
    assert (copy.law(0.4).probabilities == mechanism.law(0.4).probabilities).all()
    assert (copy.randomise([0.4, 1.0], uniform(5)) == mechanism.randomise([0.4, 1.0], uniform(5))).all()


GARBAGE = [None, True, "1", [], {}, math.nan, math.inf, -1, 0.5, 2**63, [1.5], [True], 10**400]


@each_case("name", NAMES)
def test_garbage_is_refused_field_by_field(name):
    good = example(name, 1.3).parameters()
    for field in good:
        with pytest.raises(DataError):
            from_parameters({key: value for key, value in good.items() if key != field})
        for value in GARBAGE:
            if _may_be_right(name, field, value):
                continue
            with pytest.raises(DataError):
                from_parameters(good | {field: value})
    with pytest.raises(DataError, match="exactly the fields"):
        from_parameters(good | {"more": 1})


def _may_be_right(name: str, field: str, value: object) -> bool:
    """Return True for values of the right type in the right range; another check covers their combination."""
    if field in ("lo", "hi"):
        return value in (-1, 0.5, 2**63)
    if field == "epsilon":
        return value == 0.5 and name != "unbiased"
    return (field == "delta" and value == 0.5) or (field == "rounds_down" and value is True)


@each_case("whole", [None, [], "laplace", {}, {"mechanism": []}, {"mechanism": "none"}])
def test_garbage_is_refused_as_a_whole(whole):
    with pytest.raises(DataError, match="mechanism must be one of"):
        from_parameters(whole)


def test_a_claim_that_the_weights_do_not_keep_is_refused():
    good = example("unbiased", 1.0).parameters()
    with pytest.raises(DataError, match="do not keep epsilon"):
        from_parameters(good | {"epsilon": 0.99})


@each_case(
    ("changes", "said"),
    [
        ({"inputs": [*range(24), 25]}, "the last input must be the grid's end"),
        ({"inputs": [*range(22), 22, 23], "weights": 24}, "the last input must be the grid's end"),
        ({"outputs": 2**53}, "an output is too far outside the grid"),
        ({"weights": 0}, "weights must be positive, and each row's total the same, below 2^56"),
        ({"weights": 2**56}, "weights must be positive, and each row's total the same, below 2^56"),
    ],
)
def test_a_table_that_is_no_law_is_refused(changes, said):
    good = example("unbiased", 1.0).parameters()
    if "outputs" in changes:
        changes = {"outputs": [*good["outputs"][:-1], changes["outputs"]]}
    if changes.get("weights") == 24:
        changes = changes | {"weights": good["weights"][:24]}
    elif "weights" in changes:
        changes = {"weights": [[changes["weights"], *row[1:]] for row in good["weights"]]}
    with pytest.raises(DataError, match=re.escape(f"unbiased: {said}")):
        from_parameters(good | changes)


def test_a_table_may_have_the_largest_total():
    good = example("unbiased", 1.0).parameters()
    times = (2**56 - 1) // sum(good["weights"][0])
    larger = good | {"weights": [[times * weight for weight in row] for row in good["weights"]]}
    assert 2**55 < times * sum(good["weights"][0]) < 2**56
    assert from_parameters(larger).privacy_loss() == from_parameters(good).privacy_loss()


# --- labels -------------------------------------------------------------------------------------


@each_case("bad", [math.nan, math.inf, -math.inf])
def test_labels_that_are_not_finite_are_refused_by_row(bad):
    with pytest.raises(DataError, match="row 3"):
        example("laplace", 1.0).randomise([0.0, 1.0, bad], uniform(1))


@each_case("bad", [["a"], [[1.0]], 3.0])
def test_labels_must_be_a_column_of_numbers(bad):
    with pytest.raises(DataError):
        SMALL.steps(bad)


def test_labels_are_clipped_and_rounded():
    assert SMALL.steps([-99, -1, -0.9, 0.0, 3, 99]).tolist() == [0, 0, 1, 6, 24, 24]


@each_case(("lo", "hi", "cells"), [(1, 1, 9), (2, 1, 9), (0, math.inf, 9), (0, 1, 0), (1, 1 + 1e-15, 99)])
def test_grids_that_are_none_are_refused(lo, hi, cells):
    with pytest.raises(ConfigError):
        LabelGrid(lo, hi, cells)


@each_case("name", NAMES)
def test_no_rows_give_no_rows(name):
    assert example(name, 1.0).randomise([], uniform(1)).shape == (0,)


@each_case("epsilon", [0.0, -1.0, 1e-9, 51.0, math.inf, math.nan])
@each_case("name", NAMES)
def test_epsilons_that_are_none_are_refused(name, epsilon):
    with pytest.raises(BlindfitError, match=r"privacy\.epsilon"):
        example(name, epsilon)
