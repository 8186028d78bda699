"""The loader of Criteo's file: rows kept, columns used, rare values, blocks, and files that are not Criteo's."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.label_dp import criteo_network as network
from benchmarks.label_dp.arms import ARMS, Case, release
from benchmarks.label_dp.criteo import COLUMNS, HASHED, LEAST_OCCURRENCES, NUMBERS, RESPONSE, generate, read
from benchmarks.label_dp.network import Ensemble, TrainingSettings
from benchmarks.label_dp.results import Results
from benchmarks.label_dp.runs import Plan
from blindfit.algorithms.errors import DataError
from tests.benchmarks.differences import assert_gradients_are_of

ROWS = 6000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("criteo") / "CriteoSearchData"
    generate(path, ROWS, seed=3)
    return path


@pytest.fixture(scope="module")
def kept(file: Path) -> list[dict[str, str]]:
    """The rows that belong in, by a reader of lines."""
    with file.open(newline="") as lines:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in csv.reader(lines, delimiter="\t")]
    return [row for row in rows if 0 <= float(row[RESPONSE]) <= 400]


def test_the_file_has_the_published_columns(file: Path) -> None:
    assert len(COLUMNS) == 23
    assert COLUMNS[:6] == ("Sale", RESPONSE, NUMBERS[0], "click_timestamp", NUMBERS[1], NUMBERS[2])
    assert len(NUMBERS) + len(HASHED) + 1 == 21
    amounts = [float(line.split("\t")[1]) for line in file.read_text().splitlines()]
    assert len(amounts) == ROWS
    assert -1.0 in amounts
    assert max(amounts) > 400


def test_rows_without_a_sale_or_above_400_are_dropped(file: Path, kept: list[dict[str, str]]) -> None:
    rows = read(file)
    assert 300 < len(kept) < ROWS / 2
    np.testing.assert_array_equal(rows.amounts, [float(row[RESPONSE]) for row in kept])
    np.testing.assert_array_equal(rows.numbers, [[float(row[name]) for name in NUMBERS] for row in kept])


def test_frequent_values_have_a_number_each_and_rare_ones_share_0(file: Path, kept: list[dict[str, str]]) -> None:
    rows = read(file)
    rare_columns = 0
    for place, name in enumerate(HASHED):
        values = [row[name] for row in kept]
        counts = Counter(values)
        frequent = {value for value, count in counts.items() if count >= LEAST_OCCURRENCES}
        codes = rows.codes[:, place]
        assert rows.sizes[place] == len(frequent) + 1
        assert {value for value, code in zip(values, codes, strict=True) if code == 0} == counts.keys() - frequent
        pairs = {(value, code) for value, code in zip(values, codes, strict=True) if code}
        assert len(pairs) == len(frequent) == len({code for _, code in pairs})
        assert codes.max() < rows.sizes[place]
        rare_columns += len(frequent) < len(counts)
    assert rare_columns > 3


def test_blocks_do_not_matter(file: Path) -> None:
    whole, small = read(file), read(file, block_bytes=20_000)
    np.testing.assert_array_equal(whole.codes, small.codes)
    np.testing.assert_array_equal(whole.amounts, small.amounts)
    assert whole.sizes == small.sizes


def test_a_lower_threshold_keeps_more_values(file: Path) -> None:
    assert sum(read(file, least=2).sizes) > sum(read(file).sizes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1\t2\t3\n", "Expected 23 columns"),
        ("\t".join(["1", "many", *["0"] * 21]) + "\n", "many"),
        ("\t".join(["0", "-1", *["0"] * 21]) + "\n", "no row"),
        ("", "[Ee]mpty"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "other"
    path.write_text(content)
    with pytest.raises(DataError, match=said) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "nowhere")


def test_its_labels_are_released_over_400_euros(file: Path) -> None:
    dataset = read(file).dataset()
    released = release(Case("rp", 2.0), dataset, dataset.labels, seed=0)
    assert released.fitted.epsilon <= 2.0
    assert released.fitted.epsilon_prior == 0.01
    assert released.labels.min() >= -70
    assert released.labels.max() <= 470


def test_a_network_learns_from_the_file(file: Path) -> None:
    rows = network.standardised(read(file))
    everywhere = np.arange(len(rows.amounts))
    settings = network.CriteoTraining(epochs=30, batch_rows=64)
    trained = network.train(rows, everywhere, rows.amounts, settings, seed=0)
    errors = np.square(network.predict(trained, rows, everywhere) - rows.amounts)
    assert errors.mean() < 0.8 * rows.amounts.var()


def test_gradients_of_embeddings_are_those_of_the_loss() -> None:
    """Central differences in double precision; a value that stands twice in a batch counts twice."""
    draw = np.random.default_rng(5)
    trained = network.EmbeddingNetwork((4, 3), 3, 2, seed=0)
    trained._embeddings = [embedding.astype(np.float64) for embedding in trained._embeddings]
    trained._dense = Ensemble([parameter.astype(np.float64) for parameter in trained._dense.parameters])
    codes, numbers, y = np.array([[0, 2], [3, 2], [0, 1]], np.int32), draw.normal(size=(3, 3)), draw.normal(size=3)

    def loss() -> float:
        return float(np.square(trained.predict(codes, numbers) - y).mean())

    assert_gradients_are_of(loss, trained.parameters, trained.gradients(codes, numbers, y), draw)


def test_every_arm_is_run_and_reported_once(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    plan, results = Plan(1, (8.0,), TrainingSettings(epochs=1)), Results(tmp_path / "results.jsonl", {})
    figures = network.measure(file, plan, results, said.append)
    assert set(figures["rows"][0]["arms"]) == set(ARMS)
    assert figures["rows"][0]["arms"]["rp"]["published"]["mean"] == 3104.52
    assert len(said) == len(ARMS) + 2

    def not_again(*_: object) -> None:
        raise AssertionError("a finished network was trained again")

    monkeypatch.setattr(network, "train", not_again)
    assert network.measure(file, plan, results, said.append) == figures
