"""From settings and labels to a mechanism, and what the fit itself costs.

The two parts compose: a prior estimated from the labels spends epsilon_prior, and the mechanism what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy.typing as npt

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.gaussian import LEAST_DELTA
from blindfit.algorithms.privacy.label_mechanism_options import NAMES, OPTIONS
from blindfit.algorithms.privacy.label_mechanisms.base import (
    DEFAULT_CELLS,
    LEAST_EPSILON,
    LEAST_SHARE,
    LabelGrid,
    LabelMechanism,
    check_label_epsilon,
)
from blindfit.algorithms.privacy.label_mechanisms.estimation import PRIOR_MECHANISMS, check_cell_width, estimate_prior
from blindfit.algorithms.privacy.label_mechanisms.gaussian import Gaussian, fine_enough
from blindfit.algorithms.privacy.label_mechanisms.intervals import IntervalMechanism
from blindfit.algorithms.privacy.label_mechanisms.laplace import Laplace
from blindfit.algorithms.privacy.label_mechanisms.prior import Prior
from blindfit.algorithms.privacy.label_mechanisms.rp_banded import RPBanded
from blindfit.algorithms.privacy.label_mechanisms.rp_with_prior import RPWithPrior
from blindfit.algorithms.privacy.label_mechanisms.rr_on_bins import RROnBins, nodes
from blindfit.algorithms.privacy.label_mechanisms.staircase import Staircase
from blindfit.algorithms.privacy.label_mechanisms.unbiased import Unbiased, places
from blindfit.algorithms.randomness import UniformInt, system_uniform

_EVERYWHERE = frozenset({"name", "grid", "epsilon"})


@dataclass(frozen=True)
class MechanismSettings:
    """What an operator chooses. An option that the named mechanism does not use must stay None.

    Args:
        name: one of NAMES.
        grid: the labels' public range. For gaussian, a grid of the default number of cells becomes finer where epsilon
            needs it (`fine_enough`).
        epsilon: of everything, the prior's estimate included.
        delta: of everything; 0 but for "gaussian".
        prior: what is known of the labels from elsewhere; None: estimated from them.
        epsilon_prior: a part of epsilon, for that estimate; None: a third.
        prior_mechanism: how it is estimated: "laplace" or "staircase" noise on each label, or "histogram": Laplace
            noise on the counts. None: laplace for the rp mechanisms, histogram for rr-on-bins and unbiased.
        cell_width: of the prior's histogram, in units of the label; None: the noisy labels' standard deviation, and
            for "histogram" the rounding, or a 64th of the range.
        half_width: of the neighbourhood that the rp mechanisms favour, in units of the label; "auto" (which None
            means) is for rp-with-prior alone.
        optimal_for: the error that the staircase makes least; None: squared.
        rounding: width to which rr-on-bins and unbiased round labels down first, in units of the label; None: none.
        output_cells: how many outputs unbiased has, about; None: 32 more than inputs.
        output_reach: how far past both ends of the range its outputs go, in units of the label; None: twice what is
            needed at least, or a quarter of the range where that is more.
    """

    name: str
    grid: LabelGrid
    epsilon: float
    delta: float = 0.0
    prior: Prior | None = None
    epsilon_prior: float | None = None
    prior_mechanism: Literal["laplace", "staircase", "histogram"] | None = None
    cell_width: float | None = None
    half_width: float | Literal["auto"] | None = None
    optimal_for: Literal["squared", "absolute"] | None = None
    rounding: float | None = None
    output_cells: int | None = None
    output_reach: float | None = None

    def __post_init__(self) -> None:
        if self.name not in OPTIONS:
            raise ConfigError(f"the label mechanism must be one of {', '.join(NAMES)}, not {self.name!r}")
        check_label_epsilon(self.epsilon, self.name)
        self._check_use()
        self._check_prior()
        for width in ("half_width", "rounding", "output_reach"):
            _check_width(self, width)
        if self.output_cells is not None and not 4 <= self.output_cells <= 1000:
            raise ConfigError(f"output_cells must lie in 4..1000, not {self.output_cells}")
        self._check_size()
        # A delta out of range is refused by the mechanism.
        if self.name == "gaussian" and self.grid.cells == DEFAULT_CELLS and LEAST_DELTA <= self.delta < 1:
            object.__setattr__(self, "grid", fine_enough(self.grid, self.epsilon, self.delta))

    def _check_use(self) -> None:
        """An option that would do nothing is refused, and one without which there is no mechanism is asked for."""
        set_here = {f.name for f in fields(self) if getattr(self, f.name) not in (None, 0.0)} - _EVERYWHERE
        if unused := sorted(set_here - OPTIONS[self.name]):
            raise ConfigError(f"{self.name} does not use {', '.join(unused)}", hint="remove it")
        if self.name == "gaussian" and not self.delta:
            raise ConfigError(
                "gaussian needs a delta above 0",
                hint="set a delta above 0, or use staircase or laplace, which need none",
            )
        if self.name == "rp-banded" and not isinstance(self.half_width, int | float):
            raise ConfigError("rp-banded needs a half_width in units of the label: it has none of least variance")
        if self.optimal_for not in (None, "squared", "absolute"):
            raise ConfigError(f"optimal_for must be squared or absolute, not {self.optimal_for!r}")

    def _check_prior(self) -> None:
        estimating = {"epsilon_prior", "prior_mechanism", "cell_width"}
        if self.prior is not None:
            if useless := sorted(name for name in estimating if getattr(self, name) is not None):
                raise ConfigError(f"with a prior given nothing is estimated, so {', '.join(useless)} does nothing")
            return
        if self.prior_mechanism not in (None, *PRIOR_MECHANISMS):
            raise ConfigError(f"prior_mechanism must be one of {', '.join(PRIOR_MECHANISMS)}")
        if self.epsilon_prior is not None and not 0 < self.epsilon_prior < self.epsilon:
            raise ConfigError(f"epsilon_prior must lie between 0 and epsilon, not be {self.epsilon_prior!r}")
        if (width := self.width_of_cells) is not None:
            check_cell_width(self.grid, width)
        if self.estimates_prior and min(self.epsilon_of_prior, self.epsilon - self.epsilon_of_prior) < LEAST_SHARE:
            raise ConfigError(
                f"{self.name}: of epsilon {self.epsilon:g} the prior's estimate takes {self.epsilon_of_prior:g}, and "
                f"neither that nor the rest may be below {LEAST_EPSILON:g}",
                hint="use a larger epsilon, or a mechanism without a prior, such as laplace or staircase",
            )

    @property
    def takes_prior(self) -> bool:
        """Those that do are optimised for it; the others have a formula, and are made in well under a second."""
        return "prior" in OPTIONS[self.name]

    @property
    def estimates_prior(self) -> bool:
        return self.takes_prior and self.prior is None

    @property
    def epsilon_of_prior(self) -> float:
        """What its estimate takes."""
        return self.epsilon_prior or self.epsilon / 3

    @property
    def prior_estimated_by(self) -> str:
        return self.prior_mechanism or ("laplace" if self.name.startswith("rp-") else "histogram")

    @property
    def width_of_cells(self) -> float | None:
        """Of the prior's; None: it follows from the noisy labels, or is a 64th of the range."""
        if self.cell_width is None and self.estimates_prior and self.prior_estimated_by == "histogram":
            return self.rounding
        return self.cell_width

    @property
    def epsilon_left(self) -> float:
        """For the mechanism itself."""
        if not self.estimates_prior:
            return self.epsilon
        return math.nextafter(self.epsilon - self.epsilon_of_prior, 0.0)  # so that the sum does not round above epsilon

    @property
    def in_full(self) -> MechanismSettings:
        """With the defaults said: two settings that mean the same are then equal."""
        said: dict[str, Any] = {}
        if self.name == "staircase":
            said["optimal_for"] = self.optimal_for or "squared"
        if self.name == "rp-with-prior":
            said["half_width"] = self.half_width or "auto"
        if self.estimates_prior:
            said |= {"epsilon_prior": self.epsilon_of_prior, "prior_mechanism": self.prior_estimated_by}
            said["cell_width"] = self.width_of_cells
        return replace(self, **said)

    def _check_size(self) -> None:
        """What no prior would make possible is known, and refused, before a label is read or charged for."""
        if self.name == "unbiased":
            places(self.grid, self.epsilon_left, self.rounding, self.output_cells, self.output_reach)
        if self.name == "rr-on-bins":
            nodes(self.grid, self.rounding)


def _check_width(settings: MechanismSettings, option: str) -> None:
    width = getattr(settings, option)
    if width is None or (option == "half_width" and width == "auto"):
        return
    if isinstance(width, str) or not (math.isfinite(width) and width > 0):
        raise ConfigError(f"{option} must be a finite number above 0, not {width!r}")
    if option != "output_reach" and width > settings.grid.width:
        raise ConfigError(f"{option} {width:g} is wider than the labels' range, {settings.grid.width:g}")


MakeMechanism = Callable[[MechanismSettings, float, Prior | None], LabelMechanism]


@dataclass(frozen=True)
class FittedMechanism:
    """A mechanism, and what making it cost.

    Args:
        mechanism: public, all of it.
        prior: the one that was used, given or estimated; None where the mechanism needs none.
        prior_mechanism: how it was estimated; None where nothing was.
        epsilon_prior: what that cost.
        rows_outside: how many labels the prior puts outside the interval to which the rp mechanisms clip; None for
            the others.
    """

    mechanism: LabelMechanism
    prior: Prior | None
    prior_mechanism: str | None
    epsilon_prior: float
    rows_outside: float | None

    @property
    def epsilon(self) -> float:
        """Of estimate and release together."""
        return self.epsilon_prior + self.mechanism.epsilon

    @property
    def delta(self) -> float:
        return self.mechanism.delta


def fit(
    settings: MechanismSettings,
    labels: npt.ArrayLike,
    uniform: UniformInt = system_uniform,
    make: MakeMechanism | None = None,
) -> FittedMechanism:
    """Return a mechanism for these labels; they matter only to the prior's estimate, which is private.

    Args:
        make: `make_mechanism`, or what calls it elsewhere. It is told the prior and no label, so how long it takes, and
            whether it fails, tells no more of them than the estimate that is charged.

    Raises:
        DataError: a label is not a finite number.
        ConfigError: the mechanism cannot be made with these settings.
    """
    make = make or make_mechanism
    steps = settings.grid.steps(labels)
    if not settings.estimates_prior:
        mechanism = make(settings, settings.epsilon, settings.prior)
        return FittedMechanism(mechanism, settings.prior, None, 0.0, _outside(mechanism, settings.prior, len(steps)))
    epsilon_prior, how = settings.epsilon_of_prior, settings.prior_estimated_by
    prior = estimate_prior(how, settings.grid, epsilon_prior, steps, settings.width_of_cells, uniform)
    mechanism = make(settings, settings.epsilon_left, prior)
    return FittedMechanism(mechanism, prior, how, epsilon_prior, _outside(mechanism, prior, len(steps)))


def _outside(mechanism: LabelMechanism, prior: Prior | None, rows: int) -> float | None:
    if prior is None or not isinstance(mechanism, IntervalMechanism):
        return None
    return rows * mechanism.share_outside(prior)


def make_mechanism(settings: MechanismSettings, epsilon: float, prior: Prior | None) -> LabelMechanism:
    """Args:
    epsilon: what an estimate of the prior has left.

    Raises:
        ConfigError: the mechanism cannot be made with these settings.
    """
    grid, half_width = settings.grid, settings.half_width
    if settings.name == "laplace":
        return Laplace(grid, epsilon)
    if settings.name == "gaussian":
        return Gaussian(grid, epsilon, settings.delta)
    if settings.name == "staircase":
        return Staircase.optimal(grid, epsilon, settings.optimal_for or "squared")
    if prior is None:
        raise ConfigError(f"{settings.name} needs a prior")
    if settings.name == "rr-on-bins":
        return RROnBins.optimal(grid, epsilon, prior, settings.rounding)
    if settings.name == "rp-with-prior":
        return RPWithPrior.optimal(grid, epsilon, prior, half_width or "auto")
    if settings.name == "rp-banded" and isinstance(half_width, int | float):
        return RPBanded.optimal(grid, epsilon, prior, half_width)
    return Unbiased.optimal(
        grid,
        epsilon,
        prior,
        rounding=settings.rounding,
        output_cells=settings.output_cells,
        output_reach=settings.output_reach,
    )
