"""The methods that scikit-learn expects of a classifier of two classes, computed from its scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from blindfit.algorithms.columns.record import TableRecord
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.estimators.privacy_budget import refuse_another_process
from blindfit.algorithms.statistics.linear.logistic import sigmoid
from blindfit.algorithms.statistics.linear.named_columns import in_order, names_in, record_of, without_mask


class PrivateBinaryClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier of two classes whose fit sets `classes_`, `coef_`, `intercept_` and `privacy_statement_`."""

    _table: TableRecord | None = None  # kinds of the fitted table's columns; None after a fit to an array
    classes_: NDArray[Any]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    privacy_statement_: str

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the log odds of the second class, shape (rows,).

        Args:
            X: features, shape (rows, columns).
        """

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, shape (rows, 2), in the order of `classes_`.

        Args:
            X: features, shape (rows, columns).

        Raises:
            NotFittedError: `fit` was not called.
            DataError, ValueError: the features are not those of the fit.
        """
        positive = sigmoid(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def __getstate__(self) -> Any:
        """Return the state to pickle. An open `PrivacyBudget` would not count the fits of another process.

        Raises:
            PrivacyError: a `PrivacyBudget` is open.
        """
        refuse_another_process()
        return super().__getstate__()

    def _rows_to_fit(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
        """Return the rows as numbers, and the labels; note how a table's columns became numbers.

        Raises:
            DataError, ValueError: a row or a column is wrong.
        """
        names = _names_in(X)
        if names is None:
            self._table = None
            features, labels = validate_data(self, _without_dates(X), y, dtype=np.float64, ensure_min_samples=2)
        else:
            validate_data(self, X, y, skip_check_array=True)
            self._table = record_of(X, names)
            matrix = in_order(X, names, self._table)
            features, labels = check_X_y(matrix, y, dtype=np.float64, ensure_min_samples=2, estimator=self)
        return features, labels

    def _rows_of_fit(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return more rows as numbers, converted in the same way as the rows of the fit."""
        names = _names_in(X)
        if names is None or self._table is None:
            features: NDArray[np.float64] = validate_data(self, _without_dates(X), dtype=np.float64, reset=False)
            return features
        validate_data(self, X, skip_check_array=True, reset=False)
        return in_order(X, self._table.names, self._table)

    @contextmanager
    def _restore_on_error(self) -> Iterator[None]:
        """Restore the whole earlier model after a fit that fails; scikit-learn notes the new features before it."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the more probable class of each row, shape (rows,).

        Args:
            X: features, shape (rows, columns).

        Raises:
            NotFittedError: `fit` was not called.
            DataError, ValueError: the features are not those of the fit.
        """
        check_is_fitted(self)
        chosen: NDArray[Any] = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return chosen

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # the noise has no seed
        tags.classifier_tags.poor_score = True  # scikit-learn's own checks have few rows
        tags.classifier_tags.multi_class = False
        return tags


def _names_in(X: Any) -> tuple[Any, ...] | None:
    """Return the column names of a table that scikit-learn reads too; None for an array or an input that it refuses."""
    names = None if isinstance(X, Mapping) else names_in(X)
    return names if names and all(isinstance(name, str) for name in names) else None


def _without_dates(X: Any) -> Any:
    """Return the array; raise DataError if it holds dates, which NumPy would silently convert to some unit."""
    if hasattr(X, "tocsr"):  # a sparse matrix, which scikit-learn refuses
        return X
    X = without_mask(X)
    try:
        found = np.asarray(X)
    except ValueError:  # rows of several lengths, which scikit-learn refuses
        return X
    dates = (np.datetime64, np.timedelta64)
    if found.dtype.kind in "mM" or (found.dtype.kind == "O" and any(isinstance(value, dates) for value in found.flat)):
        raise DataError(
            "rows without names must hold numbers only, not dates", hint="pass a data frame, which names its columns"
        )
    return X
