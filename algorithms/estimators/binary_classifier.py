"""What scikit-learn wants of a classifier of two classes, made of its scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from blindfit.algorithms.estimators.privacy_budget import refuse_another_process
from blindfit.algorithms.statistics.logistic import sigmoid


class PrivateBinaryClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Args of a subclass are its own; its fit sets `classes_`, `coef_`, `intercept_` and `privacy_statement_`."""

    classes_: NDArray[Any]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    privacy_statement_: str

    @abstractmethod
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]: ...

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        positive = sigmoid(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def __getstate__(self) -> Any:
        """What is fitted elsewhere would pass by an open `PrivacyBudget`, and a fitted model can be fitted again."""
        refuse_another_process()
        return super().__getstate__()

    @contextmanager
    def _kept_if_refused(self) -> Iterator[None]:
        """A fit that fails leaves the model before it whole, the features that scikit-learn notes at once included."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        chosen: NDArray[Any] = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return chosen

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # the noise has no seed
        tags.classifier_tags.poor_score = True  # on the few rows of scikit-learn's own checks
        tags.classifier_tags.multi_class = False
        return tags
