"""The systems under test, each set up once, small. A new one needs a function that returns a Case, and a line in
SYSTEMS.

Then give it neighbours (neighbours.py), and what its messages may show (kinds.py).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.columns.record import TableColumn, TableRecord
from blindfit.algorithms.protocols.walr import two_servers as two_servers_
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.files.written import write_json
from blindfit.parties.store.database import Store
from blindfit.parties.store.snapshots import SnapshotRow
from blindfit.parties.vertical.model_store import ModelStore
from tests.interference.world import Case, Data, Rows

N_ROWS = 64
MORE_ROWS = 160  # for jobs that may return weights computed from them
BUDGET = {"people": {"epsilon": 8.0, "delta": 1e-5}}
TIMEOUTS = {"step_s": 60.0, "reconnect_s": 20.0}
CHAIN = ("bank", "shop-a", "shop-b")


def table(seed: int, *, features: int = 0, rows: int = N_ROWS, **more: Callable[[int], Any]) -> Rows:
    """Return standard normal features x0, x1, ...; the `more` columns come first and depend on the row's number."""
    drawn = np.random.default_rng(seed).normal(size=(rows, features)).round(3).tolist()
    return {
        f"p{i:03}": {**{name: value(i) for name, value in more.items()}, **{f"x{j}": x for j, x in enumerate(line)}}
        for i, line in enumerate(drawn)
    }


def binary(i: int) -> int:
    return int(i * 7 % 10 < 4)


def price(i: int) -> float:
    return i * 37 % 100 / 10


# --- a measurement server and an active party ---------------------------------------------------------------


def walr(**more: Callable[[int], Any]) -> Case:
    return Case(
        system="walr",
        roles={"shop": "active", "meter": "measurement"},
        data={"shop": table(1, features=2), "meter": table(2, label=binary, **more)},
        datasets={
            "shop": {"features": "rest"},
            "meter": {"label": "label", "population": "people", "active_parties": ["shop"]},
        },
        job={"seed": 3, "privacy": {"epsilon": 1.0}, "timeouts": TIMEOUTS},
        policy={"meter": {"min_rows": 20}},
        more={"meter": {"populations": BUDGET}},
        covered=frozenset({"meter"}),
    )


def walr_persons() -> Case:
    """Return a case where half of all persons have more rows than count."""
    case = walr(person=lambda i: f"person {i // 4}")
    return case.with_dataset("meter", person="person", max_rows_per_person=2)


def walr_unknown() -> Case:
    """Return a case where a person whom the server's table lacks counts as 0, and nobody may see who that is."""
    return walr().with_dataset("meter", unknown_rows="zero")


def walr_holders() -> Case:
    """Return a case where a bank has other columns of the same people; the server fits, and sends each party its
    weights.

    There are enough rows for two fits to return weights.
    """
    case = walr()
    return replace(
        case,
        roles={"shop": "active", "bank": "passive", "meter": "measurement"},
        data={
            "shop": table(1, features=2, rows=6 * MORE_ROWS),
            "bank": table(3, features=2, rows=6 * MORE_ROWS),
            "meter": table(2, label=binary, rows=6 * MORE_ROWS),
        },
        datasets={
            **case.datasets,
            "bank": {"features": "rest"},
            "meter": {**case.datasets["meter"], "passive_parties": ["bank"]},
        },
    )


def walr_split() -> Case:
    """Return a case with a share of every label at each of two servers."""
    first, second = two_servers_.split(
        np.array([binary(i) for i in range(N_ROWS)], np.uint8), random.Random(2).randrange
    )
    case = walr()
    holds = {**case.datasets["meter"], "label": "share", "label_kind": "share", "split": "split_id"}
    tables = {
        name: table(0, share=lambda i, of=shares: int(of[i]), split_id=lambda _: "one split")
        for name, shares in (("east", first), ("west", second))
    }
    return replace(
        case,
        roles={"shop": "active", "east": "measurement", "west": "measurement"},
        data={"shop": case.data["shop"], **tables},
        datasets={"shop": case.datasets["shop"], "east": holds, "west": holds},
        job={**case.job, "walr": {"trust": "two-servers"}},
        policy=dict.fromkeys(("east", "west"), case.policy["meter"]),
        more=dict.fromkeys(("east", "west"), case.more["meter"]),
        covered=frozenset({"east", "west"}),
    )


def walr_hidden() -> Case:
    """Return a case where the server sums rows that it cannot read."""
    case = walr()
    hidden = replace(case, job={**case.job, "walr": {"trust": "encrypted-rows"}})
    return hidden.with_policy("meter", unsafe=["unchecked-rows"])


def walr_shares() -> Case:
    """Return a case with label and rows in shares between two servers."""
    case = walr_split()
    hidden = replace(case, job={**case.job, "walr": {"trust": "shared-rows"}})
    return replace(hidden, roles={**hidden.roles, "dealer": "key-node"})


def label_dp(**more: Callable[[int], Any]) -> Case:
    case = walr()
    return Case(
        system="label-dp",
        roles=case.roles,
        data={"shop": table(1, features=2), "meter": table(2, label=price, **more)},
        datasets={
            "shop": {"features": "rest"},
            "meter": {**case.datasets["meter"], "label_kind": "number", "label_range": [0.0, 10.0]},
        },
        job={
            "seed": 3,
            "privacy": {"epsilon": 2.0},
            "label_dp": {"mechanism": "laplace", "regressor": "linear"},
            "timeouts": TIMEOUTS,
        },
        policy=case.policy,
        more=case.more,
        covered=frozenset({"meter"}),
    )


def label_dp_persons() -> Case:
    """Return a case where a prior is estimated, and a secret hash chooses which two rows of a person are released."""
    case = label_dp(person=lambda i: f"person {i // 4}")
    case = case.with_job(label_dp={"mechanism": "rr-on-bins", "debias": False, "regressor": "linear"})
    case = case.with_dataset("meter", person="person", max_rows_per_person=2)
    return replace(case, declares=("NoisyLabels.withheld", "summary/rows.trained"))


# --- one party --------------------------------------------------------------------------------------------


def dp_lr() -> Case:
    return Case(
        system="dp-lr",
        roles={"clinic": "active"},
        data={"clinic": table(1, features=2, label=binary)},
        datasets={"clinic": {"label": "label", "features": "rest", "population": "people"}},
        job={
            "seed": 3,
            "privacy": {"epsilon": 1.0},
            "dp_lr": {"iterations": 5, "feature_bounds": ["*:-4:4"]},
            "timeouts": TIMEOUTS,
        },
        policy={"clinic": {"min_rows": 20}},
        more={"clinic": {"populations": BUDGET}},
        covered=frozenset({"clinic"}),
    )


def dp_lr_add_or_remove() -> Case:
    return dp_lr().with_job(dp_lr__neighbours="add-or-remove", dp_lr__public_rows=N_ROWS)


# --- vertical ---------------------------------------------------------------------------------------------

VERTICAL = {"bank": "active", "shop-a": "passive", "shop-b": "passive", "notary": "key-node"}


# Two columns, which could be computed from the test rows' scores.
OF_ROLE = {
    "active": {"label": "label", "models_per_row": "unlimited"},
    "passive": {"models_per_row": "unlimited"},
}


def taylor() -> Case:
    """Return a case where every epoch runs, so that only reports of the loss depend on it."""
    data: Data = {name: table(seed, features=2) for seed, name in enumerate(CHAIN)}
    data["bank"] = table(0, features=2, label=binary)
    return Case(
        system="taylor",
        roles=VERTICAL,
        data=data,
        datasets={name: {"features": "rest", **OF_ROLE[VERTICAL[name]]} for name in CHAIN},
        job={
            "seed": 5,
            "align": {"min_common": 20},
            "taylor": {"epochs": 1, "batch_rows": 64, "patience": 0, "validation_fraction": 0.2},
            "timeouts": TIMEOUTS,
        },
    )


def taylor_drawn() -> Case:
    """Return a case where the parties draw the held-out rows, as organisations do: they differ in every run."""
    case = taylor()
    return replace(case, job={name: value for name, value in case.job.items() if name != "seed"})


def taylor_linear() -> Case:
    case = taylor().with_dataset("bank", label_kind="number").with_job(taylor__model="linear")
    return case.with_data({**case.data, "bank": table(0, features=2, label=price)})


def taylor_weights() -> Case:
    """Return a case with class weights, on a table in which a class may be rarer than the limit of weights."""
    data = {name: table(seed, features=2, rows=136) for seed, name in enumerate(CHAIN)}
    data["bank"] = table(0, features=2, rows=136, label=binary)
    weighted = {"epochs": 1, "batch_rows": 136, "class_weights": "balanced", "validation_fraction": 0.0}
    weighted["unsafe"] = ["class-weights"]
    allowed = {name: {"unsafe": ["class-weights"]} for name in VERTICAL}
    return replace(taylor().with_job(taylor=weighted, split__test_fraction=0.0).with_data(data), policy=allowed)


def taylor_selecting() -> Case:
    """Return a case with a grid, which declares the best point and two numbers of each point."""
    case = taylor()
    trained = {"epochs": 1, "batch_rows": 32, "validation_fraction": 0.0, "unsafe": ["label-bits"]}
    data = {name: table(seed, features=2, rows=UNTESTED_ROWS) for seed, name in enumerate(CHAIN)}
    data["bank"] = table(0, features=2, rows=UNTESTED_ROWS, label=binary)
    select = {"folds": 3, "grid": {"l2": [0.01, 1.0]}}
    job = {**case.job, "taylor": trained, "split": {"test_fraction": 0.0}, "select": select}
    return replace(case, data=data, job=job, policy={name: {"unsafe": ["label-bits"]} for name in VERTICAL})


def taylor_label_dp() -> Case:
    case = taylor().with_dataset("bank", population="people")
    job = {**case.job, "privacy": {"epsilon": 1.0}, "taylor": {"epochs": 1, "batch_rows": 64}}
    return replace(case, job=job, more={"bank": {"populations": BUDGET}}, covered=frozenset({"bank"}))


def taylor_linkage() -> Case:
    """Return a case with two data parties, as linkage requires."""
    case = taylor()
    roles = {name: role for name, role in VERTICAL.items() if name != "shop-b"}
    data = {name: {i: {"name": f"name {i}", **row} for i, row in case.data[name].items()} for name in CHAIN[:2]}
    datasets = {name: {**case.datasets[name], "quasi_identifiers": {"name": "name"}} for name in CHAIN[:2]}
    align = {"method": "linkage", "fields": ["name"], "threshold": 1.0, "min_common": 10}
    taylor_job = {"epochs": 1, "batch_rows": 64, "patience": 0, "validation_fraction": 0.2}
    job = {**case.job, "align": align, "taylor": taylor_job}
    policy = {name: {"taylor": {"min_linked": 10}} for name in CHAIN[:2]}
    return replace(case, roles=roles, data=data, datasets=datasets, job=job, policy=policy)


FALCON_ROWS = 264  # enough of them are held out for figures that reveal no single row
UNTESTED_ROWS = 136


def falcon() -> Case:
    """Return a case where every epoch runs, so that only reports of the loss depend on it; each job may open its
    weights.
    """
    case = taylor()
    data = {name: table(seed, features=2, rows=FALCON_ROWS) for seed, name in enumerate(CHAIN)}
    data["bank"] = table(0, features=2, rows=FALCON_ROWS, label=binary)
    trained = {"epochs": 2, "batch_rows": 128, "validation_fraction": 0.0, "unsafe": ["weight-bits"]}
    job = {name: value for name, value in case.job.items() if name != "taylor"}
    policy = {name: {"unsafe": ["weight-bits"]} for name in VERTICAL}
    return replace(case, system="falcon", data=data, job={**job, "falcon": trained}, policy=policy)


def falcon_untested() -> Case:
    """Return a case without test rows, whose comparisons take most of the computing time."""
    case = falcon()
    data = {name: dict(list(rows.items())[:UNTESTED_ROWS]) for name, rows in case.data.items()}
    return replace(case, data=data, job={**case.job, "split": {"test_fraction": 0.0}})


def falcon_weights() -> Case:
    """Return a case with class weights where a class may be rarer than their limit.

    A step of the default size would end the training.
    """
    case = falcon_untested()
    trained = {**case.job["falcon"], "class_weights": "balanced", "learning_rate": 0.01}
    return replace(case, job={**case.job, "falcon": trained})


def falcon_threshold() -> Case:
    """Return a case on encrypted weights."""
    case = falcon_untested()
    trained = {**case.job["falcon"], "backend": "threshold"}
    return replace(case, job={**case.job, "falcon": trained})


def falcon_selecting() -> Case:
    """Return a case with a grid, which declares the best point and one figure of each point."""
    select = {"folds": 3, "by": "accuracy", "grid": {"l2": [0.01, 1.0]}}
    return replace(falcon_untested(), job={**falcon_untested().job, "select": select})


def falcon_private() -> Case:
    """Return a case with whole rows under differential privacy: every data party pays."""
    case = falcon_untested()
    trained = {"epochs": 2, "batch_rows": 128, "validation_fraction": 0.0, "feature_bounds": ["*:-4:4"]}
    for name in CHAIN:
        case = case.with_dataset(name, population="people")
    job = {**case.job, "privacy": {"epsilon": 1.0}, "falcon": trained}
    budgets = {name: {"populations": BUDGET} for name in CHAIN}
    return replace(case, job=job, policy={}, more=budgets, covered=frozenset(CHAIN))


TRAINED, SCORED_COLUMNS = "trained", 4


def predict() -> Case:
    """Return a case where one model scores every row, as by default."""
    return Case(
        system="predict",
        roles=VERTICAL,
        data={name: table(10 + seed, features=SCORED_COLUMNS) for seed, name in enumerate(CHAIN)},
        datasets={name: {"features": "rest"} for name in CHAIN},
        job={"align": {"min_common": 10}, "predict": {"session": TRAINED}, "timeouts": TIMEOUTS},
        policy={name: {"min_common": 1} for name in CHAIN},
        prepare=_keep_models,
    )


REGION = TableColumn("region", "category", ("north", "south"), ())


def _keep_models(root: Path, with_region: str = "") -> None:
    """Write the models that a training would have left, on a snapshot that has been removed since.

    Args:
        with_region: party whose part has a category too; "" for no party.
    """
    for name in CHAIN:
        numbers = tuple(TableColumn(f"x{j}") for j in range(SCORED_COLUMNS))
        record = TableRecord((*numbers, REGION) if name == with_region else numbers)
        columns, n = record.made, len(record.made)
        mean, std = (0.0, 0.1, 0.0, 0.2, 0.5, 0.5)[:n], (1.0, 0.9, 1.0, 1.1, 0.5, 0.5)[:n]
        standardiser = Standardiser(columns, tuple(range(n)), mean, std, record)
        role, weights = VERTICAL[name], np.array([0.5, -0.25, 0.3, 0.1, 0.7, -0.2][:n])
        intercept, rounding = (0.1, 0) if role == "active" else (None, 37)
        part = VerticalModelPart(
            name, role, "logistic", CHAIN, standardiser, weights, intercept, score_rounding=rounding
        )
        (root / "state" / name).mkdir(parents=True)
        store = Store(root / "state" / name / "party.sqlite")  # before its keys, as a party begins
        ModelStore(root / "state" / name).keep(part, TRAINED)
        meaning = json.dumps({"distinct": dict.fromkeys(columns, 4096)})
        with store.transaction() as transaction:
            made = "2026-01-01T00:00:00+00:00"
            transaction.add_snapshot(
                SnapshotRow("5e" * 16, "rows", 1, "", meaning, None, "0" * 64, 64, 0, made, removed=made)
            )
            transaction.put_session_snapshot(TRAINED, "5e" * 16)
        store.close()


def with_a_region(case: Case, party: str) -> Case:
    """Add a category to the party's part of the model and to its rows, and a column that the model does not need."""
    rows = {
        name: {**row, "region": ("north", "south")[i % 2], "note": 1.0}
        for i, (name, row) in enumerate(case.data[party].items())
    }
    case = case.with_dataset(party, categories=["region"]).with_data({**case.data, party: rows})
    return replace(case, prepare=partial(_keep_models, with_region=party))


def evaluate() -> Case:
    """Return a case that evaluates all rows, which the active party's own model scores."""
    case = walr()
    job = {
        "privacy": {"epsilon": 1.0},
        "evaluate": {"session": TRAINED, "rows": "all"},
        "timeouts": TIMEOUTS,
    }
    return replace(case, system="evaluate", job=job, prepare=_keep_walr_model)


def _keep_walr_model(root: Path) -> None:
    standardiser = Standardiser(("x0", "x1"), (0, 1), (0.0, 0.1), (1.0, 0.9))
    model = WALRModel(standardiser, np.array([0.5, -0.25, 0.1]), True, 3.0)
    path = root / "state" / "shop" / "models" / TRAINED / "model.json"
    write_json(path, model.to_dict())
    store = Store(root / "state" / "shop" / "party.sqlite")
    with store.transaction() as transaction:
        transaction.note_file(f"models/{TRAINED}/model.json", TRAINED)
    store.close()


SYSTEMS: dict[str, Callable[[], Case]] = {
    "walr": walr,
    "walr-persons": walr_persons,
    "walr-unknown": walr_unknown,
    "walr-holders": walr_holders,
    "walr-split": walr_split,
    "walr-hidden": walr_hidden,
    "walr-shares": walr_shares,
    "label-dp": label_dp,
    "label-dp-persons": label_dp_persons,
    "dp-lr": dp_lr,
    "dp-lr-add-or-remove": dp_lr_add_or_remove,
    "taylor": taylor,
    "taylor-drawn": taylor_drawn,
    "taylor-linear": taylor_linear,
    "taylor-weights": taylor_weights,
    "taylor-selecting": taylor_selecting,
    "taylor-label-dp": taylor_label_dp,
    "taylor-linkage": taylor_linkage,
    "falcon": falcon,
    "falcon-untested": falcon_untested,
    "falcon-weights": falcon_weights,
    "falcon-threshold": falcon_threshold,
    "falcon-selecting": falcon_selecting,
    "falcon-private": falcon_private,
    "predict": predict,
    "evaluate": evaluate,
}
