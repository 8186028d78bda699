"""A training by python-paillier and the same training by Blindfit's own arithmetic give one model and one loss."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.engines import engine_of
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.phe_engine import PheKernel
from blindfit.algorithms.paillier.randomisers import FullExponent
from blindfit.algorithms.paillier.vectors import encrypt
from blindfit.algorithms.protocols.taylor import DataSeat
from blindfit.coordinator.job.job import load_job, read_job, to_toml
from blindfit.parties.systems import read_proposed
from tests.paillier.tools import seeded
from tests.taylor.seats import Case, case_of
from tests.world import World
from tests.world.vertical import ROLES, bank_and_shops

CASES: dict[str, dict[str, Any]] = {
    "one passive party": {},
    "linear, two passive parties": {"model": "linear", "n_passive": 2},
    "mask": {"masked": True},
    "class weights": {"class_weights": True, "n_passive": 2},
    "mask and class weights": {"masked": True, "class_weights": True},
    "label DP": {"noise_std": 0.5, "kept_noise_std": 2.0, "jitter": 0.0, "hold_out_loss": False},
}


def reference_seat(case: Case, name: str) -> DataSeat:
    """Return a party whose every ciphertext is phe's; it draws other randomisers than its twin."""
    seat, place = case.seat(name), case.names.index(name)
    seat.randomisers = FullExponent(case.key.public_key, uniform=seeded(place))
    if case.mask is not None:
        seat.mask_enc = encrypt(Fixed(case.mask, 0), seat.randomisers, bound=1)
    return seat


@pytest.mark.parametrize("name", CASES)
def test_both_engines_give_the_same_bits(insecure_test_key: PrivateKey, name: str) -> None:
    own = case_of(insecure_test_key, epochs=2, **CASES[name])
    other = replace(own, key=engine_of("phe").adopt_private(insecure_test_key))
    ours, theirs = own.seats(), [reference_seat(other, party) for party in other.names]
    our_node, their_node = own.key_seat(), other.key_seat()
    assert own.run_locally(ours, our_node) == other.run_locally(theirs, their_node) == 2
    for one, twin in zip(ours, theirs, strict=True):
        assert one.optimiser.weights.tolist() == twin.optimiser.weights.tolist()
        assert np.abs(one.optimiser.weights).max() > 0
    assert our_node.patience.losses == their_node.patience.losses
    assert len(our_node.patience.losses) == (2 if own.parameters.hold_out_loss else 0)
    kernel = other.key.public_key.kernel
    assert isinstance(kernel, PheKernel)
    assert kernel.counts.products > own.key.public_key.bits  # that kernel computed


# --- the option ------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops(tmp_path, rows=ROWS, epochs=2)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ('paillier.engine="openssl"', "paillier.engine"),
        ("paillier.engine=3", "paillier.engine"),
        ("paillier.speed=3", "paillier.speed"),
    ],
)
def test_a_bad_value_is_one_line(project: World, override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        load_job(project.root / "job.toml", [override])
    assert len(str(refused.value).splitlines()) == 1


def test_the_option_is_shown_and_part_of_what_parties_agree_on(project: World) -> None:
    jobs = [load_job(project.root / "job.toml", given) for given in ([], ['paillier.engine="phe"'])]
    assert [job.parameters.to_parameters()["paillier.engine"] for job in jobs] == ["blindfit", "phe"]
    assert '[paillier]  # engine of the arithmetic on ciphertexts\nengine = "blindfit"' in to_toml(jobs[0])
    assert '[paillier]  # engine of the arithmetic on ciphertexts\nengine = "phe"' in to_toml(jobs[1])
    again = read_proposed(jobs[1].parameters.to_parameters())
    assert again.paillier.engine == "phe"


def test_it_does_nothing_where_nothing_is_encrypted() -> None:
    with pytest.raises(ConfigError, match=r"\[paillier\] does nothing in a walr job"):
        read_job({"protocol": "walr", "privacy": {"epsilon": 1.0}, "paillier": {"engine": "phe"}})


# --- processes ------------------------------------------------------------------------------------------------

ROWS = 12  # each row takes phe some 30 ms for each party and epoch

# One batch of all rows, no jitter and no noise: then nothing depends on what a run draws at random.
REPEATABLE = (
    "split.test_fraction=0",
    "taylor.validation_fraction=0",
    f"taylor.batch_rows={ROWS}",
    f"align.min_common={ROWS}",
    "taylor.jitter=0",
    "taylor.gradient_noise=0",
    'taylor.unsafe=["no-jitter", "no-gradient-noise", "leverage", "label-bits"]',
)


def weights(project: World, out: str) -> np.ndarray:
    files = [project.root / out / name / "model.json" for name, role in ROLES.items() if role != "key-node"]
    parts = [json.loads(file.read_text()) for file in files]
    return np.concatenate([list(part["weights"].values()) for part in parts])


@pytest.mark.timeout(200)
def test_processes_train_the_same_model_with_a_key_of_full_size(project: World) -> None:
    """Each run sums the columns in another order, which moves their means by some 2^-53, so the models are not
    bit-equal.
    """
    for name in (name for name, role in ROLES.items() if role != "key-node"):
        project.edit(f"{name}.toml", "[policy]\n", f"[policy]\nmin_common = {ROWS}\n")
    for engine in ("blindfit", "phe"):
        finished = project.launch(*REPEATABLE, f'paillier.engine="{engine}"', out=engine)
        assert finished.returncode == 0, finished.stderr
        report = json.loads((project.root / engine / "bank" / "report.json").read_text())
        assert report["job"]["paillier.engine"] == engine
    ours, theirs = weights(project, "blindfit"), weights(project, "phe")
    assert np.abs(ours).max() > 0.01
    assert np.abs(ours - theirs).max() <= 1e-9


def test_a_party_without_phe_refuses_before_any_data(project: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "phe"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "phe", None)  # an import finds that it is missing
    with pytest.raises(BlindfitError) as refused:
        project.run('paillier.engine="phe"')
    assert "python-paillier is not installed" in str(refused.value)
    assert "pip install 'phe>=1.5'" in f"{refused.value} {refused.value.hint}"
    assert not list(project.root.rglob("transcript.jsonl"))  # no session began
