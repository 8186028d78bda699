"""The result of a simulation, for a program and for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.simulate import shown
from blindfit.coordinator.simulate.results import Results, Row, Spread
from blindfit.coordinator.terminal.json_output import Found

if TYPE_CHECKING:
    import pandas as pd

PAGE, DOCUMENT, SHEET = "simulation.html", "simulation.json", "simulation.csv"


class Simulation(Sequence[Row]):
    """The result of a simulation: a sequence of rows, one for each system and setting, in the order of the table.

    Args:
        folder: folder with the page and the figures.
        results: the figures.
        recommendation: sentences of the recommendation.
        found: output of the command.

    Attributes:
        folder: folder with the page and the figures.
        recommendation: sentences, each with the figures that it follows from.
        found: output of the command.

    Example:
        >>> simulation = blindfit.simulate("whole.csv", label="label", row_id="id", systems="dp-lr", progress=False)
        >>> [row.system for row in simulation]
        ['dp-lr']
        >>> simulation.to_pandas().shape[0] > 1
        True
    """

    def __init__(self, folder: Path, results: Results, recommendation: Sequence[str], found: Found) -> None:
        self.folder, self.recommendation, self.found = folder, tuple(recommendation), found
        self._results = results

    @property
    def baselines(self) -> Mapping[str, Mapping[str, Spread]]:
        """Figures of fits that need no partner or have no privacy, by the name of the fit."""
        return self._results.baselines

    @property
    def page(self) -> Path:
        """Path of the page with tables and pictures."""
        return self.folder / PAGE

    @property
    def document(self) -> Mapping[str, Any]:
        """Content of simulation.json."""
        return dict(self.found.document)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        return self._results.rows[place]

    def __len__(self) -> int:
        return len(self._results.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._results.rows)

    def __repr__(self) -> str:
        return repr(self.found)

    def _repr_html_(self) -> str:
        return self.found._repr_html_()

    def to_pandas(self) -> pd.DataFrame:
        """Return one line for each fit without a partner or privacy, and for each system and setting.

        Raises:
            ConfigError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ConfigError(
                "`to_pandas` needs pandas, which is not installed", hint=f"the figures are in {self.folder / SHEET}"
            ) from None
        return pd.DataFrame(shown.records(self._results))
