"""Label mechanisms by themselves: fit one, publish its parameters, draw noisy labels, debias them.

The examples start with `from blindfit import label_mechanisms`. docs/explanation/label_dp.md has a table of the seven
mechanisms.
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
