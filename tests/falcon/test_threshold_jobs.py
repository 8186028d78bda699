"""Jobs on encrypted weights between real nodes: weights, the place of the key, resumed jobs, and refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, PolicyRefused
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.threshold import KeyShare, deal
from blindfit.algorithms.protocols.falcon import encrypted_descent, roles
from blindfit.coordinator.job.job import load_job
from blindfit.parties.falcon import key_node
from blindfit.parties.falcon.settings import FalconJob, FalconSettings
from tests.falcon.project import REPEATABLE
from tests.falcon.stopping import plain_descent, stopped_after, together
from tests.quick_keys import quick_keys
from tests.world import World
from tests.world.vertical import DATA_PARTIES, bank_and_shops_in_shares, weights

ENCRYPTED = 'falcon.backend="threshold"'


@pytest.fixture
def project(tmp_path: Path) -> World:
    return bank_and_shops_in_shares(tmp_path, rows=120, epochs=2)


# --- a whole job ------------------------------------------------------------------------------------------------------


@dataclass
class Dealt:
    """Keys and shares that the key node made and dealt."""

    keys: list[PrivateKey] = field(default_factory=list)
    shares: list[KeyShare] = field(default_factory=list)


@pytest.fixture
def dealt(real_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> Dealt:
    noted = Dealt()

    def made(bits: int) -> PrivateKey:
        assert bits == real_key.public_key.bits == 2048
        noted.keys.append(real_key)
        return real_key

    def dealing(key: PrivateKey, parties: int) -> tuple[KeyShare, ...]:
        shares = deal(key, parties)
        noted.shares += shares
        return shares

    monkeypatch.setattr(key_node, "generate_private_key", made)
    monkeypatch.setattr(roles, "deal", dealing)
    return noted


@pytest.fixture
def small_keys() -> Iterator[None]:
    with quick_keys():
        yield


def found_in(root: Path, numbers: Sequence[int]) -> set[int]:
    """Return the numbers that a file there has, as octets or as digits."""
    contents = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
    assert contents
    lowered = [content.lower() for content in contents]
    found = set()
    for number in map(int, numbers):
        octets = number.to_bytes(-(-number.bit_length() // 8), "big")
        digits = (str(number).encode(), format(number, "x").encode())
        if any(octets in c or octets[::-1] in c for c in contents) or any(d in c for d in digits for c in lowered):
            found.add(number)
    return found


def test_a_job_goes_on_to_the_weights_of_plain_descent_and_its_key_is_nowhere(project: World, dealt: Dealt) -> None:
    """A party that stopped has its own share of the key, until the training ends; the key node has none."""
    session = stopped_after(1, project, *REPEATABLE, ENCRYPTED)
    (key,) = dealt.keys
    assert [share.index for share in dealt.shares] == [0, 1, 2]
    exponents = [int(share.exponent) for share in dealt.shares]
    secrets = [int(key.p), int(key.q), *exponents]
    for place, name in enumerate(DATA_PARTIES):
        assert found_in(project.root / f"state/{name}", secrets) == {exponents[place]}
    assert (project.root / f"state/notary/checkpoints/{session}").exists()
    assert not found_in(project.root / "state/notary", secrets)
    resumed = project.run(*REPEATABLE, ENCRYPTED, f'falcon.resume="{session}"')
    assert len(dealt.keys) == 1
    found = together(weights(project, resumed.id))
    # Errors by the grid of features, 2^-12, and by encrypted weights (tests/falcon/test_threshold.py).
    assert np.abs(found - plain_descent(project.root, epochs=2)).max() < 5e-4
    assert not found_in(project.root / "state", secrets)


def test_weights_may_stay_shared_and_be_tested_there(project: World, small_keys: None) -> None:
    options = ("falcon.batch_rows=100", "split.test_fraction=0.5", "falcon.validation_fraction=0.1")
    session = project.run(ENCRYPTED, 'falcon.weights="shared"', *options)
    bank: Any = project.written("bank", session.id, "report.json")
    assert bank["evaluation"]["rows"] >= 50
    assert 0.5 < bank["evaluation"]["auc"] <= 1
    assert bank["weights"] == {"in_shares": True, "opened_bits": 0, "label_bits": 0.0}
    for name in ("bank", "shop-a", "shop-b", "notary"):
        assert not (project.root / f"state/{name}/checkpoints/{session.id}").exists()


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (['falcon.security="malicious"'], r"nothing checks the work on ciphertexts.*semi-honest"),
        (["falcon.model=linear", "falcon.schedule=constant"], r'model: "linear" takes backend = "shares"'),
        (["falcon.optimiser=momentum"], r'optimiser: "momentum" takes backend = "shares"'),
        (["falcon.l1=0.1"], r'l1: "0\.1" takes backend = "shares"'),
        (["falcon.class_weights=balanced"], r'class_weights: "balanced" takes backend = "shares"'),
        (["falcon.key_bits=1024"], "key_bits"),
        (
            [
                "privacy.epsilon=1",
                "falcon.validation_fraction=0",
                "split.test_fraction=0",
                'falcon.feature_bounds=["*:-3:3"]',
            ],
            r"falcon\.backend does not go with privacy\.epsilon",
        ),
    ],
)
def test_what_encrypted_weights_do_not_do_is_refused(project: World, overrides: list[str], said: str) -> None:
    with pytest.raises(BlindfitError, match=f"(?s){said}"):
        load_job(project.root / "job.toml", [ENCRYPTED, *overrides])


def test_a_key_of_a_size_does_nothing_where_all_is_in_shares(project: World) -> None:
    with pytest.raises(BlindfitError, match="key_bits does nothing with the other options, remove it"):
        load_job(project.root / "job.toml", ["falcon.key_bits=3072"])
    job = load_job(project.root / "job.toml", ["falcon.key_bits=3072", ENCRYPTED]).parameters
    assert isinstance(job, FalconJob)
    assert (job.falcon.key_bits, job.falcon.is_encrypted) == (3072, True)


@pytest.mark.parametrize(
    ("backend", "security", "macs"),
    [
        ("shares", "auto", True),
        ("shares", "malicious", True),
        ("shares", "semi-honest", False),
        ("threshold", "auto", False),
        ("threshold", "semi-honest", False),
    ],
)
def test_macs_are_where_all_is_in_shares(backend: str, security: str, macs: bool) -> None:
    assert FalconSettings.model_validate({"backend": backend, "security": security}).macs == macs


def test_more_residuals_than_their_masks_hide_are_refused(
    project: World, small_keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encrypted_descent, "MOST_VALUES", 200)
    with pytest.raises(
        PolicyRefused, match=r"falcon: \d+ residuals would become ciphertexts; masks hide only 200 well"
    ):
        project.run(ENCRYPTED, *REPEATABLE)
