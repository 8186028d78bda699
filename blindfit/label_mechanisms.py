"""Label mechanisms for people who want nothing else: fit one, publish its parameters, draw, debias.

The functions' own docstrings say what options mean; docs/explanation/label_dp.md has an
example and a table of the seven.
"""

from blindfit.algorithms.privacy.label_mechanisms import (
    NAMES,
    FittedMechanism,
    LabelGrid,
    LabelMechanism,
    Law,
    MechanismSettings,
    Prior,
    fine_enough,
    fit,
    from_parameters,
    prior_from_counts,
    uniform_prior,
)

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
