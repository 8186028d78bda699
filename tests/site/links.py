"""The links and the headings of the repository's pages: Markdown files and notebooks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LEFT_OUT = {"_build", "node_modules", "runs"}
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


def pages(folder: Path = ROOT) -> list[Path]:
    """Return all Markdown files and notebooks, without what is built or installed."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in LEFT_OUT or path.is_symlink():
            continue
        found += pages(path) if path.is_dir() else [path] if path.suffix in (".md", ".ipynb") else []
    return found


@lru_cache
def prose(path: Path) -> str:
    """Return the text of a page, in which code leaves empty lines."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^( *)(`{3,}).*?^\1\2", "", text, flags=re.M | re.S)


def links(path: Path) -> list[str]:
    """Return the addresses in this repository that a page links to, pictures among them."""
    text = re.sub(r"(?<!`)`[^`\n]+`(?!`)", "``", prose(path))
    return [address for address in LINK.findall(text) if not re.match(r"[a-z]+:", address)]


@lru_cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors that forges and the site make from the headings of a page."""
    seen: Counter[str] = Counter()
    found = set()
    for name in re.findall(r"^```\{include\} (\S+)$", path.read_text(), re.M):
        found |= anchors((path.parent / name).resolve())
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", prose(path), re.M):
        slug = slug_of(heading)
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def slug_of(heading: str) -> str:
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def broken(path: Path) -> Iterator[str]:
    """Yield the links of a page that lead to no file, or to no heading of it."""
    for address in links(path):
        name, _, anchor = address.partition("#")
        target = (path.parent / unquote(name)).resolve() if name else path
        if not target.exists() or (anchor and target.suffix in (".md", ".ipynb") and anchor not in anchors(target)):
            yield address
