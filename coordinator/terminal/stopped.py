"""A job that a person stopped, which is not an error."""

from __future__ import annotations


class Stopped(Exception):
    """A job was cancelled: by Ctrl-C, by SIGTERM, by `RunningJob.cancel` or by an operator.

    Args:
        what: state of the job, in words.
        hint: next step, such as the command that resumes the job; empty if there is none.

    Attributes:
        hint: next step, as above.

    Example:
        >>> running = blindfit.run("job.toml", wait=False)
        >>> running.cancel()
        >>> running.result()
        Traceback (most recent call last):
        blindfit.coordinator.terminal.stopped.Stopped: ...
    """

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint
