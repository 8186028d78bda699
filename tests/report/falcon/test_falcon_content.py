"""report.json of a training in shares: its sources, and its statements about figures without a source."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.protocols.falcon import TestFigures as OpenedFigures
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from blindfit.coordinator.falcon.cautions import cautions_of
from blindfit.coordinator.falcon.figures import Figures, figures_of
from blindfit.coordinator.vertical.selection import name_the_grid
from blindfit.parties.falcon.data_party import evaluation_of
from blindfit.parties.falcon.weight_bits import weights_bits
from tests.report.falcon.conftest import OPENED, SESSION, MadeUpShares
from tests.report.pages import check_nothing_is_kept_of_models
from tests.reports import write_report


def facts_of(shares: MadeUpShares, **changes: Any) -> Figures:
    return figures_of(shares.submitted(**changes).content)


def cautions(shares: MadeUpShares, *, here: bool = False) -> str:
    written = shares.written() if here else shares.submitted()
    return " | ".join(cautions_of(figures_of(written.content)))


def test_a_run_here_holds_everything(shares: MadeUpShares) -> None:
    content = json.loads(shares.written().json_path.read_text())
    assert (content["session"], content["protocol"], content["state"]) == (SESSION, "falcon", "DONE")
    assert content["job"]["falcon"]["security"] == "auto"  # a default
    assert {"taylor", "paillier", "coordinator"}.isdisjoint(content["job"])
    assert content["models"] == {name: shares.model_of(name) for name in shares.chain}
    assert content["party_reports"]["bank"]["weights"] == {"opened_bits": 8, "label_bits": 8 / 840}
    assert content["parties"]["notary"]["summary"]["fit"] == {"epochs": 4}


def test_a_submitted_job_holds_no_weight(shares: MadeUpShares) -> None:
    for party in shares.chain:
        shares.write_party(party)
    check_nothing_is_kept_of_models(shares.submitted(), ("0.71875", "0.7188", "0.90625", "0.9062"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows__trained": 1.5}, "the report of bank: rows.trained is not an integer"),
        ({"fit__epochs": "many"}, "the report of bank: fit.epochs is not an integer"),
        ({"evaluation__ks": "good"}, "the report of bank: evaluation.ks is not a finite number"),
        ({"evaluation__confusion.false_negatives": 0.5}, "the report of bank: evaluation.confusion.false_negatives is"),
        ({"timing__train_s": "long"}, "the report of bank: timing.train_s is not a finite number"),
    ],
)
def test_a_figure_that_is_wrong_names_party_and_figure(
    shares: MadeUpShares, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError) as raised:
        shares.submitted(**changes)
    assert str(raised.value).startswith(message)
    assert not shares.out.exists()


@pytest.mark.parametrize(
    ("party", "figure"), [("bank", "rows.trained"), ("shop", "rows.features"), ("bank", "evaluation.log_loss")]
)
def test_a_figure_that_is_missing_is_named(shares: MadeUpShares, party: str, figure: str) -> None:
    session = shares.session()
    del session.summaries[party][figure]
    with pytest.raises(DataError) as raised:
        write_report(session, shares.out, [])
    assert str(raised.value) == f"the report of {party}: {figure} is missing"


def test_a_job_of_another_system_is_not_read(shares: MadeUpShares) -> None:
    content = shares.submitted().content
    with pytest.raises(ConfigError, match="the job of the report: protocol: must be 'falcon'"):
        figures_of({**content, "job": {**content["job"], "protocol": "taylor"}})


# --- what opened weights reveal --------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [100, 340, 840, 5000])
def test_bits_are_those_that_the_active_party_counts(shares: MadeUpShares, rows: int) -> None:
    shares.weights["shop"] = {f"shop{j}": 0.0 for j in range(7)}
    facts = facts_of(shares, rows__trained=rows)
    parameters = SimpleNamespace(
        kept_bits=choose_kept_bits(rows), columns=(4, 1, 7), train_rows=rows, weights_stay_shared=False
    )
    assert facts.most_told == weights_bits(parameters) / rows  # type: ignore[arg-type]
    assert facts.pooled is not None
    assert facts.pooled.weights == 8
    assert facts.pooled.all_bits == facts.opened["shop"].all_bits + facts.opened["post"].all_bits


def test_weights_that_are_not_rounded_have_no_bound(shares: MadeUpShares) -> None:
    facts = facts_of(shares.with_(unsafe=["weight-bits"]))
    assert (facts.weight_bits, facts.most_told, facts.pooled, facts.opened) == (None, None, None, {})


def test_one_passive_party_has_nobody_to_pool_with(shares: MadeUpShares) -> None:
    facts = facts_of(shares.with_two())
    assert facts.most_told == 8 / 840
    assert facts.pooled is None


# --- cautions -----------------------------------------------------------------------------------------------------


def test_nothing_to_warn_of(shares: MadeUpShares) -> None:
    assert cautions(shares, here=True) == ""


def test_what_an_unsafe_flag_gives_up(shares: MadeUpShares) -> None:
    said = cautions(shares.with_(unsafe=["weight-bits"]))
    assert said.startswith("Unsafe, but allowed by the job (falcon.unsafe, weight-bits): weights opened as they are")
    assert "nearly a gradient, which reveals labels" in said


def test_passive_parties_that_pool_more_than_one_may_have(shares: MadeUpShares) -> None:
    """8 bits of each of 14, 26 or 28 weights, of 840 labels: 210 are a quarter."""
    for name, columns in (("shop", 13), ("post", 13)):
        shares.weights[name] = {f"{name}{j}": 0.0 for j in range(columns)}
    assert "together" not in cautions(shares)
    shares.weights["shop"]["shop13"] = 0.0
    assert "post and shop together have up to 0.2571 bits of each training label" in cautions(shares)


def test_a_caution_names_the_grid_that_takes_the_place_of_an_option(shares: MadeUpShares) -> None:
    caution = cautions(shares.with_(epochs=4))
    assert "Raise falcon.epochs or falcon.learning_rate." in caution
    for grid, advice in (
        ({"l2": [0.1, 0.2]}, "falcon.epochs or falcon.learning_rate"),
        ({"epochs": [2, 4]}, "select.grid.epochs or falcon.learning_rate"),
        ({"learning_rate": [0.1, 0.2], "epochs": [2, 4]}, "select.grid.epochs or select.grid.learning_rate"),
    ):
        shares.settings["select"] = {"grid": grid}
        assert f"Raise {advice}." in name_the_grid(caution, shares.job().parameters, "falcon")


def test_a_training_that_ran_out_of_epochs(shares: MadeUpShares) -> None:
    assert "may be unfinished" in cautions(shares.with_(epochs=4))
    assert "3 epochs without a better validation loss" in cautions(shares)
    assert "unfinished" not in cautions(shares.with_(epochs=5))
    assert "unfinished" not in cautions(shares.with_(epochs=4, validation_fraction=0.0, patience=3))


def test_weights_that_were_clipped(shares: MadeUpShares) -> None:
    """840 rows: steps of 1/32."""
    shares.weights["bank"] |= {"debt": -4.0, "income": 4.0 - 1 / 32}
    shares.weights["shop"]["spent"] = 4.0 - 2 / 32
    said = cautions(shares, here=True)
    assert "2 weights of bank lay beyond 4" in said
    assert "of shop" not in said
    assert "lay beyond" not in cautions(shares)  # nobody here knows the paths of a submitted job


def test_the_intercept_may_be_clipped_too(shares: MadeUpShares) -> None:
    shares.intercept = -4.0
    assert "1 weight of bank lay beyond 4" in cautions(shares, here=True)


def test_few_test_rows_and_many_shortened_ones(shares: MadeUpShares) -> None:
    shares.report["rows"] |= {"test": 60, "shrunk": 43}
    said = cautions(shares, here=True)
    assert "tested on only 60 rows" in said
    assert "43 training rows of bank (5.12%) stood out" in said
    shares.report["rows"] |= {"test": 240, "shrunk": 42}
    assert cautions(shares, here=True) == ""


# --- the shape of what the active party reports -------------------------------------------------------------------


def test_the_evaluation_that_a_party_writes_is_understood(shares: MadeUpShares) -> None:
    """The test compares OPENED, its stand-in in these tests, with the shape of the real evaluation."""
    labels = np.array([1.0] * 113 + [0.0] * 127)
    prepared = SimpleNamespace(rows=SimpleNamespace(labels=labels), plan=SimpleNamespace(test=np.arange(240)))
    opened = OpenedFigures(true_positives=91, positives=114, loss=120.0, auc_pairs=12_000.0, ks_pairs=9_000.0)
    evaluation = evaluation_of(opened, prepared, 0.5)  # type: ignore[arg-type]
    assert evaluation is not None
    assert evaluation.keys() == OPENED.keys()
    assert evaluation["confusion"] == OPENED["confusion"]
    shares.report["evaluation"] = evaluation
    found = facts_of(shares).evaluation
    assert found is not None
    assert found.classes is not None
    assert found.classes.auc == 12_000 / (113 * 127)
