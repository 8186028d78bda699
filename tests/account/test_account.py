"""The account of a population, entry by entry: what counts, what the limit is, whose share it is, and what is free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from blindfit.algorithms.errors import PolicyRefused
from blindfit.parties.account.account import MOST_MEMBERSHIP, RESET, Account, entropy
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.settings import PolicySettings
from blindfit.parties.snapshots.people import add_people
from blindfit.parties.store.account import Disclosure
from blindfit.parties.store.database import Store, stamp
from tests.each_case import each_case

LIMIT = 10.0
BITS = 6.0  # bits of an entry: one fits below the limit, and two do not
REFUSED = PolicyRefused(party="bank", field="bits", reason="too many")


def account(policy: dict[str, Any] | None = None, **about: Any) -> Account:
    dataset = {"url": "rows.csv", "id": "id", "label": "bought", "population": "people", **about}
    return Account(PolicySettings(**(policy or {})), PartyDatasetSettings(**dataset))


def entry(learner: str = "shop", question: str = "a question", bits: float = BITS, **changed: Any) -> Disclosure:
    made = account().entry("labels", "bought", learner.split(","), "weights", question, bits, ("snapshot", "session"))
    return replace(made, **changed)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "party.sqlite")) as opened:
        yield opened


def add(store: Store, *entries: Disclosure) -> None:
    with store.transaction() as transaction:
        for one in entries:
            transaction.add_disclosure(one)


def enter(
    store: Store, one: Disclosure, of: Account | None = None, error: PolicyRefused | None = REFUSED, **how: Any
) -> None:
    with store.transaction() as transaction:
        (of or account()).enter_below(transaction, one, LIMIT, lambda: error, **how)


def kept(store: Store) -> list[tuple[str, str, float]]:
    return [(one.learner, one.question, one.bits) for one in store.reader().disclosures()]


# --- what counts ------------------------------------------------------------------------------------------------------


@each_case(
    "changed, counts",
    [
        ({}, True),
        ({"about": ""}, True),  # as an older version wrote it
        ({"about": "sold"}, False),
        ({"subject": "scores"}, False),
        ({"population": "others"}, False),
        ({"population": ""}, False),
        ({"made": "2020-01-01T00:00:00+00:00"}, True),
    ],
)
def test_an_entry_counts_for_its_people_its_subject_and_what_it_is_about(
    changed: dict[str, str], counts: bool, tmp_path: Path
) -> None:
    with closing(Store(tmp_path / "party.sqlite")) as store:
        add(store, entry(**changed), entry(question="another", bits=1.0))
        assert account().spent(store.reader(), "labels", "bought") == BITS * counts + 1.0


def test_without_a_subject_of_their_own_all_entries_of_a_subject_count(store: Store) -> None:
    add(store, entry(about="sold"), entry(about=""), entry(subject="scores"))
    assert [one.about for one in account().entries(store.reader(), "labels")] == ["sold", ""]


def test_datasets_without_a_population_have_one_account(store: Store) -> None:
    add(store, entry(population=""), entry())
    (found,) = account(population=None).entries(store.reader(), "labels")
    assert found.population == ""


def reset(number: int, **changed: Any) -> Disclosure:
    return replace(account().entry("reset", "", [], "again", f"reset {number}", 0), **changed)


@each_case(
    "written, counts",
    [
        ([entry(question="1"), entry(question="2")], ["1", "2"]),
        ([entry(question="1"), reset(1), entry(question="2")], ["2"]),
        ([reset(1), entry(question="1")], ["1"]),
        ([entry(question="1"), reset(1)], []),
        ([entry(question="1"), reset(1), entry(question="2"), reset(2), entry(question="3")], ["3"]),
        ([entry(question="1"), reset(1, population="others")], ["1"]),
    ],
)
def test_entries_count_that_came_after_the_last_reset_of_these_people(
    written: list[Disclosure], counts: list[str], tmp_path: Path
) -> None:
    with closing(Store(tmp_path / "party.sqlite")) as store:
        add(store, *written)
        assert [one.question for one in account().entries(store.reader(), "labels")] == counts


@each_case(
    "age, days, counts",
    [
        (timedelta(days=29), 30, True),
        (timedelta(days=31), 30, False),
        (timedelta(days=400), None, True),
        (timedelta(hours=35), 1.5, True),
        (timedelta(hours=37), 1.5, False),
        (-timedelta(hours=1), 1.5, True),  # the clock was put back
    ],
)
def test_an_entry_counts_for_the_period(age: timedelta, days: float | None, counts: bool, tmp_path: Path) -> None:
    with closing(Store(tmp_path / "party.sqlite")) as store:
        add(store, entry(made=stamp(-age)))
        found = account({"account_period_days": days}).entries(store.reader(), "labels")
        assert len(found) == counts


def test_an_entry_counts_on_the_last_second_of_its_period(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    of = account({"account_period_days": 30})
    monkeypatch.setattr(of, "_since", lambda: "2026-01-01T00:00:00+00:00")
    add(
        store,
        entry(question="1", made="2026-01-01T00:00:00+00:00"),
        entry(question="2", made="2025-12-31T23:59:59+00:00"),
    )
    assert [one.question for one in of.entries(store.reader(), "labels")] == ["1"]


# --- limits -----------------------------------------------------------------------------------------------------------


def test_limits_are_those_of_the_page_about_the_account() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/explanation/account.md").read_text("utf-8").split())
    each = f"{MOST_MEMBERSHIP} linkages, {MOST_MEMBERSHIP} alignments by ids that may have found too few rows"
    assert f"{each}, and {MOST_MEMBERSHIP} numbers of common rows; {MOST_MEMBERSHIP} draws" in page
    assert RESET == "reset"  # databases have it


@each_case(
    "about, label, counts",
    [
        ({}, "bought", True),
        ({"public": True, "population": None}, "bought", False),
        ({"label": None}, "", False),
        ({"label": None, "public": True, "population": None}, "", False),
    ],
)
def test_labels_have_a_limit_where_there_are_some_and_they_are_not_public(
    about: dict[str, Any], label: str, counts: bool
) -> None:
    of = account(**about)
    assert (of.label, of.counts_labels) == (label, counts)


@each_case(
    "rate, bits", [(None, 1.0), (0.5, 1.0), (0.25, 0.811278), (0.75, 0.811278), (0.01, 0.0807931), (0.999, 0.0114078)]
)
def test_a_label_has_as_many_bits_as_its_declared_rate_says(rate: float | None, bits: float) -> None:
    assert account(label_rate=rate).label_entropy == entropy(rate) == pytest.approx(bits, rel=1e-5)


@each_case("rate, bits", [(None, 30.0), (0.25, 30 * 0.811278)])
def test_the_limit_of_labels_is_a_quarter_of_their_bits(rate: float | None, bits: float, tmp_path: Path) -> None:
    """People who are published again, or were published without this label, do not raise the limit."""
    with closing(Store(tmp_path / "party.sqlite")) as store, store.transaction() as transaction:
        of = account(label_rate=rate)
        assert of.label_limit(transaction) == 0
        people = np.arange(1, 201, dtype=np.uint64)
        for label, some in (("bought", people[:70]), ("bought", people[40:120]), ("sold", people), (None, people)):
            add_people(transaction, "people", label, some)
        add_people(transaction, "others", "bought", people)
        assert of.label_limit(transaction) == pytest.approx(bits, rel=1e-5)


# --- what fits --------------------------------------------------------------------------------------------------------


@each_case(
    "before, more, fits",
    [
        ([], LIMIT, True),
        ([], LIMIT + 1e-6, False),
        ([4.0], 6.0, True),
        ([4.0], 6.1, False),
        ([0.1] * 99, 0.1, True),  # their float sum is a little more than the limit
        ([4.0, 6.0], 0.0, True),
        ([LIMIT + 1], 0.0, False),
    ],
)
def test_bits_fit_as_far_as_the_limit(before: list[float], more: float, fits: bool, tmp_path: Path) -> None:
    with closing(Store(tmp_path / "party.sqlite")) as store:
        add(store, *(entry(question=str(number), bits=bits) for number, bits in enumerate(before)))
        assert account().fits(store.reader(), "labels", "bought", ["shop"], more, LIMIT, "new") == fits


@each_case(
    "before, learners, more, fits",
    [
        ([], ["shop"], 6.0, True),  # a first job is never more than a share
        ([entry("shop", bits=2.0)], ["shop"], 3.0, True),
        ([entry("shop", bits=2.0)], ["shop"], 3.1, False),
        ([entry("shop", bits=2.0)], ["market"], 3.1, True),  # its first share
        ([entry("shop", bits=2.0), entry("market", bits=1.0)], ["market"], 2.0, True),
        ([entry("shop", bits=2.0), entry("market", bits=1.0)], ["market"], 2.1, False),
        ([entry("shop", bits=2.0), entry("market", bits=1.0)], ["shop", "market"], 2.0, True),
        ([entry("shop", bits=2.0), entry("market", bits=1.0)], ["shop", "market"], 2.5, False),
        ([entry("shop", bits=2.0), entry("market", bits=1.0)], ["market", "shop"], 2.5, False),
        # two learners together know what each of them learnt
        ([entry("market,shop", bits=3.0)], ["market"], 0.5, False),
        ([entry("market,shop", bits=3.0)], ["shop"], 2.0, True),
        ([entry("shops", bits=5.0)], ["shop"], 5.0, True),  # another party
        ([entry("third", bits=1.0)], ["third"], 0.1, False),  # has no share
        ([entry("shop", bits=5.0, session="new")], ["shop"], 5.0, True),  # the same session goes on
        ([entry("shop", bits=1.0), entry("shop", "2", 4.0, session="new")], ["shop"], 1.0, False),
        ([entry("shop", bits=6.0, session="new")], ["shop"], 5.0, False),  # together exactly at the limit
        ([entry("shop", bits=9.0, subject="scores")], ["shop"], 5.0, True),
        ([entry("shop", bits=9.0, about="sold")], ["shop"], 5.0, True),
    ],
)
def test_bits_fit_as_far_as_each_learners_share(
    before: list[Disclosure], learners: list[str], more: float, fits: bool, tmp_path: Path
) -> None:
    of = account({"account_shares": {"shop": 0.5, "market": 0.3}})
    with closing(Store(tmp_path / "party.sqlite")) as store:
        add(store, *before)
        assert of.fits(store.reader(), "labels", "bought", learners, more, LIMIT, "new") == fits


# --- entries ----------------------------------------------------------------------------------------------------------


def test_an_entry_says_what_it_was_made_of() -> None:
    before = stamp()
    made = account().entry("scores", "x", ["b", "a"], "weights", "q", 2.5, ("snapshot", "session"), b"people")
    assert made == Disclosure(
        "people", "scores", "x", "a,b", "weights", "q", 2.5, b"people", "snapshot", "session", made.made
    )
    assert before <= made.made <= stamp()
    bare = account().entry("scores", "x", ["a"], "weights", "q", 2.5)
    assert (bare.snapshot, bare.session, bare.people) == ("", "", b"")


@each_case(
    "first, second, is_free",
    [
        (entry(), entry(), True),
        (entry(), entry("another"), False),
        (entry("market,shop"), entry("market,shop"), True),
        (entry("market,shop,third"), entry("market,shop"), True),
        (entry("market,shop"), entry("market,third"), False),
        (entry("market,shop"), entry("shop"), True),  # it learnt this together with another party
        (entry("shop"), entry("market,shop"), False),  # another party learns it now
        (entry("shop"), entry("hop"), False),
        (entry(question="a name"), entry(question="a"), False),
        (entry(question="a snapshot"), entry(question="a"), False),  # ends as a name of an older version
        (entry(question="a snapshot", session=""), entry(question="a"), True),  # an older version wrote the name
        (entry(question="b snapshot", session=""), entry(question="a"), False),
        (entry(question="a other", session=""), entry(question="a"), False),
        (entry(session=""), entry(), True),
        (entry(about="sold"), entry(), None),
        (entry(subject="columns"), entry(), None),
    ],
)
def test_only_the_same_question_of_the_same_learner_is_free(
    first: Disclosure, second: Disclosure, is_free: bool | None, tmp_path: Path
) -> None:
    """Active parties name their requests freely: a name that was counted before must not make another request free.

    Args:
        is_free: True if the second question is free; None if it has its own limit.
    """
    with closing(Store(tmp_path / "party.sqlite")) as store:
        add(store, first)
        if is_free is False:
            with pytest.raises(PolicyRefused):
                enter(store, second)
        else:
            enter(store, second)
        assert len(kept(store)) == 1 + (is_free is None)


def test_a_question_that_was_asked_before_the_last_reset_counts_again(store: Store) -> None:
    add(store, entry(), reset(1))
    enter(store, entry(bits=LIMIT))
    assert [one.bits for one in account().entries(store.reader(), "labels")] == [LIMIT]
    with pytest.raises(PolicyRefused):
        enter(store, entry(question="another", bits=0.1))


@each_case(
    "about, subject, is_written",
    [
        ({"public": True, "population": None}, "labels", False),
        ({"public": True, "population": None}, "columns", True),
        ({}, "labels", True),
    ],
)
def test_public_labels_do_not_count_and_columns_do(
    about: dict[str, Any], subject: str, is_written: bool, tmp_path: Path
) -> None:
    with closing(Store(tmp_path / "party.sqlite")) as store:
        enter(store, entry(subject=subject), account(**about))
        assert len(kept(store)) == is_written
        if not is_written:
            enter(store, entry(subject=subject, bits=LIMIT + 1), account(**about))


@each_case(
    "bits, asked, error, written",
    [
        (2.0, None, REFUSED, [2.0]),
        (2.0, 4.0, REFUSED, [2.0]),  # later bits count then
        (2.0, 4.1, REFUSED, None),
        (4.1, None, REFUSED, None),
        (2.0, 4.1, None, [2.0]),  # the job may reveal more, and what it reveals counts
        (4.1, 1.0, REFUSED, [4.1]),
        (0.0, None, REFUSED, []),  # reveals nothing
        (0.0, 4.1, REFUSED, None),
    ],
)
def test_what_fits_is_written_and_what_does_not_is_refused(
    bits: float, asked: float | None, error: PolicyRefused | None, written: list[float] | None, tmp_path: Path
) -> None:
    with closing(Store(tmp_path / "party.sqlite")) as store:
        add(store, entry())
        new = entry(question="another", bits=bits)
        if written is None:
            with capture_logs() as logged, pytest.raises(PolicyRefused):
                enter(store, new, error=error, asked=asked)
            said = {"revealed": BITS, "asked": bits if asked is None else asked, "limit": LIMIT, "session": "session"}
            assert [{name: line[name] for name in said} for line in logged] == [said]
            assert logged[0]["event"] == "label bits"
        else:
            enter(store, new, error=error, asked=asked)
        assert [found for _, _, found in kept(store)] == [BITS, *(written or [])]


def test_a_share_holds_where_an_entry_is_written(store: Store) -> None:
    """Each learner of the entry has a share, which the bits revealed in the same session do not use up."""
    of = account({"account_shares": {"shop": 0.5, "market": 0.3}})
    enter(store, entry("market,shop", bits=3.0), of)
    with pytest.raises(PolicyRefused):
        enter(store, entry("market", "another", 0.5, session="new"), of)
    enter(store, entry("market", "another", 0.5), of)
    enter(store, entry("shop", "a third", 1.5, session="new"), of)
