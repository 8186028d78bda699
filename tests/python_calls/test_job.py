"""A job in Python: from a file, from tables, from keywords, checked as a file is."""

from __future__ import annotations

from pathlib import Path

import pytest

from blindfit import ConfigError, Job
from blindfit.coordinator.job.job import load_job

PARTIES = {
    "shop": {"role": "active", "dataset": "rows", "config": "shop.toml"},
    "meter": {"role": "measurement", "dataset": "labels", "config": Path("meter.toml")},
}
TABLES = {"protocol": "walr", "parties": PARTIES, "privacy": {"release": "first", "epsilon": 1, "delta": 1e-5}}
FILE = """
protocol = "walr"
[parties.shop]
role = "active"
dataset = "rows"
config = "shop.toml"
[parties.meter]
role = "measurement"
dataset = "labels"
config = "meter.toml"
[privacy]
release = "first"
epsilon = 1
delta = 1e-5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "job.toml"
    path.write_text(FILE)
    return path


def test_a_file_a_mapping_and_keywords_make_the_same_job(file: Path) -> None:
    made = [Job(file), Job(str(file)), Job(TABLES), Job(**TABLES), Job(Job(file)), load_job(file)]
    assert {str(job.to_dict()) for job in made} == {str(made[0].to_dict())}
    assert [job.folder for job in made] == [file.parent, file.parent, Path(), Path(), file.parent, file.parent]
    assert Job(TABLES, folder="elsewhere").folder == Path("elsewhere")


def test_a_keyword_changes_one_value_of_a_table_and_leaves_the_others(file: Path) -> None:
    changed = Job(file, privacy={"epsilon": 2}, name="second")
    assert (changed.parameters.privacy.epsilon, changed.parameters.privacy.release) == (2, "first")
    assert changed.name == "second"
    assert Job(changed, privacy={"release": "next"}).parameters.privacy.epsilon == 2
    assert Job(file).parameters.privacy.epsilon == 1


def test_what_nobody_gave_is_not_given_when_a_job_is_copied(file: Path) -> None:
    """A default of one option may follow from another option."""
    assert Job(Job(file), walr={"l2": 0.5}).parameters == Job(file, walr={"l2": 0.5}).parameters


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"privacy": {"epsilon": "1"}}, "privacy.epsilon"),
        ({"privacy": {"epsilon": float("nan")}}, "privacy.epsilon"),
        ({"walr": {"no_such": 1}}, "walr.no_such"),
        ({"taylor": {"epochs": 3}}, "[taylor] does nothing in a walr job"),
        ({"protocol": "walrus"}, "'walrus' is not one of"),
        ({"protocol": 3}, "protocol is not a text"),
        ({"parties": {"shop": {"role": "passive"}}}, "parties: walr needs"),
        ({"parties": {"Shop": PARTIES["shop"]}}, "'Shop' is not a party's name"),
        ({"name": "two words"}, "name"),
    ],
)
def test_a_mistake_is_one_line_with_the_names_of_a_file(file: Path, more: dict[str, object], said: str) -> None:
    for source, called in ((file, str(file)), (TABLES, "the job")):
        with pytest.raises(ConfigError) as caught:
            Job(source, **more)
        assert said in caught.value.message
        assert caught.value.message.startswith(f"{called}: ")
        assert "\n" not in caught.value.message


def test_a_party_file_or_nothing_is_no_job(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text('name = "shop"\nrole = "active"\n')
    for source in (tmp_path / "shop.toml", tmp_path / "none.toml", None, {}):
        with pytest.raises(ConfigError):
            Job(source)


def test_a_job_shows_who_takes_part(file: Path) -> None:
    assert repr(Job(file)) == "<walr job job of shop, meter>"
