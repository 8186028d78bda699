"""If a measurement server signs a lie, and an active party seals it, a check of `verify` notices."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest
from pydantic import ValidationError

from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.events import MOST_SAMPLED_RELEASES, WHOLE_ROWS, ReleaseEvent
from blindfit.algorithms.privacy.ledger import LedgerEntry, Receipt
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum, shared_rows, statement
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.coordinator.verify import checks, inputs, server_checks
from blindfit.parties.files.private_files import read_certificate
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.files.vault import MODEL_KEY, RECEIPT_KEY
from blindfit.parties.identity.authority import create_authority
from blindfit.parties.walr import release_document
from blindfit.parties.walr.fit import l2_of
from blindfit.parties.walr.release_document import Parts, SignedReceipt
from blindfit.parties.walr.release_file import transcript_of
from blindfit.parties.walr.settings import WalrSettings
from tests.export.tampering import Change
from tests.export.trained import shop_and_meter, train
from tests.world import World


@dataclass
class Liars:
    """A shop and a meter that have been honest so far."""

    world: World
    true: dict[str, Any]  # parts of the second of two releases

    def key(self, party: str, name: str) -> SigningKey:
        return SigningKey.load_or_create(self.world.path("state", party, name))

    def seal(self, parts: dict[str, Any]) -> bytes:
        return release_document.encode(Parts.model_validate(parts), self.key("shop", MODEL_KEY))

    def failed(self, encoded: bytes) -> dict[str, str]:
        found = checks.verify(encoded, self.world.authority, servers=["meter"]).results
        return {result.name: result.why for result in found if result.why}


@dataclass(frozen=True)
class Lie:
    """Changes that the two liars make. All that follows from them, signatures too, is made to fit."""

    request: dict[str, Any] | None = None
    answer: Callable[[AggregateOpen, NoisySum], NoisySum] = lambda _, answer: answer
    about: dict[str, Any] | None = None
    entry: dict[str, Any] | None = None
    receipt: Callable[[Receipt], Receipt] = lambda receipt: receipt
    newest: Callable[[Receipt], Receipt] = lambda receipt: receipt
    keeps_name: bool = False  # the request keeps its name

    def told(self, liars: Liars) -> bytes:
        parts = json.loads(json.dumps(liars.true))
        of_server = parts["servers"][0]
        request, answer, about = statement.read(of_server["release"])
        request, about = replace(request, **(self.request or {})), replace(about, **(self.about or {}))
        if not self.keeps_name:
            name = walr.step_1_name(request, parts["sum"]["draw"])
            name = shared_rows.step_1_name(name) if request.in_shares else name
            request = replace(request, request_id=name)
        answer = self.answer(request, answer)
        entry = self._entry(book.from_json_line(of_server["entry"], 1), request, answer, about)
        receipt = self.receipt(self._receipt(of_server["receipt"], entry, answer, about))
        newest = self.newest(receipt)
        key = liars.key("meter", RECEIPT_KEY)
        of_server["release"] = json.loads(statement.statement(request, answer, about))
        of_server["entry"] = book.to_json_line(entry)
        for name, one in (("receipt", receipt), ("newest_receipt", newest)):
            of_server[name] = SignedReceipt.of((one.statement(), key.sign(one.statement()))).model_dump()
        parts["sum"] |= {"sums": answer.sums.tolist(), "noise_std": answer.noise_std}
        settings, n_columns = WalrSettings.model_validate(parts["fit"]["settings"]), len(answer.sums)
        if answer.rows_kept > 0 and answer.noise_std > 0:
            parts["fit"]["l2"] = l2_of(settings, answer, request, n_columns)
        parts["model"]["norm_bound"] = request.norm_bound * 2.0**-request.frac_bits
        parts["transcript"] = [message.model_dump() for message in transcript_of(request, answer, about)]
        return liars.seal(parts)

    def _entry(self, true: LedgerEntry, request: AggregateOpen, answer: NoisySum, about: Between) -> LedgerEntry:
        charged = replace(
            true,
            population=about.population,
            requester=about.consumer,
            dataset=request.dataset,
            snapshot=request.snapshot,
            request_id=request.request_id,
            content_sha256=request.content_sha256.hex(),
            event=answer.event,
            epsilon=request.epsilon,
            delta=request.delta,
            unit=answer.unit,
            answer_sha256=statement.digest(request, answer, about),
        )
        charged = replace(charged, **(self.entry or {}))
        return replace(charged, hash=book.entry_hash(charged))

    def _receipt(self, true: dict[str, str], entry: LedgerEntry, answer: NoisySum, about: Between) -> Receipt:
        """Return a receipt that counts this release and no other."""
        old = Receipt.from_statement(true["statement"].encode())
        charges = Charges(counted=((answer.event, 1),))
        return replace(
            old, population=about.population, position=entry.position, entry_hash=entry.hash, charges=charges
        )


@pytest.fixture(scope="module")
def liars(tmp_path_factory: pytest.TempPathFactory) -> Liars:
    world = shop_and_meter(tmp_path_factory.mktemp("world"))
    train(world)
    second = train(world, 'privacy.release="again"', "privacy.epsilon=0.5")
    return Liars(world, json.loads((second / "release.json").read_bytes())["parts"])


# --- one lie for each check -------------------------------------------------------------------------------

OTHER = ReleaseEvent("gaussian", 40.0, "one row's label changes, number and weights of the rows public").canonical()
CHARGED = "meter: charge is of this release"
NOISE, COUNTED, POLICY = "meter: noise covers the claim", "meter: releases to the population", "meter: policy"
CHAIN, NEWEST = "meter: ledger chain", "meter: signature of the newest receipt"


def answered(**changes: Any) -> Lie:
    return Lie(answer=lambda _, answer: replace(answer, **changes))


def counting(*counted: tuple[str, int], position: int = 0) -> Callable[[Receipt], Receipt]:
    def changed(receipt: Receipt) -> Receipt:
        return replace(receipt, charges=Charges(tuple(sorted(counted))), position=position or receipt.position)

    return changed


def louder(_: AggregateOpen, answer: NoisySum) -> NoisySum:
    return replace(answer, sums=np.array([2**60, *answer.sums[1:]]))


def more_often(times: int) -> Lie:
    """Return a lie in which later releases have spent more than the budget."""

    def newest(receipt: Receipt) -> Receipt:
        ((event, _),) = receipt.charges.counted
        return replace(counting((event, times), position=receipt.position + times)(receipt), entry_hash="0" * 64)

    return Lie(newest=newest)


def least_rows(kept: int) -> Lie:
    def answer(request: AggregateOpen, answer: NoisySum) -> NoisySum:
        return replace(answer, min_rows=request.n_rows + kept, rows_kept=request.n_rows - 1)

    return Lie(answer=answer)


def shifted(position: int, entry_hash: str = "f" * 64, **more: Any) -> Lie:
    return Lie(newest=lambda receipt: replace(receipt, position=position, entry_hash=entry_hash, **more))


LIES: dict[str, tuple[Lie, dict[str, str]]] = {
    "the truth": (Lie(), {}),
    "another server's release": (
        Lie(about={"server": "other"}),
        {"meter: names": "the release names another server than the signer"},
    ),
    "another party's release": (
        Lie(about={"consumer": "other"}),
        {"meter: names": "the release was made to another party than the sealing party"},
    ),
    "a newest receipt that proves less": (
        Lie(newest=lambda receipt: replace(receipt, charges=Charges())),
        {NEWEST: "it proves fewer charges than the release's own receipt"},
    ),
    "an older newest receipt": (
        Lie(newest=lambda r: replace(r, position=1, entry_hash=r.landmarks[0][1], landmarks=())),
        {NEWEST: "it is older than the release's own receipt"},
    ),
    "a newest receipt of another ledger": (
        shifted(3, landmarks=((2, "e" * 64), (1, "d" * 64))),
        {NEWEST: "it belongs to another ledger"},
    ),
    "another hash at one place": (shifted(2), {NEWEST: "it belongs to another ledger"}),
    "a charge after the training": (
        Lie(entry={"time": "2999-01-01T00:00:00+00:00"}),
        {CHARGED: "the charge is later than the training"},
    ),
    "a charge at no time": (Lie(entry={"time": "noon"}), {CHARGED: "the time of the ledger entry is not a valid time"}),
    "a charge in no zone": (
        Lie(entry={"time": "2026-01-01T00:00:00"}),
        {CHARGED: "the time of the ledger entry has no zone"},
    ),
    "an event of more noise": (answered(event=OTHER), {NOISE: "the event does not follow from the parameters"}),
    "a smaller sensitivity": (
        answered(sensitivity=1.0),
        {NOISE: "the sensitivity does not follow from the norm bound"},
    ),
    "less noise": (answered(noise_std=100_000.5), {NOISE: "noise_std does not follow from epsilon and delta"}),
    "a sum of no labels": (Lie(answer=louder), {"meter: range of the answer": "no labels give this sum"}),
    "more releases than anybody composes": (more_often(10_001), {COUNTED: "a receipt counts more than 10000 releases"}),
    "a receipt of another release": (
        Lie(receipt=counting((OTHER, 1))),
        {COUNTED: "the receipt does not count this release"},
    ),
    "a budget that is passed": (more_often(900), {COUNTED: "is spent, which exceeds the budget"}),
    "fewer rows than its policy": (least_rows(1), {POLICY: "the request has fewer rows than min_rows"}),
    "fewer rows that count": (least_rows(0), {POLICY: "fewer rows than min_rows counted"}),
    "more epsilon than its policy": (answered(max_epsilon=0.4), {POLICY: "epsilon is larger than max_epsilon"}),
    "more delta than its policy": (answered(max_delta=1e-9), {POLICY: "delta is larger than max_delta"}),
    "rows that it changed": (
        answered(rows_scaled=1),
        {"model and fit": "the server changed rows, so nothing was fitted to them"},
    ),
    "no row that counts": (
        answered(rows_kept=0, min_rows=0),
        {"model and fit": "the server changed rows, so nothing was fitted to them"},
    ),
    "another draw": (
        Lie(request={"request_id": "0" * 64}, keeps_name=True),
        {"question": "meter answered another request, or a request of another draw"},
    ),
    "other columns": (
        Lie(
            request={"n_columns": 3},
            answer=lambda _, answer: replace(answer, sums=answer.sums[:3]),
        ),
        {"model and fit": "the model has other columns"},
    ),
    "rows in shares": (
        Lie(request={"in_shares": 1}),
        {"servers": 'meter got another request than walr.trust = "trusted" makes'},
    ),
    "an entry that says another hash": (
        Lie(entry={"previous_hash": "a" * 64}),
        {CHAIN: "does not follow from the entry"},
    ),
    "a receipt of another entry": (
        Lie(receipt=lambda r: replace(r, entry_hash="a" * 64)),
        {CHAIN: "the receipt is of another ledger entry"},
    ),
    "a receipt without what comes before": (
        Lie(receipt=lambda r: replace(r, landmarks=())),
        {CHAIN: "does not follow from the entry before it that the receipt shows"},
    ),
    "a kind of entry that charges nothing now": (
        Lie(entry={"kind": "recovered"}),
        {CHARGED: "kind of the ledger entry"},
    ),
    **{
        f"an entry of another {name}": (Lie(entry={name: other}), {CHARGED: f"{name} of the ledger entry is not that"})
        for name, other in {
            "requester": "other",
            "dataset": "other",
            "snapshot": "other",
            "request_id": "other",
            "content_sha256": "0" * 64,
            "event": OTHER,
            "epsilon": 0.25,
            "delta": 1e-9,
            "unit": "other",
            "answer_sha256": "0" * 64,
        }.items()
    },
}
FOLLOWS = {
    # Two checks read the entry, so both name a broken one.
    CHAIN: {CHAIN, CHARGED},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_signed_lie_fails_the_check_that_it_is_about(liars: Liars, lie: str) -> None:
    told, expected = LIES[lie]
    failed = liars.failed(told.told(liars))
    for name, why in expected.items():
        assert why in failed.get(name, ""), failed
    assert failed.keys() <= {name for check in expected for name in FOLLOWS.get(check, {check})} | _inputs(failed)


def _inputs(failed: dict[str, str]) -> set[str]:
    """Name the inputs that cannot be named because their source is broken."""
    return {name for name in failed if name.startswith("input: ")}


def settings(**changes: Any) -> Change:
    return lambda parts: parts["fit"]["settings"].update(changes)


def put(table: str, **changes: Any) -> Change:
    return lambda parts: parts[table].update(changes)


SEALED: dict[str, tuple[Change, dict[str, str]]] = {
    "no message": (
        lambda parts: parts["transcript"].pop(),
        {"transcript": "the messages are not those of this release"},
    ),
    "no intercept": (
        settings(intercept=False),
        {"model and fit": "the model's intercept differs from the settings"},
    ),
    "another norm bound": (put("model", norm_bound=9.0), {"model and fit": "the model has another norm bound"}),
    "no seed": (put("fit", batches_seed=None), {"model and fit": "the seed of the fit is missing"}),
    "other fraction bits": (
        settings(frac_bits=12),
        {"model and fit": "the settings have other fraction bits than the release"},
    ),
    "another penalty": (put("fit", l2=1e6), {"model and fit": "l2 does not follow from the settings and the noise"}),
    "a bound of several parties": (
        put("sum", own_norm_bound=5),
        {"servers": "own_norm_bound goes only with columns of several parties, and always"},
    ),
    "noise of two servers": (put("sum", epsilon_of_both=0.5), {"epsilon": "epsilon_of_both needs two servers"}),
}


@pytest.mark.parametrize("lie", SEALED)
def test_a_sealed_lie_fails_the_check_that_it_is_about(liars: Liars, lie: str) -> None:
    """Here the server was honest."""
    change, expected = SEALED[lie]
    parts = json.loads(json.dumps(liars.true))
    change(parts)
    assert liars.failed(liars.seal(parts)) == expected


def test_another_authority_than_the_given_one(liars: Liars, tmp_path: Path) -> None:
    create_authority(tmp_path / "other", "another authority")
    other = read_certificate(tmp_path / "other" / "authority.pem")
    found = checks.verify(liars.seal(liars.true), other).results
    expected = [("authority", "the file's authority is not the given one")]
    assert [(result.name, result.why) for result in found if result.why] == expected


TESTS = [*Path(__file__).parent.glob("*.py"), Path(__file__).parents[1] / "walr_blocks" / "test_release_file.py"]


@pytest.mark.parametrize("module", [server_checks, checks, inputs])
def test_each_requirement_has_a_test_that_fails_it(module: ModuleType) -> None:
    """A new `require` needs a lie: the longest text of its reason must be one that a test expects."""
    expected = "\n".join(path.read_text() for path in TESTS)
    tree = ast.parse(inspect.getsource(module))
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require"
    ]
    reasons = [max(_texts(call.args[1]), key=len).strip() for call in calls]
    assert len(reasons) >= 2
    assert [reason for reason in reasons if reason not in expected] == []


def _texts(reason: ast.expr) -> list[str]:
    return [part.value for part in ast.walk(reason) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def test_a_mechanism_that_is_too_weak(liars: Liars) -> None:
    """If our mechanism computed too little noise, the server and the auditor would agree; the claim is checked too."""
    true = gaussian.NOISE_MULTIPLIERS["analytic"]

    def weak(epsilon: float, delta: float) -> float:
        return 0.9 * true(epsilon, delta)

    with mock.patch.dict(gaussian.NOISE_MULTIPLIERS, analytic=weak):

        def answer(request: AggregateOpen, answer: NoisySum) -> NoisySum:
            mechanism = walr.mechanism_of(request)
            event = mechanism.event(answer.neighbours).canonical()
            return replace(answer, noise_std=float(np.sqrt(mechanism.sigma_squared)), event=event)

        failed = liars.failed(Lie(answer=answer).told(liars))
    assert failed == {NOISE: "the noise is too small for epsilon and delta"}


# --- numbers without a bound ------------------------------------------------------------------------------

SAMPLED = "sampled-gaussian/0x1.0000000000000p+0/0x1.47ae147ae147bp-7*{}*2/" + WHOLE_ROWS["replace-one"]


def written(
    *, charges: Any = (), sums: Any = (), position: Any = None, landmarks: Any = None
) -> Callable[[Receipt], Any]:
    """Return a function that writes these contents into a receipt."""

    def changed(receipt: Receipt) -> Any:
        content = json.loads(receipt.statement())
        content["charges"] = sorted([*content["charges"], *charges])  # sorted, so that only the odd value is wrong
        content["sums"] = sorted([*content["sums"], *sums])
        content["position"] = content["position"] if position is None else position
        content["landmarks"] = content["landmarks"] if landmarks is None else landmarks
        return _Written(json.dumps(content, separators=(",", ":")).encode())

    return changed


@dataclass(frozen=True)
class _Written:
    content: bytes

    def statement(self) -> bytes:
        return self.content


SAMPLES = "a receipt counts releases of samples, which no measurement server makes"
TOO_MANY_SAMPLES = "a run has 1 to 100,000 sampled releases"
IMPOSSIBLE: dict[str, Callable[[Receipt], Any]] = {
    "a run of a billion samples": written(charges=[[SAMPLED.format(10**9), 1]], position=9),
    "a run of more samples than any job": written(charges=[[SAMPLED.format(MOST_SAMPLED_RELEASES + 1), 1]], position=9),
    "one of the runs of samples": written(charges=[[SAMPLED.format(50), 1]], position=9),
    "many runs of samples": written(
        charges=[[SAMPLED.format(n), 1] for n in sorted(range(100, 300), key=str)], position=900
    ),
    "no release of an event": written(charges=[[OTHER, 0]]),
    "less than no release": written(charges=[[OTHER, -1]]),
    "more releases than entries": written(charges=[[OTHER, 9]]),
    "a count beyond numbers": written(charges=[[OTHER, 10**4000]], position=10**4000 + 9),
    "a position beyond a database": written(position=2**63),
    "no position": written(position=0, landmarks=[]),
    "events in no order": lambda receipt: _Written(
        counting((OTHER, 1), (OTHER.replace("/0x1.4", "/0x1.8"), 1), position=9)(receipt)
        .statement()
        .replace(b"/0x1.4", b"/0x1.9")
    ),
    "an event twice": written(charges=[[OTHER, 1], [OTHER, 1]], position=9),
    "more events than a receipt counts": written(
        charges=[[ReleaseEvent("gaussian", 1e9 + n, "n").canonical(), 1] for n in range(300)],
        position=900,
    ),
    "a sum of everything": written(sums=[["gaussian", "n", 10**4000]], position=9),
    "a sum of more than a ledger spends": written(sums=[["gaussian", "n", 2**160]], position=9),
    "a sum of nothing": written(sums=[["gaussian", "n", 0]], position=9),
    "one sum twice": written(sums=[["gaussian", "n", 1], ["gaussian", "n", 1]], position=9),
    "a landmark after the entry": written(landmarks=[[9, "0" * 64]]),
    "landmarks in no order": written(position=9, landmarks=[[1, "0" * 64], [2, "0" * 64]]),
    "a landmark before the first": written(landmarks=[[0, "0" * 64]]),
}


@pytest.mark.parametrize("which", IMPOSSIBLE)
def test_counts_that_no_ledger_has(liars: Liars, which: str) -> None:
    """Each is refused before anything is composed, so no number costs an auditor time or memory."""
    with mock.patch.object(server_checks, "spent_epsilon", side_effect=AssertionError("it is composed")):
        failed = liars.failed(Lie(newest=IMPOSSIBLE[which]).told(liars))
    expected = {COUNTED: SAMPLES} if "runs of samples" in which else {NEWEST: "is not a receipt, though signed as one"}
    expected = {COUNTED: TOO_MANY_SAMPLES} if "more samples" in which or "billion" in which else expected
    assert all(why in failed.get(name, "") for name, why in expected.items()), failed


ODD: list[Any] = [None, True, -1, 0, 1, 2**31, 2**63, 10**30, -1.5, 0.0, 5e-324, 1e308, "", "x" * 300, [], {}]


@pytest.mark.parametrize("table", ["asked", "answered"])
def test_whatever_a_server_signs_ends_in_lines(liars: Liars, table: str) -> None:
    """Every field takes every odd value: a check fails in a line, and nothing else happens."""
    for name, value in ((name, value) for name in liars.true["servers"][0]["release"][table] for value in ODD):
        parts = json.loads(json.dumps(liars.true))
        parts["servers"][0]["release"][table][name] = value
        encoded = release_document.encode(Parts.model_validate(parts), liars.key("shop", MODEL_KEY))
        failed = liars.failed(encoded)
        assert failed or parts == liars.true, (name, value)
        assert not [why for why in failed.values() if "\n" in why]


def test_numbers_that_are_signed_in_range_end_in_lines(liars: Liars) -> None:
    """Numbers are as above, with the server's signature over each of them."""
    for name in statement.ANSWERED:
        for value in (-1, 0, 1, 2**31, 2**62, 5e-324, 1e300, "", "x" * 300):
            kind = type(getattr(statement.read(liars.true["servers"][0]["release"])[1], name))
            if isinstance(value, str) != (kind is str):
                continue
            try:
                told = answered(**{name: kind(value)}).told(liars)
            except ValidationError:  # the format itself has a limit
                continue
            failed = liars.failed(told)
            assert not [why for why in failed.values() if "\n" in why]
