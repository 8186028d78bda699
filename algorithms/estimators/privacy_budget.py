"""A budget for a notebook: the fits inside a `with` block spend no more than its epsilon together.

A grid search fits a model for each setting and fold, and each fit is a release. In

    with PrivacyBudget(epsilon=3.0, delta=1e-5) as budget:
        GridSearchCV(WALRClassifier(epsilon=0.3), {"l2": [0.01, 0.1]}, cv=5).fit(features, labels)
    budget.spent()

each release is counted before its noise is drawn. The budget counts all fits as if they were about the same rows.
So it never counts too little. A release that is used again (remembered.py) counts once in each budget, even if it was
drawn before the budget was opened. A budget cannot count the fits of another process. So while a budget is open, no
estimator can be pickled and no forked process can fit.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

from blindfit.algorithms.errors import BudgetExhausted, ConfigError, PrivacyError
from blindfit.algorithms.privacy import accountant
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import check_delta, check_epsilon

_open: list[PrivacyBudget] = []  # all open budgets of this process, in all its threads
_lock = threading.RLock()


class PrivacyBudget:
    """A limit on what all fits inside a `with` block release together, in all threads. Nested budgets all count.

    A release that several fits use is counted once, whether it is drawn inside the block or before.

    Args:
        epsilon: the most epsilon of all fits, composed.
        delta: delta of the composition.
        name: name of the budget in messages.

    Raises:
        ConfigError: epsilon or delta is invalid.

    Example:
        >>> with blindfit.PrivacyBudget(epsilon=1.0, delta=1e-5) as budget:
        ...     model = blindfit.WALRClassifier(epsilon=0.9, delta=1e-5).fit(X, y)
        >>> budget.releases, round(budget.spent(), 2)
        (1, 0.9)
    """

    def __init__(self, epsilon: float, delta: float = 1e-5, *, name: str = "this notebook") -> None:
        check_epsilon(epsilon)
        check_delta(delta)
        self.epsilon, self.delta, self.name = epsilon, delta, name
        self._charged: dict[int, ReleaseEvent] = {}  # by the number of the draw
        self._process = 0  # id of the process in which the budget is open

    def __repr__(self) -> str:
        return f"PrivacyBudget(spent {self.spent():.4g} of epsilon {self.epsilon:g}, {self.releases} releases)"

    @property
    def releases(self) -> int:
        """Number of releases that were counted."""
        return len(self._charged)

    def spent(self) -> float:
        """Return the epsilon of all fits together, at `delta`."""
        return accountant.spent_epsilon(list(self._charged.values()), self.delta)

    def left(self) -> float:
        """Return the epsilon that is left, at least 0."""
        return max(0.0, self.epsilon - self.spent())

    def charge(self, event: ReleaseEvent, draw: int) -> bool:
        """Count a release before its noise is drawn, or before it is used again.

        Args:
            event: the release.
            draw: number of the draw; the same number is counted once.

        Returns:
            True if the release was not counted before.

        Raises:
            BudgetExhausted: all releases together would spend more than epsilon.
            PrivacyError: this process is a fork of the process that counts.
            UnsupportedEvent: the release cannot be composed with the earlier ones.
        """
        if self._process != os.getpid():
            raise _elsewhere()
        if draw in self._charged:
            return False
        if not accountant.fits(list(self._charged.values()), event, self.epsilon, self.delta):
            requested = accountant.composed_epsilon([event], self.delta)
            raise BudgetExhausted(
                population=self.name,
                spent=self.spent(),
                budget=self.epsilon,
                requested=requested,
                hint="try fewer settings or folds, lower the epsilon of each fit, or raise that of the PrivacyBudget",
            )
        self._charged[draw] = event
        return True

    def __enter__(self) -> PrivacyBudget:
        with _lock:
            if self in _open:
                raise ConfigError("this PrivacyBudget is already open", hint="make another PrivacyBudget")
            self._process = os.getpid()
            _open.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with _lock:
            _open.remove(self)


def charge(event: ReleaseEvent, draw: int) -> None:
    """Charge every open budget, or none of them.

    Raises:
        BudgetExhausted, UnsupportedEvent, PrivacyError: a budget cannot be charged; see `PrivacyBudget.charge`.
    """
    charged: list[PrivacyBudget] = []
    with _lock:
        for budget in _open:
            try:
                if budget.charge(event, draw):
                    charged.append(budget)
            except PrivacyError:
                for other in charged:
                    del other._charged[draw]
                raise


def refuse_another_process() -> None:
    """Raise PrivacyError if a budget is open, which would not count the fits of another process."""
    if _open:
        raise _elsewhere()


def _elsewhere() -> PrivacyError:
    return PrivacyError(
        "a PrivacyBudget counts the fits of its own process, and this fit would run in another process",
        hint='set n_jobs=1, or use joblib.parallel_config("threading"); save a model after the `with` block',
    )
