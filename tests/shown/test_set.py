"""An error about a value of `--set` names the option of the command line, because the file may not have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.cli.common import read_job, read_party, set_network
from tests.each_case import each_case

WALR = Path("examples/walr/job.toml")
CLINIC = Path("examples/walr/clinic.toml")


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])


@each_case(
    "overrides, said",
    [
        (["taylor.epochs=3"], "--set taylor.epochs: [taylor] does nothing in a walr job, remove it"),
        (["seed=1", "walr.norm_quantile=7"], "--set walr.norm_quantile: walr.norm_quantile: must be at most 1, not 7"),
        (["walr.norm=7"], "--set walr.norm: walr.norm"),
        (["privacy.epsilon=-1", "name=job", "walr.l2=-1"], "--set privacy.epsilon --set walr.l2: "),
    ],
    ids=lambda case: str(case),
)
def test_the_option_is_named(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_job(WALR, overrides)
    assert caught.value.message.startswith(f"{WALR} with {said}")


def test_a_value_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        read_party(CLINIC, ["policy.min_rows=0", "datasets.visits.url=postgresql://me:secret@host/db?table=t"])
    assert caught.value.message.startswith(f"{CLINIC} with --set policy.min_rows: policy.min_rows: must be at least 1")
    assert "secret" not in str(caught.value)


def test_an_error_of_the_file_names_no_option(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(WALR.read_text().replace("epsilon = ", "epsilom = "))
    with pytest.raises(ConfigError) as caught:
        read_job(job, ["seed=1"])
    assert "--set" not in caught.value.message


def test_an_error_of_another_option_names_no_set() -> None:
    with pytest.raises(ConfigError) as caught:
        read_job(WALR, ["seed=1"], set_network("fast"))
    assert "--set" not in caught.value.message
