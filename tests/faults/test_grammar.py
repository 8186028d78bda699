"""The texts of faults: their meaning, and one clear line for each text without one."""

from __future__ import annotations

import re

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.running.faults import Fault, check_faults, parse_faults
from tests.hints.following import refused

KILL = Fault("", "kill", "shop")


@pytest.mark.parametrize(
    ("text", "verb", "party", "moment", "for_s"),
    [
        ("kill archive at epoch 3", "kill", "archive", {"epoch": 3}, None),
        ("kill shop-a at step align", "kill", "shop-a", {"step": "align"}, None),
        ("kill shop at align", "kill", "shop", {"step": "align"}, None),
        ("restart shop at start", "restart", "shop", {"after_s": 0.0}, None),
        ("restart shop after 2s", "restart", "shop", {"after_s": 2.0}, None),
        ("freeze shop after 1.5min for 500ms", "freeze", "shop", {"after_s": 90.0}, 0.5),
        ("cut shop at step read rows for 10s", "cut", "shop", {"step": "read rows"}, 10.0),
        ("cut shop at step wait for the request", "cut", "shop", {"step": "wait for the request"}, None),
        ("freeze shop at wait for masks for 3s", "freeze", "shop", {"step": "wait for masks"}, 3.0),
        ("  kill   shop\tat  epoch 12 ", "kill", "shop", {"epoch": 12}, None),
    ],
)
def test_a_text_means(text: str, verb: str, party: str, moment: dict[str, object], for_s: float | None) -> None:
    fault = Fault.parse(text)
    none = {"epoch": 0, "step": "", "after_s": None}
    assert (fault.verb, fault.party, fault.for_s) == (verb, party, for_s)
    assert {name: getattr(fault, name) for name in none} == none | moment
    assert Fault.parse(fault.text) == fault


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the text does not name a verb, a party and a moment"),
        ("kill", "the text does not name a verb, a party and a moment"),
        ("kill shop", "the text does not name a verb, a party and a moment"),
        ("kill shop at", "the text does not name a verb, a party and a moment"),
        ("kill shop epoch 3", "the text does not name a verb, a party and a moment"),
        ("kil shop at start", "the verb kil is unknown"),
        ("KILL shop at start", "the verb KILL is unknown"),
        ("kill Shop at start", "Shop is not a party's name"),
        ("kill shop\x1b[31m at start", "the text must have at most 200 printable characters"),
        ("kill shop at step \x07", "the text must have at most 200 printable characters"),
        (f"kill shop at step {'x' * 200}", "the text must have at most 200 printable characters"),
        ("kill shop at epoch 0", "0 is not an epoch"),
        ("kill shop at epoch -1", "-1 is not an epoch"),
        ("kill shop at epoch 1.5", "1.5 is not an epoch"),
        ("kill shop at epoch", "nothing is not an epoch"),
        ("kill shop at epoch 100000", "100000 is not an epoch"),
        ("kill shop at epoch ٣", "٣ is not an epoch"),
        ("kill shop at epoch 3 for ever", "3 for ever is not an epoch"),
        ("kill shop at epoch 3 for 5s", 'kill takes no "for"'),
        ("restart shop at start for 5s", 'restart takes no "for"'),
        ("freeze shop after 0s", "0s is not a time"),
        ("freeze shop after -1s", "-1s is not a time"),
        ("freeze shop after nan", "nan is not a time"),
        ("freeze shop after ٣s", "٣s is not a time"),
        ("freeze shop after 1h", "1h is not a time"),
        ("freeze shop after 2", "2 is not a time"),
        ("freeze shop after 99999min", "99999min is not a time"),
        ("freeze shop at start for 1e3s", "1e3s is not a time"),
        ("freeze shop at start for 0ms", "0ms is not a time"),
        ("freeze shop at start for 5 s", "start for 5 s is not a moment"),
        ("freeze shop at step align for 5 s", "step align for 5 s is not a moment"),
    ],
)
def test_a_text_without_a_meaning_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Fault.parse(text)
    line = caught.value.message
    assert says in line
    assert line.startswith('fault "')
    assert line.isprintable()
    assert caught.value.hint


def test_what_a_hint_says_is_understood() -> None:
    with pytest.raises(ConfigError) as caught:
        Fault.parse("kill shop")
    examples = re.findall('"([^"]*)"', caught.value.hint)
    assert len(examples) == 3
    for text in examples:
        Fault.parse(text)
    with pytest.raises(ConfigError) as caught:
        Fault.parse("stop shop at start")
    verbs = re.findall(r"\w+", caught.value.hint.removeprefix("use").replace(" or ", " "))
    assert set(verbs) == {"kill", "freeze", "cut", "restart"}


def test_a_party_has_one_fault() -> None:
    with refused("give each party at most one fault, and run the job again for the other"):
        parse_faults(["kill shop at start", "freeze bank at start", "cut shop at epoch 2"])
    assert len(parse_faults(["kill shop at start", "freeze bank at start"])) == 2


def test_a_party_that_the_job_does_not_have_is_named_with_those_it_has() -> None:
    with pytest.raises(ConfigError) as caught:
        check_faults(parse_faults(["kill shap at start"]), ["shop", "bank"])
    assert caught.value.message == 'fault "kill shap at start": the job has no party shap'
    assert caught.value.hint == "did you mean shop? the parties of the job are shop, bank"


@pytest.mark.parametrize(
    ("text", "step", "is_then"),
    [
        ("kill shop at epoch 3", "epoch 3", True),
        ("kill shop at epoch 3", "epoch 3, hold-out loss 0.6931", True),
        ("kill shop at epoch 3", "epoch 2", False),
        ("kill shop at epoch 3", "epoch 12", True),  # a party reports its step ten times a second
        ("kill shop at epoch 3", "point 1 of 2, fold 3 of 5, epoch 3", False),
        ("kill shop at step align", "align", True),
        ("kill shop at step align", "alignment", False),
        ("kill shop at point 1 of 2, fold 3 of 5", "point 1 of 2, fold 3 of 5, epoch 1", True),
        ("kill shop at point 1 of 2, fold 3 of 5", "point 1 of 2, fold 3 of 50", False),
        ("kill shop at start", "align", False),
        ("kill shop after 2s", "align", False),
    ],
)
def test_a_fault_is_at_a_step(text: str, step: str, is_then: bool) -> None:
    assert Fault.parse(text).is_at(step) == is_then
