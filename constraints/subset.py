"""Print pins of constraints/all.txt, with their hashes, for `pip install --require-hashes -r`.

python constraints/subset.py project             what Blindfit needs to run
python constraints/subset.py project demo phe    the same, and two extras of pyproject.toml
python constraints/subset.py build               what builds Blindfit
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints" / "all.txt"


@dataclass(frozen=True)
class Pin:
    """
    Attributes:
        name: normalised, as uv writes it.
        text: the lines that pip reads.
        required_by: the packages that need this one, by name.
    """

    name: str
    text: str
    required_by: frozenset[str]


def pins(text: str) -> Iterator[Pin]:
    """Read what `uv pip compile` wrote: blocks of a package, its hashes and a comment that names who needs it."""
    for block in re.split(r"\n(?=\w)", text):
        lines = block.splitlines()
        comments = [line.strip("# ") for line in lines if line.lstrip().startswith("#")]
        read_by_pip = [line for line in lines if not line.lstrip().startswith("#")]
        if read_by_pip:
            required_by = frozenset(normalised(re.sub(r"^via( |$)", "", comment)) for comment in comments)
            yield Pin(normalised(read_by_pip[0]), "\n".join(read_by_pip), required_by)


def normalised(requirement: str) -> str:
    """Return the name in a requirement, in the spelling of package indexes."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def wanted(pyproject: str, parts: Sequence[str]) -> set[str]:
    """Return the names that pyproject.toml itself lists for these parts.

    Raises:
        SystemExit: pyproject.toml has no such part.
    """
    read = tomllib.loads(pyproject)
    known: dict[str, list[str]] = {
        "project": read["project"]["dependencies"],
        "build": read["build-system"]["requires"],
        **read["project"]["optional-dependencies"],
    }
    if unknown := [part for part in parts if part not in known]:
        sys.exit(f"pyproject.toml has no extra {unknown[0]!r}: choose from {', '.join(known)}")
    return {normalised(requirement) for part in parts for requirement in known[part]}


def subset(text: str, names: set[str]) -> list[Pin]:
    """Return the pins of these packages and of all that they need.

    Raises:
        SystemExit: a package has no pin.
    """
    every = list(pins(text))
    needed = set(names)
    if missing := sorted(names - {pin.name for pin in every}):
        names_of_missing = ", ".join(missing)
        sys.exit(
            f"constraints/all.txt does not pin {names_of_missing}: add it to the extra dev and run `make constraints`"
        )
    while more := {pin.name for pin in every if pin.required_by & needed} - needed:
        needed |= more
    return [pin for pin in every if pin.name in needed]


if __name__ == "__main__":
    names = wanted((ROOT / "pyproject.toml").read_text(), sys.argv[1:])
    print(*(pin.text for pin in subset(PINS.read_text(), names)), sep="\n")
