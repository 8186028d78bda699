"""An error blames the actual cause: not a policy for a name, nor a `url` for an option of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from blindfit.algorithms.errors import DataError, PolicyRefused
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.coordinator.attack import mechanism, model
from blindfit.coordinator.verify.refit import Refit, SentRows
from tests.command import blindfit
from tests.world.measured import files_of_shop_and_meter

SCALE = Standardiser(("x",), (0,), (0.0,), (1.0,))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    files_of_shop_and_meter(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("dataset", "hint"),
    [
        ("rowz", "did you mean rows? the datasets of that file are rows"),
        ("else", "the datasets of that file are rows"),
    ],
)
def test_a_dataset_that_the_job_misspells(files: Path, dataset: str, hint: str) -> None:
    done = blindfit(files, "run", "job.toml", "--set", f"parties.shop.dataset={dataset}", "--out", "out")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"error: parties.shop.dataset: shop.toml has no dataset named {dataset}",
        f"hint: {hint}",
    ]


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("dataset", "correct parties.bank.dataset in the job, or have bank's operator add it to its [datasets]"),
        ("role", "correct parties.bank.role in the job"),
        ("parties", "correct [parties] in the job"),
        ("peers", "have the operator of bank add it to [peers], with its role"),
        ("privacy.epsilon", "lower privacy.epsilon, or have bank's operator raise policy.max_epsilon"),
    ],
)
def test_a_policy_is_named_for_what_it_decides(field: str, hint: str) -> None:
    assert PolicyRefused(party="bank", field=field, reason="so").hint == hint


@pytest.mark.parametrize(
    ("read", "hint"),
    [
        (lambda path: model._read(path, "members", SCALE, "y", "id"), "correct `--members`"),
        (lambda path: mechanism.read_labels(f"{path}:y"), "correct `--labels`"),
        (lambda path: Refit(str(path), "id", SentRows(b"", [], []))._features(SCALE), "correct `--features`"),
    ],
)
def test_a_file_that_an_option_names(tmp_path: Path, read: Callable[[Path], object], hint: str) -> None:
    with pytest.raises(DataError, match=r"none\.csv: the file does not exist( \(|$)") as refused:
        read(tmp_path / "none.csv")
    assert refused.value.hint == hint
