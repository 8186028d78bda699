"""Mechanisms that release labels under label differential privacy: fit one, publish its parameters, draw, debias."""

from blindfit.algorithms.privacy.label_mechanism_options import NAMES
from blindfit.algorithms.privacy.label_mechanisms.base import LabelGrid, LabelMechanism, Law
from blindfit.algorithms.privacy.label_mechanisms.fitting import (
    FittedMechanism,
    MakeMechanism,
    MechanismSettings,
    fit,
    make_mechanism,
)
from blindfit.algorithms.privacy.label_mechanisms.gaussian import fine_enough
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior, prior_from_counts, uniform_prior
from blindfit.algorithms.privacy.label_mechanisms.published import from_parameters

__all__ = [
    "NAMES",
    "FittedMechanism",
    "LabelGrid",
    "LabelMechanism",
    "Law",
    "MakeMechanism",
    "MechanismSettings",
    "Prior",
    "fine_enough",
    "fit",
    "from_parameters",
    "make_mechanism",
    "prior_from_counts",
    "uniform_prior",
]
