"""Options that a party's file may not have, and what the error proposes to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli_w

from blindfit.parties.systems import load_party
from tests.each_case import each_case
from tests.hints.following import refused, with_changes
from tests.hints.parties import BUDGET, PARTIES
from tests.hints.wrong_options import Wrong, follow

TLS = {f"compute.{name}": f"cluster/{name}.pem" for name in ("certificate", "key", "authority")}


DATASET = "datasets.rows"
CASES = [
    Wrong(
        "active",
        {"policy.min_rows": 3},
        says="without the protocol {}, {} does nothing, remove it",
        mend={"policy.min_rows": None},
    ),
    # --- datasets
    Wrong(
        "passive",
        {f"{DATASET}.features": ["x"], f"{DATASET}.except": ["y"]},
        says='except does nothing without features = "rest", remove it',
    ),
    *(
        Wrong(
            "passive",
            {f"{DATASET}.except": ["born"], f"{DATASET}.{encoded}": ["born"]},
            says="column {} of categories or dates is in except, remove it from one of them",
            mend={f"{DATASET}.{option}": None},
        )
        for encoded in ("categories", "dates")
        for option in ("except", encoded)
    ),
    Wrong(
        "passive",
        {f"{DATASET}.positive": "yes"},
        says='positive names the text of label 1: it needs a label, and label_kind = "binary"',
        mend={f"{DATASET}.label": "y", f"{DATASET}.label_kind": "binary"},
    ),
    Wrong(
        "active",
        {f"{DATASET}.split": "s"},
        says='split does nothing without label_kind = "share", remove it',
    ),
    Wrong(
        "server",
        {f"{DATASET}.label_kind": "share"},
        says='names the split of each share, such as split = "split"',
        mend={f"{DATASET}.split": "split"},
    ),
    Wrong(
        "passive",
        {f"{DATASET}.missing": "drop", f"{DATASET}.quasi_identifiers": {"name": "name"}},
        says='missing = "drop" cannot go with quasi_identifiers: take "mean"',
        mend={f"{DATASET}.missing": "mean"},
    ),
    Wrong("server", {f"{DATASET}.features": "rest"}, says="datasets.{}.{}: does nothing here, remove it"),
    Wrong("passive", {f"{DATASET}.rows_are_public": True}, says="datasets.{}.{}: does nothing here, remove it"),
    *(
        Wrong(role, {f"{DATASET}.label_rate": 0.1}, says="datasets.{}.{}: does nothing here, remove it")
        for role in ("passive", "server")
    ),
    Wrong("server", {f"{DATASET}.max_rows_per_person": 2}, says="datasets.{}.{}: does nothing here, remove it"),
    Wrong(
        "server",
        {f"{DATASET}.label_range": [0.0, 1.0]},
        says="datasets.{}.label_range: does nothing with binary labels, remove it",
    ),
    Wrong(
        "active",
        {f"{DATASET}.label_kind": "share", f"{DATASET}.split": "split"},
        says='datasets.{}.label_kind = "share" is only for measurement servers, remove it and datasets.{}.split',
        mend={f"{DATASET}.label_kind": None, f"{DATASET}.split": None},
    ),
    *(
        Wrong(
            "active",
            {f"{DATASET}.public": True, f"{DATASET}.population": "people", **BUDGET},
            says="datasets.{}: public = true cannot go with a population, remove one of them",
            mend={option: None, **more},
        )
        for option, more in ((f"{DATASET}.public", {}), (f"{DATASET}.population", {"populations": None}))
    ),
    Wrong(
        "server",
        {f"{DATASET}.label": None},
        says="datasets.{}.label: a measurement server's dataset needs a label column",
        mend={f"{DATASET}.label": "y"},
    ),
    *(
        Wrong(
            "server",
            {f"{DATASET}.unknown_rows": "zero", f"{DATASET}.person": "who"},
            says='datasets.{}.unknown_rows = "zero" cannot go with a person column, remove one of them',
            mend={option: None},
        )
        for option in (f"{DATASET}.unknown_rows", f"{DATASET}.person")
    ),
    Wrong(
        "server",
        {f"{DATASET}.active_parties": []},
        says="datasets.{}.active_parties is empty: name the active parties that may ask",
        mend={f"{DATASET}.active_parties": ["bank"]},
    ),
    *(
        Wrong(
            "server",
            {f"{DATASET}.active_parties": ["shop"]},
            says="datasets.{}.active_parties: {} is not an active party of [peers]: correct it, or add "
            '[peers.{}] with role = "active"',
            mend=mend,
        )
        for mend in ({f"{DATASET}.active_parties": ["bank"]}, {"peers.shop": {"role": "active"}})
    ),
    *(
        Wrong(
            "server",
            {f"{DATASET}.passive_parties": ["shop"]},
            says="datasets.{}.passive_parties: {} is not a passive party of [peers]: correct it, or add "
            '[peers.{}] with role = "passive"',
            mend=mend,
        )
        for mend in ({f"{DATASET}.passive_parties": ["post"]}, {"peers.shop": {"role": "passive"}})
    ),
    Wrong(
        "numbers",
        {f"{DATASET}.passive_parties": ["post"]},
        says="datasets.{}.passive_parties: does nothing without binary labels, remove it",
    ),
    Wrong(
        "numbers",
        {f"{DATASET}.label_range": None},
        says="datasets.{}.label_range is missing: labels that are numbers are released with noise as "
        "wide as their public range, such as [0.0, 100.0]",
        mend={f"{DATASET}.label_range": [0.0, 100.0]},
    ),
    Wrong(
        "numbers",
        {f"{DATASET}.unknown_rows": "zero"},
        says='datasets.{}.unknown_rows = "zero" cannot go with label_kind = "number", remove it',
    ),
    *(
        Wrong(
            "server",
            {f"{DATASET}.population": "visitors"},
            says="datasets.{}.population: {} is not one of [populations] ({}); a population has the budget",
            mend=mend,
        )
        for mend in (
            {f"{DATASET}.population": "people"},
            {"populations": {"visitors": {"epsilon": 1.0, "delta": 1e-5}}},
        )
    ),
    # --- policy
    Wrong(
        "server",
        {"policy.systems": ["walr", "label-dp"], "policy.label-dp": {"mechanisms": ["laplace"]}},
        says='is for a measurement server\'s datasets of label_kind = "number"',
        mend={"policy.label-dp": None},
    ),
    Wrong(
        "passive",
        {"fit": {"time_limit_s": 3.0}},
        says="[fit] is for a measurement server's datasets of label_kind",
        mend={"fit": None},
    ),
    Wrong(
        "passive",
        {"policy.max_failed_uploads": 3},
        says="{} is an option of {}, remove it",
        mend={"policy.max_failed_uploads": None},
    ),
    Wrong(
        "key-node",
        {"policy.min_common": 30},
        says="{} is an option of {}, remove it",
        mend={"policy.min_common": None},
    ),
    Wrong(
        "key-node",
        {"policy.account_period_days": 30},
        says="{} does nothing without [datasets], remove it",
        mend={"policy.account_period_days": None},
    ),
    Wrong(
        "active",
        {"policy.account_shares": {"shpo": 0.5}},
        says="policy.account_shares: {} is not one of [peers] ({}): name one of these",
        mend={"policy.account_shares": {"coordinator": 0.5}},
    ),
    *(
        Wrong(
            "passive",
            {"policy.unsafe": ["leverage"], "policy.approve": "ask"},
            says='unsafe does nothing with approve = "ask", which shows every flag to the operator: remove it',
            mend={option: None},
        )
        for option in ("policy.unsafe",)
    ),
    Wrong(
        "passive",
        {"scores": {"url": "csv:s.csv"}},
        says="{} is an option of {}, remove it",
        mend={"scores": None},
    ),
    Wrong(
        "active",
        {"scores.if_exists": "replace"},
        says="if_exists does nothing without url: scores.csv is replaced with its report, remove it",
    ),
    Wrong(
        "passive",
        BUDGET,
        says="populations: no dataset names one, so their budgets do nothing, remove them",
        mend={"populations": None},
    ),
    # --- compute
    Wrong("passive", {"compute.address": "tls://dask:1"}, says='{} does nothing with backend = "{}", remove it'),
    Wrong(
        "passive",
        {"compute.workers": 1},
        says='workers = 1 is only this process: set backend = "serial" and remove workers',
        mend={"compute.backend": "serial", "compute.workers": None},
    ),
    Wrong(
        "passive",
        {"compute.backend": "dask", **TLS},
        says='address is missing: backend = "dask" needs its scheduler, such as tls://scheduler:8786',
        mend={"compute.address": "tls://scheduler:8786"},
    ),
    Wrong(
        "passive",
        {"compute.backend": "dask", "compute.address": "scheduler:8786", **TLS},
        says="address: {} is not of the form tls://host:port",
        mend={"compute.address": "tls://scheduler:8786"},
    ),
    Wrong(
        "passive",
        {"compute.backend": "dask", "compute.address": "tcp://scheduler:8786", **TLS},
        says="address: tcp:// is for a scheduler on this machine; to any other it is tls://",
        mend={"compute.address": "tls://scheduler:8786"},
    ),
    Wrong(
        "passive",
        {"compute.backend": "dask", "compute.address": "tcp://localhost:8786", "compute.key": "k.pem"},
        says="{} does nothing with a tcp:// address, remove it",
    ),
    Wrong(
        "passive",
        {"compute.backend": "dask", "compute.address": "tls://dask:8786", **TLS, "compute.key": None},
        says="{} is missing: tls:// needs certificate, key and authority",
        mend=TLS,
    ),
    Wrong(
        "passive",
        {"compute.backend": "dask", "compute.address": "tls://dask:8786", **TLS, "compute.authority": "a.pem"},
        says="compute.authority is that of [identity], of which other organisations have certificates",
        mend={"compute.authority": "cluster/authority.pem"},
    ),
    # --- the rest
    Wrong(
        "passive",
        {"listen": "post"},
        says="{} is not host:port with a port from 0 to 65535",
        mend={"listen": "0.0.0.0:7100"},
    ),
    Wrong(
        "passive",
        {"peers.post.address": "post"},
        says="write host:port, or [address]:port for IPv6",
        mend={"peers.post.address": "[::1]:7100"},
    ),
    Wrong(
        "key-node",
        {"peers.coordinator.role": "active"},
        says='names no peer with role = "coordinator": nobody could propose a job',
        mend={"peers.coordinator.role": "coordinator"},
    ),
]


@each_case("role", PARTIES)
def test_what_the_mistakes_are_made_in_is_right_itself(tmp_path: Path, role: str) -> None:
    load(tmp_path, PARTIES[role])


def load(directory: Path, values: dict[str, Any]) -> None:
    path = directory / "party.toml"
    path.write_text(tomli_w.dumps(values))
    load_party(path)


@each_case("wrong", CASES, ids=lambda wrong: f"{wrong.job}: {wrong.changes}")
def test_a_party_file_is_mended_as_its_error_says(tmp_path: Path, wrong: Wrong) -> None:
    values = with_changes(PARTIES[wrong.job], wrong.changes)
    with refused(wrong.says) as told:
        load(tmp_path, values)
    told.text = told.text.replace(f"{tmp_path / 'party.toml'}: ", "")
    load(tmp_path, follow(values, told, wrong.mend))
