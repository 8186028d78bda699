"""A job for which no party needs to run."""

from __future__ import annotations

from tests.wire.calls import proposal

JOB = {
    "protocol": "walr",
    "privacy": {"epsilon": 0.5},
    "timeouts": {"approval_s": 60},
    "parties": {m.name: {"role": m.role, "dataset": m.dataset} for m in proposal("").members},
}
