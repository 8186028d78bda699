"""Blindfit: regressions on data of several organisations without pooling the data. This is the Python API."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from blindfit.version import __version__

if TYPE_CHECKING:
    from blindfit.algorithms.columns.levels import UnseenLevelWarning
    from blindfit.algorithms.errors import (
        BlindfitError,
        BlindfitWarning,
        BudgetExhausted,
        ConfigError,
        DataError,
        LedgerBehind,
        MalformedMessage,
        PeerTimeout,
        PeerUnauthenticated,
        PeerUnreachable,
        PolicyRefused,
        PrivacyError,
        ProtocolError,
        RangeError,
        TransportError,
    )
    from blindfit.algorithms.estimators.cautions import (
        ConstantColumnWarning,
        FeatureScaleWarning,
        InfeasibleModelWarning,
        IterationBudgetWarning,
        LargeDeltaWarning,
        NoisyModelWarning,
        NotConvergedWarning,
        PrivacyLeakWarning,
    )
    from blindfit.algorithms.estimators.dp_logistic_regression import DPLogisticRegression
    from blindfit.algorithms.estimators.privacy_budget import PrivacyBudget
    from blindfit.algorithms.estimators.walr_classifier import WALRClassifier
    from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
    from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
    from blindfit.algorithms.statistics.label_dp.model import LabelRegressionModel
    from blindfit.algorithms.statistics.linear.pretraining import Pretrained, pretrain
    from blindfit.algorithms.statistics.models import Model
    from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
    from blindfit.algorithms.statistics.walr.model import WALRModel
    from blindfit.coordinator.job.job import Job
    from blindfit.coordinator.preflight.findings import Finding
    from blindfit.coordinator.python.calls import (
        Findings,
        check,
        evaluate,
        export,
        export_model,
        init,
        ledger,
        plan,
        predict,
        run,
        submit,
        verify,
    )
    from blindfit.coordinator.python.result import Result
    from blindfit.coordinator.python.running_job import ProgressEvent, RunningJob
    from blindfit.coordinator.python.simulating import simulate
    from blindfit.coordinator.simulate.simulation import Simulation
    from blindfit.coordinator.terminal.json_output import Found
    from blindfit.coordinator.terminal.stopped import Stopped
    from blindfit.parties.identity.identity import load_identity
    from blindfit.parties.measurement.calls import ReleasedLabels
    from blindfit.parties.measurement.client import DatasetBudget, DatasetDescription, MeasurementClient, NoisyAggregate
    from blindfit.parties.systems import load_model
    from blindfit.parties.training.public_model import load_pretrained

__all__ = [
    "BlindfitError",
    "BlindfitWarning",
    "BudgetExhausted",
    "ConfigError",
    "ConstantColumnWarning",
    "DPLogisticModel",
    "DPLogisticRegression",
    "DataError",
    "DatasetBudget",
    "DatasetDescription",
    "FeatureScaleWarning",
    "Finding",
    "Findings",
    "Found",
    "InfeasibleModelWarning",
    "IterationBudgetWarning",
    "Job",
    "LabelGrid",
    "LabelRegressionModel",
    "LargeDeltaWarning",
    "LedgerBehind",
    "MalformedMessage",
    "MeasurementClient",
    "MechanismSettings",
    "Model",
    "NoisyAggregate",
    "NoisyModelWarning",
    "NotConvergedWarning",
    "PeerTimeout",
    "PeerUnauthenticated",
    "PeerUnreachable",
    "PolicyRefused",
    "Pretrained",
    "PrivacyBudget",
    "PrivacyError",
    "PrivacyLeakWarning",
    "ProgressEvent",
    "ProtocolError",
    "RangeError",
    "ReleasedLabels",
    "Result",
    "RunningJob",
    "Simulation",
    "Stopped",
    "TransportError",
    "UnseenLevelWarning",
    "VerticalModelPart",
    "WALRClassifier",
    "WALRModel",
    "__version__",
    "check",
    "evaluate",
    "export",
    "export_model",
    "init",
    "ledger",
    "load_identity",
    "load_model",
    "load_pretrained",
    "plan",
    "predict",
    "pretrain",
    "run",
    "simulate",
    "submit",
    "verify",
]

_ELSEWHERE = {
    "DPLogisticRegression": "blindfit.algorithms.estimators.dp_logistic_regression",
    "PrivacyBudget": "blindfit.algorithms.estimators.privacy_budget",
    "UnseenLevelWarning": "blindfit.algorithms.columns.levels",
    **dict.fromkeys(
        (
            "ConstantColumnWarning",
            "FeatureScaleWarning",
            "InfeasibleModelWarning",
            "IterationBudgetWarning",
            "LargeDeltaWarning",
            "NoisyModelWarning",
            "NotConvergedWarning",
            "PrivacyLeakWarning",
        ),
        "blindfit.algorithms.estimators.cautions",
    ),
    "Pretrained": "blindfit.algorithms.statistics.linear.pretraining",
    "pretrain": "blindfit.algorithms.statistics.linear.pretraining",
    "WALRClassifier": "blindfit.algorithms.estimators.walr_classifier",
    "DPLogisticModel": "blindfit.algorithms.statistics.dp_lr.model",
    "LabelRegressionModel": "blindfit.algorithms.statistics.label_dp.model",
    "Model": "blindfit.algorithms.statistics.models",
    "VerticalModelPart": "blindfit.algorithms.statistics.vertical.model",
    "WALRModel": "blindfit.algorithms.statistics.walr.model",
    "load_identity": "blindfit.parties.identity.identity",
    "LabelGrid": "blindfit.algorithms.privacy.label_mechanisms",
    "MechanismSettings": "blindfit.algorithms.privacy.label_mechanisms",
    **dict.fromkeys(
        ("DatasetBudget", "DatasetDescription", "MeasurementClient", "NoisyAggregate"),
        "blindfit.parties.measurement.client",
    ),
    "ReleasedLabels": "blindfit.parties.measurement.calls",
    "Job": "blindfit.coordinator.job.job",
    **dict.fromkeys(
        (
            "Findings",
            "check",
            "evaluate",
            "export",
            "export_model",
            "init",
            "ledger",
            "plan",
            "predict",
            "run",
            "submit",
            "verify",
        ),
        "blindfit.coordinator.python.calls",
    ),
    "Finding": "blindfit.coordinator.preflight.findings",
    "Found": "blindfit.coordinator.terminal.json_output",
    "Result": "blindfit.coordinator.python.result",
    "Simulation": "blindfit.coordinator.simulate.simulation",
    "simulate": "blindfit.coordinator.python.simulating",
    **dict.fromkeys(("ProgressEvent", "RunningJob"), "blindfit.coordinator.python.running_job"),
    "Stopped": "blindfit.coordinator.terminal.stopped",
    "load_model": "blindfit.parties.systems",
    "load_pretrained": "blindfit.parties.training.public_model",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use: a party process needs no estimator, and a notebook needs no server."""
    if name not in __all__:
        raise AttributeError(f"module 'blindfit' has no attribute {name!r}")
    return getattr(importlib.import_module(_ELSEWHERE.get(name, "blindfit.algorithms.errors")), name)


def __dir__() -> list[str]:
    return __all__
