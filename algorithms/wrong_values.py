"""What is wrong with an option's value, in our words: what is wanted, and what was given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_GIVEN_CHARS = 40
WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "path_type": "a path, as a text",
    "list_type": "a list in square brackets",
    "tuple_type": "a list in square brackets",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
#: Whose message names the limit; what was given is added.
LIMITS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "literal_error", "finite_number"}
#: How pydantic calls a choice between types, behind the option's name.
_CHOICES = {"int", "float", "str", "bool", "constrained-str", "constrained-int", "constrained-float"}


def named(location: Iterable[str | int]) -> str:
    """The option as in the file: "datasets.rows.features", not with the type that was tried."""
    parts = [str(part) for part in location]
    while len(parts) > 1 and (parts[-1] in _CHOICES or "[" in parts[-1]):
        parts.pop()
    return ".".join(parts)


@dataclass(frozen=True)
class Wrong:
    """
    Attributes:
        message: the whole of it, where one type alone was tried.
        wanted: in a few words; empty where the message has it.
        given: likewise.
    """

    message: str
    wanted: str = ""
    given: str = ""

    @classmethod
    def of(cls, error: Mapping[str, Any]) -> Wrong:
        """Args:
        error: one of pydantic's, with its input.
        """
        message = str(error["msg"]).removeprefix("Value error, ")
        kind, value = str(error["type"]), error.get("input")
        if kind in WANTED:
            got = given(value, show_text=kind.endswith("_parsing"))
            return cls(f"must be {WANTED[kind]}, not {got}", WANTED[kind], got)
        if kind not in LIMITS:
            return cls(message)
        got = given(value, show_text=kind == "literal_error")
        return cls(f"{message}, not {got}", str(error.get("ctx", {}).get("expected", "")), got)


def given(value: Any, *, show_text: bool) -> str:
    """Args:
    show_text: a text itself, and not only that it is one: it may be a URL with a password.
    """
    if isinstance(value, str):
        if not show_text:
            return "a text"
        text = json.dumps(value[:MOST_GIVEN_CHARS])
        return f"the text {text}" + (" ..." if len(value) > MOST_GIVEN_CHARS else "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value!r}"[:MOST_GIVEN_CHARS]
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    return "nothing" if value is None else "a date or time"


def in_a_line(found: Sequence[Wrong]) -> str:
    """What is wrong with one option, which may be of several types and fits none."""
    messages = list(dict.fromkeys(wrong.message for wrong in found))
    if len(messages) == 1 or not all(wrong.wanted for wrong in found):
        return " or ".join(messages)
    wanted = list(dict.fromkeys(wrong.wanted for wrong in found))
    shown = max((wrong.given for wrong in found), key=len)  # the text itself, if a type may show it
    return f"must be {' or '.join(wanted)}, not {shown}"
