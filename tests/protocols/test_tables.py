"""Tables agree with every other list of messages: docstrings, message classes, the page, and the gate."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

from blindfit.algorithms import protocols
from blindfit.algorithms.errors import LocalProtocolError, UnexpectedStep
from blindfit.algorithms.protocols import align, link
from blindfit.algorithms.protocols.table import Gate, HowOften, list_arrows
from tests import toy
from tests.each_case import each_case

HEAD = ["step", "who", "does", "sends"]
NAMES = sorted(module.name for module in pkgutil.walk_packages(protocols.__path__, f"{protocols.__name__}."))
MODULES = tuple(importlib.import_module(name) for name in NAMES)


def has_a_table(module: ModuleType) -> bool:
    return any(line.split() == HEAD for line in (module.__doc__ or "").splitlines())


PROTOCOLS = (*filter(has_a_table, MODULES), toy)
ROOT = Path(__file__).parents[2]
STEP = re.compile(r"    (\d+) ")
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda module: module.__name__.rsplit(".")[-1])


def documented(protocol: ModuleType) -> set[tuple[str, str]]:
    """(step, message) of the table `step | who | does | sends` in a docstring."""
    lines = (protocol.__doc__ or "").splitlines()
    head = next(i for i, line in enumerate(lines) if line.split() == HEAD)
    sends = lines[head].index("sends")
    last = max(i for i, line in enumerate(lines) if STEP.match(line))
    end = lines.index("", last)
    found, step = set(), ""
    for line in lines[head + 1 : end]:
        numbered = STEP.match(line)
        step = numbered.group(1) if numbered else step
        found |= {(step, name) for name in re.findall(r"\b[A-Z][a-z]\w*", line[sends:])}
    return found


@every_protocol
def test_a_docstrings_table_is_the_table(protocol: ModuleType) -> None:
    assert documented(protocol) == {(arrow.step, arrow.message.__name__) for arrow in protocol.TABLE.arrows}


def test_a_docstring_that_leaves_a_message_out_is_noticed() -> None:
    shorter = ModuleType("shorter")
    shorter.__doc__ = (link.__doc__ or "").replace("Slots to each, in chunks", "--")
    assert documented(link) - documented(shorter) == {("3", "Slots")}


def test_every_message_class_is_in_a_table() -> None:
    """A message class without an arrow could never be sent."""
    classes = set()
    for module in (*MODULES, toy):
        source = Path(str(module.__file__)).read_text()
        if not module.__name__.endswith(".messages"):
            source = source.partition("# --- messages ---")[2].split("\n# --- ")[0]
        classes |= {(module.__name__, name) for name in re.findall(r"^class (\w+)", source, re.MULTILINE)}
    messages = {arrow.message for protocol in PROTOCOLS for arrow in protocol.TABLE.arrows}
    assert classes == {(message.__module__, message.__name__) for message in messages}
    assert all(map(dataclasses.is_dataclass, messages))


def test_every_table_is_of_a_protocol_whose_docstring_has_it() -> None:
    of_protocols = [protocol.TABLE for protocol in PROTOCOLS]
    assert all(module.TABLE in of_protocols for module in MODULES if hasattr(module, "TABLE"))


@every_protocol
def test_one_message_is_read_in_one_way(protocol: ModuleType) -> None:
    """The rule covers each step: a transcript has one line for each class."""
    told = {(arrow.message, arrow.opened, arrow.how_often) for arrow in protocol.TABLE.arrows}
    assert len(told) == len({arrow.message for arrow in protocol.TABLE.arrows})


def test_the_page_is_what_the_tables_say() -> None:
    path = ROOT / "docs" / "protocols_page.py"
    spec = importlib.util.spec_from_file_location("protocols_page", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert set(made.PROTOCOLS) == set(PROTOCOLS) - {toy}
    assert made.PAGE.read_text() == made.page(), "run `make protocols-page`"


# --- the gate -----------------------------------------------------------------------------------------------


def gate(role: str) -> Gate:
    return Gate(role, toy.ROLES, list_arrows([toy.TABLE]))


def triple() -> toy.TripleShare:
    return toy.TripleShare(*[toy.vector([1])] * 3)


def test_what_the_table_lists_passes() -> None:
    gate("key-node").check_sent(triple(), "p0")
    gate("active").check_asked(toy.TripleShare, "dealer")
    gate("active").arrivals_from("dealer")("TripleShare")


@each_case(("role", "to"), [("active", "p1"), ("active", "dealer"), ("key-node", "dealer")])
def test_another_role_may_not_send_it(role: str, to: str) -> None:
    with pytest.raises(LocalProtocolError, match="no table of this session lists it") as ours:
        gate(role).check_sent(triple(), to)
    assert ours.value.step == "TripleShare"


def test_another_role_is_not_asked_for_it() -> None:
    with pytest.raises(LocalProtocolError, match="no table of this session lists it"):
        gate("active").check_asked(toy.TripleShare, "p1")


def test_what_arrives_from_another_role_is_its_senders_fault() -> None:
    for name in ("TripleShare", "SomethingElse"):
        with pytest.raises(UnexpectedStep) as theirs:
            gate("active").arrivals_from("p1")(name)
        assert (theirs.value.culprit, theirs.value.got) == ("p1", name)


def test_two_classes_of_one_name_are_two_messages() -> None:
    roles = {"bank": "active"}
    aligning, linking = (Gate("key-node", roles, list_arrows([module.TABLE])) for module in (align, link))
    aligning.check_sent(align.Outcome(1), "bank")
    with pytest.raises(LocalProtocolError):
        linking.check_sent(align.Outcome(1), "bank")


def test_a_stranger_is_told_apart() -> None:
    with pytest.raises(LocalProtocolError, match="nobody is not in this session"):
        gate("active").check_sent(triple(), "nobody")


# --- how often -----------------------------------------------------------------------------------------------


def test_how_often_is_a_number_where_no_sizes_are_needed() -> None:
    assert {often: often.messages(epochs=3, batches=5) for often in HowOften} == {
        HowOften.ONCE: 1,
        HowOften.EPOCH: 3,
        HowOften.BATCH: 15,
        HowOften.CHUNKS: None,
        HowOften.ROUNDS: None,
    }
