"""The command `blindfit`."""

import os
import sys

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read when gRPC is imported: its own notes are not for users
os.environ.pop("MPLBACKEND", None)  # of a notebook that starts us, which need not be installed here: we draw into files
# Neither here nor in the processes that this one starts are modules looked for in the folder that a job is run in:
# a user's random.py would be taken for Python's. `python -m` has put that folder first.
os.environ["PYTHONSAFEPATH"] = "1"
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]


def main() -> None:
    from blindfit.coordinator.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
