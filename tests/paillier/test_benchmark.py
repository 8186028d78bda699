"""The benchmark runs and prints its lines; no figure is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paillier import __main__ as paillier
from blindfit.algorithms.paillier.keys import PrivateKey

HEADLINE = [
    "encrypt_speedup",
    "sum_of_products_speedup",
    "sum_of_products_over_bound",
    "pack_speedup",
    "decrypt_speedup",
    "threshold_speedup",
    "threshold_over_bound",
    "cores_scaling",
]


@pytest.fixture(scope="module")
def run(insecure_test_key: PrivateKey, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    directory = tmp_path_factory.mktemp("benchmark")
    files = ["--json", str(directory / "figures.json"), "--plot", str(directory / "growth.svg")]
    paillier.main(["--quick", "--bits", "512,510", *files], make_key=lambda bits: insecure_test_key)
    return json.loads((directory / "figures.json").read_text()), directory / "growth.svg"


def test_the_first_key_is_at_the_top_and_others_under_their_bits(run: tuple[dict[str, Any], Path]) -> None:
    figures, _ = run
    assert figures["machine"]["product_us"] > 0
    assert isinstance(figures["phe"]["gmp"], bool)
    for one in (figures, figures["510"]):
        assert all(one[name] > 0 for name in HEADLINE)
        assert list(one["aims"]) == HEADLINE


def test_every_operation_has_a_time_and_a_bound(run: tuple[dict[str, Any], Path]) -> None:
    figures, _ = run
    for row in figures["operations"]:
        assert row["us"] > 0
        assert row["over_bound"] > 0
        assert row["products"] + row["half_products"] > 0
    assert [row["operation"] for row in figures["operations"] if "speedup" not in row] == ["check received"]


def test_growth_has_both_sums_at_every_size(run: tuple[dict[str, Any], Path]) -> None:
    figures, plot = run
    assert {(row["function"], row["rows"]) for row in figures["growth"]} == {
        (function, rows) for function in ("columns_dot", "rows_dot") for rows in paillier.QUICK.growth_rounds
    }
    assert all(row["us"] > 0 and row["speedup"] > 0 for row in figures["growth"])
    assert plot.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(("figure", "reached"), [(4.9, False), (5.0, True)])
def test_an_aim_is_reached_or_not(figure: float, reached: bool) -> None:
    assert paillier.AIMS["pack_speedup"].reached(figure) == reached
