"""`--json` of every command: standard output has only one JSON document, and an error goes to standard error.

A command returns its output. The terminal shows it, or the command prints its document.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from blindfit.coordinator.terminal.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

CONTEXT = "context"  # the parameter of a command that needs its Call

F = TypeVar("F", bound="Callable[..., Found | None]")


@dataclass(frozen=True, repr=False)
class Found:
    """The findings of a command. It prints as the command's own output, in a notebook as tables.

    Attributes:
        document: content for a program: mappings, sequences, dataclasses, texts, numbers.
        shown: content for a person: lines of text, and tables of the library rich.
        status: exit status of the command.

    Example:
        >>> found = blindfit.ledger("meter.toml")
        >>> len(found.document["entries"]) > 0
        True
        >>> found.to_json().startswith("{")
        True
    """

    document: Any
    shown: Iterable[RenderableType] = ()
    status: ExitCode = ExitCode.DONE

    def show(self, console: Console) -> None:
        """Print the content for a person. Each text stays on one line, however long, so that it can be copied.

        Args:
            console: console of the library rich.
        """
        from rich.text import Text  # here: a command that prints JSON needs no rich

        for each in self.shown:
            if isinstance(each, str):
                console.print(each, highlight=False, markup=False, soft_wrap=True)
            elif isinstance(each, Text):  # rich joins texts before it prints them, and loses their line breaks
                console.print(each, highlight=False, crop=False, no_wrap=each.no_wrap, overflow=each.overflow)
            else:
                console.print(each, highlight=False, crop=False)

    def __repr__(self) -> str:
        from blindfit.coordinator.terminal.html import render_text

        return render_text(self.shown)

    def _repr_html_(self) -> str:
        from blindfit.coordinator.terminal.html import render_html

        return render_html(self.shown)

    def to_json(self) -> str:
        """Return the document as JSON, as the command prints it with --json."""
        return json.dumps(self.document, indent=2, default=_plain, allow_nan=False) + "\n"


@dataclass
class Call:
    """One command line.

    Attributes:
        command: command line that starts a party's process; None means `python -m blindfit`.
        as_json: True if the command line asks for a document; known after it is read.
    """

    command: Sequence[str] | None = None
    as_json: bool = False


def call_of(context: typer.Context) -> Call:
    return context.ensure_object(Call)


class App(typer.Typer):
    """A Typer whose commands all have `--json`, except commands without output: `party` has its log."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[F], F]:
        register = super().command(*arguments, **options)

        def decorate(function: F) -> F:
            signature = inspect.signature(function, eval_str=True)
            register(_with_json(function, signature) if signature.return_annotation is Found else function)
            return function

        return decorate


def _with_json(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., None]:
    has_context = CONTEXT in signature.parameters

    @functools.wraps(function)
    def command(context: typer.Context, as_json: bool, **given: Any) -> None:
        call_of(context).as_json = as_json
        found: Found = function(context, **given) if has_context else function(**given)
        show_found(found, as_json=as_json)
        if found.status is not ExitCode.DONE:
            raise typer.Exit(found.status)

    json_option = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
    parameters = {name: p.replace(kind=p.KEYWORD_ONLY) for name, p in signature.parameters.items()}
    for name, kind in ((CONTEXT, typer.Context), ("as_json", json_option)):
        default = False if name == "as_json" else inspect.Parameter.empty
        parameters[name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=list(parameters.values()), return_annotation=None
    )
    command.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return command


def show_found(found: Found, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(found.to_json())
    else:
        from blindfit.coordinator.terminal.terminal import terminal

        found.show(terminal())


def error_line(kind: str, message: str, hint: str, status: int) -> str:
    return json.dumps({"error": {"kind": kind, "message": message, "hint": hint, "exit_status": int(status)}}) + "\n"


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no place in JSON")
