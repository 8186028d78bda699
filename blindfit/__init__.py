"""Blindfit: one model from several organisations' data, none of whom may see another's. What a notebook needs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from algorithms.errors import (
        BlindfitError,
        BudgetExhausted,
        ConfigError,
        DataError,
        LedgerBehind,
        PeerTimeout,
        PeerUnauthenticated,
        PeerUnreachable,
        PolicyRefused,
        PrivacyError,
        ProtocolError,
        RangeError,
        TransportError,
    )
    from algorithms.estimators.dp_logistic_regression import DPLogisticRegression
    from algorithms.estimators.walr_classifier import WALRClassifier
    from algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
    from algorithms.statistics.pretraining import Pretrained, pretrain
    from algorithms.statistics.vertical_model import VerticalModelPart
    from algorithms.statistics.walr_model import WALRModel
    from parties.identity import load_identity
    from parties.measurement_client import MeasurementClient
    from parties.models import load_model, load_pretrained
    from parties.node import VERSION as __version__  # noqa: N811

__all__ = [
    "BlindfitError",
    "BudgetExhausted",
    "ConfigError",
    "DPLogisticRegression",
    "DataError",
    "LabelGrid",
    "LedgerBehind",
    "MeasurementClient",
    "MechanismSettings",
    "PeerTimeout",
    "PeerUnauthenticated",
    "PeerUnreachable",
    "PolicyRefused",
    "Pretrained",
    "PrivacyError",
    "ProtocolError",
    "RangeError",
    "TransportError",
    "VerticalModelPart",
    "WALRClassifier",
    "WALRModel",
    "__version__",
    "load_identity",
    "load_model",
    "load_pretrained",
    "pretrain",
]

_ELSEWHERE = {
    "DPLogisticRegression": "algorithms.estimators.dp_logistic_regression",
    "Pretrained": "algorithms.statistics.pretraining",
    "pretrain": "algorithms.statistics.pretraining",
    "WALRClassifier": "algorithms.estimators.walr_classifier",
    "VerticalModelPart": "algorithms.statistics.vertical_model",
    "WALRModel": "algorithms.statistics.walr_model",
    "load_identity": "parties.identity",
    "LabelGrid": "algorithms.privacy.label_mechanisms",
    "MechanismSettings": "algorithms.privacy.label_mechanisms",
    "MeasurementClient": "parties.measurement_client",
    "load_model": "parties.models",
    "load_pretrained": "parties.models",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: a party process needs no estimator, and a notebook no server."""
    if name == "__version__":
        return importlib.import_module("parties.node").VERSION
    if name not in __all__:
        raise AttributeError(f"module 'blindfit' has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE.get(name, "algorithms.errors")), name)


def __dir__() -> list[str]:
    return __all__
