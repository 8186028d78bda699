"""What the parties tell of a vertical training, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blindfit.algorithms.statistics.taylor_plan import suitable_batch_rows
from blindfit.coordinator.report.evaluation import CalibrationPoint, ClassFigures, LiftPoint, ValueFigures, points_of
from blindfit.coordinator.report.label_privacy import LabelPrivacy
from blindfit.coordinator.report.reading import fullest, read
from blindfit.coordinator.trust import Roles
from blindfit.parties.tables import validate
from blindfit.parties.taylor.settings import TaylorJob


@dataclass(frozen=True)
class RowFigures:
    """Of one data party; `common` rows are the slots after linkage."""

    common: int
    trained: int
    validation: int
    test: int
    batches: int
    features: int
    shrunk: int | None = None  # this and the next are in a party's own report alone: they hang on values
    dropped_columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class FitFigures:
    epochs: int


@dataclass(frozen=True)
class LabelFigures:
    """Of numbers: in the active party's own report alone, as they were counted in labels."""

    clipped: int = 0
    range: tuple[float, ...] = ()  # the public one, where there is one


@dataclass(frozen=True)
class KeyNodeFigures:
    losses: tuple[float, ...] = ()  # of the hold-out rows, after each epoch


@dataclass(frozen=True)
class TrainingPrivacy(LabelPrivacy):
    noise_multiplier: float


@dataclass(frozen=True)
class TimingFigures:
    read_s: float | None = None
    align_s: float | None = None
    prepare_s: float | None = None
    train_s: float | None = None
    evaluate_s: float | None = None


@dataclass(frozen=True)
class Confusion:
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int


@dataclass(frozen=True)
class Evaluation:
    """Where it comes from decides how much of it there is: the coordinator gets no curve."""

    classes: ClassFigures | None = None
    confusion: Confusion | None = None
    values: ValueFigures | None = None
    lift: tuple[LiftPoint, ...] = ()
    calibration: tuple[CalibrationPoint, ...] = ()


@dataclass(frozen=True)
class Figures:
    """Everything that the report says of a training, and who it is about.

    Attributes:
        rows, timing: of each data party that told.
        evaluation: None where there are no test rows, or where it is known elsewhere.
    """

    roles: Roles
    job: TaylorJob
    rows: Mapping[str, RowFigures]
    timing: Mapping[str, TimingFigures]
    fit: FitFigures
    losses: tuple[float, ...]
    privacy: TrainingPrivacy | None
    labels: LabelFigures
    evaluation: Evaluation | None

    @property
    def shared_rows(self) -> RowFigures:
        """Of whoever told, the active party first: how rows are split is the same at all."""
        return next(self.rows[name] for name in self.roles.chain if name in self.rows)

    @property
    def first_timing(self) -> TimingFigures:
        """Of the data party that told first: they wait for each other, so their times are alike."""
        return next(iter(self.timing.values()))

    @property
    def batch_rows(self) -> int:
        asked_for = self.job.taylor.batch_rows
        return suitable_batch_rows(self.shared_rows.trained) if asked_for == "auto" else asked_for

    @property
    def smallest_batch(self) -> int:
        rows, batch_rows = self.shared_rows, self.batch_rows
        last = rows.trained - (rows.batches - 1) * batch_rows  # it may have taken up a smaller one
        return last if rows.batches == 1 else min(last, batch_rows)

    @property
    def features(self) -> int | None:
        """Of all parties; None where some are not known."""
        return sum(rows.features for rows in self.rows.values()) if self.knows_all else None

    @property
    def columns(self) -> int | None:
        """The same with the intercept."""
        return None if self.features is None else self.features + self.job.taylor.intercept

    @property
    def knows_all(self) -> bool:
        return not set(self.roles.chain) - self.rows.keys()


def figures_of(report: Mapping[str, Any]) -> Figures:
    """Raises:
    DataError: names the party and the figure that is missing or not what it must be.
    """
    parties = report["parties"]
    roles = Roles.of({name: party["role"] for name, party in parties.items()})
    told = _told(report, roles)
    first = next(name for name in roles.chain if name in told)
    job = validate(_parameters(report["job"]), TaylorJob, source="the job of the report")
    key_node = parties[roles.key_node]["summary"]
    return Figures(
        roles=roles,
        job=job,
        rows={name: read(RowFigures, fullest(report, name), name, "rows") for name in told},
        timing={name: read(TimingFigures, summary, name, "timing") for name, summary in told.items()},
        fit=read(FitFigures, told[first], first, "fit"),
        losses=read(KeyNodeFigures, key_node, roles.key_node, "fit").losses if key_node else (),
        privacy=_privacy(job, told, roles.active),
        labels=_labels(report, roles.active),
        evaluation=_evaluation(report, roles.active),
    )


def _told(report: Mapping[str, Any], roles: Roles) -> dict[str, Mapping[str, Any]]:
    """What the data parties said; in a party's own report, which nobody timed, it alone did."""
    said = {name: report["parties"][name]["summary"] for name in roles.chain}
    return said if report["seconds"] else {name: summary for name, summary in said.items() if summary}


def _parameters(job: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in job.items() if name in TaylorJob.model_fields}


def _privacy(job: TaylorJob, told: Mapping[str, Any], active: str) -> TrainingPrivacy | None:
    if job.privacy is None or active not in told:
        return None
    return read(TrainingPrivacy, told[active], active, "privacy")


def _labels(report: Mapping[str, Any], active: str) -> LabelFigures:
    own = report["party_reports"].get(active)
    return LabelFigures() if own is None else read(LabelFigures, own, active, "labels")


# --- the evaluation -----------------------------------------------------------------------------------


def _evaluation(report: Mapping[str, Any], active: str) -> Evaluation | None:
    """The active party's own, where its report is here; else what it told the coordinator, if anything."""
    own = fullest(report, active)
    if not own.get("evaluation"):
        return None
    if "auc" not in own["evaluation"]:
        return Evaluation(values=read(ValueFigures, own, active, "evaluation"))
    return Evaluation(
        classes=read(ClassFigures, own, active, "evaluation"),
        confusion=read(Confusion, own, active, "evaluation.confusion"),
        lift=points_of(LiftPoint, own["evaluation"], active, "lift"),
        calibration=points_of(CalibrationPoint, own["evaluation"], active, "calibration"),
    )
