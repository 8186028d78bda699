"""The release files of two servers with shares, only of labels or of rows too, and changes to the files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import statement, two_servers
from blindfit.coordinator.cli import main as cli
from blindfit.coordinator.verify import checks
from blindfit.coordinator.verify.export import export
from blindfit.parties.walr.release_document import Message
from blindfit.parties.walr.release_file import transcript_of
from tests.export.tampering import Change, changes_noticed, flat, odd_parts
from tests.export.two_servers import RANDOM, Trained
from tests.world.split_labels import ROWS, SERVERS, Split

JOBS = {"two-servers": "job.toml", "shared-rows": "shares.toml"}
CHECKS_OF_TWO = (
    1
    + len([*checks.CHECKS, *checks.BELONGING, *checks.TOGETHER, *checks.INPUTS])
    + len(SERVERS) * len(checks.SERVER_CHECKS)
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Each person has four rows, and two of them count."""
    made = Trained(Split(tmp_path_factory.mktemp("house"), persons=True))
    for trust, job in JOBS.items():
        made.train(trust, job=job)
    made.train("half", "privacy.epsilon=0.5", job="job.toml")
    made.train("again", 'privacy.release="again"', job="job.toml")
    return made


# --- what passes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", JOBS)
def test_all_passes_and_the_model_is_fitted_again_bit_for_bit(trained: Trained, trust: str) -> None:
    refit = trained.refit(trust)
    assert refit.sent.not_counted
    verified = trained.verify(trained.file(trust), refit)
    assert [(r.name, r.why) for r in verified.results if r.why] == []
    assert len(verified.results) == CHECKS_OF_TWO + 2
    lines = {result.name for result in verified.results}
    for server in SERVERS:
        assert f"{server}: names: {server} to shop" in lines
    assert "question: the same at both servers" in lines
    assert "noisy sum: 3 numbers, both answers modulo 2^61 - 1" in lines
    assert "epsilon: 1 against shop with one server, 0.6841 against only shop" in lines
    assert "features: model fitted again: the same weights, bit for bit" in lines
    (of_rows,) = [line for line in lines if re.match(r"features: hash of the rows: \d+ rows", line)]
    assert ("no server could see" in of_rows) == (trust == "shared-rows")


@pytest.mark.parametrize("trust", JOBS)
def test_the_commands(trained: Trained, trust: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "release.blindfit"
    export(trained.directories[trust], out)
    root = trained.house.root
    rows = trained.directories[trust] / "training_rows.json"
    features = ["--features", str(root / "features.csv"), "--rows", str(rows)]
    capsys.readouterr()
    authority = str(root / "ca" / "authority.pem")
    servers = [word for name in SERVERS for word in ("--server", name)]
    cli.app(["verify", str(out), "--authority", authority, *servers, *features], standalone_mode=False)
    told = capsys.readouterr().out
    assert "FAILED" not in told
    hidden = int(trust == "shared-rows")  # no server saw the rows
    assert told.count("passed  ") == CHECKS_OF_TWO + 2 - hidden
    assert told.count("NOT COVERED  input: rows: rows came in shares") == hidden
    assert re.findall(r"certificate of (\w+): SHA-256 ", told) == ["authority", *SERVERS, "shop"]


def test_another_draw_is_another_question(trained: Trained) -> None:
    assert trained.verify(trained.file("again"), trained.refit("again")).passed
    ours, theirs = trained.parts("two-servers")["servers"], trained.parts("again")["servers"]
    assert [one["release"]["asked"] for one in ours] == [one["release"]["asked"] for one in theirs]
    assert [one["release"]["sums"] for one in ours] != [one["release"]["sums"] for one in theirs]


# --- changes to the file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", JOBS)
def test_every_changed_byte_is_noticed(trained: Trained, trust: str) -> None:
    assert changes_noticed(trained.file(trust), 100, seed=3) == 100


@pytest.mark.parametrize("trust", JOBS)
def test_whatever_is_sealed_is_refused_in_a_line(trained: Trained, trust: str) -> None:
    odd_parts(trained.file(trust), trained.house.root / "state/shop", 100, seed=6)


def consistent(parts: dict[str, Any]) -> None:
    """Make all that an active party itself states about the answers fit them."""
    stated = [statement.read(server["release"]) for server in parts["servers"]]
    request, answers = stated[0][0], [answer for _, answer, _ in stated]
    answer = answers[0]
    if len(answers) > 1:
        answer = two_servers.step_6_add(answers, request, servers=SERVERS)
    of_both = two_servers.epsilon_of_both(request) if len(answers) > 1 else None
    parts["sum"].update(sums=answer.sums.tolist(), noise_std=answer.noise_std, epsilon_of_both=of_both)
    messages: list[Message] = [message for one in stated for message in transcript_of(*one)]
    parts["transcript"] = [message.model_dump() for message in messages]


def first_of(trained: Trained, other: str) -> Change:
    """Return a change that puts another training's answer in the place of the first server's."""

    def change(parts: dict[str, Any]) -> None:
        parts["servers"][0] = trained.parts(other)["servers"][0]
        if other == "two-servers":  # otherwise no sum can be computed
            consistent(parts)

    return change


def twice(_trained: Trained, _other: str) -> Change:
    return lambda parts: parts["servers"].__setitem__(1, parts["servers"][0])


def one_key(_trained: Trained, _other: str) -> Change:
    def change(parts: dict[str, Any]) -> None:
        parts["servers"][1]["signer"]["key"] = parts["servers"][0]["signer"]["key"]

    return change


def huge(_trained: Trained, _other: str) -> Change:
    """Return a sum whose sign is unclear."""

    def change(parts: dict[str, Any]) -> None:
        noisiest = {"epsilon": walr.MIN_EPSILON, "delta": walr.MIN_DELTA}
        for server in parts["servers"]:
            server["release"]["asked"].update(noisiest, norm_bound=2**23, max_rows_per_person=2**8)

    return change


def one_left(_trained: Trained, trust: str) -> Change:
    def change(parts: dict[str, Any]) -> None:
        del parts["servers"][1]
        parts["fit"]["settings"]["trust"] = trust
        consistent(parts)

    return change


def exchanged(name: str) -> Callable[[Trained, str], Change]:
    def made(_trained: Trained, _other: str) -> Change:
        def change(parts: dict[str, Any]) -> None:
            one, other = parts["servers"]
            one[name], other[name] = other[name], one[name]

        return change

    return made


def moved(by: int) -> Callable[[Trained, str], Change]:
    """Change a number of one answer."""

    def made(_trained: Trained, _other: str) -> Change:
        def change(parts: dict[str, Any]) -> None:
            parts["servers"][1]["release"]["sums"][0] += by

        return change

    return made


def said(name: str, value: Any) -> Callable[[Trained, str], Change]:
    return lambda _trained, _other: lambda parts: parts["sum"].update({name: value})


LIES: list[tuple[Callable[[Trained, str], Change], str, str, str]] = [
    (first_of, "two-servers", "question", "east answered another request, or a request of another draw"),
    (first_of, "half", "question", "east and west answered different requests: epsilon differs"),
    (first_of, "shared-rows", "servers", 'east got another request than walr.trust = "two-servers" makes'),
    (twice, "", "servers", "east occurs twice"),
    (one_key, "", "servers", "both sign with one key"),
    (one_left, "two-servers", "servers", '"two-servers" needs 2 servers, and the file has 1'),
    (exchanged("receipt"), "", "west: signature of the receipt", "is not signed by its sender's receipt key"),
    (exchanged("newest_receipt"), "", "east: signature of the newest receipt", "is not signed by its sender"),
    (exchanged("entry"), "", "east: ledger chain", "the receipt is of another ledger entry"),
    (exchanged("signer"), "", "east: names", "names another server than the signer"),
    (exchanged("release"), "", "east: names", "names another server than the signer"),
    (moved(two_servers.P), "", "west: range of the answer", "are not from 0 to 2^61 - 2"),
    (huge, "", "west: range of the answer", "could pass half of 2^61 - 1"),
    (moved(1), "", "west: charge is of this release", "answer_sha256"),
    (said("sums", [1, 2, 3]), "", "noisy sum", "it is not what east and west answered"),
    (said("noise_std", 1.0), "", "noisy sum", "its noise is not that of east and west"),
    (said("epsilon_of_both", 0.6), "", "epsilon", "does not follow from both servers' noise"),
    (said("epsilon_of_both", None), "", "epsilon", "does not follow from both servers' noise"),
]


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_a_sealed_lie_is_noticed(trained: Trained, lie: int) -> None:
    change, other, check, why = LIES[lie]
    failed = trained.lied("again", change(trained, other))  # the charges are older than it
    assert why in failed.get(check, ""), failed
    if change in (first_of, twice, one_left):  # nothing is wrong with what each server says
        assert failed.keys() <= checks.BELONGING.keys()


@pytest.mark.parametrize(
    ("trust", "check", "why"),
    [
        ("two-servers", "east: range of the answer", "no labels give this sum"),
        ("shared-rows", "servers", 'east got another request than walr.trust = "trusted" makes'),
    ],
)
def test_one_answer_alone_is_not_taken_for_a_trusted_servers(
    trained: Trained, trust: str, check: str, why: str
) -> None:
    failed = trained.lied(trust, one_left(trained, "trusted"))
    assert why in failed[check]


# --- contents of the file ------------------------------------------------------------------------------------


def test_no_share_id_or_salt_is_in_the_file(trained: Trained) -> None:
    for trust in JOBS:
        text = trained.file(trust).decode()
        sent = trained.refit(trust).sent
        assert sent.salt.hex() not in text
        assert not [name for name in sent.ids if f'"{name}"' in text]
        shares = [str(share) for server in SERVERS for share in trained.house.shares(server).values()]
        assert len(shares) == 2 * ROWS
        assert not [share for share in shares if share in text]
        assert str(trained.house.root) not in text


@pytest.mark.parametrize("trust", JOBS)
def test_two_worlds_that_differ_in_a_label_differ_in_what_is_random_or_released_alone(
    trained: Trained, trust: str, other_world: Trained
) -> None:
    ours, theirs = flat(trained.parts(trust)), flat(other_world.parts(trust))
    assert ours.keys() == theirs.keys()
    differing = {path for path in ours if ours[path] != theirs[path]}
    assert {path for path in differing if not RANDOM.fullmatch(path)} == set()
    assert any(path.startswith("/servers/1/release/sums") for path in differing)


@pytest.fixture(scope="module")
def other_world(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    made = Trained(Split(tmp_path_factory.mktemp("other"), persons=True))
    labels = list(made.house.labels.values())
    made.house.write_labels([1 - labels[0], *labels[1:]])
    made.house.split()
    for trust, job in JOBS.items():
        made.train(trust, job=job)
    return made
