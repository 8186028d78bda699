"""Falcon jobs between real nodes: weights, refusals, counts, resumed trainings, and predictions."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import BlindfitError, DataError, PeerUnreachable, PolicyRefused, ScoresOutOfRange
from blindfit.algorithms.protocols.falcon import check, seats
from blindfit.algorithms.protocols.falcon.messages import MaskedInput
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.account.account import Account
from blindfit.parties.falcon import data_party
from blindfit.parties.falcon.settings import FalconSettings
from blindfit.parties.falcon.weight_bits import check_weight_bits
from blindfit.parties.store.database import Reads
from tests.falcon.local import Case
from tests.falcon.project import REPEATABLE, Begun, make_judged, make_quick, table
from tests.falcon.stopping import epochs_at, plain_descent, stopped_after, together
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops_in_shares, label_bits, weights, write_rows


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops_in_shares(tmp_path)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """A judged job was lost after its first epoch."""
    return Begun.by(tmp_path_factory.mktemp("lost"), lambda project: stopped_after(1, project), make_judged)


@pytest.fixture
def quick(tmp_path: Path) -> World:
    return make_quick(tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Begun, JobSession]:
    """A whole job, with MACs, several batches and figures of test rows."""
    root = tmp_path_factory.mktemp("done")
    session = World(bank_and_shops_in_shares(root, epochs=2).root).run("falcon.batch_rows=108")
    return Begun(root, session.id), session


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """The quick job has run once."""
    return Begun.by(tmp_path_factory.mktemp("trained"), lambda project: project.run().id, make_quick)


@pytest.fixture(scope="module")
def unrounded(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """The quick job has run once, and opened weights as they are."""
    root = tmp_path_factory.mktemp("unrounded")
    return Begun.by(root, lambda project: project.run(*REPEATABLE).id, make_quick)


MACS = (*REPEATABLE, 'falcon.security="malicious"')


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """A training with MACs was lost after its second and last epoch."""
    return Begun.by(tmp_path_factory.mktemp("stopped"), lambda project: stopped_after(2, project, *MACS), make_quick)


def check_plain_descent(root: Path, session: str, *, epochs: int) -> None:
    # Errors by the grid of features, 2^-12, and by shares (tests/falcon/test_protocol.py); no row stands out here.
    rows: Any = World(root).written("bank", session, "report.json")["rows"]
    assert rows["shrunk"] == 0
    assert np.abs(together(weights(World(root), session)) - plain_descent(root, epochs=epochs)).max() < 5e-4


def test_weights_are_those_of_plain_descent_on_the_joined_table(project: World) -> None:
    check_plain_descent(project.root, project.run(*REPEATABLE).id, epochs=3)


def test_they_are_so_without_macs(unrounded: Begun) -> None:
    check_plain_descent(unrounded.root, unrounded.session, epochs=2)


def test_what_a_job_leaves_behind(done: tuple[Begun, JobSession]) -> None:
    project, session = World(done[0].root), done[1]
    bank, shop = (project.written(name, session, "report.json") for name in ("bank", "shop-a"))
    evaluation: Any = bank["evaluation"]
    assert 0.6 < evaluation["auc"] <= 1
    assert sum(evaluation["confusion"].values()) == evaluation["rows"] == 60
    assert shop["evaluation"] is None
    assert bank["weights"] == {"opened_bits": 7, "label_bits": pytest.approx(WEIGHTS / 210)}
    for name in ("bank", "shop-a", "shop-b", "notary"):
        assert not (project.root / f"state/{name}/checkpoints/{session.id}").exists()
        assert not list((project.root / f"state/{name}").rglob("*seed*"))
    found = together(weights(project, session.id))
    assert np.array_equal(found * 16, np.rint(found * 16))
    told = session.summaries
    assert "fit.epochs" in told["bank"]
    assert not any("weight" in name for summary in told.values() for name in summary)


# --- what is counted ------------------------------------------------------------------------------------------------


ROWS = 216  # rows of a quick job
LIMIT = ROWS / 4  # bits about all labels together
WEIGHTS = 3 * 7  # three columns
END = math.log2(2 + 1)  # for the place where two epochs end, by the range only
JUDGED_END = math.log2(3 * 2 + 1)  # the end by the range, by the loss, or by both


def test_trainings_on_the_same_labels_add_up_until_no_more_is_opened(trained: Begun, tmp_path: Path) -> None:
    """Each of them reveals 22.6 bits, so two fit into the limit of 54.

    A new snapshot of the same people does not make room for a third.
    """
    project = trained.copied(tmp_path)
    project.run("falcon.learning_rate=0.6")
    for snapshot in (1, 2):
        with capture_logs() as logged, pytest.raises(PolicyRefused, match="with earlier trainings") as refused:
            project.run("falcon.learning_rate=0.4")
        assert refused.value.field == "weight bits"
        (said,) = (entry for entry in logged if entry["event"] == "label bits")  # only the bank knows how many
        assert said["revealed"] == pytest.approx(2 * (WEIGHTS + END), abs=0.1)
        assert said["limit"] == LIMIT
        with project.store("bank") as store:
            assert len(store.reader().snapshots("rows")) == snapshot
        project.columns("bank", x0=np.zeros(ROWS))
        project.publish("bank")


def test_new_people_make_room_for_one_more_training(trained: Begun, tmp_path: Path) -> None:
    project = trained.copied(tmp_path)
    project.run("falcon.learning_rate=0.6")
    write_rows(project, ROWS + 80)
    for name in DATA_PARTIES:
        project.publish(name)
    project.run("falcon.learning_rate=0.4")
    more = 3 * 8  # with more rows a weight has one more bit
    assert sum(label_bits(project)) == pytest.approx(2 * WEIGHTS + more + 3 * END)
    with pytest.raises(PolicyRefused, match="with earlier trainings"):
        project.run("falcon.learning_rate=0.5")


@pytest.mark.parametrize(("share", "trainings"), [(0.01, 1), (0.5, 1), (0.9, 2)])
def test_a_share_of_the_account_is_never_less_than_one_training(quick: World, share: float, trainings: int) -> None:
    quick.set("policy.account_shares", {"shop-a": share, "shop-b": 1.0}, "bank")
    for number in range(trainings):
        quick.run(f"falcon.learning_rate=0.{number + 4}")
    with pytest.raises(PolicyRefused, match="with earlier trainings"):
        quick.run("falcon.learning_rate=0.8")
    assert sum(label_bits(quick)) == pytest.approx(trainings * (WEIGHTS + END))


def test_entries_older_than_the_period_no_longer_count(trained: Begun, tmp_path: Path) -> None:
    project = trained.copied(tmp_path)
    project.run("falcon.learning_rate=0.6")
    with project.store("bank") as store:
        store._db.execute("UPDATE disclosures SET made = '2020-01-01T00:00:00+00:00'")
    with pytest.raises(PolicyRefused, match="with earlier trainings"):
        project.run("falcon.learning_rate=0.4")
    project.set("policy.account_period_days", 365, "bank")
    project.run("falcon.learning_rate=0.4")


def test_a_refusal_says_the_same_whatever_trainings_with_others_revealed(trained: Begun, tmp_path: Path) -> None:
    reasons = set()
    for bits in ([LIMIT], [LIMIT - WEIGHTS - END], [1.0, 30.0], [1e6]):
        project = trained.copied(tmp_path / str(bits))
        with project.store("bank") as store, store.transaction() as transaction:
            account = Account.of(project.settings("bank"), "rows")
            for number, more in enumerate(bits):
                question = f"weights {number}"
                entry = account.entry("labels", account.label, ["another shop"], "weights", question, more)
                transaction.add_disclosure(entry)
        with pytest.raises(PolicyRefused) as refused:
            project.run("falcon.learning_rate=0.6")
        reasons.add(str(refused.value))
    assert len(reasons) == 1


def test_one_training_that_reveals_too_much_says_how_much_whatever_was_before() -> None:
    job: Any = SimpleNamespace(falcon=FalconSettings())
    parameters = Case().parameters
    with pytest.raises(PolicyRefused, match=r"could learn 0\.30 bits"):
        check_weight_bits(Reads(lambda _query, _values: []), job, parameters, 0.3 * parameters.train_rows, "bank")


def test_the_same_question_has_the_same_answer_and_nothing_is_opened_or_counted(
    done: tuple[Begun, JobSession], tmp_path: Path
) -> None:
    project, first = done[0].copied(tmp_path), done[1].id
    again = project.run("falcon.batch_rows=108").id
    for name in DATA_PARTIES:
        assert np.array_equal(weights(project, first)[name], weights(project, again)[name])
    assert label_bits(project) == [pytest.approx(JUDGED_END), pytest.approx(WEIGHTS)]
    one, other = (project.written("bank", session, "report.json") for session in (first, again))
    assert one["evaluation"] == other["evaluation"] is not None
    assert (one["answered_in"], other["answered_in"]) == (first, first)
    kinds = [json.loads(line)["kind"] for line in transcript(project, again)]
    assert "Ready" in kinds
    assert not {"OpenedShares", "MaskedInput"} & set(kinds)


def transcript(project: World, session: str) -> list[str]:
    return (project.root / f"state/shop-a/models/{session}/transcript.jsonl").read_text().splitlines()


@pytest.mark.parametrize("gone", ["state/shop-b/answers", "state/shop-b/models"])
def test_where_a_party_no_longer_has_it_the_question_is_asked_anew_and_counted(
    trained: Begun, tmp_path: Path, gone: str
) -> None:
    project = trained.copied(tmp_path)
    shutil.rmtree(project.root / gone)
    project.run()
    assert label_bits(project) == [pytest.approx(END)] * 2 + [pytest.approx(WEIGHTS)] * 2


def test_unrounded_weights_take_the_whole_of_every_label(unrounded: Begun, tmp_path: Path) -> None:
    nodes = World(unrounded.copied(tmp_path).root)
    nodes.run(*REPEATABLE, "falcon.epochs=3")  # a party that has allowed it allows it again
    with pytest.raises(PolicyRefused, match="weight bits"):
        nodes.run()


def test_the_flag_is_the_partys_to_allow(project: World) -> None:
    project.edit("shop-b.toml", 'unsafe = ["weight-bits"]\n', "")
    with pytest.raises(PolicyRefused, match="does not list weight-bits") as refused:
        project.run(*REPEATABLE)
    assert refused.value.party == "shop-b"


def test_columns_that_have_too_many_bits_for_the_rows_are_refused(tmp_path: Path) -> None:
    project = bank_and_shops_in_shares(tmp_path, rows=90)
    with pytest.raises(PolicyRefused, match=r"learn 0\.\d\d bits of each label from its weights \(at most 0\.25\)"):
        project.run("align.min_common=20", "split.test_fraction=0", "falcon.validation_fraction=0")


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("falcon.threshold=0.4\nsplit.test_fraction=0", "falcon.threshold does nothing without test rows"),
        ("falcon.decay=1000", "decay"),
        ('falcon.schedule="exponential"\nfalcon.decay=50', "decay: the last epoch's rate is .* of the first one's"),
        ('align={method="linkage", fields=["name"]}', "a falcon job aligns by ids"),
        ("falcon.momentum=0.5", "momentum does nothing with the other options"),
        ("falcon.patience=0", "validation_fraction: with patience = 0"),
        ("falcon.validation_fraction=0\nfalcon.patience=2", "patience does nothing with the other options"),
        ("falcon.threshold=1", "threshold"),
        ("falcon.model=linear\nfalcon.threshold=0.4", "threshold does nothing with the other options"),
        ("falcon.model=linear\nfalcon.waves=medium", "waves does nothing with the other options"),
        ("falcon.model=linear\nfalcon.class_weights=balanced", "class_weights does nothing with the other options"),
        ("falcon.sampling=random", "sampling"),
        ("falcon.batch_rows=1", "batch_rows"),
        ("falcon.backend=shared", "backend"),
        ("taylor.epochs=3", r"\[taylor\] does nothing in a falcon job"),
    ],
)
def test_options_that_would_do_nothing_or_promise_too_much_are_refused(
    project: World, override: str, said: str
) -> None:
    with pytest.raises(BlindfitError, match=said.replace("(", r"\(").replace(")", r"\)")):
        load_job(project.root / "job.toml", override.split("\n"))


def test_scores_that_grow_end_the_job_with_what_to_do(quick: World) -> None:
    with pytest.raises(ScoresOutOfRange, match="in epoch 1") as ended:
        quick.run("falcon.learning_rate=400", 'falcon.schedule="constant"', "falcon.l2=0")
    assert "falcon.learning_rate" in ended.value.hint
    assert label_bits(quick) == [pytest.approx(END)]


# --- what goes on -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_training_that_stopped_goes_on_to_the_same_weights(stopped: Begun, tmp_path: Path, epoch: int) -> None:
    """A party that stopped earlier lacks only what is kept of later epochs."""
    project, session = stopped.copied(tmp_path), stopped.session
    for name in DATA_PARTIES:
        assert epochs_at(project, name, session) == {1, 2}
        for later in range(epoch + 1, 3):
            (project.root / f"state/{name}/checkpoints/{session}/epoch-{later}.json").unlink()
    resumed = project.run(*MACS, f'falcon.resume="{session}"')
    check_plain_descent(project.root, resumed.id, epochs=2)


THREE = (*REPEATABLE, "falcon.epochs=3")


def test_shares_of_another_run_are_dropped_when_a_training_goes_on(quick: World) -> None:
    """The bank kept epoch 2 of the first run and could not keep that of the second, which the shops have.

    So the bank must not offer to go on from there.
    """
    session = stopped_after(2, quick, *THREE, party="shop-a", keeps=False)
    assert epochs_at(quick, "bank", session) == {1, 2}
    again = stopped_after(2, quick, *THREE, f'falcon.resume="{session}"', party="bank", keeps=False)
    assert again == session
    assert (epochs_at(quick, "bank", session), epochs_at(quick, "shop-a", session)) == ({1}, {1, 2})
    resumed = quick.run(*THREE, f'falcon.resume="{session}"')
    check_plain_descent(quick.root, resumed.id, epochs=3)


def test_weights_that_are_opened_again_are_counted_again(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The opening counts in full: a party that resumes sends features again, and may claim to have kept less."""

    def lost(*_: Any) -> None:
        raise DataError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(data_party, "write_part", lost)
        with pytest.raises(BlindfitError):
            quick.run()
    (session,) = (path.name for path in (quick.root / "state/bank/checkpoints").iterdir())
    assert label_bits(quick) == [pytest.approx(END), pytest.approx(WEIGHTS)]
    quick.run(f'falcon.resume="{session}"')
    assert label_bits(quick) == [pytest.approx(END)] + [pytest.approx(WEIGHTS)] * 2


def test_where_a_training_ends_is_counted_before_it_is_told(lost: Begun, tmp_path: Path) -> None:
    """A training that is lost before it opens a weight counts too; a resumed one counts again for the epochs it may
    add.
    """
    project = lost.copied(tmp_path)
    assert label_bits(project) == [pytest.approx(JUDGED_END)]
    project.run(f'falcon.resume="{lost.session}"')
    again = math.log2(3 * 1 + 1)
    assert label_bits(project) == [pytest.approx(again), pytest.approx(JUDGED_END), pytest.approx(WEIGHTS)]


def test_a_share_that_a_lost_training_has_used_lets_it_go_on_and_no_other(lost: Begun, tmp_path: Path) -> None:
    project = lost.copied(tmp_path)
    project.set("policy.account_shares", {"shop-a": 0.001, "shop-b": 0.001}, "bank")
    with pytest.raises(PolicyRefused, match="with earlier trainings"):
        project.run("falcon.learning_rate=0.4")
    project.run(f'falcon.resume="{lost.session}"')
    assert max(label_bits(project)) == pytest.approx(WEIGHTS)


def test_who_leaves_before_anything_is_told_pays_for_having_asked(
    quick: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to whether a training may run depends on what trainings with other parties have revealed."""
    train = data_party.Falcon.train

    async def leaves(method: Any, agreed: Any) -> Any:
        if method._seats.me == "shop-a":
            await method._session.channel.receive("bank", MaskedInput)
            raise DataError("leaves")
        return await train(method, agreed)

    monkeypatch.setattr(data_party.Falcon, "train", leaves)
    for number in (1, 2):
        with pytest.raises(BlindfitError):
            quick.run()
        assert label_bits(quick) == [pytest.approx(END)] * number


def test_a_check_that_was_begun_and_not_passed_ends_the_training(quick: World) -> None:
    """A party that tampered knows the MAC key then, with any message or none, so nobody uses the key again."""
    residues, told = check._residues, [0]

    async def silent(mine: Any, me: str, *more: Any) -> Any:
        told[0] += 1
        if told[0] > 6 and me == "shop-a":  # six in an epoch, which all have kept
            raise PeerUnreachable(peer="bank", address="-", step="Residue", reason="it says nothing more")
        return await residues(mine, me, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "_residues", silent)
        with pytest.raises(BlindfitError):
            quick.run(*MACS)
    (session,) = (path.name for path in (quick.root / "state/bank/checkpoints").iterdir())
    with pytest.raises(PolicyRefused, match="there is no checkpoint"):
        quick.run(*MACS, f'falcon.resume="{session}"')


def test_when_a_check_fails_nothing_is_kept(quick: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party opens another share after an epoch: no seed, and so no part of the MAC key, is used again."""
    open_shares = seats.exchange_with_all
    told = [0]

    async def changed(mine: Any, others: Any, kind: Any, channel: Any) -> Any:
        if type(mine).__name__ == "OpenedShares":
            told[0] += 1
            if told[0] == 40:  # 33 in an epoch, which all have kept
                mine = type(mine)(values_plus_one(mine.values))
        return await open_shares(mine, others, kind, channel)

    monkeypatch.setattr(seats, "exchange_with_all", changed)
    with pytest.raises(BlindfitError, match=r"MALFORMED_MESSAGE|openings"):
        quick.run(*MACS)
    assert told[0] >= 40
    for name in (*DATA_PARTIES, "notary"):
        assert not list((quick.root / f"state/{name}/checkpoints").glob("*/*")), name


def values_plus_one(values: np.ndarray) -> np.ndarray:
    changed = values.copy()
    changed[0] = (int(changed[0]) + 1) % (2**61 - 1)
    return changed


def test_a_resumed_job_names_the_dataset_that_it_reads(lost: Begun, tmp_path: Path) -> None:
    """The operator sees, and a quota counts, the dataset of the job."""
    project, session = lost.copied(tmp_path), lost.session
    path = project.root / "shop-a.toml"
    path.write_text(
        path.read_text()
        + '[datasets.others]\nurl = "csv:shop-a.csv"\nid = "id"\nfeatures = ["x0"]\nmodels_per_row = 0\n'
    )
    with pytest.raises(PolicyRefused, match=f"the training {session} was of another job"):
        project.run(f'falcon.resume="{session}"', 'parties.shop-a.dataset="others"')


def test_a_damaged_checkpoint_is_said(lost: Begun, tmp_path: Path) -> None:
    project, session = lost.copied(tmp_path), lost.session
    path = project.root / f"state/bank/checkpoints/{session}/epoch-1.json"
    kept = json.loads(path.read_text())
    kept["state"]["values"].pop("weights")
    path.write_text(json.dumps(kept))
    with pytest.raises(BlindfitError, match="bank cannot take part"):
        project.run(f'falcon.resume="{session}"')


# --- predictions ------------------------------------------------------------------------------------------------------


def test_new_rows_are_scored_with_the_opened_weights(done: tuple[Begun, JobSession], tmp_path: Path) -> None:
    project = done[0].copied(tmp_path)
    predicted = project.run(f'predict.session="{done[1].id}"', job="predict.toml")
    lines = (project.root / f"state/bank/predictions/{predicted.id}/scores.csv").read_text().splitlines()
    assert len(lines) == 301
    scores = np.array([float(line.split(",")[1]) for line in lines[1:]])
    _, y = table(project.root)
    ids = [line.split(",")[0].strip('"') for line in lines[1:]]
    order = np.argsort(ids)
    assert (np.sign(scores[order]) == 2 * y - 1).mean() > 0.65
