"""A job file and a command line describe a network, and wrong descriptions are refused."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blindfit.algorithms.errors import BlindfitError, ConfigError
from blindfit.coordinator.job.job import Job, to_toml
from blindfit.coordinator.job.network import Line, NetworkSettings
from tests.each_case import each_case
from tests.hints.following import led_past, refused

PARTIES = {
    "shop": {"role": "active", "dataset": "rows"},
    "archive": {"role": "passive", "dataset": "rows"},
    "keys": {"role": "key-node"},
}


def job(network: Any) -> Job[Any]:
    return Job({"protocol": "taylor", "parties": PARTIES}, network=network)


def network(given: Any) -> NetworkSettings:
    found = job(given).network
    assert found is not None
    return found


@each_case(
    "text, line, words",
    [
        ("40ms", Line(0.04), "40 ms one way (80 ms there and back)"),
        ("100mbit", Line(bits_per_s=1e8), "100 Mbit/s"),
        ("40ms 100mbit", Line(0.04, 0.0, 1e8), "40 ms one way (80 ms there and back), 100 Mbit/s"),
        (
            "0.8s 5ms 1Gbit",
            Line(0.8, 0.005, 1e9),
            "800 ms one way (1.6 s there and back), up to 5 ms of jitter, 1 Gbit/s",
        ),
        (" 250us   64kbit ", Line(0.00025, 0.0, 64e3), "0.25 ms one way (0.5 ms there and back), 64 kbit/s"),
    ],
)
def test_a_text_is_a_network(text: str, line: Line, words: str) -> None:
    found = network(text)
    assert found.line_between("shop", "archive") == found.line_between("keys", "shop") == pytest.approx(line)
    assert found.in_words() == words


def test_a_pair_differs_from_the_others_in_what_it_sets() -> None:
    found = network({"latency": "40ms", "bandwidth": "100mbit", "pairs": {"archive shop": "5ms"}})
    near = Line(0.005, 0.0, 1e8)
    assert found.line_between("shop", "archive") == found.line_between("archive", "shop") == near
    assert found.line_between("shop", "keys") == Line(0.04, 0.0, 1e8)
    assert found.in_words().endswith("100 Mbit/s; archive and shop: 5 ms one way (10 ms there and back)")
    alone = network({"pairs": {"archive shop": {"bandwidth": "1mbit"}}})
    assert alone.line_between("keys", "shop") == Line()


def test_a_job_is_printed_with_its_network_and_read_again() -> None:
    asked = job({"latency": "40ms", "pairs": {"archive shop": "5ms 1mbit"}})
    assert Job(tomllib.loads(to_toml(asked))).network == asked.network
    assert Job(asked).network == asked.network
    assert Job(asked, network=None).network is None
    assert network("1ms") == Job(asked, network="1ms").network  # a text takes the place of a table


FORM = 'write a latency, a jitter and a bandwidth, such as "40ms"'


@each_case(
    "given, said",
    [
        ("", FORM),
        ("fast", "network: 'fast' is not a number and a unit (units: us, ms, s, kbit, mbit, gbit); write a latency"),
        ("40", "'40' is not a number and a unit"),
        ("40 ms", "'40' is not a number and a unit"),
        ("nan", "'nan' is not a number and a unit"),
        ("infms", "'infms' is not a number and a unit"),
        ("1e3ms", "'1e3ms' is not a number and a unit"),
        ("\u0664ms", "is not a number and a unit"),
        ("40ms\x1b[31m", r"'40ms\x1b[31m' is not a number and a unit"),
        ("40ms 100mbps", "'100mbps' is not a number and a unit"),
        ("100mbit 40ms", FORM),
        ("1ms 2ms 3ms", FORM),
        ("1mbit 2mbit", FORM),
        ("0ms", "network.latency: 0ms must be above 0 and at most 1s; leave it out for no delay"),
        ("-3ms", "network.latency: -3ms must be above 0"),
        ("99s", "network.latency: 99s must be above 0 and at most 1s"),
        ("1ms 9s", "network.jitter: 9s must be above 0 and at most 1s"),
        ("9" * 500 + "ms", "network.latency: 999"),
        ("0mbit", "network.bandwidth: 0mbit must be 10kbit to 1gbit; leave it out for no limit"),
        ("40gbit", "network.bandwidth: 40gbit must be 10kbit to 1gbit"),
        (40, "network: must be a table, not 40"),
        (True, "network: must be a table, not true"),
        ({}, "network: it sets nothing"),
        ({"latency": 40}, "network.latency: '40' is not a number and a unit: us, ms or s, such as 40ms"),
        ({"bandwidth": float("nan")}, "network.bandwidth: 'nan' is not a number and a unit: kbit, mbit or gbit"),
        ({"latncy": "4ms"}, "network.latncy is not an option; did you mean latency?"),
        ({"pairs": {"archive shp": "5ms"}}, "network.pairs: the job has no party shp; it has shop, archive, keys"),
        ({"pairs": {"archive": "5ms"}}, "'archive' is not the names of two parties, such as \"archive shop\""),
        ({"pairs": {"archive archive": "5ms"}}, "'archive archive' is not the names of two parties"),
        ({"pairs": {"archive shop": "5ms", "shop archive": "6ms"}}, "archive and shop stand there twice, remove one"),
        ({"pairs": {"archive shop": {}}}, "network.pairs.archive shop: it sets nothing"),
        ({"pairs": {"archive shop": "slow"}}, "network.pairs.archive shop: 'slow' is not a number and a unit"),
    ],
)
def test_another_value_is_refused_in_one_line(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        job(given)
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 500


@given(st.text(max_size=30) | st.text("0123456789.msgkbitu -", max_size=20))
def test_any_text_is_a_network_in_range_or_is_refused(text: str) -> None:
    try:
        line = network(text).line()
    except BlindfitError:
        return
    assert line != Line()
    assert 0 <= line.latency_s <= 1
    assert 0 <= line.jitter_s <= 1
    assert line.bits_per_s is None or 1e4 <= line.bits_per_s <= 1e9


def test_what_an_error_says_to_write_is_a_network() -> None:
    with refused(
        'write a latency, a jitter and a bandwidth, such as "40ms", "100mbit", "40ms 100mbit" or "40ms 5ms 100mbit"'
    ) as told:
        job("fast")
    examples = re.findall(r'"([^"]+)"', told.text)
    assert len(examples) == 4
    for example in examples:
        assert job(example).network is not None
    with refused("{} must be above 0 and at most {}s; leave it out for no delay") as told:
        job("0ms 100mbit")
    led_past(told, lambda: job("100mbit"))
    with refused("{} must be {}kbit to {}gbit; leave it out for no limit") as told:
        job("40ms 9gbit")
    led_past(told, lambda: job("40ms"))
    twice = {"archive shop": "5ms", "shop archive": "6ms"}
    with refused("pairs: {} stand there twice, remove one") as told:
        job({"pairs": twice})
    led_past(told, lambda: job({"pairs": {"archive shop": twice["archive shop"]}}))


def test_the_table_of_the_page_is_the_text_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/guides/networks.md").read_text()
    (table,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    (text,) = re.findall(r'`network = "([^"]+)"` is the short form', page)
    given = tomllib.loads(table.replace("   ", ""))["network"]
    parties = {"hospital": PARTIES["shop"], "laboratory": PARTIES["archive"], "keys": PARTIES["keys"]}
    found = Job({"protocol": "taylor", "parties": parties}, network=given).network
    assert found is not None
    assert found.line() == network(text).line()
    assert found.line_between("laboratory", "hospital") == Line(0.001, 0.005, 1e9)
