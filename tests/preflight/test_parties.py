"""Findings of the pre-flight about the parties themselves: from their files, or from their answers if only an address
is known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blindfit import __version__
from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import read_job
from blindfit.coordinator.jobs.check import Finding
from blindfit.coordinator.preflight.parties import ask_parties
from blindfit.coordinator.running import launcher, reaching
from tests.certificates import demo_authority, make_identity
from tests.wire.meter import metering
from tests.world import World


def refusals(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.about, finding.text) for finding in findings if finding.refuses]


# --- by their files --------------------------------------------------------------------------------------


@pytest.fixture
def prediction(project: World) -> World:
    project.job("predict", predict={"session": "monday"})
    project.set("policy.systems", ["predict"])
    return project


def test_a_prediction(prediction: World) -> None:
    findings = prediction.check()
    reason = "predict.session: it has no model of that session"
    assert [text.partition(" (")[0] for _, text in refusals(findings)] == [
        f"{name} refuses the job: {reason}" for name in ("bank", "post", "shop")
    ]
    learnt = "bank learns the scores of the rows that all data parties have"
    assert Finding("note", "who learns what", learnt) in findings


def test_a_party_of_another_role(project: World) -> None:
    project.set("role", "active", "post")
    project.set("datasets.loans.models_per_row", None, "post")
    ((about, text),) = refusals(project.check())
    assert (about, text.partition(" (")[0]) == ("post", "post refuses the job: role: it is active, not passive")


def test_a_party_of_another_name(project: World) -> None:
    project.set("name", "mail", "post")
    path = project.root / "post.toml"
    assert refusals(project.check()) == [("post", f"{path}: name = mail, but the job calls this party post")]


def test_a_table_that_is_not_there(project: World) -> None:
    project.set("datasets.loans.url", "csv:letters.csv", "post")
    ((about, said),) = refusals(project.check())
    assert about == "post"
    assert "letters.csv" in said


# --- what starts or finds them -----------------------------------------------------------------------------


def test_what_a_run_needs_of_each_party(prediction: World) -> None:
    job = prediction.load()
    assert launcher.coordinator_name(job) == "coordinator"
    prediction.set("peers.coordinator", None, "post")
    prediction.set("peers.organiser.role", "coordinator", "post")
    with pytest.raises(ConfigError, match=r"^the parties know no common coordinator( \(|$)") as refused:
        launcher.coordinator_name(job)
    assert refused.value.hint == 'add [peers.coordinator] with role = "coordinator" to each file'


def test_where_a_party_is_must_be_said(prediction: World) -> None:
    prediction.set("parties.post.config", None, "job")
    job = prediction.load()
    with pytest.raises(
        ConfigError, match=r"^parties\.post\.config is missing: `blindfit run` starts every party here( \(|$)"
    ):
        launcher.party_settings(job, "post")
    with pytest.raises(
        ConfigError, match=r"^parties\.bank\.address is missing: `blindfit submit` needs the address of"
    ):
        reaching.addresses_of(job)
    with pytest.raises(
        ConfigError, match=r"^\[coordinator\] is missing: running parties need the identity of the coordinator( \(|$)"
    ):
        reaching.coordinator_identity(job)


# --- by asking -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("authority"))


async def asked(authority: Path, directory: Path, *parties: tuple[str, str, str], **values: Any) -> list[Finding]:
    """Check a job with a running measurement server, meter; nobody listens at the addresses of all others.

    Args:
        parties: name, role and dataset.
    """
    own = make_identity(authority, "coordinator").files
    files = {"certificate": str(own.certificate), "key": str(own.key), "authority": str(own.authority)}
    async with metering(authority, directory) as node:
        addresses = {"meter": f"127.0.0.1:{node.port}"}
        members = {
            name: {"role": role, "dataset": dataset, "address": addresses.get(name, "127.0.0.1:1")}
            for name, role, dataset in parties
        }
        job = {"protocol": "walr", "privacy": {"epsilon": 0.5}, "parties": members, "coordinator": files, **values}
        return await ask_parties(read_job(job, folder=directory))


SHOP = ("shop", "active", "rows")


async def test_parties_of_which_one_is_up(authority: Path, tmp_path: Path) -> None:
    shop, meter = await asked(authority, tmp_path, SHOP, ("meter", "measurement", "labels"))
    assert meter == Finding("ok", "meter", f"is running: measurement, version {__version__}")
    assert (shop.level, shop.about) == ("refuses", "shop")
    assert shop.text.startswith(
        "cannot reach shop at 127.0.0.1:1 at step connect: Connection refused (start `blindfit "
    )


async def test_a_party_that_may_not_be_asked_is_one_line(authority: Path, tmp_path: Path) -> None:
    files = make_identity(authority, "shop").files
    own = {name: str(getattr(files, name)) for name in ("certificate", "key", "authority")}
    members = (SHOP, ("meter", "measurement", "labels"))
    _, meter = await asked(authority, tmp_path, *members, coordinator=own)
    assert (meter.level, meter.about) == ("refuses", "meter")
    assert "Describe" in meter.text
    assert "\n" not in meter.text


@pytest.mark.parametrize(
    ("parties", "values", "said"),
    [
        ([SHOP, ("meter", "measurement", "clicks")], {}, ["dataset: it has no dataset named clicks"]),
        (
            [("meter", "active", "labels"), ("shop", "measurement", "rows")],
            {},
            ["peers: shop is not a peer with the role measurement here"],
        ),
        (
            [SHOP, ("meter", "measurement", "labels")],
            {"protocol": "label-dp"},
            ["protocol: label-dp is not a system in which it takes part"],
        ),
    ],
)
async def test_a_party_that_is_up_and_would_refuse(
    authority: Path, tmp_path: Path, parties: list[tuple[str, str, str]], values: dict[str, Any], said: list[str]
) -> None:
    findings = await asked(authority, tmp_path, *parties, **values)
    refused = [text.partition(" (")[0] for about, text in refusals(findings) if about == "meter"]
    assert refused == [f"meter refuses the job: {text}" for text in said]
