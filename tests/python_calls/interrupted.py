"""A program that runs a job with forked parties, and is interrupted: python -m tests.python_calls.interrupted"""

from __future__ import annotations

import blindfit
from tests.command import forked_parties

if __name__ == "__main__":
    with forked_parties():
        try:
            blindfit.run("job.toml", out="out", taylor={"epochs": 10_000, "patience": 0})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
