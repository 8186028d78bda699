"""`blindfit ledger` and `blindfit snapshot`: what an operator sees of charges and of snapshots."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from blindfit.algorithms.errors import ConfigError, DataError
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.events import UNITS, ReleaseEvent
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.privacy.ledger import Charge, Kind, Receipt
from blindfit.coordinator.operator import ledger as ledger_view
from blindfit.coordinator.operator import snapshots
from tests.published import published
from tests.snapshots.bank import ROWS, Bank


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=160, record=True)


def shown(console: Console) -> list[str]:
    """Return the lines without the spaces that make columns."""
    return [re.sub(r"\s+", " ", line).strip() for line in console.export_text(clear=False).splitlines()]


def charge(bank: Bank, *kinds: Kind) -> None:
    last = None
    with bank.kept.transaction() as transaction:
        for kind in kinds:
            charged = Charge("people", ReleaseEvent.pure(0.5, UNITS["row"][1]), epsilon=0.5)
            last = book.append(last, charged, time="2026-03-01T10:00:00+00:00", kind=kind)
            transaction.add_entry(last)


# --- what was charged --------------------------------------------------------------------------------------


def test_what_was_charged_again_is_called_so(bank: Bank, console: Console) -> None:
    charge(bank, "release", "recovered", "recovered-sum")
    ledger_view.describe(bank.settings("bank"), bank.root).show(console)
    lines = shown(console)
    assert "people 3 1.5 5 3.5 1e-05" in lines
    assert [line.split(" people/? ")[1][:-9] for line in lines if " people/? " in line] == [
        "a release 0.5 0",
        "charged again 0.5 1e-05",
        "many, charged again as one 0.5 1e-05",
    ]


def test_what_an_operator_has_to_do_is_said(bank: Bank, console: Console) -> None:
    published(bank.snapshots, "loans")
    bank.write(ROWS)
    receipt = Receipt("bank", "people", 1, "ab", Charges())
    with bank.kept.transaction() as transaction:
        transaction.notice_rollback(receipt.statement(), "2026-03-01")
        for _ in range(2):
            transaction.add_upload("shop", "loans", "2026-03-01T10:00:00+00:00")
    ledger_view.describe(bank.settings("bank"), bank.root).show(console)
    lines = shown(console)
    assert "loans has changed since snapshot 1, which jobs read: publish it" in lines
    assert "shop loans 2 2026-03-01 10:00" in lines
    assert any(line.startswith("a receipt of another party proves entries that this ledger does") for line in lines)


def test_there_is_nothing_to_say(bank: Bank, console: Console) -> None:
    ledger_view.describe(bank.settings("bank"), bank.root).show(console)
    assert "people 0 0 5 5 1e-05" in shown(console)
    assert not any(word in " ".join(shown(console)) for word in ("Ledger", "Uploads", "snapshot", "receipt"))


def test_a_party_without_datasets_or_never_started(bank: Bank, console: Console, tmp_path: Path) -> None:
    free = bank.settings("bank").model_copy(update={"populations": {}, "datasets": {}})
    with pytest.raises(ConfigError, match=r"^bank has no datasets, so it has neither a budget nor an account to show$"):
        ledger_view.describe(free, bank.root).show(console)
    with pytest.raises(ConfigError, match=r"nowhere/state/bank/party\.sqlite does not exist( \(|$)") as refused:
        ledger_view.describe(bank.settings("bank"), tmp_path / "nowhere").show(console)
    assert refused.value.hint == "this party has not started yet"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_chain_in_a_file_that_cannot_be_read(tmp_path: Path, console: Console, content: bytes | None) -> None:
    path = tmp_path / "ledger.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=rf"^{path} cannot be read: "):
        ledger_view.verify(path)


# --- what is published -------------------------------------------------------------------------------------


def test_what_is_not_published_yet(bank: Bank, console: Console) -> None:
    published(bank.snapshots, "loans")
    snapshots.describe(bank.settings("bank"), bank.root).show(console)
    lines = shown(console)
    assert "other - not published" in lines
    assert any(line.startswith("loans 1 ") and line.endswith(" unchanged") for line in lines)


def test_a_dataset_that_a_party_does_not_have_is_not_published(bank: Bank, console: Console) -> None:
    with pytest.raises(ConfigError, match=r"^bank has no dataset named clicks( \(|$)") as refused:
        snapshots.publish(
            bank.settings("bank"), bank.root, "clicks", other_people=False, remove_older=False, console=console
        )
    assert refused.value.hint == "its datasets: loans, other"


def test_no_date_or_name_is_cut_at_80_columns(bank: Bank) -> None:
    charge(bank, "release")
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    ledger_view.describe(bank.settings("bank"), bank.root).show(console)
    assert "…" not in console.file.getvalue()
    assert "2026-03-01" in console.file.getvalue()


@pytest.mark.parametrize(("number", "said"), [(1, False), (7, True)])
def test_releases_that_compose_to_less_than_their_sum_are_explained(
    bank: Bank, console: Console, number: int, said: bool
) -> None:
    multiplier = analytic_noise_multiplier(1.0, 1e-5)
    last = None
    with bank.kept.transaction() as transaction:
        for _ in range(number):
            charged = Charge("people", ReleaseEvent("gaussian", multiplier, UNITS["row"][1]), epsilon=1.0, delta=1e-5)
            last = book.append(last, charged, time="2026-03-01T10:00:00+00:00", kind="release")
            transaction.add_entry(last)
    ledger_view.describe(bank.settings("bank"), bank.root).show(console)
    (explained,) = [line for line in shown(console) if "compose to" in line] or [""]
    assert bool(explained) == said
    if said:
        assert explained.startswith(f"people: {number} releases of epsilon 1 compose to ")
        composed = float(explained.split("compose to ")[1].split()[0])
        assert 2 < composed < 3.2
        assert explained.endswith(f"not to their sum of {number}: the noise of one release is independent of another's")


def test_releases_of_pure_epsilon_that_add_up_need_no_word(bank: Bank, console: Console) -> None:
    charge(bank, "release", "release")
    ledger_view.describe(bank.settings("bank"), bank.root).show(console)
    assert not [line for line in shown(console) if "compose to" in line]
