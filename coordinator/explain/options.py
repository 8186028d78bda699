"""Every option of job files and party files: its kind, default and range as it is validated, and what it is for.

What it is for stands beside it in the code: in the comment at its line or above it, or in its class's docstring.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import annotated_types as at
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from blindfit.coordinator.job.job import JobFile
from blindfit.parties.settings import PartySettings
from blindfit.parties.systems import SYSTEMS, system
from blindfit.parties.tables import option_of

NAME = "NAME"  # stands for whatever somebody calls it
JOB, PARTY = "job", "party"
KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}


@dataclass(frozen=True)
class Option:
    """
    Attributes:
        file: of jobs, or of parties.
        path: as it is written with --set: taylor.epochs, datasets.NAME.url.
        protocols: of the jobs that may have it; empty: of any.
    """

    file: str
    path: str
    kind: str
    default: str
    limits: str
    text: str
    protocols: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        return self.path.rpartition(".")[0]


@lru_cache
def all_options() -> tuple[Option, ...]:
    """Those of jobs by table, then those of parties."""
    found: dict[str, list[Option]] = {}
    for name in SYSTEMS:
        for option in _options(JOB, system(name).job, "", name):
            found.setdefault(option.path, []).append(option)
    job = [_merged(options) for options in found.values()]
    job += _options(JOB, JobFile, "")
    return (*sorted(job, key=lambda option: ("." in option.path, option.table)), *_options(PARTY, PartySettings, ""))


def _merged(options: list[Option]) -> Option:
    """The same option of several systems; where they differ in more, the first one's."""
    protocols = tuple(name for option in options for name in option.protocols)
    first = options[0]
    everywhere = len(protocols) == len(SYSTEMS)
    return Option(
        first.file,
        first.path,
        first.kind if first.path != "protocol" else " | ".join(protocols),
        first.default if first.path != "protocol" else "walr",
        first.limits,
        first.text,
        () if everywhere else protocols,
    )


def _options(file: str, model: type[BaseModel], prefix: str, protocol: str = "") -> list[Option]:
    texts = texts_of(model)
    found = []
    for field_name, field in model.model_fields.items():
        name = option_of(model, field_name)
        path = f"{prefix}{name}"
        inner, is_named = _table_in(field.annotation)
        if inner is not None:
            found += _options(file, inner, f"{path}.{NAME}." if is_named else f"{path}.", protocol)
            continue
        protocols = (protocol,) if protocol else ()
        kind, limits = kind_of(field)
        found.append(Option(file, path, kind, _default(field), limits, texts.get(name, ""), protocols))
    return found


def _table_in(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The table that a field is, and whether it is one for each name."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    for inner in typing.get_args(annotation):
        found, _ = _table_in(inner)
        if found is not None:
            return found, typing.get_origin(annotation) is dict
    return None, False


# --- kind, default, range ------------------------------------------------------------------------------


def kind_of(field: FieldInfo) -> tuple[str, str]:
    """In words; and the range."""
    limits = list(field.metadata)
    kinds = list(dict.fromkeys(_kinds(field.annotation, limits)))
    return " | ".join(kinds), _in_words(limits)


def _kinds(annotation: Any, limits: list[Any]) -> Iterator[str]:
    """What a field may be; appends the limits that its parts have."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        for data in arguments[1:]:
            limits += [data] if not isinstance(data, FieldInfo) else data.metadata
        yield from _kinds(arguments[0], limits)
    elif origin is Literal:
        yield from (f'"{value}"' if isinstance(value, str) else str(value) for value in arguments)
    elif origin in (typing.Union, types.UnionType):
        for one in arguments:
            if one is not type(None):
                yield from _kinds(one, limits)
    elif origin in (tuple, list):
        inner = ", ".join(dict.fromkeys(k for one in arguments if one is not Ellipsis for k in _kinds(one, [])))
        yield f"list of {inner}"
    elif origin is dict:
        yield "table of names"
    else:
        yield KINDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _in_words(limits: list[Any]) -> str:
    low = high = ""
    said = []
    for limit in limits:
        if isinstance(limit, at.Gt):
            low = f"above {_number(limit.gt)}"
        elif isinstance(limit, at.Ge):
            low = f"{_number(limit.ge)} or more"
        elif isinstance(limit, at.Lt):
            high = f"below {_number(limit.lt)}"
        elif isinstance(limit, at.Le):
            high = f"at most {_number(limit.le)}"
    said = [word for word in (low, high) if word]
    return ", ".join(said)


def _number(value: Any) -> str:
    """A large power of two as one; any other in up to six digits."""
    if isinstance(value, int) and value >= 2**16 and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _default(field: FieldInfo) -> str:
    value = field.default_factory() if field.default_factory else field.default  # type: ignore[call-arg]
    if value is PydanticUndefined:
        return "needed"
    if value is None or value in ("", (), [], {}):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- what it is for, from the code ------------------------------------------------------------------------


@lru_cache
def texts_of(model: type[BaseModel]) -> dict[str, str]:
    """By field, those of the classes that it extends included."""
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            texts |= _texts_in(kind)
    return texts


def _texts_in(kind: type[BaseModel]) -> dict[str, str]:
    source = textwrap.dedent(inspect.getsource(kind))
    lines = source.splitlines()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.lstrip("# ").rstrip() for t in tokens if t.type == tokenize.COMMENT}
    (declared,) = ast.parse(source).body
    found = dict(_attributes(inspect.getdoc(kind) or ""))
    for node in declared.body if isinstance(declared, ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = comments.get(node.lineno - 1, "") if lines[node.lineno - 2].lstrip().startswith("#") else ""
            beside = comments.get(node.lineno) or comments.get(node.end_lineno or 0)
            if said := beside or above:
                found[node.target.id] = said
    return found


def _attributes(doc: str) -> Iterator[tuple[str, str]]:
    """Of a docstring's list of attributes."""
    _, _, listed = doc.partition("Attributes:\n")
    name, text = "", ""
    for line in listed.splitlines():
        if line.startswith("     ") or not line.strip():
            text += " " + line.strip()
            continue
        if name:
            yield name, text.strip()
        name, _, text = line.strip().partition(": ")
    if name:
        yield name, text.strip()
