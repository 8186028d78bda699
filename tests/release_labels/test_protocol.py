"""The steps and the messages; both roles together equal the specification."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from blindfit.algorithms.errors import MalformedMessage, RangeError, UnexpectedStep
from blindfit.algorithms.privacy.gaussian import analytic_noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms import (
    LabelGrid,
    LabelMechanism,
    MechanismSettings,
    Prior,
    from_parameters,
    make_mechanism,
)
from blindfit.algorithms.protocols.label_dp import release as protocol
from blindfit.algorithms.protocols.label_dp.messages import FittedRelease, LabelIds, LabelsOpened, NoisyLabels
from blindfit.algorithms.protocols.label_dp.release import MAX_IDS_A_MESSAGE, WITHHELD, RollCall, Support
from blindfit.algorithms.protocols.label_dp.request import release_digest, settings_parameters
from blindfit.algorithms.randomness import keyed_uniform
from blindfit.parties.measurement.labels_codec import MESSAGES, request_to_pb, settings_to_pb
from blindfit.protos import measurement_pb2 as pb
from tests.measurement.house import House
from tests.release_labels.house import GRID, LABELS, LAPLACE, NAMES, RANGE, WIDE, Counter, make_labels, places

RP = MechanismSettings("rp-with-prior", GRID, 1.0)
SETTINGS = {
    "laplace": LAPLACE,
    "gaussian": MechanismSettings("gaussian", GRID, 0.5, delta=1e-5),
    "staircase": MechanismSettings("staircase", GRID, 1.0, optimal_for="absolute"),
    "rp-with-prior": replace(RP, epsilon_prior=0.2, prior_mechanism="staircase", cell_width=1.0, half_width="auto"),
    "rp-with-prior-given": replace(RP, half_width=2.0, prior=Prior(np.array([0.0, 4.0, 10.0]), np.array([3.0, 1.0]))),
    "rr-on-bins": MechanismSettings("rr-on-bins", GRID, 1.0, rounding=0.5, prior_mechanism="histogram"),
    "unbiased": MechanismSettings("unbiased", GRID, 2.0, rounding=1.0, output_cells=40, output_reach=12.0),
}
by_settings = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def seeded(seed: bytes = b"seed") -> Callable[[int], int]:
    """Return a repeatable plain generator: keyed_uniform reads a long stream slowly."""
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(seed, "big")))

    def uniform(m: int) -> int:
        octets = ((m - 1).bit_length() + 7) // 8 + 8
        return int.from_bytes(rng.bytes(octets), "big") % m

    return uniform


# --- the specification ------------------------------------------------------------------------------


@by_settings
def test_both_seats_are_the_specification(counter: Counter, settings: MechanismSettings) -> None:
    dataset = counter.house.datasets["prices"]
    counter.house.service.uniform = seeded()
    ids = NAMES[::-2]
    received = counter.ask(ids, settings)
    in_order = {NAMES[i]: LABELS[NAMES[i]] for i in places(dataset, NAMES)}
    release, steps = protocol.run_locally(ids, counter.request(ids, settings), in_order, seeded())
    assert received.steps.tolist() == steps.tolist()
    assert received.release.parameters == release.parameters
    same = ("epsilon", "delta", "epsilon_prior", "prior_mechanism", "share_outside")
    assert [getattr(received.release, name) for name in same] == [getattr(release, name) for name in same]


def test_the_messages_are_those_of_the_table(counter: Counter) -> None:
    counter.ask()
    steps = ["LabelsOpen", "LabelsOpened", "LabelIds", "LabelIdsEnd", "FittedRelease", "NoisyLabels"]
    assert counter.sent == steps == [arrow.message.__name__ for arrow in protocol.TABLE.arrows]
    counter.ask(NAMES[:3])
    assert counter.sent == steps


def test_the_randomness_is_all_that_a_draw_depends_on(counter: Counter) -> None:
    request = counter.request()
    draws = [protocol.run_locally(NAMES, request, LABELS, keyed_uniform(b"k", seed))[1] for seed in ("a", "a", "b")]
    assert draws[0].tolist() == draws[1].tolist() != draws[2].tolist()


# --- messages over the wire ---------------------------------------------------------------------------


@by_settings
def test_settings_come_through_the_wire(settings: MechanismSettings) -> None:
    request = protocol.step_1_open(NAMES, settings, dataset="prices", snapshot="v", session="s")
    envelope = pb.ReleaseLabelsRequest.FromString(request_to_pb(request).SerializeToString())
    back = MESSAGES.from_pb(envelope, protocol.LabelsOpen, culprit="shop")
    assert release_digest(back) == release_digest(request)
    assert settings_parameters(back.settings) == settings_parameters(settings)
    assert replace(back, settings=settings) == replace(request, settings=settings)


def test_every_setting_counts_in_the_digest() -> None:
    def digest(settings: MechanismSettings) -> bytes:
        return release_digest(protocol.step_1_open(NAMES, settings, dataset="d", snapshot="v"))

    changes: dict[str, Any] = {
        "epsilon": 1.5,
        "epsilon_prior": 0.1,
        "prior_mechanism": "histogram",
        "cell_width": 2.0,
        "half_width": 1.0,
        "grid": LabelGrid(*RANGE, cells=99),
        "prior": Prior(np.array([0.0, 5.0, 10.0]), np.array([1.0, 2.0])),
    }
    digests = [digest(RP), *(digest(replace(RP, **{name: value})) for name, value in changes.items())]
    assert len(set(digests)) == len(digests)
    assert digest(replace(RP, half_width=1)) == digest(replace(RP, half_width=1.0))


BAD_SETTINGS: dict[str, Callable[[pb.LabelMechanismSettings], object]] = {
    "name": lambda m: setattr(m, "name", "exponential"),
    "epsilon nan": lambda m: setattr(m, "epsilon", float("nan")),
    "epsilon": lambda m: setattr(m, "epsilon", 31.0),
    "delta": lambda m: setattr(m, "delta", 0.1),
    "lo": lambda m: setattr(m, "lo", 10.0),
    "hi": lambda m: setattr(m, "hi", float("inf")),
    "cells": lambda m: setattr(m, "cells", 2**21),
    "no cells": lambda m: setattr(m, "cells", 0),
    "useless": lambda m: setattr(m, "rounding", 1.0),
    "prior_mechanism": lambda m: setattr(m, "prior_mechanism", "none"),
    "epsilon_prior": lambda m: setattr(m, "epsilon_prior", 2.0),
    "half_width": lambda m: setattr(m, "half_width", float("nan")),
    "prior": lambda m: m.prior.masses.append(1.0),
    "prior nan": lambda m: m.prior.CopyFrom(pb.LabelPrior(edges=[0, 1, float("nan")], masses=[1, 1])),
}


@pytest.mark.parametrize("change", BAD_SETTINGS.values(), ids=BAD_SETTINGS)
def test_settings_that_make_no_mechanism(change: Callable[[pb.LabelMechanismSettings], object]) -> None:
    request = protocol.step_1_open(NAMES, RP, dataset="prices", snapshot="v")
    envelope = request_to_pb(request)
    MESSAGES.from_pb(envelope, protocol.LabelsOpen, culprit="shop")
    change(envelope.open.mechanism)
    with pytest.raises(MalformedMessage) as caught:
        MESSAGES.from_pb(envelope, protocol.LabelsOpen, culprit="shop")
    assert caught.value.culprit == "shop"


def valid_envelopes() -> list[tuple[type, type, bytes]]:
    full = replace(SETTINGS["rp-with-prior-given"], half_width=1.5)
    requests = [
        protocol.step_1_open(NAMES, full, dataset="prices", snapshot="v", receipt=(b"r", b"s")),
        protocol.step_1_open(NAMES, SETTINGS["unbiased"], dataset="prices", snapshot="v"),
        protocol.LabelIds(NAMES),
        protocol.LabelIdsEnd(),
    ]
    release = FittedRelease("{}", 1.0, 0.0, 0.3, "laplace", 0.1, "event", "unit", "neighbours", b"r", b"s")
    responses = [LabelsOpened(1), release, NoisyLabels(np.array([1, -2, 0]), b"\x20")]
    return [(pb.ReleaseLabelsRequest, type(m), request_to_pb(m).SerializeToString()) for m in requests] + [
        (pb.ReleaseLabelsResponse, type(m), MESSAGES.response_to_pb(m).SerializeToString()) for m in responses
    ]


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(valid_envelopes()), st.integers(0, 400), st.binary(max_size=4), st.integers(0, 4))
def test_changed_bytes_are_a_message_or_malformed(
    valid: tuple[Any, type, bytes], at: int, inserted: bytes, dropped: int
) -> None:
    envelope, kind, octets = valid
    octets = octets[:at] + inserted + octets[at + dropped :]
    with contextlib.suppress(MalformedMessage, UnexpectedStep, DecodeError):
        assert isinstance(MESSAGES.from_pb(envelope.FromString(octets), kind, culprit="shop"), kind)


def test_whole_messages_are_read_as_they_were_written() -> None:
    for envelope, kind, octets in valid_envelopes():
        message = MESSAGES.from_pb(envelope.FromString(octets), kind, culprit="shop")
        to_pb = request_to_pb if envelope is pb.ReleaseLabelsRequest else MESSAGES.response_to_pb
        assert to_pb(message).SerializeToString() == octets


# --- what a server may not answer -----------------------------------------------------------------------


def changed(kind: type, **changes: Any) -> Callable[[Any], Any]:
    """`changes` are values, or functions of the message."""

    def tamper(message: Any) -> Any:
        if not isinstance(message, kind):
            return message
        values = {name: change(message) if callable(change) else change for name, change in changes.items()}
        return replace(message, **values)

    return tamper


def other(name: str, value: Any) -> Callable[[FittedRelease], str]:
    return lambda release: json.dumps(json.loads(release.parameters) | {name: value})


def with_step(value: int) -> Callable[[NoisyLabels], np.ndarray]:
    return lambda piece: np.concatenate(([value], piece.steps[1:]))


TAMPERED = {
    "no json": changed(FittedRelease, parameters="{"),
    "no object": changed(FittedRelease, parameters="[1]"),
    "deep": changed(FittedRelease, parameters="[" * 100_000),
    "nan": changed(FittedRelease, parameters=other("epsilon", float("nan"))),
    "another mechanism": changed(FittedRelease, parameters=other("mechanism", "laplace")),
    "another grid": changed(FittedRelease, parameters=other("hi", 11.0)),
    "more epsilon": changed(FittedRelease, parameters=other("epsilon", 1.1)),
    "text for a number": changed(FittedRelease, parameters=other("low", "1")),
    "charged more": changed(FittedRelease, epsilon=1.1),
    "charged nothing": changed(FittedRelease, epsilon=0.0),
    "prior's share": changed(FittedRelease, epsilon_prior=0.9),
    "negative share": changed(FittedRelease, epsilon_prior=-0.5),
    "outside": changed(FittedRelease, share_outside=1.5),
    "not finite": changed(FittedRelease, delta=float("inf")),
    "above the support": changed(NoisyLabels, steps=with_step(2**40)),
    "below the support": changed(NoisyLabels, steps=with_step(-(2**40))),
    "least integer": changed(NoisyLabels, steps=with_step(WITHHELD)),
    "one label more": changed(NoisyLabels, steps=lambda piece: np.append(piece.steps, piece.steps[0])),
    "no labels": changed(NoisyLabels, steps=np.zeros(0, np.int64)),
    "bits too short": changed(NoisyLabels, withheld=b"\x00"),
    "a label for a withheld row": changed(NoisyLabels, withheld=b"\x80" + bytes(4), steps=with_step(5)),
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_an_answer_that_the_mechanism_never_gives(counter: Counter, tamper: Callable[[Any], Any]) -> None:
    with pytest.raises(MalformedMessage) as caught:
        counter.send(NAMES, counter.request(settings=RP), tamper=tamper)
    assert caught.value.culprit == "labels"


# --- messages that an active party may not send -----------------------------------------------------------


@pytest.mark.parametrize("delta", [1.0, 2.0, -1e-5])
def test_a_delta_of_which_there_is_no_noise(counter: Counter, delta: float) -> None:
    with pytest.raises(MalformedMessage, match="shop sent a malformed message: delta: is out of range"):
        counter.send(NAMES, counter.request(settings=replace(SETTINGS["gaussian"], delta=delta)))
    assert counter.charges == 0


@pytest.mark.parametrize("ids", [0, MAX_IDS_A_MESSAGE + 1])
def test_step_4_a_batch_that_is_empty_or_too_long(counter: Counter, ids: int) -> None:
    """An active party could send empty batches without end."""
    roll, looked_up = RollCall(counter.request(n_rows=2 * MAX_IDS_A_MESSAGE)), []
    with pytest.raises(MalformedMessage) as caught:
        roll.add(LabelIds(("row-0",) * ids), looked_up.append, consumer="shop")
    assert str(caught.value) == f"shop sent a malformed message: ids: not 1 to {MAX_IDS_A_MESSAGE} in a batch"
    assert (roll.rows, looked_up) == (0, [])


def test_step_4_fewer_rows_than_were_announced(counter: Counter) -> None:
    with pytest.raises(MalformedMessage, match="consumer sent a malformed message: n_rows: is not the number of rows"):
        protocol.run_locally(NAMES[:3], counter.request(NAMES), LABELS, seeded())


def test_step_5_no_mechanism_that_costs_more_than_was_asked_for() -> None:
    def costly(settings: MechanismSettings, epsilon: float, prior: Prior | None) -> LabelMechanism:
        return make_mechanism(settings, epsilon + 1e-3, prior)

    with pytest.raises(RangeError, match=r"laplace would cost epsilon 1\.001, more than 1\.0"):
        protocol.step_5_fit(LAPLACE, np.zeros(0), seeded(), costly)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, WITHHELD])
def test_noise_without_bounds_still_has_some(counter: Counter, value: int) -> None:
    with pytest.raises(MalformedMessage, match="never gives"):
        counter.send(NAMES, counter.request(), tamper=changed(NoisyLabels, steps=with_step(value)))


@by_settings
def test_the_support_is_that_of_every_label(counter: Counter, settings: MechanismSettings) -> None:
    received = counter.ask(settings=settings)
    support = Support.of(received.mechanism)
    assert support.holds(received.steps)
    for label in (0.0, 3.3, 10.0):
        law = received.mechanism.law(label)
        assert support.holds(law.outputs)
    if support.outputs is not None:
        assert not support.holds(np.array([support.outputs.max() + 1]))
        assert not support.holds(np.array([support.outputs.min() - 1]))


def test_labels_in_many_messages(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = counter.steps()
    monkeypatch.setattr(protocol, "LABELS_A_MESSAGE", 7)
    assert counter.steps() == whole
    assert counter.sent.count("NoisyLabels") == 6


# --- single steps -------------------------------------------------------------------------------------


def test_step_2_what_a_release_costs() -> None:
    def cost(settings: MechanismSettings, rows: int) -> tuple[Any, tuple[float, float]]:
        request = replace(protocol.step_1_open(NAMES, settings, dataset="d", snapshot="v"), max_rows_per_person=rows)
        event = protocol.step_2_event(request, neighbours="n")
        return event, protocol.step_2_cost(request, event)

    event, spent = cost(RP, 0)
    assert (event.mechanism, event.epsilon, spent) == ("pure", 1.0, (1.0, 0.0))
    event, spent = cost(RP, 4)
    assert (event.epsilon, spent) == (4.0, (4.0, 0.0))
    gaussian = SETTINGS["gaussian"]
    multiplier = analytic_noise_multiplier(0.5, 1e-5)
    event, spent = cost(gaussian, 4)
    assert event.noise_multiplier == multiplier / 2
    assert spent[1] == 1e-5
    mechanism = from_parameters(
        {"mechanism": "gaussian", "lo": 0.0, "hi": 10.0, "cells": GRID.cells, "epsilon": 0.5, "delta": 1e-5}
    )
    assert mechanism.noise_std_steps / GRID.cells >= multiplier  # the charge is for no more noise than is drawn


def test_step_5_never_draws_for_rows_that_are_withheld(counter: Counter) -> None:
    mechanism = counter.ask().mechanism
    drawn: list[int] = []

    class Recording(type(mechanism)):  # type: ignore[misc]
        def draw(self, steps: np.ndarray, uniform: Any) -> np.ndarray:
            drawn.extend(steps.tolist())
            return super().draw(steps, uniform)

    recording = Recording(mechanism.grid, mechanism.epsilon)
    eligible = np.array([True, False, True])
    (steps,) = protocol.step_5_randomise(recording, [(np.array([1.0, 2.0, 3.0]), eligible)], seeded())
    assert drawn == mechanism.grid.steps([1.0, 3.0]).tolist()
    assert (steps == WITHHELD).tolist() == [False, True, False]


def test_step_6_withheld_labels_are_a_bit_and_no_number() -> None:
    (piece,) = protocol.step_6_pieces(np.array([5, WITHHELD, -3]))
    assert piece.steps.tolist() == [5, 0, -3]
    assert piece.withheld == bytes([0b01000000])
    (piece,) = protocol.step_6_pieces(np.array([5, -3]))
    assert piece.withheld == b""


def test_a_house_of_one_row(tmp_path: Any) -> None:
    house = House(tmp_path, {"prices": make_labels(tmp_path, {"only": 3.0})}, WIDE)
    try:
        assert Counter(house).ask(["only"], RP).steps.shape == (1,)
    finally:
        house.close()


def test_the_wire_has_no_default_that_hides_an_option() -> None:
    message = settings_to_pb(RP)
    set_fields = {field.name for field, _ in message.ListFields()}
    assert set_fields == {"name", "hi", "cells", "epsilon"}
