"""Class weights of a party's rows, which it alone knows."""

from __future__ import annotations

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.vertical.class_weights import LARGEST_CLASS_WEIGHT, balance
from blindfit.parties.vertical.prepared import Prepared, with_rows

log = structlog.get_logger(__name__)


def class_weights(prepared: Prepared) -> NDArray[np.int64]:
    """`balanced`, from the training rows.

    That a class is rarer is told the operator alone: a refusal would tell everybody.
    """
    positive = _classes(prepared)
    weights, is_clipped = balance(positive[with_rows(prepared.rows, prepared.plan.train)])
    if is_clipped:
        log.warning("a class is so rare that its weight is clipped", weight=LARGEST_CLASS_WEIGHT)
    return weights


def class_factors(prepared: Prepared) -> NDArray[np.int64]:
    """Of each row its class's weight."""
    return class_weights(prepared)[_classes(prepared).astype(np.intp)]


def _classes(prepared: Prepared) -> NDArray[np.bool_]:
    if prepared.labels.y is None:
        raise ConfigError("only the active party knows the classes")
    return prepared.labels.y > 0
