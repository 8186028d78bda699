"""Ways to trust measurement servers. One server may be trusted with labels and rows, or only with labels. Of two
servers that hold shares of the labels, neither is trusted; they read the rows, or get shares of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

from blindfit.algorithms.privacy import gaussian
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.parties.job.parameters import JobParameters, PrivateParameters

LabelKind = Literal["binary", "number", "share"]
Trust = Literal["trusted", "two-servers", "encrypted-rows", "shared-rows"]
TRUSTED: Trust = "trusted"
TWO_SERVERS: Trust = "two-servers"
ENCRYPTED_ROWS: Trust = "encrypted-rows"  # rows go to the server encrypted
SHARED_ROWS: Trust = "shared-rows"  # rows go to two servers in shares; a key node deals masks
ASK_TWO_SERVERS = (TWO_SERVERS, SHARED_ROWS)  # two servers with shares of labels
UNCHECKED_ROWS = "unchecked-rows"  # flag with which a policy allows rows of unchecked length


class SumJob(PrivateParameters):
    """A job that asks measurement servers for one noisy sum of labels, and declares its trust in them."""

    @property
    @abstractmethod
    def trust(self) -> Trust: ...

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation of the noise over the sensitivity."""
        privacy = self.required_privacy
        return gaussian.noise_multiplier(privacy.mechanism, privacy.epsilon, privacy.delta)

    def event_at_server(self, neighbours: str) -> ReleaseEvent:
        return ReleaseEvent("gaussian", self.noise_multiplier, neighbours)

    @property
    def asks_shares(self) -> bool:
        """True if the measurement servers hold shares of labels."""
        return self.trust in ASK_TWO_SERVERS

    @property
    def encrypts_rows(self) -> bool:
        """True if the measurement server gets rows that it cannot read."""
        return self.trust == ENCRYPTED_ROWS

    @property
    def shares_rows(self) -> bool:
        """True if the measurement servers get shares of rows."""
        return self.trust == SHARED_ROWS

    @property
    def hides_rows(self) -> bool:
        return self.encrypts_rows or self.shares_rows

    @property
    def unsafe(self) -> tuple[str, ...]:
        return (UNCHECKED_ROWS,) if self.encrypts_rows else ()

    def unsafe_at(self, role: str) -> tuple[str, ...]:
        return self.unsafe if role == "measurement" else ()

    def wrong_parties(self, roles: Sequence[str]) -> str:
        wanted, dealers = (2 if self.asks_shares else 1), int(self.shares_rows)
        if (roles.count("measurement"), roles.count("key-node")) == (wanted, dealers):
            return ""
        words = {1: "exactly one measurement server", 2: "exactly two, each with one of the tables of a split"}
        return f'{self.trust_option} = "{self.trust}" needs {words[wanted]}, and {"one" if dealers else "no"} key node'


def wrong_labels(job: JobParameters, dataset: str, kind: LabelKind) -> str:
    """Return the reason why a measurement server's labels do not fit a job, and the change to make; "" if they fit.

    Args:
        kind: kind of the dataset's labels.
    """
    shares, asks_sum = kind == "share", isinstance(job, SumJob)
    if asks_sum and kind == "number":
        return f"its dataset {dataset} has labels that are numbers, and no sum is made of them: name another dataset"
    if not asks_sum and kind == "binary":
        return f'its dataset {dataset} has no labels that are numbers: set protocol = "walr", or name another dataset'
    if shares == (isinstance(job, SumJob) and job.asks_shares):
        return ""
    option, has = job.trust_option, "holds shares of labels" if shares else "holds labels, and no shares of them"
    one, other = ASK_TWO_SERVERS if shares else (TRUSTED, ENCRYPTED_ROWS)
    change = f'set {option} = "{one}" or "{other}", or name another dataset' if option else "name another dataset"
    return f"its dataset {dataset} {has}: {change}"
