"""A program that runs a job with forked parties, and is interrupted: python -m tests.python_calls.interrupted"""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from unittest import mock

import blindfit
from blindfit.coordinator.running import launcher
from tests.command import Forked

if __name__ == "__main__":
    with mock.patch.object(launcher, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": Forked})):
        try:
            blindfit.run("job.toml", out="out", taylor={"epochs": 10_000, "patience": 0})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
