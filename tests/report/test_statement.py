"""The privacy statement has each claim if it holds, and only then."""

from __future__ import annotations

import re

from blindfit.algorithms.messages import ParameterValue
from blindfit.coordinator.report.sections import statement_text
from blindfit.coordinator.terminal.wording import duration, join_names, size
from blindfit.coordinator.walr.figures import figures_of
from blindfit.coordinator.walr.statement import privacy_statement, two_sentences
from tests.each_case import each_case
from tests.report.conftest import MadeUp
from tests.report.pages import on_screen
from tests.reports import write_report


def text_of(made_up: MadeUp, topic: str, here: tuple[str, ...] = (), **changes: ParameterValue) -> str:
    content = write_report(made_up.session(**changes), made_up.out, list(here)).content
    (section,) = [s for s in privacy_statement(content) if s.topic == topic]
    return " ".join(section.sentences)


def test_every_topic_once(made_up: MadeUp) -> None:
    content = write_report(made_up.session(), made_up.out, []).content
    assert [section["topic"] for section in content["privacy_statement"]] == [
        "unit",
        "neighbours",
        "epsilon",
        "delta",
        "mechanism",
        "noise",
        "composition",
        "learnt-active",
        "learnt-measurement",
        "learnt-coordinator",
        "learnt-key-node",
        "collusion",
        "not-covered",
    ]


def test_a_row_is_not_a_person(made_up: MadeUp) -> None:
    said = text_of(made_up, "unit")
    assert "the label of one row" in said
    assert "protected only row by row" in said


def test_a_person_is_whole(made_up: MadeUp) -> None:
    said = text_of(made_up, "unit", privacy__unit="the labels of one person", privacy__max_rows_per_person=3)
    assert "the labels of one person, taken together" in said
    assert "at most 3 rows of a person" in said
    assert "row by row" not in said


def test_the_figures_are_the_jobs(made_up: MadeUp) -> None:
    assert "e^epsilon = 7.389" in text_of(made_up, "epsilon", privacy__epsilon=2.0)
    assert "delta = 1e-06" in text_of(made_up, "delta", privacy__delta=1e-6)
    assert "differs by at most 8.8" in text_of(made_up, "mechanism")
    assert "32.83 in every coordinate of the sum" in text_of(made_up, "noise")


def test_composition(made_up: MadeUp) -> None:
    assert "holds 1 release, which spent epsilon 1; 3 is left" in text_of(made_up, "composition")
    said = text_of(made_up, "composition", privacy__releases=4, privacy__spent_epsilon=2.25)
    assert "holds 4 releases, which together spent epsilon 2.25; 1.75 is left" in said


def test_what_the_active_party_learnt_of_its_rows(made_up: MadeUp) -> None:
    assert "that all of its rows counted" in text_of(made_up, "learnt-active")
    assert "which 7 rows did not count" in text_of(made_up, "learnt-active", rows__not_counted=7)


def test_the_server_saw_all_rows_that_were_sent(made_up: MadeUp) -> None:
    assert "the 14,137 rows sent" in text_of(made_up, "learnt-measurement", rows__not_counted=7)


def test_the_coordinator_of_one_machine_sees_more(made_up: MadeUp) -> None:
    assert "No row, id, label, sum, weight" in text_of(made_up, "learnt-coordinator")
    assert "this machine" not in text_of(made_up, "learnt-coordinator")
    assert "all parties ran on this machine" in text_of(made_up, "learnt-coordinator", ("insurer", "clinic"))


@each_case("trust", ["trusted", "two-servers", "encrypted-rows"])
def test_no_key_node_learnt_anything_where_there_is_none(made_up: MadeUp, trust: str) -> None:
    assert text_of(made_up, "learnt-key-node", privacy__trust=trust) == "Nothing. This system uses no key node."


def test_what_a_key_node_learnt_that_dealt_masks(made_up: MadeUp) -> None:
    said = text_of(made_up, "learnt-key-node", privacy__trust="shared-rows", privacy__epsilon_of_both=0.6)
    assert "uses none" not in said
    assert "The numbers of rows and columns for which it dealt masks" in said
    assert "with one of clinic it would know rows and labels" in said


def test_a_server_that_colludes_reveals_the_labels(made_up: MadeUp) -> None:
    said = text_of(made_up, "collusion")
    assert "If it colludes with anyone, every label is revealed to them" in said
    assert "the budget, epsilon 4 at delta 1e-05, bounds" in said


def test_as_plain_text(made_up: MadeUp) -> None:
    content = write_report(made_up.session(), made_up.out, []).content
    text = statement_text(privacy_statement(content))
    assert all(len(line) <= 100 for line in text.splitlines())
    assert text.startswith("What is protected\n  The protected unit is the label of one row")


# --- the terminal ------------------------------------------------------------------------------------------


def shown(made_up: MadeUp, here: list[str], width: int = 100, **changes: ParameterValue) -> str:
    written = write_report(made_up.session(**changes), made_up.out, here)
    return on_screen(written, width=width)


def test_the_summary_in_the_terminal(made_up: MadeUp) -> None:
    made_up.write_party()
    text = shown(made_up, ["insurer", "clinic"])
    whole = shown(made_up, ["insurer", "clinic"], width=1000)  # for any length of the temporary folder's path
    assert len(whole.splitlines()) <= 15
    for part in (
        "14,130 trained on",
        "epsilon 1, delta 1e-05",
        "newton, 4 iterations, converged, l2 0.0061",
        "1 of 4 spent on patients, 3 left",
        "3.7 s",
        str(made_up.out / "report.html"),
        str(made_up.out / "insurer" / "model.json"),
    ):
        assert part in text
    assert re.sub(r"\s+", " ", two_sentences(figures_of(write_report(made_up.session(), made_up.out, []).content))) in (
        re.sub(r"\s+", " ", text)
    )


def test_the_terminal_after_submit(made_up: MadeUp) -> None:
    assert "kept by insurer" in shown(made_up, [])


def test_markup_is_not_read_in_the_terminal(made_up: MadeUp) -> None:
    text = shown(made_up, [], fit__converged=False, fit__reason="[bold]why[/bold]", privacy__population="[red]")
    assert "[bold]why[/bold]" in text
    assert "spent on [red]" in text
    assert len(text.splitlines()) <= 20


@each_case(
    ("seconds", "words"),
    [(0.0123, "12 ms"), (0.42, "0.42 s"), (3.71, "3.7 s"), (59.2, "59 s"), (125, "2 min 5 s"), (7384, "2 h 3 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@each_case(("n_bytes", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**41, "2.05e+03 GiB")])
def test_sizes(n_bytes: int, words: str) -> None:
    assert size(n_bytes) == words


@each_case(
    ("names", "most", "text"),
    [
        (["a"], None, "a"),
        (["a", "b"], None, "a or b"),
        (["a", "b", "c"], None, "a, b or c"),
        (["a", "b", "c"], 3, "a, b or c"),
        (["a", "b", "c"], 2, "a, b and 1 more"),
        ([str(n) for n in range(2000)], 1, "0 and 1,999 more"),
    ],
)
def test_names_are_listed(names: list[str], most: int | None, text: str) -> None:
    assert join_names(names, "or", most=most) == text
