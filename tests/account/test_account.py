"""The account of a population, entry by entry."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from blindfit.algorithms.errors import PolicyRefused
from blindfit.parties.account.account import Account
from blindfit.parties.data.settings import PartyDatasetSettings
from blindfit.parties.settings import PolicySettings
from blindfit.parties.store.database import Store


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("bank", "a name"), ("its sister", "a name")),
        (("bank", "a name"), ("bank", "a")),
        (("bank", "a snapshot"), ("bank", "a")),
    ],
    ids=["another learner", "the beginning of a name", "a name that ends as those of an older version"],
)
def test_only_the_same_question_of_the_same_learner_is_free(
    first: tuple[str, str], second: tuple[str, str], tmp_path: Path
) -> None:
    """Requesters name their requests as they like: under a name that was counted before they could ask for nothing."""
    account = Account(PolicySettings(), PartyDatasetSettings(url="rows.csv", id="id"))

    def refuse() -> PolicyRefused:
        return PolicyRefused(party="meter", field="parties", reason="too many bits")

    def enter(learner: str, question: str) -> None:
        with store.transaction() as transaction:
            entry = account.entry("columns", "shop", [learner], "weights", question, 6, ("snapshot", "s"))
            account.enter_below(transaction, entry, 10, refuse)

    with closing(Store(tmp_path / "party.sqlite")) as store:
        enter(*first)
        enter(*first)  # its answer is there, and is sent again
        with pytest.raises(PolicyRefused):
            enter(*second)
        (entry,) = store.reader().disclosures()
        assert (entry.learner, entry.question) == first
