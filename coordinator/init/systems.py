"""Files of `blindfit init` for each system: the parties, and the tables of its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blindfit.parties.systems import MOST_PASSIVE, MOST_PASSIVE_IN_SHARES

EPSILON, BUDGET, DELTA = 1.0, 3.0, "1e-5"
SPLIT = ("test_fraction = 0.2",)
PRIVATE = f"epsilon = {EPSILON}  # part of the budget of {BUDGET} in the file of the party with the labels"
GENTLE = ("learning_rate = 0.2  # lower it if training diverges: similar columns make steps larger",)


@dataclass(frozen=True)
class Plan:
    """Parties and job tables of a system.

    Attributes:
        tables: smallest and largest number of tables.
        owner: role of the party with the label.
        other: role of every other party with a table, or of the first of them.
        also: system of a second job about the trained model, if there is one.
        key_node: True if there is a key node.
        privacy: lines of [privacy].
        split: lines of [split].
        further: role of each later party with a table; "" for the role of the first.
        model: table of the job that declares a label as a number; "" if labels are 0 and 1.
        linear: additional lines of that table for such a label.
    """

    tables: tuple[int, int]
    owner: str
    other: str = ""
    also: str = ""
    key_node: bool = False
    privacy: Sequence[str] = ()
    split: Sequence[str] = SPLIT
    model: str = ""
    linear: Sequence[str] = ()
    label_is_number: bool = False
    further: str = ""
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def charges_budget(self) -> bool:
        """True if the labels have a budget."""
        return bool(self.privacy)

    def job_tables(self, *, is_linear: bool) -> dict[str, Sequence[str]]:
        """Return the lines of each table of the job."""
        found: dict[str, Sequence[str]] = {"privacy": self.privacy} if self.privacy else {}
        found |= {"split": self.split, **self.more}
        if self.model:
            found[self.model] = ['model = "linear"', *self.linear] if is_linear else ["# epochs = 20"]
        return found


PLANS: Mapping[str, Plan] = {
    "taylor": Plan((2, 1 + MOST_PASSIVE), "active", "passive", "predict", key_node=True, model="taylor"),
    "falcon": Plan(
        (2, 1 + MOST_PASSIVE_IN_SHARES), "active", "passive", "predict", key_node=True, model="falcon", linear=GENTLE
    ),
    "walr": Plan((2, 2), "measurement", "active", "evaluate", privacy=(PRIVATE, f"delta = {DELTA}")),
    "label-dp": Plan((2, 2), "measurement", "active", privacy=(PRIVATE,), label_is_number=True),
    "dp-lr": Plan((1, 1), "active", privacy=(PRIVATE, f"delta = {DELTA}")),
}
