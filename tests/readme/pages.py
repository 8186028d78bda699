"""The commands that a page shows, in the order in which they stand."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
PAGES.remove("CHANGELOG.md")  # it lists past changes, nothing to type
PAGES.remove("docs/reference/command_line.md")  # its examples are those of --help, which tests/shown types
PAGES.remove("CONTRIBUTING.md")  # tests/repository follows it

PROGRAMS = {"blindfit", "python", "make", "pip", "docker", "docker-compose", "sh", ".", "(umask"}
FENCES_OF_COMMANDS = {"sh", "bash", "console"}


@dataclass(frozen=True)
class Shown:
    """
    Attributes:
        line: line of its beginning in the page, counted from 0.
        text: command without comment and line breaks, with single spaces.
        block: True if it stands by itself, and not within a sentence.
    """

    line: int
    text: str
    block: bool

    @property
    def is_mention(self) -> bool:
        """True if a sentence names a command of Blindfit without arguments: nothing to type."""
        words = self.text.split()
        return not self.block and words[0] == "blindfit" and len(words) == 2


def shown_in(page: str) -> list[Shown]:
    text = (ROOT / page).read_text()
    blocks = list(_blocks(text.splitlines()))
    sentences = text.splitlines()
    for start, lines, _ in blocks:
        sentences[start : start + len(lines)] = [""] * len(lines)
    found = [one for start, lines, commands in blocks if commands for one in _commands(start, lines)]
    return sorted([*found, *_inline("\n".join(sentences))], key=lambda shown: shown.line)


def to_type(page: str) -> list[Shown]:
    return [shown for shown in shown_in(page) if not shown.is_mention]


def printed_after(page: str, command: Shown) -> list[str]:
    """Return the lines of the first block without a language after a command: its output, as the page has it."""
    lines = (ROOT / page).read_text().splitlines()
    fences = [number for number, line in enumerate(lines) if line.lstrip().startswith("```")]
    for start, end in zip(fences[::2], fences[1::2], strict=True):
        if start > command.line and lines[start].strip() == "```":
            return textwrap.dedent("\n".join(lines[start:end])).splitlines()[1:]
    raise LookupError(f"{page} shows nothing that {command.text} prints")


def _blocks(lines: list[str]) -> Iterator[tuple[int, list[str], bool]]:
    """Yield each block of code: its first line, its lines, and True if these are commands."""
    number = 0
    while number < len(lines):
        end, commands = number + 1, False
        if (fence := re.match(r" *```(\w*)(?:\{[\w-]+\}.*)?$", lines[number])) is not None:
            end = 1 + next(n for n in range(end, len(lines)) if lines[n].strip() == "```")
            commands = fence[1] in FENCES_OF_COMMANDS
        elif lines[number].startswith("    ") and not (number and lines[number - 1]):
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            commands = _program(lines[number]) in PROGRAMS
        else:
            number += 1
            continue
        yield number, lines[number:end], commands
        number = end


def _commands(start: int, lines: list[str]) -> Iterator[Shown]:
    text, begins = "", start
    for number, line in enumerate(lines, start):
        if line.lstrip().startswith("```"):
            continue
        begins = begins if text else number
        text += " " + re.sub(r"\s+# .*", "", line.removeprefix("$ "))
        if text.endswith("\\"):
            text = text[:-1]
        elif text.strip():
            yield Shown(begins, " ".join(text.split()), block=True)
            text = ""


def _inline(text: str) -> Iterator[Shown]:
    for found in re.finditer(r"`([^`]+)`", text):
        command = " ".join(found[1].split())
        if _program(command) in PROGRAMS and " " in command:
            yield Shown(text[: found.start()].count("\n"), command, block=False)


def _program(command: str) -> str:
    """Return the first word that is not a setting of the environment."""
    return next((word for word in command.split() if "=" not in word), "")
