"""What a command imports before it does anything: every job waits for it. Modules are counted, never seconds."""

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
"""What costs more than a few milliseconds."""

AT_THE_END = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write("\\n" + json.dumps(sorted(sys.modules))))
sys.argv = ["blindfit", *{arguments!r}]
from blindfit.__main__ import main
main()
"""

WHEN_READY = """
import json, pathlib, sys
from blindfit.parties import node

serve = node.serve

async def told(settings, base_dir, on_ready):
    def ready(port):
        pathlib.Path("modules").write_text(json.dumps(sorted(sys.modules)))
        on_ready(port)
    await serve(settings, base_dir, ready)

node.serve = told
from blindfit.__main__ import main
main()
"""


def imported(directory: Path, *arguments: str) -> set[str]:
    script = AT_THE_END.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", script], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["certs", "--help"], ["version"]])
def test_help_and_version_import_no_library_but_the_command_lines_own(tmp_path, arguments):
    modules = imported(tmp_path, *arguments)
    assert not modules & HEAVY
    assert {m for m in modules if m.startswith("blindfit.parties.")} <= {"blindfit.parties.identity"}


@pytest.mark.parametrize("job", sorted(EXAMPLES.glob("*/job.toml")), ids=lambda job: job.parent.name)
def test_show_reads_a_job_and_opens_nothing(tmp_path, job):
    assert imported(tmp_path, "show", str(job)) & HEAVY <= {"numpy", "gmpy2"}


@pytest.mark.parametrize("name", ["shop", "meter"])
def test_a_party_that_is_up_has_what_its_systems_need_and_no_more(project, name):
    """A solver, a database, a cluster, a page or a plot is imported by the first job that needs it."""
    project.start(name, program=("-c", WHEN_READY))
    modules = set(json.loads(project.path("modules").read_text()))
    assert modules & HEAVY <= {"asyncio", "numpy", "pyarrow", "grpc", "cryptography", "gmpy2", "structlog"}
    assert not {m for m in modules if m.startswith("blindfit.coordinator.report")}
    assert not {m for m in modules if m.startswith("blindfit.parties.taylor")}  # its policy allows walr alone
