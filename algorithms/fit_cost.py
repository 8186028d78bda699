"""The most memory and operations that a fit takes, which a party estimates before it accepts a job.

A party that has accepted a job computes all that its options ask for, in a thread that nobody can stop.
"""

from __future__ import annotations

from dataclasses import dataclass

from blindfit.algorithms.errors import ConfigError

MOST_BYTES = 2**32  # of a fit, apart from the rows
MOST_OPERATIONS = 2e13  # hours of one core
NUMBER_BYTES = 8


@dataclass(frozen=True)
class FitCost:
    """The most that a fit takes; usually it takes less.

    Args:
        lower: the options that lower it.
    """

    n_bytes: float
    operations: float
    lower: str

    def check(self) -> None:
        """Raise ConfigError if the fit takes more than a party spends on one job."""
        if refused := self.excess():
            raise ConfigError(refused)

    def excess(self) -> str:
        """Describe an excess over what a party spends on one job, and the options that lower it; empty without one."""
        for found, most, what in (
            (self.n_bytes, MOST_BYTES, f"{self.n_bytes / 2**30:.3g} GiB of memory, not {MOST_BYTES / 2**30:.3g} GiB"),
            (self.operations, MOST_OPERATIONS, f"{self.operations:.2g} operations, not {MOST_OPERATIONS:.2g}"),
        ):
            if found > most:
                return f"the fit may take {what}, which is the most for one job: lower {self.lower}"
        return ""
