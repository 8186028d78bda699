"""The result of a job, for a program and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blindfit.algorithms.errors import DataError
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.report.kind import Written
from blindfit.coordinator.systems import view
from blindfit.coordinator.terminal.html import render_html
from blindfit.parties.systems import load_model

if TYPE_CHECKING:
    import pandas as pd

    from blindfit.algorithms.statistics.models import Model

SCORES_OF_A_TRAINING = ("test_scores.csv", "held_out_scores.csv", "held_out_predictions.csv")


class Result:
    """The result of a finished job: its report, models and scores on this machine.

    Args:
        job: the job that ran.
        written: the report that was written.

    Attributes:
        job: the job that ran.
        folder: folder with the reports and models.
        document: content of report.json.

    Example:
        >>> result = blindfit.run("job.toml", progress=False)
        >>> result.report.privacy.epsilon, list(result.models), result.scores.columns.tolist()
        (1.0, ['shop'], ['id', 'probability'])
    """

    def __init__(self, job: Job[Any], written: Written) -> None:
        self.job, self._written = job, written
        self.folder: Path = written.json_path.parent
        self.document: Mapping[str, Any] = written.content

    def __repr__(self) -> str:
        return f"<result of {self.session} in {self.folder}>"

    def _repr_html_(self) -> str:
        return render_html(self._written.summarise())

    @property
    def session(self) -> str:
        """Name of the session, by which other jobs find its model."""
        return str(self.document["session"])

    @property
    def report(self) -> Any:
        """Figures of the report, as a dataclass of the job's system.

        Raises:
            DataError: a figure is missing or wrong.
        """
        return view(self.job.protocol).figures_of(self.document)

    @property
    def models(self) -> dict[str, Model]:
        """Each party's model, or part of a vertical model, by the name of the party; only of parties that ran here."""
        return {path.parent.name: load_model(path) for path in self.model_files}

    @property
    def model_files(self) -> list[Path]:
        """File of each party's model; only of parties that ran here."""
        return [self.folder / name / "model.json" for name in self.document.get("models", {})]

    @property
    def model(self) -> Model:
        """The model, if one party has it all.

        Raises:
            DataError: no party that ran here holds one, or several parties hold a part each.
        """
        models = self.models
        if len(models) == 1:
            return next(iter(models.values()))
        if not models:
            reason, hint = "no party that ran here holds a model of this job", "a party keeps it in its own folder"
        else:
            reason, hint = f"{', '.join(models)} hold a part of the model each", "take `models`, which has all of them"
        raise DataError(f"{self.session}: {reason}", hint=hint)

    @property
    def scores(self) -> pd.DataFrame:
        """Scores that the active party got, as a data frame: of new rows, or of a training's test or held-out rows.

        Raises:
            ConfigError: pandas is not installed.
            DataError: this job left no scores here.
        """
        path = self._scores_path()
        if path is None or not path.exists():
            raise DataError(
                f"{self.session} left no file of scores here" + (f"; it is {path} on another machine" if path else ""),
                hint="a prediction leaves one, and so does a training whose split.test_fraction is above 0, unless its "
                "protocol reveals no score of a row",
            )
        return read_table(path)

    def _scores_path(self) -> Path | None:
        (active,) = self.job.with_role("active")
        if self.job.protocol == "predict":
            scores = getattr(self.report, "scores", None)
            return None if scores is None else Path(scores.where)
        found = (self.folder / active / name for name in SCORES_OF_A_TRAINING)
        return next((path for path in found if path.exists()), None)


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV or Parquet file of ids and numbers; ids stay texts."""
    try:
        import pandas as pd
    except ImportError:
        from blindfit.algorithms.errors import ConfigError

        raise ConfigError("`scores` needs pandas, which is not installed", hint=f"the scores are in {path}") from None
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, dtype={"id": str}, keep_default_na=False)
