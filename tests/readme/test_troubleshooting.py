"""The page about troubleshooting quotes messages that the program has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from blindfit.coordinator.terminal.exit_codes import ExitCode

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| `([^`]+)` \| (\d+) \|", (ROOT / "docs/guides/troubleshooting.md").read_text("utf-8"), re.M)


def test_every_quoted_message_is_one_of_the_program() -> None:
    strings = " ".join(
        node.value
        for folder in ("algorithms", "coordinator", "parties")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert len(ROWS) >= 20
    assert [message for message, _ in ROWS if message not in strings] == []


def test_every_status_is_one_of_the_program() -> None:
    assert {int(status) for _, status in ROWS} <= set(ExitCode)
