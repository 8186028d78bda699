"""The fitted models that a model.json may have: one class for each kind of system."""

from __future__ import annotations

from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel

Model = WALRModel | LabelRegressionModel | DPLogisticModel | VerticalModelPart
