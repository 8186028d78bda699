"""The release file of an active party that holds some columns of a model, and changes to the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import DataError
from blindfit.algorithms.protocols.walr.blocks import Block, encode_blocks
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.export import export
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.coordinator.verify.results import Verified
from blindfit.parties.files.private_files import read_certificate
from tests.export.tampering import Change, changes_noticed, flat, odd_parts, sealed_again
from tests.export.two_servers import RANDOM
from tests.world.holders import COLUMNS, Holders

ALL_CHECKS = 1 + len([*checks.CHECKS, *checks.SERVER_CHECKS, *checks.BELONGING, *checks.TOGETHER, *checks.INPUTS])


@dataclass
class Trained:
    house: Holders
    directory: Path  # the active party's

    @property
    def file(self) -> bytes:
        return (self.directory / "release.json").read_bytes()

    @property
    def parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = json.loads(self.file)["parts"]
        return parts

    @property
    def refit(self) -> Refit:
        return Refit(str(self.house.root / "shop.csv"), "id", SentRows.read(self.directory / "training_rows.json"))

    def verify(self, encoded: bytes, refit: Refit | None = None) -> Verified:
        authority = read_certificate(self.house.root / "ca" / "authority.pem")
        return checks.verify(encoded, authority, refit.checks if refit else None)

    def lied(self, change: Change) -> dict[str, str]:
        changed = sealed_again(self.file, self.house.root / "state/shop", change)
        return {result.name: result.why for result in self.verify(changed).results if result.why}


def trained_in(house: Holders, *overrides: str) -> Trained:
    return Trained(house, house.root / "state/shop/models" / house.run(*overrides).id)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return trained_in(Holders(tmp_path_factory.mktemp("house")))


# --- what passes ------------------------------------------------------------------------------------------


def test_all_passes_but_that_nobody_fits_the_model_again(trained: Trained) -> None:
    verified = trained.verify(trained.file, trained.refit)
    assert [(r.name, r.why) for r in verified.results if r.why] == []
    assert len(verified.results) == ALL_CHECKS + 1
    lines = {result.name for result in verified.results}
    assert "noisy sum: 3 numbers, only of shop's columns, the answer" in lines
    assert "epsilon: 4 against shop and bank and chain together" in lines
    (fitted,) = [line for line in lines if line.startswith("model and fit")]
    assert "2 weights of shop's columns" in fitted
    (open_input,) = [r for r in verified.not_covered if r.name == "input: fit"]
    assert open_input.not_covered == "meter fitted the model: only shop states that these weights are the fit"
    assert not [line for line in lines if "fitted again" in line]
    assert any(re.fullmatch(r"features: hash of the rows: \d+ rows", line) for line in lines)


def test_it_is_exported_beside_the_part_of_the_model_that_it_is_of(trained: Trained, tmp_path: Path) -> None:
    out = tmp_path / "release.blindfit"
    export(trained.directory, out)
    assert trained.verify(out.read_bytes()).passed
    path = trained.directory / "model.json"
    kept = path.read_bytes()
    path.write_text(json.dumps({**json.loads(kept), "intercept": 3.0}))
    try:
        with pytest.raises(DataError, match=r"model\.json is not the model of"):
            export(trained.directory, tmp_path / "other.blindfit")
    finally:
        path.write_bytes(kept)
    assert not (tmp_path / "other.blindfit").exists()


def test_other_rows_are_not_those_that_were_sent(trained: Trained, tmp_path: Path) -> None:
    lines = (trained.house.root / "shop.csv").read_text().splitlines()
    other = [line.rsplit(",", 1)[0] + ",0.5" if number else line for number, line in enumerate(lines)]
    (tmp_path / "shop.csv").write_text("\n".join(other) + "\n")
    refit = Refit(str(tmp_path / "shop.csv"), "id", trained.refit.sent)
    failed = {r.name: r.why for r in trained.verify(trained.file, refit).results if r.why}
    assert failed == {"features: hash of the rows": "these rows and ids are not the ones that were sent"}


# --- changes to the file ----------------------------------------------------------------------------------


def test_every_changed_byte_is_noticed(trained: Trained) -> None:
    assert changes_noticed(trained.file, 100, seed=3) == 100


def test_whatever_is_sealed_is_refused_in_a_line(trained: Trained) -> None:
    odd_parts(trained.file, trained.house.root / "state/shop", 100, seed=7)


def blocks_changed(change: Callable[[list[Any]], object]) -> Change:
    def changed(parts: dict[str, Any]) -> None:
        asked = parts["servers"][0]["release"]["asked"]
        blocks = json.loads(asked["blocks"])["blocks"]
        change(blocks)
        asked["blocks"] = encode_blocks([Block(h, n, b, bytes.fromhex(s)) for h, n, b, s in blocks])

    return changed


def put(*path: str | int, value: Any) -> Change:
    def change(parts: Any) -> None:
        for step in path[:-1]:
            parts = parts[step]
        parts[path[-1]] = value

    return change


def model(**values: Any) -> Change:
    return lambda parts: parts["model"].update(values)


def another_column(parts: dict[str, Any]) -> None:
    stored = parts["model"]["standardiser"]
    stored["columns"].append("more")
    for name, value in (("mean", 0.0), ("std", 1.0)):
        stored[name]["more"] = value
    parts["model"]["weights"]["more"] = 0.5


def odd_block(number: str) -> Change:
    def change(parts: dict[str, Any]) -> None:
        parts["servers"][0]["release"]["asked"]["blocks"] = f'{{"blocks":[["bank",{number},1,""]]}}'

    return change


def one_sum_less(parts: dict[str, Any]) -> None:
    del parts["sum"]["sums"][-1], parts["servers"][0]["release"]["sums"][-1]


MADE = "the part of the model is not as a WALR training makes it"
LIES: dict[str, tuple[Change, str, str]] = {
    "another sum": (put("sum", "sums", 0, value=1), "noisy sum", "it is not what meter answered"),
    "a sum less": (one_sum_less, "noisy sum", "it does not have one number for each column"),
    "another own bound": (put("sum", "own_norm_bound", value=7), "question", "norm_bound: is not that of all blocks"),
    "no own bound": (put("sum", "own_norm_bound", value=None), "servers", "own_norm_bound"),
    "a holder less": (blocks_changed(lambda b: b.pop()), "question", "norm_bound: is not that of all blocks"),
    "another holder": (
        blocks_changed(lambda b: b[0].__setitem__(0, "branch")),
        "question",
        "meter answered another request, or a request of another draw",
    ),
    "a part of others": (
        model(data_parties=["shop", "bank"]),
        "model and fit",
        "the part of the model names other parties",
    ),
    "columns that were not there": (another_column, "model and fit", "the part of the model has other columns"),
    "another slope": (model(slope=100.0), "model and fit", MADE),
    "another kind": (model(model="linear", label_scale=9.0), "model and fit", MADE),
    "another bound of rows": (model(row_bound=1), "model and fit", MADE),
    "a number that is none": (odd_block("Infinity"), "question", "is not a list of blocks"),
    "a number that is too large": (odd_block("1e999"), "question", "is not a list of blocks"),
    "no intercept": (model(intercept=None), "model and fit", "other columns"),
    "l2 of another noise": (
        put("fit", "l2", value=0.5),
        "model and fit",
        "l2 does not follow from the settings and the noise",
    ),
    "a seed of its own": (
        put("fit", "batches_seed", value="0" * 64),
        "model and fit",
        "the server fitted the model, but the file describes a fit",
    ),
    "another trust": (
        put("fit", "settings", "trust", value="encrypted-rows"),
        "servers",
        "meter released a sum of several parties' columns",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_sealed_lie_is_noticed(trained: Trained, lie: str) -> None:
    change, check, why = LIES[lie]
    failed = trained.lied(change)
    assert check in failed, failed
    assert why in failed[check]
    assert "signature of the seal" not in failed


def test_one_partys_file_cannot_be_passed_off_as_of_several(trained: Trained, tmp_path: Path) -> None:
    house = trained.house.copied_to(tmp_path)
    alone = Trained(house, house.root / "state/shop/models" / house.run(job="alone.toml").id)
    assert alone.verify(alone.file).passed
    assert "own_norm_bound" in alone.lied(put("sum", "own_norm_bound", value=5))["servers"]
    failed = alone.lied(lambda parts: parts.update(model=trained.parts["model"]))
    assert "format" in failed["model and fit"]


def test_a_file_of_several_cannot_be_passed_off_as_one_partys(trained: Trained) -> None:
    def alone(parts: dict[str, Any]) -> None:
        parts["servers"][0]["release"]["asked"]["blocks"] = ""
        parts["sum"]["own_norm_bound"] = None

    assert "not one for each column" in trained.lied(alone)["servers"]


def test_the_job_again_gives_the_same_file(trained: Trained) -> None:
    """The server remembers the answer: nothing is charged or fitted."""
    again = trained_in(trained.house)
    assert again.directory != trained.directory
    assert again.verify(again.file, again.refit).passed
    for name in ("model", "sum", "fit"):
        assert again.parts[name] == trained.parts[name]
    assert again.parts["servers"][0]["entry"] == trained.parts["servers"][0]["entry"]


def test_l2_does_not_tell_how_many_columns_of_others_are_constant(tmp_path: Path) -> None:
    """Both runs have one norm bound, which the active party learns in any case."""
    l2 = []
    for constant in ((), ("bank", "chain")):
        root = tmp_path / f"{len(constant)}"
        root.mkdir()
        house = Holders(root)
        for name in constant:
            house.features[name][:, 1] = 5.0
            house.write_features(name)
            house.set("datasets.rows.models_per_row", 0, name)
        l2.append(trained_in(house, "walr.norm_bound=3.0").parts["fit"]["l2"])
    assert l2[0] == l2[1]


# --- contents of the file -----------------------------------------------------------------------------------


def test_nothing_of_other_columns_is_in_the_file_but_what_the_active_party_was_told(trained: Trained) -> None:
    parts = trained.parts
    assert list(parts["model"]["weights"]) == ["x", "z"]
    assert len(parts["servers"][0]["release"]["sums"]) == 3
    text = trained.file.decode()
    for holder in ("bank", "chain"):
        assert not [name for name in COLUMNS[holder] if re.search(rf'"{name}\\?"', text)]
        numbers = re.findall(r"-?\d+\.\d{6,}", (trained.house.root / f"{holder}.csv").read_text())
        assert len(numbers) > 1000
        assert not [number for number in numbers if number in text]
    assert not [name for name in trained.refit.sent.ids if f'"{name}"' in text]
    assert trained.refit.sent.not_counted is None


def test_two_worlds_that_differ_in_a_label_differ_in_what_is_random_or_released_alone(
    trained: Trained, tmp_path: Path
) -> None:
    labels = list(trained.house.labels or [])
    at = int(trained.house.common[0].removeprefix("row "))
    labels[at] = 1 - labels[at]
    other = trained_in(Holders(tmp_path, labels=labels))
    ours, theirs = flat(trained.parts), flat(other.parts)
    assert ours.keys() == theirs.keys()
    differing = {path for path in ours if ours[path] != theirs[path]}
    blocks = "/servers/0/release/asked/blocks"
    assert {path for path in differing - {blocks} if not RANDOM.fullmatch(path)} == set()
    assert [block[:3] for block in json.loads(ours[blocks])["blocks"]] == [
        block[:3] for block in json.loads(theirs[blocks])["blocks"]
    ]  # the hash is salted
    assert any(path.startswith("/servers/0/release/sums") for path in differing)
