"""Jobs that `run` refuses before the first message that depends on a row: `check` refuses each in the same words."""

from __future__ import annotations

import json
import sqlite3
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blindfit.algorithms.statistics.vertical.model import FORMAT as PART
from blindfit.parties.store.answers import StoredAnswer
from blindfit.parties.store.database import stamp
from blindfit.parties.store.sessions import Prediction, SessionRow
from blindfit.parties.wire.limits import Limits
from tests.hints.measured import alone, measured
from tests.refusals.both import ANYBODY
from tests.world import World
from tests.world.holders import Holders
from tests.world.loans import loans

ROWS = 200
Build = Callable[[Path], World]
Change = Callable[[World], object]


def walr(root: Path) -> World:
    return measured(root, "walr", ROWS)


def label_dp(root: Path) -> World:
    return measured(root, "label-dp", ROWS)


def dp_lr(root: Path) -> World:
    return alone(root, ROWS)


def taylor(root: Path) -> World:
    return loans(root, "taylor", ROWS)


def falcon(root: Path) -> World:
    return loans(root, "falcon", ROWS)


def wide_falcon(root: Path) -> World:
    """Make parties with so many columns that their weights would tell much of each label."""
    return loans(root, "falcon", 2 * ROWS, (3, 60, 2))


def private_falcon(root: Path) -> World:
    world = falcon(root)
    names = ("bank", "post", "shop")
    world.set("falcon", {"validation_fraction": 0.0, "feature_bounds": ["*:-4:4"], "l2": 0.0, "epochs": 2}, "job")
    world.set("split.test_fraction", 0.0, "job")
    world.set("privacy.epsilon", 1.0, "job")
    world.set("datasets.loans.population", "customers", *names)
    world.set("populations.customers", {"epsilon": 2.0, "delta": 1e-5}, *names)
    return world


def few_common_rows(root: Path) -> World:
    """Make three holders of columns, of whom the shop has fewer rows than their columns need."""
    world = Holders(root)
    world.write_table("shop", {name: values[:300] for name, values in world.table("shop").items()})
    world.set("datasets.rows.models_per_row", "unlimited", "bank", "chain")
    world.set("split.test_fraction", 0.0, "job")
    return world


def evaluation(root: Path) -> World:
    """Make a job that evaluates a model that was trained here."""
    world = walr(root)
    for name in ("shop", "meter"):
        world.set("policy.systems", ["walr", "evaluate"], name)
    session = world.run("seed=3").id
    return world.job("evaluate", evaluate={"session": session}, privacy={"epsilon": 1.0})


def prediction(root: Path) -> World:
    world = taylor(root).job("predict", predict={"session": "vertical-0123"})
    world.set("policy.systems", ["predict"])
    return world


def over_model(text: str) -> Change:
    """Write something else over the model of the training."""

    def write(world: World) -> None:
        (path,) = world.path("state", "shop", "models").glob("*/model.json")
        path.write_text(text)

    return write


def failed_session(world: World) -> None:
    with world.store("shop") as store, store.transaction() as transaction:
        (row,) = store.reader().sessions()
        transaction.change_session(row.session, state="FAILED", changed=row.changed)


def part_of_model(scored_by: str | None = None, path: str = "") -> Change:
    """Make the model one party's part of a joint one, and note a prediction.

    Args:
        scored_by: the session of the model of the prediction; empty: this one; None: there is no prediction.
        path: of the scores, from the party's folder.
    """

    def change(world: World) -> None:
        (model,) = world.path("state", "shop", "models").glob("*/model.json")
        model.write_text(json.dumps({"format": PART}))
        if scored_by is not None:
            with world.store("shop") as store, store.transaction() as transaction:
                transaction.note_prediction(Prediction("scored-0123", scored_by or model.parent.name, "a table", path))

    return change


def begun(*, other: bool = False) -> Change:
    """Make checkpoints of a training that was cut, at all parties.

    Args:
        other: it had read another dataset of the bank.
    """

    def change(world: World) -> None:
        for name in ("bank", "post", "shop", "notary"):
            writing(f"state/{name}/checkpoints/cut-0123/base.json", "{}")(world)
        if other:
            kept = tomllib.loads(world.path("bank.toml").read_text())["datasets"]["loans"]
            world.set("datasets.others", kept, "bank")
            world.publish("bank", "others")
            with world.store("bank") as store, store.transaction() as transaction:
                (row,) = store.reader().snapshots("others")
                transaction.put_session_snapshot("cut-0123", row.id)

    return change


def archive(*, public: bool) -> Change:
    """Add rows with other columns to the shop."""

    def change(world: World) -> None:
        table = {"id": [f"a{i}" for i in range(40)], "other": [1.5, 2.5] * 20, "y": [0, 1] * 20}
        world.write_table("archive", table)
        about = {"url": "csv:archive.csv", "id": "id", "label": "y", "features": "rest", "public": public}
        world.set("datasets.archive", about, "shop")

    return change


def regions(world: World) -> None:
    world.columns("shop", region=["north", "south"] * (ROWS // 2))
    world.set("datasets.rows.categories", ["region"], "shop")


def uploads(number: int, consumer: str = "shop") -> Change:
    """Make so many uploads that had no answer."""

    def change(world: World) -> None:
        world.publish("meter")
        with world.store("meter") as store, store.transaction() as transaction:
            for _ in range(number):
                transaction.add_upload(consumer, "rows", stamp())

    return change


def many_sessions(world: World) -> None:
    """Let the coordinator have proposed as many jobs as one may in a day."""
    world.publish("meter")
    with world.store("meter") as store, store.transaction() as transaction:
        for number in range(Limits().proposals_a_day):
            transaction.add_session(SessionRow(f"job-{number}", "walr", "coordinator", "", "DONE", stamp(), b""))


def full_share(world: World) -> None:
    """Let the answers to the shop take what one active party may have of the server's disk."""
    world.publish("meter")
    world.set("policy.max_kept_mib", 1, "meter")
    with world.store("meter") as store, store.transaction() as transaction:
        transaction.add_answer("shop", "earlier", StoredAnswer("digest", b"", 0, "job-0", 2**20))


RESUMED = ['taylor.resume="cut-0123"']
SCORED = ['evaluate.scores="scored-0123"']


@dataclass(frozen=True)
class Case:
    """
    Attributes:
        at: the beginning of the place's name.
        world: makes the files.
        change: makes them wrong.
        party: which refuses.
        sets: options of the job, as `--set` takes them.
        is_same_place: as `assert_equal` takes it.
    """

    at: str
    world: Build
    party: str
    change: Change = lambda _world: None
    sets: Sequence[str] = ()
    is_same_place: bool = True

    def __str__(self) -> str:
        return f"{self.world.__name__}: {self.at}"


def setting(option: str, value: Any, *files: str) -> Change:
    return lambda world: world.set(option, value, *files)


def settings(*changes: tuple[str, Any, str]) -> Change:
    def change(world: World) -> None:
        for option, value, file in changes:
            world.set(option, value, file)

    return change


def writing(name: str, text: str) -> Change:
    def write(world: World) -> None:
        world.path(name).parent.mkdir(parents=True, exist_ok=True)
        world.path(name).write_text(text)

    return write


def other_coordinator(world: World) -> None:
    world.set("peers.coordinator", None, "meter")
    world.set("peers.organiser", {"role": "coordinator"}, "meter")


def published(name: str, change: Change) -> Change:
    """Publish the party's dataset, and then make the change."""

    def publish(world: World) -> None:
        world.publish(name)
        change(world)

    return publish


def edited_ledger(world: World) -> None:
    world.run()
    with sqlite3.connect(world.path("state", "shop", "party.sqlite")) as database:
        ((line,),) = database.execute("SELECT line FROM ledger").fetchall()
        edited = json.dumps({**json.loads(line), "epsilon": 0.5}, separators=(",", ":"))
        database.execute("UPDATE ledger SET line = ?", (edited,))


def lost_database(world: World) -> None:
    world.run()
    for file in world.path("state", "shop").glob("party.sqlite*"):
        file.unlink()


def person(name: str, dataset: str) -> Change:
    def change(world: World) -> None:
        world.columns(name, who=[f"w{i}" for i in range(ROWS)])
        world.set(f"datasets.{dataset}.person", "who", name)

    return change


POLICY = "parties/sessions/admission.py Admission._check_policy: "
LAUNCHER = "coordinator/running/launcher.py "
EVALUATE = "parties/evaluate/consumer.py Evaluation"
BUDGET = "algorithms/privacy/ledger.py check_budget"
SMALL = {"people": {"epsilon": 0.5, "delta": 1e-5}}

TWO_POINTS = ["select.grid.l2=[0.01,0.1]"]
ANY_MODELS = setting("datasets.loans.models_per_row", "unlimited", "bank")

CASES = [
    # --- files
    Case(LAUNCHER + "party_settings: parties.", walr, "meter", setting("parties.meter.config", None, "job")),
    Case(LAUNCHER + "party_settings: {}: name", walr, "meter", setting("name", "metre", "meter")),
    Case(LAUNCHER + "check_member: parties", walr, "meter", setting("parties.meter.dataset", "clicks", "job")),
    Case(LAUNCHER + "coordinator_name", walr, "coordinator", other_coordinator),
    # --- what a party keeps
    Case("parties/store/database.py lost", dp_lr, "shop", lost_database),
    Case(
        "parties/store/database.py Store.__init__",
        dp_lr,
        "shop",
        writing("state/shop/party.sqlite", "no database " * 99),
    ),
    Case("parties/store/charging.py check_chain", dp_lr, "shop", edited_ledger),
    # --- datasets
    Case(
        "coordinator/running/snapshots.py publish_first",
        walr,
        "meter",
        published(
            "meter",
            settings(
                ("datasets.rows.population", "others", "meter"),
                ("populations", {"others": {"epsilon": 9.0, "delta": 1e-5}}, "meter"),
            ),
        ),
    ),
    Case(
        "parties/snapshots/scored.py refuse_weak_content: {}: {}: a party",
        taylor,
        "shop",
        setting("datasets.loans.models_per_row", None, "shop"),
    ),
    Case(
        "parties/snapshots/scored.py refuse_weak_content: {}: {}: its rows",
        taylor,
        "post",
        setting("datasets.loans.models_per_row", 60, "post"),
    ),
    # --- policies
    Case(POLICY + "{} is not one", walr, "meter", setting("policy.systems", ["evaluate"], "meter")),
    Case(POLICY + "{} is not one", taylor, "post", setting("policy.systems", ["falcon"], "post")),
    Case(
        LAUNCHER + "check_member: it is",
        taylor,
        "post",
        settings(("role", "active", "post"), ("datasets.loans.models_per_row", None, "post")),
    ),
    Case(POLICY + "(_refuse) #2", walr, "meter", setting("policy.max_epsilon", 0.5, "meter")),
    Case(POLICY + "(_refuse) #2", walr, "shop", setting("policy.max_delta", 1e-7, "shop")),
    Case(POLICY + "(_refuse) #2", label_dp, "meter", setting("policy.label-dp.mechanisms", ["laplace"], "meter")),
    Case(POLICY + "(_refuse) #2", taylor, "bank", sets=["taylor.unsafe=['label-bits']"]),
    Case(POLICY + "(_refuse) #2", taylor, "post", setting("policy.min_common", 150, "post")),
    Case(
        "parties/sessions/admission.py Admission._address_of: {} is not",
        walr,
        "shop",
        setting("peers.meter.role", "passive", "shop"),
    ),
    Case(
        "parties/measurement/seat.py MeasurementSeat.check: (_refuse)",
        walr,
        "meter",
        settings(("datasets.rows.label_kind", "number", "meter"), ("datasets.rows.label_range", [0.0, 1.0], "meter")),
    ),
    Case(
        "parties/measurement/seat.py MeasurementSeat.check: (_refuse) #2",
        walr,
        "meter",
        sets=["privacy.max_rows_per_person=3"],
    ),
    Case(
        "parties/measurement/seat.py MeasurementSeat.check_members",
        walr,
        "meter",
        settings(("peers.bank.role", "active", "meter"), ("datasets.rows.active_parties", ["bank"], "meter")),
    ),
    # --- budgets and limits
    Case(BUDGET, walr, "meter", setting("populations", SMALL, "meter")),
    Case(BUDGET, label_dp, "meter", setting("populations", SMALL, "meter")),
    Case(BUDGET, dp_lr, "shop", setting("populations", SMALL, "shop")),
    Case(BUDGET, taylor, "bank", setting("populations.customers.epsilon", 0.5, "bank"), ["privacy.epsilon=0.8"]),
    Case(BUDGET, private_falcon, "post", setting("populations.customers.epsilon", 0.5, "post")),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        walr,
        "meter",
        setting("policy.min_rows", 900, "meter"),
        ["split.test_fraction=0"],
    ),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        label_dp,
        "meter",
        setting("policy.min_rows", 900, "meter"),
        ["split.test_fraction=0"],
    ),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        dp_lr,
        "shop",
        setting("policy.min_rows", 900, "shop"),
        ["split.test_fraction=0"],
    ),
    Case(
        "parties/vertical/scored_rows.py check_gives_scores",
        taylor,
        "post",
        setting("datasets.loans.models_per_row", 0, "post"),
    ),
    # --- what the job needs of a dataset
    Case("parties/training/rows.py check_features", walr, "shop", setting("datasets.rows.features", None, "shop")),
    Case("parties/training/rows.py check_features", taylor, "post", setting("datasets.loans.features", None, "post")),
    Case(
        "parties/training/budget.py population_of",
        private_falcon,
        "post",
        settings(("datasets.loans.population", None, "post"), ("populations", None, "post")),
    ),
    Case(
        "parties/training/budget.py population_of",
        dp_lr,
        "shop",
        settings(("datasets.rows.population", None, "shop"), ("populations", None, "shop")),
    ),
    Case(
        "parties/training/feature_bounds.py in_order: {}: {} has none",
        private_falcon,
        "post",
        sets=['falcon.feature_bounds=["bank0:-4:4", "bank1:-4:4", "bank2:-4:4", "shop0:-4:4", "shop1:-4:4"]'],
    ),
    Case("parties/training/unit.py refuse_persons", taylor, "post", person("post", "loans"), ["privacy.epsilon=0.8"]),
    Case(
        "parties/training/unit.py refuse_dependent_rows: datasets.{}.missing",
        private_falcon,
        "post",
        setting("datasets.loans.missing", "mean", "post"),
    ),
    Case(
        "parties/training/unit.py refuse_dependent_rows: datasets.{}.missing",
        dp_lr,
        "shop",
        setting("datasets.rows.missing", "mean", "shop"),
    ),
    Case(
        "parties/vertical/training.py DataParty.check: datasets.{}.label is",
        taylor,
        "bank",
        settings(
            ("datasets.loans.label", None, "bank"),
            ("datasets.loans.population", None, "bank"),
            ("populations", None, "bank"),
        ),
    ),
    Case(
        "parties/vertical/training.py DataParty.check: datasets.{}.label_kind",
        falcon,
        "bank",
        sets=['falcon.model="linear"'],
    ),
    Case("parties/vertical/checkpoints.py refuse_unknown", taylor, "bank", sets=['taylor.resume="vertical-0123"']),
    Case(
        "parties/taylor/parameters.py check_label_dp: datasets.{}.label_range",
        taylor,
        "bank",
        setting("datasets.loans.label_kind", "number", "bank"),
        ["privacy.epsilon=0.8", 'taylor.model="linear"'],
    ),
    Case(
        "parties/label_dp/consumer.py LabelRegression.check",
        label_dp,
        "shop",
        sets=[
            'label_dp.regressor="mlp"',
            "label_dp.options={ hidden_layer_sizes = '1000,1000,1000', max_iter = 10000 }",
        ],
    ),
    Case(
        "parties/label_dp/consumer.py LabelRegression._check_study: label_dp",
        label_dp,
        "shop",
        sets=['label_dp.evaluate_on="truth"'],
    ),
    Case(
        "parties/label_dp/consumer.py LabelRegression._check_study: datasets",
        label_dp,
        "shop",
        sets=['label_dp.evaluate_on="rows"'],
    ),
    Case(
        "parties/dp_lr/rows.py _check_has_both: datasets.{}: a dp-lr job needs f",
        dp_lr,
        "shop",
        setting("datasets.rows.features", None, "shop"),
    ),
    Case(
        "parties/dp_lr/rows.py _check_has_both: datasets.{}: a dp-lr job needs a",
        dp_lr,
        "shop",
        setting("datasets.rows.label_kind", "number", "shop"),
    ),
    Case(
        "parties/dp_lr/rows.py public_source: {} has no dataset", dp_lr, "shop", sets=['dp_lr.public_dataset="attic"']
    ),
    Case(
        "parties/dp_lr/rows.py public_source: datasets.{}: {} does not",
        dp_lr,
        "shop",
        sets=['dp_lr.public_dataset="rows"'],
    ),
    Case(
        "parties/dp_lr/trainer.py Trainer.check",
        dp_lr,
        "shop",
        sets=[
            "dp_lr.iterations=100000",
            "dp_lr.public_rows=100000000",
            'dp_lr.neighbours="add-or-remove"',
            'dp_lr.feature_bounds=["*:-4:4"]',
        ],
    ),
    Case("parties/training/public_model.py within", dp_lr, "shop", sets=['dp_lr.init="../elsewhere.json"']),
    Case(
        "parties/training/public_model.py load_pretrained",
        dp_lr,
        "shop",
        writing("start.json", "{}"),
        ['dp_lr.init="start.json"'],
    ),
    Case(
        "parties/walr/start.py read_known_model", walr, "shop", writing("start.json", "{}"), ['walr.init="start.json"']
    ),
    Case("parties/training/unit.py refuse_dependent_rows: datasets.{}.categories", dp_lr, "shop", regions),
    Case(
        "parties/dp_lr/rows.py public_source: datasets.{} and {} do not",
        dp_lr,
        "shop",
        archive(public=True),
        ['dp_lr.public_dataset="archive"'],
    ),
    Case(
        "parties/measurement/ways/several_parties.py AtServer.check: (refuse)",
        few_common_rows,
        "meter",
        is_same_place=False,
    ),
    Case("parties/measurement/charging.py check_space", walr, "meter", full_share),
    Case("parties/dp_lr/settings.py DPLRSettings.bounds_of", dp_lr, "shop", sets=['dp_lr.feature_bounds=["zz:-1:1"]']),
    Case("parties/falcon/parameters.py parameters_of", falcon, ANYBODY, sets=["falcon.validation_fraction=0.0"]),
    # --- limits that are used up before either command
    Case("parties/measurement/uploads.py check_uploads: (PolicyRefused)", walr, "meter", uploads(20)),
    Case("parties/measurement/uploads.py check_uploads: (PolicyRefused) #2", walr, "meter", uploads(1000, "bank")),
    Case("parties/sessions/admission.py Admission._check_room: (LimitExceeded) #2", walr, "meter", many_sessions),
    # --- earlier jobs
    Case("parties/snapshots/snapshots.py Snapshots.of_session", taylor, "bank", begun(), RESUMED),
    Case("parties/snapshots/snapshots.py Snapshots.to_read", taylor, "bank", begun(other=True), RESUMED),
    Case(
        "parties/training/rows.py require_offered: datasets.{}.features does",
        evaluation,
        "shop",
        setting("datasets.rows.features", ["x0"], "shop"),
        ['evaluate.rows="all"'],
    ),
    Case(
        "parties/training/rows.py require_offered: datasets.{}.except",
        evaluation,
        "shop",
        setting("datasets.rows.except", ["x0"], "shop"),
        ['evaluate.rows="all"'],
    ),
    Case(
        "parties/training/rows.py require_offered: datasets.{}: column",
        evaluation,
        "shop",
        setting("datasets.rows.person", "x0", "shop"),
        ['evaluate.rows="all"'],
    ),
    Case(f"{EVALUATE}._find_predicted_file: it has made", evaluation, "shop", part_of_model(), SCORED),
    Case(f"{EVALUATE}._find_predicted_file: the model of", evaluation, "shop", part_of_model("another-0123"), SCORED),
    Case(f"{EVALUATE}._find_predicted_file: (_refuse)", evaluation, "shop", part_of_model(""), SCORED),
    Case(f"{EVALUATE}._find_predicted_file: (_refuse) #2", evaluation, "shop", part_of_model("", "gone.csv"), SCORED),
    Case(f"{EVALUATE}._file", evaluation, "shop", sets=['evaluate.session="nobody-0123"']),
    Case(f"{EVALUATE}.check", evaluation, "shop", sets=['evaluate.scores="predicted-0123"']),
    Case(f"{EVALUATE}._model: {{}} is no model", evaluation, "shop", over_model("[]")),
    Case(f"{EVALUATE}._model: (_refuse)", evaluation, "shop", over_model('{"session": "another-0123"}')),
    Case(f"{EVALUATE}._read", evaluation, "shop", over_model('{"format": "other"}'), ['evaluate.rows="all"']),
    Case(f"{EVALUATE}._check_done", evaluation, "shop", failed_session),
    Case(POLICY + "{} is not one", evaluation, "meter", setting("policy.systems", ["walr"], "meter")),
    Case("parties/predict/prediction.py JointPrediction._part: it has no", prediction, "bank"),
    # --- what would leak
    Case("parties/taylor/leaks.py refusal", taylor, ANYBODY, sets=["taylor.gradient_noise=0.0"]),
    Case("parties/falcon/weight_bits.py refusal", wide_falcon, "bank"),
    # --- folds and grids
    Case("parties/snapshots/scored.py check_number_of_models", taylor, "bank", sets=TWO_POINTS),
    Case("parties/taylor/leaks.py refuse_few_batches: (PolicyRefused)", taylor, ANYBODY, ANY_MODELS, TWO_POINTS),
    Case(
        "parties/taylor/leaks.py refuse_few_batches: {}; {}",
        taylor,
        ANYBODY,
        ANY_MODELS,
        [*TWO_POINTS, "select.folds=10", "taylor.batch_rows=8"],
    ),
    Case(
        "parties/training/unit.py refuse_dependent_rows: datasets.{}.derive",
        dp_lr,
        "shop",
        setting("datasets.rows.derive", {"bad": {"by": "bins", "of": "x0", "bins": 3}}, "shop"),
    ),
]
"""Every place that a job reaches; a place may have several cases."""
