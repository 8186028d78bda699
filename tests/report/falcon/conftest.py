"""A training in shares that nobody ran, with the reports and files that its parties would have made."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.privacy.events import WHOLE_ROWS
from blindfit.parties.falcon.privacy import UNIT
from tests.report.vertical.conftest import EVALUATION, OF_THE_ACTIVE_PARTY, MadeUpTraining
from tests.report.vertical.conftest import PARTY_REPORT as VERTICAL_REPORT

SESSION = "falcon-0badcafe"
OPENED = {name: EVALUATION[name] for name in EVALUATION.keys() - OF_THE_ACTIVE_PARTY}
# Same content as `blindfit.parties.falcon.data_party` makes; test_falcon_content.py compares the two.
PARTY_REPORT: dict[str, Any] = {
    **VERTICAL_REPORT,
    "session": SESSION,
    "rows": {**VERTICAL_REPORT["rows"], "trained": 840, "validation": 120, "batches": 7},
    "evaluation": OPENED,
    "weights": {"opened_bits": 8, "label_bits": 8 / 840},
    "timing": {"read_s": 0.21, "align_s": 0.42, "prepare_s": 0.03, "train_s": 8.4},
}
PRIVACY: dict[str, Any] = {
    "population": "customers",
    "unit": UNIT,
    "neighbours": WHOLE_ROWS["replace-one"],
    "epsilon": 2.0,
    "delta": 1e-5,
    "noise_multiplier": 1.9938,
    "spent_epsilon": 3.0,
    "spent_neighbours": WHOLE_ROWS["replace-one"],
    "budget_epsilon": 8.0,
    "budget_delta": 1e-5,
}
# Multiples of 1/32, as 840 rows let them be.
WEIGHTS = {
    "bank": {"income": 0.71875, "debt": -0.46875, "age": 0.09375},
    "shop": {"spent": 0.28125},
    "post": {"mails": -0.15625},
}


@dataclass
class MadeUpShares(MadeUpTraining):
    protocol: str = "falcon"
    session_id: str = SESSION
    weights: dict[str, dict[str, float]] = field(default_factory=lambda: copy.deepcopy(WEIGHTS))
    intercept: float = -0.90625
    report: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(PARTY_REPORT))

    def told_by_key_node(self) -> dict[str, ParameterValue]:
        return {"fit.epochs": self.report["fit"]["epochs"], "rows.common": 1200}

    def with_(self, **settings: Any) -> MadeUpShares:
        """Set the job's table falcon."""
        self.settings["falcon"] = settings
        return self

    def with_two(self) -> MadeUpShares:
        self.with_roles(bank="active", shop="passive", notary="key_node")
        return self

    def with_privacy(self, **changes: Any) -> MadeUpShares:
        """Set privacy of whole rows, at every data party."""
        self.without_test()
        self.settings["privacy"] = {"epsilon": 2.0}
        self.settings["falcon"] = {"validation_fraction": 0.0, "feature_bounds": ["*:-1:1"]}
        self.report["privacy"] = {**PRIVACY, **changes}
        self.report["rows"] |= {"validation": 0, "trained": 1200}
        self.report["fit"]["weight_noise_std"] = 0.0625
        return self

    def report_of(self, party: str) -> dict[str, Any]:
        """Return a party's report with its own budget: each data party has a separate ledger."""
        return super().report_of(party) | {"privacy": copy.deepcopy(self.report["privacy"])}

    def without_test(self) -> MadeUpShares:
        self.settings["split"] = {"test_fraction": 0.0}
        self.report["evaluation"] = None
        self.report["rows"] |= {"test": 0, "trained": 1080, "batches": 4}
        return self


@pytest.fixture
def shares(tmp_path: Path) -> MadeUpShares:
    return MadeUpShares(tmp_path / "out")


@pytest.fixture
def page(shares: MadeUpShares) -> Callable[..., str]:
    """The page of a run on this machine."""
    return lambda **changes: shares.written(**changes).html_path.read_text("utf-8")
