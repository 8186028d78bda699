"""The harness notices leaks: each test puts one into the code for a moment, and the observer who would
see it finds it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.protocols import ready
from blindfit.algorithms.protocols.taylor import roles
from blindfit.parties.dp_lr import trainer
from blindfit.parties.dp_lr.report import DPLRReport, RowFigures
from blindfit.parties.label_dp import consumer
from blindfit.parties.measurement.calls import MeasurementCalls
from blindfit.parties.snapshots.snapshot import Snapshot
from blindfit.parties.snapshots.snapshots import Snapshots
from blindfit.parties.taylor import data_party, key_node
from blindfit.parties.taylor.report import TaylorReport
from blindfit.parties.vertical import training
from tests.interference.neighbours import (
    COORDINATOR,
    LAST,
    PAIRS,
    Pair,
    Probe,
    a_feature,
    a_label,
    between_jobs,
    told_apart,
)
from tests.interference.systems import SYSTEMS
from tests.interference.views import not_random

DP_LR = Pair("dp-lr", "a-label", "clinic", a_label("clinic", LAST))
TAYLOR = Pair("taylor", "a-label", "bank", a_label("bank", LAST))
LABEL_DP = Pair("taylor-label-dp", "a-label", "bank", a_label("bank", LAST))


@pytest.fixture
def fresh(probe: Probe) -> Probe:
    """A probe that remembers no run of the unchanged code."""
    return Probe(probe.authority)


def positives(labels: Any) -> int:
    return int((np.asarray(labels) > 0).sum())


def test_an_id_that_is_a_hash_of_labels(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Snapshot, "id", property(lambda snapshot: snapshot.row.content_sha256[:32]))
    case = SYSTEMS["walr"]()
    found = not_random(fresh.run(case).record, fresh.again(case).record)
    assert {"DatasetDescription.snapshot", "Hello.snapshot"} <= set(found)


def test_an_id_that_is_a_keyed_digest_of_labels(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id looks random, and yet it is new if a label is: two jobs of one party reveal the change."""

    def digest(snapshot: Snapshot) -> str:
        key = str(snapshot.directory.parent)  # different in every run
        return hashlib.sha256(f"{key} {snapshot.row.content_sha256}".encode()).hexdigest()[:32]

    monkeypatch.setattr(Snapshot, "id", property(digest))
    case = SYSTEMS["walr"]()
    assert "DatasetDescription.snapshot" not in not_random(fresh.run(case).record, fresh.again(case).record)
    pair = Pair("walr", "published-anew", "meter", between_jobs(a_label("meter"), publish=True))
    assert any("DatasetDescription.snapshot" in line for line in told_apart(pair, "shop", fresh))


def test_a_job_that_reads_the_source_as_it_is_now(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    def published(snapshots: Snapshots, dataset: str) -> Snapshot:
        found = snapshots.current(dataset)
        return snapshots.publish(dataset) if found is None or snapshots.has_changed_since(found) else found

    monkeypatch.setattr(Snapshots, "require_current", published)
    pair = Pair("walr", "between-jobs", "meter", between_jobs(a_label("meter")))
    assert any("DatasetDescription.snapshot" in line for line in told_apart(pair, "shop", fresh))


def test_a_refusal_that_depends_on_a_label(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    read_private = trainer.read_private

    def refusing(*given: Any) -> Any:
        rows = read_private(*given)
        if positives(rows.labels) % 2:
            raise PolicyRefused(party="clinic", field="rows", reason="are not to its taste")
        return rows

    monkeypatch.setattr(trainer, "read_private", refusing)
    assert any("ends with POLICY_REFUSED" in found for found in told_apart(DP_LR, COORDINATOR, fresh))


@pytest.mark.parametrize("part", ["training", "test"])
def test_a_refusal_where_a_part_of_the_rows_has_one_class(
    fresh: Probe, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    read_private = trainer.read_private

    def refusing(*given: Any) -> Any:
        rows = read_private(*given)
        if not positives(rows.labels[rows.test == (part == "test")]):
            raise PolicyRefused(party="clinic", field="rows", reason="have one class")
        return rows

    monkeypatch.setattr(trainer, "read_private", refusing)
    (pair,) = (pair for pair in PAIRS if pair.id == f"dp-lr-class-alone-in-{part}")
    assert any("ends with POLICY_REFUSED" in found for found in told_apart(pair, COORDINATOR, fresh))


def test_the_text_of_a_refusal_that_depends_on_a_label(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    read_private = trainer.read_private

    def refusing(*given: Any) -> Any:
        reason = f"{positives(read_private(*given).labels)} are ill"
        raise PolicyRefused(party="clinic", field="rows", reason=reason)

    monkeypatch.setattr(trainer, "read_private", refusing)
    (found,) = told_apart(DP_LR, COORDINATOR, fresh)
    assert "error.reason" in found


@dataclass(frozen=True, kw_only=True)
class LeakyRows(RowFigures):
    positives: int


def test_a_count_of_positives_in_the_summary(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    report_of = trainer.report_of

    def report(session: Any, rows: Any, *given: Any, **options: Any) -> DPLRReport:
        honest = report_of(session, rows, *given, **options)
        return replace(honest, rows=LeakyRows(**vars(honest.rows), positives=positives(rows.labels)))

    monkeypatch.setattr(trainer, "report_of", report)
    (found,) = told_apart(DP_LR, COORDINATOR, fresh)
    assert "summary/rows.positives" in found


def test_progress_that_counts_positives(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    read_private = trainer.read_private

    def read(source: Any, job: Any, randomness: Any, report: Any) -> Any:
        rows = read_private(source, job, randomness, report)
        report("weighed", positives(rows.labels), 0, "rows")
        return rows

    monkeypatch.setattr(trainer, "read_private", read)
    (found,) = told_apart(DP_LR, COORDINATOR, fresh)
    assert "progress/weighed" in found


def test_a_loss_in_the_progress_of_a_job_that_a_budget_pays_for(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a budget the table lets the coordinator read the loss; with one it is a figure made from labels."""
    read_private = trainer.read_private

    def read(source: Any, job: Any, randomness: Any, report: Any) -> Any:
        rows = read_private(source, job, randomness, report)
        report(f"epoch 1, hold-out loss 0.{positives(rows.labels):04}", 0, 0, "")
        return rows

    monkeypatch.setattr(trainer, "read_private", read)
    (found,) = told_apart(DP_LR, COORDINATOR, fresh)
    assert "progress/hold-out loss" in found


def test_a_message_sent_once_more_when_a_label_is_1(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver refuses the message after having seen it."""
    prepare, run_party, ones = training.prepare, ready.run_party, []

    def prepared(rows: Any, *rest: Any, **how: Any) -> Any:
        if rows.labels is not None:
            ones.append(positives(rows.labels) % 2)
        return prepare(rows, *rest, **how)

    async def twice(mine: Any, me: str, others: Any, channel: Any) -> Any:
        if me == "bank" and ones[-1]:
            await channel.send("shop-b", mine)
        return await run_party(mine, me, others, channel)

    monkeypatch.setattr(training, "prepare", prepared)
    monkeypatch.setattr(ready, "run_party", twice)
    found = told_apart(TAYLOR, "shop-b", fresh)
    assert any("bank -> shop-b Exchange" in line and "Ready" in line for line in found)


def test_a_vector_of_ciphertexts_whose_length_depends_on_a_label(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    step_0_labels = roles.step_0_labels

    def fewer(seat: Any, positions: Any, *rest: Any) -> Any:
        return step_0_labels(seat, positions[: len(positions) - positives(seat.y) % 2], *rest)

    monkeypatch.setattr(roles, "step_0_labels", fewer)
    found = told_apart(TAYLOR, "shop-a", fresh)
    assert any("HoldOutLabels.labels = <hidden uint8" in line for line in found)


def test_what_is_released_without_a_charge(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    async def uncharged(*_: Any) -> None:
        """Write neither a charge nor a receipt."""

    monkeypatch.setattr(data_party.Taylor, "charge", uncharged)
    monkeypatch.setattr(key_node, "keep_proof", uncharged)
    found = told_apart(LABEL_DP, "shop-a", fresh)
    assert any("NoisyGradient.values" in line and "before its charge" in line for line in found)


def test_figures_on_labels_that_a_budget_protects(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vertical training without label DP may reveal the figures; one with label DP may not."""

    def all_shown(report: TaylorReport) -> dict[str, Any]:
        return {"evaluation.log_loss": report.evaluation.log_loss} if report.evaluation else {}

    monkeypatch.setattr(TaylorReport, "fields_for_coordinator", all_shown)
    assert any("summary/evaluation.log_loss" in line for line in told_apart(LABEL_DP, COORDINATOR, fresh))
    assert told_apart(TAYLOR, COORDINATOR, Probe(fresh.authority)) == []


def test_an_order_of_calls_that_depends_on_a_feature(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    read_rows, describe, budget = consumer.read_rows, MeasurementCalls.describe, MeasurementCalls.budget
    read: list[Any] = []
    early: list[Any] = []

    def rows(*arguments: Any) -> Any:
        read.append(read_rows(*arguments))
        return read[-1]

    async def budget_first(client: MeasurementCalls, dataset: str) -> Any:
        if 0.777 in read[-1].train_features and not early:
            early.append(await budget(client, dataset))
        return await describe(client, dataset)

    async def budget_once(client: MeasurementCalls, dataset: str) -> Any:
        return early.pop() if early else await budget(client, dataset)

    monkeypatch.setattr(consumer, "read_rows", rows)
    monkeypatch.setattr(MeasurementCalls, "describe", budget_first)
    monkeypatch.setattr(MeasurementCalls, "budget", budget_once)
    (found,) = told_apart(Pair("label-dp", "a-feature", "shop", a_feature("shop")), "meter", fresh)
    assert "DescribeDatasetRequest | BudgetRequest" in found
