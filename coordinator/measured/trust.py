"""Findings about who must be trusted, in jobs that ask a measurement server."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.protocols.walr import two_servers
from blindfit.coordinator.job.job import Job
from blindfit.coordinator.preflight.findings import Finding
from blindfit.parties.walr.settings import WalrJob

ANSWERED_BEFORE = "only a request that was answered before gets its answer again"


def rows_are_hidden(active: str, server: str) -> Iterator[Finding]:
    yield Finding("note", "who learns what", f"{server} sees the ids of {active}'s rows, and no feature or score")
    text = f"{server} cannot check how long rows are: {active} must be trusted to follow the protocol"
    yield Finding("warning", "unchecked-rows", f"{text}; the report will state this")


def rows_are_in_shares(job: Job[Any], active: str, servers: str) -> Iterator[Finding]:
    (key_node,) = job.with_role("key-node")
    about = "who learns what"
    yield Finding("note", about, f"{servers} see the ids of {active}'s rows, and no feature, score or label")
    yield Finding("note", about, f"{key_node} deals masks and sees nothing; with one server it would know everything")


def leaks_of_shares(job: Job[WalrJob], active: str, servers: str) -> Iterator[Finding]:
    privacy, multiplier = job.parameters.required_privacy, job.parameters.noise_multiplier
    both = gaussian.gaussian_epsilon(multiplier * math.sqrt(two_servers.SERVERS), privacy.delta)
    if job.parameters.shares_rows:
        yield from rows_are_in_shares(job, active, servers)
    else:
        see = f"{servers} see the ids and the rounded rows of {active}'s training rows, no label"
        yield Finding("note", "who learns what", see)
    yield Finding(
        "note",
        "who learns what",
        f"{active} learns one noisy sum. Label DP: (epsilon {privacy.epsilon:g}, delta {privacy.delta:g}) against it "
        f"together with one server, epsilon {both:.3g} against only {active}; both servers together know every label",
    )


# What each flag of policy.unsafe gives up.
GIVEN_UP = {
    "unchecked-rows": "rows come encrypted, so the server cannot check their length, for which the noise is made: "
    "an active party that sends longer rows learns more about the labels than epsilon allows",
}
