"""A walr job: one noisy weighted sum, and what is fitted to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from blindfit.algorithms import fixed_point
from blindfit.algorithms.fixed_point import MAX_ROWS
from blindfit.algorithms.protocols.walr.grid import (
    LARGEST_SHARED_SUM,
    LARGEST_SUM,
    MOST_ROWS_OF_UNIT,
    Grid,
    Room,
    auto_grid,
)
from blindfit.algorithms.protocols.walr.several_parties import MOST_ITERATIONS
from blindfit.algorithms.statistics.linear.solver_settings import SolverName, SolverSettings
from blindfit.algorithms.statistics.walr.fit import MuTreatment
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.job.tables import EPSILON_MEANS
from blindfit.parties.measurement.trust import TRUSTED, SumJob, Trust
from blindfit.parties.tables import Settings, as_value_errors

DEFAULT_NORM_QUANTILE = 0.99
MOST_MEMORY = 1000  # the working memory of lbfgs grows with its square
FracBits = Annotated[int, Field(ge=fixed_point.MIN_FRAC_BITS, le=fixed_point.MAX_FRAC_BITS)]


class WalrSettings(Settings):
    """The noisy sum, and the fit to it."""

    trust: Trust = "trusted"
    """Trust in the measurement servers. With "trusted", one server reads labels and rows. With "encrypted-rows", one
    server reads labels, and rows are encrypted. With "two-servers", two servers hold shares of the labels and read the
    rows. With "shared-rows", two servers hold shares of labels and rows, and a key node deals masks.
    """
    intercept: bool = True
    """Constant column that is appended to the rows."""
    norm_bound: float | Literal["auto"] = "auto"
    """Largest norm of a standardised row with its constant; longer rows are shortened. A larger bound adds more noise.
    "auto" takes a quantile of the norms."""
    norm_quantile: float = Field(DEFAULT_NORM_QUANTILE, gt=0, le=1)
    """Quantile of the row norms that "auto" takes as `norm_bound`. A larger quantile shortens fewer rows and adds more
    noise."""
    frac_bits: FracBits | Literal["auto"] = "auto"
    """Fraction bits of the grid to which rows are rounded. More bits round less. "auto" takes the finest grid on which
    rows fit 16 bits, if it is fine enough for the noise."""
    l2: float | Literal["auto"] = "auto"
    """Strength of the ridge penalty. Raise it for few rows. "auto" takes it from the noise."""
    mu: MuTreatment = "auto"
    """Treatment of a noisy mean that no labels could give: "clip" it by columns, "project" it, or leave it
    "as-released". "auto" projects if rows are few."""
    init: str | None = Field(None, min_length=1, max_length=256)
    """Start of the fit, a file of the active party: a pretrained.json, or its last model.json. `walr.l2` shrinks
    towards it."""
    solver: SolverName = "auto"
    """Solver of the fit. "auto" takes newton for up to 500 columns."""
    tolerance: float | None = None
    """Size of the gradient at which the fit ends. Lower it for a more exact fit. The default depends on the solver."""
    max_iterations: int | None = Field(None, ge=1, le=MOST_ITERATIONS)
    """Number of iterations after which the fit ends. Raise it if a report shows that the fit did not converge."""
    warm_start_rows: int | None = Field(None, ge=0, le=MAX_ROWS)
    """Number of rows on which newton looks for its start; 0 takes all rows."""
    memory: int | None = Field(None, ge=1, le=MOST_MEMORY)
    """Number of past gradients that lbfgs keeps."""
    rate: float | None = None
    """First step size of gradient-descent and hybrid-minibatch: step t is rate / (1 + decay t). Lower it if the fit
    diverges."""
    decay: float | None = None
    """Decay of the step size; see `rate`."""
    batch_rows: int | None = Field(None, ge=1, le=MAX_ROWS)
    """Rows of one step of hybrid-minibatch."""
    averaging: bool | None = None
    """Averaging in hybrid-minibatch: the fit returns the running mean of the weights."""
    centred: bool | None = None
    """Centred gradient in hybrid-minibatch, which has less noise if labels 1 are common."""

    def solver_settings(self, l2: float) -> SolverSettings:
        return SolverSettings(
            l2=l2,
            unpenalised=-1 if self.intercept else None,
            **self.model_dump(include={field.name for field in fields(SolverSettings)} - {"l2"}),
        )

    @property
    def fixed_bits(self) -> int | None:
        """Fraction bits that the job names."""
        return None if self.frac_bits == "auto" else self.frac_bits

    @model_validator(mode="after")
    def _numbers_fit(self) -> WalrSettings:
        for name in ("norm_bound", "l2"):
            value = getattr(self, name)
            if value != "auto" and value < 0:
                raise ValueError(f'{name} must be "auto" or a number that is not negative')
        if self.norm_bound == 0:
            raise ValueError('norm_bound must be above 0, or "auto"')
        if self.norm_bound != "auto" and self.norm_quantile != DEFAULT_NORM_QUANTILE:
            raise ValueError('norm_quantile does nothing if norm_bound is a number: set norm_bound = "auto"')
        if self.init is not None and self.l2 == 0:
            raise ValueError("init does nothing with l2 = 0, remove one: l2 shrinks towards the pre-trained weights")
        with as_value_errors():
            self.solver_settings(0.0)
        return self


class WalrJob(SumJob, TrainingParameters):
    protocol: Literal["walr"] = "walr"
    """System that computes the job."""
    walr: WalrSettings = WalrSettings()

    no_selection: ClassVar[str] = (
        "a walr job releases one noisy sum of all training rows, which has no folds: remove [select], and compare the "
        "test figures of several jobs"
    )

    trust_option: ClassVar[str] = "walr.trust"

    def grid(self, norm_bound: float, max_steps: int = fixed_point.MAX_NORM_BOUND) -> Grid:
        """Return a grid for rows of at most this norm. It is public, because it follows only from the norm and the job.

        Args:
            max_steps: largest number of steps of the bound, if "auto" chooses the grid.

        Raises:
            RangeError: no grid holds such a norm, or is fine enough for the noise.
        """
        if self.walr.frac_bits != "auto":
            return Grid.of(norm_bound, self.walr.frac_bits)
        return auto_grid(norm_bound, *self._noise, max_steps)

    def grid_of_rows(self, norm_bound: float, n_columns: int) -> Grid:
        """Return a grid as `grid` does. A bound that depends on the rows is limited to the largest that a grid holds.

        Args:
            n_columns: number of columns that are sent.

        Raises:
            RangeError: no grid holds a norm that the job names, or is fine enough for the noise.
        """
        room = self.room(self._longest_row(n_columns))
        if self.walr.norm_bound != "auto":
            return self.grid(norm_bound, room.most)
        return room.grid(norm_bound, self.walr.fixed_bits)

    def room(self, max_steps: int) -> Room:
        """Return the range of norm bounds that have a grid.

        Args:
            max_steps: largest norm bound of a row, in grid steps.

        Raises:
            RangeError: no norm bound has a grid.
        """
        multiplier, rows_of_unit = self._noise
        known = self.required_privacy.max_rows_per_person
        return Room.of(
            multiplier,
            (rows_of_unit, known or MOST_ROWS_OF_UNIT),
            largest_sum=LARGEST_SHARED_SUM if self.asks_shares else LARGEST_SUM,
            servers=2 if self.asks_shares else 1,
            largest=max_steps,
        )

    def _longest_row(self, n_columns: int) -> int:
        if not self.shares_rows:
            return fixed_point.MAX_NORM_BOUND
        from blindfit.algorithms.sharing.short_rows import longest_to_prove  # here: `show` needs no cryptography

        return longest_to_prove(n_columns)

    @property
    def _noise(self) -> tuple[float, int]:
        """Noise multiplier, and largest number of rows of a person that count."""
        return self.noise_multiplier, self.required_privacy.max_rows_per_person or 1

    @property
    def trust(self) -> Trust:
        return self.walr.trust

    def wrong_parties(self, roles: Sequence[str]) -> str:
        if "passive" in roles and self.walr.trust != TRUSTED:
            return f'walr.trust = "{self.walr.trust}" is for one party\'s columns: passive parties need "{TRUSTED}"'
        if "passive" in roles and self.walr.init is not None:
            return (
                "walr.init does nothing where passive parties hold columns too, remove it: no party has a whole model"
            )
        return super().wrong_parties(roles)

    @model_validator(mode="after")
    def _is_private(self) -> WalrJob:
        if self.privacy is None:
            raise ValueError(
                f"privacy.epsilon is missing: WALR is a release under differential privacy. {EPSILON_MEANS}"
            )
        return self
