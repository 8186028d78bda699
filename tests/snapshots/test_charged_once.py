"""A charge is for a snapshot and a question: the same costs once under any name, and another always costs."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.privacy.ledger import verify_chain
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.parties.dp_lr import trainer
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.store.database import Store
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.training.budget import charge
from tests.published import published
from tests.unconnected import unconnected
from tests.world import World

ROWS = {"url": "csv:rows.csv", "id": "id", "label": "ill", "features": "rest"}
PATIENTS, VISITORS = {**ROWS, "population": "patients"}, {**ROWS, "population": "visitors"}
SEEN = {**VISITORS, "url": "csv:visits.csv"}
TABLES: dict[str, Any] = {
    "policy": {"systems": ["dp-lr"], "min_rows": 1, "max_epsilon": 5.0},
    "populations": {name: {"epsilon": 100.0, "delta": 1e-5} for name in ("patients", "visitors")},
    "datasets": {"alias": PATIENTS, "again": VISITORS, "visits": SEEN, "other-visits": SEEN},
}
BOUNDS = {"feature_bounds": ["*:0:200"]}
FITS: list[dict[str, Any]] = [  # questions of dp-lr
    {"seed": 1, "privacy": {"epsilon": 0.1}, "dp_lr": {"iterations": 2, **BOUNDS}},
    {"seed": 1, "privacy": {"epsilon": 0.05}, "dp_lr": {"iterations": 2, **BOUNDS}},
    {"seed": 2, "privacy": {"epsilon": 0.1}, "dp_lr": {"iterations": 2, **BOUNDS}},
    {"seed": 1, "privacy": {"epsilon": 0.1}, "dp_lr": {"iterations": 3, **BOUNDS}},
    {"privacy": {"epsilon": 0.1}, "dp_lr": {"iterations": 2, **BOUNDS}},
]
VERTICAL: list[tuple[dict[str, Any], tuple[str, str]]] = [  # label DP: the job, and the draws
    ({"privacy": {"epsilon": 0.1}}, ("split", "noise")),
    ({"privacy": {"epsilon": 0.01}}, ("split", "noise")),
    ({"privacy": {"epsilon": 0.1}, "taylor": {"epochs": 5}}, ("split", "noise")),
    ({"privacy": {"epsilon": 0.1}}, ("another split", "noise")),
    ({"privacy": {"epsilon": 0.1}}, ("split", "other noise")),
]
# Each file has two names; charges of rows and of labels do not go together.
DATASETS = st.sampled_from(["patients", "alias"])
VISITS = st.sampled_from(["visits", "other-visits"])


class OneParty(RuleBasedStateMachine):
    """A party with everything that names a question, and everything that must not."""

    @initialize()
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        world = World(self.directory).active("clinic", dataset="patients", about=PATIENTS, **TABLES)
        self.settings = world.settings("clinic")
        self.names = count(1)
        self.asked: dict[tuple[Any, ...], bytes] = {}  # snapshot, question -> what was answered
        self.vertical: list[tuple[str, str, int]] = []  # sessions, to be resumed: snapshot and question
        self.write(0)
        self.start()

    def start(self) -> None:
        self.store = Store(self.directory / "state/clinic" / "party.sqlite")
        self.party = unconnected(self.settings, self.directory, self.store)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.directory)

    # --- what somebody asks

    @rule(dataset=DATASETS, question=st.integers(0, len(FITS) - 1), whose=st.sampled_from(["coordinator", "another"]))
    def fit(self, dataset: str, question: int, whose: str) -> None:
        session = self.session(DPLRJob.model_validate(FITS[question]), dataset, whose, {})
        key = (session.published.id, "fit", question)
        charged = self.n_charges()
        role = trainer.Trainer(self.party)
        asyncio.run(role.run(session))
        assert self.n_charges() - charged == (key not in self.asked), key
        answer = (self.directory / "state/clinic" / "models" / session.id / "model.json").read_bytes()
        coefficients = answer[: answer.index(b'"privacy"')]  # the report has what was spent until now
        assert self.asked.setdefault(key, coefficients) == coefficients

    @rule(dataset=VISITS, question=st.integers(0, len(VERTICAL) - 1), whose=st.sampled_from(["coordinator", "other"]))
    def train(self, dataset: str, question: int, whose: str) -> None:
        self.charge_training(published(self.party.snapshots, dataset), dataset, question, whose, "")

    @rule(which=st.integers(0, 9))
    def resume(self, which: int) -> None:
        """Go on where a training stopped, on what it read, after any publications since."""
        if self.vertical:
            name, dataset, question = self.vertical[which % len(self.vertical)]
            self.charge_training(self.party.snapshots.of_session(name), dataset, question, "coordinator", name)

    def charge_training(self, snapshot: Snapshot, dataset: str, question: int, whose: str, resumes: str) -> None:
        content, drawn = VERTICAL[question]
        options = {**content.get("taylor", {}), **({"resume": resumes} if resumes else {})}
        job = TaylorJob.model_validate({**content, "taylor": options})
        others = {"shop": Member("shop", "passive", "", "rows"), "notary": Member("notary", "key-node", "", "")}
        session = self.session(job, dataset, whose, others, snapshot)
        with self.store.transaction() as transaction:
            transaction.put_session_snapshot(session.id, snapshot.id)
        key, charged = (snapshot.id, "train", question), self.n_charges()
        charge(session, self.settings, self.store, drawn, lambda _: True)
        assert self.n_charges() - charged == (key not in self.asked), key
        self.asked.setdefault(key, b"")
        self.vertical.append((session.id, dataset, question))

    # --- what the operator does

    @rule(dataset=DATASETS | VISITS)
    def publish(self, dataset: str) -> None:
        """Publish equal content, or the changed content of the source."""
        self.party.snapshots.publish(dataset)

    @rule(version=st.integers(0, 3))
    def write(self, version: int) -> None:
        """Change the source, and publish nothing."""
        for name in ("rows", "visits"):
            lines = [f"{name}{i},{i % 7 + version},{i % 5},{i % 2}" for i in range(20)]
            (self.directory / f"{name}.csv").write_text("\n".join(["id,age,dose,ill", *lines]) + "\n")

    @rule()
    def a_second_budget(self) -> None:
        """Check that the same people under another population do not get a second budget."""
        self.party.snapshots.publish("patients")
        with pytest.raises(ConfigError, match="people who are in two populations have two budgets"):
            self.party.snapshots.publish("again")

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.start()

    # --- what holds

    @invariant()
    def every_question_is_charged_once(self) -> None:
        if hasattr(self, "store"):
            entries = self.store.reader().ledger()
            verify_chain(entries)
            assert len(entries) == len(self.asked)
            assert {entry.dataset for entry in entries} <= {"patients", "alias", "visits", "other-visits"}
            assert len({(entry.snapshot, entry.request_id) for entry in entries}) == len(entries)

    # --- how

    def n_charges(self) -> int:
        return len(self.store.reader().ledger())

    def session(
        self, job: Any, dataset: str, whose: str, others: dict[str, Member], snapshot: Snapshot | None = None
    ) -> Session[Any]:
        me = Member("clinic", "active", "", dataset)
        made = Session(
            f"s{next(self.names)}",
            whose,
            {"clinic": me, **others},
            job.to_parameters(),
            job,
            SimpleNamespace(bytes_sent=0, messages_sent=0),  # type: ignore[arg-type]
            me,
        )
        made.snapshot = snapshot or published(self.party.snapshots, dataset)
        made.snapshots = {"clinic": made.snapshot.id, **({"shop": "5" * 32} if others else {})}
        return made


@pytest.fixture
def quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits with different weights, as noise makes them: equal weights would come from a remembered answer."""
    number = count(1)

    def fitted(rows: Any, start: Any, _job: Any, _release: str) -> trainer.Fitted:
        weights = tuple(float(next(number)) * 1e-6 for _ in start.model.standardiser.kept)
        return trainer.Fitted(DPLogisticModel(start.model.standardiser, weights, 0.0), 1.0, 0.1, ())

    monkeypatch.setattr(trainer, "fit_rows", fitted)


def run(sequences: int, steps: int) -> None:
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    try:
        run_state_machine_as_test(
            OneParty,
            settings=settings(
                max_examples=sequences,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                database=None,
            ),
        )
    finally:
        structlog.configure(**before)


@pytest.mark.usefixtures("quick_fits")
def test_the_same_question_is_charged_once_and_another_always() -> None:
    run(sequences=20, steps=10)


@pytest.mark.soak
@pytest.mark.usefixtures("quick_fits")
def test_in_ten_thousand_sequences() -> None:
    run(sequences=10_000, steps=20)
