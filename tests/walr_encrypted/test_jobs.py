"""Whole jobs of a shop that hides its rows from a server: the sum, the charge, the permissions, each party's view."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError, PolicyRefused
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, encrypted_rows
from blindfit.algorithms.protocols.walr.encrypted_rows import EncryptedTally
from blindfit.coordinator.running.session import JobSession
from blindfit.coordinator.walr.statement import privacy_statement
from blindfit.parties.files.vault import ROW_KEY
from blindfit.parties.measurement import codec
from blindfit.parties.measurement.charging import ApprovedJob
from blindfit.parties.measurement.servers import Servers
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.measurement.trust import UNCHECKED_ROWS
from blindfit.parties.measurement.ways.encrypted_rows import check_is_allowed
from blindfit.parties.settings import PolicySettings
from tests.quick_keys import quick_keys
from tests.reports import write_report
from tests.walr.seats import request_for, rows_of
from tests.walr_encrypted.house import ALLOWED, house_in
from tests.walr_split.overhearing import overheard
from tests.walr_split.released import released, without_noise
from tests.world.split_labels import Split


@pytest.fixture
def house(tmp_path: Path, insecure_test_key: PrivateKey) -> Split:
    return house_in(tmp_path, insecure_test_key)


@pytest.fixture(autouse=True, scope="module")
def _quick_keys() -> Iterator[None]:
    with quick_keys():
        yield


def test_the_sum_is_that_of_a_trusted_server(
    tmp_path: Path, real_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key has full size."""
    house = house_in(tmp_path, real_key)
    without_noise(monkeypatch)
    sums = released(monkeypatch)
    hidden = house.run(job="hidden.toml")
    trusted = house.run(job="trusted.toml")
    assert sums[0].sums.tolist() == sums[1].sums.tolist()
    assert sums[0].noise_std == sums[1].noise_std
    weights = [house.written("shop", session) for session in (hidden, trusted)]
    assert weights[0]["weights"] == weights[1]["weights"]
    assert len(house.ledger("whole")) == 2  # another request


def test_a_persons_rows_are_counted_as_ever(
    tmp_path: Path, insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = Split(tmp_path, persons=True)
    house.write_party("whole", **ALLOWED)
    without_noise(monkeypatch)
    sums = released(monkeypatch)
    house.run(job="hidden.toml")
    house.run(job="trusted.toml")
    assert sums[0].sums.tolist() == sums[1].sums.tolist()
    assert sums[0].rows_kept == sums[1].rows_kept < 90


def test_a_job_again_gets_the_remembered_answer_for_nothing(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds although the rows would be encrypted again."""
    sums = released(monkeypatch)
    house.run(job="hidden.toml")
    house.run(job="hidden.toml")
    assert sums[0].sums.tolist() == sums[1].sums.tolist()
    assert len(house.ledger("whole")) == 1


def test_who_lost_the_key_pays_again(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remembered answer is under the old key."""
    sums = released(monkeypatch)
    house.run(job="hidden.toml")
    (house.root / "state/shop" / ROW_KEY).unlink()
    house.run(job="hidden.toml")
    assert sums[0].sums.tolist() != sums[1].sums.tolist()
    assert len(house.ledger("whole")) == 2


# --- who must allow it ----------------------------------------------------------------------------------------


def test_a_server_whose_policy_does_not_say_so_refuses(house: Split) -> None:
    house.write_party("whole")
    with pytest.raises(PolicyRefused, match="unchecked-rows"):
        house.run(job="hidden.toml")
    assert not (house.root / "state/whole/party.sqlite").exists() or len(house.ledger("whole")) == 0


def asking(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Change the requests, as an active party does whose request differs from its job."""
    made = Servers.requests

    def changed(self: Servers, *args: Any) -> list[AggregateOpen]:
        return [replace(request, **changes) for request in made(self, *args)]

    monkeypatch.setattr(Servers, "requests", changed)


def test_a_consumer_that_encrypts_rows_in_a_job_that_does_not_say_so_is_refused(
    house: Split, monkeypatch: pytest.MonkeyPatch, insecure_test_key: PrivateKey
) -> None:
    house.write_party("whole")
    key = insecure_test_key.public_key
    asking(monkeypatch, key=key.fingerprint, public_key=key.to_bytes(), slot_bits=60, content_salt=b"")
    with pytest.raises(BlindfitError, match="unchecked-rows"):
        house.run(job="trusted.toml")
    assert len(house.ledger("whole")) == 0


@pytest.mark.parametrize(
    ("policy", "job_says", "allowed"),
    [
        ({"approve": "ask"}, (), False),
        ({"approve": "ask"}, (UNCHECKED_ROWS,), True),
        ({}, (UNCHECKED_ROWS,), False),
        ({"unsafe": [UNCHECKED_ROWS]}, (), True),
    ],
)
def test_a_request_is_held_against_the_policy_or_what_the_operator_saw(
    policy: dict[str, Any], job_says: tuple[str, ...], allowed: bool, insecure_test_key: PrivateKey
) -> None:
    job = ApprovedJob("rows", 1.0, 1e-5, job_says)

    def refuse(field: str, reason: str) -> None:
        raise PolicyRefused(party="whole", field=field, reason=reason)

    service: Any = SimpleNamespace(
        policy=PolicySettings(**policy), approved_job=lambda _session, _consumer: job, refuse=refuse
    )
    request = encrypted_rows.step_1_open(request_for(rows_of()), insecure_test_key.public_key)
    with contextlib.nullcontext() if allowed else pytest.raises(PolicyRefused, match=r"does not hide|unchecked-rows"):
        check_is_allowed(service, request, "shop")


def test_servers_of_shares_sum_no_hidden_rows(
    house: Split, monkeypatch: pytest.MonkeyPatch, insecure_test_key: PrivateKey
) -> None:
    for name in ("east", "west"):
        house.write_party(name, **ALLOWED)
    key = insecure_test_key.public_key
    asking(monkeypatch, key=key.fingerprint, public_key=key.to_bytes(), slot_bits=70, content_salt=b"")
    with pytest.raises(BlindfitError, match="sum rows that they can read"):
        house.run()
    assert house.charges() == [0, 0]


def test_the_consumer_needs_no_flag_and_a_flag_in_vain_is_refused(house: Split) -> None:
    house.write_party("shop", **ALLOWED)
    with pytest.raises(ConfigError, match=r"policy\.unsafe"):
        house.run(job="hidden.toml")


# --- what each sees ----------------------------------------------------------------------------------------------


def test_the_server_gets_no_feature_no_salt_and_no_sum(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test searches every octet that the server gets, and all that it keeps."""
    seen = overheard(monkeypatch)
    sums = released(monkeypatch)
    asked: list[Any] = []
    make = Servers.requests

    def remembered(self: Servers, rows: Any, *args: Any) -> Any:
        asked.append(rows)
        return make(self, rows, *args)

    monkeypatch.setattr(Servers, "requests", remembered)
    house.run(job="hidden.toml")
    got, kept = b"".join(seen), kept_by(house, "whole")
    for row in asked[0].weights[:20]:
        assert row.tobytes() not in got + kept  # the encoding of rows of 16 bits or 32
        assert row.astype("<i4").tobytes() not in got + kept
    assert not any(text in kept for text in spellings(sums[0].sums))
    # a server that reads rows has the sum, and keeps it to answer the same question again
    house.run(job="trusted.toml")
    assert any(text in kept_by(house, "whole") for text in spellings(sums[1].sums))


def kept_by(house: Split, party: str) -> bytes:
    return b"".join(path.read_bytes() for path in (house.root / "state" / party).rglob("*") if path.is_file())


def spellings(sums: np.ndarray) -> list[bytes]:
    """Return the spellings of all sums together: one sum has five digits, which occur somewhere by chance."""
    octets = [sums.astype(kind).tobytes() for kind in ("<i8", ">i8")] + [b"".join(map(varint, sums.tolist()))]
    return octets + [mark.join(map(str, sums.tolist())).encode() for mark in (",", ", ")]


def varint(number: int) -> bytes:
    """Encode a sint64 of protobuf, as a kept answer has it."""
    left = number << 1 if number >= 0 else -2 * number - 1
    octets = bytearray()
    while left > 127:
        octets.append(left & 127 | 128)
        left >>= 7
    return bytes([*octets, left])


def test_the_same_row_twice_looks_different_each_time(house: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are equal, and the server sees as many different ciphertexts as rows."""
    header, *lines = (house.root / "features.csv").read_text().splitlines()
    same = [line.split(",")[0] + ",1.5,2.5" for line in lines]
    (house.root / "features.csv").write_text("\n".join([header, *same]) + "\n")
    widths: list[bytes] = []
    taken = EncryptedTally.add

    def noted(self: Any, batch: Any, join: Any, *, consumer: str) -> None:
        width = batch.rows.width_bytes
        widths.extend(batch.rows.data[i : i + width] for i in range(0, len(batch.rows.data), width))
        taken(self, batch, join, consumer=consumer)

    monkeypatch.setattr(EncryptedTally, "add", noted)
    house.run(job="hidden.toml")
    assert len(set(widths)) == len(widths) >= 90


@pytest.mark.parametrize("flipped", [0, 17])
def test_what_leaves_before_the_charge_is_the_same_for_neighbours(
    house: Split, monkeypatch: pytest.MonkeyPatch, flipped: int
) -> None:
    """One label changes: the request, the counts and the number of octets stay the same.

    Only the ciphertext of the sum differs, and fresh randomness changes it in any case."""
    answers: list[NoisySum] = []
    release = MeasurementService.release

    def noted(self: MeasurementService, *args: Any) -> NoisySum:
        answers.append(release(self, *args))
        return answers[-1]

    monkeypatch.setattr(MeasurementService, "release", noted)
    sums = released(monkeypatch)
    without_noise(monkeypatch)
    house.run(job="hidden.toml")
    labels = list(house.labels.values())
    labels[flipped] = 1 - labels[flipped]
    house.write_labels(labels)
    house.publish("whole")
    house.run(job="hidden.toml")
    one, other = answers
    assert len(one.ciphertexts) == len(other.ciphertexts)
    for name in ("noise_std", "sensitivity", "rows_kept", "rows_scaled", "event", "unit"):
        assert getattr(one, name) == getattr(other, name)
    assert np.abs(sums[0].sums - sums[1].sums).max() <= sums[0].sensitivity


# --- lies ----------------------------------------------------------------------------------------------------------


def test_an_answer_that_does_not_decrypt_within_reach_ends_the_job(
    house: Split, monkeypatch: pytest.MonkeyPatch, insecure_test_key: PrivateKey
) -> None:
    draft = walr.step_5_draft

    def drawn(*args: Any, **more: Any) -> walr.Draft:
        made = draft(*args, **more)
        key = insecure_test_key.public_key
        octets = pow(int.from_bytes(made.released.ciphertexts, "big"), 2**200, key.n**2)
        lie = octets.to_bytes(key.ciphertext_bytes, "big")
        return replace(made, released=replace(made.released, ciphertexts=lie))

    monkeypatch.setattr(walr, "step_5_draft", drawn)
    with pytest.raises(BlindfitError, match=r"whole|ciphertexts|shop"):
        house.run(job="hidden.toml")
    assert not list((house.root / "state/shop/models").rglob("model.json"))


def test_an_answer_whose_ciphertexts_were_changed_is_not_the_receipts(
    house: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    to_pb = codec.answer_to_pb

    def changed(message: NoisySum) -> Any:
        out = to_pb(message)
        if message.receipt:
            out.ciphertexts = message.ciphertexts[:-1] + bytes([message.ciphertexts[-1] ^ 1])
        return out

    monkeypatch.setattr(codec, "answer_to_pb", changed)
    with pytest.raises(BlindfitError, match="answer_sha256"):
        house.run(job="hidden.toml")


def test_a_damaged_key_ends_the_job_and_is_named_to_its_operator(
    house: Split, capfd: pytest.CaptureFixture[str]
) -> None:
    path = house.root / "state/shop" / ROW_KEY
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(BlindfitError, match="its operator knows why"):
        house.run(job="hidden.toml")
    assert ROW_KEY in "".join(capfd.readouterr())
    assert len(house.ledger("whole")) == 0


# --- what is said of it ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def job_done(tmp_path_factory: pytest.TempPathFactory, insecure_test_key: PrivateKey) -> tuple[Split, JobSession]:
    """A house and its job, which tests only read."""
    house = house_in(tmp_path_factory.mktemp("house"), insecure_test_key)
    return house, house.run(job="hidden.toml")


def test_the_report_says_that_nobody_checked_the_rows(job_done: tuple[Split, JobSession]) -> None:
    house, session = job_done
    made = write_report(session, house.root / "report", [])
    sections = {section.topic: " ".join(section.sentences) for section in privacy_statement(made.content)}
    assert "if it follows the protocol" in sections["trust"]
    assert "nobody checks it" in sections["mechanism"]
    assert "no feature" in sections["learnt-measurement"]
    assert "follows the protocol" in (house.root / "report" / "report.html").read_text()


def test_the_key_is_not_told_and_not_readable_by_others(house: Split, tmp_path: Path) -> None:
    (house.root / "state/shop" / ROW_KEY).unlink()
    session = house.run(job="hidden.toml")
    path = house.root / "state/shop" / ROW_KEY
    assert path.stat().st_mode & 0o077 == 0
    key = PrivateKey.from_bytes(path.read_bytes())
    told = json.dumps([vars(session).get("parties", ""), str(house.report(session))])
    for secret in (key.p, key.q):
        assert str(secret) not in told
        assert format(secret, "x") not in told
