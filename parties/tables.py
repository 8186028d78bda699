"""TOML files -> validated tables. Each error is one line that names the file and the field."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticKnownError

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.held_out import FRACTIONS
from blindfit.algorithms.texts import cut
from blindfit.parties.renamed import NAME, old_names

MISTAKES_TOLD = 10
MOST_MISTAKE_CHARS = 300  # length of one mistake
SHORT_NUMBER = r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?"  # forms that people type, and that TOML does not have
SUGGESTIONS = 3  # number of names to suggest; each is compared with every known name
MOST_NAME_CHARS = 64  # length of an unknown name for which suggestions are sought


def _is_one_of_the_fractions(fraction: float) -> float:
    if fraction not in FRACTIONS:
        allowed = ", ".join(f"{one:g}" for one in FRACTIONS)
        raise ValueError(
            f"{fraction:g} is not one of {allowed}: with any fraction a job could find out whose row is held out"
        )
    return fraction


HeldOutFraction = Annotated[float, AfterValidator(_is_one_of_the_fractions)]
"""A fraction of rows that a job may hold out. Few are allowed, so that no party chooses the held-out rows (MATH 10)."""


class Settings(BaseModel):
    """Base of all settings. Unknown keys are refused, because an option that is read and never used is worse than no
    option. So are inf and nan, which TOML can write.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_what_it_looks_like(cls, value: Any, info: ValidationInfo) -> Any:
        """Return a value only in its own type: pydantic would also accept true for 1, and "1" for a number."""
        field = cls.model_fields[str(info.field_name)]
        wanted = tuple(_leaves(field.annotation))
        for given in value if isinstance(value, list | tuple) else (value,):
            if (float in wanted or int in wanted) and _is_no_number(given, wanted):
                if float in wanted:
                    raise PydanticKnownError("float_parsing" if isinstance(given, str) else "float_type")
                raise PydanticKnownError("int_parsing" if isinstance(given, str) else "int_type")
        return value


S = TypeVar("S", bound=BaseModel)


@contextlib.contextmanager
def as_value_errors(prefix: str = "") -> Iterator[None]:
    """Turn a ConfigError into a ValueError, which pydantic collects; `prefix` completes the name of the option."""
    try:
        yield
    except ConfigError as error:
        raise ValueError(f"{prefix}{error}") from None


def read_values(path: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of a file. Raise ConfigError if it is absent or not TOML, or an override is not
    `key.path=value`.
    """
    values = read_toml(path)
    for override in overrides:
        apply_override(values, override)
    return values


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist", hint="give the path of a TOML file") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", hint="give the path of a TOML file") from None
    except UnicodeDecodeError as error:
        reason = f"byte {error.start + 1} is not UTF-8"
        raise ConfigError(f"{path} is not TOML: {reason}", hint="save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None


def apply_override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    names = key.strip().split(".")
    if not separator or not all(names):
        raise ConfigError(f"--set {override}: not of the form key.path=value", hint="such as privacy.epsilon=0.5")
    for name in names[:-1]:
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override}: {name} is a value, not a table")
    values[names[-1]] = _toml_value(text.strip())


def toml_of(value: str | Sequence[str]) -> str:
    """Return a value in TOML. That is JSON, except for characters beyond U+FFFF, which JSON writes as two, and for
    DEL.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return float(text) if re.fullmatch(SHORT_NUMBER, text, re.ASCII) else text


def validate(values: Mapping[str, Any], model: type[S], *, source: str) -> S:
    """Return validated settings. Raise ConfigError with a line for every mistake."""
    if wrong := _find_first_mistakes(values):
        raise ConfigError(f"{source}: {'; '.join(wrong)}")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: " + "; ".join(_lines(error, model))) from None


def mistakes(values: Mapping[str, Any], model: type[BaseModel], *beside: type[BaseModel]) -> list[str]:
    """Return the mistakes that `validate` would report.

    Args:
        beside: classes of other tables in the same file; an unknown name may be meant for one of them.
    """
    if wrong := _find_first_mistakes(values):
        return wrong
    try:
        model.model_validate(values)
    except ValidationError as error:
        return _lines(error, model, *beside)
    return []


def _find_first_mistakes(values: Mapping[str, Any]) -> list[str]:
    """Return the mistakes that no class of settings can find."""
    return _with_nul("", values) or old_names(values)[:MISTAKES_TOLD]


def _with_nul(where: str, value: Any) -> list[str]:
    """Return the places of texts with a NUL character. TOML can write it, and no path, URL or name may hold it."""
    if isinstance(value, Mapping):
        inner = [line for name, part in value.items() for line in _with_nul(f"{where}.{name}" if where else name, part)]
        return [line for name in value for line in _with_nul(f"a name in [{where}]", name)] + inner
    if isinstance(value, list | tuple):
        return [line for number, inner in enumerate(value) for line in _with_nul(f"{where}.{number}", inner)]
    if isinstance(value, str) and "\0" in value:
        return [f"{where} holds a NUL character, remove it".replace("\0", "\\0")]
    return []


def _lines(error: ValidationError, *models: type[BaseModel]) -> list[str]:
    """Return the first mistakes, and the number of further ones: nobody reads thousands."""
    found: dict[str, list[ErrorDetails]] = {}
    for mistake in error.errors(include_url=False):
        found.setdefault(name_option(mistake["loc"]), []).append(mistake)
    first = itertools.islice(found.items(), MISTAKES_TOLD)
    told = [
        cut(_line(where, of, models if n < SUGGESTIONS else ()), MOST_MISTAKE_CHARS) + _explain_choice(of[0], models[0])
        for n, (where, of) in enumerate(first)
    ]
    more = len(found) - len(told)
    return told + ([f"and {more} more mistakes"] if more else [])


def _line(where: str, mistakes: Sequence[ErrorDetails], models: Sequence[type[BaseModel]]) -> str:
    """Return the line for one option.

    Args:
        mistakes: all mistakes of one option.
        models: classes in which to look for a name that is similar to an unknown one.
    """
    first = mistakes[0]
    if first["type"] == "extra_forbidden":
        return f"{where} is not an option" + _meant(where, str(first["loc"][-1])[:MOST_NAME_CHARS], models)
    if first["type"] == "missing":
        return f"{where} is missing"
    message = in_a_line([Wrong.of(mistake) for mistake in mistakes])
    return f"{where}: {message}" if where else message


def _explain_choice(mistake: ErrorDetails, model: type[BaseModel]) -> str:
    """Return the meaning of an option that is missing, or whose value is not one of its choices; else nothing."""
    if mistake["type"] not in ("missing", "literal_error"):
        return ""
    where: type[BaseModel] | None = model
    info: FieldInfo | None = None
    for part in mistake["loc"]:
        if where is None:
            return ""
        fields = {option_of(where, field): info for field, info in where.model_fields.items()}
        if part not in fields:  # a name that the author of the file chose, or a place in a list
            continue
        info = fields[str(part)]
        where = next(iter(_models_in(info.annotation)), None)
    if info is None:
        return ""
    meant = (where.__doc__ or "").split("\n")[0] if where is not None else info.description or ""
    return f" ({' '.join(meant.split())})" if meant else ""


def explain(model: type[BaseModel], option: str) -> str:
    """Return an option's own text, for an error that says the option is missing."""
    return " ".join((model.model_fields[option].description or "").split())


def _meant(where: str, name: str, models: Sequence[type[BaseModel]]) -> str:
    known = [option for model in models for option in _list_known_names(model)]
    by_name = {option.rpartition(".")[2]: option for option in reversed(known)}
    close = difflib.get_close_matches(name, by_name, 1) if by_name else ()
    if not close:
        return ""
    option = by_name[close[0]]
    if "." in where and close[0] == name:  # the name is right, but not the table
        return f"; did you mean {option}{'' if '.' in option else ', outside of all tables'}?"
    is_in_a_table = "." in where  # then a name in that table is misspelt
    return f"; did you mean {close[0] if is_in_a_table or close[0] in known else option}?"


def _list_known_names(model: type[BaseModel]) -> Iterable[str]:
    """Yield each option with its table. NAME stands for the name of a table that the author of the file chooses."""
    for field, info in model.model_fields.items():
        yield (name := option_of(model, field))
        table = f"{name}.{NAME}" if get_origin(info.annotation) is dict else name
        for inner in _models_in(info.annotation):
            yield from (f"{table}.{option}" for option in _list_known_names(inner))


def option_of(model: type[BaseModel], field: str) -> str:
    """Return the name of a field's option in a file."""
    return model.model_fields[field].alias or field


def _leaves(annotation: Any) -> Iterator[Any]:
    """Yield the types and literal values that an option may have."""
    for argument in (arguments := get_args(annotation)):
        yield from _leaves(argument)
    if not arguments:
        yield annotation


def _is_no_number(given: Any, wanted: Sequence[Any]) -> bool:
    if isinstance(given, bool):
        return bool not in wanted
    if not isinstance(given, str) or str in wanted:
        return False
    with contextlib.suppress(ValueError):
        return math.isfinite(float(given))
    return False  # pydantic reports any other error


def _models_in(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models_in(argument)


# --- the error in a value, in words --------------------------------------------------------------------

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
# For values of the right type; filled with pydantic's own limits.
LIMITS = {
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "string_too_short": "a text of {min_length} or more characters",
    "string_too_long": "a text of {max_length} or fewer characters",
    "too_short": "a list of {min_length} or more values",
    "too_long": "a list of {max_length} or fewer values",
}
LENGTHS = {"string_too_short", "string_too_long", "too_short", "too_long"}
# A choice or a name is not secret; another text may be a URL with a password.
SHOWN = {"literal_error", "string_pattern_mismatch"}
# pydantic's names of a choice between types, after the option's name.
_CHOICES = {"int", "float", "str", "bool", "constrained-str", "constrained-int", "constrained-float"}
_CHOSEN_LIST = re.compile(r"(tuple|list|dict|function-[a-z]+)\[")  # also before the place of a value


def name_option(location: Iterable[str | int]) -> str:
    """Return the option as in the file: "datasets.rows.features", not with the type that was tried."""
    parts = [part for part in map(str, location) if not _CHOSEN_LIST.match(part)]
    while len(parts) > 1 and (parts[-1] in _CHOICES or "[" in parts[-1]):
        parts.pop()
    return ".".join(parts)


@dataclass(frozen=True)
class Wrong:
    """The error in a value.

    Attributes:
        message: whole message, if only one type was tried.
        wanted: description of the right values; empty if the message has it.
        given: description of the value; empty if the message has it.
    """

    message: str
    wanted: str = ""
    given: str = ""

    @classmethod
    def of(cls, error: Mapping[str, Any]) -> Wrong:
        """Return the error in our words.

        Args:
            error: error of pydantic, with its input.
        """
        message = str(error["msg"]).removeprefix("Value error, ")
        kind, value = str(error["type"]), error.get("input")
        wanted = WANTED.get(kind) or LIMITS.get(kind, "").format(**_short(error.get("ctx", {})))
        if not wanted:
            return cls(message)
        if kind in LENGTHS and value is not None:
            got = f"one of {len(value)}"
        else:
            got = describe_given(value, show_text=kind.endswith("_parsing") or kind in SHOWN)
        return cls(f"must be {wanted}, not {got}", wanted, got)


def _short(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits with 1 in place of 1.0."""
    return {
        name: int(limit) if isinstance(limit, float) and limit.is_integer() else limit for name, limit in limits.items()
    }


def describe_given(value: Any, *, show_text: bool) -> str:
    """Return the description of a value.

    Args:
        show_text: True to show a text itself, which may be a URL with a password.
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
    """Return the error in one option, which may have several types and fits none of them."""
    messages = list(dict.fromkeys(wrong.message for wrong in found))
    if len(messages) == 1 or not all(wrong.wanted for wrong in found):
        return " or ".join(messages)
    wanted = list(dict.fromkeys(wrong.wanted for wrong in found))
    shown = max((wrong.given for wrong in found), key=len)  # the text itself, if a type may show it
    return f"must be {' or '.join(wanted)}, not {shown}"
