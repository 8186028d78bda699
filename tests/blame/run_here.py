"""`blindfit run`, whose parties are forked, and tell in a folder which points they pass (see tests/vertical/victim.py).

python -m tests.blame.run_here FOLDER run job.toml ...
"""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from unittest import mock

from blindfit.coordinator.cli.main import main
from blindfit.coordinator.running import launcher
from tests.command import Forked

if __name__ == "__main__":
    folder = sys.argv.pop(1)
    processes = SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
    with mock.patch.object(launcher, "subprocess", processes):
        main(command=(sys.executable, "-m", "tests.vertical.victim", folder))
