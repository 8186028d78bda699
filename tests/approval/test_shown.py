"""An operator sees of a waiting job what is dangerous first, and everything that is not a default."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.console import Console

from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.gaussian import noise_multiplier
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.operator import deciding as operator
from blindfit.coordinator.operator.held import not_default, to_toml
from blindfit.coordinator.systems import VIEWS, view
from blindfit.coordinator.terminal.titles import with_title
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.dp_lr.settings import DPLRJob
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.label_dp.settings import LabelDPJob
from blindfit.parties.sessions.proposal import read_proposal
from blindfit.parties.settings import PartySettings
from blindfit.parties.store.database import Store
from blindfit.parties.store.sessions import SessionRow
from blindfit.parties.systems import SYSTEMS, read_proposed, system
from blindfit.parties.tables import Settings, validate
from blindfit.parties.taylor.settings import TaylorJob, UnsafeFlag
from blindfit.parties.walr.settings import WalrJob
from blindfit.parties.wire import codec
from blindfit.protos import control_pb2 as pb

CHARGED = {"url": "csv:loans.csv", "id": "id", "label": "label", "population": "people"}
DATASETS = {
    "active": {**CHARGED, "features": "rest"},
    "measurement": {**CHARGED, "active_parties": ["bank"]},
    "passive": {"url": "csv:letters.csv", "id": "id", "features": "rest"},
}
VERTICAL = {"bank": ("active", "loans"), "post": ("passive", "letters"), "notary": ("key-node", "")}
TWO = {"bank": ("active", "people"), "meter": ("measurement", "loans")}
PRIVATE_SHARES = FalconJob(
    privacy={"epsilon": 0.5},
    split={"test_fraction": 0.0},
    falcon={"validation_fraction": 0.0, "feature_bounds": ("*:-1:1",)},
)
Parties = dict[str, tuple[str, str]]


def party(name: str, role: str) -> PartySettings:
    values: dict[str, Any] = {
        "name": name,
        "role": role,
        "identity": {"certificate": "c", "key": "k", "authority": "a"},
        "peers": {"coordinator": {"role": "coordinator"}, "bank": {"role": "active"}},
        "policy": {"approve": "ask", "systems": list(SYSTEMS)},
        "datasets": {} if role == "key-node" else {"loans": DATASETS[role]},
    }
    if role in ("active", "measurement"):
        values["populations"] = {"people": {"epsilon": 4.0, "delta": 1e-5}}
    return validate(values, PartySettings, source="the test")


def held(directory: Path, name: str, parties: Parties, job: JobParameters, charged: float = 0.0) -> str:
    """Return what the operator of that party sees."""
    settings = party(name, parties[name][0])
    store = Store(directory / "state" / "party.sqlite")
    members = [pb.Member(name=n, role=role, address="a:1", dataset=data) for n, (role, data) in parties.items()]
    asked = pb.Proposal(session="monday", protocol=job.protocol, members=members)
    asked.parameters.CopyFrom(codec.parameters_to_pb(job.to_parameters()))
    digest = read_proposal(asked, "coordinator", read_proposed).digest
    with store.transaction() as transaction:
        row = SessionRow("monday", job.protocol, "coordinator", digest, "HELD", "now", asked.SerializeToString())
        transaction.add_session(row)
        if charged:
            transaction.add_entry(entry(charged))
    store.close()
    console = Console(file=io.StringIO(), width=400)
    operator.list_held(settings, directory / "my party.toml").show(console)
    assert console.file.getvalue().rstrip().endswith(f"blindfit approve '{directory}/my party.toml' monday {digest}")
    return console.file.getvalue()


def entry(epsilon: float) -> book.LedgerEntry:
    event = ReleaseEvent("gaussian", noise_multiplier("analytic", epsilon, 1e-5), UNITS["row"][1])
    return book.append(None, book.Charge("people", event, epsilon=epsilon, delta=1e-5), time="-")


# --- flags ---------------------------------------------------------------------------------------------


def test_unsafe_flags_come_first_and_glare(tmp_path: Path) -> None:
    job = TaylorJob(taylor={"unsafe": ["no-jitter", "leverage"], "jitter": 0.0})
    shown = held(tmp_path, "post", VERTICAL, job)
    lines = shown.splitlines()
    assert lines[0].startswith(f"monday: {with_title('taylor')}, proposed by coordinator, now")
    assert lines[1].split(maxsplit=2)[:2] == ["UNSAFE", "no-jitter"]
    assert "a few batches can reveal every label" in lines[1]
    assert lines[2].split(maxsplit=2)[:2] == ["UNSAFE", "leverage"]
    assert lines[-3].endswith("this is UNSAFE ")
    assert 'taylor.unsafe = ["no-jitter", "leverage"]' in shown
    assert "taylor.jitter = 0.0" in shown


def test_a_job_without_a_flag_is_not_called_unsafe(tmp_path: Path) -> None:
    assert "UNSAFE" not in held(tmp_path, "notary", VERTICAL, TaylorJob())


def test_every_flag_of_every_system_has_words() -> None:
    assert set(SYSTEMS) <= set(VIEWS)
    for name in SYSTEMS:
        assert set(view(name).given_up) == system(name).unsafe
    assert system("taylor").unsafe == set(get_args(UnsafeFlag))


# --- who and what it costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("privacy", [{}, {"privacy": {"epsilon": 0.5}}], ids=["counted", "epsilon"])
def test_an_operator_reads_whom_the_bits_of_a_training_hold_against(privacy: dict[str, Any], tmp_path: Path) -> None:
    shown = " ".join(held(tmp_path, "bank", VERTICAL, TaylorJob(**privacy)).split())
    assert "hold" in shown
    assert "against passive parties that follow the protocol" in shown
    assert 'protocol = "falcon" with MACs' in shown


def test_a_dataset_that_is_gone_since_the_job_was_proposed(tmp_path: Path) -> None:
    shown = held(tmp_path, "bank", {"bank": ("active", "gone")}, DPLRJob(privacy={"epsilon": 0.5}))
    assert "there is no dataset named gone any more: the job will fail" in shown


def test_who_takes_part_with_what(tmp_path: Path) -> None:
    lines = held(tmp_path, "post", VERTICAL, TaylorJob()).splitlines()
    rows = [line.replace("│", " ").split() for line in lines if line.startswith("│")]
    assert rows == [
        ["bank", "active", '"loans"'],
        ["post", "(here)", "passive", '"letters"'],
        ["notary", "key-node", "-"],
    ]


@pytest.mark.parametrize(
    ("name", "parties", "job", "said"),
    [
        ("meter", TWO, WalrJob(privacy={"epsilon": 0.5}), "epsilon 0.5, delta 1e-05"),
        ("meter", TWO, LabelDPJob(privacy={"epsilon": 0.5}), "epsilon 0.5, delta 0"),
        ("bank", VERTICAL, TaylorJob(privacy={"epsilon": 0.5, "delta": 1e-6}), "epsilon 0.5, delta 1e-06"),
        ("bank", {"bank": ("active", "loans")}, DPLRJob(privacy={"epsilon": 0.5}), "epsilon 0.5, delta 1e-05"),
        ("bank", VERTICAL, PRIVATE_SHARES, "epsilon 0.5, delta 1e-05"),
    ],
)
def test_the_budget_that_is_charged(tmp_path: Path, name: str, parties: Parties, job: JobParameters, said: str) -> None:
    shown = held(tmp_path, name, parties, job, charged=1.5)
    assert said in shown.splitlines()
    budget = "charged here, to the population people: of epsilon 4 at delta 1e-05, 1.5 is spent and 2.5 is left"
    assert budget in shown.splitlines()


@pytest.mark.parametrize("trust", ["two-servers", "shared-rows"])
@pytest.mark.parametrize("order", [("north", "south"), ("south", "north")])
def test_both_measurement_servers_are_told_that_they_pay(tmp_path: Path, order: tuple[str, str], trust: str) -> None:
    """The proposer may name them in any order."""
    keys = {"notary": ("key-node", "")} if trust == "shared-rows" else {}
    parties = {"bank": ("active", "people"), **dict.fromkeys(order, ("measurement", "loans")), **keys}
    job = WalrJob(privacy={"epsilon": 0.5}, walr={"trust": trust})
    for name in order:
        shown = held(tmp_path / name, name, parties, job)
        assert "charged here, to the population people" in shown
        assert "nothing is charged here" not in shown
    assert f"charged to a budget of {order[0]} and {order[1]};" in held(tmp_path / "bank", "bank", parties, job)


@pytest.mark.parametrize(
    ("name", "parties", "job", "said"),
    [
        ("post", VERTICAL, TaylorJob(privacy={"epsilon": 0.5}), "charged to a budget of bank; nothing is charged here"),
        ("bank", TWO, WalrJob(privacy={"epsilon": 0.5}), "charged to a budget of meter; nothing is charged here"),
        ("bank", VERTICAL, TaylorJob(), "no budget is charged"),
        ("post", VERTICAL, PRIVATE_SHARES, "there is no dataset named letters any more: the job will fail"),
        ("notary", VERTICAL, PRIVATE_SHARES, "charged to a budget of bank and post; nothing is charged here"),
    ],
)
def test_a_party_that_pays_nothing(tmp_path: Path, name: str, parties: Parties, job: JobParameters, said: str) -> None:
    lines = held(tmp_path, name, parties, job).splitlines()
    assert said in lines
    assert ("no differential privacy" in lines) == (not job.epsilon)


def test_a_dataset_without_a_budget_is_said_to_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {name: value for name, value in CHARGED.items() if name != "population"}
    with_budget = party("bank", "active").datasets["loans"]
    given = {"loans": PartyDatasetSettings.model_validate(free), "charged": with_budget}
    plain = party("bank", "active").model_copy(update={"datasets": given})
    monkeypatch.setattr(f"{__name__}.party", lambda *_: plain)
    shown = held(tmp_path, "bank", VERTICAL, TaylorJob(privacy={"epsilon": 0.5}))
    assert "datasets.loans has no population, and so no budget: the job will fail" in shown.splitlines()


# --- the rest ------------------------------------------------------------------------------------------


def test_every_parameter_that_is_not_its_default(tmp_path: Path) -> None:
    job = TaylorJob(
        seed=7,
        align={"method": "linkage", "fields": ("last_name", "birth_date:date"), "min_common": 2},
        taylor={"epochs": 3, "gradient_noise": 0.5, "intercept": False},
        timeouts={"approval_s": 60},
    )
    lines = [
        line.strip() for line in held(tmp_path, "post", VERTICAL, job).splitlines() if re.match(r"  [a-z_.]+ = ", line)
    ]
    assert set(lines) == {
        "timeouts.approval_s = 60.0",
        "seed = 7",
        'align.method = "linkage"',
        'align.fields = ["last_name", "birth_date:date"]',
        "align.min_common = 2",
        "taylor.epochs = 3",
        "taylor.gradient_noise = 0.5",
        "taylor.intercept = false",
    }
    assert len(lines) == 8


def test_a_table_is_shown_as_in_a_job_file(tmp_path: Path) -> None:
    job = LabelDPJob(privacy={"epsilon": 0.5}, label_dp={"options": {"alpha": 2.0}})
    assert "label_dp.options = { alpha = 2.0 }" in held(tmp_path, "meter", TWO, job)
    assert to_toml({"a b": "\x7f", "c": [1]}) == '{ "a b" = "\\u007f", c = [1] }'


def changed(value: Any) -> Any:
    return not value if isinstance(value, bool) else value + 1 if isinstance(value, int | float) else f"{value}x"


@pytest.mark.parametrize("protocol", SYSTEMS)
def test_no_field_is_left_out(protocol: str) -> None:
    """Each field of each table is changed, even where the combination makes no sense."""
    job = system(protocol).job.model_construct()
    at_default = {name for name, _ in not_default("", job)}
    assert at_default == set()
    for name, field in type(job).model_fields.items():
        default = field.get_default(call_default_factory=True)
        inner = type(default).model_fields if isinstance(default, Settings) else ()
        for part in inner:
            table = default.model_copy(update={part: changed(getattr(default, part))})
            assert {n for n, _ in not_default("", job.model_copy(update={name: table}))} == {f"{name}.{part}"}
        if not inner:
            assert {n for n, _ in not_default("", job.model_copy(update={name: changed(default)}))} == {name}


def test_what_a_coordinator_writes_moves_no_cursor_and_makes_no_line(tmp_path: Path) -> None:
    bad = "x\x1b[2J\r\nno job waits\x7f\u202e[red]"
    job = LabelDPJob(privacy={"epsilon": 0.5, "release": bad})
    shown = held(tmp_path, "meter", {"bank": ("active", bad), "meter": TWO["meter"]}, job)
    assert (set(shown) - set("┏━┳┓┃┡╇┩│└┴┘─")) <= {chr(code) for code in range(128)}
    assert not set(shown) & {"\x1b", "\r", "\x7f"}
    assert not any(line.startswith("no job") for line in shown.splitlines())
    assert shown.count(r"x\u001b[2J\r\nno job waits\u007f\u202e[red]") == 2


@pytest.mark.parametrize(
    ("name", "parties", "job"), [("bank", VERTICAL, TaylorJob()), ("post", VERTICAL, PRIVATE_SHARES)]
)
def test_what_check_says_of_the_job_is_shown(tmp_path: Path, name: str, parties: Parties, job: JobParameters) -> None:
    members = {one: {"role": role, "dataset": data} for one, (role, data) in parties.items()}
    findings = list(view(job.protocol).leaks(Job({**job.to_tables(), "parties": members})))
    shown = " ".join(held(tmp_path, name, parties, job).split())
    assert findings
    assert all(" ".join(finding.text.split()) in shown for finding in findings)


def test_an_epsilon_that_promises_little_is_shown(tmp_path: Path) -> None:
    job = WalrJob(privacy={"epsilon": 6.0})
    assert "6 promises little" in " ".join(held(tmp_path, "bank", TWO, job).split())
