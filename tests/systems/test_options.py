"""Options that a job's or a party's file may not have: each mistake is one line that names the file and the field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.file_kinds import is_party_file
from blindfit.coordinator.job.job import load_job, read_job
from blindfit.parties.job.tables import EPSILON_MEANS
from blindfit.parties.settings import PartySettings
from blindfit.parties.systems import SYSTEMS, read_proposed, system
from blindfit.parties.tables import apply_override, read_toml, read_values, toml_of, validate
from tests.each_case import each_case

VERTICAL = {
    "bank": {"role": "active", "dataset": "loans"},
    "post": {"role": "passive", "dataset": "letters"},
    "keys": {"role": "key-node"},
}
PARTIES: dict[str, dict[str, Any]] = {
    "dp-lr": {"bank": VERTICAL["bank"]},
    "taylor": VERTICAL,
    "walr": {"bank": VERTICAL["bank"], "meter": {"role": "measurement", "dataset": "labels"}},
}
LABEL_DP = {"privacy": {"epsilon": 0.5}}
LINKED = {"align": {"method": "linkage", "fields": ["last_name"]}}


def line_of_job(protocol: str, values: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        read_job({"protocol": protocol, "parties": PARTIES[protocol], **values}, "job.toml")
    (line,) = str(caught.value).splitlines()
    return line


@each_case("protocol", PARTIES)
def test_what_the_mistakes_are_made_in_is_right_itself(protocol: str) -> None:
    values = {"protocol": protocol, "parties": PARTIES[protocol], **LABEL_DP}
    assert read_job(values).protocol == protocol
    if protocol == "taylor":
        assert read_job({**values, **LINKED}).parameters.align.method == "linkage"


INF = float("inf")
VAIN = "does nothing with the other options, remove it"


@each_case(
    ("values", "said"),
    [
        ({"taylor": {"schedule": "constant", "decay": 0.5}}, f"taylor: decay {VAIN}"),
        ({"taylor": {"momentum": 0.5}}, f"taylor: momentum {VAIN}"),
        ({"taylor": {"model": "linear", "class_weights": "balanced"}}, f"taylor: class_weights {VAIN}"),
        ({"taylor": {"model": "linear", "threshold": 0.4}}, f"taylor: threshold {VAIN}"),
        ({"taylor": {"validation_fraction": 0, "patience": 5}}, f"taylor: patience {VAIN}"),
        ({"taylor": {"patience": 0, "tolerance": 0.1}}, f"taylor: tolerance {VAIN}"),
        ({"taylor": {"norm_bound": 2.0}}, "taylor.norm_bound does nothing without privacy.epsilon, remove it"),
        ({"taylor": {"l2": INF}}, "taylor.l2: must be a finite number, not inf"),
        ({"taylor": {"l1": INF}}, "taylor.l1: must be a finite number, not inf"),
        (
            {"privacy": {"epsilon": 0.5, "release": "second"}},
            "privacy.release does nothing in a taylor job, remove it",
        ),
        (
            {**LABEL_DP, "taylor": {"class_weights": "balanced"}},
            "taylor.class_weights: with label DP the change of one label would grow with the scores, remove it",
        ),
        (
            {**LABEL_DP, "taylor": {"validation_fraction": 0.1}},
            "taylor.validation_fraction: with label DP whether to stop would reveal something about labels, remove it",
        ),
        ({**LABEL_DP, "taylor": {"jitter": 0.5}}, "taylor.jitter does nothing with privacy.epsilon, remove it"),
        ({**LABEL_DP, "taylor": {"patience": 4}}, "taylor.patience does nothing with privacy.epsilon, remove it"),
        (
            {"align": {"fields": ["last_name"]}},
            'align: fields does nothing with method = "psi", remove it',
        ),
        ({"align": {"fold": False}}, 'align: fold does nothing with method = "psi", remove it'),
        (
            {"align": {"method": "linkage"}},
            'align: fields is missing: linkage compares some, such as ["last_name", "birth_date:date"]',
        ),
        (
            {"align": {"method": "linkage", "fields": ["last_name:text:many"]}},
            "align: align.fields: 'last_name:text:many' is not of the form name:kind:hashes",
        ),
        ({"align": {"method": "linkage", "fields": ["a", "a"]}}, "align: the linkage names a field twice"),
        (
            {"parties": {**VERTICAL, "bank": {"role": "active"}}},
            "parties.bank.dataset: every party but a key node has one",
        ),
        (
            {"parties": {**VERTICAL, "keys": {"role": "key-node", "dataset": "loans"}}},
            "parties.keys.dataset: every party but a key node has one",
        ),
    ],
)
def test_a_taylor_job(values: dict[str, Any], said: str) -> None:
    assert line_of_job("taylor", values) == f"job.toml: {said}"


LINEAR_DEFAULTS = {"epochs": 40, "optimiser": "momentum", "learning_rate": 0.05, "l2": 0.001, "patience": 0}
LOGISTIC_DEFAULTS = {"epochs": 20, "optimiser": "sgd", "learning_rate": 0.15, "l2": 0.01, "patience": 3}


@each_case(
    ("given", "expected"),
    [
        ({}, LOGISTIC_DEFAULTS),
        ({"model": "linear"}, LINEAR_DEFAULTS),
        ({"model": "linear", "epochs": 7, "patience": 2}, {**LINEAR_DEFAULTS, "epochs": 7, "patience": 2}),
        ({"model": "linear", "optimiser": "momentum"}, LINEAR_DEFAULTS),
        # a party that names another chooses all of its options
        ({"model": "linear", "optimiser": "sgd"}, LOGISTIC_DEFAULTS),
        (
            {"model": "linear", "validation_fraction": 0.0},
            {**LINEAR_DEFAULTS, "patience": 3},
        ),  # the option then does nothing
    ],
)
def test_a_linear_model_has_defaults_of_its_own(given: dict[str, Any], expected: dict[str, Any]) -> None:
    job = read_job({"protocol": "taylor", "parties": PARTIES["taylor"], "taylor": given}).parameters
    assert {name: getattr(job.taylor, name) for name in expected} == expected
    assert read_proposed(job.to_parameters()) == job  # a party accepts it


def test_label_dp_goes_with_the_defaults_of_a_linear_model() -> None:
    values = {"protocol": "taylor", "parties": PARTIES["taylor"], "taylor": {"model": "linear"}, **LABEL_DP}
    job = read_job(values).parameters
    assert (job.taylor.epochs, job.taylor.patience) == (40, 0)
    assert read_proposed(job.to_parameters()) == job


@each_case(
    ("walr", "said"),
    [
        ({"l2": -1.0}, 'walr: l2 must be "auto" or a number that is not negative'),
        ({"norm_bound": -1.0}, 'walr: norm_bound must be "auto" or a number that is not negative'),
        ({"norm_bound": INF}, "walr.norm_bound: must be a finite number or 'auto', not inf"),
        ({"norm_bound": 0}, 'walr: norm_bound must be above 0, or "auto"'),
        (
            {"norm_bound": 5.0, "norm_quantile": 0.9},
            'walr: norm_quantile does nothing if norm_bound is a number: set norm_bound = "auto"',
        ),
        (
            {"init": "pretrained.json", "l2": 0},
            "walr: init does nothing with l2 = 0, remove one: l2 shrinks towards the pre-trained weights",
        ),
    ],
)
def test_a_walr_job(walr: dict[str, Any], said: str) -> None:
    assert line_of_job("walr", {**LABEL_DP, "walr": walr}) == f"job.toml: {said}"


@pytest.mark.parametrize(
    ("dp_lr", "said"),
    [
        ({"neighbours": "add-or-remove"}, 'dp_lr: public_rows is missing: with neighbours = "add-or-remove" '),
        (
            {"public_rows": 100},
            'dp_lr: public_rows does nothing with neighbours = "replace-one", whose number of rows ',
        ),
    ],
)
def test_a_dp_lr_job(dp_lr: dict[str, Any], said: str) -> None:
    assert line_of_job("dp-lr", {**LABEL_DP, "dp_lr": dp_lr}).startswith(f"job.toml: {said}")


@each_case(
    ("protocol", "privacy", "said"),
    [
        ("walr", {}, f"privacy.epsilon is missing: WALR is a release under differential privacy. {EPSILON_MEANS}"),
        (
            "dp-lr",
            {},
            "privacy.epsilon is missing: a dp-lr job is a release under differential privacy. " + EPSILON_MEANS,
        ),
        (
            "walr",
            {"privacy": {"epsilon": 1.0, "mechanism": "classic"}},
            'privacy: mechanism = "classic" is proved only for epsilon < 1: take "analytic"',
        ),
    ],
)
def test_privacy(protocol: str, privacy: dict[str, Any], said: str) -> None:
    assert line_of_job(protocol, privacy) == f"job.toml: {said}"


# --- a party's file ------------------------------------------------------------------------------------


LABELS = {"url": "csv:labels.csv", "id": "id", "label": "label", "population": "people", "active_parties": ["bank"]}
PERSONS = {**LABELS, "person": "person"}
SERVER: dict[str, Any] = {
    "name": "meter",
    "role": "measurement",
    "identity": {"certificate": "c", "key": "k", "authority": "a"},
    "peers": {"coordinator": {"role": "coordinator"}, "bank": {"role": "active"}, "post": {"role": "passive"}},
    "populations": {"people": {"epsilon": 2.0, "delta": 1e-5}},
    "datasets": {"labels": LABELS},
}


def of_labels(**changes: Any) -> dict[str, Any]:
    return {"datasets": {"labels": {name: value for name, value in (LABELS | changes).items() if value is not None}}}


@each_case(
    ("values", "said"),
    [
        (
            {"datasets": {}},
            "populations: no dataset names one, so their budgets do nothing",
        ),
        (of_labels(label=None), "datasets.labels.label: a measurement server's dataset needs a label column"),
        (of_labels(person="person", unknown_rows="zero"), 'datasets.labels.unknown_rows = "zero" cannot go with a '),
        (of_labels(active_parties=[]), "datasets.labels.active_parties is empty: name the active parties that may ask"),
        (
            of_labels(active_parties=["bank", "post"]),
            "datasets.labels.active_parties: post is not an active party of [peers]",
        ),
        (
            of_labels(passive_parties=["bank"]),
            "datasets.labels.passive_parties: bank is not a passive party of [peers]",
        ),
        (
            of_labels(passive_parties=["post"], label_kind="share", split="split_id"),
            "datasets.labels.passive_parties: does nothing without binary labels, remove it",
        ),
        (of_labels(active_parties=["shop"]), "datasets.labels.active_parties: shop is not an active party of [peers]"),
        (
            {"datasets": {"labels": {**LABELS, "population": "all"}, "more": LABELS}},
            "datasets.labels.population: 'all' is not one of [populations] (people); a population has the budget",
        ),
        (
            {"datasets": {"labels": LABELS, "persons": PERSONS}},
            "populations.people: some of its datasets have a person column and some do not; one budget cannot count "
            "persons and rows",
        ),
        (
            {"name": "bank", "role": "active", "datasets": {"rows": {"url": "csv:r.csv", "id": "id"}}},
            "populations: no dataset names one, so their budgets do nothing",
        ),
    ],
)
def test_a_party(values: dict[str, Any], said: str) -> None:
    validate(SERVER, PartySettings, source="party.toml")
    with pytest.raises(ConfigError) as caught:
        validate(SERVER | values, PartySettings, source="party.toml")
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"party.toml: {said}")


# --- any file --------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"job\.toml does not exist( \(|$)") as caught:
        load_job(tmp_path / "job.toml")
    assert caught.value.hint == "give the path of a TOML file"


@each_case(
    ("content", "said"),
    [
        (b"name = ", "is not TOML: "),
        (b"a\xff = 1", "is not TOML: byte 2 is not UTF-8"),
        (b"[a]\n[a]\n", "is not TOML: "),
    ],
)
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_job(path)
    assert str(caught.value).startswith(f"{path} {said}")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: "):
        load_job(tmp_path)


@each_case(
    ("override", "said"),
    [
        ("privacy.epsilon", "not of the form key.path=value"),
        ("=1", "not of the form key.path=value"),
        ("privacy..epsilon=1", "not of the form key.path=value"),
        ("name.first=1", "name is a value, not a table"),
    ],
)
def test_an_override_that_overrides_nothing(tmp_path: Path, override: str, said: str) -> None:
    (tmp_path / "job.toml").write_text('name = "monday"\n')
    with pytest.raises(ConfigError) as caught:
        read_values(tmp_path / "job.toml", [override])
    assert caught.value.message == f"--set {override}: {said}"


@each_case("text", ["a b", 'a "b" \\', "\u00e9 \U0001d4b3", "\x01\x7f\n"])
def test_any_text_is_written_as_it_will_be_read(text: str) -> None:
    values: dict[str, Any] = {}
    apply_override(values, f"name={toml_of(text)}")
    apply_override(values, f"names={toml_of([text, text])}")
    assert values == {"name": text, "names": [text, text]}


def test_a_file_with_a_byte_order_mark_is_read_as_without(tmp_path: Path) -> None:
    (tmp_path / "bank.toml").write_text('role = "active"\n', "utf-8-sig")
    assert read_toml(tmp_path / "bank.toml") == {"role": "active"}
    assert is_party_file(tmp_path / "bank.toml")


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield all tables of a file, itself included."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        inner = [field.annotation for field in annotation.model_fields.values()]
    else:
        inner = list(getattr(annotation, "__args__", ()))
    for each in inner:
        yield from models_in(each)


@each_case("model", [PartySettings, *(system(name).job for name in SYSTEMS)])
def test_no_table_takes_a_number_that_is_none(model: type[BaseModel]) -> None:
    assert not [table.__name__ for table in models_in(model) if table.model_config.get("allow_inf_nan", True)]
