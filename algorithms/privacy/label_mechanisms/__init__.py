"""Mechanisms that release labels under label differential privacy: fit one, publish its parameters, draw, debias."""

from blindfit.algorithms.privacy.label_mechanisms.base import LabelGrid, LabelMechanism, Law
from blindfit.algorithms.privacy.label_mechanisms.fitting import NAMES, FittedMechanism, MechanismSettings, fit
from blindfit.algorithms.privacy.label_mechanisms.gaussian import fine_enough
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior, prior_from_counts, uniform_prior
from blindfit.algorithms.privacy.label_mechanisms.published import from_parameters

__all__ = [
    "NAMES",
    "FittedMechanism",
    "LabelGrid",
    "LabelMechanism",
    "Law",
    "MechanismSettings",
    "Prior",
    "fine_enough",
    "fit",
    "from_parameters",
    "prior_from_counts",
    "uniform_prior",
]
