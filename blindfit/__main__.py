"""The command `blindfit`."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # read when gRPC is imported: its own notes are not for users


def main() -> None:
    from coordinator.cli import main as run

    run()


if __name__ == "__main__":
    main()
