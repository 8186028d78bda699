"""A budget counts every fit of a search in any thread, and refuses more; a scaler that saw private rows is reported."""

from __future__ import annotations

import multiprocessing
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from blindfit import (
    BudgetExhausted,
    ConfigError,
    DPLogisticRegression,
    PrivacyBudget,
    PrivacyError,
    PrivacyLeakWarning,
    WALRClassifier,
)
from blindfit.algorithms.errors import UnsupportedEvent
from blindfit.algorithms.estimators import privacy_budget, remembered
from blindfit.algorithms.privacy.accountant import composed_epsilon


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng()  # rows that no other test has fitted: a remembered release spends nothing
    x = rng.normal(size=(400, 3))
    return x, (x[:, 0] + rng.logistic(size=400) > 0).astype(int)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    assert privacy_budget._open == []


def search(**options: object) -> GridSearchCV:
    return GridSearchCV(WALRClassifier(epsilon=0.3), {"l2": [0.01, 0.1]}, cv=3, **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_every_fit_of_a_search_is_counted(rows: tuple[np.ndarray, np.ndarray], threads: int) -> None:
    """Three folds, each one release for both settings of l2, and one of all rows: four releases of 0.3."""
    with PrivacyBudget(3.0) as budget, joblib.parallel_config("threading"):
        search(n_jobs=threads).fit(*rows)
    assert budget.releases == 4
    assert budget.spent() == composed_epsilon(list(budget._charged.values()), 1e-5)
    assert 0.3 < budget.spent() < 1.2  # Gaussian releases compose to less than their sum
    assert budget.left() == 3.0 - budget.spent()
    WALRClassifier(epsilon=0.3, release="outside").fit(*rows)
    assert budget.releases == 4


def test_every_fold_of_a_cross_validation_is_counted(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with PrivacyBudget(3.0) as budget:
        assert len(cross_val_score(WALRClassifier(epsilon=0.3), *rows, cv=3)) == 3
        assert budget.releases == 3
        with pytest.raises(pickle.PicklingError):
            cross_val_score(WALRClassifier(epsilon=0.3), *rows, cv=3, n_jobs=2)
    assert budget.releases == 3


def test_the_fit_that_passes_it_is_refused_before_its_noise_is_drawn(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "_released", OrderedDict())
    with PrivacyBudget(0.5) as budget:
        WALRClassifier(epsilon=0.3).fit(*rows)
        with pytest.raises(BudgetExhausted, match=r"epsilon 0.3 of 0.5 is spent, and a release of epsilon 0.4"):
            WALRClassifier(epsilon=0.4).fit(*rows)
        WALRClassifier(epsilon=0.3).fit(*rows)  # remembered
    assert (budget.releases, len(remembered._released)) == (1, 1)
    assert repr(budget) == "PrivacyBudget(spent 0.3 of epsilon 0.5, 1 releases)"


@pytest.mark.parametrize(
    ("model", "same"),
    [
        (DPLogisticRegression(epsilon=1.0), {"epsilon": 1}),
        (DPLogisticRegression(epsilon=1.0), {"epsilon": np.float64(1.0), "n_iterations": np.int64(50)}),
        (DPLogisticRegression(epsilon=1.0, clip_norm=1.0), {"clip_norm": 1}),
        (WALRClassifier(epsilon=1.0, frac_bits=16), {"epsilon": 1, "frac_bits": np.int64(16)}),
    ],
)
def test_numbers_of_another_type_ask_for_the_same_release(
    rows: tuple[np.ndarray, np.ndarray], model: Any, same: dict[str, Any]
) -> None:
    with PrivacyBudget(10.0) as budget:
        weights = clone(model).fit(*rows).coef_
        again = clone(model).set_params(**same).fit(*rows).coef_
        assert budget.releases == 1
        assert again.tolist() == weights.tolist()
        clone(model).set_params(epsilon=1.5).fit(*rows)
        assert budget.releases == 2


def test_a_release_of_before_is_counted_once_by_each_budget_that_uses_it(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = WALRClassifier(epsilon=0.8).fit(*rows)
    with PrivacyBudget(0.5) as small, pytest.raises(BudgetExhausted):
        clone(model).fit(*rows)
    assert small.releases == 0
    for _ in range(2):
        with PrivacyBudget(1.0) as budget:
            again = [clone(model).fit(*rows).coef_.tolist() for _ in range(3)]
        assert again == [model.coef_.tolist()] * 3
        assert budget.releases == 1
    with budget:
        clone(model).fit(*rows)
        assert budget.releases == 1
        monkeypatch.setattr(remembered, "_released", OrderedDict())  # forgotten: this is another draw
        with pytest.raises(BudgetExhausted):
            clone(model).fit(*rows)


def test_budgets_within_budgets_count_both_or_neither(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with PrivacyBudget(2.0) as outer, PrivacyBudget(0.2) as inner:
        with pytest.raises(BudgetExhausted):
            WALRClassifier(epsilon=0.3).fit(*rows)
        assert (outer.releases, inner.releases) == (0, 0)
        WALRClassifier(epsilon=0.1).fit(*rows)
    assert (outer.releases, inner.releases) == (1, 1)
    with outer, pytest.raises(ConfigError, match="already open"), outer:
        pass


def test_whole_rows_compose_with_labels_of_rows_and_added_rows_do_not(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with PrivacyBudget(3.0) as budget:
        WALRClassifier(epsilon=0.3).fit(*rows)
        DPLogisticRegression(epsilon=0.5, n_iterations=5, norm_bound=3.0).fit(*rows)
        with pytest.raises(UnsupportedEvent, match="different neighbours"):
            DPLogisticRegression(epsilon=0.5, n_iterations=5, neighbours="add-or-remove").fit(*rows)
    assert budget.releases == 2
    assert budget.spent() > 0.5


def test_no_fit_passes_by_it_in_another_process(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with PrivacyBudget(3.0):
        with pytest.raises(PrivacyError, match="counts the fits of its own process"):
            pickle.dumps(WALRClassifier())
        with pytest.raises(pickle.PicklingError) as caught:
            search(n_jobs=2).fit(*rows)
        assert "counts the fits of its own process" in str(caught.value.__cause__)
    pickle.dumps(WALRClassifier())


@pytest.mark.parametrize("classifier", [WALRClassifier, DPLogisticRegression])
def test_nor_a_fit_of_what_was_fitted_or_refused_before(
    rows: tuple[np.ndarray, np.ndarray], classifier: type[WALRClassifier | DPLogisticRegression]
) -> None:
    """Another process could fit it again."""
    with PrivacyBudget(0.4) as budget:
        fitted, refused = classifier(epsilon=0.3).fit(*rows), classifier(epsilon=0.5)
        with pytest.raises(BudgetExhausted):
            refused.fit(*rows)
        for model in (fitted, refused):
            with pytest.raises(PrivacyError, match="counts the fits of its own process"):
                pickle.dumps(model)
        assert budget.releases == 1
    assert pickle.loads(pickle.dumps(fitted)).coef_.tolist() == fitted.coef_.tolist()


def test_nor_one_in_a_fork(rows: tuple[np.ndarray, np.ndarray]) -> None:
    def fit() -> None:
        try:
            WALRClassifier(epsilon=0.3).fit(*rows)
        except PrivacyError as error:
            answers.put(str(error))
        else:
            answers.put("fitted")

    forks = multiprocessing.get_context("fork")
    answers = forks.SimpleQueue()
    with PrivacyBudget(3.0), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forks in a process with threads
        fork = forks.Process(target=fit)
        fork.start()
        assert "counts the fits of its own process" in answers.get()
        fork.join()


@pytest.mark.parametrize("classifier", [WALRClassifier, DPLogisticRegression])
def test_a_fit_that_is_refused_leaves_the_model_before_it_whole(
    rows: tuple[np.ndarray, np.ndarray], classifier: type[WALRClassifier | DPLogisticRegression]
) -> None:
    x, y = rows
    model = classifier(epsilon=5.0).fit(x, y)
    scores = model.decision_function(x)
    if classifier is DPLogisticRegression:
        model.set_params(feature_bounds=(100, 101))
    with PrivacyBudget(0.1), pytest.raises(BudgetExhausted):
        model.fit(x[:, :2], y + 1)
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.decision_function(x), scores)


# --- what a pipeline has seen ------------------------------------------------------------------------------


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_a_scaler_that_saw_the_private_rows_is_noticed(scaler: object, rows: tuple[np.ndarray, np.ndarray]) -> None:
    pipeline = make_pipeline(scaler, DPLogisticRegression(n_iterations=2))
    with pytest.warns(PrivacyLeakWarning, match="a scaler was fitted to these rows"):
        pipeline.fit(*rows)


def test_public_scales_and_columns_of_zeros_and_ones_are_not(rows: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = rows
    public = StandardScaler().fit(np.random.default_rng(1).normal(size=(500, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        DPLogisticRegression(n_iterations=2).fit(public.transform(x), y)
        DPLogisticRegression(n_iterations=2).fit((x > 0).astype(float), y)
        DPLogisticRegression(n_iterations=2).fit(np.column_stack([x > 0, x[:, 0]]), y)
        WALRClassifier().fit(StandardScaler().fit_transform(x), y)  # its features are public
