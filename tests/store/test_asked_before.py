"""A question from before an upgrade is answered byte for byte and charged nothing: whole jobs on what parties keep.

`version_0/worlds.tar.xz` has the databases, keys, snapshots and models of all parties of each job, as the first version
left them. Today's code runs each job again here, under another session's name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from blindfit.parties.store.database import Store
from blindfit.parties.vertical import linkages
from tests.certificates import demo_authority
from tests.interference import world
from tests.interference.systems import SYSTEMS
from tests.interference.views import Record
from tests.store.versions import HERE, NEWEST, version_of

WORLDS = HERE / "version_0" / "worlds.tar.xz"
BEFORE, AGAIN = "s1", "s2"


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Any:
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    shutil.unpack_archive(WORLDS, folder)
    return folder


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_authority(tmp_path_factory.mktemp("asked-before"))


@dataclass
class World:
    """
    Attributes:
        before: content of each party's database that counts something, when the job had run once.
    """

    root: Path
    before: dict[str, dict[str, list[Any]]]

    @classmethod
    def ran_again(cls, name: str, root: Path, authority: Path) -> World:
        case, before = SYSTEMS[name](), counted_in(root)
        if name == "walr-holders":  # the scores of so few columns were not rounded then
            case = case.with_dataset("bank", models_per_row="unlimited")
        with world._running(authority, root, Record()) as recorder:
            world.files_of(case, root, authority)
            error = asyncio.run(world._run_job(case, root, authority, recorder, AGAIN, ()))
        assert error == ""
        return cls(root, before)

    def models(self, session: str) -> dict[str, Any]:
        """Return every number and text of the session's models, by party and place in the file."""
        files = sorted(self.root.glob(f"state/*/models/{session}/model.json"))
        return dict(_flat([(path.parts[-4], json.loads(path.read_text())) for path in files], session))

    def releases(self, session: str) -> list[Any]:
        """Return the answers and proofs of the servers of WALR releases."""
        files = sorted(self.root.glob(f"state/*/models/{session}/release.json"))
        servers = [server for path in files for server in json.loads(path.read_text())["parts"]["servers"]]
        return [(server["release"], server["entry"], server["receipt"]) for server in servers]


def _flat(content: Any, session: str, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield leaves, without what differs from run to run.

    These are the signature, whether it was charged at that moment, and the name of the session that trained, which
    earlier versions did not write."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            if name not in ("signature", "charged_now", "trained_in"):
                yield from _flat(value, session, f"{place}.{name}")
    elif isinstance(content, list | tuple):
        for number, value in enumerate(content):
            yield from _flat(value, session, f"{place}.{number}")
    else:
        yield place, None if content == session else content


def numbers_of(leaves: Mapping[str, Any]) -> dict[str, float]:
    return {place: value for place, value in leaves.items() if isinstance(value, float)}


def texts_of(leaves: Mapping[str, Any]) -> dict[str, Any]:
    return {place: value for place, value in leaves.items() if not isinstance(value, float)}


COUNTED = (
    "SELECT line FROM ledger ORDER BY position",
    "SELECT requester, request_id, request_digest, answer, position FROM answers ORDER BY 1, 2",
    "SELECT requester, request_id, settings, fit FROM block_fits ORDER BY 1, 2",
    "SELECT digest, position, directory, labels_sha256, answer FROM label_releases ORDER BY 1",
    "SELECT about, learner, question, bits FROM disclosures WHERE subject = 'columns' ORDER BY 1, 2, 3",
    "SELECT about, question FROM disclosures WHERE subject = 'membership' AND event NOT IN "  # counted since
    f"('{linkages.BY_IDS}', '{linkages.FOUND}', '{linkages.COMMON_ROWS}') ORDER BY 1, 2",
    "SELECT context, begun, key FROM draws ORDER BY 1",
    "SELECT id FROM snapshots ORDER BY 1",
)
LABELS = "SELECT question, bits FROM disclosures WHERE subject = 'labels' ORDER BY position"
MODELS = "SELECT DISTINCT learner, substr(question, 1, 64) FROM disclosures WHERE event = 'scores' ORDER BY 1, 2"


def counted_in(root: Path) -> dict[str, dict[str, list[Any]]]:
    """Return everything that is charged, counted, answered or drawn, of each party, in today's tables."""
    found = {}
    for path in sorted(root.glob("state/*/party.sqlite")):
        Store(path).close()
        with contextlib.closing(sqlite3.connect(path)) as database:
            found[path.parent.name] = {
                query: database.execute(query).fetchall() for query in (*COUNTED, LABELS, MODELS)
            }
    return found


def run(worlds: Path, authority: Path, name: str) -> World:
    return World.ran_again(name, worlds / name, authority)


WALR = ("walr", "walr-holders", "walr-split", "walr-hidden", "walr-shares")
NAMED_SINCE = {"split-labels": "two-servers", "paillier": "encrypted-rows", "shares": "shared-rows"}
"""Values of options with other names today; a report uses today's names."""
COMPUTED_AGAIN = 1e-9
"""Largest relative difference of a number that another machine computes from the same answer."""


@pytest.mark.parametrize("name", [*WALR, "evaluate", "label-dp", "dp-lr", "taylor-label-dp", "falcon-private"])
def test_a_question_of_before_is_answered_the_same_for_nothing(name: str, worlds: Path, authority: Path) -> None:
    """A training under label DP draws its noise again, from the same secret; all others have a stored answer."""
    again = run(worlds, authority, name)
    after = counted_in(again.root)
    assert after == again.before
    assert any(found[COUNTED[0]] for found in after.values())
    assert again.releases(AGAIN) == again.releases(BEFORE)
    assert bool(again.releases(AGAIN)) == (name in WALR)
    before, now = again.models(BEFORE), again.models(AGAIN)
    assert bool(now) == (name != "evaluate")
    assert texts_of(now) == {place: NAMED_SINCE.get(text, text) for place, text in texts_of(before).items()}
    assert numbers_of(now) == pytest.approx(numbers_of(before), rel=COMPUTED_AGAIN)
    assert {version_of(path) for path in again.root.glob("state/*/party.sqlite")} == {NEWEST}


@pytest.mark.parametrize("name", ["taylor", "taylor-linkage", "predict"])
def test_what_repeats_give_away_is_counted_once_for_the_same_question(name: str, worlds: Path, authority: Path) -> None:
    """Linkages, models of a row and draws from before the upgrade equal those after it.

    A batch layout counts once more: the jitter of labels is drawn again, by person, and so gives new equations.
    """
    again = run(worlds, authority, name)
    after = counted_in(again.root)
    counts: dict[str, Callable[[dict[str, list[Any]]], int]] = {
        "taylor": lambda found: len(found[LABELS]),
        "taylor-linkage": lambda found: len(next(v for q, v in found.items() if "'membership'" in q)),
        "predict": lambda found: len(found[MODELS]),
    }
    once_more = int(name == "taylor")
    was = {party: counts[name](found) for party, found in again.before.items()}
    assert {p: counts[name](f) for p, f in after.items()} == {p: n and n + once_more for p, n in was.items()}
    assert any(counts[name](found) for found in after.values())
