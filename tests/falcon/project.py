"""A vertical project whose job trains in shares: a bank, two shops and a notary."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from tests.vertical.project import ROLES, Project

Floats = NDArray[np.float64]
DATA_PARTIES = [name for name, role in ROLES.items() if role != "key-node"]
# One batch of all rows, and weights as they are: whatever the order of the rows, the weights are the same.
REPEATABLE = (
    'falcon.unsafe=["weight-bits"]',
    "falcon.batch_rows=1000",
    "falcon.validation_fraction=0",
    "split.test_fraction=0",
    'falcon.schedule="constant"',
)

# For what does not depend on it: no MACs, one batch of all rows, and no figures of test rows, which are half of a
# job's time; 216 rows are trained on, as of the 300 of a whole job. JUDGED holds out 19 more, that may end it.
JUDGED = 'security = "semi-honest"\nbatch_rows = 1000\n[split]\ntest_fraction = 0\n'
QUICK = f"validation_fraction = 0\n{JUDGED}"


def make(root: Path, *, rows: int = 300, epochs: int = 3, options: str = "") -> Project:
    """Args:
    options: lines of the job's `[falcon]`, and tables after it.
    """
    project = Project.make(root, rows=rows)
    job = (root / "job.toml").read_text()
    parties = job[job.index("[parties.") :]
    head = 'name = "shared"\nprotocol = "falcon"\nseed = 5\n[align]\nmin_common = 50\n[falcon]\n'
    head += f"epochs = {epochs}\n{options}"
    (root / "job.toml").write_text(head + parties)
    for name in ROLES:
        path = root / f"{name}.toml"
        lines = [
            line
            for line in path.read_text().splitlines()
            if not line.startswith(("max_epsilon", "unsafe", "min_linked"))
        ]
        text = "\n".join(lines).replace('["taylor", "predict"]', '["falcon", "predict"]\nunsafe = ["weight-bits"]')
        path.write_text(text + "\n")
    return project


def make_quick(root: Path) -> Project:
    return make(root, rows=216, epochs=2, options=QUICK)


def make_judged(root: Path) -> Project:
    return make(root, rows=235, epochs=2, options=JUDGED)


@dataclass(frozen=True)
class Begun:
    """What tests begin with, made once: each has all files of it in a folder of its own.

    Attributes:
        session: of the training that was done, or lost, here.
    """

    root: Path
    session: str

    @classmethod
    def by(cls, root: Path, train: Callable[[Project], str], made: Callable[[Path], Project] = make) -> Begun:
        return cls(root, train(made(root)))

    def copied(self, root: Path) -> Project:
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return Project(root)


def weights(root: Path, session: str) -> dict[str, Floats]:
    """By party, its intercept last."""
    found = {}
    for name in DATA_PARTIES:
        part = json.loads((root / f"state/{name}/models/{session}/model.json").read_text())
        found[name] = np.array([*part["weights"].values(), *([part["intercept"]] if "intercept" in part else [])])
    return found


def report(root: Path, session: str, name: str = "bank") -> dict[str, object]:
    return dict(json.loads((root / f"state/{name}/models/{session}/report.json").read_text()))


def table(root: Path) -> tuple[Floats, NDArray[np.int64]]:
    """All columns, the bank's first, and labels, by id."""
    read = {name: pyarrow.csv.read_csv(root / f"{name}.csv").sort_by("id") for name in DATA_PARTIES}
    columns = [
        read[name][column].to_numpy() for name in DATA_PARTIES for column in read[name].column_names if column[0] == "x"
    ]
    return np.column_stack(columns), read["bank"]["bought"].to_numpy()
