"""The label mechanisms by name, for code that reads settings and need not import label_mechanisms/."""

from __future__ import annotations

_FOR_A_PRIOR = frozenset({"prior", "epsilon_prior", "prior_mechanism", "cell_width"})

OPTIONS: dict[str, frozenset[str]] = {
    "laplace": frozenset(),
    "gaussian": frozenset({"delta"}),
    "staircase": frozenset({"optimal_for"}),
    "rr-on-bins": _FOR_A_PRIOR | {"rounding"},
    "unbiased": _FOR_A_PRIOR | {"rounding", "output_cells", "output_reach"},
    "rp-with-prior": _FOR_A_PRIOR | {"half_width"},
    "rp-banded": _FOR_A_PRIOR | {"half_width"},
}
"""Options that each mechanism uses in addition to name, grid and epsilon."""

NAMES = tuple(OPTIONS)
