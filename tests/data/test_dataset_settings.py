from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from blindfit.parties.data.settings import DatasetSettings
from blindfit.parties.data.urls import without_password
from tests.each_case import each_case


def test_unknown_field_is_refused():
    with pytest.raises(ValidationError, match="lable"):
        DatasetSettings(url="a.csv", id="id", lable="y")


@each_case(
    "roles",
    [{"label": "id"}, {"person": "id"}, {"features": ["x", "x"]}, {"features": ["id"]}, {"label": "y", "person": "y"}],
)
def test_a_column_has_one_role(roles):
    with pytest.raises(ValidationError, match="is named twice"):
        DatasetSettings(url="a.csv", id="id", **roles)


@each_case(
    ("settings", "said"),
    [
        ({"features": ["x"], "except": ["y"]}, 'except does nothing without features = "rest", remove it'),
        ({"except": ["y"]}, 'except does nothing without features = "rest", remove it'),
        ({"features": "rest", "except": ["id"]}, "column id is named twice"),
        ({"features": "rest", "label": "y", "except": ["y"]}, "column y is named twice"),
        ({"features": "rest", "quasi_identifiers": {"last": "name"}, "except": ["name"]}, "column name is named twice"),
        ({"features": "rest", "except": ["y", "y"]}, "column y is named twice"),
        ({"features": "rest", "except": ["y"], "dates": ["y"]}, "column y of categories or dates is in except"),
        ({"features": "rest", "except": [""]}, "except.0\n"),
    ],
)
def test_what_may_not_be_left_out(settings, said):
    with pytest.raises(ValidationError, match=re.escape(said)):
        DatasetSettings.model_validate({"url": "a.csv", "id": "id", **settings})


def test_records_that_are_linked_keep_their_rows():
    with pytest.raises(ValidationError, match='missing = "drop" cannot go with quasi_identifiers: take "mean"'):
        DatasetSettings(url="a.csv", id="id", quasi_identifiers={"last_name": "name"}, missing="drop")


def test_neither_repr_nor_a_validation_error_shows_the_password():
    url = "postgresql://u:s3cret@h/db?password=s3cret&table=t"
    assert "s3cret" not in repr(DatasetSettings(url=url, id="id"))
    assert "s3cret" not in str(DatasetSettings(url=url, id="id"))
    with pytest.raises(ValidationError) as caught:
        DatasetSettings(url=url, id="id", label="id")
    assert "s3cret" not in str(caught.value)


@each_case(
    ("url", "shown"),
    [
        ("postgresql://u:s3cret@h:1/db?table=t", "postgresql://u:***@h:1/db"),
        ("postgresql://u@h/db?password=s3cret", "postgresql://u@h/db"),
        ("postgresql://u:s3cret@h:port/db", "postgresql://..."),
        ("mysql://u:s3cret@h/db", "mysql://u:***@h/db"),
        ("csv:data/visits.csv", "csv:data/visits.csv"),
        ("data/passwords.csv", "data/passwords.csv"),
        ("host=h dbname=db password=s3cret", "host=..."),
        ("host=h user=u pwd=s3cret", "host=..."),
        ("u:s3cret@h/db", "..."),
        ("notes.txt", "notes.txt"),
    ],
)
def test_url_as_it_may_be_shown(url, shown):
    assert without_password(url) == shown
