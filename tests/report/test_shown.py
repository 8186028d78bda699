"""Every field of every party's report that the coordinator sees, by the types of the reports.

A field that is not in the table fails this test, until somebody has decided whether the coordinator may see it. If it
may not, its type is `Own[...]`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import get_args

import pytest

import blindfit.parties
from blindfit.parties.training import quality
from blindfit.parties.training.report import Report, Table, entries_of

BUDGET = "population budget_epsilon budget_delta spent_epsilon"
SUM = f"unit neighbours max_rows_per_person epsilon delta mechanism sensitivity noise_std_of_sum norm_bound {BUDGET}"
SUM = f"{SUM} releases snapshot trust epsilon_of_both"
CHARGED = f"unit neighbours epsilon delta noise_multiplier spent_neighbours {BUDGET}"
TIMING = (
    "read_s align_s prepare_s put_in_s select_s train_s evaluate_s score_s aggregate_s release_s send_s fit_s wait_s"
)
VERTICAL = {
    "rows": "common trained validation test batches features",
    "fit": "epochs weight_noise_std",
    "privacy": CHARGED,
    "selection": "folds by points chosen figures errors",
}
SHOWN = {  # fields by the class of the report
    "WalrReport": {
        "": "bytes_sent messages_sent",
        "rows": "trained held_out not_counted unknown features",
        "privacy": f"{SUM} noise_std_of_mean holders",
        "fit": "solver iterations converged reason l2 mu feasible",
    },
    "HolderReport": {"": "bytes_sent messages_sent", "rows": "sent held_out trained features"},
    "LabelDPReport": {
        "": "bytes_sent messages_sent",
        "rows": "sent trained held_out withheld features",
        "privacy": f"unit neighbours max_rows_per_person epsilon delta mechanism epsilon_of_row epsilon_prior "
        f"prior_mechanism rows_outside label_lo label_hi grid_cells noise_std largest_bias {BUDGET} releases snapshot",
        "fit": "regressor debiased converged evaluated_on_true_labels",
    },
    "DPLRReport": {
        "rows": "trained held_out public features dropped_columns expected",  # two are public figures, or public
        "privacy": f"{CHARGED} mechanism releases charged_now",
        "fit": "start scale learning_rate gradient_noise_std",
    },
    "TaylorReport": VERTICAL,
    "FalconReport": VERTICAL,
    "PredictReport": {"rows": "common", "model": "in_shares"},
    "EvaluationReport": {"rows": "sent counted unknown", "privacy": SUM},
}
QUALITY = {  # additional figures of a vertical training without differential privacy
    "ClassFigures": {
        "": "rows auc ks accuracy log_loss threshold slope offset log_loss_before",
        "confusion": "true_positives false_positives true_negatives false_negatives",
    },
    "ValueFigures": {"": "rows mse mae r2"},
}


def names(table: dict[str, str]) -> set[str]:
    return {f"{part}.{name}".removeprefix(".") for part, listed in table.items() for name in listed.split()}


def shown_by(kind: type) -> Iterator[str]:
    """Return the flat names of the fields that are not `Own`, in every table."""
    for entry in entries_of(kind):
        tables = [
            one for one in (entry.kind, *get_args(entry.kind)) if isinstance(one, type) and issubclass(one, Table)
        ]
        if not entry.is_own:
            yield from (f"{entry.name}.{name}" for table in tables for name in shown_by(table))
            yield from () if tables else (entry.name,)


def reports() -> dict[str, type[Report]]:
    """Return every class of a report that a party writes: classes that no other class extends."""
    rooms = [room.name for room in pkgutil.iter_modules(blindfit.parties.__path__) if room.ispkg]
    for room in rooms:
        modules = pkgutil.iter_modules(import_module(f"blindfit.parties.{room}").__path__)
        if any(module.name == "report" for module in modules):
            import_module(f"blindfit.parties.{room}.report")
    found, open_ = {}, list(Report.__subclasses__())
    while open_:
        kind = open_.pop()
        open_ += kind.__subclasses__()
        if not kind.__subclasses__() and kind.__module__.startswith("blindfit."):
            found[kind.__name__] = kind
    return found


def test_the_table_lists_every_report() -> None:
    assert reports().keys() == SHOWN.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_the_coordinator_sees_what_the_table_lists(name: str) -> None:
    assert set(shown_by(reports()[name])) == names({**SHOWN[name], "timing": TIMING})


@pytest.mark.parametrize("name", QUALITY)
def test_it_sees_these_figures_of_test_rows(name: str) -> None:
    assert set(shown_by(getattr(quality, name))) == names(QUALITY[name])


@pytest.mark.parametrize("name", SHOWN)
def test_a_field_that_stays_is_not_shown_whatever_it_holds(name: str) -> None:
    """The check uses values instead of types: the object itself drops them."""
    shown = filled(reports()[name]).fields_for_coordinator()
    assert set(shown) == names({**SHOWN[name], "timing": TIMING})
    assert OWN not in shown.values()


OWN = "stays here"


def filled(kind: type) -> Table:
    """Return a table with a value in every field, and the same text in every field that stays."""
    values = {}
    for entry in entries_of(kind):
        if isinstance(entry.kind, type) and issubclass(entry.kind, Table) and not entry.is_own:
            values[entry.name] = filled(entry.kind)
        elif entry.is_own:
            values[entry.name] = None if entry.name == "public_figures" else OWN  # they take the place of others
        else:
            values[entry.name] = 1
    return kind(**values)
