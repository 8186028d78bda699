"""In the whole job, one row changes a release by at most the sensitivity that the noise covers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.estimators import private_descent
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.algorithms.statistics.dp_lr.descent import CLIP_STEPS
from tests.dp_lr.conftest import Clinic

ONE_STEP = {"iterations": 1, "feature_bounds": ["*:0:200"]}
REPLACED = {**ONE_STEP, "neighbours": "replace-one"}
ADDED = {**ONE_STEP, "neighbours": "add-or-remove", "public_rows": 600}
EPSILON, DELTA = 0.5, 1e-5


class Watched:
    """The sums of a job before their noise, and the noise's standard deviation, in grid steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sums: list[np.ndarray] = []
        self.stds: list[float] = []
        make = private_descent._release

        def release(multiplier: float, privacy: Any) -> Callable[[Any], list[int]]:
            add_noise = make(multiplier, privacy)

            def watched(sums: Any) -> list[int]:
                self.sums.append(np.array(sums, dtype=np.int64))
                drawn = np.array([np.array(add_noise([0] * 64)) for _ in range(40)], dtype=np.float64)
                self.stds.append(float(drawn.std()))
                return add_noise(sums)

            return watched

        monkeypatch.setattr(private_descent, "_release", release)


def change(clinic: Clinic, edit: Callable[[list[str], int], list[str]]) -> None:
    """Change a row that is trained on, and publish the table."""
    path = clinic.root / "patients.csv"
    header, *lines = path.read_text().splitlines()
    ids = [line.split(",")[0].strip('"') for line in lines]
    trained = ~PublicRandomness.from_seed(3).choose("split", ids, 0.2)
    path.write_text("\n".join([header, *edit(lines, int(np.flatnonzero(trained)[5]))]) + "\n")
    clinic.publish("clinic", "patients")


def another(lines: list[str], place: int) -> list[str]:
    """Change the row as far as the bounds allow, and into the other class."""
    name, *_, label = lines[place].split(",")
    lines[place] = ",".join([name, "200", "200", "0", "0" if label == "1" else "1"])
    return lines


def none(lines: list[str], place: int) -> list[str]:
    return lines[:place] + lines[place + 1 :]


@pytest.mark.parametrize(
    ("options", "edit", "sensitivity"), [(REPLACED, another, 2), (ADDED, none, 1)], ids=["replace one", "remove one"]
)
def test_one_row_moves_the_sums_by_no_more_than_the_noise_is_made_for(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], edit: Any, sensitivity: int
) -> None:
    watched = Watched(monkeypatch)
    asked: dict[str, Any] = {"dp_lr": options, "privacy": {"epsilon": EPSILON, "delta": DELTA}}
    clinic.train("s1", **asked)
    change(clinic, edit)
    clinic.train("s2", **asked)
    one, other = watched.sums
    moved = float(np.linalg.norm(one - other))
    assert 0 < moved <= sensitivity * CLIP_STEPS
    std = analytic_noise_multiplier(EPSILON, DELTA) * sensitivity * CLIP_STEPS
    for drawn in watched.stds:  # 2,560 draws each: 1.4% is one standard deviation, so 2e-12
        assert abs(drawn / std - 1) < 0.1
