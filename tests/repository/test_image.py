"""The image has its base as one build argument, and pip installs only packages with hashes in constraints/."""

from __future__ import annotations

import re

from tests.repository.pins import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LINES = re.sub(r"\\\n\s*", "", DOCKERFILE).splitlines()


def test_the_base_is_one_build_argument() -> None:
    bases, stages = set(), set()
    for line in LINES:
        if line.startswith("FROM "):
            _, base, _, stage = line.split()
            bases |= {base} - stages
            stages.add(stage)
    assert bases == {"${BASE}"}
    assert [line for line in LINES if line.startswith("ARG BASE")] == ["ARG BASE=python:3.11-slim"]
    assert re.search(r"^#.*docker build --build-arg BASE=python:3.11-slim@sha256:", DOCKERFILE, re.M)


def test_pip_installs_pinned_packages_or_the_wheel_of_this_repository() -> None:
    commands = [one.strip() for line in LINES if line.startswith("RUN ") for one in line[4:].split("&&")]
    of_pip = [one for one in commands if re.search(r"\bpip .*(install|wheel)", one)]
    assert len(of_pip) == 5
    for command in of_pip:
        from_pins = "--require-hashes -r " in command
        from_here = "--no-deps" in command and ("--no-index" in command or "--no-build-isolation" in command)
        assert from_pins or from_here, command
