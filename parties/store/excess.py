"""Treatment of a job that exceeds a limit of a budget or of an account: a party refuses it, or a rehearsal only
warns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from blindfit.algorithms.errors import BlindfitError

PASSES_LIMIT = "passes_limit"  # mark of such a sentence in a party's log


def _tell_nobody(_sentence: str) -> None:
    pass


@dataclass
class Excess:
    """A party's treatment of jobs that exceed a limit.

    Attributes:
        only_warns: True if the job continues, in a rehearsal whose user has asked for that.
        sentences: warnings so far. A party of real jobs has no warnings: it refuses.
        on_sentence: function that gets the sentence of each refusal, and of each new warning.
    """

    only_warns: bool = False
    sentences: list[str] = field(default_factory=list)
    on_sentence: Callable[[str], None] = _tell_nobody

    def stop(self, error: BlindfitError) -> None:
        """Raise the error; a rehearsal that only warns keeps the error's sentence and continues."""
        if not self.only_warns:
            self.on_sentence(error.message)
            raise error
        if error.message not in self.sentences:
            self.sentences.append(error.message)
            self.on_sentence(error.message)
