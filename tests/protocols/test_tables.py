"""Tables against what else says what is sent: docstrings, message classes, the page, and the gate."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

from blindfit.algorithms import protocols
from blindfit.algorithms.errors import LocalProtocolError, UnexpectedStep
from blindfit.algorithms.protocols import align, falcon, link, shared_scores, taylor, walr
from blindfit.algorithms.protocols.falcon import messages as falcon_messages
from blindfit.algorithms.protocols.shared_scores import messages as shared_scores_messages
from blindfit.algorithms.protocols.table import Gate, HowOften, listed
from blindfit.algorithms.protocols.taylor import messages as taylor_messages
from blindfit.algorithms.protocols.walr import several_parties, shared_rows
from tests import toy
from tests.each_case import each_case

NO_PROTOCOLS = ("table", "walr_grid", "walr_statement")
NAMES = sorted(module.name for module in pkgutil.iter_modules(protocols.__path__) if module.name not in NO_PROTOCOLS)
PROTOCOLS = (*(importlib.import_module(f"{protocols.__name__}.{name}") for name in NAMES), toy)
ROOT = Path(__file__).parents[2]
STEP = re.compile(r"    (\d+) ")
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda module: module.__name__.rsplit(".")[-1])


def documented(protocol: ModuleType) -> set[tuple[str, str]]:
    """(step, message) of the table `step | who | does | sends` in a docstring."""
    lines = (protocol.__doc__ or "").splitlines()
    head = next(i for i, line in enumerate(lines) if line.split() == ["step", "who", "does", "sends"])
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


@every_protocol
def test_every_message_class_is_in_the_table(protocol: ModuleType) -> None:
    """A class of the section on messages that no arrow has could never be sent."""
    own = {taylor: taylor_messages, falcon: falcon_messages, shared_scores: shared_scores_messages}
    module = own.get(protocol)
    source = inspect.getsource(module or protocol)
    section = source if module else source.split("# --- messages ---")[1].split("\n# --- ")[0]
    classes = set(re.findall(r"^class (\w+)", section, re.MULTILINE))
    messages = {arrow.message for arrow in protocol.TABLE.arrows}
    if protocol in (shared_scores, shared_rows):  # they take rooms of falcon, and send what these send
        messages -= {arrow.message for arrow in falcon.TABLE.arrows}
    if protocol is several_parties:  # whose passive parties send rows as the active one does
        messages -= {arrow.message for arrow in walr.TABLE.arrows}
    assert classes == {message.__name__ for message in messages}
    assert all(dataclasses.is_dataclass(arrow.message) for arrow in protocol.TABLE.arrows)


@every_protocol
def test_one_message_is_read_in_one_way(protocol: ModuleType) -> None:
    """Whichever step it belongs to: a transcript has one line for each class."""
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
    return Gate(role, toy.ROLES, listed([toy.TABLE]))


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
    aligning, linking = (Gate("key-node", roles, listed([module.TABLE])) for module in (align, link))
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
