"""How every command ends. docs/guides/script.md says the same, and a test holds the two together."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1  # or refused, or a check that does not hold
    WRONG_INPUT = 2  # an option, a job's file or a party's
    BUG = 70  # EX_SOFTWARE of sysexits.h
    STOPPED = 130  # 128 + SIGINT
