"""The request of a person to `blindfit init`, with questions that only a person can answer."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from blindfit.algorithms.errors import ConfigError

Option = Literal["system", "tables", "label", "row_id", "positive", "label_range", "bounds"]
System = Literal["walr", "label-dp", "dp-lr", "taylor", "falcon"]
SYSTEMS: tuple[System, ...] = get_args(System)


class Unclear(ConfigError):
    """A question that the tables do not answer: a terminal asks it, and without a terminal it is an error."""

    def __init__(self, option: Option, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.option = option


@dataclass(frozen=True)
class Asked:
    """Options of `blindfit init`.

    Attributes:
        tables: file or database table of each organisation.
        label: column to learn.
        row_id: column that names a row; None to guess it.
        positive: text of label 1; None to guess it.
        label_range: public range of a label that is a number, "LOW:HIGH".
        bounds: public bounds of features, each as "NAME:LOW:HIGH".
        public: table of rows that anyone may have.
        hosts: addresses of parties, each as "NAME=HOST[:PORT]".
    """

    system: str = ""
    tables: tuple[str, ...] = field(default=(), repr=False)  # a URL may hold a password
    label: str = ""
    row_id: str | None = None
    positive: str | None = None
    label_range: str = ""
    bounds: tuple[str, ...] = ()
    public: str = field(default="", repr=False)
    hosts: tuple[str, ...] = ()

    def with_answer(self, option: Option, text: str) -> Asked:
        """Return a copy with a person's answer to a question."""
        answer: Any = _words(text) if option in ("tables", "bounds") else text
        return replace(self, **{option: answer})

    def check(self) -> None:
        """Check the options.

        Raises:
            Unclear: the system, the tables or the label are missing.
            ConfigError: an option does nothing in this system.
        """
        example = "such as: blindfit init --system taylor hospital.csv laboratory.csv --label malignant"
        if self.system not in SYSTEMS:
            said = f"{self.system} is not a system; " if self.system else ""
            raise Unclear(
                "system",
                f"{said}which system computes the model? taylor and falcon: every table has columns of the same "
                "people; walr and label-dp: one table has features, the other has labels, and a budget; dp-lr: one "
                "table has both",
                hint=example,
            )
        if not self.tables:
            raise Unclear("tables", "which tables? one of each organisation", hint=example)
        if not self.label:
            raise Unclear("label", "which column is to be learnt?", hint=example)
        _refuse_unused(
            self.system,
            {
                "--positive": self.positive if self.system == "label-dp" else None,
                "--label-range": self.label_range if self.system != "label-dp" else None,
                "--bounds": self.bounds if self.system != "dp-lr" else None,
                "--public": self.public if self.system != "dp-lr" else None,
            },
        )

    def range_of_labels(self) -> tuple[float, float]:
        """Return the public range of the labels.

        Raises:
            Unclear: the range is missing.
            ConfigError: the text is not a range.
        """
        if not self.label_range:
            raise Unclear(
                "label_range",
                f"which range do all values of {self.label} lie in, LOW:HIGH, as far as the public knows? The noise "
                "is as wide as the range, and labels outside are clipped; `blindfit init` never takes the range from "
                "rows, because everybody learns it",
                hint="give it: --label-range LOW:HIGH",
            )
        low, colon, high = self.label_range.partition(":")
        try:
            found = float(low), float(high)
        except ValueError:
            colon = ""
        if not colon or not -math.inf < found[0] < found[1] < math.inf:
            raise ConfigError(
                f"--label-range {self.label_range}: this is not LOW:HIGH, two numbers with the smaller one first",
                hint="write it as in --label-range 0:8",
            )
        return found


def _refuse_unused(system: str, given: dict[str, object]) -> None:
    if useless := [option for option, value in given.items() if value]:
        raise ConfigError(f"{useless[0]} does nothing with --system {system}", hint="remove it")


def _words(text: str) -> Sequence[str]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # does not show the text: a table's URL may hold a password
        raise ConfigError("the answer has a quote that is not closed", hint="close the quote") from None
