"""Jobs for reports."""

from __future__ import annotations

import copy
from typing import Any

from blindfit.coordinator.job.job import Job


def renamed(job: Job[Any], name: str) -> Job[Any]:
    """Rename the job without a check of the name."""
    changed = copy.copy(job)
    changed.file = job.file.model_copy(update={"name": name})
    return changed
