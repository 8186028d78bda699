"""A whole job between nodes: trained in shares, predicted in shares, as good as the opened model."""

from __future__ import annotations

import csv
import json
import math
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.metrics import roc_auc_score

from blindfit import load_model
from blindfit.algorithms.errors import ConfigError, DataError, PolicyRefused
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.jobs import check as preflight
from blindfit.coordinator.jobs.party_page import render_party
from blindfit.coordinator.predict.statement import who_learnt_what
from blindfit.coordinator.vertical.roles import Roles
from blindfit.parties.falcon.settings import FalconSettings
from blindfit.parties.files.vault import LOCKED, Vault
from blindfit.parties.vertical.model_store import ModelStore, SharedModels
from tests.falcon.project import REPEATABLE, table
from tests.shared_scores.local import changed
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops_in_shares

ROWS = 160
SHARED = 'falcon.weights="shared"'
# One batch of all rows: before they are rounded the weights are the same, within what their truncations are off.
SAME = tuple(option for option in REPEATABLE if "unsafe" not in option)
UNROUNDED = 'falcon.unsafe=["weight-bits"]'
QUICK = (*SAME, SHARED, 'falcon.security="semi-honest"')  # for tests that change no share
OFF = 5e-4  # error of a weight in shares: tests/falcon/test_protocol.py has the bound


def scores(root: Path, session: str) -> dict[str, tuple[float, float]]:
    with (root / f"state/bank/predictions/{session}/scores.csv").open(newline="") as file:
        return {row["id"]: (float(row["score"]), float(row["probability"])) for row in csv.DictReader(file)}


def predict(root: Path, model: str) -> dict[str, tuple[float, float]]:
    session = World(root).run(f'predict.session="{model}"', job="predict.toml")
    return scores(root, session.id)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bank_and_shops_in_shares(tmp_path_factory.mktemp("shared"), rows=ROWS, epochs=4).root


@pytest.fixture(scope="module")
def shared(root: Path) -> str:
    """The session of a training whose weights nobody has."""
    return str(World(root).run(*SAME, SHARED).id)


@pytest.fixture(scope="module")
def found(root: Path, shared: str) -> dict[str, tuple[float, float]]:
    """The scores of that model."""
    return predict(root, shared)


def test_scores_are_those_of_the_model_that_is_opened(
    root: Path, shared: str, found: dict[str, tuple[float, float]]
) -> None:
    """Each weight is rounded to within one step, and a row's errors add up over its weights."""
    opened = predict(root, World(root).run(*SAME, UNROUNDED, 'falcon.security="semi-honest"').id)
    x, y = table(root)  # in the order of ids
    names = sorted(found)
    assert names == sorted(opened)
    assert len(names) == ROWS
    step = 2.0 ** -SharedModels(root / "state/bank").read(shared).kept_bits
    columns = np.abs((x - x.mean(axis=0)) / x.std(axis=0)).clip(max=8).sum(axis=1) + 1
    apart = np.array([abs(found[name][0] - opened[name][0]) for name in names])
    assert np.all(apart <= columns * (step + OFF))
    assert apart.max() > 0
    aucs = [roc_auc_score(y, [told[name][1] for name in names]) for told in (found, opened)]
    assert aucs[0] > 0.8
    assert abs(aucs[0] - aucs[1]) < 0.02  # 0.0136 at most: each of 10 weights has two roundings, and all were tried


def test_no_weight_is_written_anywhere(root: Path, shared: str) -> None:
    for name in DATA_PARTIES:
        directory = root / f"state/{name}/models/{shared}"
        assert not (directory / "model.json").exists()
        path = directory / "shares.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(json.loads(path.read_text())["shares"]) == 11
        assert World(root).written(name, shared, "report.json")["weights"] == {
            "in_shares": True,
            "opened_bits": 0,
            "label_bits": 0.0,
        }
    assert not list((root / "state/notary").rglob("shares.json"))
    assert not list((root / "state").glob("*/checkpoints/*/*"))


def test_bits_of_labels_are_only_those_of_the_end(root: Path, shared: str) -> None:
    with World(root).store("bank") as store:
        entries = [entry for entry in store.reader().disclosures(subject="labels") if entry.session == shared]
    assert [entry.event for entry in entries] == ["end of training"]
    assert entries[0].bits == pytest.approx(math.log2(4 + 1))  # after one of four epochs, by the range or not


def test_the_same_question_has_the_same_model(root: Path, shared: str, found: dict[str, tuple[float, float]]) -> None:
    again = World(root).run(*SAME, SHARED).id
    assert World(root).written("bank", again, "report.json")["answered_in"] == shared
    assert predict(root, again) == found


def test_shares_that_do_not_fit_and_shares_that_are_gone(
    root: Path, shared: str, found: dict[str, tuple[float, float]]
) -> None:
    models = SharedModels(root / "state/shop-a")
    part = models.read(shared)
    models.keep(replace(part, kept=changed(part.kept, 2)), shared)
    with pytest.raises(PolicyRefused, match=r"session: the data parties' shares of the model do not fit together"):
        predict(root, shared)
    models.path(shared).unlink()
    with pytest.raises(PolicyRefused, match=r"shop-a refuses the job: .*: it has no model of that session"):
        predict(root, shared)
    models.keep(part, shared)
    assert predict(root, shared) == found  # the same scores again: a failed check has revealed nothing of the MAC key


def test_a_shared_model_is_not_exported(root: Path, shared: str) -> None:
    with pytest.raises(
        DataError, match=r"shares\.json has one party's shares of a model that no party holds as a whole: it cannot"
    ):
        load_model(SharedModels(root / "state/bank").path(shared))
    with pytest.raises(DataError, match="cannot be read"):
        ModelStore(root / "state/bank").read(shared)


def test_shares_are_signed_named_and_locked(root: Path, shared: str, tmp_path: Path) -> None:
    part = SharedModels(root / "state/bank").read(shared)
    vault = Vault(bytes(32))
    models = SharedModels(tmp_path, vault)
    models.keep(part, shared)
    assert models.path(shared).read_bytes().startswith(LOCKED)
    assert models.read(shared).to_dict() == part.to_dict()
    with pytest.raises(ConfigError, match="no passphrase was given"):
        SharedModels(tmp_path).read(shared)
    (tmp_path / "plain").mkdir()
    plain = SharedModels(tmp_path / "plain")
    plain.keep(part, shared)
    (plain.path(shared).parent.parent / "other-1").mkdir()
    plain.path("other-1").write_bytes(plain.path(shared).read_bytes())
    with pytest.raises(DataError, match="is the model of another session"):
        plain.read("other-1")
    plain.path(shared).write_text(plain.path(shared).read_text().replace('"kept_bits": ', '"kept_bits": 1'))
    with pytest.raises(DataError, match="does not have this party's signature"):
        plain.read(shared)


# --- quotas ----------------------------------------------------------------------------------------------------


def with_more_columns(project: World) -> World:
    """Add columns, so that scores are counted, and not given by the owner's declaration."""
    for name in ("shop-a", "shop-b"):
        path, rng = project.root / f"{name}.csv", np.random.default_rng(1)
        read = pyarrow.csv.read_csv(path)
        for column in ("x3", "x4"):
            read = read.append_column(column, pa.array(rng.normal(size=len(read))))
        pyarrow.csv.write_csv(read, path)
        project.edit(f"{name}.toml", 'models_per_row = "unlimited"\n', "")
    return project


def test_quotas_count_models_in_shares_too(tmp_path: Path) -> None:
    root = with_more_columns(bank_and_shops_in_shares(tmp_path, rows=ROWS, epochs=2)).root
    first = World(root).run(*QUICK).id
    assert [SharedModels(root / f"state/{name}").read(first).score_bits for name in DATA_PARTIES] == [0, 11, 11]
    found = predict(root, first)
    assert predict(root, first) == found
    second = World(root).run(*QUICK, "falcon.learning_rate=0.4").id
    with pytest.raises(PolicyRefused, match="some of these rows have had scores of 1 model,"):
        predict(root, second)


# --- options -----------------------------------------------------------------------------------------------------


def test_unrounded_weights_that_stay_shared_are_refused() -> None:
    with pytest.raises(ValueError, match='weight-bits does nothing with weights = "shared"'):
        FalconSettings(weights="shared", unsafe=["weight-bits"])


def test_few_rows_do_not_refuse_weights_that_stay_shared(tmp_path: Path) -> None:
    """The refusal of opened weights names this way."""
    few: Any = ("align.min_common=50", *SAME)
    root = bank_and_shops_in_shares(tmp_path, rows=60, epochs=2).root
    with pytest.raises(PolicyRefused, match=r'or set falcon\.weights = "shared"'):
        World(root).run(*few)
    assert World(root).run("align.min_common=50", *QUICK).id


# --- the coordinator ---------------------------------------------------------------------------------------------


def test_the_preflight_says_what_a_prediction_takes(root: Path, shared: str) -> None:
    job = load_job(root / "predict.toml", [f'predict.session="{shared}"'])
    told = {finding.about: finding.text for finding in preflight.check(job)}
    assert told["model"].startswith("is in shares: nobody has it")
    assert told["shop-a"] == "its part of a score goes into the sum unchanged"
    assert f"to score {ROWS:,} rows" in told["time"]
    assert told["rounds"].startswith("27: 40 ms from party to party add")
    assert "MB to send" in told["bytes"]


def test_a_partys_own_page_says_that_it_holds_shares(root: Path, shared: str) -> None:
    directory = root / f"state/shop-a/models/{shared}"
    render_party(directory)
    assert "Nobody has the model: no weight was opened." in (directory / "report.html").read_text("utf-8")


def test_who_learnt_what_of_a_prediction_in_shares(root: Path, shared: str) -> None:
    job = load_job(root / "predict.toml", [f'predict.session="{shared}"'])
    roles = Roles.of({name: party.role for name, party in job.parties.items()})
    learnt = who_learnt_what(roles, 30, in_shares=True)
    assert "bank learnt the scores of 30 rows; it has no weights" in learnt["bank"]
    assert learnt["notary"].endswith("It dealt with seeds of only this prediction, and keeps nothing.")
