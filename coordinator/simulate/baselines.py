"""Fit the models that simulated runs are compared with: fits without privacy, and the constant."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blindfit.algorithms.columns.levels import UnseenLevelWarning
from blindfit.algorithms.columns.tables import columns_of
from blindfit.coordinator.init.guess import guess_table, open_table
from blindfit.coordinator.init.places import Place
from blindfit.coordinator.simulate.cut import Cut
from blindfit.coordinator.simulate.quality import Quality, quality_of
from blindfit.coordinator.simulate.results import ACTIVE_ONLY, CONSTANT, JOINED
from blindfit.parties.data.opening import open_source
from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.taylor.settings import LINEAR, TaylorSettings
from blindfit.parties.training.rows import read_rows

Floats = NDArray[np.float64]
MOST_ITERATIONS = 10_000


def baselines(cut: Cut) -> Mapping[str, Quality]:
    """Return the quality of three models on the held-out rows of a cut.

    - "joined, no privacy": scikit-learn's fit to the training rows that all parties have, with all columns.
    - "active party only": the same fit to all rows of the active party, with its own columns.
    - "constant": the mean label of the joined rows.

    The ridge penalty is the default of a taylor job. The fits use the columns that `init` would learn from.
    """
    joined, mean = _fit(cut, cut.joined_table)
    alone, _ = _fit(cut, cut.table_of_active)
    constant = np.full(len(cut.held_out.truth), mean)
    scores = {JOINED: joined, ACTIVE_ONLY: alone, CONSTANT: constant}
    return {name: quality_of(cut.held_out.truth, found, is_linear=cut.is_linear) for name, found in scores.items()}


def _fit(cut: Cut, path: Path) -> tuple[Floats, float]:
    """Return the scores of the held-out rows by a fit to a table, and the mean of the table's labels."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    source = open_source(_dataset(cut, path), path.parent, path.stem).with_means()
    rows = read_rows(source, labels=True, report=lambda *_: None)
    labels = np.asarray(rows.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLevelWarning)  # such a level is 0 in each of its columns
        found = columns_of(cut.held_out.rows, source.record)
    held_out = np.column_stack([found[name] for name in source.model_columns])
    if cut.is_linear:
        model = make_pipeline(StandardScaler(), Ridge(alpha=LINEAR["l2"] * len(labels)))
        return model.fit(rows.features, labels).predict(held_out), float(labels.mean())
    inverse = 1 / (TaylorSettings().l2 * len(labels))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=inverse, max_iter=MOST_ITERATIONS))
    return model.fit(rows.features, labels).predict_proba(held_out)[:, 1], float(labels.mean())


def _dataset(cut: Cut, path: Path) -> DatasetSettings:
    """Return a table as a party file describes it."""
    place = Place(str(path))
    table = guess_table(place, open_table(place), cut.id_name, label=cut.label, as_number=cut.is_linear)
    return DatasetSettings.model_validate(
        {
            "url": f"parquet:{path.name}",
            "id": cut.id_name,
            "label": cut.label,
            "label_kind": "number" if cut.is_linear else "binary",
            "features": "rest",
            "except": tuple(table.left_out),
            "categories": table.categories,
            "dates": table.dates,
            "missing": "indicator",
        }
    )
