"""Each rule finds the sentences that it is for, and lets plain sentences pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.words.findings import findings_in
from tests.words.rules import RULES, Kind, findings_of
from tests.words.sources import ROOT, Text, page_texts, python_texts, tracked

BROKEN = {
    "alone": "The active party alone learns the scores.",
    "beside": "The report lies beside the model.",
    "anew": "The noise is drawn anew.",
    "hang on": "The time hangs on the network.",
    "more": "It costs one noisy sum more.",
    "none": "This is no day.",
    "in no form": "Nobody sees a gradient, in no form.",
    "participle first": "Shown are the rows that matched.",
    "headless who": "The scores go to whoever has all parts.",
    "who asks": "Who waits reads the name of the dataset.",
    "he or she": "The operator types his passphrase.",
    "tell": "The report tells what was spent.",
    "say": "The report says what was spent.",
    "internal": "The floor below has no socket.",
    "up": "Wait until the party is up.",
    "role": "The asker reads the sum.",
    "leading zero": "The chance is .05 at most.",
    "percent": "It covers 99 % of the rows.",
    "microseconds": "A product takes 5 us on this machine.",
    "thousands": "It has 20000 rows.",
    "range": "Choose a value of 0.1\u20130.3 here.",
    "the spec": "The spec has a proof.",
}
PLAIN = (
    "Only the active party learns the scores.",
    "The server sends one more noisy sum.",
    "A party that waits prints the name of the dataset.",
    "Who learns what? The table lists it.",
    "Use a value of 0.1 to 0.3. The chance is 0.05, or 99% for 20,000 rows of version 1.2.3.",
    "At most two parties may be in the session, and at least one must have labels.",
)


def names_of(text: str, kind: Kind = Kind.PAGE) -> set[str]:
    return {finding.split(":")[0] for finding in findings_of(text, kind)}


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_a_rule_finds_what_it_is_for(rule: str) -> None:
    assert rule in names_of(BROKEN[rule])


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_sentence_passes(text: str) -> None:
    assert names_of(text) == set()


def test_a_long_sentence_is_found() -> None:
    assert names_of("One party sends a row to the server " * 5 + ".") == {"long"}
    assert names_of("One party sends a row to the server. " * 5) == set()


@pytest.mark.parametrize(
    ("prose", "describes", "found"),
    [
        ("Of the rows that matched.", "value", "opening"),
        ("Whether the rows matched.", "function", "opening"),
        ("What the parties learn.", "module", "opening"),
        ("The rows that matched.", "function", "verb"),
        ("The rows that matched.", "value", ""),
        ("Return the rows that matched.", "function", ""),
        ("X = X + X, modulo the prime.", "function", ""),
        ("Raises: DataError: a row is empty.", "function", ""),
    ],
)
def test_how_a_description_opens(prose: str, describes: str, found: str) -> None:
    findings = list(findings_in(Text("here", Kind.DOCSTRING, prose, describes)))
    assert [finding.split(":")[0] for finding in findings] == [found] * bool(found)


def test_texts_of_python_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.words.sources.ROOT", tmp_path)
    (file := tmp_path / "parties" / "example.py").parent.mkdir()
    file.write_text(
        '"""Keep rows."""\n\n# A comment that\n# has two lines\nclass Rows:\n'
        '    """\n    Attributes:\n        count: number of rows.\n    """\n\n'
        '    count: int = 1\n    """Number of rows."""\n\n'
        'def check(n):\n    """Check a number.\n\n    Args:\n        n: rows, 1 to 5.\n    """\n'
        "    raise ValueError(f\"{n} rows are too many: {'give' if n else 'leave out'} fewer of them\")\n"
    )
    found = [(text.kind, text.describes, text.prose) for text in python_texts(file)]
    assert (Kind.DOCSTRING, "module", "Keep rows.") in found
    assert (Kind.DOCSTRING, "entry", "number of rows.") in found
    assert (Kind.DOCSTRING, "value", "Number of rows.") in found
    assert (Kind.DOCSTRING, "function", "Check a number.") in found
    assert (Kind.DOCSTRING, "entry", "rows, 1 to 5.") in found
    assert (Kind.COMMENT, None, "A comment that has two lines") in found
    assert (Kind.MESSAGE, None, "X rows are too many: X fewer of them") in found


def test_texts_of_a_page_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.words.sources.ROOT", tmp_path)
    (page := tmp_path / "page.md").write_text(
        "# A title\n\nTwo lines of\none paragraph with `code`.\n\n- first item\n- second item\n\n"
        "| a cell | another cell |\n|---|---|\n\n```sh\nblindfit run\n```\n\n> A quotation.\n"
    )
    prose = [text.prose for text in page_texts(page)]
    assert prose == [
        *("A title", "Two lines of one paragraph with X.", "first item", "second item", "a cell", "another cell")
    ]


def test_no_file_is_exempt() -> None:
    """Every page and every module of the repository is read, but for generated protocol buffers."""
    names = {str(path.relative_to(ROOT)) for path in tracked(".md", ".ipynb", ".j2", ".py")}
    assert {"README.md", "CHANGELOG.md", "tests/words/rules.py", "coordinator/walr/page.html.j2"} <= names
    assert any(name.startswith("docs/tutorials/") and name.endswith(".ipynb") for name in names)


def test_only_papers_are_quoted() -> None:
    """A quotation on a page is not checked: so it names the paper that it comes from."""
    unnamed = []
    for path in tracked(".md"):
        for block in path.read_text("utf-8").split("\n\n"):
            if block.lstrip().startswith(">") and not ("(" in block and any(part.isdigit() for part in block)):
                unnamed.append(f"{path.relative_to(ROOT)}: {block[:60]}")
    assert unnamed == []
