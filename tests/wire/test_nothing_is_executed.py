"""In the syntax tree, nothing in the packages can turn received bytes into code or objects of any class."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.each_case import each_case

ROOT = Path(__file__).parents[2]
PACKAGES = ("algorithms", "parties", "coordinator", "blindfit")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

FORBIDDEN_MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "copyreg", "code", "codeop", "runpy",
    "ctypes", "xmlrpc", "yaml", "jsonpickle",
}  # fmt: skip
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
FORBIDDEN_ATTRIBUTES = {
    "joblib.load", "yaml.load", "yaml.unsafe_load", "numpy.load", "np.load", "os.system", "os.popen",
    "os.execv", "os.execvp", "os.spawnv", "importlib.import_module", "pd.read_pickle", "torch.load",
    "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell",
}  # fmt: skip
MAY_START_PROCESSES = {
    "coordinator/running/launcher.py",
    "coordinator/running/nursery.py",  # this command line again
    "coordinator/running/network/relays.py",  # this Python, with a module of ours
}
MAY_CALL_MACHINE_CODE = {
    "algorithms/llvm.py",  # the kernels' own texts, constants; checked against GMP and Python's integers
    "parties/work/memory.py",  # mallopt of the C library, with two constants
}
MAY_IMPORT_BY_NAME = {  # names of a table in the file
    "blindfit/__init__.py",  # keeps the import of blindfit quick
    "coordinator/running/forking.py",
}
# Where bytes become numbers: each of these checks length and range, or reads only what this party wrote.
MAY_READ_BUFFERS = {
    "parties/wire/codec.py",  # messages: length against shape, width, range
    "parties/measurement/codec.py",  # weight rows: length against the ids
    "algorithms/protocols/walr/roles.py",  # flags of counted rows: length against the rows
    "algorithms/protocols/label_dp/release.py",  # flags of withheld labels: length against the labels
    "parties/data/id_hash.py",  # our own keys, and Arrow's own buffers
    "parties/data/content_digest.py",  # our own digests
    "parties/snapshots/people.py",  # our own digests and bits
    "algorithms/randomness.py",  # our own hashes
    "algorithms/sharing/prg.py",  # our own random words
    "parties/work/memory.py",  # our own copies
    "parties/measurement/mapped.py",  # our own files
    "algorithms/paillier/randomisers.py",  # our own random digits
    "algorithms/privacy/label_mechanisms/drawing.py",  # our own random words
    "algorithms/privacy/noisy_iterations.py",  # our own random words
    "algorithms/paillier/vector_unit/unit.py",  # numbers that were integers already, each as long as the modulus
    "algorithms/paillier/weighted_sums.py",  # our own integers
    "algorithms/alignment/psi.py",  # our own points
    "algorithms/alignment/clk.py",  # our own digests
    "algorithms/protocols/predict.py",  # our own hash of a seed, as long as the rows
}


def name_of(node: ast.expr) -> str:
    """Return "a.b.c" for such an expression, otherwise an empty string."""
    if isinstance(node, ast.Attribute) and (base := name_of(node.value)):
        return f"{base}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def offences(source: str, file: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names):
                modules = [module or "", *(f"{module}.{alias.name}" for alias in names)]
            case _:
                modules = []
        for module in modules:
            if module == "ctypes" and file in MAY_CALL_MACHINE_CODE:
                continue
            if module.split(".")[0] in FORBIDDEN_MODULES or module in FORBIDDEN_ATTRIBUTES:
                yield module
            if module.split(".")[0] == "subprocess" and file not in MAY_START_PROCESSES:
                yield module
            if module in ("numpy.frombuffer", "numpy.fromfile"):
                yield module
        if isinstance(node, ast.Name) and node.id in FORBIDDEN_CALLS:
            yield node.id
        if isinstance(node, ast.Attribute):
            name = name_of(node)
            if name == "importlib.import_module" and file in MAY_IMPORT_BY_NAME:
                continue
            if name in FORBIDDEN_ATTRIBUTES or name.split(".")[0] == "builtins":
                yield name
            if node.attr in ("frombuffer", "fromfile") and file not in MAY_READ_BUFFERS:
                yield f"{name} outside the listed files"
        if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell"):
            yield node.arg


@each_case("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_executes_nothing(path: Path) -> None:
    assert list(offences(path.read_text("utf-8"), str(path.relative_to(ROOT)))) == []


@each_case(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import os.path, marshal",
        "from numpy import load",
        "import numpy as np\nnp.load('x')",
        "numpy.load(f, allow_pickle=True)",
        "f = eval\nf('1')",
        "getattr(builtins.eval, 'x')",
        "exec('1')",
        "joblib.load('x')",
        "yaml.load('x')",
        "import subprocess",
        "from subprocess import run",
        "os.system('x')",
        "np.frombuffer(b'')",
        "from numpy import frombuffer",
    ],
)
def test_the_test_can_fail(source: str) -> None:
    assert list(offences(source, "parties/new.py"))


def test_the_lists_name_files_that_need_it() -> None:
    for file in MAY_READ_BUFFERS:
        assert re.search("frombuffer|fromfile", (ROOT / file).read_text("utf-8")), file
    assert len(FILES) > 50
