"""report.json and report.html: what a job did, what it cost in privacy, and who learnt what."""

from blindfit.coordinator.report.output import Written, write

__all__ = ["Written", "write"]
