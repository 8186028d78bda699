"""report.json and report.html: the result of a job, its cost in privacy, and who learnt what."""

from blindfit.coordinator.report.output import Written, write

__all__ = ["Written", "write"]
