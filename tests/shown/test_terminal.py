"""Texts of others reach a terminal as plain text: they move no cursor, clear nothing and begin no line."""

from __future__ import annotations

import datetime as dt
import io
import json
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from blindfit.algorithms.errors import HandshakeMismatch
from blindfit.algorithms.protocols import handshake
from blindfit.coordinator.job.job import read_job, to_toml
from blindfit.coordinator.operator import job_control
from blindfit.coordinator.preflight import findings
from blindfit.coordinator.preflight.parties import introduce
from blindfit.coordinator.terminal.terminal import Terminal, terminal
from blindfit.parties.sessions.session_log import keeper
from blindfit.parties.store.database import Store, stamp
from blindfit.parties.store.sessions import SessionRow
from blindfit.parties.work.ending import describe_error
from blindfit.protos import control_pb2
from tests.command import blindfit
from tests.falcon.configs import falcon_job

EVIL = "\x1b[2J\x1b[H\x1b]0;owned\x07\x9b2J\u202e"
CONTROLS = set(EVIL) - set("[2JH]0;owned")


@pytest.fixture
def console() -> Terminal:
    return Terminal(file=io.StringIO(), width=200, force_terminal=True, color_system=None)


def text_of(console: Terminal) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


# --- the console ------------------------------------------------------------------------------------------


def test_no_text_steers_it_however_it_is_printed(console: Terminal) -> None:
    table = Table("name")
    table.add_row(EVIL)
    for renderable in (EVIL, Text(f"a\n{EVIL}"), table):
        console.print(renderable)
    console.print(EVIL, markup=False, soft_wrap=True)
    assert not CONTROLS & set(text_of(console))
    assert text_of(console).count("owned") == 4


def test_a_path_is_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    terminal().print("nope:smile:.toml at localhost:abc:", highlight=False)
    assert capsys.readouterr().out == "nope:smile:.toml at localhost:abc:\n"


def test_what_rich_does_itself_is_left_alone(console: Terminal) -> None:
    with Progress(console=console, transient=True) as progress:
        progress.add_task("working", total=2)
    assert "\x1b[" in text_of(console)


# --- what commands print ----------------------------------------------------------------------------------


def test_a_party_that_says_who_it_is(console: Terminal) -> None:
    told = control_pb2.PartyDescription(role="x\n" + EVIL, version=EVIL)
    introduced = introduce("bank", told)
    refuses = findings.Finding("refuses", "bank", f"bank refuses the job: {EVIL}")
    assert not CONTROLS & set(introduced.text)
    console.print(findings.table_of([introduced, refuses, findings.Finding("ok", f"[/x]{EVIL}", f"a\n{EVIL}")]))
    assert not CONTROLS & set(text_of(console))
    assert len(text_of(console).splitlines()) == 3


def test_the_log_of_a_session(tmp_path: Path, console: Terminal) -> None:
    """A peer has one more parameter, whose name would print a separate line."""
    forged = f"{EVIL}\n2026-11-26 info session is done"
    mine = handshake.step_1_hello("walr", "active", {"proposer": "coordinator"}, {"a": 1}, "")
    theirs = handshake.step_1_hello("walr", "passive", {"proposer": "coordinator"}, {"a": 1, forged: 1}, "")
    with pytest.raises(HandshakeMismatch) as refused:
        handshake.step_2_compare(mine, theirs, peer="bank", peer_role="passive")
    assert not CONTROLS & set(str(refused.value))
    assert "\n" not in str(refused.value)
    store = Store(tmp_path / "state" / "party.sqlite")
    with store.transaction() as transaction:
        transaction.add_session(SessionRow("s1", "walr", "coordinator", "00", "FAILED", stamp()))
    event = {"event": "failed", "session": "s1", **describe_error(refused.value), "said": forged}
    keeper(tmp_path / "state")(structlog.get_logger(), "error", event)
    settings: Any = SimpleNamespace(name="shop", data_dir="state")
    job_control.find_log(settings, tmp_path, "s1").show(console)
    assert not CONTROLS & set(text_of(console))
    assert [line.startswith("    ") for line in text_of(console).splitlines()] == [False, True]


def test_a_job_of_the_falcon_code(tmp_path: Path) -> None:
    job = falcon_job(2)
    job["party_info"][1]["path"]["data_input"] = f"far/{EVIL}\nAdded"
    (tmp_path / "job.json").write_text(json.dumps(job))
    done = blindfit(tmp_path, "import-falcon", "job.json", "--out", "out")
    assert "owned" in done.stdout + done.stderr
    assert not CONTROLS & set(done.stdout + done.stderr)
    assert (done.stdout + done.stderr).splitlines().count("Added") <= 1


def test_a_certificate(tmp_path: Path) -> None:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, EVIL)])
    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(5).not_valid_before(now).not_valid_after(now + dt.timedelta(days=3))
    encoded = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (tmp_path / "c.pem").write_bytes(encoded)
    done = blindfit(tmp_path, "certs", "show", "c.pem")
    assert "owned" in done.stdout
    assert not CONTROLS & set(done.stdout)


JOB = """
protocol = "walr"
[privacy]
epsilon = 1.0
release = "\\u009b2Jx"
[parties.shop]
role = "active"
config = "shop.toml"
dataset = "\\u001b[2J\\u009b2Jd"
[parties.meter]
role = "measurement"
config = "meter.toml"
dataset = "prices"
"""
SHOP = """
name = "shop"
role = "active"
data_dir = "s"
identity = { certificate = "c", key = "k", authority = "a" }
peers = { coordinator = { role = "coordinator" }, meter = { role = "measurement" } }
datasets = { rows = { url = "csv:prices.csv", id = "id", features = "rest" } }
"""


@pytest.mark.parametrize("command", ["check", "run", "show"])
def test_a_job_file(tmp_path: Path, command: str) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "shop.toml").write_text(SHOP)
    (tmp_path / "meter.toml").write_text(SHOP.replace("shop", "meter"))
    done = blindfit(tmp_path, command, "job.toml")
    assert "2Jd" in done.stdout + done.stderr
    assert not CONTROLS & set(done.stdout + done.stderr)


def test_a_job_that_is_shown_is_the_same_job() -> None:
    job = tomllib.loads(JOB)
    text = to_toml(read_job(job))
    assert not CONTROLS & set(text)
    assert tomllib.loads(text)["privacy"]["release"] == job["privacy"]["release"]
    assert tomllib.loads(text)["parties"]["shop"]["dataset"] == job["parties"]["shop"]["dataset"]
