"""The active party's rows, as a WALR job would send and fit them, and the noise of each epsilon in their sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from blindfit.algorithms.privacy import accountant, gaussian
from blindfit.algorithms.protocols.walr import two_servers
from blindfit.algorithms.statistics.linear.logistic import QuantisedRows
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.walr.fit import treatment_of
from blindfit.algorithms.statistics.walr.forecast import Case, Fitting
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.measured.rows_of_unit import RowsOfUnit
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.terminal.wording import count, quantity
from blindfit.parties.data.source import Source
from blindfit.parties.walr.reading import prepare_rows
from blindfit.parties.walr.rows import PreparedRows
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.walr.start import read_start


@dataclass(frozen=True, repr=False)
class Read:
    job: WalrJob
    party: str
    prepared: PreparedRows
    rows: QuantisedRows  # only columns that have weights
    init: Pretrained | None
    unit: RowsOfUnit

    @classmethod
    def of(cls, job: Job[WalrJob], active: PartyHere, source: Source, unit: RowsOfUnit) -> Read:
        parameters = job.parameters
        start = read_start(parameters, active.base_dir, source, active.settings)
        init = start.model if start else None
        prepared = prepare_rows(source, parameters, parameters.trial_randomness, lambda *_: None)
        columns = prepared.columns_with_weights(intercept=parameters.walr.intercept)
        rows = QuantisedRows(prepared.train.weights[:, columns], prepared.grid.frac_bits)
        return cls(parameters, active.name, prepared, rows, init, unit)

    @property
    def epsilon(self) -> float:
        return self.job.required_privacy.epsilon

    @property
    def norm_bound(self) -> float:
        return self.prepared.grid.real_bound

    def case(self, epsilon: float) -> Case:
        walr = self.job.walr
        noise_std = self._multiplier(epsilon) * self.norm_bound * self.unit.count / self.rows.n_rows
        if self.job.asks_shares:  # each server adds the full noise
            noise_std *= two_servers.SERVERS**0.5
        init = None if self.init is None else self.weights_of(self.init)
        treatment = treatment_of(
            walr.mu, self.prepared.train.weights.size
        )  # of all rows, though a simulation fits to some
        fitting = Fitting(self.norm_bound, walr.solver_settings(0.0), walr.l2, treatment, init)
        return Case(epsilon, noise_std, fitting)

    def _multiplier(self, epsilon: float) -> float:
        privacy = self.job.required_privacy
        return gaussian.noise_multiplier(privacy.mechanism, epsilon, privacy.delta)

    def compose(self, epsilon: float, releases: int) -> float:
        """Return the cost of so many releases of this epsilon for a person in all of them, at the job's delta."""
        together = accountant.composed_multiplier([self._multiplier(epsilon)] * releases)
        return gaussian.gaussian_epsilon(together, self.job.required_privacy.delta)

    def weights_of(self, model: Pretrained) -> np.ndarray[Any, np.dtype[np.float64]]:
        return model.weights_for(self.prepared.standardiser, intercept=self.job.walr.intercept)

    def facts(self) -> Iterator[tuple[str, str]]:
        n, k = self.rows.n_rows, self.rows.n_features
        clipped = self.prepared.rows_clipped / n
        yield (
            "rows",
            f"{count(n)} of {self.party} to train on, {k} columns, norms clipped at {self.norm_bound:.3g} "
            f"({clipped:.1%} of the rows)",
        )
        privacy = self.job.required_privacy
        most = quantity(self.unit.count, "row")
        unit = f"the labels of a person's {most}" if self.unit.of_person else "a label"
        yield "unit", f"{unit}{self.unit.caveat}, delta {privacy.delta:g}, {privacy.mechanism} Gaussian"
