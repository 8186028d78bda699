"""Class weights of a party's rows, which it alone knows."""

from __future__ import annotations

import numpy as np
import structlog
from numpy.typing import NDArray

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.class_weights import LARGEST_CLASS_WEIGHT, balanced
from blindfit.parties.vertical.prepared import Prepared, with_rows

log = structlog.get_logger(__name__)


def class_factors(prepared: Prepared) -> NDArray[np.int64]:
    """`balanced` of each row, from the training rows.

    That a class is rarer is told the operator alone: a refusal would tell everybody.
    """
    if prepared.labels.y is None:
        raise ConfigError("only the active party knows the classes")
    positive = prepared.labels.y > 0
    factors, is_clipped = balanced(positive, positive[with_rows(prepared.rows, prepared.plan.train)])
    if is_clipped:
        log.warning("a class is so rare that its weight is clipped", weight=LARGEST_CLASS_WEIGHT)
    return factors
