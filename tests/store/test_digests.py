"""A digest of the first version stays the same, after any renaming or addition."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.label_dp import request as label_request
from blindfit.algorithms.protocols.walr import AggregateOpen, request, statement
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.algorithms.statistics.linear import pretraining
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.job import parameters
from blindfit.parties.job.parameters import JobParameters
from blindfit.parties.snapshots import snapshot
from blindfit.parties.systems import SYSTEMS
from blindfit.parties.taylor.settings import TaylorJob
from blindfit.parties.vertical import scored_rows
from tests.store import digests

FIRST = json.loads(digests.FIRST_VERSION.read_text())
OF_HOW_IT_IS_USED = {
    "made_by",
    "batch_rows",
    "public",
    "snapshot_every_h",
    "row_is",
    "unknown_rows",
    "rows_are_public",
    "max_rows_per_person",
    "active_parties",
    "passive_parties",
    "label_range",
    "label_rate",
    "models_per_row",
}
"""Options that limit the use of a dataset's rows: a snapshot does not depend on them."""


def test_every_digest_is_that_of_the_first_version() -> None:
    """A digest that differs here loses its meaning: algorithms/digest_format.py explains how to keep it."""
    assert digests.all_digests() == FIRST


def test_every_system_has_a_digest() -> None:
    assert {tables["protocol"] for tables in digests.JOBS.values()} == SYSTEMS.keys()


def test_every_option_of_a_dataset_is_part_of_its_description_or_of_its_use() -> None:
    described = snapshot.meaning_of(PartyDatasetSettings(url="csv:rows.csv", id="id")).keys() | snapshot.DIGEST.added
    now = {snapshot.DIGEST.renamed.get(name, name) for name in PartyDatasetSettings.model_fields}
    assert now == described | OF_HOW_IT_IS_USED


# --- tomorrow's code -----------------------------------------------------------------------------------


RENAMED = {
    "align.min_common": "align.min_common",
    "walr.max_norm": "walr.norm_bound",
    "walr.quantile": "walr.norm_quantile",
    "walr.trusted": "walr.trust",
    "evaluate.trusted": "evaluate.trust",
    "taylor.weights_of_classes": "taylor.class_weights",
    "taylor.label_noise": "taylor.jitter",
    "taylor.continue": "taylor.resume",
    "system": "protocol",
}
TRUST = {"one-server": "trusted", "split": "two-servers", "in-shares": "shares", "hidden": "paillier"}
VALUES = {
    "walr.trust": TRUST,
    "evaluate.trust": TRUST,
    "evaluate.figures": {"log-loss": "log_loss"},
    "taylor.class_weights": {"equal": "balanced"},
    "taylor.unsafe": {"weighted-classes": "class-weights"},
    "protocol": {"dplr": "dp-lr"},
}
ADDED = {"align.salt": 0, "walr.more": "none", "taylor.more": False, "privacy.more": (1.0, 2.0)}
REMOVED = {"walr.intercept": True, "privacy.mechanism": "analytic"}


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options have other names and values, some are new, and some are gone."""
    names = {old: new for new, old in RENAMED.items()}
    values = {name: {old: new for new, old in table.items()} for name, table in VALUES.items()}
    today, digest_of_today = JobParameters.to_parameters, parameters.JOB_DIGEST

    def written(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [written(name, item) for item in value]
        return values.get(name, {}).get(value, value)

    def to_parameters(job: JobParameters) -> dict[str, Any]:
        found = digest_of_today.fields(today(job))
        tables = {name.partition(".")[0] for name in found}
        kept = {name: value for name, value in found.items() if REMOVED.get(name) != value}
        new = {name: value for name, value in ADDED.items() if name.partition(".")[0] in tables}
        return {names.get(n, n): written(n, value) for n, value in kept.items()} | new

    monkeypatch.setattr(JobParameters, "to_parameters", to_parameters)
    monkeypatch.setattr(TaylorJob, "resume_option", "taylor.continue")
    monkeypatch.setattr(parameters, "JOB_DIGEST", DigestFormat(RENAMED, VALUES, ADDED, REMOVED))


def test_a_job_has_the_same_digests_after_options_were_renamed_added_and_removed(tomorrow: None) -> None:
    now = digests.job_of(digests.JOBS["walr of shares"]).to_parameters()
    assert (now["walr.trusted"], now["walr.more"], "walr.intercept" in now) == ("in-shares", "none", False)
    found = dict(digests.of_jobs())
    assert found == {name: FIRST[name] for name in found}


def test_an_option_that_was_added_is_in_the_digest_once_it_says_something_else(
    tomorrow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = digests.JOBS["taylor with options"]
    monkeypatch.setitem(ADDED, "taylor.more", True)
    monkeypatch.setattr(
        parameters, "JOB_DIGEST", DigestFormat(RENAMED, VALUES, {**ADDED, "taylor.more": False}, REMOVED)
    )
    assert digests.session_of(digests.job_of(tables)).question.hex() != FIRST["question of taylor with options"]


def test_a_session_that_goes_on_has_the_question_of_the_one_that_began(tomorrow: None) -> None:
    """This holds even if the option that names the session has another name by then."""
    began = digests.session_of(digests.job_of({"protocol": "taylor"}))
    goes_on = digests.session_of(digests.job_of({"protocol": "taylor", "taylor": {"resume": "monday"}}))
    assert began.question == goes_on.question
    assert began.digest != goes_on.digest


@dataclasses.dataclass(frozen=True, slots=True)
class AggregateOpenTomorrow(AggregateOpen):
    weighted: int = 0


@pytest.mark.parametrize("name", digests.REQUESTS)
def test_a_request_has_the_same_digest_after_a_field_was_added(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tomorrow = DigestFormat(added={"weighted": 0})
    for module in (request, statement):
        monkeypatch.setattr(module, "DIGEST", tomorrow)
    monkeypatch.setattr(statement, "ASKED", (*statement.ASKED, "weighted"))
    monkeypatch.setattr(statement, "_TYPE_OF", {**statement._TYPE_OF, "weighted": int})
    about = Between("meter", "bank", "people")
    for weighted, same in ((0, True), (1, False)):
        asked = AggregateOpenTomorrow(
            **{
                f.name: getattr(digests.request(**digests.REQUESTS[name]), f.name)
                for f in dataclasses.fields(AggregateOpen)
            },
            weighted=weighted,
        )
        assert (walr.request_digest(asked).hex() == FIRST[f"request for {name}"]) is same
        stated = statement.digest(asked, digests.answer(), about)
        assert (stated == FIRST[f"statement for {name}"]) is same


@pytest.mark.parametrize("name", digests.MECHANISMS)
def test_a_label_release_has_the_same_digest_after_options_were_renamed_and_added(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = label_request.settings_parameters

    def tomorrow(settings: Any) -> dict[str, Any]:
        found = today(settings)
        return {("bins" if option == "cells" else option): value for option, value in found.items()} | {"more": 1.0}

    changed = DigestFormat(renamed={"settings.bins": "settings.cells"}, added={"settings.more": 1.0})
    monkeypatch.setattr(label_request, "settings_parameters", tomorrow)
    monkeypatch.setattr(label_request, "DIGEST", changed)
    found = dict(digests.of_requests())
    for kind in ("labels by", "name of the request for labels by"):
        assert found[f"{kind} {name}"] == FIRST[f"{kind} {name}"]


def test_a_model_has_the_same_digest_after_its_file_got_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, module, name in ((VerticalModelPart, scored_rows, "PART_DIGEST"), (Pretrained, pretraining, "DIGEST")):
        monkeypatch.setattr(kind, "to_dict", lambda model, today=kind.to_dict: {**today(model), "columns": []})
        monkeypatch.setattr(module, name, DigestFormat(added={"columns": []}))
    found = dict(digests.of_models())
    assert found == {name: FIRST[name] for name in found}


class Tomorrow(PartyDatasetSettings):
    missing_marks: tuple[str, ...] = ("", "NA")


@pytest.mark.parametrize("name", digests.DATASETS)
def test_a_dataset_is_described_as_before_after_an_option_was_added(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "ENCODED", (*snapshot.ENCODED, "missing_marks"))
    monkeypatch.setattr(
        snapshot,
        "DIGEST",
        replace(snapshot.DIGEST, added={**snapshot.DIGEST.added, "missing_marks": ["", "NA"]}),
    )
    for more, same in (({}, True), ({"missing_marks": ("none",)}, False)):
        settings = Tomorrow.model_validate({**digests.DATASETS[name], **more})
        described = json.dumps(snapshot.meaning_of(settings), sort_keys=True)
        assert (described == FIRST[f"description of {name}"]) is same


# --- laws ------------------------------------------------------------------------------------------------

NAMES = st.text("abc.", min_size=1, max_size=4)
SIMPLE = st.integers(0, 3) | st.text("xyz", max_size=2) | st.booleans() | st.floats(0, 1)
FIELDS = st.dictionaries(NAMES, SIMPLE | st.lists(SIMPLE, max_size=3), min_size=1, max_size=6)


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], DigestFormat]:
    """Draw the fields of the first version, the same fields as the code has them tomorrow, and the format between."""
    first = draw(FIELDS)
    renamed = {f"new {name}": name for name in draw(st.sets(st.sampled_from(sorted(first))))}
    names = {old: new for new, old in renamed.items()}
    items = [item for value in first.values() for item in (value if isinstance(value, list) else [value])]
    values = {name: {f"new {text}": text for text in items if isinstance(text, str)} for name in first}
    added = draw(st.dictionaries(NAMES.map("added {}".format), SIMPLE, max_size=3))
    now = {names.get(name, name): _renewed(value) for name, value in first.items()}
    return first, {**now, **added}, DigestFormat(renamed, values, added)


def _renewed(value: Any) -> Any:
    if isinstance(value, list):
        return [_renewed(item) for item in value]
    return f"new {value}" if isinstance(value, str) else value


@given(changes())
def test_fields_are_written_as_in_the_first_version_and_read_again(
    drawn: tuple[dict[str, Any], dict[str, Any], DigestFormat],
) -> None:
    first, now, changed = drawn
    assert changed.fields(now) == first
    assert changed.restore(first) == now


@given(FIELDS)
def test_a_format_without_entries_changes_nothing(drawn: dict[str, Any]) -> None:
    assert DigestFormat().fields(drawn) == drawn == DigestFormat().restore(drawn)


@pytest.mark.parametrize(
    "tables", [{"renamed": {"a": "c", "b": "c"}}, {"values": {"a": {"x": "z", "y": "z"}}}], ids=["names", "values"]
)
def test_two_questions_never_get_one_digest(tables: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="have one name in the digest"):
        DigestFormat(**tables)


def test_what_is_removed_stays_where_the_rest_of_its_table_is() -> None:
    changed = DigestFormat(removed={"walr.old": 1, "old": 2})
    assert changed.fields({"walr.l2": 0.5}) == {"walr.l2": 0.5, "walr.old": 1, "old": 2}
    assert changed.fields({"taylor.l2": 0.5}) == {"taylor.l2": 0.5, "old": 2}
    assert changed.restore({"walr.l2": 0.5, "walr.old": 1, "old": 2}) == {"walr.l2": 0.5}
