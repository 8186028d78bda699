"""A job that a person stopped, which is not an error."""

from __future__ import annotations


class Stopped(Exception):
    """End of a job by Ctrl-C or SIGTERM, with its state.

    Attributes:
        hint: command to go on with; empty if the job cannot go on.
    """

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint
