"""A job that runs once for a module: each test gets a copy of its files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.world import World


def done_once(make: Callable[[Path], Any], job: str = "job.toml") -> tuple[Any, Any]:
    """Return two fixtures: job_done, a house and its undisturbed first job; and trained, a copy for one test."""

    @pytest.fixture(scope="module")
    def job_done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
        house = make(tmp_path_factory.mktemp("house"))
        return house, house.run(job=job)

    @pytest.fixture
    def trained(job_done: tuple[Any, Any], tmp_path: Path) -> tuple[Any, Any]:
        house, session = job_done
        return house.copied_to(tmp_path), session

    return job_done, trained


class Kept:
    """State after a first job. Every test finds it unchanged in the same folder, because files there name paths."""

    def __init__(self, project: World) -> None:
        self._directory, self._copy = project.root, project.root.with_name("kept")
        shutil.copytree(self._directory, self._copy)

    @classmethod
    def after_a_run(cls, project: World, out: str) -> Kept:
        done = project.blindfit("run", "job.toml", "--out", out)
        assert done.returncode == 0, done.stderr
        return cls(project)

    @contextmanager
    def anew(self) -> Iterator[World]:
        shutil.rmtree(self._directory)
        shutil.copytree(self._copy, self._directory)
        project = World(self._directory)
        yield project
        project.stop()


def run_once(make: Callable[[Path], World], out: str) -> tuple[Any, Any]:
    """Return two fixtures: first_run, the state after a module's first real run; and ran, the project with it, for a
    test.

    Args:
        make: makes the project in a folder.
        out: the folder of the run's reports.
    """

    @pytest.fixture(scope="module")
    def first_run(tmp_path_factory: pytest.TempPathFactory) -> Kept:
        return Kept.after_a_run(make(folder(tmp_path_factory)), out)

    @pytest.fixture
    def ran(first_run: Kept) -> Iterator[World]:
        with first_run.anew() as project:
            yield project

    return first_run, ran


def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("first") / "project"
    directory.mkdir()
    return directory
