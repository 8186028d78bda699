"""A small project of two parties on disk, and the command line to run it with, as a user would."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from blindfit.parties.identity import authority
from tests.command import Done, Forked, Piped, blindfit, in_a_process
from tests.ports import held_address

N_ROWS = 1500
N_FEATURES = 4

JOB = """
name = "test"
protocol = "walr"
seed = 3
[parties.shop]
role = "active"
config = "shop.toml"
address = "{shop}"
dataset = "rows"
[parties.meter]
role = "measurement"
config = "meter.toml"
address = "{meter}"
dataset = "labels"
[privacy]
epsilon = 1.0
[timeouts]
step_s = 60
reconnect_s = 5
[coordinator]
certificate = "ca/coordinator/certificate.pem"
key = "ca/coordinator/key.pem"
authority = "ca/coordinator/authority.pem"
"""

SHOP = """
name = "shop"
role = "active"
listen = "{shop}"
data_dir = "state/shop"
log_level = "debug"
[identity]
certificate = "ca/shop/certificate.pem"
key = "ca/shop/key.pem"
authority = "ca/shop/authority.pem"
revoked = "ca/crl.pem"
[peers.coordinator]
role = "coordinator"
[peers.meter]
role = "measurement"
[policy]
accept_seed = true
max_epsilon = 5
[datasets.rows]
url = "csv:rows.csv"
id = "id"
features = "rest"
made_by = "the advertiser's export"
"""

METER = """
name = "meter"
role = "measurement"
listen = "{meter}"
data_dir = "state/meter"
log_level = "debug"
[identity]
certificate = "ca/meter/certificate.pem"
key = "ca/meter/key.pem"
authority = "ca/meter/authority.pem"
revoked = "ca/crl.pem"
[peers.coordinator]
role = "coordinator"
[peers.shop]
role = "active"
[policy]
accept_seed = true
min_rows = 50
max_epsilon = 2
[populations.people]
epsilon = 2.0
delta = 1e-5
[datasets.labels]
url = "csv:labels.csv"
id = "id"
label = "label"
population = "people"
active_parties = ["shop"]
"""


@dataclass
class Project:
    """Two parties' files in a folder; `blindfit(...)` runs the command there."""

    directory: Path
    processes: dict[str, subprocess.Popen[bytes] | Forked] = field(default_factory=dict)

    def blindfit(self, *arguments: str, pictures: bool = False) -> Done:
        return blindfit(self.directory, *arguments, pictures=pictures)

    def in_a_process(self, *arguments: str) -> Done:
        return in_a_process(self.directory, *arguments)

    def path(self, name: str) -> Path:
        return self.directory / name

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.path(name).read_text()
        assert old in text
        self.path(name).write_text(text.replace(old, new))

    def start(self, *names: str, program: Sequence[str] = ()) -> None:
        """
        Args:
            program: what Python is started with, in a process of its own; by default the party is forked.
        """
        for name in names:
            ready, log = self.path(f"{name}.ready"), self.path(f"{name}.log")
            ready.unlink(missing_ok=True)
            with log.open("ab") as out:
                words = [sys.executable, *(program or ("-m", "blindfit")), "party", f"{name}.toml"]
                start = subprocess.Popen if program else Forked
                self.processes[name] = start(
                    [*words, "--ready-file", ready.name], cwd=self.directory, stdout=out, stderr=out
                )
        for name in names:
            give_up = time.monotonic() + 60
            while not self.path(f"{name}.ready").exists():
                assert self.processes[name].poll() is None, self.log(name)
                assert time.monotonic() < give_up, self.log(name)
                time.sleep(0.02)

    def log(self, name: str) -> str:
        return self.path(f"{name}.log").read_text(errors="replace")

    def kill(self, name: str, number: int = signal.SIGKILL) -> int:
        process = self.processes.pop(name)
        process.send_signal(number)
        return process.wait(60)

    def stop(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    @contextmanager
    def submitting(self, *arguments: str) -> Iterator[Piped]:
        words = [sys.executable, "-m", "blindfit", "submit", "job.toml", "--out", "out", *arguments]
        process = Piped(words, cwd=self.directory)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            process.close()


def write_rows(directory: Path, n_rows: int = N_ROWS, seed: int = 0) -> None:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n_rows, N_FEATURES))
    y = generator.random(n_rows) < 1 / (1 + np.exp(-(1.5 * x[:, 0] - x[:, 1])))
    names = ",".join(f"f{j}" for j in range(N_FEATURES))
    lines = [f"u{i},{','.join(f'{v:.4f}' for v in row)}" for i, row in enumerate(x)]
    (directory / "rows.csv").write_text(f"id,{names}\n" + "\n".join(lines) + "\n")
    order = generator.permutation(n_rows)
    (directory / "labels.csv").write_text("id,label\n" + "".join(f"u{i},{int(y[i])}\n" for i in order))


def make_project(directory: Path) -> Project:
    write_rows(directory)
    addresses = {"shop": held_address(), "meter": held_address()}
    for name, text in (("job.toml", JOB), ("shop.toml", SHOP), ("meter.toml", METER)):
        (directory / name).write_text(text.format(**addresses))
    authority.create_authority(directory / "ca", "test-authority")
    for name in ("shop", "meter", "coordinator"):
        authority.issue(directory / "ca", name, ["localhost"])
    return Project(directory)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = make_project(tmp_path)
    yield project
    project.stop()


class Kept:
    """What a first job left, which every test finds as it was, in the same folder: what is kept there names paths."""

    def __init__(self, project: Project) -> None:
        self._directory, self._copy = project.directory, project.directory.with_name("kept")
        shutil.copytree(self._directory, self._copy)

    @classmethod
    def after_a_run(cls, project: Project, out: str) -> Kept:
        done = project.blindfit("run", "job.toml", "--out", out)
        assert done.returncode == 0, done.stderr
        return cls(project)

    @contextmanager
    def anew(self) -> Iterator[Project]:
        shutil.rmtree(self._directory)
        shutil.copytree(self._copy, self._directory)
        project = Project(self._directory)
        yield project
        project.stop()


def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("first") / "project"
    directory.mkdir()
    return directory


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept.after_a_run(make_project(folder(tmp_path_factory)), "out")


@pytest.fixture
def ran(first_run: Kept) -> Iterator[Project]:
    """A project whose job has run once, into out."""
    with first_run.anew() as project:
        yield project
