"""`walr.init`: a job that shrinks towards a public model, and the files that it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blindfit import load_model
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from tests.processes.reading import error_line

NAMES = ("f0", "f1", "f2", "f3")
PUBLIC = Pretrained(Standardiser(NAMES, (0, 1, 2, 3), (0.5,) * 4, (2.0,) * 4), (3.0, -2.0, 0.5, 0.0), -0.25)
INIT = ("--set", "walr.init=public/pretrained.json")


@pytest.fixture
def pretrained(project):
    path = project.path("public/pretrained.json")
    path.parent.mkdir()
    path.write_text(PUBLIC.to_json())
    return path


def test_a_strong_l2_leaves_the_public_weights(project, pretrained):
    done = project.blindfit("run", "job.toml", "--out", "out", *INIT, "--set", "walr.l2=1e6")
    assert done.returncode == 0, done.stderr
    model = load_model(project.path("out/shop/model.json"))
    np.testing.assert_allclose(model.weights[:-1], PUBLIC.weights_for(model.standardiser)[:-1], atol=1e-5)


def test_the_check_names_the_file(project, pretrained):
    assert "towards the weights of public/pretrained.json" in " ".join(
        project.blindfit("check", "job.toml", *INIT).stdout.split()
    )


def changed(**fields):
    return json.dumps({**json.loads(PUBLIC.to_json()), **fields})


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "public/pretrained.json cannot be read: No such file or directory"),
        ("{", "public/pretrained.json is not JSON"),
        (changed(intercept=float("nan")), "public/pretrained.json: intercept: missing or not a finite number"),
        (PUBLIC.to_json().replace("f3", "age"), "has other features than the data: it lacks f3; only it has age"),
    ],
    ids=["missing", "not JSON", "NaN", "other features"],
)
def test_a_wrong_file_is_refused_before_anything_is_charged(project, pretrained, content, expected):
    pretrained.unlink()
    if content is not None:
        pretrained.write_text(content)
    refused = project.blindfit("run", "job.toml", "--out", "out", *INIT)
    assert refused.returncode == 1
    assert error_line(refused).endswith(expected)
    assert "shop" not in project.blindfit("ledger", "meter.toml").stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("walr.init=../pretrained.json",), "is not within the directory of the active party's file"),
        (("walr.init=/etc/hostname",), "is not within the directory of the active party's file"),
        (("walr.init=public/pretrained.json", "walr.l2=0.0"), "init does nothing with l2 = 0"),
    ],
)
def test_a_wrong_job_is_refused(project, pretrained, options, expected):
    settings = [part for option in options for part in ("--set", option)]
    refused = project.blindfit("run", "job.toml", "--out", "out", *settings)
    assert refused.returncode == 2
    assert expected in error_line(refused)
