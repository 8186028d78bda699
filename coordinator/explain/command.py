"""`blindfit explain`: print the facts about options."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.explain.options import JOB, PARTY, Option, all_options
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.summary_table import lines_with_labels
from blindfit.coordinator.terminal.terminal import line
from blindfit.coordinator.terminal.titles import TITLES
from blindfit.parties.renamed import NAME, lines_about

FILES = {JOB: "job files", PARTY: "party files"}


def explain(name: str | None) -> Found:
    """Find an option or a table of options; without a name, find all tables.

    Raises:
        ConfigError: the option or table does not exist; the hint names similar ones.
    """
    if name is None:
        return Found(all_options(), tuple(_tables()))
    found = matching(name)
    if not found:
        if renamed := lines_about(name.strip("[]")):
            raise ConfigError("; ".join(renamed))
        near = difflib.get_close_matches(name, [option.path for option in all_options()], n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`blindfit explain` lists the tables"
        raise ConfigError(f"there is no option {name}", hint=hint)
    return Found(found, tuple(line for option in found for line in _in_full(option)))


def matching(name: str) -> list[Option]:
    """Return the option of this path, in job or party files.

    If there is no such option, return all options of a table, else all options with this name in any table, else the
    options that may have this value.
    """
    options = all_options()
    wanted = name.strip("[]")
    exact = [option for option in options if _is(option.path, wanted)]
    table = [option for option in options if _is(option.table, wanted)]
    inside, _, last = wanted.rpartition(".")
    called = [option for option in options if option.path.rpartition(".")[2] == wanted]
    valued = [option for option in options if f'"{last}"' in option.kind and inside in ("", option.table)]
    return exact or table or called or valued


def _is(path: str, wanted: str) -> bool:
    """Return True for a path whose NAME is any name or is left out: datasets.visits.url, datasets.url."""
    parts, asked = path.split("."), wanted.split(".")
    if len(asked) == len(parts):
        return all(part in (NAME, word) for part, word in zip(parts, asked, strict=True))
    return [part for part in parts if part != NAME] == asked


def _tables() -> Iterator[RenderableType]:
    for file, title in FILES.items():
        yield line(f"[bold]in {title}:[/]")
        tables = dict.fromkeys(option.table for option in all_options() if option.file == file)
        for table in tables:
            names = [o.path.rpartition(".")[2] for o in all_options() if (o.file, o.table) == (file, table)]
            yield f"  {f'[{table}]' if table else 'at the top'}: {', '.join(names)}"
    yield line("[dim]`blindfit explain TABLE.OPTION` explains an option, and `blindfit explain TABLE` a whole table[/]")


def _in_full(option: Option) -> Iterator[RenderableType]:
    """Yield the lines about an option, in the order in which a person decides."""
    where = f"{FILES[option.file]}{_of_systems(option)}"
    yield Text.assemble((option.path, "bold"), f"  (in {where})", no_wrap=True, overflow="ignore")
    first, *others = option.toml
    facts = [
        ("what it is", option.text),
        ("value", f"{option.kind}; {option.limits}" if option.limits else option.kind),
        ("default", option.default),
        ("effect", option.effect),
        ("change it", option.when),
        ("example", first),
        *(("", text) for text in others),
    ]
    yield from lines_with_labels((label, text) for label, text in facts if text)
    yield ""


def _of_systems(option: Option) -> str:
    names = option.protocols
    if len(names) == 1 and names[0] in TITLES:
        return f" of {names[0]}, {TITLES[names[0]]}"
    return f" of {', '.join(names)}" if names else ""
