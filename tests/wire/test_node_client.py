"""A client in Node.js asks a measurement server for a noisy sum, with nothing of Blindfit but a .proto file."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.certificates import make_identity
from tests.wire.meter import N_ROWS, metering

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "examples/node_client"
INSTALLED = ROOT / ".venv/node"  # kept between runs: a copy of the client, and its packages


def installed_client() -> Path:
    """Return the client in a folder with its packages; skip where they cannot be had, but never on CI."""
    folder = INSTALLED / "examples/node_client"
    folder.mkdir(parents=True, exist_ok=True)
    with (INSTALLED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process of the tests may install it
        reason = _bring_up_to_date(folder)
    if reason:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
    return folder


def _bring_up_to_date(folder: Path) -> str:
    """Copy the client and install its packages where they changed; return why that failed, or an empty text."""
    sources = [path for path in CLIENT.iterdir() if path.is_file()]
    copies = [folder / path.name for path in sources]
    if all(
        copy.exists() and copy.read_bytes() == path.read_bytes() for path, copy in zip(sources, copies, strict=True)
    ):
        return ""
    shutil.rmtree(folder)
    folder.mkdir()
    if reason := _install(folder):
        return reason
    if not (INSTALLED / "protos").exists():
        (INSTALLED / "protos").symlink_to(ROOT / "protos")
    for path in sources:
        shutil.copy(path, folder)
    return ""


def _install(folder: Path) -> str:
    """Install the packages of the lock file; return why that failed, or an empty text."""
    if not shutil.which("npm") or not shutil.which("node"):
        return "node and npm are not installed"
    for name in ("package.json", "package-lock.json"):
        shutil.copy(CLIENT / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        return "npm reaches no registry"
    return done.stderr if done.returncode else ""


async def ask(authority: Path, directory: Path, rows: str, *, epsilon: str = "1") -> tuple[int, str, str]:
    """Run the client against a small measurement server; return its exit status and what it prints."""
    directory.mkdir(exist_ok=True)
    (directory / "rows.csv").write_text(rows)
    identity = make_identity(authority, "shop").files.certificate.parent
    async with metering(authority, directory) as node:
        process = await asyncio.create_subprocess_exec(
            "node",
            installed_client() / "client.mjs",
            f"localhost:{node.port}",
            "meter",
            identity,
            "labels",
            directory / "rows.csv",
            epsilon,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), errors.decode()


def rows_of(n: int) -> str:
    """Return a table of ids of the server and two features, one of which makes rows longer than 1."""
    return "id,age,höhe\n" + "".join(f" {i} ,{0.1 * i},-0.25\n" for i in range(n))


async def test_it_gets_a_noisy_sum_of_every_row(authority: Path, tmp_path: Path) -> None:
    status, out, errors = await ask(authority, tmp_path, rows_of(N_ROWS))
    assert (status, errors) == (0, "")
    answer = json.loads(out)
    assert (answer["rows_kept"], answer["rows_scaled"]) == (N_ROWS, 0)
    assert set(answer["means"]) == {"age", "höhe", "constant"}
    assert all(abs(mean) < 1 + 12 * answer["noise_std"] for mean in answer["means"].values())  # 12 deviations: 4e-33
    assert 0 < answer["noise_std"] < 1
    assert json.loads(answer["receipt"]["statement"])["server"] == "meter"


async def test_a_refusal_is_one_line_and_a_status(authority: Path, tmp_path: Path) -> None:
    status, out, errors = await ask(authority, tmp_path, rows_of(N_ROWS), epsilon="40")
    assert (status, out) == (1, "")
    assert errors.startswith(
        "PERMISSION_DENIED: meter refuses the request: privacy.epsilon: 40 is more than its max_epsilon"
    )
    status, out, errors = await ask(authority, tmp_path / "again", rows_of(N_ROWS + 1))
    assert errors.startswith("FAILED_PRECONDITION: meter cannot answer this request")
