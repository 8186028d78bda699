"""The documents' snippets of Python run, on matching rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

DOCS = Path(__file__).parents[2] / "docs"


def snippets(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.S)


def test_the_example_of_label_mechanisms_runs() -> None:
    *_, example = snippets("guides/release_labels.md")  # the others need a run
    labels = np.random.default_rng(1).random(20_000)
    names: dict[str, Any] = {"labels": labels}
    exec(compile(example, "release_labels.md", "exec"), names)
    assert names["unbiased"].mean() == pytest.approx(labels.mean(), abs=0.035)  # 6.7 standard errors: 2e-11
    assert names["fitted"].epsilon == pytest.approx(2.0)


def test_the_example_of_dp_lr_runs(capsys: pytest.CaptureFixture[str]) -> None:
    *_, example = snippets("guides/private_model.md")
    X, y = make_classification(1200, 5, random_state=1)
    names: dict[str, Any] = {
        "features": X[200:],
        "labels": y[200:],
        "public_features": X[:200],
        "public_labels": y[:200],
    }
    exec(compile(example, "private_model.md", "exec"), names)
    assert "(1, 1e-05)-differential privacy" in capsys.readouterr().out
    assert names["model"].score(X[200:], y[200:]) > 0.7


NAMED = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py): ([^`]+)`")


@pytest.mark.parametrize("page", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))
def test_what_a_page_names_in_a_file_is_there(page: str) -> None:
    for path, names in NAMED.findall((DOCS / page).read_text()):
        found = [file for top in ("", "algorithms/") if (file := DOCS.parent / top / path).exists()]
        assert found, path
        text = found[0].read_text()
        for name in re.findall(r"[A-Za-z_]\w*(?=$|,|\.| |\()", names.split("(")[0]):
            assert re.search(rf"\b(def|class) {name}\b|^{name}\b", text, re.M), f"{path}: {name}"
