"""A request for a release of labels: its checks, its cost, and the digests that name it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import BlindfitError, MalformedMessage
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.privacy.accountant import composed_epsilon
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.gaussian import LEAST_STD_STEPS, analytic_noise_multiplier
from blindfit.algorithms.privacy.label_mechanisms import MechanismSettings
from blindfit.algorithms.protocols.label_dp.messages import LabelsOpen
from blindfit.algorithms.protocols.walr.request import begin_check

MAX_RELEASE_CHARS = 64


MOST_ROWS_PER_PERSON = 2**16


DIGEST = DigestFormat()
"""Form of a request's fields in its digest and in its name; a mechanism's fields begin with "settings."."""


def step_2_check(request: LabelsOpen, *, consumer: str) -> None:
    """Check a request.

    Raises:
        MalformedMessage: no server could serve a field of the request; the error names the field.
    """
    settings, require = request.settings, begin_check(request, consumer=consumer)
    require(0 <= request.max_rows_per_person <= MOST_ROWS_PER_PERSON, "max_rows_per_person", "is out of range")
    require(0 < len(request.release) <= MAX_RELEASE_CHARS, "release", f"is not 1 to {MAX_RELEASE_CHARS} characters")
    require(request.release.isprintable(), "release", "is not printable")
    try:
        steps = gaussian_steps(settings)
    except (BlindfitError, ValueError, OverflowError, ZeroDivisionError):
        raise MalformedMessage(culprit=consumer, field="delta", reason="is out of range", step="LabelsOpen") from None
    if steps is not None:
        enough = math.ceil(settings.grid.cells * LEAST_STD_STEPS / steps)
        reason = f"the noise would be smaller than {LEAST_STD_STEPS} grid steps: take {enough} cells or more"
        require(steps >= LEAST_STD_STEPS, "cells", reason)


def gaussian_steps(settings: MechanismSettings) -> float | None:
    """Return the noise of the gaussian mechanism in grid steps, at least; None for the others."""
    if settings.name != "gaussian":
        return None
    return analytic_noise_multiplier(settings.epsilon, settings.delta) * settings.grid.cells


def step_2_event(request: LabelsOpen, *, neighbours: str) -> ReleaseEvent:
    """Return the cost of the whole release: one row's label, or all labels of a person's rows in sequence."""
    settings, rows = request.settings, request.rows_per_unit
    if settings.name == "gaussian":
        # The multiplier of the claim; the noise that keeps it on the integers is a little wider.
        multiplier = analytic_noise_multiplier(settings.epsilon, settings.delta) / rows**0.5
        return ReleaseEvent("gaussian", multiplier, neighbours)
    return ReleaseEvent.pure(rows * settings.epsilon, neighbours)


def step_2_cost(request: LabelsOpen, event: ReleaseEvent) -> tuple[float, float]:
    """Return epsilon and delta of one unit."""
    if event.mechanism == "pure":
        return request.rows_per_unit * request.settings.epsilon, 0.0
    return composed_epsilon([event], request.settings.delta), request.settings.delta


def release_digest(request: LabelsOpen) -> bytes:
    """Return the digest that has one fit, one draw and one charge. It does not depend on the rows or the requester."""
    return parameters_digest(
        release_parameters(
            request.dataset, request.snapshot, request.max_rows_per_person, request.release, request.settings
        )
    )


def request_digest(request: LabelsOpen) -> bytes:
    """Return the digest of a request; one request id stands for one such digest."""
    return parameters_digest({"release": release_digest(request).hex(), "rows": request.content_sha256.hex()})


def release_parameters(
    dataset: str, snapshot: str, max_rows_per_person: int, release: str, settings: MechanismSettings
) -> dict[str, Any]:
    chosen = {f"settings.{name}": value for name, value in settings_parameters(settings).items()}
    asked = {
        "dataset": dataset,
        "snapshot": snapshot,
        "max_rows_per_person": max_rows_per_person,
        "release": release,
        **chosen,
    }
    return DIGEST.fields(asked)


def settings_parameters(settings: MechanismSettings) -> dict[str, Any]:
    """Return the set options, flat and typed: two settings that mean the same give equal results."""
    settings = settings.in_full
    chosen = {name: getattr(settings, name) for name in asdict(settings) if name not in ("grid", "prior")}
    reals = {n: float(v) for n, v in chosen.items() if isinstance(v, int | float) and n != "output_cells"}
    parameters = {name: value for name, value in (chosen | reals).items() if value is not None}
    grid = settings.grid
    parameters |= {"lo": float(grid.lo), "hi": float(grid.hi), "cells": int(grid.cells)}
    if settings.prior is not None:
        for name, values in (("edges", settings.prior.edges), ("masses", settings.prior.masses)):
            parameters[f"prior_{name}"] = tuple(float(value).hex() for value in values)
    return parameters
