"""Modules that a command imports before it does anything: every job waits for them. The tests count
them, not seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

HEAVY = {
    *("numpy", "scipy", "sklearn", "pyarrow", "sqlalchemy", "joblib", "jinja2", "matplotlib", "dp_accounting"),
    *("llvmlite", "grpc", "asyncio", "cryptography", "nacl", "gmpy2", "structlog"),
}
"""Modules that cost more than a few milliseconds."""

AT_THE_END = """
import json, sys
from blindfit.__main__ import main
for arguments in {commands!r}:
    sys.argv = ["blindfit", *arguments]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, arguments
sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""

WHEN_READY = """
import json, pathlib, sys

write = pathlib.Path.write_text

def told(path, text):
    if path.suffix == ".ready":
        idle = sorted(sys.modules)
        import pyarrow
        pyarrow.array(["a"])  # as the first job does
        write(pathlib.Path("modules"), json.dumps([idle, sorted(sys.modules)]))
    return write(path, text)

pathlib.Path.write_text = told
sys.argv.append("--no-first-snapshots")
from blindfit.__main__ import main
main()
"""


def imported(directory: Path, *commands: list[str]) -> set[str]:
    """Return the modules that these commands import, one after the other in one process."""
    script = AT_THE_END.format(commands=commands)
    done = subprocess.run([sys.executable, "-c", script], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_and_version_import_no_library_but_the_command_lines_own(tmp_path):
    modules = imported(tmp_path, ["--help"], ["run", "--help"], ["certs", "--help"], ["version"], ["--version"])
    assert not modules & HEAVY
    assert {m for m in modules if m.startswith("blindfit.parties.")} <= {"blindfit.parties.identity"}
    assert {m.split(".")[2] for m in modules if m.startswith("blindfit.coordinator.")} == {"cli", "terminal"}


def test_show_reads_a_job_and_opens_nothing(tmp_path):
    jobs = sorted(EXAMPLES.glob("*/job.toml"))
    assert len(jobs) > 4
    assert imported(tmp_path, *(["show", str(job)] for job in jobs)) & HEAVY <= {"numpy", "gmpy2"}


WARM = """
import json, sys
import blindfit.coordinator.cli.main
from blindfit.coordinator.running import forking
forking.import_for(["walr"])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def warm() -> set[str]:
    """Modules of a nursery that forks parties whose policy allows walr."""
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("name", ["shop", "meter"])
def test_a_party_that_is_up_has_what_its_systems_need_and_no_more(project, name, warm):
    """The first job that needs a solver, a database, a cluster, a page or a plot imports it."""
    project.start(name, program=("-c", WHEN_READY))
    idle, modules = (set(names) for names in json.loads(project.path("modules").read_text()))
    assert "pyarrow.lib" not in idle  # 37 MiB; the name "pyarrow" stands for what is loaded with the first table
    alone = {module for module in modules - warm if module.startswith("blindfit.")} - {"blindfit.__main__"}
    assert not alone, "each party of a run would import these itself"
    assert modules & HEAVY <= {"asyncio", "numpy", "pyarrow", "grpc", "cryptography", "gmpy2", "structlog"}
    assert "pandas" not in modules  # pyarrow would import it
    assert not {m for m in modules if m.startswith("blindfit.coordinator.report")}
    assert not {m for m in modules if m.startswith("blindfit.parties.taylor")}  # its policy allows only walr
