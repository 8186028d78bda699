"""The wheel takes one name of site-packages, and a user's own modules do not disturb a party."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_OURS = 'raise ImportError("not Blindfit\'s")\n'
QUICKLY = {  # the tests check that its processes follow orders, not how fast they are
    "KEY_BITS = (2048, 3072)": "KEY_BITS = (2048,)",
    "BATCH = 2048": "BATCH = 64",
    "ROUNDS = 32": "ROUNDS = 1",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "wheel", str(ROOT), "--no-build-isolation", "--no-deps", "--wheel-dir", str(directory)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (built,) = directory.glob("blindfit-*.whl")
    return built


def test_it_takes_one_name(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"blindfit"}
    ours = {
        f"blindfit/{path.relative_to(ROOT)}" for top in ("algorithms", "parties") for path in (ROOT / top).rglob("*.py")
    }
    assert ours <= set(names)
    assert {"blindfit/coordinator/report/base.html.j2", "blindfit/coordinator/report/style.css"} <= set(names)
    scorer = zipfile.ZipFile(wheel).read("blindfit/coordinator/export_model/scorer.py.txt")
    assert scorer == (ROOT / "docs" / "scorer.py").read_bytes()  # the files of an export to Python
    assert "blindfit/protos/exchange_pb2_grpc.py" in names
    assert "blindfit/py.typed" in names  # otherwise type checkers take every name of ours for Any


def edit(path: Path, changes: dict[str, str]) -> None:
    text = path.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def test_a_job_beside_packages_and_modules_of_the_same_names(wheel, project, tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)  # pip does the same, and makes scripts
    edit(site / "blindfit/coordinator/operator/benchmark.py", QUICKLY)
    for name in ("algorithms", "parties"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(NOT_OURS)
    for name in ("algorithms", "random"):
        project.path(f"{name}.py").write_text(NOT_OURS)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "200"}
        return subprocess.run(
            [sys.executable, *arguments], cwd=project.root, capture_output=True, text=True, env=environment
        )

    assert str(site) in run("-P", "-c", "import blindfit; print(blindfit.__file__)").stdout
    done = run("-m", "blindfit", "run", "job.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert project.path("out/report.html").exists()
    calibrated = run("-m", "blindfit", "benchmark", "shop.toml")  # the benchmark starts its own processes
    assert calibrated.returncode == 0, calibrated.stderr
