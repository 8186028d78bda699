"""Exit status of every command. A test compares it with docs/guides/script.md."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1  # also a refusal, or a check that fails
    WRONG_INPUT = 2  # an option, a job file or a party file
    BUG = 70  # EX_SOFTWARE of sysexits.h
    STOPPED = 130  # 128 + SIGINT
