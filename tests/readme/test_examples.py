"""The README's examples run, and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_example_of_encrypted_vectors_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.S) if "import paillier" in block]
    exec(compile(example, "README.md", "exec"), {})
    promised = re.search(r"# (\[[^\]]*\])$", example.strip())
    assert promised is not None
    assert capsys.readouterr().out.strip() == promised[1]
    assert len([line for line in example.splitlines() if line]) == 10
