"""Mutants of what others see of a run, in addition to the messages of its protocol."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SAME = "tests/interference/test_neighbours.py::test_others_see_the_same"

MUTANTS = (
    Mutant(
        "figures-on-labels-told-under-label-dp",
        (12, 25),
        "blindfit.parties.vertical.report:VerticalReport.fields_for_coordinator",
        "if self.privacy is None and self.evaluation is not None:",
        "if self.evaluation is not None:",
        ("tests/interference/test_neighbours.py::test_others_see_the_same[taylor-label-dp-a-label-coordinator]",),
    ),
    Mutant(
        "who-is-in-the-table-told-by-what-counts",
        (25,),
        "blindfit.parties.measurement.label_index:JoinState.join",
        "kept = self._within_cap(joined.person)",
        "kept = self._within_cap(joined.person) & joined.known",
        (f"{SAME}[walr-unknown-a-row-shop]",),
    ),
    Mutant(
        "how-many-rows-stood-out-told",
        (25,),
        "blindfit.parties.vertical.report:RowFigures.shrunk",
        "shrunk: Own[int]",
        "shrunk: int",
        ("tests/interference/test_neighbours.py::test_others_see_the_same[taylor-outlier-coordinator]",),
    ),
    Mutant(
        "a-hash-of-the-rows-told",
        (25,),
        "blindfit.parties.training.report:SumPrivacy.request_id",
        "request_id: Own[str]",
        "request_id: str",
        ("tests/interference/test_neighbours.py::test_others_see_the_same[walr-a-feature-coordinator]",),
    ),
    Mutant(
        "which-columns-are-constant-told",
        (25,),
        "blindfit.parties.vertical.report:RowFigures.dropped_columns",
        "dropped_columns: Own[tuple[str, ...]]",
        "dropped_columns: tuple[str, ...]",
        ("tests/interference/test_neighbours.py::test_others_see_the_same[taylor-constant-in-training-coordinator]",),
    ),
    Mutant(
        "a-rare-class-weighs-more-than-weights-go",
        (25,),
        "blindfit.algorithms.statistics.vertical.class_weights:balance",
        "0.5 / np.maximum([1 - share, share], least)",
        "0.5 / np.array([1 - share, share])",
        ("tests/taylor/test_class_weights.py",),
    ),
    Mutant(
        "constant-columns-not-sent",
        (25,),
        "blindfit.parties.walr.rows:SentColumns.width",
        "return len(self.standardiser.columns) + self.intercept",
        "return len(self.standardiser.kept) + self.intercept",
        (f"{SAME}[walr-constant-in-training-meter]",),
    ),
    Mutant(
        "rows-read-counted-where-their-number-is-private",
        (25,),
        "blindfit.parties.dp_lr.trainer:Trainer._run",
        "session.report if job.rows_are_public else _hide_counts(session)",
        "session.report",
        (f"{SAME}[dp-lr-add-or-remove-a-row-coordinator]",),
    ),
    Mutant(
        "a-message-for-each-batch-of-rows-whose-number-is-private",
        (25,),
        "blindfit.parties.dp_lr.trainer:_hide_counts",
        "if step not in named:",
        "if step:",
        (f"{SAME}[dp-lr-add-or-remove-a-row-in-batches-coordinator]",),
    ),
)
