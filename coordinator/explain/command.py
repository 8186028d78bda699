"""`blindfit explain`: what an option is for."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.explain.options import JOB, PARTY, Option, all_options
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.terminal import line
from blindfit.parties.renamed import NAME, lines_about

FILES = {JOB: "job files", PARTY: "party files"}


def explain(name: str | None) -> Found:
    """Find an option, a table of options, or without a name all tables.

    Raises:
        ConfigError: there is no such option or table; names those that are near.
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
    return Found(found, tuple(map(_in_full, found)))


def matching(name: str) -> list[Option]:
    """The option of this path, in job or party files; else all of a table, those that are called so anywhere, or those
    that may have this value."""
    options = all_options()
    wanted = name.strip("[]")
    exact = [option for option in options if _is(option.path, wanted)]
    table = [option for option in options if _is(option.table, wanted)]
    inside, _, last = wanted.rpartition(".")
    called = [option for option in options if option.path.rpartition(".")[2] == wanted]
    valued = [option for option in options if f'"{last}"' in option.kind and inside in ("", option.table)]
    return exact or table or called or valued


def _is(path: str, wanted: str) -> bool:
    """Where the path has NAME any name will do, and none: datasets.visits.url, datasets.url."""
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
    yield line("[dim]blindfit explain TABLE.OPTION, or TABLE, says what each is for[/]")


def _in_full(option: Option) -> Text:
    range_of = f"; {option.limits}" if option.limits else ""
    where = f"{FILES[option.file]}{_of_protocols(option)}"
    text = Text.assemble((option.path, "bold"), f"  (in {where})\n", no_wrap=True, overflow="ignore")
    text.append(f"  {option.text}\n")
    text.append(f"  {option.kind}{range_of}; default: {option.default}", style="dim")
    return text


def _of_protocols(option: Option) -> str:
    return f" of {', '.join(option.protocols)}" if option.protocols else ""
