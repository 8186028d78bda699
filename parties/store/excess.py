"""What a party does when a job passes a limit of a budget or of an account: it refuses, or a rehearsal only warns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from blindfit.algorithms.errors import BlindfitError

PASSES_LIMIT = "passes_limit"  # marks such a sentence in a party's log


def _tell_nobody(_sentence: str) -> None:
    pass


@dataclass
class Excess:
    """The way a party treats a job that passes a limit.

    Attributes:
        only_warns: whether the job goes on, in a rehearsal whose user has asked for that.
        sentences: the warnings so far. A party of real jobs has none: it refuses.
        on_sentence: takes the sentence of each refusal, and of each new warning.
    """

    only_warns: bool = False
    sentences: list[str] = field(default_factory=list)
    on_sentence: Callable[[str], None] = _tell_nobody

    def stop(self, error: BlindfitError) -> None:
        """Raise the error; a rehearsal that only warns keeps its sentence and goes on."""
        if not self.only_warns:
            self.on_sentence(error.message)
            raise error
        if error.message not in self.sentences:
            self.sentences.append(error.message)
            self.on_sentence(error.message)
