"""`blindfit run` with forked parties, which write into a folder the points that they pass (see
tests/vertical/victim.py).

python -m tests.blame.run_here FOLDER run job.toml ...
"""

from __future__ import annotations

import sys

from blindfit.coordinator.cli.main import main
from tests.command import forked_parties

if __name__ == "__main__":
    folder = sys.argv.pop(1)
    with forked_parties():
        main(command=(sys.executable, "-m", "tests.vertical.victim", folder))
