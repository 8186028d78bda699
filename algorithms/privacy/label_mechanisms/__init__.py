"""Mechanisms that release labels under label differential privacy: fit one, publish its parameters, draw, debias."""

from algorithms.privacy.label_mechanisms.base import LabelGrid, LabelMechanism, Law
from algorithms.privacy.label_mechanisms.fitting import NAMES, FittedMechanism, MechanismSettings, fit
from algorithms.privacy.label_mechanisms.prior import Prior, prior_from_counts, uniform_prior
from algorithms.privacy.label_mechanisms.published import from_parameters

__all__ = [
    "NAMES",
    "FittedMechanism",
    "LabelGrid",
    "LabelMechanism",
    "Law",
    "MechanismSettings",
    "Prior",
    "fit",
    "from_parameters",
    "prior_from_counts",
    "uniform_prior",
]
