"""An attacker brings labels into a model by another input than the noisy sum: a start, a penalty, a role, a server."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc
import pytest

from blindfit import load_model, pretrain
from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.coordinator.verify.results import Verified
from blindfit.parties.dp_lr.rows import fit_public
from blindfit.parties.identity import authority
from tests.export.tampering import Change, sealed_again
from tests.export.trained import COLUMNS, shop_and_meter, train
from tests.world import World
from tests.world.files import toml_of, write_csv

NAMES = ("zeta", "b", "alpha")
HEAVY = "walr.l2=1000000.0"
STOLEN, PUBLIC, LAST = ("walr.init=stolen.json", "walr.init=public.json", "walr.init=last/model.json")


@dataclass
class Shop:
    world: World

    def verify(
        self, directory: Path, *starts: Path, encoded: bytes = b"", servers: tuple[str, ...] = ("meter",)
    ) -> Verified:
        refit = Refit(str(self.world.path("features.csv")), "id", SentRows.read(directory / "training_rows.json"))
        encoded = encoded or (directory / "release.json").read_bytes()
        earlier = [(start / "release.json").read_bytes() for start in starts]
        return checks.verify(encoded, self.world.authority, refit.checks, servers=servers, starts=earlier)

    def labels(self) -> np.ndarray:
        return np.array(pc.read_csv(self.world.path("labels.csv"))["label"])

    def features(self) -> np.ndarray:
        table = pc.read_csv(self.world.path("features.csv"))
        return np.column_stack([table[name] for name in NAMES])


def uncovered(verified: Verified) -> dict[str, str]:
    """Return the lines that are not covered; no check fails."""
    assert [(result.name, result.why) for result in verified.results if result.why] == []
    return {result.name: result.not_covered for result in verified.not_covered}


def failed(verified: Verified) -> dict[str, str]:
    return {result.name: result.why for result in verified.results if result.why}


def with_archive(root: Path, **declared: Any) -> Shop:
    world = shop_and_meter(root)
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(60, COLUMNS))
    write_csv(
        world.path("archive.csv"),
        {"id": range(60), **dict(zip(NAMES, rows.T, strict=True)), "bought": (rows[:, 1] > 0).astype(int)},
    )
    about = {"url": "csv:archive.csv", "id": "id", "label": "bought", "features": "rest", **declared}
    with world.path("shop.toml").open("a") as file:
        file.write("\n" + toml_of({"datasets": {"archive": about}}))
    return Shop(world)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = with_archive(tmp_path_factory.mktemp("world"), public=True)
    world = shop.world
    fitted = pretrain(shop.features(), shop.labels(), columns=NAMES)
    world.path("stolen.json").write_text(fitted.to_json())
    world.path("public.json").write_text(fit_public(world.settings("shop"), world.root, "archive", None).to_json())
    return shop


# --- a start --------------------------------------------------------------------------------------------


def test_a_start_fitted_to_true_labels_does_not_pass_silently(shop: Shop) -> None:
    """The noise of epsilon 0.05 hides every label, and yet the model is the one of the true labels."""
    directory = train(shop.world, HEAVY, STOLEN, "privacy.epsilon=0.05")
    model, stolen = load_model(directory / "model.json"), pretrain(shop.features(), shop.labels(), columns=NAMES)
    scores, true = model.scores(shop.features()), stolen.scores(shop.features())
    assert np.corrcoef(scores, true)[0, 1] > 0.99  # the noise turns it by a thousandth or two
    assert uncovered(shop.verify(directory)) == {
        "input: penalty": "walr.l2 = 1e+06 was chosen, and no signature shows from what",
        "input: start": "4 weights of a model that no signature and no declaration covers: it may contain true labels",
    }


def test_a_start_that_its_owner_declares_public_is_covered(shop: Shop) -> None:
    directory = train(shop.world, PUBLIC)
    verified = shop.verify(directory)
    assert uncovered(verified) == {}
    line = "input: start: 4 weights fitted to the rows of archive, which its owner shop declares public"
    assert line in [result.name for result in verified.results]


@pytest.mark.parametrize("declared", ["none", "withdrawn", "another party's", "of another dataset"])
def test_only_the_owners_own_file_declares(shop: Shop, tmp_path: Path, declared: str) -> None:
    """A declaration in a pretrained.json is not enough."""
    world = shop.world.copied_to(tmp_path / "copy")
    content = json.loads(world.path("public.json").read_text())
    assert content["public"] == {"party": "shop", "dataset": "archive"}
    if declared == "none":
        del content["public"]
    elif declared == "withdrawn":
        world.edit("shop.toml", "public = true", "public = false")
    else:
        content["public"] |= {"party": "meter"} if declared == "another party's" else {"dataset": "rows"}
    world.path("public.json").write_text(json.dumps(content))
    assert list(uncovered(Shop(world).verify(train(world, PUBLIC)))) == ["input: start"]


def test_rows_that_nobody_declares_public_are_not_fitted(tmp_path: Path) -> None:
    shop = with_archive(tmp_path)
    with pytest.raises(ConfigError, match=r"datasets\.archive: shop does not declare these rows public"):
        fit_public(shop.world.settings("shop"), tmp_path, "archive", None)


# --- the model of an earlier release ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def again(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> tuple[Shop, Path, Path]:
    """A release, and a second one whose start is the model of the first."""
    world = shop.world.copied_to(tmp_path_factory.mktemp("again"))
    first = train(world)
    last = world.path("last")
    last.mkdir()
    for file in ("model.json", "release.json"):
        (last / file).write_bytes((first / file).read_bytes())
    return Shop(world), first, train(world, LAST, 'privacy.release="again"')


def test_a_start_of_the_same_ledger_is_covered_with_its_release_file(again: tuple[Shop, Path, Path]) -> None:
    shop, first, second = again
    open_lines = uncovered(shop.verify(second))
    assert list(open_lines) == ["input: start"]
    assert "give that file by --start" in open_lines["input: start"]
    verified = shop.verify(second, first)
    assert uncovered(verified) == {}
    (line,) = [result.name for result in verified.results if result.name.startswith("input: start")]
    assert re.fullmatch(r"input: start: the model of entry \d+ of the ledger of meter", line)


def test_a_start_whose_own_start_is_not_covered_is_not_covered(shop: Shop, tmp_path: Path) -> None:
    """One more training does not make true labels public."""
    world = shop.world.copied_to(tmp_path / "copy")
    first = train(world, HEAVY, STOLEN)
    world.path("last").mkdir()
    for file in ("model.json", "release.json"):
        world.path("last", file).write_bytes((first / file).read_bytes())
    second = train(world, LAST, 'privacy.release="again"')
    found = uncovered(Shop(world).verify(second, first))
    assert list(found) == ["input: start"]
    assert found["input: start"].endswith("whose inputs are not all covered: penalty, start")


def test_a_model_without_its_release_file_is_not_covered(again: tuple[Shop, Path, Path], tmp_path: Path) -> None:
    world = again[0].world.copied_to(tmp_path / "copy")
    world.path("last/release.json").unlink()
    found = uncovered(Shop(world).verify(train(world, LAST, 'privacy.release="third"')))
    assert "no signature and no declaration" in found["input: start"]


def put(**stated: Any) -> Change:
    return lambda parts: parts["fit"]["init"].update(stated)


def test_a_start_that_is_not_the_model_of_its_release_file_fails(again: tuple[Shop, Path, Path]) -> None:
    shop, first, second = again

    def verified(change: Change, start: bytes = b"") -> Verified:
        lied = sealed_again((second / "release.json").read_bytes(), shop.world.path("state/shop"), change)
        starts = [start or (first / "release.json").read_bytes()]
        return checks.verify(lied, shop.world.authority, servers=["meter"], starts=starts)

    weights = json.loads((second / "release.json").read_bytes())["parts"]["fit"]["init"]["weights"]
    nudged = failed(verified(put(weights=[weights[0] * (1 + 1e-6), *weights[1:]])))
    assert nudged == {"input: start": "it is not the model of the release file that it names"}
    shorter = failed(verified(put(weights=weights[1:])))
    assert shorter["model and fit"] == "the start has other columns than the model"
    assert failed(verified(put(public="archive"))) == {"input: start": "it names two origins, and can have only one"}
    broken = sealed_again(
        (first / "release.json").read_bytes(),
        shop.world.path("state/shop"),
        lambda parts: parts["sum"]["sums"].__setitem__(0, 1),
    )
    of_broken = failed(verified(put(release=hashlib.sha256(broken).hexdigest()), broken))
    assert of_broken["input: start"] == "its release file does not hold: noisy sum: it is not what meter answered"


def test_a_start_of_another_ledger_is_not_covered(again: tuple[Shop, Path, Path], tmp_path: Path) -> None:
    """The other ledger has a budget of its own, which the budget of this one does not bound."""
    shop, _, second = again
    other = shop_and_meter(tmp_path / "other", flipped=9)
    first = (train(other) / "release.json").read_bytes()
    change = put(release=hashlib.sha256(first).hexdigest())
    lied = sealed_again((second / "release.json").read_bytes(), shop.world.path("state/shop"), change)
    found = checks.verify(lied, servers=["meter"], starts=[first])
    assert failed(found) == {}
    of_start = {result.name: result.not_covered for result in found.not_covered}["input: start"]
    assert of_start == "it is the model of another release, signed by another key of meter"


# --- who signs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("party", "role", "expected"),
    [
        ("meter", None, "carries no role"),
        ("shop", None, "carries no role"),
        ("meter", "measurement", ""),
    ],
)
def test_a_certificate_without_a_role_is_named(tmp_path: Path, party: str, role: str | None, expected: str) -> None:
    world = shop_and_meter(tmp_path)
    certificates = tmp_path / "ca"
    authority.create_authority(certificates, "test-authority")
    authority.issue(certificates, party, ["localhost"], role=role)
    found = uncovered(Shop(world).verify(train(world)))
    line = {"meter": "meter: role of the measurement server", "shop": "role of the sealing party"}[party]
    assert list(found) == ([line] if expected else [])
    assert expected in found.get(line, "")


def test_a_party_does_not_start_in_another_role_than_its_certificates(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    authority.create_authority(tmp_path / "ca", "test-authority")
    authority.issue(tmp_path / "ca", "meter", ["localhost"], role="active")
    with pytest.raises(ConfigError, match=r"role = measurement, but the role in .* is active"):
        train(world)


# --- other inputs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["walr.max_iterations=3", 'walr.mu="clip"'], {"input: settings": "walr.mu = clip, walr.max_iterations = 3"}),
        (
            ['walr.solver="hybrid-minibatch"'],
            {
                "input: settings": "walr.solver = hybrid-minibatch",
                "input: seed": "only shop states that it drew the seed",
            },
        ),
        (["walr.norm_bound=3.0", "walr.intercept=false", "walr.frac_bits=20"], {}),
    ],
)
def test_what_a_job_chooses_is_named(shop: Shop, options: list[str], expected: dict[str, str]) -> None:
    found = uncovered(shop.verify(train(shop.world, *options)))
    assert found.keys() == expected.keys()
    assert all(found[name].startswith(text) for name, text in expected.items())
