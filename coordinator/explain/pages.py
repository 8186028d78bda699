"""docs/reference/options: a page for each kind of table, with every option of job files and party files."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from blindfit.coordinator.explain.options import JOB, PARTY, Option, all_options

GENERATED = "`make options-page` writes these pages from the code that reads the files."


@dataclass(frozen=True)
class Page:
    """A page of options.

    Attributes:
        file: kind of file that has the options, JOB or PARTY.
        title: heading of the page.
        about: sentence that links to the explanation or the guide.
        tables: tables that the page describes, with all tables below them; empty: tables without a page of their own.
    """

    file: str
    title: str
    about: str
    tables: tuple[str, ...] = ()

    def describes(self, option: Option) -> bool:
        return option.file == self.file and any(_is_below(option.table, table) for table in self.tables)


PAGES = {
    "job": Page(JOB, "Job options", "The options of a job file that do not belong to one system."),
    "walr": Page(JOB, "WALR options", "[How WALR works](../../explanation/walr.md) explains the terms.", ("walr",)),
    "label_dp": Page(
        JOB,
        "label-dp options",
        "[How label-dp works](../../explanation/label_dp.md) explains the mechanisms.",
        ("label_dp",),
    ),
    "taylor": Page(
        JOB, "Taylor options", "[How Taylor works](../../explanation/taylor.md) explains the terms.", ("taylor",)
    ),
    "falcon": Page(
        JOB, "Falcon options", "[How Falcon works](../../explanation/falcon.md) explains the terms.", ("falcon",)
    ),
    "dp_lr": Page(
        JOB, "DP-LR options", "[How DP-LR works](../../explanation/dp_lr.md) explains the terms.", ("dp_lr",)
    ),
    "predict": Page(JOB, "Predict options", "[Score new rows](../../guides/score.md) shows a whole job.", ("predict",)),
    "evaluate": Page(
        JOB, "Evaluate options", "The job measures a trained model from one noisy sum over labels.", ("evaluate",)
    ),
    "party": Page(PARTY, "Party options", "A party file belongs to one organisation and never leaves it."),
    "policy": Page(
        PARTY,
        "Policy options",
        "[Policy and approval](../../guides/policy.md) explains how a party refuses a job.",
        ("policy",),
    ),
}
INTRODUCTION = f"""These pages list every option of job files and party files. {GENERATED}

`blindfit explain taylor.epochs` prints one option, and `blindfit explain` lists the tables. `--set KEY=VALUE` sets an
option for one run. NAME stands for a name that you choose. Blindfit refuses an unknown option, and an option that would
do nothing."""


def pages() -> dict[str, str]:
    """Return the text of every page, by its name in docs/reference/options."""
    return {"index": "\n".join(_index()) + "\n", **{name: "\n".join(_page(name)).rstrip() + "\n" for name in PAGES}}


def _index() -> Iterator[str]:
    yield from ("# Options", "", INTRODUCTION, "", "| page | tables |", "|---|---|")
    for name, page in PAGES.items():
        tables = dict.fromkeys(option.table for option in options_of_page(name))
        links = (f"[{_title(table)}]({name}.md#{_anchor(table)})" for table in tables)
        yield f"| [{page.title}]({name}.md) | {', '.join(links)} |"
    yield from ("", "```{toctree}", ":hidden:", "", *PAGES, "```")


def _page(name: str) -> Iterator[str]:
    page = PAGES[name]
    yield from (f"# {page.title}", "", page.about, "")
    for table, options in groupby(options_of_page(name), key=lambda option: option.table):
        yield from _section(table, list(options))


def options_of_page(name: str) -> list[Option]:
    """Return the options that a page lists, table by table."""
    page = PAGES[name]
    if page.tables:
        return [option for option in all_options() if page.describes(option)]
    others = [other for other in PAGES.values() if other.tables]
    return [o for o in all_options() if o.file == page.file and not any(other.describes(o) for other in others)]


def _section(table: str, options: Sequence[Option]) -> Iterator[str]:
    systems = {option.protocols for option in options}
    yield from (f"## {_title(table)}", "")
    if len(systems) == 1 and (named := systems.pop()):
        yield f"This table is for jobs of {', '.join(f'`{name}`' for name in named)}."
        yield ""
    for option in options:
        yield from _entry(option)


def _entry(option: Option) -> Iterator[str]:
    about = " ".join(filter(None, (option.text, option.effect, option.when)))
    yield from (f"### `{option.path}`", "", re.sub(r"\*(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\*", about), "")
    yield f"- Kind: {f'{option.kind}; {option.limits}' if option.limits else option.kind}"
    yield f"- Default: {option.default}"
    yield from (f"- Example: `{option.toml[-1]}`", "")


def _title(table: str) -> str:
    return f"`[{table}]`" if table else "At the top"


def _anchor(table: str) -> str:
    """Return the anchor that Sphinx and forges make from the heading of a table."""
    return "".join(letter for letter in table.lower() if letter not in ".[]") if table else "at-the-top"


def _is_below(table: str, top: str) -> bool:
    return table == top or table.startswith(f"{top}.")


def write(folder: Path) -> None:
    """Write every page into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in pages().items():
        (folder / f"{name}.md").write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
