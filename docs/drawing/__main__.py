"""Draw the pictures of the documentation into docs/pictures: python docs/drawing [--check].

With --check, compare them with the files and change nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

import chooser
import lives
import one_party
import sequences
import servers

PICTURES = Path(__file__).parents[1] / "pictures"


def main(words: list[str]) -> int:
    stale = []
    for module in (chooser, sequences, one_party, lives, servers):
        for name, canvas in module.pictures():
            path, drawn = PICTURES / f"{name}.svg", canvas.svg()
            if words == ["--check"]:
                if not path.exists() or path.read_text("utf-8") != drawn:
                    stale.append(path.name)
            else:
                path.write_text(drawn, "utf-8")
    if stale:
        print(f"not as drawn: {', '.join(stale)}; run `make pictures`")
    return len(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
