"""A job that somebody stopped, which is no error."""

from __future__ import annotations


class Stopped(Exception):
    """By Ctrl-C or SIGTERM: what became of the job.

    Attributes:
        hint: how to go on; empty where there is nothing to go on from.
    """

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint
