"""Jobs for reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blindfit.coordinator.job.job import Job


def renamed(job: Job[Any], name: str) -> Job[Any]:
    """Without a look at the name."""
    return replace(job, file=job.file.model_copy(update={"name": name}))
