"""`make lowest` installs the lower bounds of pyproject.toml, and its tests exist."""

from __future__ import annotations

import re

from tests.each_case import each_case
from tests.repository.pins import MAKEFILE, ROOT, listed, lower_bound, pins

REQUIREMENTS = {str(requirement): requirement for requirement in listed()}
LOWEST = {pin.name: pin.version for pin in pins("lowest.txt")}


@each_case("text", REQUIREMENTS)
def test_the_lowest_version_that_is_tested_is_the_bound(text: str) -> None:
    requirement = REQUIREMENTS[text]
    bound = lower_bound(requirement)
    assert bound is not None, "write a lower bound, so that somebody knows what works"
    assert LOWEST[requirement.name.lower()] == bound


def test_its_tests_are_there() -> None:
    (listed_tests,) = re.findall(r"^LOWEST_TESTS := ((?:.*\\\n)*.*)$", MAKEFILE, re.M)
    paths = listed_tests.replace("\\\n", " ").split()
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []
