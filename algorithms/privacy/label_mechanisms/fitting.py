"""From settings and labels to a mechanism, and the cost of the fit itself.

The two parts compose: a prior estimated from the labels spends epsilon_prior, and the mechanism spends the rest.
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
    """Settings of a label mechanism. An option that the mechanism does not use must stay None.

    Args:
        name: "laplace", "gaussian", "staircase", "rr-on-bins", "unbiased", "rp-with-prior" or "rp-banded".
        grid: public range of the labels. For gaussian, a grid of the default number of cells becomes finer if epsilon
            requires it (`fine_enough`).
        epsilon: whole epsilon of one row's label, the prior's estimate included, 0.0001 to 30; to 50 for gaussian.
        delta: whole delta; 0 unless the mechanism is "gaussian".
        prior: prior knowledge of the labels from elsewhere; None estimates it from the labels.
        epsilon_prior: part of epsilon for that estimate; None takes a third.
        prior_mechanism: mechanism of the estimate: "laplace" or "staircase" noise on each label, or "histogram", which
            is Laplace noise on the counts. None takes laplace for the rp mechanisms, and histogram for rr-on-bins and
            unbiased.
        cell_width: cell width of the prior's histogram, in units of the label. None takes the standard deviation of the
            noisy labels; for "histogram" it takes the rounding, or a 64th of the range.
        half_width: half width of the neighbourhood that the rp mechanisms favour, in units of the label. "auto", which
            None means, is only for rp-with-prior.
        optimal_for: error that the staircase minimises, "squared" or "absolute"; None takes "squared".
        rounding: width to which rr-on-bins and unbiased first round labels down, in units of the label; None for no
            rounding.
        output_cells: approximate number of outputs of unbiased, 4 to 1,000; None takes 32 more than inputs.
        output_reach: distance of the outermost outputs of unbiased from the ends of the range, in units of the label.
            None takes twice the least that is needed, or a quarter of the range if that is more.

    Raises:
        ConfigError: a setting is not valid, or the mechanism does not use it; the message names it.

    Example:
        >>> settings = blindfit.MechanismSettings("staircase", blindfit.LabelGrid(0.0, 100.0), epsilon=2.0)
        >>> settings.takes_prior, settings.epsilon_left
        (False, 2.0)
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
        # The mechanism refuses a delta out of range.
        if self.name == "gaussian" and self.grid.cells == DEFAULT_CELLS and LEAST_DELTA <= self.delta < 1:
            object.__setattr__(self, "grid", fine_enough(self.grid, self.epsilon, self.delta))

    def _check_use(self) -> None:
        """Refuse an option that would do nothing, and require an option that the mechanism needs."""
        set_here = {f.name for f in fields(self) if getattr(self, f.name) not in (None, 0.0)} - _EVERYWHERE
        if unused := sorted(set_here - OPTIONS[self.name]):
            raise ConfigError(f"{self.name} does not use {', '.join(unused)}", hint="remove it")
        if self.name == "gaussian" and not self.delta:
            raise ConfigError(
                "gaussian needs a delta above 0",
                hint="set a delta above 0, or use staircase or laplace, which need no delta",
            )
        if self.name == "rp-banded" and not isinstance(self.half_width, int | float):
            raise ConfigError("rp-banded needs a half_width in units of the label: it cannot choose one itself")
        if self.optimal_for not in (None, "squared", "absolute"):
            raise ConfigError(f"optimal_for must be squared or absolute, not {self.optimal_for!r}")

    def _check_prior(self) -> None:
        estimating = {"epsilon_prior", "prior_mechanism", "cell_width"}
        if self.prior is not None:
            if useless := sorted(name for name in estimating if getattr(self, name) is not None):
                raise ConfigError(f"the prior is given, so it is not estimated and {', '.join(useless)} does nothing")
            return
        if self.prior_mechanism not in (None, *PRIOR_MECHANISMS):
            raise ConfigError(f"prior_mechanism must be one of {', '.join(PRIOR_MECHANISMS)}")
        if self.epsilon_prior is not None and not 0 < self.epsilon_prior < self.epsilon:
            raise ConfigError(f"epsilon_prior must lie between 0 and epsilon, not be {self.epsilon_prior!r}")
        if (width := self.width_of_cells) is not None:
            check_cell_width(self.grid, width)
        if self.estimates_prior and min(self.epsilon_of_prior, self.epsilon - self.epsilon_of_prior) < LEAST_SHARE:
            raise ConfigError(
                f"{self.name}: the prior's estimate takes {self.epsilon_of_prior:g} of epsilon {self.epsilon:g}, and "
                f"neither this part nor the rest may be below {LEAST_EPSILON:g}",
                hint="use a larger epsilon, or a mechanism without a prior, such as laplace or staircase",
            )

    @property
    def takes_prior(self) -> bool:
        """True if the mechanism is optimised for a prior; others have a formula and are made in well under a second."""
        return "prior" in OPTIONS[self.name]

    @property
    def estimates_prior(self) -> bool:
        """True if the prior is estimated from the labels, which spends a part of epsilon."""
        return self.takes_prior and self.prior is None

    @property
    def epsilon_of_prior(self) -> float:
        """Part of epsilon for the estimate of the prior, if there is one."""
        return self.epsilon_prior or self.epsilon / 3

    @property
    def prior_estimated_by(self) -> str:
        """Mechanism of the prior's estimate, if there is one."""
        return self.prior_mechanism or ("laplace" if self.name.startswith("rp-") else "histogram")

    @property
    def width_of_cells(self) -> float | None:
        """Width of the prior's cells. None means that it follows from the noisy labels, or is a 64th of the range."""
        if self.cell_width is None and self.estimates_prior and self.prior_estimated_by == "histogram":
            return self.rounding
        return self.cell_width

    @property
    def epsilon_left(self) -> float:
        """Part of epsilon for the mechanism itself."""
        if not self.estimates_prior:
            return self.epsilon
        return math.nextafter(self.epsilon - self.epsilon_of_prior, 0.0)  # so that the sum does not round above epsilon

    @property
    def in_full(self) -> MechanismSettings:
        """The same settings with all defaults, so that two settings with the same meaning are equal."""
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
        """Refuse sizes that are impossible for every prior, before a label is read or charged for."""
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
    """A mechanism, and the epsilon that its estimate of the prior cost. `fit` returns it.

    Args:
        mechanism: the mechanism; all of it is public.
        prior: prior that was given or estimated; None if the mechanism needs no prior.
        prior_mechanism: mechanism that estimated the prior; None if nothing was estimated.
        epsilon_prior: epsilon that the estimate cost; 0 without an estimate.
        rows_outside: expected number of labels outside the interval to which the rp mechanisms clip, by the prior; None
            for other mechanisms.

    Example:
        >>> settings = label_mechanisms.MechanismSettings("rr-on-bins", label_mechanisms.LabelGrid(0, 10, 64), 3.0)
        >>> fitted = label_mechanisms.fit(settings, np.linspace(0.0, 10.0, 500))
        >>> fitted.epsilon_prior, fitted.epsilon <= 3.0
        (1.0, True)
    """

    mechanism: LabelMechanism
    prior: Prior | None
    prior_mechanism: str | None
    epsilon_prior: float
    rows_outside: float | None

    @property
    def epsilon(self) -> float:
        """Epsilon of estimate and release together."""
        return self.epsilon_prior + self.mechanism.epsilon

    @property
    def delta(self) -> float:
        """Delta of the release; the estimate has none."""
        return self.mechanism.delta


def fit(
    settings: MechanismSettings,
    labels: npt.ArrayLike,
    uniform: UniformInt = system_uniform,
    make: MakeMechanism | None = None,
) -> FittedMechanism:
    """Return a mechanism for these labels. They affect only the prior's estimate, which is private.

    Args:
        settings: mechanism, grid and epsilon.
        labels: finite numbers, shape (rows,).
        uniform: source of uniform integers; the operating system's generator by default.
        make: function that makes the mechanism from the settings, the remaining epsilon and the prior, perhaps in
            another process. It gets no label. So its duration and its failure reveal no more about labels than the
            estimate, which is charged. By default the mechanism is made here.

    Returns:
        The mechanism, with the epsilon that the estimate cost.

    Raises:
        DataError: a label is not a finite number.
        ConfigError: the mechanism cannot be made with these settings.

    Example:
        >>> grid = label_mechanisms.LabelGrid(0.0, 100.0)
        >>> labels = np.linspace(0.0, 100.0, 1000)
        >>> fitted = label_mechanisms.fit(label_mechanisms.MechanismSettings("staircase", grid, epsilon=2.0), labels)
        >>> noisy = fitted.mechanism.randomise(labels)
        >>> noisy.shape, fitted.epsilon
        ((1000,), 2.0)
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
    """Make a mechanism.

    Args:
        epsilon: the epsilon that is left after an estimate of the prior.

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
