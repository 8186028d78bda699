"""The command `blindfit`."""

import os
import sys

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # gRPC reads this at import; its own notes are not for users
# A notebook that starts this command may name a backend that is not installed here. Pictures go into files anyway.
os.environ.pop("MPLBACKEND", None)
# This process and its children must not import modules from the folder of the job: a user's random.py would replace
# Python's own. `python -m` has put that folder first.
os.environ["PYTHONSAFEPATH"] = "1"
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]


def main() -> None:
    from blindfit.coordinator.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
