"""The project of tests/falcon with differential privacy: every data party has a budget."""

from __future__ import annotations

from pathlib import Path

from blindfit.algorithms.privacy.ledger import LedgerEntry
from blindfit.parties.store.database import Store
from tests.falcon import project
from tests.falcon.project import DATA_PARTIES
from tests.vertical.project import Project

PRIVATE = (
    "privacy.epsilon=1",
    "split.test_fraction=0",
    "falcon.validation_fraction=0",
    'falcon.feature_bounds=["*:-4:4"]',
    "falcon.l2=0",
    # Nothing that is charged depends on these; tests/falcon/test_noise.py has MACs and several batches under noise.
    "falcon.batch_rows=1000",
    'falcon.security="semi-honest"',
)


def make(root: Path, *, budget: float = 3.0, epochs: int = 2) -> Project:
    made = project.make(root, epochs=epochs)
    for name in DATA_PARTIES:
        path = root / f"{name}.toml"
        text = path.read_text().replace("[policy]\n", "[policy]\nmax_epsilon = 8.0\n")
        if name != "bank":
            text = text.replace('id = "id"\n', 'id = "id"\npopulation = "people"\n')
            text += "[populations.people]\nepsilon = 3.0\ndelta = 1e-5\n"
        path.write_text(text.replace("epsilon = 3.0\n", f"epsilon = {budget}\n"))
    path = root / "notary.toml"
    path.write_text(path.read_text().replace("[policy]\n", "[policy]\nmax_epsilon = 8.0\n"))
    return made


def set_budget(root: Path, name: str, epsilon: float) -> None:
    path = root / f"{name}.toml"
    head, tail = path.read_text().split("[populations.people]\n")
    path.write_text(f"{head}[populations.people]\nepsilon = {epsilon}\n{tail.partition(chr(10))[2]}")


def charged(root: Path) -> dict[str, list[LedgerEntry]]:
    """What each data party's ledger holds."""
    found = {}
    for name in DATA_PARTIES:
        path = root / f"state/{name}/party.sqlite"
        found[name] = Store(path).reader().ledger() if path.exists() else []
    return found


def charges(root: Path) -> dict[str, int]:
    return {name: len(entries) for name, entries in charged(root).items()}
