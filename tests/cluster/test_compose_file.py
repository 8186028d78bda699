"""docker-compose.yml and its files fit together, and each container sees only its own files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blindfit.parties.wire.addresses import split_address
from tests.cluster.reading import (
    CLUSTER,
    COMPOSE,
    JOBS,
    PARTIES,
    ROOT,
    SERVICES,
    copied,
    job_of,
    let_through,
    mounts,
    packages,
    settings_of,
)


def test_every_party_file_has_its_service() -> None:
    assert sorted(path.stem for path in CLUSTER.glob("*.toml")) == PARTIES
    assert [settings_of(name).name for name in PARTIES] == PARTIES
    roles = sorted(settings_of(name).role for name in PARTIES)
    assert roles == ["active", "key-node", "measurement", "measurement", "measurement", "passive", "passive"]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_finds_its_parties(job: str) -> None:
    for name, party in job_of(job).parties.items():
        settings = settings_of(name)
        assert party.address == f"{name}:{split_address(settings.listen)[1]}"
        assert party.role == settings.role
        assert party.dataset in {*settings.datasets, ""}
        assert job_of(job).protocol in settings.policy.systems


@pytest.mark.parametrize("job", JOBS)
def test_the_parties_of_a_job_know_each_other(job: str) -> None:
    parties = job_of(job).parties
    for name in parties:
        peers = settings_of(name).peers
        assert peers["coordinator"].role == "coordinator"
        for other in parties.keys() - {name}:
            assert peers[other].role == parties[other].role
            assert peers[other].address == parties[other].address


@pytest.mark.parametrize("party", PARTIES)
def test_a_party_keeps_to_its_own_folders(party: str) -> None:
    settings = settings_of(party)
    assert split_address(settings.listen)[0] == "0.0.0.0"
    assert settings.data_dir == Path("/state")
    files = settings.identity.model_dump(exclude_none=True)
    assert {path.parent for path in files.values()} == {Path("/identity")}
    assert all(dataset.url.partition(":")[2].startswith("/data/") for dataset in settings.datasets.values())
    assert settings.peers[party].role == settings.role  # otherwise it would refuse its own health check


@pytest.mark.parametrize("party", [*PARTIES, "coordinator"])
def test_a_container_sees_its_own_volumes_alone(party: str) -> None:
    volumes = {source: where for where, (source, _) in mounts(party).items() if source in COMPOSE["volumes"]}
    expected = {f"{party}-identity": "/identity", f"{party}-data": "/data", f"{party}-state": "/state"}
    if party == "coordinator":
        expected = {"coordinator-identity": "/identity", "reports": "/reports"}
    elif not settings_of(party).datasets:
        del expected[f"{party}-data"]
    assert volumes == expected
    assert [where for where, (_, mode) in mounts(party).items() if mode == "rw"] == [[*expected.values()][-1]]


def test_the_authoritys_key_is_where_no_party_is() -> None:
    assert [name for name in SERVICES if "/authority" in mounts(name)] == ["certificates"]
    assert {f"/identities/{name}" for name in (*PARTIES, "coordinator")} | {"/authority"} == mounts(
        "certificates"
    ).keys()


@pytest.mark.parametrize(("job", "trust"), [("walr-split", "two-servers"), ("walr-shares", "shared-rows")])
def test_no_server_of_split_labels_has_a_label(job: str, trust: str) -> None:
    assert job_of(job).parameters.walr.trust == trust
    servers = {name for name, party in job_of(job).parties.items() if party.role == "measurement"}
    assert servers == {"east", "west"}
    for server in servers:
        assert [dataset.label_kind for dataset in settings_of(server).datasets.values()] == ["share"]


def test_every_volume_is_used_and_every_file_is_there() -> None:
    sources = {source for name in SERVICES for source, _ in mounts(name).values()}
    files = {source for source in sources if source.startswith("./")}
    assert sources - files == COMPOSE["volumes"].keys()
    assert all((ROOT / file).exists() for file in files)


@pytest.mark.parametrize("service", SERVICES)
def test_every_container_is_confined(service: str) -> None:
    settings = SERVICES[service]
    assert settings["read_only"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges:true"]
    assert not {"user", "privileged", "cap_add", "ports", "devices"} & settings.keys()
    assert user_of(settings["build"]["target"]) == "blindfit"


def user_of(stage: str) -> str:
    """Return the user that a stage of the Dockerfile runs as."""
    text = (ROOT / "Dockerfile").read_text()
    (base, rest) = re.search(rf"^FROM (\S+) AS {stage}\n(.*?)(?=^FROM|\Z)", text, re.M | re.S).groups()
    users = re.findall(r"^USER (\w+)$", rest, re.M)
    return users[-1] if users else user_of(base)


def test_the_coordinator_waits_for_every_party() -> None:
    waits = SERVICES["coordinator"]["depends_on"]
    assert waits == {name: {"condition": "service_healthy"} for name in PARTIES}
    assert SERVICES["coordinator"]["command"] == ["${BLINDFIT_EXAMPLE:-taylor}"]
    assert JOBS == ["falcon", "taylor", "walr", "walr-shares", "walr-split"]


def test_a_party_that_may_sleep_is_awake_in_its_examples() -> None:
    sleepers = [name for name in PARTIES if "entrypoint" in SERVICES[name]]
    assert sleepers == ["east", "west"]
    for name in sleepers:
        sh, script, examples, example = SERVICES[name]["entrypoint"]
        assert (sh, mounts(name)[script]) == ("sh", ("./examples/cluster/party_of.sh", "ro"))
        assert sorted(examples.split()) == [job for job in JOBS if name in job_of(job).parties]
        assert [example] == SERVICES["coordinator"]["command"]
        kind, check = SERVICES[name]["healthcheck"]["test"]
        usual = SERVICES["hospital"]["healthcheck"]
        assert (kind, check) == ("CMD-SHELL", f"[ -e /tmp/sleeps ] || exec {' '.join(usual['test'][1:])}")
        assert {**SERVICES[name]["healthcheck"], "test": usual["test"]} == usual


def test_an_image_has_what_it_needs_and_nothing_else() -> None:
    assert set(packages()) <= set(copied())
    assert {name for name in let_through() if "/" not in name} == {name for name in copied() if "/" not in name} - {
        "examples"
    }
    files = [name for name in let_through() if "/" in name]
    examples = [name for name in files if name.startswith("examples/")]
    assert {name for name in copied() if "/" in name} == set(files) - set(examples)
    assert all((ROOT / name).is_file() for name in [*files, "Dockerfile"])
    entrypoints = [SERVICES[name]["entrypoint"][1].lstrip("/") for name in ("certificates", "data")]
    assert set(entrypoints) < set(examples)
    named = re.findall(r"\$(examples/[\w/.]+)", (CLUSTER / "data.sh").read_text())
    assert named
    assert set(named) < set(examples)


def test_a_party_may_write_into_its_volumes() -> None:
    """A new volume takes the owner of the folder in the image; another folder there would be root's."""
    (names,) = re.findall(r"for party in ([\w ]+);", (ROOT / "Dockerfile").read_text())
    assert {*names.split()} == {*PARTIES, "coordinator"}
