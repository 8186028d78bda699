"""`blindfit benchmark`, as an operator runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from blindfit.algorithms.errors import ComputeFailed
from blindfit.coordinator.operator import benchmark as calibrate
from tests.command import Done, blindfit
from tests.processes.reading import error_line
from tests.work.clusters import cluster

PARTY = """
name = "shop"
role = "active"
[identity]
certificate = "ca/shop/certificate.pem"
key = "ca/shop/key.pem"
authority = "ca/shop/authority.pem"
[peers.coordinator]
role = "coordinator"
"""


def run(directory: Path, *options: str) -> Done:
    (directory / "shop.toml").write_text(PARTY)
    return blindfit(directory, "benchmark", "shop.toml", *(f"--set={option}" for option in options))


def rows(output: str) -> dict[str, str]:
    """Return the figure to the right of each name in the table."""
    cells = (line.rsplit(None, 1) for line in output.splitlines() if len(line.split()) > 1)
    return {name.strip(): value for name, value in cells}


def check_figures(output: str, backend: str) -> None:
    figures = rows(output)
    assert figures["backend"] == backend
    assert figures["workers"] == "2"
    assert figures.pop("eight products at once (AVX-512 IFMA) here") in ("yes", "no")
    figure = {
        name: float(value.replace(",", "")) for name, value in figures.items() if name not in ("backend", "Workers of")
    }
    assert figure["product_us, 2048 bits, one core here"] > 0
    assert figure["product_us, 3072 bits, one core here"] > 0
    one, both = figure["products per second, one worker"], figure["products per second, all workers"]
    assert figure["scaling"] == pytest.approx(both / one, abs=0.006)


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "BATCH", 64)


@pytest.mark.usefixtures("_small_batches")
def test_this_machine(tmp_path: Path) -> None:
    finished = run(tmp_path, "compute.workers=2")
    assert (finished.returncode, finished.stderr) == (0, "")
    check_figures(finished.stdout, "loky")


@pytest.mark.usefixtures("_small_batches")
def test_a_cluster(tmp_path: Path) -> None:
    with cluster() as running:
        address = running.scheduler_address
        finished = run(tmp_path, "compute.backend=dask", f"compute.address={address}")
    assert (finished.returncode, finished.stderr) == (0, "")
    check_figures(finished.stdout, address)


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    failed = run(tmp_path, "compute.backend=dask", "compute.address=tcp://127.0.0.1:9")
    assert failed.returncode == 1
    assert error_line(failed) == "error: [compute] dask at tcp://127.0.0.1:9: no connection"


def test_workers_that_are_too_slow_are_one_line(tmp_path: Path) -> None:
    failed = run(tmp_path, "compute.workers=2", "compute.task_timeout_s=0.01")
    assert failed.returncode == 1
    assert "loky: 2 of 2 tasks were not done: waited 0.01 s" in error_line(failed)


def test_an_option_in_vain_is_one_line(tmp_path: Path) -> None:
    refused = run(tmp_path, "compute.backend=serial", "compute.workers=2")
    assert refused.returncode == 2
    assert error_line(refused).endswith('compute: workers does nothing with backend = "serial", remove it')


class WrongOnce:
    """Workers of which one has a broken memory."""

    count = 3

    def map(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        results = [function(*task) for task in tasks]
        results[-1][7] ^= 1
        return results


def test_wrong_products_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "BATCH", 16)
    with pytest.raises(
        ComputeFailed, match="1 of 3 tasks were not done: their products differ from those of this process"
    ):
        calibrate._measure("loky", WrongOnce())
