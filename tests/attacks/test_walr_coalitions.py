"""Every coalition that docs/guides/hide_labels_or_rows.md and docs/guides/several_passive_parties.md name, for each way
to trust servers.

A test computes what the members can learn together from what each of them has in a real job. Where a page states that
they know the labels, they do. Where it states that epsilon holds against them, they are left with the sum and a whole
noise that none of them knows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from blindfit.algorithms.privacy.gaussian import GaussianMechanism
from blindfit.algorithms.protocols.falcon.messages import DealtSeed
from blindfit.algorithms.protocols.walr import AggregateOpen, dealt_masks, mechanism_of, shared_rows
from blindfit.algorithms.protocols.walr.messages import Dimensions, MasksUsed
from blindfit.algorithms.protocols.walr.shared_rows import Server, SharedRows
from blindfit.algorithms.sharing import field as f
from blindfit.algorithms.sharing import short_rows
from blindfit.algorithms.sharing.dealing import Dealer
from blindfit.algorithms.sharing.field import Elements
from blindfit.algorithms.sharing.prg import Seed
from blindfit.parties.measurement.service import MeasurementService
from blindfit.parties.measurement.ways import shared_rows as way
from blindfit.parties.walr import server as walr_server
from tests.attacks import masked_sums
from tests.walr_split.overhearing import listen
from tests.world.files import write_csv
from tests.world.holders import Holders
from tests.world.split_labels import ROWS, SERVERS, Split

COINS = np.random.default_rng(48).integers(0, 2, ROWS).tolist()  # only an attack reveals them
FEATURES = 6  # with the constant, some 300 bits of equations in 60 unknown bits
HALF = "split.test_fraction=0.5"
BY_CHANCE = 1e-9  # chance that a guess that knows nothing gets more right than is allowed


@dataclass
class Drawn:
    """Sum of one server, and the noise that it has drawn."""

    exact: list[int]
    noise: list[int]
    variance: Any


@dataclass
class Views:
    """Views of the parties of one job.

    Attributes:
        asked: request and rows of the active party, by server.
        answers: answer of each server to the active party.
        drawn: sum and noise of each server.
        servers: each server's dealing, and its blocks of masked rows and shares of labels.
        heard: labels less masks that each server receives from the other one.
        hidden: the active party's rows, and the seed of its masks.
        dealt: all that the key node sends, in its order.
        told_dealer: all that the key node receives.
    """

    asked: dict[str, tuple[AggregateOpen, Any]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    drawn: dict[str, Drawn] = field(default_factory=dict)
    servers: dict[str, tuple[Server, list[tuple[Elements, Elements]]]] = field(default_factory=dict)
    heard: dict[str, Elements] = field(default_factory=dict)
    hidden: list[SharedRows] = field(default_factory=list)
    dealt: list[tuple[str, Any]] = field(default_factory=list)
    told_dealer: list[Any] = field(default_factory=list)

    @property
    def request(self) -> AggregateOpen:
        return next(iter(self.asked.values()))[0]

    @property
    def rows(self) -> Any:
        return next(iter(self.asked.values()))[1]

    @property
    def labels(self) -> list[int]:
        return [COINS[int(i.removeprefix("row "))] for i in self.rows.ids]

    @property
    def exact(self) -> list[int]:
        """The sum without noise."""
        weights = np.array(self.rows.weights.tolist(), object)
        return (weights * np.array(self.labels, object)[:, None]).sum(axis=0).tolist()

    @property
    def seeds(self) -> list[Seed]:
        sent = {to: message.seed for to, message in self.dealt if isinstance(message, DealtSeed)}
        return [Seed(sent[name]) for name in SERVERS]


def noted_draws(views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, draw, who = MeasurementService.release, GaussianMechanism.release, threading.local()

    def answered(self: MeasurementService, *args: Any, **options: Any) -> Any:
        who.name = self.name
        return answer(self, *args, **options)

    def drew(self: GaussianMechanism, exact: Sequence[int], uniform: Any) -> list[int]:
        noisy = draw(self, exact, uniform)
        noise = [a - b for a, b in zip(noisy, exact, strict=True)]
        views.drawn[who.name] = Drawn(list(exact), noise, self.sigma_squared)
        return noisy

    monkeypatch.setattr(MeasurementService, "release", answered)
    monkeypatch.setattr(GaussianMechanism, "release", drew)


class Noted:
    """The key node's channel."""

    def __init__(self, channel: Any, views: Views) -> None:
        self._channel, self._views = channel, views

    async def send(self, to: str, message: Any) -> None:
        self._views.dealt.append((to, message))
        await self._channel.send(to, message)

    async def receive(self, sender: str, kind: type) -> Any:
        return await self._channel.receive(sender, kind)


def noted_dealing(views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    deal, hide, add_up, receive = (
        dealt_masks.run_key_node,
        way.AtActiveParty.hide,
        Server._sum,
        dealt_masks.receive_pieces,
    )

    async def dealt(plan: Any, active: str, servers: Any, channel: Any) -> None:
        views.told_dealer.append(plan)
        await deal(plan, active, servers, Noted(channel, views))

    def hidden(self: Any, rows: Any, request: Any) -> SharedRows:
        views.hidden.append(made := hide(self, rows, request))
        return made

    async def added_up(self: Server, blocks: list[tuple[Elements, Elements]]) -> Elements:
        views.servers[self.me] = self, blocks
        return await add_up(self, blocks)

    async def received(sender: str, kind: type, length: int, channel: Any) -> Elements:
        pieces = await receive(sender, kind, length, channel)
        if kind is shared_rows.OpenedShares:
            views.heard[SERVERS[1 - SERVERS.index(sender)]] = pieces
        return pieces

    monkeypatch.setattr(dealt_masks, "run_key_node", dealt)
    monkeypatch.setattr(way.AtActiveParty, "hide", hidden)
    monkeypatch.setattr(Server, "_sum", added_up)
    monkeypatch.setattr(shared_rows, "receive_pieces", received)


@pytest.fixture
def views_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Views]:
    """Run a job of a shop whose rows have coins as labels, and note what each party has."""

    def run(job: str) -> Views:
        house, views = Split(tmp_path), Views()
        columns = np.random.default_rng(7).normal(size=(FEATURES, ROWS))
        ids = {"id": [f"row {i}" for i in range(ROWS)]}
        write_csv(tmp_path / "features.csv", ids | {f"x{j}": column for j, column in enumerate(columns)})
        house.write_labels(COINS)
        house.write_party("whole", unsafe=["unchecked-rows"])
        house.split()
        views.answers, views.asked = listen(house, monkeypatch), house.asked
        noted_draws(views, monkeypatch)
        noted_dealing(views, monkeypatch)
        house.run(HALF, job=job)
        assert 40 < len(views.labels) < 80  # the lattice is quick
        return views

    return run


def centred(elements: Any) -> list[int]:
    return f.integers(np.asarray(elements, np.uint64)).tolist()


# --- epsilon holds against them ----------------------------------------------------------------------------


def assert_left_with(views: Views, known: Any, of: Sequence[str]) -> None:
    """Check that a coalition knows only the sum plus the whole noise of each of these servers."""
    noises = np.array([views.drawn[name].noise for name in of], object).sum(axis=0).tolist()
    assert [a - b for a, b in zip(list(known), views.exact, strict=True)] == noises
    for name in of:
        assert any(views.drawn[name].noise)
        assert views.drawn[name].variance == mechanism_of(views.request).sigma_squared


@pytest.mark.parametrize("job", ["trusted.toml", "hidden.toml"])
def test_the_active_party_has_the_sum_and_a_whole_noise_of_one_server(
    views_of: Callable[[str], Views], job: str
) -> None:
    views = views_of(job)
    assert_left_with(views, views.answers["whole"].sums.tolist(), ["whole"])


@pytest.mark.parametrize("job", ["job.toml", "shares.toml"])
def test_the_active_party_has_two_noises_and_with_either_server_that_of_the_other(
    views_of: Callable[[str], Views], job: str
) -> None:
    """A server may know everything about its own answer: the sum stays behind the other server's noise."""
    views = views_of(job)
    answers = {name: views.answers[name].sums.astype(np.uint64) for name in SERVERS}
    both = centred(f.add(*answers.values()))
    assert_left_with(views, both, SERVERS)
    for name, other in (SERVERS, SERVERS[::-1]):
        own = views.drawn[name]
        answered = [(a + n) % f.P for a, n in zip(own.exact, own.noise, strict=True)]
        assert answered == answers[name].tolist()
        assert_left_with(views, [s - n for s, n in zip(both, own.noise, strict=True)], [other])


@pytest.mark.parametrize("reshared", [True, False])
def test_the_key_node_with_the_active_party_reads_no_label_once_answers_are_reshared(
    views_of: Callable[[str], Views], monkeypatch: pytest.MonkeyPatch, reshared: bool
) -> None:
    """Both follow the protocol, and pool the key node's seeds, the rows and the two answers."""
    if not reshared:
        monkeypatch.setattr(shared_rows, "step_6_reshare", lambda share, _seed, _place: share)
    views = views_of("shares.toml")
    n = len(views.labels)
    for place, name in enumerate(SERVERS):
        answer = views.answers[name].sums.astype(np.uint64)
        a, values = masked_sums.knapsack(views.hidden[0], views.seeds, place, answer)
        guess = masked_sums.labels_of(a, values, views.answers[name].noise_std)
        right = int((guess == views.labels).sum())
        assert right <= stats.binom.isf(BY_CHANCE, n, 0.5) if reshared else right == n, name
    assert_left_with(views, centred(f.add(*(a.sums.astype(np.uint64) for a in views.answers.values()))), SERVERS)


def test_the_key_node_alone_gets_sizes_only(views_of: Callable[[str], Views]) -> None:
    views = views_of("shares.toml")
    (plan,) = views.told_dealer
    assert (plan.n_rows, plan.n_columns, plan.norm_bound) == (len(views.labels), FEATURES + 1, views.request.norm_bound)
    to_key_node = {a.message for a in shared_rows.TABLE.arrows if "key-node" in a.receivers}
    assert to_key_node == {Dimensions, MasksUsed}


# --- they know everything -----------------------------------------------------------------------------------


def test_both_servers_together_know_labels_and_in_shares_rows(views_of: Callable[[str], Views]) -> None:
    views = views_of("shares.toml")
    labels, rows, masks = [], [], []
    for server, blocks in views.servers.values():
        labels.append(np.concatenate([shares for _, shares in blocks]))
        rows.append(np.concatenate([masked for masked, _ in blocks]))
        masks.append(np.concatenate([server.dealt.rows(b)["mask"].value for b in range(len(blocks))]))
    assert centred(f.add(*labels)) == views.labels
    found = f.integers(f.add(rows[0], f.add(*masks)))[:, : FEATURES + 1]
    assert (found == views.rows.weights).all()


@pytest.mark.parametrize("name", SERVERS)
def test_one_server_with_the_key_node_knows_labels_and_rows(views_of: Callable[[str], Views], name: str) -> None:
    views = views_of("shares.toml")
    server, blocks = views.servers[name]
    own = np.concatenate([shares for _, shares in blocks])
    masks = np.concatenate([server.dealt.labels(b)["mask"].value for b in range(len(blocks))])
    opened = f.add(f.subtract(own, masks), views.heard[name])
    plan, prover = server.dealt.plan, next(Seed(m.seed) for to, m in views.dealt if to == "shop")
    dealer = Dealer(views.seeds, macs=False)
    dealt = [dealer.deal(dealt_masks.labels_item(plan, b, prover))[0]["mask"] for b in range(len(blocks))]
    assert centred(f.add(opened, np.concatenate(dealt))) == views.labels
    row_masks = np.concatenate([short_rows.row_masks(plan, b, prover) for b in range(len(blocks))])
    found = f.integers(f.add(np.concatenate([masked for masked, _ in blocks]), row_masks))[:, : FEATURES + 1]
    assert (found == views.rows.weights).all()


def test_both_servers_of_split_labels_know_labels(views_of: Callable[[str], Views], tmp_path: Path) -> None:
    views = views_of("job.toml")
    house = Split.__new__(Split)
    house.root = tmp_path
    east, west = (house.shares(name) for name in SERVERS)
    assert [(east[i] + west[i]) % f.P for i in views.rows.ids] == views.labels


# --- several parties with columns ---------------------------------------------------------------------------


def test_all_holders_together_have_a_function_of_one_noisy_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server answers and fits from the sum and a whole noise for whole rows; it does not use labels after that."""
    views, fitted = Views(), list[Any]()
    house = Holders(tmp_path)
    noted_draws(views, monkeypatch)
    fit = walr_server.fit_blocks

    def noted(to_fit: Any, *args: Any) -> Any:
        fitted.append(to_fit)
        return fit(to_fit, *args)

    monkeypatch.setattr(walr_server, "fit_blocks", noted)
    house.run()
    ((to_fit,), drawn) = fitted, views.drawn["meter"]
    assert to_fit.answer.sums.tolist() == [a + n for a, n in zip(drawn.exact, drawn.noise, strict=True)]
    assert drawn.variance == mechanism_of(to_fit.request).sigma_squared
    assert all(drawn.noise)
    longest = max(sum(x * x for x in row) for row in to_fit.rows.joined.tolist())
    assert longest <= to_fit.request.norm_bound**2
    assert to_fit.rows.sums.tolist() == drawn.exact
