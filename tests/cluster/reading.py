"""docker-compose.yml, the Dockerfile and the cluster's files, as the tests read them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from blindfit.coordinator.job.job import Job, load_job
from blindfit.parties.settings import PartySettings
from blindfit.parties.systems import load_party

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "examples" / "cluster"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PARTIES = sorted(name for name, service in SERVICES.items() if service.get("command", [""])[0] == "party")
JOBS = sorted(path.stem for path in (CLUSTER / "jobs").glob("*.toml"))


def mounts(service: str) -> dict[str, tuple[str, str]]:
    """Return for each path in the container the volume or file, and ro or rw."""
    parts = [text.split(":") for text in SERVICES[service].get("volumes", [])]
    return {part[1]: (part[0], part[2] if len(part) > 2 else "rw") for part in parts}


def settings_of(party: str) -> PartySettings:
    return load_party(ROOT / mounts(party)["/etc/blindfit/party.toml"][0])


def job_of(name: str) -> Job:
    return load_job(CLUSTER / "jobs" / f"{name}.toml")


def copied() -> list[str]:
    """Return the paths that the Dockerfile copies from this folder."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", (ROOT / "Dockerfile").read_text(), re.M)
    return [source for line in lines for source in line.split()[:-1]]


def let_through() -> list[str]:
    """Return the paths that .dockerignore lets into a build."""
    return [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]


def packages() -> list[str]:
    return list(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    )
