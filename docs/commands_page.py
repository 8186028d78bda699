"""Write reference/command_line.md from the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer

from blindfit.coordinator.cli.main import app
from blindfit.coordinator.terminal.exit_codes import ExitCode

PAGE = Path(__file__).parent / "reference/command_line.md"
HEAD = """# Command line

`make commands-page` writes this page from the code of the command line. `blindfit --help` lists the commands, and
`blindfit COMMAND --help` prints what a section of this page has. Every command also takes `--help`.
[Use Blindfit in a script](../guides/script.md) shows `--json` and the exit status at work.

## Exit status

| exit status | meaning |
|---|---|
"""
MEANINGS = {
    ExitCode.DONE: "The command is done.",
    ExitCode.FAILED: "The job failed, a party refused it, or a check does not hold.",
    ExitCode.WRONG_INPUT: "An option, a job file or a party file is wrong.",
    ExitCode.BUG: "Blindfit has a bug. Please report it.",
    ExitCode.STOPPED: "A person or a signal stopped the command.",
}
PLACEHOLDERS = {int: "INTEGER", float: "NUMBER", Path: "PATH"}


def page() -> str:
    return "\n".join([*_head(), *_commands()]) + "\n"


def _head() -> Iterator[str]:
    yield HEAD.rstrip("\n")
    for code, meaning in MEANINGS.items():
        yield f"| {code.value} | {meaning} |"
    yield ""


def _commands() -> Iterator[str]:
    """Yield a section for each command, in the groups of `blindfit --help`."""
    commands = {name: one for name, one in typer.main.get_group(app).commands.items() if not one.hidden}
    for panel in dict.fromkeys(command.rich_help_panel for command in commands.values()):
        yield from (f"## {panel}", "")
        for name, command in commands.items():
            if command.rich_help_panel != panel:
                continue
            yield from _section(f"blindfit {name}", command)
            for sub_name, sub_command in getattr(command, "commands", {}).items():
                yield from _section(f"blindfit {name} {sub_name}", sub_command)


def _section(called: str, command: Any) -> Iterator[str]:
    shown = [parameter for parameter in command.params if not parameter.hidden and parameter.name != "help"]
    arguments = [parameter for parameter in shown if not parameter.opts[0].startswith("-")]
    options = [parameter for parameter in shown if parameter.opts[0].startswith("-")]
    yield from (f"### {called}", "", *_paragraphs(command.help), "")
    if not hasattr(command, "commands"):
        words = [called, *(["[OPTIONS]"] if options else []), *map(_usage, arguments)]
        yield from ("```text", " ".join(words), "```", "")
    yield from _table("argument", arguments)
    yield from _table("option", options)
    if command.epilog:
        yield from ("```text", *_examples(command.epilog), "```", "")


def _paragraphs(text: str | None) -> Iterator[str]:
    yield _inline(" ".join((text or "").split()))


def _examples(epilog: str) -> Iterator[str]:
    """Yield the lines of an epilog without the markup of the terminal."""
    for line in re.sub(r"\[/?[a-z ]*\]|\x08|`", "", epilog).strip().splitlines():
        yield line.strip()


def _usage(argument: Any) -> str:
    word = _placeholder(argument)
    return word if argument.required else f"[{word}]"


def _table(kind: str, parameters: list[Any]) -> Iterator[str]:
    if not parameters:
        return
    yield from (f"| {kind} | purpose |", "|---|---|")
    for parameter in parameters:
        cells = (f"`{_spelling(parameter)}`", f"{_inline(parameter.help or '')}{_default(parameter)}")
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _spelling(parameter: Any) -> str:
    if not parameter.opts[0].startswith("-"):
        return _placeholder(parameter)
    words = ", ".join((*parameter.opts, *parameter.secondary_opts))
    return words if parameter.is_flag else f"{words} {_placeholder(parameter)}"


def _placeholder(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    if not parameter.opts[0].startswith("-"):
        return str(parameter.name).upper()
    annotation = parameter.type_descriptor.annotation
    return PLACEHOLDERS.get((*get_args(annotation), annotation)[0], "TEXT")


def _default(parameter: Any) -> str:
    if parameter.required:
        return " Required."
    default = parameter.default
    if getattr(parameter, "is_flag", False) or callable(default) or default in (None, "", []):
        return ""
    return f" Default: `{default}`."


def _inline(text: str) -> str:
    """Return a help text as Markdown: a star or an underscore in it stands for itself."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>])", r"\\\1", part) for part in parts)


if __name__ == "__main__":
    PAGE.write_text(page())
