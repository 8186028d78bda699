"""The page of encrypted vectors has an example that runs, and prints the output that the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/explanation/paillier.md").read_text()


def test_the_example_of_encrypted_vectors_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "import paillier" in block]
    exec(compile(example, "paillier.md", "exec"), {})
    promised = re.search(r"# (\[[^\]]*\])$", example.strip())
    assert promised is not None
    assert capsys.readouterr().out.strip() == promised[1]
    assert len([line for line in example.splitlines() if line]) == 10
