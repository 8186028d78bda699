"""Build the documentation as a site, and check every link of it. `make docs` runs this file.

The pages are built from a copy of docs/ and examples/ in .site/tree, since notebooks write files where they run. The
result is docs/_build/html. A warning of Sphinx, a cell that fails, a link or an anchor that leads nowhere, and a page
that would load something from the network end the build with an error. The outputs of notebooks stay in
.site/notebooks until a cell changes. `rm -r .site` makes the next build run all notebooks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".site"
TREE, HTML, RESULT = WORK / "tree", WORK / "html", ROOT / "docs/_build/html"
COPIED = ("docs", "examples")
NOT_COPIED = shutil.ignore_patterns(
    "_build", "node_modules", "data", "state", "certificates", "__pycache__", ".ipynb_checkpoints"
)
NOT_LINKED = {*COPIED, "blindfit", "runs"}
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "audio": "src"}


def lay_tree() -> None:
    """Copy the pages, their pictures and what notebooks write to; link the folders of code that pages link to."""
    shutil.rmtree(TREE, ignore_errors=True)
    TREE.mkdir(parents=True)
    for name in COPIED:
        shutil.copytree(ROOT / name, TREE / name, ignore=NOT_COPIED)
    for path in ROOT.iterdir():
        if path.name in NOT_LINKED or path.name.startswith("."):
            continue
        if path.is_dir():
            (TREE / path.name).symlink_to(path)
        else:
            shutil.copy2(path, TREE)


def run_sphinx() -> int:
    environment = {**os.environ, "BLINDFIT_DOCS_CACHE": str(WORK / "notebooks")}
    environment.pop("MPLBACKEND", None)  # a notebook's own backend draws into the page
    options = ["--builder", "html", "--doctree-dir", str(WORK / "doctrees"), "--fail-on-warning", "--quiet"]
    command = [sys.executable, "-m", "sphinx", *options, str(TREE / "docs"), str(HTML)]
    return subprocess.run(command, env=environment).returncode


@dataclass
class Page(HTMLParser):
    """The links, the anchors and the loaded resources of a page.

    Attributes:
        links: addresses in the page that a reader can follow.
        anchors: ids in the page.
        resources: addresses that a browser loads with the page.
    """

    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    resources: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if (name := LOADED.get(tag, "")) in values:
            self.resources.append(values[name])


def read_page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text())
    return page


def broken_links(folder: Path) -> Iterator[str]:
    """Yield a line for every link of a built site that leads nowhere, and for every resource of the network."""
    found = sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)
    pages = {path: read_page(path) for path in found}
    for path, page in pages.items():
        name = path.relative_to(folder)
        for resource in page.resources:
            if urlsplit(resource).netloc:
                yield f"{name}: loads {resource} from the network"
        for link in {*page.links, *page.resources}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                yield f"{name}: {link} leads to no file"
            elif (anchor := unquote(parts.fragment)) and target in pages and anchor not in pages[target].anchors:
                yield f"{name}: {link} leads to no anchor"


def main() -> int:
    began = time.monotonic()
    if not (WORK / "notebooks").exists():
        print("Running eight notebooks, which takes about six minutes; later builds keep their outputs ...", flush=True)
    lay_tree()
    for folder in (HTML, WORK / "doctrees"):  # a page that is not read again would not repeat its warnings
        shutil.rmtree(folder, ignore_errors=True)
    if status := run_sphinx():
        return status
    broken = list(broken_links(HTML))
    print(*broken, sep="\n", end="\n" if broken else "")
    if broken:
        return 1
    shutil.rmtree(RESULT, ignore_errors=True)
    shutil.copytree(HTML, RESULT)
    pages = len(list(HTML.rglob("*.html")))
    print(f"{pages} pages in {time.monotonic() - began:.0f} s; every link leads somewhere: {RESULT / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
