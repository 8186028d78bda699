"""Conversion of the messages of algorithms/protocols/label_dp/release.py to and from protos/measurement.proto."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from blindfit.algorithms.errors import BlindfitError, LocalProtocolError, MalformedMessage
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid, MechanismSettings, Prior
from blindfit.algorithms.protocols.label_dp import release as release_labels
from blindfit.algorithms.protocols.label_dp.messages import (
    FittedRelease,
    LabelIds,
    LabelIdsEnd,
    LabelsOpen,
    LabelsOpened,
    NoisyLabels,
)
from blindfit.parties.measurement.codec import Messages, fields_of, read_with_receipt, require_finite, with_receipt
from blindfit.protos import measurement_pb2 as pb

_OPEN_FIELDS = fields_of(LabelsOpen, "settings")
_OPTIONS = (
    "epsilon_prior",
    "prior_mechanism",
    "cell_width",
    "optimal_for",
    "rounding",
    "output_cells",
    "output_reach",
)
_RELEASE_FIELDS = ("parameters", "epsilon", "delta", "epsilon_prior", "prior_mechanism", "event", "unit", "neighbours")
_TEXT_CHOICES = {
    "prior_mechanism": ("laplace", "staircase", "histogram"),
    "optimal_for": ("squared", "absolute"),
}


# --- to the server ---------------------------------------------------------------------------------


def request_to_pb(message: object) -> pb.ReleaseLabelsRequest:
    if isinstance(message, LabelIds):
        return pb.ReleaseLabelsRequest(ids=pb.LabelIds(ids=message.ids))
    if isinstance(message, LabelsOpen):
        return pb.ReleaseLabelsRequest(open=_open_to_pb(message))
    if isinstance(message, LabelIdsEnd):
        return pb.ReleaseLabelsRequest(end=pb.LabelIdsEnd())
    raise LocalProtocolError(f"{type(message).__name__} does not go to a measurement server")


def _open_to_pb(message: LabelsOpen) -> pb.LabelsOpen:
    return pb.LabelsOpen(**with_receipt(message, _OPEN_FIELDS), mechanism=settings_to_pb(message.settings))


def settings_to_pb(settings: MechanismSettings) -> pb.LabelMechanismSettings:
    grid, prior, half_width = settings.grid, settings.prior, settings.half_width
    options = {name: getattr(settings, name) for name in _OPTIONS}
    message = pb.LabelMechanismSettings(
        name=settings.name,
        lo=grid.lo,
        hi=grid.hi,
        cells=grid.cells,
        epsilon=settings.epsilon,
        delta=settings.delta,
        **{name: value for name, value in options.items() if value is not None},
    )
    if prior is not None:
        message.prior.CopyFrom(pb.LabelPrior(edges=prior.edges.tolist(), masses=prior.masses.tolist()))
    if half_width == "auto":
        message.half_width_auto = True
    elif half_width is not None:
        message.half_width = half_width
    return message


def _open_from_pb(message: pb.LabelsOpen, culprit: str) -> LabelsOpen:
    settings = _settings_from_pb(message.mechanism, culprit)
    return LabelsOpen(**read_with_receipt(message, _OPEN_FIELDS), settings=settings)


def _settings_from_pb(message: pb.LabelMechanismSettings, culprit: str) -> MechanismSettings:
    options = {name: getattr(message, name) for name in _OPTIONS if message.HasField(name)}
    if (choice := message.WhichOneof("half_width_choice")) is not None:
        options["half_width"] = "auto" if choice == "half_width_auto" else message.half_width
    for name, value in options.items():
        if name in _TEXT_CHOICES and value not in _TEXT_CHOICES[name]:
            raise _make_error(culprit, name, "is unknown")
        if isinstance(value, float) and not math.isfinite(value):
            raise _make_error(culprit, name, "is not finite")
    require_finite(message, ("lo", "hi", "epsilon", "delta"), "LabelsOpen", culprit)
    prior = message.prior
    try:
        settings = MechanismSettings(
            name=message.name,
            grid=LabelGrid(message.lo, message.hi, message.cells),
            epsilon=message.epsilon,
            delta=message.delta,
            prior=Prior(np.array(prior.edges), np.array(prior.masses)) if message.HasField("prior") else None,
            **options,
        )
    except BlindfitError as error:  # about the active party's own settings, so the party may read it
        raise _make_error(culprit, "mechanism", error.message) from None
    if (enough := settings.grid.cells) != message.cells:  # our own client makes a default count finer
        raise _make_error(
            culprit, "cells", f"the noise would be smaller than 2^16 grid steps: take {enough} cells or more"
        )
    return settings


def _make_error(culprit: str, field: str, reason: str) -> MalformedMessage:
    return MalformedMessage(culprit=culprit, field=field, reason=reason, step="LabelsOpen")


# --- from the server -------------------------------------------------------------------------------


def response_to_pb(message: object) -> pb.ReleaseLabelsResponse:
    if isinstance(message, NoisyLabels):
        return pb.ReleaseLabelsResponse(labels=pb.NoisyLabels(steps=message.steps.tolist(), withheld=message.withheld))
    if isinstance(message, FittedRelease):
        return pb.ReleaseLabelsResponse(release=release_to_pb(message))
    if isinstance(message, LabelsOpened):
        return pb.ReleaseLabelsResponse(opened=pb.LabelsOpened(made_before=bool(message.made_before)))
    raise LocalProtocolError(f"{type(message).__name__} does not come from a measurement server")


def release_to_pb(message: FittedRelease) -> pb.FittedRelease:
    return pb.FittedRelease(**with_receipt(message, _RELEASE_FIELDS), share_outside=message.share_outside)


def release_from_pb(message: pb.FittedRelease, culprit: str) -> FittedRelease:
    require_finite(message, ("epsilon", "delta", "epsilon_prior", "share_outside"), "FittedRelease", culprit)
    outside = message.share_outside if message.HasField("share_outside") else None
    return FittedRelease(**read_with_receipt(message, _RELEASE_FIELDS), share_outside=outside)


_DECODERS: dict[type, Any] = {
    LabelsOpen: _open_from_pb,
    LabelIds: lambda message, _culprit: LabelIds(tuple(message.ids)),
    LabelIdsEnd: lambda _message, _culprit: LabelIdsEnd(),
    LabelsOpened: lambda message, _culprit: LabelsOpened(int(message.made_before)),
    FittedRelease: release_from_pb,
    NoisyLabels: lambda message, _culprit: NoisyLabels(np.array(message.steps, np.int64), message.withheld),
}
_BODIES: dict[type, str] = {
    LabelsOpen: "open",
    LabelIds: "ids",
    LabelIdsEnd: "end",
    LabelsOpened: "opened",
    FittedRelease: "release",
    NoisyLabels: "labels",
}
MESSAGES = Messages(_BODIES, _DECODERS, request_to_pb, response_to_pb, FittedRelease, (release_labels.TABLE,))
