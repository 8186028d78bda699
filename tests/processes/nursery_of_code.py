"""A nursery whose children run Python code: python -m tests.processes.nursery_of_code [BEFORE] nursery

BEFORE runs before the nursery serves. The last of a child's words is its code.
"""

from __future__ import annotations

import sys

from blindfit.coordinator.running.forking import serve

if __name__ == "__main__":
    for before in sys.argv[1:-1]:
        exec(before)
    words = serve()
    if words is not None:
        exec(words[-1])
