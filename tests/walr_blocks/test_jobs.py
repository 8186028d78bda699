"""Whole jobs of several parties with columns: the sum, the fit, the scores, each party's view, and refusals."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from blindfit.algorithms.errors import (
    BlindfitError,
    CannotAnswer,
    ConfigError,
    LocalProtocolError,
    MalformedMessage,
    PolicyRefused,
)
from blindfit.algorithms.messages import Channel
from blindfit.algorithms.protocols import handshake
from blindfit.algorithms.protocols.walr import AggregateOpen, ConsumerRows, several_parties
from blindfit.algorithms.protocols.walr.blocks import Block, blocks_of, encode_blocks
from blindfit.algorithms.protocols.walr.messages import BlockContent
from blindfit.algorithms.protocols.walr.several_parties import BlocksTally
from blindfit.algorithms.statistics.linear import solvers
from blindfit.algorithms.statistics.walr.defaults import default_l2
from blindfit.coordinator.job.job import load_job
from blindfit.coordinator.running.session import JobSession
from blindfit.parties.walr import holders, lead, passive
from blindfit.parties.walr import server as walr_server
from tests.done_once import done_once
from tests.hints.following import refused
from tests.walr_split.released import cells_of_treatments, released, without_noise
from tests.world.holders import COLUMNS, HOLDERS, ROWS, Holders


@pytest.fixture
def house(tmp_path: Path) -> Holders:
    return Holders(tmp_path)


job_done, trained = done_once(Holders)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[walr_server.ToFit]:
    """Inputs of the server's fits."""
    seen: list[walr_server.ToFit] = []
    fit = walr_server.fit_blocks

    def noted(to_fit: walr_server.ToFit, *args: Any) -> Any:
        seen.append(to_fit)
        return fit(to_fit, *args)

    monkeypatch.setattr(walr_server, "fit_blocks", noted)
    return seen


def labels_of(house: Holders, ids: list[str]) -> np.ndarray:
    labels = house.labels or []
    return np.array([labels[int(i.removeprefix("row "))] for i in ids])


# --- the sum, the fit, the scores ------------------------------------------------------------------------


def test_the_sum_is_exact_over_the_rows_that_all_have(
    house: Holders, fits: list[walr_server.ToFit], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    joins: list[tuple[list[str], np.ndarray]] = []
    join_blocks = BlocksTally.join_blocks

    def noted(self: BlocksTally, others: Any, join: Any) -> None:
        ids = [i for i in self._ids if all(i in other.place for other in others)]
        join_blocks(self, others, join)
        joins.append((ids, self.joined))

    monkeypatch.setattr(BlocksTally, "join_blocks", noted)
    told = released(monkeypatch)
    house.run()
    (ids, rows), (fitted,) = joins[0], fits
    assert 0 < len(ids) < len(house.common)  # some are held out
    assert set(ids) <= set(house.common)
    assert rows.shape == (len(ids), sum(map(len, COLUMNS.values())) + 1)
    exact = (rows.astype(object) * labels_of(house, ids)[:, None]).sum(axis=0)
    assert fitted.answer.sums.tolist() == exact.tolist()
    assert told[0].sums.tolist() == exact[-3:].tolist()  # x, z and the constant are the shop's
    assert told[0].rows_kept == len(ids)


def write_persons(house: Holders, size: int, most: int) -> dict[str, str]:
    """Write a person for each row, and let the server count `most` rows of each person."""
    persons = {f"row {i}": f"person {i // size}" for i in range(ROWS)}
    lines = [f"row {i},{label},{persons[f'row {i}']}" for i, label in enumerate(house.labels or [])]
    (house.root / "labels.csv").write_text("\n".join(["id,label,person", *lines]))
    about = {"passive_parties": ["bank", "chain"], "person": "person", "max_rows_per_person": most}
    policy = {"systems": ["walr"], "max_epsilon": 8.0, "min_rows": 20}
    house.server("meter", file="labels.csv", about=about, policy=policy)
    return persons


@pytest.mark.parametrize("most", [1, 2])
def test_rows_past_their_persons_bound_are_neither_summed_nor_fitted(
    house: Holders, fits: list[walr_server.ToFit], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """The first rows of each person count, in the order in which the active party sends the common rows.

    A longer row that does not count shortens no other, and makes no column count."""
    persons = write_persons(house, 3, most)
    without_noise(monkeypatch)
    sent: list[ConsumerRows] = []
    run_active, run_passive = lead.release_sum, several_parties.run_passive

    async def led(party: Any, session: Any, rows: ConsumerRows, *args: Any) -> Any:
        sent.append(rows)
        return await run_active(party, session, rows, *args)

    async def followed(rows: ConsumerRows, *args: Any) -> None:
        sent.append(rows)
        await run_passive(rows, *args)

    monkeypatch.setattr(lead, "release_sum", led)
    monkeypatch.setattr(several_parties, "run_passive", followed)
    cells, rounded = cells_of_treatments(monkeypatch), rows_that_weights_are_rounded_by(monkeypatch)
    session = house.run()
    own, *others = sorted(sent, key=lambda rows: rows.weights.shape[1])
    chosen: dict[str, list[str]] = {}
    for i in own.ids:
        if all(i in set(other.ids) for other in others):
            chosen.setdefault(persons[i], []).append(i)
    counted = {i for ids in chosen.values() for i in ids[:most]}
    ids = [i for i in own.ids if i in counted]
    assert len(ids) < sum(map(len, chosen.values()))
    (fitted,) = fits
    assert fitted.rows is not None
    assert fitted.rows.joined[:, -3:].tolist() == own.weights[[own.ids.index(i) for i in ids]].tolist()
    assert fitted.answer.rows_kept == fitted.rows.rows_kept == len(ids)
    exact = (fitted.rows.joined.astype(object) * labels_of(house, ids)[:, None]).sum(axis=0)
    assert fitted.answer.sums.tolist() == exact.tolist()
    assert fitted.answer.sensitivity == most * fitted.request.norm_bound
    report = house.written("shop", session, "report.json")
    rows, frac_bits = report["rows"], fitted.request.frac_bits
    assert (rows["trained"], rows["not_counted"]) == (len(ids), len(own.ids) - len(ids))
    noise_std = fitted.answer.noise_std * 2.0**-frac_bits / len(ids)
    assert report["privacy"]["noise_std_of_mean"] == pytest.approx(noise_std)
    bound, columns = fitted.request.norm_bound * 2.0**-frac_bits, fitted.request.n_columns
    assert report["fit"]["l2"] == pytest.approx(default_l2(noise_std, bound, columns, fitted.request.epsilon))
    assert set(cells) == {len(ids) * columns}  # once at the server and once in the report
    assert len(cells) == 2
    assert rounded == [len(ids)]
    for name in ("bank", "chain"):
        assert house.written(name, session, "report.json")["rows"]["trained"] == len(ids)
    with house.store("meter") as store:
        told = several_parties.bits_told_of([4, 4, 3], len(ids))
        found = {entry.about: entry.bits for entry in store.reader().disclosures(subject="columns")}
        assert found == dict(zip(HOLDERS, told, strict=True))


def rows_that_weights_are_rounded_by(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    rows: list[int] = []
    rounded = several_parties.step_8_rounded

    def noted(weights: Any, of: int) -> Any:
        rows.append(of)
        return rounded(weights, of)

    monkeypatch.setattr(several_parties, "step_8_rounded", noted)
    return rows


@pytest.mark.parametrize("public", [False, True])
def test_ids_that_the_server_lacks_count_as_label_0_and_their_number_is_not_told(
    house: Holders, fits: list[walr_server.ToFit], monkeypatch: pytest.MonkeyPatch, public: bool
) -> None:
    path = house.root / "labels.csv"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("row 4")))
    about = {"passive_parties": ["bank", "chain"], "unknown_rows": "zero", "rows_are_public": public}
    house.server(
        "meter", file="labels.csv", about=about, policy={"systems": ["walr"], "max_epsilon": 8.0, "min_rows": 20}
    )
    without_noise(monkeypatch)
    house.labels = [label * (not str(i).startswith("4")) for i, label in enumerate(house.labels or [])]
    house.run()
    (fitted,) = fits
    assert fitted.rows is not None
    assert fitted.answer.rows_unknown == 0
    positive = int(fitted.answer.sums[-1]) / int(fitted.rows.joined[:, -1].max())  # the constant's sum
    ids = [i for i in house.common if not i.startswith("row 4") and labels_of(house, [i])[0]]
    assert 0.7 * len(ids) < positive < 0.9 * len(ids)  # four in five are trained on
    assert fitted.answer.rows_kept > 0.7 * len(house.common)


def test_the_weights_are_those_of_one_party_with_all_columns(
    house: Holders, fits: list[walr_server.ToFit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each party gets its own block, to a quarter of a weight's statistical error."""
    without_noise(monkeypatch)
    session = house.run()
    (fitted,) = fits
    assert fitted.rows is not None
    rows = fitted.rows.joined.astype(float) * 2.0**-fitted.request.frac_bits
    mu = fitted.answer.sums * 2.0**-fitted.request.frac_bits / fitted.answer.rows_kept
    whole = np.concatenate(
        [np.array([*house.written(n, session)["weights"].values()]) for n in ("bank", "chain", "shop")]
        + [[house.written("shop", session)["intercept"]]]
    )
    l2 = house.written("shop", session, "report.json")["fit"]["l2"]
    penalty = np.append(np.full(rows.shape[1] - 1, l2), 0.0)
    gradient = rows.T @ (1 / (1 + np.exp(-rows @ whole))) / len(rows) - mu + penalty * whole
    step = 2.0 ** -several_parties.choose_kept_bits(len(rows))
    assert np.abs(gradient).max() < step  # a weight is off by half a step, and the Hessian is below 1
    assert np.abs(whole[[0, 8]] - 1).max() < 0.5
    assert abs(whole[5] + 1) < 0.5


def test_scores_of_new_rows_are_formed_by_joint_prediction(trained: tuple[Holders, JobSession]) -> None:
    house, session = trained
    house.write_prediction(session.id)
    predicted = house.run(job="predict.toml")
    scores = pyarrow.csv.read_csv(house.root / "state/shop/predictions" / predicted.id / "scores.csv")
    assert sorted(scores["id"].to_pylist()) == sorted(house.common)
    expected = np.zeros(len(scores))
    at = [int(i.removeprefix("row ")) for i in scores["id"].to_pylist()]
    for name in HOLDERS:
        part = house.written(name, session)
        made = part["standardiser"]
        columns = (house.features[name][at] - np.array(list(made["mean"].values()))) / np.array(
            list(made["std"].values())
        )
        if name == "shop":
            columns = np.column_stack([columns, np.ones(len(at))])
        bound = part["row_bound"] * 2.0**-12
        columns *= np.minimum(1, bound / np.linalg.norm(columns, axis=1, keepdims=True))
        weights = [*part["weights"].values(), *([part["intercept"]] if name == "shop" else [])]
        expected += columns @ np.array(weights)
    rounding = sum(2.0 ** (house.written(n, session)["score_rounding"] - 42) for n in ("bank", "chain"))
    assert np.abs(scores["score"].to_numpy() - expected).max() < rounding + 0.01
    labels = labels_of(house, scores["id"].to_pylist())
    assert ((scores["probability"].to_numpy() > 0.5) == labels).mean() > 0.65


def test_with_one_holder_nothing_changes(house: Holders) -> None:
    session = house.run(job="alone.toml")
    assert house.written("shop", session)["format"] == "blindfit-walr-model-1"


def test_a_norm_bound_of_the_job_is_split_by_columns(
    house: Holders, fits: list[walr_server.ToFit], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = house.run("walr.norm_bound=3.3")
    bounds = {name: house.written(name, session)["row_bound"] / 2**12 for name in HOLDERS}
    assert bounds["bank"] == bounds["chain"] == pytest.approx(3.3 * (4 / 11) ** 0.5, abs=0.01)
    assert bounds["shop"] == pytest.approx(3.3 * (3 / 11) ** 0.5, abs=0.01)
    assert fits[0].request.norm_bound * 2.0 ** -fits[0].request.frac_bits == pytest.approx(3.3, abs=0.01)


@pytest.mark.parametrize("job", ["alone.toml", "job.toml"])
@pytest.mark.parametrize(
    ("settings", "quantiles", "least", "most"),
    [
        (("walr.frac_bits=24",), (0.9, 1.0), 0.0, 2.0),  # more than 2^25 steps are no exact sums
        (
            ("walr.frac_bits=13", "walr.intercept=false"),
            (0.01, 0.2),
            5.0,
            99.0,
        ),  # with less noise its range would be too narrow
    ],
)
def test_no_job_ends_for_how_long_rows_are(
    house: Holders, job: str, settings: tuple[str, ...], quantiles: tuple[float, ...], least: float, most: float
) -> None:
    """Otherwise uncharged refusals would reveal the rows' norms to a proposer that tries quantiles."""
    for quantile in quantiles:
        session = house.run(*settings, f"walr.norm_quantile={quantile}", "privacy.epsilon=3.9", job=job)
        bound = house.written("shop", session, "report.json")["privacy"]["norm_bound"]
        assert least <= bound <= most


# --- asked again ------------------------------------------------------------------------------------------


def test_a_job_again_gets_the_remembered_answer_and_fit_without_rows_or_charge(
    trained: tuple[Holders, JobSession], fits: list[walr_server.ToFit], monkeypatch: pytest.MonkeyPatch
) -> None:
    house, first = trained
    sent: list[object] = []
    run_passive = several_parties.run_passive

    async def noted(*args: Any) -> None:
        sent.append(args)
        await run_passive(*args)

    monkeypatch.setattr(several_parties, "run_passive", noted)
    again = house.run()
    assert (house.spent(), fits, sent) == (1, [], [])
    for name in HOLDERS:
        assert house.written(name, first)["weights"] == house.written(name, again)["weights"]
    assert counted_fits(house) == 1


def counted_fits(house: Holders) -> int:
    with house.store("bank") as store:
        return len(store.reader().disclosures(subject="scores"))


def test_rows_that_are_sent_again_for_the_same_job_count_as_another_fit(
    trained: tuple[Holders, JobSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An active party may ask the server under another name, with other columns of its own."""
    house, _ = trained
    lying(monkeypatch, lambda request: replace(request, request_id="another", epsilon=request.epsilon / 4))
    with suppress(BlindfitError):  # in any case the rows have left
        house.run()
    assert counted_fits(house) == 2


def test_a_release_is_fitted_once(trained: tuple[Holders, JobSession]) -> None:
    """Otherwise each setting of the fit would give a party free equations about the others' columns.

    There would be as many equations as the party has weights."""
    house, _ = trained
    with refused("this release was fitted with other settings: set privacy.release to another name for another draw"):
        house.run("walr.l2=0.5")
    assert house.spent() == 1
    house.run("walr.l2=0.5", 'privacy.release="another"', "privacy.epsilon=1.0")
    assert house.spent() == 2


def test_a_fit_without_an_end_is_the_one_fit_of_its_release(house: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each setting that is tried would reveal another bit of everybody's rows."""
    with monkeypatch.context() as small:
        small.setattr(several_parties, "LARGEST_WEIGHT", 0.01)
        with pytest.raises(BlindfitError, match="meter cannot take part"):
            house.run()
    with pytest.raises(BlindfitError, match="fitted with other settings"):
        house.run("walr.l2=0.5")
    with pytest.raises(BlindfitError, match="meter cannot take part"):
        house.run()
    assert house.spent() == 1


def test_a_norm_bound_is_told_under_few_settings(house: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each quantile of a passive party's norms, and each of another split, is one more fact of its rows."""
    monkeypatch.setattr(several_parties, "EXPONENT_BITS", 193)  # otherwise 31 settings pass a quarter of its 1,400 rows
    house.run()
    house.run()  # the same bound counts once
    with refused("this party's norm bound was sent under too many settings: set walr.norm_bound to a number") as told:
        house.run("walr.norm_quantile=1.0", "privacy.epsilon=0.5")
    assert told.text.startswith(("bank", "chain"))
    for name in ("bank", "chain"):  # a new snapshot of the same people does not begin the count again
        house.publish(name)
    with refused("this party's norm bound was sent under too many settings: set walr.norm_bound to a number"):
        house.run("privacy.epsilon=0.5")
    assert house.spent() == 1
    house.run("walr.norm_bound=3.3", "privacy.epsilon=0.5")


def test_a_norm_bound_of_another_draw_counts_anew(house: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active party that claims to have forgotten the draw gets a bound of other training rows, under
    the same job.
    """
    house.set("seed", None, "job")
    bounds: list[float] = []

    def told_and_gone(told: Any, *_: Any) -> Any:
        bounds.append(told["bank"].norm_bound)
        raise LocalProtocolError("the active party has read what it wanted")

    monkeypatch.setattr(several_parties, "step_2_bounds", told_and_gone)
    for times in (1, 1, 2):
        if times == 2:
            with house.store("shop") as store, store.transaction() as transaction:
                transaction._all("DELETE FROM draws")
        with pytest.raises(BlindfitError):
            house.run()
        with house.store("bank") as store:
            counted = sum(entry.bits for entry in store.reader().disclosures(subject="columns"))
        assert counted == times * (several_parties.BOUND_BITS + several_parties.EXPONENT_BITS)
    assert len(bounds) == 3
    assert bounds[0] == bounds[1]
    assert house.spent() == 0


def test_a_server_that_was_stopped_between_charge_and_fit_fits_afterwards(
    house: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> Any:
        raise MalformedMessage(culprit="meter", field="test", reason="the plug was pulled")

    with monkeypatch.context() as pulled:
        pulled.setattr(walr_server, "fit_blocks", stopped)
        with pytest.raises(BlindfitError):
            house.run()
    assert house.spent() == 1
    session = house.run()
    assert house.spent() == 1
    assert house.written("bank", session)["weights"]


@pytest.mark.parametrize("job", ["alone.toml", "job.toml"])
def test_a_fit_ends_with_its_session_and_takes_no_thread_of_others(
    house: Holders, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """Otherwise one charge would be fitted again and again, uncharged, until no thread is left for other sessions."""
    fitting: set[str] = set()
    fit = solvers._SOLVERS["gradient-descent"]

    def noted(run: Any) -> Any:
        fitting.add(threading.current_thread().name)
        return fit(run)

    monkeypatch.setitem(solvers._SOLVERS, "gradient-descent", noted)
    endless = (
        'walr.solver="gradient-descent"',
        "walr.rate=1e-9",
        "walr.tolerance=1e-12",
        "walr.max_iterations=1048576",
    )
    for seconds in (2, 8, 32):  # the shortest that leaves a busy machine time for all that comes before the fit
        with pytest.raises(BlindfitError):
            house.run(*endless, f"timeouts.session_s={seconds}", job=job)
        if fitting:
            break
    assert [name.rsplit("_", 1)[0] for name in fitting] == ["long work"]
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(thread.name in fitting for thread in threading.enumerate()):
        time.sleep(0.05)
    assert not [thread.name for thread in threading.enumerate() if thread.name in fitting]
    assert house.spent() == 1


@pytest.mark.parametrize("option", ["max_iterations", "memory"])
def test_no_job_asks_for_a_fit_of_any_length(house: Holders, option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option}.*must be at most"):
        load_job(house.root / "job.toml", ['walr.solver="lbfgs"', f"walr.{option}={10**12}"])


def test_weights_that_hang_on_the_same_rows_are_counted_over_all_fits(house: Holders) -> None:
    """Three fits of 77 bits of weights and 30 of how it ended pass a quarter of some 1,020 rows, 255."""
    house.run("privacy.epsilon=1.0")
    house.run("privacy.epsilon=1.05")
    with pytest.raises(PolicyRefused, match=r"more bits .* than a quarter of the common rows") as refused:
        house.run("privacy.epsilon=1.1")
    assert house.spent() == 2
    assert not re.search(r"\d", str(refused.value))  # a digit would reveal how many rows are common


@pytest.mark.parametrize(("most", "is_let_pass"), [(1, False), (4, True)])
def test_bits_of_weights_are_compared_with_the_rows_that_count(house: Holders, most: int, is_let_pass: bool) -> None:
    """107 bits pass a quarter of one row of each person, 320 or so, and not of all their rows."""
    write_persons(house, 4, most)
    if is_let_pass:
        house.run()
    else:
        with pytest.raises(PolicyRefused, match=r"more bits .* than a quarter of the common rows"):
            house.run()
    assert house.spent() == is_let_pass


def test_an_active_party_does_not_have_anothers_bits_counted_for_its_own_snapshot(
    house: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The active party reads the bank's id first, and then claims it as its own to the server."""
    shake = handshake.run_party

    async def lying(mine: handshake.Hello, peers: Sequence[tuple[str, str]], channel: Any) -> Any:
        if mine.role != "active":
            return await shake(mine, peers, channel)
        others = [peer for peer in peers if peer[0] != "meter"]
        told = dict(await shake(mine, others, channel))
        claim = replace(mine, snapshot=told["bank"])
        return told | dict(await shake(claim, [("meter", "measurement")], channel))

    monkeypatch.setattr(handshake, "run_party", lying)
    with pytest.raises(BlindfitError):
        house.run()
    assert house.spent() == 0


# --- what each sees ----------------------------------------------------------------------------------------


def test_no_holder_gets_anothers_row_sum_or_weight(house: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test covers all that a party decodes, in calls and in the session, except its own ids."""
    from blindfit.parties.wire import exchange

    heard: dict[str, list[object]] = {name: [] for name in HOLDERS}
    receive = exchange.ExchangeChannel.receive

    async def noted(self: Any, sender: str, kind: type) -> Any:
        message = await receive(self, sender, kind)
        if self.name in heard:
            heard[self.name].append(message)
        return message

    monkeypatch.setattr(exchange.ExchangeChannel, "receive", noted)
    told = released(monkeypatch)
    session = house.run()
    kinds = {name: {type(m).__name__ for m in messages} for name, messages in heard.items()}
    drawn = {"Known", "Commitment", "Opening"} & set().union(*kinds.values())
    handshake = {"HandshakeHello", "Hello"}
    assert kinds["shop"] - drawn - handshake <= {"BlockColumns", "BlockContent", "BlockFit", "Handshake"}
    for name in ("bank", "chain"):
        assert kinds[name] - drawn - handshake <= {"BlockGrid", "BlockWanted", "BlockFit", "Handshake"}
    for name in HOLDERS:
        (fit,) = [m for m in heard[name] if isinstance(m, several_parties.BlockFit)]
        own = list(house.written(name, session)["weights"].values())
        assert fit.weights.tolist()[: len(own)] == own
        assert len(fit.weights) == len(own) + (name == "shop")
    assert told[0].sums.shape == (3,)
    machines = ("timing.", "peak_memory")  # figures as short as a weight, and by chance the same
    told_others = [
        {what: value for what, value in of_one.items() if not what.startswith(machines)}
        for of_one in session.summaries.values()
    ]
    report = json.dumps(told_others)
    assert '"rows.sent"' in report
    for name in HOLDERS:
        for weight in house.written(name, session)["weights"].values():
            assert len(str(weight)) < 6 or str(weight) not in report


@pytest.mark.parametrize("job", ["alone.toml", "job.toml"])
def test_the_coordinator_does_not_read_the_sum_off_the_gradient(house: Holders, job: str) -> None:
    """After a step of next to no length its norm is that of a known vector less the released mean."""
    settings = ('walr.solver="gradient-descent"', "walr.max_iterations=1", "walr.rate=1e-300", 'walr.mu="as-released"')
    session = house.run(*settings, "walr.intercept=false", job=job)
    norm = house.written("shop", session, "report.json")["fit"]["gradient_norm"]
    told = [value for of_one in session.summaries.values() for value in of_one.values()]
    assert norm > 0
    assert norm not in told
    assert not any("gradient" in name for of_one in session.summaries.values() for name in of_one)


def test_the_receipt_proves_the_part_that_the_active_party_got(trained: tuple[Holders, JobSession]) -> None:
    """`check_proof` has passed in the job; the stored answer, of all columns, would not."""
    house, _ = trained
    with house.store("meter") as store:
        (entry,) = store.reader().ledger()
        answer = store.reader().answer("shop", entry.request_id)
    assert answer is not None
    assert entry.answer_sha256


# --- who does not keep to it -------------------------------------------------------------------------------


def lying(monkeypatch: pytest.MonkeyPatch, change: Callable[[AggregateOpen], AggregateOpen]) -> None:
    made = several_parties.step_4_open

    def changed(own: AggregateOpen, blocks: Any) -> AggregateOpen:
        return change(made(own, blocks))

    monkeypatch.setattr(several_parties, "step_4_open", changed)


def reblocked(change: Callable[[Block], Block]) -> Callable[[AggregateOpen], AggregateOpen]:
    def of(request: AggregateOpen) -> AggregateOpen:
        blocks = blocks_of(request, culprit="")
        return replace(request, blocks=encode_blocks([change(blocks[0]), *blocks[1:]]))

    return of


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (reblocked(lambda b: replace(b, content_sha256=bytes(32))), "another block than bank has"),
        (reblocked(lambda b: replace(b, norm_bound=b.norm_bound - 1)), "another block than bank has"),
        (reblocked(lambda b: replace(b, holder="aunt")), "other holders of columns"),
        (lambda r: replace(r, blocks=r.blocks[:-1]), "not a list of blocks"),
        (lambda r: replace(r, blocks=r.blocks.replace(",", ", ", 1)), "not a list of blocks"),
        (lambda r: replace(r, blocks=""), "other holders of columns"),
        (lambda r: replace(r, norm_bound=r.norm_bound // 3), "leave nothing"),
        (lambda r: replace(r, n_columns=8), "leave nothing"),
    ],
)
def test_an_active_party_that_asks_for_something_else_is_refused_and_nothing_is_charged(
    house: Holders, monkeypatch: pytest.MonkeyPatch, change: Callable[[AggregateOpen], AggregateOpen], said: str
) -> None:
    lying(monkeypatch, change)
    with pytest.raises(BlindfitError, match=said):
        house.run()
    assert house.spent() == 0


def longer(rows: ConsumerRows) -> ConsumerRows:
    return ConsumerRows(rows.ids, np.asarray(rows.weights * 2, rows.weights.dtype))


def twice(rows: ConsumerRows) -> ConsumerRows:
    return ConsumerRows((rows.ids[1], *rows.ids[1:]), rows.weights)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (longer, "longer than the block's norm bound"),
        (twice, "an id comes twice"),
        (lambda rows: ConsumerRows(rows.ids, rows.weights[:, :3]), "not one row of n_columns"),
        (lambda rows: ConsumerRows(rows.ids[::-1], rows.weights), "not the hash of the rows"),
    ],
)
def test_a_passive_party_that_sends_other_rows_is_named_and_nothing_is_charged(
    house: Holders, monkeypatch: pytest.MonkeyPatch, change: Callable[[ConsumerRows], ConsumerRows], said: str
) -> None:
    run_passive = several_parties.run_passive

    async def cheating(rows: ConsumerRows, *args: Any) -> None:
        await run_passive(change(rows), *args)

    monkeypatch.setattr(several_parties, "run_passive", cheating)
    with pytest.raises(BlindfitError, match=f"(bank|chain).*({said})"):
        house.run()
    assert house.spent() == 0


@pytest.mark.parametrize("change", [{"content": BlockContent(bytes(32))}, {"norm_bound": 5}])
def test_where_a_passive_party_says_another_block_than_the_active_party_asks_for_both_are_named(
    house: Holders, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """The server cannot know which of them lies."""
    run_passive = several_parties.run_passive

    async def cheating(
        rows: ConsumerRows, norm_bound: int, content: BlockContent, salt: bytes, server: str, channel: Channel
    ) -> None:
        said = {"norm_bound": norm_bound, "content": content, **change}
        await run_passive(rows, salt=salt, server=server, channel=channel, **said)

    monkeypatch.setattr(several_parties, "run_passive", cheating)
    with pytest.raises(BlindfitError, match=r"shop requests another block than (bank|chain) has.*which of the two"):
        house.run()
    assert house.spent() == 0


def test_too_few_rows_for_the_columns_are_refused_by_public_numbers_and_nothing_is_charged(
    house: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses too, for any result of the active party's own check."""
    release = lead.release_sum

    async def fewer(party: Any, session: Any, rows: ConsumerRows, *args: Any) -> Any:
        few = ConsumerRows(rows.ids[:319], rows.weights[:319])
        return await release(party, session, few, *args)

    monkeypatch.setattr(lead, "release_sum", fewer)
    with pytest.raises(PolicyRefused, match=r"319 rows are too few .* which need 320: use more rows or fewer columns"):
        house.run()
    assert house.spent() == 0


def test_only_its_owner_is_told_that_a_column_was_left_out(house: Holders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank's column b is 1 in 15 rows."""
    house.features["bank"][:, 1] = np.arange(1800) % 120 == 2
    house.write_features("bank")
    told: dict[str, Any] = {}
    receive = holders.receive_fit

    async def noted(session: Any, width: int) -> Any:
        told[session.me.name] = made = await receive(session, width)
        return made

    monkeypatch.setattr(passive, "receive_fit", noted)
    monkeypatch.setattr(lead, "receive_fit", noted)
    session = house.run()
    assert {name: fit.left_out.tolist() for name, fit in told.items()} == {"bank": [1], "chain": [], "shop": []}
    assert house.written("bank", session)["weights"]["b"] == 0
    assert house.written("bank", session, "report.json")["rows"]["left_out"] == ["b"]
    for name in ("chain", "shop"):
        assert "left_out" not in house.written(name, session, "report.json")["rows"]
    assert not any("left_out" in figure for of_one in session.summaries.values() for figure in of_one)
    told.clear()
    house.run()
    assert told["bank"].left_out.tolist() == [1]  # the server kept it


def test_a_holder_whom_the_label_holder_did_not_name_gets_no_weights(house: Holders) -> None:
    house.write_server(("bank",))
    with pytest.raises(PolicyRefused, match="there is no dataset rows for chain"):
        house.run()
    assert house.spent() == 0


def test_a_person_asked_for_who_is_not_in_the_table_is_not_told_by_place(house: Holders) -> None:
    """The place would reveal which rows the parties have in common."""
    house.root.joinpath("labels.csv").write_text(
        "\n".join(
            line for line in house.root.joinpath("labels.csv").read_text().splitlines() if not line.startswith("row 4")
        )
    )
    with pytest.raises(BlindfitError, match="cannot answer this request"):
        house.run()
    assert house.spent() == 0


def test_an_id_that_comes_twice_does_not_tell_how_many_before_it_are_common(
    house: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, place = lead.release_sum, 1000
    told: list[str] = []

    async def repeating(party: Any, session: Any, rows: ConsumerRows, *args: Any, **options: Any) -> Any:
        sure = next(i for i in range(place, len(rows.ids)) if rows.ids[i] in set(house.common))
        chosen = [*range(place), sure, sure]
        again = ConsumerRows(tuple(rows.ids[i] for i in chosen), np.asarray(rows.weights)[chosen])
        try:
            return await release(party, session, again, *args, **options)
        except BlindfitError as error:
            told.append(error.message)
            raise

    monkeypatch.setattr(lead, "release_sum", repeating)
    with pytest.raises(BlindfitError):
        house.run()
    assert told == [f"meter refuses the request: row {place + 2} has an id that came before"]
    assert house.spent() == 0


@pytest.mark.parametrize("public", ["", "rows_are_public = true\n"])
def test_too_few_rows_in_common_are_not_counted_to_anybody(house: Holders, public: str) -> None:
    """The active party has enough by itself. The server must not reveal how many of these the others have."""
    meter = house.root / "meter.toml"
    meter.write_text(meter.read_text().replace("min_rows = 20", "min_rows = 1200") + public)
    assert 0.8 * len(house.ids("shop")) > 1200 > 0.8 * len(house.common)
    with pytest.raises(CannotAnswer) as refused:
        house.run()
    assert not re.search(r"\d", str(refused.value))
    assert house.spent() == 0


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (('walr.trust="encrypted-rows"',), 'passive parties need "trusted"'),
        (('walr.init="model.json"',), "no party has a whole model"),
    ],
)
def test_what_a_job_of_several_holders_cannot_do_is_said(house: Holders, overrides: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_job(house.root / "job.toml", list(overrides))
