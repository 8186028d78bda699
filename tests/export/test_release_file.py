"""A whole training, its release file, and changes to the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.messages import canonical_json
from blindfit.coordinator.cli import main as cli
from blindfit.coordinator.cli.main import app
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.export import export
from blindfit.coordinator.verify.refit import Refit, SentRows
from blindfit.coordinator.verify.results import Verified
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.identity import authority
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import FORMAT
from tests.export.tampering import Change, changes_noticed, flat, sealed_again
from tests.export.trained import shop_and_meter, train
from tests.world import World


@dataclass
class Trained:
    world: World
    first: Path  # the active party's directories, of two releases in this order
    second: Path

    def file(self, which: str = "first") -> bytes:
        return (getattr(self, which) / "release.json").read_bytes()

    def refit(self, which: str = "first", table: Path | None = None) -> Refit:
        sent = SentRows.read(getattr(self, which) / "training_rows.json")
        return Refit(str(table or self.world.path("features.csv")), "id", sent)

    def verify(self, encoded: bytes, refit: Refit | None = None) -> Verified:
        return checks.verify(encoded, self.world.authority, refit.checks if refit else None)

    def parts(self, which: str) -> dict[str, Any]:
        parts: dict[str, Any] = json.loads(self.file(which))["parts"]
        return parts


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    world = shop_and_meter(tmp_path_factory.mktemp("world"))
    return Trained(world, train(world), train(world, 'privacy.release="again"', "privacy.epsilon=0.5"))


def failed(verified: Verified) -> list[str]:
    """Return the names of the checks that fail, without the server's name."""
    return [re.split(": ", result.name.removeprefix("meter: "))[0] for result in verified.results if result.why]


ALL_CHECKS = 1 + len([*checks.CHECKS, *checks.SERVER_CHECKS, *checks.BELONGING, *checks.TOGETHER, *checks.INPUTS])


# --- what passes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["first", "second"])
def test_all_passes_and_the_model_is_fitted_again_bit_for_bit(trained: Trained, which: str) -> None:
    verified = trained.verify(trained.file(which), trained.refit(which))
    assert [(r.name, r.why) for r in verified.results if r.why] == []
    assert len(verified.results) == ALL_CHECKS + 2
    assert verified.results[-1].name.endswith("bit for bit")


def test_rows_of_persons_that_did_not_count_are_left_out_again(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path, person=True)
    directory = train(world)
    rows = json.loads((directory / "training_rows.json").read_text())
    assert rows["not_counted"]
    trained = Trained(world, directory, directory)
    assert failed(trained.verify(trained.file(), trained.refit())) == []


def test_a_stored_answer_is_exported_with_the_newest_receipt(trained: Trained) -> None:
    """The first question comes again after the second: the same entry, and a receipt that counts both releases."""
    again = train(trained.world)
    verified = trained.verify((again / "release.json").read_bytes())
    assert verified.passed
    (old,), (new,) = (
        trained.parts("first")["servers"],
        json.loads((again / "release.json").read_bytes())["parts"]["servers"],
    )
    assert new["entry"] == old["entry"]
    assert new["release"] == old["release"]
    assert any(r.name.startswith("meter: releases to the population: 2 in all") for r in verified.results)


def test_the_commands(trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x[" / "y].blindfit"  # a path is not markup
    out.parent.mkdir()
    export(trained.first.parent / trained.first.name, out)
    root = str(trained.world.root / "ca" / "authority.pem")
    features = [
        "--features",
        str(trained.world.path("features.csv")),
        "--rows",
        str(trained.first / "training_rows.json"),
    ]

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        try:
            status = int(app(["verify", *words], standalone_mode=False) or 0)
        except SystemExit as end:
            status = int(end.code or 0)
        except cli.typer.Exit as end:
            status = end.exit_code
        return status, capsys.readouterr().out

    status, told = run(str(out), "--authority", root, "--server", "meter", *features)
    assert (status, "FAILED" in told, "NOT COVERED" in told) == (0, False, False)
    assert told.count("passed  ") == ALL_CHECKS + 2
    status, told = run(str(out))
    assert (status, told.count("NOT COVERED  ")) == (0, 3)
    assert "NOT COVERED  authority: signatures are checked against the file's own authority" in told
    assert "NOT COVERED  names of the measurement servers: meter signs" in told
    assert "NOT COVERED  input: fit: nobody fitted the model again" in told
    assert "No check failed. 3 lines above, marked NOT COVERED, rest only on a party's word." in told
    assert told.count("SHA-256 ") == 3
    _, told = run(str(out), "--json")
    assert (json.loads(told)["passed"], json.loads(told)["covered"]) == (True, False)
    status, told = run(str(out), "--server", "metre")
    assert status == 1
    assert "FAILED  names of the measurement servers: meter signs, and not metre" in told
    out.write_bytes(out.read_bytes()[:-1])
    _, told = run(str(out))
    assert "FAILED  file: format and digests" in told
    with pytest.raises(ConfigError, match="go together"):
        run(str(out), "--features", "x.csv")


def test_what_does_not_pass_is_not_exported(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no release\.json"):
        export(tmp_path, tmp_path / "out")
    with pytest.raises(ConfigError, match="more than one"):
        export(trained.first.parent, tmp_path / "out")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "release.json").write_bytes(trained.file())
    (broken / "model.json").write_bytes((trained.second / "model.json").read_bytes())
    with pytest.raises(DataError, match=r"model\.json is not the model"):
        export(broken, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- every byte -------------------------------------------------------------------------------------------


def test_every_changed_byte_is_noticed(trained: Trained) -> None:
    assert changes_noticed(trained.file(), 400, seed=1) == 400


@pytest.mark.soak
def test_ten_thousand_changed_bytes_are_noticed(trained: Trained) -> None:
    assert changes_noticed(trained.file(), 10_000, seed=2) == 10_000


@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        b"\x80",
        b"[" * 100_000,
        b'{"format":NaN}\n',
        b'{"format":1e999}\n',
        b'{"format":' + b"9" * 5000 + b"}\n",
        b"[]\n",
        canonical_json({"format": FORMAT, "parts": {}, "seal": "", "sha256": {}}) + b"\n",
        canonical_json({"format": FORMAT, "parts": {"servers": 1}, "seal": "", "sha256": []}) + b"\n",
        canonical_json({"format": "another", "parts": {}, "seal": "", "sha256": {}}) + b"\n",
        b" " * (release_document.MOST_BYTES + 1),
    ],
)
def test_a_hostile_file_is_refused_in_a_line(hostile: bytes) -> None:
    (result,) = checks.verify(hostile).results
    assert result.why
    assert "\n" not in result.why
    assert len(result.why) < 300


def test_another_spelling_of_the_same_content_is_refused(trained: Trained) -> None:
    content = json.loads(trained.file())
    assert canonical_json(content) + b"\n" == trained.file()
    assert not checks.verify(json.dumps(content, indent=1).encode()).passed
    assert not checks.verify(trained.file().replace(b'{"format"', b'{"format":"x","format"', 1)).passed


# --- an active party that lies, and seals its lies ----------------------------------------------------------


def asked(name: str, value: Any, of: str = "asked") -> Callable[[Trained], Change]:
    def changed(_trained: Trained) -> Change:
        def change(parts: dict[str, Any]) -> None:
            release = parts["servers"][0]["release"]
            (release[of] if of else release)[name] = value

        return change

    return changed


def lowered(parts: dict[str, Any]) -> None:
    parts["servers"][0]["release"]["asked"]["epsilon"] = 0.5


def other_sum(parts: dict[str, Any]) -> None:
    parts["servers"][0]["release"]["sums"][0] += 1


def of_several_holders(parts: dict[str, Any]) -> None:
    parts["servers"][0]["release"]["asked"]["blocks"] = "bank"


def other_fitted(parts: dict[str, Any]) -> None:
    parts["sum"]["sums"][0] += 1


def no_sum_of_labels(parts: dict[str, Any]) -> None:
    parts["servers"][0]["release"]["sums"][0] = 2**60


def more_noise(parts: dict[str, Any]) -> None:
    parts["sum"]["epsilon_of_both"] = 0.5


def more_budget(parts: dict[str, Any]) -> None:
    parts["servers"][0]["release"]["answered"]["budget_epsilon"] = 9.0


def hidden(parts: dict[str, Any]) -> None:
    """Hide the first release, which the second one shows in its receipt."""
    for name in ("receipt", "newest_receipt"):
        statement = json.loads(parts["servers"][0][name]["statement"])
        assert len(statement["charges"]) == 2
        del statement["charges"][0]
        parts["servers"][0][name]["statement"] = json.dumps(statement, separators=(",", ":"))


def of_another(name: str) -> Callable[[Trained], Change]:
    def taken(trained: Trained) -> Change:
        first = trained.parts("first")
        if name in first:
            return lambda parts: parts.update({name: first[name]})
        return lambda parts: parts["servers"][0].update({name: first["servers"][0][name]})

    return taken


LIES: dict[str, tuple[Callable[[Trained], Change], str]] = {
    "epsilon": (lambda _: lowered, "charge is of this release"),
    "a server without a name": (asked("server", "", of=""), "names"),
    "a consumer whose name is none": (asked("consumer", 5, of=""), "names"),
    "a server with a long name": (asked("server", "x" * 257, of=""), "names"),
    "text that is none": (asked("dataset", "\ud800"), "names"),
    "sum": (lambda _: other_sum, "charge is of this release"),
    "budget": (lambda _: more_budget, "charge is of this release"),
    "hidden release": (lambda _: hidden, "signature of the receipt"),
    "entry of another release": (of_another("entry"), "ledger chain"),
    "receipt of another release": (of_another("receipt"), "ledger chain"),
    "older newest receipt": (of_another("newest_receipt"), "signature of the newest receipt"),
    "another release": (of_another("release"), "charge is of this release"),
    "all that the server gave": (of_another("servers"), "question"),
    "columns of others": (lambda _: of_several_holders, "servers"),
    "fitted to another sum": (lambda _: other_fitted, "noisy sum"),
    "no sum of labels": (lambda _: no_sum_of_labels, "range of the answer"),
    "noise of another server": (lambda _: more_noise, "epsilon"),
    "transcript of another": (of_another("transcript"), "transcript"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_sealed_lie_is_noticed(trained: Trained, lie: str) -> None:
    change, check = LIES[lie]
    if lie == "epsilon":  # epsilon of the first release, which was charged 1
        changed = sealed_again(trained.file("first"), trained.world.path("state/shop"), change(trained))
    else:
        changed = sealed_again(trained.file("second"), trained.world.path("state/shop"), change(trained))
    verified = trained.verify(changed)
    assert "signature of the seal" not in failed(verified)
    assert check in failed(verified)


@pytest.mark.parametrize("name", ["receipt", "newest_receipt", "entry", "authority"])
def test_a_part_that_is_gone_is_noticed(trained: Trained, name: str) -> None:
    content = json.loads(trained.file())
    of_server = content["parts"]["servers"][0]
    del (of_server if name in of_server else content["parts"])[name]
    content["sha256"] = release_document._digests(content["parts"])
    (result,) = checks.verify(canonical_json(content) + b"\n").results
    assert name in result.why


def test_digests_without_the_seal_are_not_enough(trained: Trained) -> None:
    content = json.loads(trained.file())
    content["parts"]["fit"]["iterations"] += 1
    content["sha256"] = release_document._digests(content["parts"])
    assert "signature of the seal" in failed(trained.verify(canonical_json(content) + b"\n"))


def test_the_model_of_another_run_is_not_fitted_again(trained: Trained) -> None:
    def other(parts: dict[str, Any]) -> None:
        parts["model"] = trained.parts("second")["model"]

    changed = sealed_again(trained.file(), trained.world.path("state/shop"), other)
    assert [r.name for r in trained.verify(changed, trained.refit()).results if r.why] == [
        "features: model fitted again"
    ]


# --- trust, features ----------------------------------------------------------------------------------------


def test_another_authority_is_noticed(trained: Trained, tmp_path: Path) -> None:
    authority.create_authority(tmp_path / "other", "test-authority")
    other = read_certificate(tmp_path / "other" / "authority.pem")
    assert failed(checks.verify(trained.file(), other)) == ["authority"]
    swapped = other.public_bytes(checks.key_proof.serialization.Encoding.DER).hex()
    lied = sealed_again(trained.file(), trained.world.path("state/shop"), lambda parts: parts.update(authority=swapped))
    assert failed(checks.verify(lied, other)) == ["key of the sealing party", "key of the measurement server"]


def test_a_changed_feature_is_noticed(trained: Trained, tmp_path: Path) -> None:
    sent = SentRows.read(trained.first / "training_rows.json")
    lines = trained.world.path("features.csv").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(f"{sent.ids[7]},"))
    row = lines[place].split(",")
    lines[place] = ",".join([*row[:2], str(float(row[2]) + 0.001), row[3]])
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    verified = trained.verify(trained.file(), trained.refit(table=tmp_path / "table.csv"))
    assert [r.name for r in verified.results if r.why] == ["features: hash of the rows", "features: model fitted again"]


def test_rows_that_another_training_sent_are_noticed(trained: Trained, tmp_path: Path) -> None:
    rows = json.loads((trained.first / "training_rows.json").read_text())
    rows["ids"][:2] = rows["ids"][1::-1]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    refit = Refit(str(trained.world.path("features.csv")), "id", SentRows.read(tmp_path / "rows.json"))
    assert "features" in failed(trained.verify(trained.file(), refit))
    (tmp_path / "rows.json").write_text(json.dumps({**rows, "not_counted": [-1]}))
    with pytest.raises(DataError, match=r"is not the training_rows\.json"):
        SentRows.read(tmp_path / "rows.json")


# --- contents of the file ------------------------------------------------------------------------------------


def test_no_id_row_or_salt_is_in_the_file(trained: Trained) -> None:
    text = trained.file().decode()
    sent = SentRows.read(trained.first / "training_rows.json")
    assert sent.salt.hex() not in text
    assert not [name for name in sent.ids if f'"{name}"' in text]
    assert str(trained.world.root) not in text


RANDOM = re.compile(
    r"/(authority|made/(time|session)|(servers/0/signer|party)/(key|certificate|key_signature)|servers/0/entry"
    r"|servers/0/((newest_)?receipt/(statement|signature)|release/(request_id|content_sha256|asked/snapshot|sums/\d+))"
    r"|sum/sums/\d+|fit/(iterations|converged)|model/(weights/\w+|intercept)|transcript/\d+/sha256)"
)


def test_two_worlds_that_differ_in_a_label_differ_in_what_is_random_or_released_alone(
    trained: Trained, tmp_path: Path
) -> None:
    other = shop_and_meter(tmp_path, flipped=9)
    theirs = flat(json.loads((train(other) / "release.json").read_bytes())["parts"])
    ours = flat(trained.parts("first"))
    assert ours.keys() == theirs.keys()
    differing = {path for path in ours if ours[path] != theirs[path]}
    assert {path for path in differing if not RANDOM.fullmatch(path)} == set()
    assert any(path.startswith("/servers/0/release/sums") for path in differing)
    for name in ("receipt", "newest_receipt"):  # the statement but for hashes
        own, others = (json.loads(world[f"/servers/0/{name}/statement"]) for world in (ours, theirs))
        assert {**own, "entry_hash": ""} == {**others, "entry_hash": ""}
    hashed = ("snapshot", "request_id", "content_sha256", "answer_sha256", "time", "hash")
    own, others = ({**json.loads(world["/servers/0/entry"]), **dict.fromkeys(hashed)} for world in (ours, theirs))
    assert own == others
