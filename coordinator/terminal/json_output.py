"""`--json` of every command: one JSON document on standard output and nothing else there; an error on standard error.

A command says what it found with `answer`. Of one that says nothing so, the document has the lines, as `printed`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

WIDTH = 10_000  # no line is broken that is not to be read in a terminal
NAME = "as_json"  # of the parameter, of a command that prints its own JSON too
SILENT = ("party",)  # prints nothing: its log has log_format = "json"

F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass
class _State:
    asked: bool = False
    answer: Any = None


_state = _State()


def begin() -> None:
    """Before a command line is read."""
    _state.asked, _state.answer = False, None


def is_asked() -> bool:
    return _state.asked


def answer(found: Any) -> None:
    """What a command has found: mappings, sequences, dataclasses, texts, numbers. The last one counts."""
    _state.answer = found


def error_line(kind: str, message: str, hint: str, status: int) -> str:
    return json.dumps({"error": {"kind": kind, "message": message, "hint": hint, "exit_status": int(status)}}) + "\n"


class App(typer.Typer):
    """A Typer whose commands all have `--json`."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[F], F]:
        register = super().command(*arguments, **options)

        def decorate(function: F) -> F:
            register(function if function.__name__ in SILENT else _with_json(function))
            return function

        return decorate


def _with_json(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function, eval_str=True)
    has_its_own = NAME in signature.parameters

    @functools.wraps(function)
    def command(*arguments: Any, **options: Any) -> Any:
        _state.asked = bool(options[NAME] if has_its_own else options.pop(NAME))
        if has_its_own or not _state.asked:
            return function(*arguments, **options)
        return _in_json(functools.partial(function, *arguments, **options))

    if not has_its_own:
        kind = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
        added = inspect.Parameter(NAME, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        parameters = [*signature.parameters.values(), added]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {**function.__annotations__, NAME: kind}
    return command


def _in_json(command: Callable[[], Any]) -> Any:
    """A command that ends with a status of its own, as `check` does, has its document too; one that fails has none."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            command()
    except typer.Exit:
        _write(printed.getvalue())
        raise
    _write(printed.getvalue())
    return None


def _write(printed: str) -> None:
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    document = {"printed": lines} if _state.answer is None else _state.answer
    sys.stdout.write(json.dumps(document, indent=2, default=_plain, allow_nan=False) + "\n")


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
