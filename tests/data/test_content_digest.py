"""The digest by which an owner recognises a table."""

from __future__ import annotations

from blindfit.parties.data.content_digest import ContentDigest
from tests.data.tables import source_of, write


def digest(directory, ids, labels, persons=None) -> str:
    columns = {"id": ids, "y": labels} | ({} if persons is None else {"who": persons})
    source = source_of(
        directory, write(directory, "parquet", columns), label="y", person="who" if persons else None, batch_rows=4
    )
    found = ContentDigest()
    for batch in source.batches():
        found.add(batch)
    return found.hexdigest()


def test_it_is_of_the_content_alone(tmp_path):
    ids, labels, persons = list("abcdefghij"), [0, 1] * 5, list("ppqqrrsstt")

    def of(order, labels=labels, persons=persons) -> str:
        return digest(tmp_path, *([column[i] for i in order] for column in (ids, labels, persons)))

    first = of(range(10))
    assert len(first) == 64
    assert of(range(10)) == of(range(9, -1, -1)) == first
    assert of(range(9)) != first
    assert of(range(10), labels=[1, *labels[1:]]) != first
    assert of(range(10), persons=["q", *persons[1:]]) == digest(tmp_path, ids, labels) == first


def test_rows_that_look_alike_have_digests_of_their_own(tmp_path):
    """A label's text is not a part of an id."""
    tables = [(["a1"], [1]), (["a"], [0]), (["a"], [1]), (["1:a"], [1]), (["a11"], [1]), (["a1"], [0])]
    assert len({digest(tmp_path, ids, labels) for ids, labels in tables}) == len(tables)
