"""A label-dp job reports its mistakes in one line, before any party is asked."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from blindfit.algorithms.errors import ConfigError, MalformedMessage
from blindfit.algorithms.privacy.label_mechanisms import NAMES, LabelGrid, fit
from blindfit.algorithms.privacy.label_mechanisms.fitting import OPTIONS
from blindfit.algorithms.statistics.label_dp.options import REGRESSORS, RegressorName
from blindfit.coordinator.job.job import Job, read_job
from blindfit.parties.label_dp.consumer import mechanism_settings, settings_on
from blindfit.parties.label_dp.settings import CANNOT_DEBIAS, MECHANISM_OPTIONS, MechanismName
from blindfit.parties.systems import read_proposed
from blindfit.protos import measurement_pb2 as pb
from tests.each_case import each_case

PARTIES = {
    "insurer": {"role": "active", "dataset": "people"},
    "clinic": {"role": "measurement", "dataset": "visits"},
}
AN_OPTION = {
    "epsilon_prior": 0.2,
    "prior_mechanism": "laplace",
    "cell_width": 0.5,
    "half_width": 1.5,
    "optimal_for": "absolute",
    "rounding": 0.5,
    "output_cells": 24,
    "output_reach": 20.0,
}


def table(mechanism: str, **label_dp: Any) -> dict[str, Any]:
    """Return the smallest table of a job with this mechanism."""
    needed: dict[str, Any] = {"half_width": 1.0} if mechanism == "rp-banded" else {}
    needed |= {"debias": False} if mechanism in CANNOT_DEBIAS else {}
    return {"mechanism": mechanism, **needed, **label_dp}


def job(label_dp: dict[str, Any], privacy: dict[str, Any] | None = None, **others: Any) -> Job:
    content = {"protocol": "label-dp", "parties": PARTIES, "privacy": {"epsilon": 1.0, **(privacy or {})}}
    return read_job({**content, "label_dp": label_dp, **others}, "job.toml")


def test_the_lists_are_whole():
    assert get_args(MechanismName) == NAMES
    assert get_args(RegressorName) == tuple(REGRESSORS)
    assert AN_OPTION.keys() == set(MECHANISM_OPTIONS)


@pytest.mark.parametrize("mechanism", NAMES)
def test_every_mechanism_can_be_asked_for(mechanism):
    asked = job(table(mechanism)).parameters
    assert read_proposed(asked.to_parameters()) == asked
    settings = settings_on(LabelGrid(0, 8), asked, 0)
    fitted = fit(settings, [1.0, 2.0, 7.5] * 50, random.Random(1).randrange)
    assert fitted.mechanism.name == mechanism
    assert fitted.epsilon <= 1
    assert fitted.mechanism.can_debias == (mechanism not in CANNOT_DEBIAS)


@each_case("mechanism", NAMES)
@each_case("option", AN_OPTION)
def test_an_option_reaches_the_mechanism_or_is_refused(mechanism, option):
    asked = table(mechanism, **{option: AN_OPTION[option]})
    if option in OPTIONS[mechanism]:
        assert getattr(settings_on(LabelGrid(0, 8), job(asked).parameters, 0), option) == AN_OPTION[option]
    else:
        with pytest.raises(ConfigError, match=f'{option} does nothing with mechanism = "{mechanism}"'):
            job(asked)


@each_case(
    ("label_dp", "privacy", "expected"),
    [
        ({"mechanism": "cauchy"}, {}, "label_dp.mechanism: "),
        ({"mechanism": "rp-banded", "half_width": 1.0}, {}, "debias: rp-banded cannot be debiased; set debias = false"),
        ({"mechanism": "rr-on-bins"}, {}, "label_dp: debias: rr-on-bins cannot be debiased"),
        ({"mechanism": "laplace", "debias": False}, {}, "debias = false does nothing with mechanism = 'laplace'"),
        ({"mechanism": "rp-banded", "debias": False}, {}, "half_width is missing: rp-banded needs a number"),
        ({"half_width": -1.0}, {}, 'half_width must be "auto" or a number above 0'),
        ({"half_width": "wide"}, {}, "half_width"),
        ({"cell_width": 0.0}, {}, "label_dp.cell_width: "),
        ({"epsilon_prior": 1.0}, {}, "label_dp.epsilon_prior is a part of privacy.epsilon"),
        ({"regressor": "svm"}, {}, "label_dp.regressor: "),
        ({"options": {"alpha": -1}}, {}, "label_dp: options.alpha: must be from 0"),
        ({"options": {"beta": 1}}, {}, "label_dp: options.beta: ridge has alpha"),
        ({"mechansim": "laplace"}, {}, "did you mean mechanism?"),
        ({}, {"delta": 1e-6}, "privacy.delta does nothing with rp-with-prior, whose delta is 0"),
        ({}, {"epsilon": 40.0}, 'not 40.0: use 30 or less, or the mechanism "gaussian" up to 50'),
        ({}, {"epsilon": 0.5, "mechanism": "classic"}, "privacy.mechanism does nothing in a label-dp job"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(label_dp, privacy, expected):
    with pytest.raises(ConfigError) as error:
        job(label_dp, privacy)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_without_privacy_there_is_no_release():
    with pytest.raises(ConfigError, match=r"privacy.epsilon is missing: labels are released"):
        read_job({"protocol": "label-dp", "parties": PARTIES}, "job.toml")


def test_tables_of_other_protocols_are_refused():
    with pytest.raises(ConfigError, match=r"\[walr\] does nothing in a label-dp job"):
        job({}, walr={"l2": 0.5})
    walr = {"protocol": "walr", "parties": PARTIES, "privacy": {"epsilon": 1.0}, "label_dp": {"regressor": "linear"}}
    with pytest.raises(ConfigError, match=r"\[label_dp\] does nothing in a walr job"):
        read_job(walr, "job.toml")


def test_it_needs_an_active_party_and_a_measurement_server():
    with pytest.raises(ConfigError, match="exactly one active and exactly one measurement"):
        job({}, parties={"insurer": {"role": "active", "dataset": "people"}})


@pytest.mark.parametrize(("mechanism", "privacy"), [("laplace", {}), ("gaussian", {"delta": 1e-6})])
def test_the_rows_of_a_person_share_epsilon(mechanism, privacy):
    asked = job({"mechanism": mechanism}, {"epsilon": 1.2, **privacy}).parameters
    one, three = (settings_on(LabelGrid(0, 8), asked, rows).epsilon for rows in (1, 3))
    assert one == pytest.approx(1.2)
    if mechanism == "laplace":
        assert three == pytest.approx(0.4)
    else:  # Gaussian releases compose by the root of their number
        assert 0.4 < three < 1.2 / 3**0.5 * 1.2


def described(**changes: Any) -> pb.DatasetDescription:
    return pb.DatasetDescription(
        **{"dataset": "visits", "label_kind": "number", "label_lo": 0, "label_hi": 8, **changes}
    )


def test_what_a_server_says_of_its_labels():
    settings = mechanism_settings(job({}).parameters, described(), server="clinic")
    assert settings.grid == LabelGrid(0, 8)
    with pytest.raises(ConfigError, match="the dataset visits of clinic has no labels that are numbers") as error:
        mechanism_settings(job({}).parameters, described(label_kind="binary"), server="clinic")
    assert error.value.hint == 'binary labels are released as an aggregate: set protocol = "walr"'


@each_case(("lo", "hi"), [(8, 0), (1, 1), (0, float("inf")), (float("nan"), 1)])
def test_a_server_whose_labels_have_no_range(lo, hi):
    with pytest.raises(MalformedMessage, match="clinic sent a malformed message: label range: "):
        mechanism_settings(job({}).parameters, described(label_lo=lo, label_hi=hi), server="clinic")


def test_the_job_of_the_documentation_is_one():
    text = (Path(__file__).parents[2] / "docs/guides/release_labels.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    shown = tomllib.loads(block)
    assert job(shown["label_dp"], shown["privacy"], split=shown["split"]).parameters.label_dp.options["max_depth"] == 5
