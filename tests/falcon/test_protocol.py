"""A training in shares over messages: its results, its messages, and each party's view."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from blindfit.algorithms.errors import MalformedMessage, RangeError, ScoresOutOfRange
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import Model, Progress, bits_of_opened_weight
from blindfit.algorithms.protocols.falcon.messages import OpenedShares
from blindfit.algorithms.protocols.falcon.seats import BlindSeat
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.dealing import Arrays, Dealer, Item
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.wire import codec
from tests.falcon.local import KEY_NODE, UNTESTED, Case, network_of, train
from tests.falcon.oracle import MOMENTUM, bound, plain_epochs, uniform_p_value, weights_of


@pytest.mark.parametrize("n_parties", [2, 3, 4])
@pytest.mark.parametrize("options", [{}, {"macs": False}, {"optimiser": MOMENTUM}], ids=str)
def test_weights_are_those_of_plain_steps_within_the_bound(n_parties: int, options: dict[str, Any]) -> None:
    case = Case(n_parties=n_parties, options=UNTESTED | options)
    found = weights_of(case, train(case))
    assert bound(case, 4) < 0.02
    assert np.linalg.norm(found - case.plain(4)) <= bound(case, 4)
    assert np.abs(found).max() > 0.2


def test_the_active_party_learns_the_figures_of_the_test_rows_and_nobody_else() -> None:
    case = Case()
    trained = train(case)
    p, told = case.parameters, trained["hospital"].tested
    assert told is not None
    assert trained["laboratory"].tested is None
    assert trained[KEY_NODE].tested is None
    assert trained[KEY_NODE].weights.size == 0
    z, y = (case.whole @ weights_of(case, trained))[p.test], case.labels[p.test]
    pairs = int(y.sum()) * int((1 - y).sum())
    assert (told.true_positives, told.positives) == (((z >= 0) & (y == 1)).sum(), (z >= 0).sum())
    assert told.loss / len(y) == pytest.approx(log_loss(y, 1 / (1 + np.exp(-z))), abs=3e-3 + 2**-8)
    unit = 2.0 ** (math.floor(math.log2(len(y))) - 9)  # so that no row's share can be read from the sum of the others'
    assert told.loss == unit * round(told.loss / unit)
    # Rows of the two classes in the same bin, or in neighbouring ones, may be counted the other way round.
    bins = np.floor(254 / (1 + np.exp(-z / 3)))
    near = np.abs(bins[y == 1][:, None] - bins[y == 0][None, :]) <= 1
    assert told.auc_pairs / pairs == pytest.approx(roc_auc_score(y, z), abs=near.mean())
    assert 0 < told.ks_pairs / pairs <= 1


def test_training_stops_where_the_loss_no_longer_falls() -> None:
    options = {"patience": 2, "tolerance": 0.02, "epochs": 20, **UNTESTED}
    case = Case(rows=260, options=options)
    trained = train(case)
    assert {one.epochs for one in trained.values()} == {plain_epochs(case)}
    assert 2 < trained["hospital"].epochs < 20


def test_weights_are_opened_in_steps_of_their_rounding() -> None:
    case = Case(options=UNTESTED | {"kept_bits": 5})
    found = weights_of(case, train(case))
    assert np.array_equal(found * 32, np.rint(found * 32))
    assert np.abs(found - case.plain(4)).max() < 1 / 32 + bound(case, 4)


@pytest.mark.parametrize(("rows", "kept"), [(100, 4), (400, 5), (65_536, 9), (1, 1)])
def test_steps_are_no_finer_than_a_quarter_of_a_weights_error(rows: int, kept: int) -> None:
    assert choose_kept_bits(rows) == kept
    assert 2.0**-kept >= 2 / math.sqrt(rows) / 4
    assert 2 ** bits_of_opened_weight(kept) == 8 * 2**kept  # from -4 to below 4


def test_weights_that_grow_are_refused_and_nothing_is_opened() -> None:
    opened: list[str] = []
    case = Case(options={"optimiser": OptimiserSettings(learning_rate=400.0, schedule="constant", l2=0.0)})

    async def note() -> None:
        opened.append("weights")

    told = Progress(before_opening=note)
    with pytest.raises(ScoresOutOfRange, match=r"out of range in epoch 1: .*") as refused:
        train(case, progress=dict.fromkeys(case.parameters.data_parties, told))
    assert not opened
    assert "falcon.learning_rate" in refused.value.hint


def test_a_training_goes_on_from_what_was_kept() -> None:
    """Under the same seeds, in a session of another name: other masks, the same weights."""
    kept: dict[str, list[Model]] = defaultdict(list)

    def keep(name: str) -> Progress:
        return Progress(keep=lambda model, _go_on: kept[name].append(replace(model)))

    case = Case(options=UNTESTED)
    parties = case.parameters.data_parties
    whole = weights_of(case, train(case, progress={name: keep(name) for name in parties}))
    half = {name: kept[name][1] for name in parties}
    assert {model.epochs for model in half.values()} == {2}
    resumed = weights_of(case, train(case, run="run-2", models=half))
    assert np.linalg.norm(resumed - whole) <= 2 * bound(case, 4)


# --- what is sent ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("macs", [True, False])
def test_only_what_the_table_lists_is_sent(macs: bool) -> None:
    case = Case(n_parties=3, options={"macs": macs, "epochs": 2})
    network = network_of(case)
    train(case, network=network)
    assert not network.unread
    sent = {(step, network.roles[sender], network.roles[receiver]) for sender, receiver, step in network.sent}
    of_macs = {"CheckCommitment", "CheckSeed", "ResidueCommitment", "Residue"}
    encrypted = {"DealtKeyShare", "EncryptedMasks", "MaskedSums", "PartialDecryptions"}  # test_threshold.py has these
    of_a_grid = {"ChosenPoint"}  # test_selection.py has it
    expected = {
        (arrow.message.__name__, sender, receiver)
        for arrow in falcon.TABLE.arrows
        if arrow.message.__name__ not in encrypted | of_a_grid
        for sender in arrow.senders
        for receiver in arrow.receivers
        if (sender, receiver) != ("active", "active") and (macs or arrow.message.__name__ not in of_macs)
    }
    assert sent == expected


class Opened:
    """Sums of a run's openings, and every element that a message carried, by class."""

    def __init__(self) -> None:
        self.shares: dict[str, list[Any]] = defaultdict(list)
        self.elements: dict[str, list[Any]] = defaultdict(list)

    def wire(self, sender: str, receiver: str, step: str, data: bytes) -> bytes:
        kind = getattr(falcon.messages, step)
        message = codec.decode(data, kind, culprit=sender)
        if hasattr(message, "values"):
            self.elements[step].append(message.values)
        if step == "OpenedShares" and receiver in ("hospital", "laboratory"):
            self.shares[sender].append(message.values)
        return data

    @property
    def sums(self) -> list[Any]:
        """Opened values of two parties."""
        return [field.total([a, b]) for a, b in zip(*self.shares.values(), strict=True)]


@cache
def opened_by(run: str, *, macs: bool = True) -> Opened:
    opened = Opened()
    case = Case(options={"macs": macs, "epochs": 2, "kept_bits": 5, "patience": 3})
    train(case, wire=opened.wire, run=run)
    return opened


@pytest.mark.parametrize("macs", [True, False])
def test_every_opened_value_is_uniform_but_for_the_bits(macs: bool) -> None:
    """A simulator that draws uniform elements, and knows the bits, cannot be distinguished: 1e-6 for each test."""
    opened = opened_by("run-1", macs=macs)
    bits = [values for values in opened.sums if len(values) <= 2 and values[0] == 0]
    of_labels, *of_epochs = bits if macs else [[0], *bits]  # without MACs all are trusted
    assert [int(value) for value in of_labels] == [0]
    assert [len(values) for values in of_epochs] == [2, 2]
    assert {int(values[1]) for values in of_epochs} <= {0, 1}
    masked = [values for values in opened.sums if not (len(values) <= 2 and values[0] == 0)]
    everything = np.concatenate(masked)
    assert len(everything) > 20_000
    assert uniform_p_value(everything) > 1e-6
    for vector in masked:
        if len(vector) >= 640:
            assert uniform_p_value(vector) > 1e-7
    for name, pieces in opened.elements.items():
        elements = np.concatenate(pieces)
        assert uniform_p_value(elements) > 1e-6, name


def test_the_same_training_twice_opens_nothing_twice() -> None:
    """Under the same seeds too: a name's masks are its own (a session's name comes once)."""
    sums = []
    for run in ("run-1", "run-2"):
        sums.append({int(value) for values in opened_by(run).sums if len(values) > 2 for value in values})
    assert not sums[0] & sums[1]
    assert len(sums[0]) > 10_000


def test_no_two_items_of_a_run_have_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """No item of another run has the same name either: a mask hides only one thing."""
    names: list[str] = []
    deal = Dealer.deal

    def noted(self: Dealer, item: Item) -> tuple[Arrays, field.Elements]:
        names.append(item.name)
        return deal(self, item)

    monkeypatch.setattr(Dealer, "deal", noted)
    for run in ("run-1", "run-2"):
        train(Case(rows=160, options={"epochs": 2, "patience": 1}), run=run)
    assert len(names) > 200
    assert len(set(names)) == len(names)


def test_an_opening_of_the_wrong_length_names_who_sent_it() -> None:
    def shorten(sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if sender == "laboratory" and step == "OpenedShares":
            return codec.encode(OpenedShares(codec.decode(data, OpenedShares, culprit=sender).values[:-1]))
        return data

    with pytest.raises(MalformedMessage, match="laboratory sent a malformed message: values: has the wrong length"):
        train(Case(), wire=shorten)


def test_batches_that_do_not_fit_are_refused_before_anything_is_sent() -> None:
    case = Case()
    case.parameters = replace(case.parameters, batch_rows=(2**24,))
    with pytest.raises(RangeError, match="do not fit into the field"):
        train(case)


async def test_a_seat_without_data_has_zeros_of_every_share() -> None:
    class Blind(BlindSeat):
        async def deal(self, item: Any) -> None:
            """Do nothing."""

        async def agree(self, go_on: bool, /) -> bool:
            return go_on

    blind = Blind("run")
    share = await blind.put_in("x", 0, (2,), None)
    assert blind.holder.plus(share, np.array([1, 2], np.uint64)).value.tolist() == [0, 0]
    assert [opened.tolist() for opened in await blind.open_(share)] == [[0, 0]]
