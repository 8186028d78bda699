"""Neither a row nor the number of rows decides how a whole job over TLS ends, and what it costs.

The proposer of a job chooses its options. They may make one row's number too large to compute with, or leave one row
only to train on. Each world is a separate folder; two worlds differ in one row.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.algorithms.messages import ParameterValue
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.dp_lr.model import DPLogisticModel
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.linear.standardised_logistic import StandardisedLogistic
from blindfit.parties.dp_lr import trainer
from blindfit.parties.store.database import Store
from blindfit.parties.training import feature_bounds
from tests.dp_lr.conftest import N_ROWS, NAMES, write_project
from tests.world import World

# The attacks overflow on purpose; a party computes on where pytest would stop at a warning.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

IDS = [f"p{i}" for i in range(N_ROWS)]
DRAWS = PublicRandomness.from_seed(3).draws("split", IDS).astype(float) / 2.0**64
TRAINED, HELD_OUT = IDS[int(DRAWS.argmax())], IDS[int(DRAWS.argmin())]
THRESHOLD = 500.0  # the attacker's threshold; no row of the table is near it
OVERFLOWS_PAST_IT = THRESHOLD / sys.float_info.max
OF_THE_MACHINE = ("timing.", "peak_memory_mib")

Edit = Callable[[list[dict[str, str]]], list[dict[str, str]]]


@dataclass(frozen=True)
class Seen:
    """All that a proposer sees of the job: its end, its report, and its cost."""

    end: str
    told: dict[str, ParameterValue]
    charges: int


def seen(root: Path, edit: Edit, *overrides: str) -> Seen:
    """Run the job in a new world."""
    root.mkdir()
    write_project(root)
    _edit_rows(root / "patients.csv", edit)
    _write_models(root)
    end, told = "", {}
    try:
        World(root).publish("clinic", "archive")
        job = World(root).run("dp_lr={iterations=2}", *overrides)
        summary = job.summaries["clinic"]
        told = {name: value for name, value in summary.items() if not name.startswith(OF_THE_MACHINE)}
    except BlindfitError as error:
        end = f"{type(error).__name__}: {error}"
    store = Store(root / "state/clinic/party.sqlite")
    try:
        return Seen(end, told, len(store.reader().ledger()))
    finally:
        store.close()


def _edit_rows(path: Path, edit: Edit) -> None:
    with path.open() as file:
        rows = edit(list(csv.DictReader(file)))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def _write_models(root: Path) -> None:
    """Write models of public rows, in columns with a tiny deviation: a proposer may name them as a job's start."""
    scale = Standardiser(NAMES, (0, 1, 2), (0.0,) * 3, (OVERFLOWS_PAST_IT,) * 3)
    (root / "tiny.json").write_text(Pretrained(scale, (0.0,) * 3, 0.0).to_json())
    (root / "tiny-opposite.json").write_text(Pretrained(scale, (1.0, -1.0, 0.0), 0.0).to_json())


def with_values(row: str, **values: float) -> Edit:
    written = {name: repr(value) for name, value in values.items()}
    return lambda rows: [{**each, **written} if each["id"] == row else each for each in rows]


def without(row: str) -> Edit:
    return lambda rows: [each for each in rows if each["id"] != row]


def as_it_is(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return rows


def both(tmp_path: Path, one: Edit, other: Edit, *overrides: str) -> tuple[Seen, Seen]:
    return seen(tmp_path / "one", one, *overrides), seen(tmp_path / "other", other, *overrides)


# --- one row's number ----------------------------------------------------------------------------------

PAST_IT = with_values(TRAINED, pulse=2 * THRESHOLD)
FROM_A_FILE = 'dp_lr.init="tiny.json"'
BY_BOUNDS = f'dp_lr.feature_bounds=["*:-1e6:1e6", "pulse:{-OVERFLOWS_PAST_IT!r}:{OVERFLOWS_PAST_IT!r}"]'
COST = "privacy.epsilon=1e-6"


def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Standardiser, "transform_and_clip", Standardiser.transform)


def test_a_number_that_overflows_fails_no_job(tmp_path: Path) -> None:
    one, other = both(tmp_path, as_it_is, PAST_IT, FROM_A_FILE, COST)
    assert one == other
    assert (one.end, one.charges) == ("", 1)


@pytest.mark.parametrize("way", [FROM_A_FILE, BY_BOUNDS], ids=["a file", "bounds"])
def test_a_number_that_overflows_would_be_found_by_halving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The job that fails costs nothing, and reveals that some row is past the threshold."""
    unbounded(monkeypatch)
    monkeypatch.setattr(feature_bounds, "LEAST_WIDTH", 0.0)
    one, other = both(tmp_path, as_it_is, PAST_IT, way, COST)
    assert (one.end, one.charges) == ("", 1)
    assert (other.end.partition(":")[0], other.charges) == ("CannotTakePart", 0)


def test_bounds_that_would_overflow_are_refused_where_the_job_is_read(tmp_path: Path) -> None:
    write_project(tmp_path)
    with pytest.raises(ConfigError, match="must lie within -1e\\+100 and 1e\\+100, at least 1e-100 apart"):
        World(tmp_path).run("dp_lr={}", BY_BOUNDS)


EXTREMES = {
    "narrow bounds": ['dp_lr.feature_bounds=["*:0:1e-100"]', "dp_lr.clip_norm=1e-9", "dp_lr.loss_share=0.5"],
    "a huge rate": ['dp_lr.feature_bounds=["*:-1e100:1e100"]', "dp_lr.learning_rate=1e20", "dp_lr.clip_norm=1e9"],
    "as they were read": ["dp_lr.learning_rate=1e20", "dp_lr.clip_norm=1e9", "dp_lr.shrinkage=1e20"],
    "narrow, with a huge rate": [
        'dp_lr.feature_bounds=["*:0:1e-100"]',
        "dp_lr.learning_rate=1e20",
        "dp_lr.loss_share=1e-300",
    ],
    "a public start": ['dp_lr.public_dataset="archive"', 'dp_lr.feature_bounds=["*:0:1e-100"]', "dp_lr.clip_norm=1e9"],
}


@pytest.mark.parametrize("options", EXTREMES.values(), ids=EXTREMES)
def test_the_largest_numbers_end_no_job(tmp_path: Path, options: list[str]) -> None:
    """These are the largest numbers that a snapshot takes, in a trained row and in a held-out one."""

    def huge(rows: list[dict[str, str]]) -> list[dict[str, str]]:
        for row, sign in ((TRAINED, 1), (HELD_OUT, -1)):
            rows = with_values(row, age=sign * 1e100, dose=-sign * 1e100, pulse=1e100)(rows)
        return rows

    one, other = both(tmp_path, as_it_is, huge, COST, *options)
    assert one == other
    assert (one.end, one.charges) == ("", 1)


# --- a row that is held out, which no release is about -------------------------------------------------------

HELD_OUT_PAST_IT = with_values(HELD_OUT, age=2 * THRESHOLD, dose=2 * THRESHOLD)
KEPT_AT_ITS_START = ('dp_lr.init="tiny-opposite.json"', "dp_lr.learning_rate=1e-20", COST)


def test_a_score_that_overflows_fails_no_job(tmp_path: Path) -> None:
    one, other = both(tmp_path, as_it_is, HELD_OUT_PAST_IT, *KEPT_AT_ITS_START)
    assert one == other
    assert (one.end, one.charges) == ("", 1)


def test_a_score_that_overflows_would_tell_of_a_held_out_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The score is infinity less infinity, after the charge: no release was about this row."""
    monkeypatch.setattr(DPLogisticModel, "scores", StandardisedLogistic.scores)
    one, other = both(tmp_path, as_it_is, HELD_OUT_PAST_IT, *KEPT_AT_ITS_START)
    assert one.end == ""
    assert other.end.startswith("CannotTakePart")


# --- how many rows are trained on ----------------------------------------------------------------------------


ADD_OR_REMOVE = (
    "split.test_fraction=0.5",
    'dp_lr.neighbours="add-or-remove"',
    "dp_lr.public_rows=1_000_000",
    'dp_lr.feature_bounds=["*:0:200"]',
    "dp_lr.loss_share=0.1",
    COST,
)


def leaving(trained: int) -> tuple[Edit, Edit]:
    """Return two worlds, with and without `TRAINED`: in the first this many rows are trained on, and many held out."""
    kept = {IDS[place] for place, draw in enumerate(DRAWS) if draw < 0.5} | {IDS[i] for i in DRAWS.argsort()[-trained:]}

    def few(rows: list[dict[str, str]]) -> list[dict[str, str]]:
        return [each for each in rows if each["id"] in kept]

    return few, lambda rows: without(TRAINED)(few(rows))


@pytest.mark.parametrize("trained", [1, 2], ids=["one or none", "two or one"])
def test_any_number_of_rows_is_trained_on(tmp_path: Path, trained: int) -> None:
    one, other = both(tmp_path, *leaving(trained), *ADD_OR_REMOVE)
    assert one == other
    assert (one.end, one.charges) == ("", 1)


def test_a_least_number_of_rows_would_tell_how_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = trainer.fit_privately

    def of_two_at_least(columns: Any, *rest: Any) -> Any:
        if len(columns) < 2:
            raise ValueError("a minimum of 2 is required")
        return fit(columns, *rest)

    monkeypatch.setattr(trainer, "fit_privately", of_two_at_least)
    one, other = both(tmp_path, *leaving(2), *ADD_OR_REMOVE)
    assert (one.end, one.charges) == ("", 1)
    assert (other.end != "", other.charges) == (True, 0)
