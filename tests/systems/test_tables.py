"""The two tables of systems, and code that reads them and names no system."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.coordinator.explain.options import all_options
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.systems import VIEWS, view
from blindfit.parties.predict.settings import PredictJob
from blindfit.parties.settings import POLICY_OF_ALL, PolicySettings
from blindfit.parties.systems import SYSTEMS, load_model, load_party, party_class, read_proposed, system
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.walr.settings import WalrJob
from tests.each_case import each_case
from tests.world.vertical import bank_and_shops

ROOT = Path(__file__).parents[2]
JOBS = {
    "walr": WalrJob(privacy={"epsilon": 0.5}),
    "taylor": TaylorJob(),
    "predict": PredictJob(predict={"session": "s-1"}),
}
# Code that reads the tables. The command line has commands of one system, and a policy's default is a system's name.
GENERIC = (
    "parties/node.py",
    "parties/sessions",
    "parties/job",
    "parties/tables.py",
    "parties/wire",
    "coordinator/job/job.py",
    "coordinator/jobs/run.py",
    "coordinator/running/launcher.py",
    "coordinator/running/session.py",
    "coordinator/operator/ledger.py",
    "coordinator/jobs/check.py",
    "coordinator/preflight/parties.py",
    "coordinator/report/content.py",
    "coordinator/view.py",
    "coordinator/report/output.py",
    "coordinator/jobs/party_page.py",
)


def test_a_system_has_an_entry_in_each_table():
    assert list(SYSTEMS) == list(VIEWS)
    formats = [known for name in SYSTEMS for known in system(name).models()]
    assert len(formats) == len(set(formats))
    for name in SYSTEMS:
        chosen = system(name)
        assert chosen.job.model_fields["protocol"].default == name
        assert chosen.models() == {} or view(name).report is not None


@each_case("place", GENERIC)
def test_whoever_asks_the_tables_names_no_system(place):
    path = ROOT / place
    assert path.exists()
    for module in path.rglob("*.py") if path.is_dir() else [path]:
        texts = {n.value for n in ast.walk(ast.parse(module.read_text())) if isinstance(n, ast.Constant)}
        assert not texts & set(SYSTEMS), module


def test_the_default_policy_is_of_a_system():
    assert set(PolicySettings().systems) <= set(SYSTEMS)


def test_each_option_of_a_policy_is_of_all_systems_or_of_some_roles_in_some() -> None:
    """Otherwise a party file could not set the option, or the option would do nothing."""
    options = {option.path for option in all_options() if option.path.startswith("policy.")}
    of_some = {name for system_ in SYSTEMS for of_role in system(system_).options.values() for name in of_role}
    assert options == POLICY_OF_ALL | of_some - {"[scores]"}
    assert not POLICY_OF_ALL & of_some


def test_a_table_of_a_policy_is_named_as_its_system_and_read_by_its_class() -> None:
    policy = party_class(tuple(SYSTEMS)).model_fields["policy"].default
    assert {name: type(table) for name, table in policy.tables().items()} == {
        name: kind for name in SYSTEMS if (kind := system(name).policy) is not None
    }
    for table in policy.tables().values():
        assert policy.of(type(table)) is table
        assert PolicySettings().of(type(table)) == type(table)()  # no table: the defaults


# --- jobs --------------------------------------------------------------------------------------------


@each_case("job", JOBS.values(), ids=JOBS)
def test_parameters_go_out_in_the_order_of_a_job_file(job):
    names = list(dict.fromkeys(name.split(".")[0] for name in job.to_parameters()))
    order = ["protocol", "seed", "privacy", "split", "align", job.protocol, "paillier", "timeouts"]
    assert names == [name for name in order if name in names]
    assert read_proposed(job.to_parameters()) == job


@each_case(
    ("parameters", "words"),
    [
        ({}, "protocol is missing"),
        ({"protocol": 3}, "protocol is not a text"),
        ({"protocol": "x" * 10_000}, "is not one of walr"),
        ({"protocol.a": "walr"}, "protocol is not a text"),
        ({"protocol." + ".".join("a" * 20_000): 1}, "a name has more than 4 parts"),
        ({"protocol": "taylor", "taylor": 1, "taylor.epochs": 3}, "taylor.epochs is both a value and a table"),
        ({"protocol": "taylor", "taylor": 1}, "taylor: "),
        ({"protocol": "taylor", "walr.l2": 1.0}, "[walr] does nothing in a taylor job, remove it"),
        ({"protocol": "predict", "seed": 1, "predict.session": "s"}, "seed does nothing in a predict job, remove it"),
        ({"protocol": "taylor", "": 1}, " is not an option"),
    ],
)
def test_a_proposal_that_is_no_job_is_one_line(parameters, words):
    with pytest.raises(ConfigError) as refused:
        read_proposed(parameters)
    assert words in str(refused.value)
    assert len(str(refused.value)) < 300


def test_every_mistake_of_a_job_file_is_in_one_line():
    parties = {"bank": {"role": "active", "dataset": "loans", "datasett": "x"}}
    with pytest.raises(ConfigError) as refused:
        read_job(
            {"protocol": "taylor", "taylor": {"epochs": 0}, "parties": parties, "partys": {}, "epsilom": 1}, "job.toml"
        )
    said = str(refused.value)
    assert said.startswith("job.toml: ")
    assert "taylor.epochs" in said
    assert "partys is not an option; did you mean parties?" in said
    assert "epsilom is not an option; did you mean privacy.epsilon?" in said
    assert "datasett is not an option; did you mean dataset?" in said
    with pytest.raises(ConfigError, match=r"^job.toml: parties: 'Notary' is not a party's name"):
        read_job({"protocol": "taylor", "parties": {"Notary": {"role": "key-node"}}}, "job.toml")


@each_case(
    ("option", "meant"),
    [
        ("taylor.epsilon", "privacy.epsilon"),
        ("taylor.seed", "seed, outside of all tables"),
        ("privacy.norm_bound", "taylor.norm_bound"),
        ("privacy.epsilom", "epsilon"),
        ("taylor.role", "parties.NAME.role"),
    ],
)
def test_an_option_in_the_wrong_table_of_a_job_is_named_with_its_own(option: str, meant: str) -> None:
    table, _, name = option.partition(".")
    with pytest.raises(ConfigError) as refused:
        read_job({"protocol": "taylor", table: {name: 1}, "parties": {"bank": {"role": "active"}}}, "job.toml")
    assert refused.value.message.endswith(f" {option} is not an option; did you mean {meant}?")


@each_case(
    ("option", "meant"),
    [
        ("policy.min_linked", "policy.taylor.min_linked"),
        ("policy.url", "datasets.NAME.url"),
        ("datasets.rows.min_rows", "policy.min_rows"),
        ("identity.listen", "listen, outside of all tables"),
        ("policy.max_epsilom", "max_epsilon"),
    ],
)
def test_an_option_in_the_wrong_table_of_a_party_file_is_named_with_its_own(
    tmp_path: Path, option: str, meant: str
) -> None:
    world = bank_and_shops(tmp_path, rows=1)
    with pytest.raises(ConfigError) as refused:
        load_party(world.path("bank.toml"), [f"{option}=1"])
    assert refused.value.message.endswith(f": {option} is not an option; did you mean {meant}?")


# --- parties' files and models -----------------------------------------------------------------------


PARTY = """
name = "bank"
role = "active"
identity = { certificate = "c", key = "k", authority = "a" }
peers = { coordinator = { role = "coordinator" } }
"""


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (
            "[policy]\nmin_rows = 3",
            "without the protocol dp-lr, policy.min_rows does nothing, remove it",
        ),
        ('[scores]\nurl = "csv:x.csv"', "without the protocol predict, [scores] does nothing"),
    ],
)
def test_an_option_of_systems_that_a_party_does_not_take_part_in_is_refused(tmp_path, tables, words):
    (tmp_path / "party.toml").write_text(PARTY + tables)
    with pytest.raises(ConfigError) as refused:
        load_party(tmp_path / "party.toml")
    assert words in str(refused.value)
    allowed = load_party(tmp_path / "party.toml", ['policy.systems=["dp-lr", "predict"]'])
    assert allowed.policy.systems == ["dp-lr", "predict"]


@each_case("content", ["[]", "{}", '{"format": "else"}', '{"format": ["a"]}'])
def test_a_file_that_is_no_model(tmp_path, content):
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(DataError, match=r"model\.json is not a model: its format is not one of blindfit-walr-model-1"):
        load_model(tmp_path / "model.json")


# --- the picture -------------------------------------------------------------------------------------


def test_the_picture_has_the_rooms_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["name"] == "Rooms of parties")
    drawn = (ROOT / "docs/pictures/architecture.svg").read_text()
    for room in (name.strip() for layer in layers for name in layer.split("|")):
        assert f">{room}<" in drawn
