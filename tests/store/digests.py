"""Compute one digest of every kind that a party's database keeps, for fixed questions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.algorithms.protocols.label_dp.request import release_digest
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, statement
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.linear.scaling import Standardiser
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.vertical.row_plan import RowPlan
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.measurement.ways.several_parties import Blocks
from blindfit.parties.sessions.proposal import Member
from blindfit.parties.sessions.session import Session
from blindfit.parties.settings import PolicySettings
from blindfit.parties.snapshots import snapshot
from blindfit.parties.systems import system
from blindfit.parties.taylor import label_layouts
from blindfit.parties.vertical import linkages, scored_rows
from blindfit.parties.walr import holders

FIRST_VERSION = Path(__file__).with_name("digests.json")

LINKAGE = {"method": "linkage", "fields": ["name", "birth_date:date"], "threshold": 0.9}
JOBS: dict[str, dict[str, Any]] = {
    "walr": {"protocol": "walr", "privacy": {"epsilon": 1.0}},
    "walr with options": {
        "protocol": "walr",
        "seed": 3,
        "privacy": {
            "epsilon": 0.5,
            "delta": 1e-6,
            "mechanism": "classic",
            "max_rows_per_person": 2,
            "release": "again",
        },
        "split": {"test_fraction": 0.3},
        "walr": {
            "trust": "encrypted-rows",
            "norm_quantile": 0.9,
            "frac_bits": 12,
            "l2": 0.5,
            "solver": "lbfgs",
            "memory": 5,
        },
        "timeouts": {"step_s": 60.0},
    },
    "walr of shares": {"protocol": "walr", "privacy": {"epsilon": 1.0}, "walr": {"trust": "shared-rows"}},
    "walr of split labels": {"protocol": "walr", "privacy": {"epsilon": 1.0}, "walr": {"trust": "two-servers"}},
    "label-dp": {"protocol": "label-dp", "privacy": {"epsilon": 2.0}},
    "label-dp with options": {
        "protocol": "label-dp",
        "privacy": {"epsilon": 2.0},
        "label_dp": {"mechanism": "unbiased", "output_cells": 8, "options": {"alpha": 2.0}},
    },
    "dp-lr": {"protocol": "dp-lr", "privacy": {"epsilon": 1.0}},
    "dp-lr with options": {
        "protocol": "dp-lr",
        "privacy": {"epsilon": 1.0},
        "dp_lr": {
            "neighbours": "add-or-remove",
            "public_rows": 1000,
            "feature_bounds": ["age:0:110"],
            "budget": "iteration",
        },
    },
    "taylor": {"protocol": "taylor"},
    "taylor with options": {
        "protocol": "taylor",
        "align": LINKAGE,
        "taylor": {"class_weights": "balanced", "jitter": 0.5, "unsafe": ["class-weights"], "optimiser": "momentum"},
        "paillier": {"engine": "phe"},
    },
    "taylor under label DP": {"protocol": "taylor", "privacy": {"epsilon": 1.0}, "taylor": {"norm_bound": 1.0}},
    "falcon": {"protocol": "falcon", "falcon": {"validation_fraction": 0.1}},
    "falcon with options": {
        "protocol": "falcon",
        "privacy": {"epsilon": 1.0},
        "falcon": {"feature_bounds": ["*:-1:1"], "validation_fraction": 0.0},
        "split": {"test_fraction": 0.0},
    },
    "predict": {"protocol": "predict", "predict": {"session": "monday"}, "align": {"min_common": 10}},
    "evaluate": {"protocol": "evaluate", "privacy": {"epsilon": 1.0}, "evaluate": {"session": "monday"}},
    "evaluate with options": {
        "protocol": "evaluate",
        "privacy": {"epsilon": 1.0},
        "evaluate": {"session": "monday", "rows": "all", "figures": ["log_loss"], "trust": "encrypted-rows"},
    },
}
DATASETS: dict[str, dict[str, Any]] = {
    "active": {"url": "csv:rows.csv", "id": "id", "label": "bought", "features": "rest", "population": "people"},
    "active with options": {
        "url": "postgresql://me:secret@host/shop?table=rows",
        "id": "id",
        "label": "bought",
        "positive": "yes",
        "features": ["age", "region", "since"],
        "categories": {"region": ["north", "south"]},
        "dates": ["since"],
        "missing": "indicator",
    },
    "passive": {"url": "rows.parquet", "id": "id", "features": ["age"], "quasi_identifiers": {"name": "surname"}},
    "measurement": {
        "url": "sqlite:///labels.db?table=labels",
        "id": "id",
        "person": "who",
        "label": "spent",
        "label_kind": "number",
        "population": "people",
        "label_range": [0.0, 10.0],
    },
    "measurement of shares": {"url": "l.csv", "id": "id", "label": "s", "label_kind": "share", "split": "split_id"},
}
MEMBERS = {"bank": "active", "shop": "passive", "notary": "key-node"}
SNAPSHOTS = {"bank": "0b" * 16, "shop": "5e" * 16}
STANDARDISER = Standardiser(("age", "income", "one"), (0, 1), (40.0, 2.5), (10.0, 0.5))
PART = VerticalModelPart(
    "shop", "passive", "logistic", ("bank", "shop"), STANDARDISER, np.array([0.5, -0.25]), score_rounding=30
)
PLAN = RowPlan((np.array([0, 1, 2]), np.array([3, 4])), np.array([5]), np.array([6]))


def job_of(tables: Mapping[str, Any]) -> JobParameters:
    found: JobParameters = system(tables["protocol"]).job.model_validate(tables)
    return found


def session_of(job: JobParameters) -> Session[Any]:
    members = {n: Member(n, role, "host:1", "rows" if n in SNAPSHOTS else "") for n, role in MEMBERS.items()}
    channel: Any = None
    read: Any = SimpleNamespace(id=SNAPSHOTS["bank"])
    return Session(
        "monday", "coordinator", members, job.to_parameters(), job, channel, members["bank"], read, SNAPSHOTS
    )


def of_jobs(jobs: Mapping[str, Mapping[str, Any]] = JOBS) -> Iterator[tuple[str, str]]:
    """Yield the name of each digest of a job, and the digest."""
    for name, tables in jobs.items():
        job = job_of(tables)
        session = session_of(job)
        yield f"question of {name}", session.question.hex()
        yield f"approval of {name}", session.digest
        if hasattr(job, "align"):
            yield f"linkage of {name}", linkages.digest_linkage(session).hex()
        if hasattr(job, "taylor"):
            parameters: Any = SimpleNamespace(data_parties=("bank", "shop"), columns=(3, 2))
            yield f"batch layout of people of {name}", label_layouts._digest(session, parameters, PLAN, np.arange(7))
        if hasattr(job, "walr"):
            yield f"fit of blocks of {name}", Blocks(session, ["shop"]).settings_sha256
            yield f"norm bound of {name}", norm_bound_of(session)


def norm_bound_of(session: Session[Any]) -> str:
    """Return the request id under which the bits of a norm bound are counted."""
    party, drawn = mock.MagicMock(), mock.Mock(key=b"drawn")
    party.settings.policy = PolicySettings()
    holders.count_bound(party, session, 1000, drawn)
    (entry,) = party.store.transaction.return_value.__enter__.return_value.add_disclosure.call_args.args
    return str(entry.question)


def request(**changes: Any) -> AggregateOpen:
    values: dict[str, Any] = {
        "protocol_version": "1",
        "request_id": "name",
        "dataset": "labels",
        "snapshot": "0b" * 16,
        "n_rows": 100,
        "n_columns": 3,
        "frac_bits": 16,
        "norm_bound": 2**18,
        "max_rows_per_person": 0,
        "epsilon": 1.0,
        "delta": 1e-5,
        "mechanism": "analytic",
        "content_sha256": b"c" * 32,
        "receipt": b"",
        "receipt_signature": b"",
    }
    return AggregateOpen(**{**values, **changes})


def answer() -> NoisySum:
    return NoisySum(
        sums=np.array([1, 2, 3]),
        noise_std=5e5,
        sensitivity=2.0**18,
        event="gaussian/0x1.0p+2/one row's label changes",
        unit="row",
        neighbours="one row's label changes",
        rows_kept=99,
        rows_scaled=1,
        min_rows=20,
        max_epsilon=1.0,
        max_delta=1e-5,
        budget_epsilon=8.0,
        budget_delta=1e-5,
        entry="",
        receipt=b"",
        receipt_signature=b"",
    )


REQUESTS: dict[str, dict[str, Any]] = {
    "rows": {},
    "rows of persons": {"max_rows_per_person": 3, "epsilon": 0.5, "mechanism": "classic"},
    "encrypted rows": {"key": "fingerprint", "public_key": b"k", "slot_bits": 60},
    "shared rows": {"in_shares": 1},
    "blocks": {"blocks": '{"blocks":[]}'},
}
GRID = LabelGrid(0.0, 10.0)
MECHANISMS = {
    "laplace": MechanismSettings("laplace", GRID, 2.0),
    "gaussian": MechanismSettings("gaussian", GRID, 2.0, delta=1e-6),
    "rr-on-bins": MechanismSettings("rr-on-bins", GRID, 2.0, epsilon_prior=0.5),
    "rp-with-prior": MechanismSettings("rp-with-prior", GRID, 2.0, epsilon_prior=0.5, half_width="auto"),
}


def of_requests() -> Iterator[tuple[str, str]]:
    about = Between("meter", "bank", "people")
    for name, changes in REQUESTS.items():
        asked = request(**changes)
        yield f"request for {name}", walr.request_digest(asked).hex()
        yield f"name of the request for {name}", walr.step_1_name(asked, "")
        yield f"statement for {name}", statement.digest(asked, answer(), about)
    for name, settings in MECHANISMS.items():
        labels = release_labels.step_1_open(
            ["a", "b"], settings, dataset="labels", snapshot="0b" * 16, max_rows_per_person=2
        )
        yield f"labels by {name}", release_digest(labels).hex()
        yield f"name of the request for labels by {name}", labels.request_id


def of_models() -> Iterator[tuple[str, str]]:
    yield "scores of a model part", scored_rows._digest(PART)
    yield "start of a training", start_of(Pretrained(STANDARDISER, (0.5, -0.25), 0.125))


def start_of(model: Pretrained) -> str:
    return model.identity() if hasattr(model, "identity") else model.to_json()


def of_datasets(datasets: Mapping[str, Mapping[str, Any]] = DATASETS) -> Iterator[tuple[str, str]]:
    for name, options in datasets.items():
        settings = PartyDatasetSettings.model_validate(options)
        yield f"description of {name}", json.dumps(snapshot.meaning_of(settings), sort_keys=True)


def all_digests() -> dict[str, str]:
    return dict([*of_jobs(), *of_requests(), *of_models(), *of_datasets()])


if __name__ == "__main__":  # it was run once, with the code of the first version
    FIRST_VERSION.write_text(json.dumps(all_digests(), indent=1) + "\n")
