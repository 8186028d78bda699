"""Training on encrypted weights: its results, its messages, each party's decryptions, and refusals."""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import log_loss

from blindfit.algorithms.errors import DataError, LocalProtocolError, MalformedMessage, RangeError, ScoresOutOfRange
from blindfit.algorithms.fixed_point import Fixed
from blindfit.algorithms.paillier.keys import PrivateKey
from blindfit.algorithms.paillier.packing import PackedVector, decrypt_packed
from blindfit.algorithms.paillier.threshold import PartialDecryption, deal, partial_decrypt
from blindfit.algorithms.paillier.vectors import decrypt
from blindfit.algorithms.protocols import falcon
from blindfit.algorithms.protocols.falcon import (
    EncryptedScales,
    EncryptedState,
    Model,
    Progress,
    Trained,
    conversion,
    threshold_seats,
)
from blindfit.algorithms.protocols.falcon.conversion import VALUE_BITS, Converter, Masking, field_mask_bits
from blindfit.algorithms.protocols.falcon.encrypted_descent import (
    FACTOR_BITS,
    MOST_VALUES,
    RESIDUAL_WAVES,
    EncryptedBlock,
    OwnRows,
)
from blindfit.algorithms.protocols.falcon.messages import DealtKeyShare
from blindfit.algorithms.protocols.falcon.parameters import FEATURE_BOUND, MOST_ROWS, WEIGHT_BITS
from blindfit.algorithms.sharing import field
from blindfit.algorithms.sharing.residual_bound import residual_bound
from blindfit.algorithms.sharing.waves import CHOICES
from blindfit.algorithms.statistics.linear.weight_bits import choose_kept_bits
from blindfit.algorithms.statistics.vertical.model import FEATURE_BITS
from blindfit.algorithms.statistics.vertical.optimiser import OptimiserSettings
from blindfit.parties.falcon.kept import from_state, to_state
from blindfit.parties.vertical.prepared import FEATURE_BOUND as CLIPPED_TO
from blindfit.parties.wire import codec
from tests.falcon.converting import integers_of
from tests.falcon.local import KEY_NODE, UNTESTED, Case, network_of, train
from tests.falcon.oracle import plain_epochs, uniform_p_value, weights_of

Floats = NDArray[np.float64]
NO_CHANCE = 1e-7
PULLED = OptimiserSettings(learning_rate=0.5, l2=0.4, schedule="constant")  # weights shrink by a fifth each step
FREE = OptimiserSettings(learning_rate=0.5, l2=0.0)


def encrypted_case(key: PrivateKey, n_parties: int = 2, *, rows: int = 340, **options: Any) -> Case:
    bits = key.public_key.bits
    return Case(n_parties=n_parties, rows=rows, options={"macs": False, "key_bits": bits, "epochs": 3, **options})


def bound(case: Case, epochs: int) -> float:
    """Bound the norm of the weights' error. A step with a rate below 2 / curvature makes no error larger, and adds

        rate x |x_i| x the error of a residual: the fit's and the waves', one unit of residual bits, and a quarter of
            the score's: one unit for each party, and of each s x_j, half a unit of the features', of u_j = w_j / s
        rate x 2^-16 for each column: half a unit of update bits for each row, of residuals up to 1 (and those of a
            step's rounded rows, rate / rows 2^update bits < 2 2^16, times s <= 1)

    and weights, on their way to shares, one unit for each party, and of their factor half a unit.
    """
    p, x = case.parameters, case.whole
    rate, scales = p.optimiser.learning_rate, EncryptedScales(p)
    assert rate * (np.linalg.eigvalsh(x.T @ x / len(x)).max() / 4 + p.optimiser.l2) < 2
    weights = max(np.abs(case.plain(epoch)).sum() for epoch in range(1, epochs + 1))
    rounded = weights * 2.0 ** -(FEATURE_BITS + 1) if p.optimiser.l2 else 0.0
    score = rounded * 1.1 + case.n_parties * 2.0**-threshold_seats.SCORE_BITS
    residual = p.waves.sigmoid_error + RESIDUAL_WAVES.error(p.waves, p.waves.sigmoid)
    residual += 2.0**-scales.residual_bits + score / 4
    columns = math.sqrt(x.shape[1])
    each = rate * (np.linalg.norm(x, axis=1).max() * residual + columns * 2.0**-16)
    opened = columns * case.n_parties * 2.0**-WEIGHT_BITS + weights * 2.0**-FACTOR_BITS
    return float(epochs * len(p.batches) * each + opened)


@pytest.mark.parametrize(
    ("n_parties", "options"),
    [
        (2, {}),
        (3, {"optimiser": FREE}),
        (4, {"epochs": 1}),
        (2, {"optimiser": FREE, "waves_name": "wide", "epochs": 1}),
        (2, {"optimiser": PULLED}),
        (2, {"sampling": "replacement", "epochs": 2}),
        (2, {"intercept": False, "epochs": 1}),
        (2, {"waves_name": "narrow", "epochs": 1}),
    ],
    ids=str,
)
def test_weights_are_those_of_plain_steps_within_the_bound(
    insecure_test_key: PrivateKey, n_parties: int, options: dict[str, Any]
) -> None:
    case = encrypted_case(insecure_test_key, n_parties, rows=220, **{"epochs": 2, **UNTESTED, **options})
    found, plain = weights_of(case, train(case, key=insecure_test_key)), case.plain(case.parameters.epochs)
    assert bound(case, case.parameters.epochs) < 3e-3
    assert np.linalg.norm(found - plain) <= bound(case, case.parameters.epochs)
    assert np.abs(found).max() > 0.1


def test_under_a_real_key(real_key: PrivateKey) -> None:
    case = encrypted_case(real_key, epochs=1, rows=220, **UNTESTED)
    found = weights_of(case, train(case, key=real_key))
    assert np.linalg.norm(found - case.plain(1)) <= bound(case, 1)
    falcon.check_parameters(case.parameters)


def test_training_stops_where_the_loss_no_longer_falls(insecure_test_key: PrivateKey) -> None:
    case = encrypted_case(insecure_test_key, rows=200, patience=2, tolerance=0.02, epochs=20, **UNTESTED)
    trained = train(case, key=insecure_test_key)
    assert {one.epochs for one in trained.values()} == {plain_epochs(case)}
    assert 2 < trained["hospital"].epochs < 20


def test_rounded_weights_and_what_they_are_worth(insecure_test_key: PrivateKey) -> None:
    """The figures are those of the opened weights, and only the active party gets them."""
    case = encrypted_case(insecure_test_key, kept_bits=5)
    trained = train(case, key=insecure_test_key)
    found, p = weights_of(case, trained), case.parameters
    assert np.array_equal(found * 32, np.rint(found * 32))
    assert np.abs(found - case.plain(3)).max() < 1 / 32 + bound(case, 3)
    told = trained["hospital"].tested
    assert isinstance(told, falcon.TestFigures)
    assert trained["laboratory"].tested is None
    assert trained[KEY_NODE].tested is None
    assert trained[KEY_NODE].weights.size == 0
    z, y = (case.whole @ found)[p.test], case.labels[p.test]
    assert (told.true_positives, told.positives) == (((z >= 0) & (y == 1)).sum(), (z >= 0).sum())
    assert told.loss / len(y) == pytest.approx(log_loss(y, 1 / (1 + np.exp(-z))), abs=3e-3 + 2**-8)


def test_weights_that_stay_shared_are_the_rounded_ones(insecure_test_key: PrivateKey) -> None:
    case = encrypted_case(insecure_test_key, kept_bits=5, weights_stay_shared=True)
    trained = train(case, key=insecure_test_key)
    kept = [trained[name].kept for name in case.parameters.data_parties]
    shares = [one.flat for one in kept if one is not None]
    assert len(shares) == 2
    together = field.integers(field.total(shares)) / 32
    assert np.abs(together - case.plain(3)).max() < 1 / 32 + bound(case, 3)
    assert all(one.weights.size == 0 for one in trained.values())
    assert isinstance(trained["hospital"].tested, falcon.TestFigures)


def test_weights_that_grow_are_refused_and_nothing_is_opened(insecure_test_key: PrivateKey) -> None:
    opened: list[str] = []
    optimiser = OptimiserSettings(learning_rate=400.0, schedule="constant", l2=0.0)
    case = encrypted_case(insecure_test_key, rows=160, optimiser=optimiser)

    async def note() -> None:
        opened.append("weights")

    told = Progress(before_opening=note)
    with pytest.raises(ScoresOutOfRange, match=r"out of range in epoch 1: "):
        train(case, progress=dict.fromkeys(case.parameters.data_parties, told), key=insecure_test_key)
    assert not opened


# --- what goes on -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(insecure_test_key: PrivateKey) -> tuple[Case, Floats, dict[str, list[dict[str, Any]]]]:
    """A training's weights, and what its parties kept after each epoch, as they write it."""
    case = encrypted_case(insecure_test_key, rows=180, patience=2, **UNTESTED)
    kept: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def keep(name: str) -> Progress:
        return Progress(keep=lambda model, _go_on: kept[name].append(json.loads(json.dumps(to_state(model)))))

    progress = {name: keep(name) for name in case.parameters.data_parties}
    return case, weights_of(case, train(case, progress=progress, key=insecure_test_key)), kept


def test_a_training_goes_on_from_what_was_kept(
    insecure_test_key: PrivateKey, stopped: tuple[Case, Floats, dict[str, list[dict[str, Any]]]]
) -> None:
    """The session has another name, and the same seeds and key: the masks differ, the weights are the same.

    Of two runs from one state, no message of a party occurs twice.
    """
    case, whole, kept = stopped
    public_key = insecure_test_key.public_key
    seen = []
    for run in ("run-2", "run-3"):
        models = {name: from_state(states[1], 2, "falcon.resume", public_key) for name, states in kept.items()}
        sent = Sent()
        resumed = weights_of(case, train(case, run=run, models=models, key=insecure_test_key, wire=sent.wire))
        assert np.linalg.norm(resumed - whole) <= 2 * bound(case, 3)
        seen.append(set(sent.ciphertexts) | sent.opened)
    assert not seen[0] & seen[1]


def test_what_was_kept_is_read_as_it_was(
    insecure_test_key: PrivateKey, stopped: tuple[Case, Floats, dict[str, list[dict[str, Any]]]]
) -> None:
    state = stopped[2]["hospital"][1]
    public_key = insecure_test_key.public_key
    model = from_state(state, 2, "falcon.resume", public_key)
    assert json.loads(json.dumps(to_state(model))) == state
    for damaged in ({**state, "encrypted": {}}, {**state, "encrypted": {**state["encrypted"], "own": ["x"]}}):
        with pytest.raises(DataError):
            from_state(damaged, 2, "falcon.resume", public_key)
    with pytest.raises(DataError):
        from_state(state, 2, "falcon.resume")  # a checkpoint of a training in shares


# --- what is sent -----------------------------------------------------------------------------------------------------


class Sent:
    """Every ciphertext and partial decryption that left a party, and every element.

    Attributes:
        ciphertexts: one for each message.
        opened: sums of two parties' openings, without short vectors, which are the bits.
    """

    def __init__(self) -> None:
        self.ciphertexts: list[int] = []
        self.partials: list[int] = []
        self.messages: list[bytes] = []
        self.elements: dict[str, list[Any]] = defaultdict(list)
        self.shares: dict[str, list[Any]] = defaultdict(list)

    def wire(self, sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        message = codec.decode(data, getattr(falcon.messages, step), culprit=sender)
        if step in ("MaskedSums", "EncryptedMasks"):
            self.messages.append(data)
            self.ciphertexts += integers_of(getattr(message, type(message).__slots__[0]))
        elif step == "PartialDecryptions":
            self.partials += integers_of(message.partials)
        elif hasattr(message, "values"):
            self.elements[step].append(message.values)
            if step == "OpenedShares":
                self.shares[sender].append(message.values)
        return data

    @property
    def sums(self) -> list[Any]:
        return [field.total([a, b]) for a, b in zip(*self.shares.values(), strict=True)]

    @property
    def opened(self) -> set[int]:
        return {int(value) for values in self.sums if len(values) > 2 for value in values}


def test_only_what_the_table_lists_is_sent(insecure_test_key: PrivateKey) -> None:
    case = encrypted_case(insecure_test_key, 3, rows=200, epochs=1, kept_bits=5)
    network = network_of(case)
    train(case, network=network, key=insecure_test_key)
    assert not network.unread
    sent = {(step, network.roles[sender], network.roles[receiver]) for sender, receiver, step in network.sent}
    # messages of MACs, or of a grid
    others = {"CheckCommitment", "CheckSeed", "ResidueCommitment", "Residue", "ChosenPoint"}
    expected = {
        (arrow.message.__name__, sender, receiver)
        for arrow in falcon.TABLE.arrows
        for sender in arrow.senders
        for receiver in arrow.receivers
        if (sender, receiver) != ("active", "active")
        and arrow.message.__name__ not in others
        # only labels are sent, and rows stay where they are
        and (arrow.message.__name__, sender) != ("MaskedInput", "passive")
    }
    assert sent == expected


def test_every_ciphertext_that_leaves_is_fresh(insecure_test_key: PrivateKey) -> None:
    """Two trainings on equal data share none either; here each message goes to one other party."""
    n = insecure_test_key.public_key.n
    runs = []
    for run in ("run-1", "run-1"):
        sent = Sent()
        case = encrypted_case(insecure_test_key, rows=200, epochs=2, kept_bits=5)
        train(case, wire=sent.wire, run=run, key=insecure_test_key)
        assert len(sent.ciphertexts) > 400
        assert all(ciphertext % n != 1 for ciphertext in sent.ciphertexts)  # 1 + m n, which hides nothing
        assert all(partial % n != 1 for partial in sent.partials)
        assert len(set(sent.ciphertexts)) == len(sent.ciphertexts)
        assert len(set(sent.messages)) == len(sent.messages)
        assert not set(sent.ciphertexts) & set(sent.partials)
        runs.append(set(sent.ciphertexts) | set(sent.partials))
    assert not runs[0] & runs[1]


class Watched:
    """Numbers that all parties of a training mask, decrypt and open for ciphertexts, each by its converter.

    Attributes:
        masked: summands and masks of each conversion to shares, by party.
        decrypted: sums that each party helped to decrypt, in the same order.
        hiding: sums opened for ciphertexts, and the masks that a party had in them.
    """

    def __init__(self, key: PrivateKey, patch: pytest.MonkeyPatch) -> None:
        self._key = key
        self.masked: dict[Any, list[tuple[list[int], list[int], Masking]]] = defaultdict(list)
        self.decrypted: dict[int, list[list[int]]] = defaultdict(list)
        self.hiding: list[tuple[list[int], list[int]]] = []
        self._patch(patch)

    def _patch(self, patch: pytest.MonkeyPatch) -> None:
        masked, helped, unmasked = Converter._mask, partial_decrypt, conversion.without_masks

        def noted(seat: Converter, mine: Any, masks: list[int], masking: Masking) -> Any:
            summand = [0] * len(masks) if mine is None else decrypt(mine, self._key).values.tolist()
            self.masked[seat._share.index].append((summand, masks, masking))
            return masked(seat, mine, masks, masking)

        def helping(vector: PackedVector[Any], share: Any) -> PartialDecryption:
            self.decrypted[share.index].append(decrypt_packed(vector, self._key).values.tolist())
            return helped(vector, share)

        def opening(opened: field.Elements, offered: Any, frac_bits: int) -> Any:
            self.hiding.append((opened.tolist(), offered.own))
            return unmasked(opened, offered, frac_bits)

        patch.setattr(Converter, "_mask", noted)
        patch.setattr(conversion, "partial_decrypt", helping)
        patch.setattr(threshold_seats, "without_masks", opening)


@pytest.fixture
def watched(insecure_test_key: PrivateKey, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(insecure_test_key, monkeypatch)


@pytest.mark.parametrize("n_parties", [2, 3])
def test_nothing_is_decrypted_but_sums_under_every_partys_masks(
    insecure_test_key: PrivateKey, watched: Watched, n_parties: int
) -> None:
    """Masks are new each time, as large as the bound requires; the numbers under them are below that bound."""
    case = encrypted_case(insecure_test_key, n_parties, rows=180, epochs=2, kept_bits=5)
    train(case, key=insecure_test_key)
    conversions = len(watched.masked[0])
    # numbers of each epoch: its batches' scores, weights for their range; then weights, and scores of the test rows
    assert conversions == 2 * (2 + 1) + 2
    opened = 0
    for number in range(conversions):
        parts = [watched.masked[place][number] for place in range(n_parties)]
        for place in range(n_parties):
            vectors = [vector for summand, masks, _ in parts for vector in (summand, masks)]
            sums = [sum(both) for both in zip(*vectors, strict=True)]
            assert watched.decrypted[place][number] == sums
        masking = parts[0][2]
        opened += len(parts[0][1])
        values = [sum(summands) for summands in zip(*[summand for summand, _, _ in parts], strict=True)]
        assert max(map(abs, values)) < masking.bound
        assert masking.mask_bits - masking.value_bits >= 40 + math.log2(masking.opened)
    assert opened <= parts[0][2].opened
    assert {len(watched.decrypted[place]) for place in range(n_parties)} == {conversions}
    for place in range(n_parties):
        masks = np.array([mask / 2**one.mask_bits for _, drawn, one in watched.masked[place] for mask in drawn])
        assert stats.kstest(masks, "uniform").pvalue > NO_CHANCE
        assert len(set(masks)) == len(masks)
        hidden = np.array(
            [
                (e - a) / 2**one.mask_bits
                for sums, (_, drawn, one) in zip(watched.decrypted[place], watched.masked[place], strict=True)
                for e, a in zip(sums, drawn, strict=True)
            ]
        )
        if n_parties == 2:  # without its own masks: uniform over the other's
            assert stats.kstest(hidden, "uniform").pvalue > NO_CHANCE


def test_every_opened_value_is_uniform_but_for_the_bits(insecure_test_key: PrivateKey, watched: Watched) -> None:
    """Values opened for ciphertexts are sums of two uniform masks: uniform without one party's; both
    parties have each.
    """
    sent = Sent()
    case = encrypted_case(insecure_test_key, kept_bits=5, patience=3)
    train(case, wire=sent.wire, key=insecure_test_key)
    others = {tuple(opened) for opened, _ in watched.hiding}
    assert len(others) == 3 * 2 + 1
    bits = [values for values in sent.sums if len(values) <= 2 and values[0] == 0]
    assert [len(values) for values in bits] == [2, 2, 2]
    masked = [v for v in sent.sums if tuple(v.tolist()) not in others and not (len(v) <= 2 and v[0] == 0)]
    assert len(masked) == len(sent.sums) - 7 - 3
    assert uniform_p_value(np.concatenate(masked)) > 1e-6
    pairs = [pair for opened, own in watched.hiding for pair in zip(opened, own, strict=True)]
    assert len(pairs) == 2 * EncryptedScales(case.parameters).encrypted_values
    unknown = [(value - mask) / 2.0 ** field_mask_bits(2) for value, mask in pairs]
    assert stats.kstest(unknown, "uniform").pvalue > NO_CHANCE
    assert len({mask for _, mask in pairs}) == len(pairs)
    for name, pieces in sent.elements.items():
        assert uniform_p_value(np.concatenate(pieces)) > 1e-6, name


def test_the_same_training_under_another_name_opens_nothing_twice(insecure_test_key: PrivateKey) -> None:
    opened = []
    for run in ("run-1", "run-2"):
        sent = Sent()
        case = encrypted_case(insecure_test_key, rows=140, epochs=1)
        train(case, wire=sent.wire, run=run, key=insecure_test_key)
        opened.append(sent.opened)
    assert not opened[0] & opened[1]
    assert len(opened[0]) > 1000


# --- what is refused --------------------------------------------------------------------------------------------------


def received(case: Case, key: PrivateKey, *, min_bits: int, index: int | None = None, parties: int = 2) -> Any:
    """Return what the second party of a case receives of the dealt key.

    Args:
        index: place of the party whose share it is sent.
    """
    names, network = case.parameters.data_parties, network_of(case)

    async def dealing() -> Any:
        shares = deal(key, parties)
        share = shares[1 if index is None else index]
        await network.channel(KEY_NODE).send(names[1], DealtKeyShare(share.public_key, share.to_bytes()))
        return await falcon.receive_key_share(names[1], names, KEY_NODE, min_bits, network.channel(names[1]))

    return asyncio.run(dealing())


def test_the_share_of_another_party_is_refused(insecure_test_key: PrivateKey) -> None:
    case = Case()
    share = received(case, insecure_test_key, min_bits=512)
    assert (share.index, share.parties) == (1, 2)
    for index, parties in ((0, 2), (1, 3), (2, 3)):
        with pytest.raises(MalformedMessage, match=f"{KEY_NODE} sent .*share: is another party's"):
            received(case, insecure_test_key, min_bits=512, index=index, parties=parties)


def test_a_small_key_is_refused(insecure_test_key: PrivateKey) -> None:
    with pytest.raises(MalformedMessage) as refused:
        received(Case(), insecure_test_key, min_bits=2048)
    assert refused.value.culprit == KEY_NODE


def test_what_is_no_share_of_the_key_is_refused(insecure_test_key: PrivateKey) -> None:
    case = encrypted_case(insecure_test_key)

    def shorten(_sender: str, _receiver: str, step: str, data: bytes) -> bytes:
        if step != "DealtKeyShare":
            return data
        dealt = codec.decode(data, DealtKeyShare, culprit="")
        return codec.encode(DealtKeyShare(dealt.public_key, dealt.share[:-1]))

    with pytest.raises(MalformedMessage, match=f"{KEY_NODE} sent .*share: .*not a share of this Paillier key"):
        train(case, wire=shorten, key=insecure_test_key)


def test_without_a_share_of_the_key_nothing_begins(insecure_test_key: PrivateKey) -> None:
    with pytest.raises(LocalProtocolError, match="encrypted weights take a share of their key"):
        train(encrypted_case(insecure_test_key))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"optimiser": OptimiserSettings(0.5, optimiser="momentum", momentum=0.5)}, "do not support momentum"),
        ({"optimiser": OptimiserSettings(0.5, l1=0.1)}, "do not support l1"),
        ({"model": "linear"}, "do not support linear models"),
        ({"weighted": True}, "do not support class weights"),
        ({"macs": True}, "do not support MACs"),
        ({"model": "linear", "macs": True}, "do not support linear models, MACs"),
        ({"optimiser": OptimiserSettings(0.5, l2=1.9, schedule="constant")}, "l2 shrinks weights too far"),
        ({"epochs": MOST_VALUES // 240 + 1}, "residuals would become ciphertexts"),
        ({"key_bits": 100}, "a score does not fit under a 100-bit key"),
    ],
    ids=str,
)
def test_what_encrypted_weights_do_not_do_is_refused(
    insecure_test_key: PrivateKey, options: dict[str, Any], said: str
) -> None:
    case = encrypted_case(insecure_test_key)
    falcon.check_parameters(case.parameters)
    with pytest.raises(RangeError, match=said):
        falcon.check_parameters(replace(case.parameters, **options))


# --- how large numbers can become -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHOICES)
def test_no_residual_is_too_large_to_become_a_ciphertext(insecure_test_key: PrivateKey, name: str) -> None:
    """This holds for any score; with twice the precision it would not."""
    case = encrypted_case(insecure_test_key, waves_name=name)
    scales = EncryptedScales(case.parameters)
    largest = residual_bound(CHOICES[name], RESIDUAL_WAVES, 1.0) >> scales.residual_shift
    assert largest + 2 < 2**VALUE_BITS  # a unit of the division, and one of the shift
    assert 2 * largest + 4 > 2**VALUE_BITS
    assert scales.residual_bits == 16


def test_no_opened_weight_is_too_large_to_become_a_ciphertext() -> None:
    """Function with_weights makes integers from weights in steps of their rounding, up to WEIGHT_BOUND."""
    assert falcon.WEIGHT_BOUND * 2.0 ** choose_kept_bits(MOST_ROWS) < 2**VALUE_BITS


def test_features_are_clipped_to_what_masks_are_for() -> None:
    """The grid keeps the limit as well, and the intercept's ones are smaller."""
    assert 1.0 <= CLIPPED_TO <= FEATURE_BOUND
    assert Fixed.from_reals(np.array([CLIPPED_TO, -CLIPPED_TO]), FEATURE_BITS).bound <= FEATURE_BOUND * 2**FEATURE_BITS


def worst(case: Case, key: PrivateKey, signs: list[int]) -> tuple[float, float, int]:
    """Return the largest weight and score of a party, if its features and all residuals are as large as possible.

    Args:
        signs: sign of each step's residuals.
    """
    p, scales = case.parameters, EncryptedScales(case.parameters)
    x = np.full((p.batch_rows[0], 1), round(FEATURE_BOUND * 2**FEATURE_BITS), dtype=np.int64)
    block = EncryptedBlock(scales, key.public_key, np.array([1]))
    state = block.beginning()
    kernel = key.public_key.kernel
    v = 2**VALUE_BITS - 1
    for number, sign in enumerate(signs):
        step = p.step(number // len(p.batch_rows), number % len(p.batch_rows))
        ones = conversion.Ciphertext(key.public_key, kernel.ones_plus([sign * v] * len(x)))
        residuals = conversion.EncryptedVector(ones, scales.residual_bits, 2**VALUE_BITS)
        state = block.move(step, OwnRows(x), residuals, state)
    weights = decrypt(block.weights(state, 0, 0), key)
    scores = decrypt(block.scores(OwnRows(x[:1]), state), key)
    largest = abs(int(weights.values[0])) / 2**weights.frac_bits
    return largest, abs(int(scores.values[0])) / 2**scores.frac_bits, scores.frac_bits


@pytest.mark.parametrize(
    "optimiser",
    [FREE, PULLED, OptimiserSettings(learning_rate=300.0, l2=0.0), OptimiserSettings(learning_rate=1e-3, l2=5.0)],
    ids=str,
)
def test_no_weight_and_no_score_is_larger_than_its_masks_are_for(
    insecure_test_key: PrivateKey, optimiser: OptimiserSettings
) -> None:
    """This holds for any residuals, and features at their limits; without l2 the bound is nearly met."""
    case = encrypted_case(insecure_test_key, rows=108, optimiser=optimiser)
    case.parameters = p = replace(case.parameters, batch_rows=(4, 4))
    scales = EncryptedScales(p)
    steps = p.epochs * len(p.batch_rows)
    weight, score, bits = worst(case, insecure_test_key, [1] * steps)
    rounding = 1 + 2.0**-10
    for of, largest, after in ((weight, scales.largest_weight, WEIGHT_BITS), (score, scales.largest_score, bits)):
        assert of <= largest * rounding
        assert of * 2.0**after < scales.masking(largest, after).bound
    if not optimiser.l2:
        assert weight > 0.99 * scales.largest_weight


def test_the_factor_of_weights_is_what_l2_leaves_of_them(insecure_test_key: PrivateKey) -> None:
    case = encrypted_case(insecure_test_key, optimiser=PULLED, epochs=2, rows=200, **UNTESTED)
    kept: list[Model] = []
    told = {"hospital": Progress(keep=lambda model, _go_on: kept.append(replace(model)))}
    trained: dict[str, Trained] = train(case, progress=told, key=insecure_test_key)
    state = kept[-1].state
    assert isinstance(state, EncryptedState)
    assert state.factor == pytest.approx(EncryptedScales(case.parameters).last_factor)
    assert state.factor == pytest.approx(0.8**4)
    u = decrypt(state.own, insecure_test_key)
    block = np.array(u.values, dtype=np.float64) / 2.0**u.frac_bits * np.array([state.factor] * 3 + [1.0])
    assert block == pytest.approx(trained["hospital"].weights, abs=1e-5)
