"""What others see of a run, beside the messages of its protocol."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SAME = "tests/interference/test_neighbours.py::test_others_see_the_same"

MUTANTS = (
    Mutant(
        "figures-on-labels-told-under-label-dp",
        (12, 25),
        "parties/vertical/report.py",
        "if self.privacy is None and self.evaluation is not None:",
        "if self.evaluation is not None:",
        (f"{SAME}[taylor-label-dp-a-label-coordinator]",),
    ),
    Mutant(
        "who-is-in-the-table-told-by-what-counts",
        (25,),
        "parties/measurement/label_index.py",
        "kept = self._within_cap(joined.person)",
        "kept = self._within_cap(joined.person) & joined.known",
        (f"{SAME}[walr-unknown-a-row-shop]",),
    ),
    Mutant(
        "how-many-rows-stood-out-told",
        (25,),
        "parties/vertical/report.py",
        "shrunk: Own[int]",
        "shrunk: int",
        (f"{SAME}[taylor-outlier-coordinator]",),
    ),
    Mutant(
        "a-hash-of-the-rows-told",
        (25,),
        "parties/training/report.py",
        "request_id: Own[str]",
        "request_id: str",
        (f"{SAME}[walr-a-feature-coordinator]",),
    ),
    Mutant(
        "which-columns-are-constant-told",
        (25,),
        "parties/vertical/report.py",
        "dropped_columns: Own[tuple[str, ...]]",
        "dropped_columns: tuple[str, ...]",
        (f"{SAME}[taylor-constant-in-training-coordinator]",),
    ),
    Mutant(
        "a-rare-class-weighs-more-than-weights-go",
        (25,),
        "algorithms/statistics/vertical/class_weights.py",
        "0.5 / np.maximum([1 - share, share], least)",
        "0.5 / np.array([1 - share, share])",
        ("tests/taylor/test_class_weights.py",),
    ),
    Mutant(
        "constant-columns-not-sent",
        (25,),
        "parties/walr/rows.py",
        "return len(self.standardiser.columns) + self.intercept",
        "return len(self.standardiser.kept) + self.intercept",
        (f"{SAME}[walr-constant-in-training-meter]",),
    ),
    Mutant(
        "rows-read-counted-where-their-number-is-private",
        (25,),
        "parties/dp_lr/trainer.py",
        "session.report if job.rows_are_public else _uncounted(session)",
        "session.report",
        (f"{SAME}[dp-lr-add-or-remove-a-row-coordinator]",),
    ),
)
