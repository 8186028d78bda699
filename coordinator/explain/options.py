"""Every option of job files and party files: its kind, default, range and text, from the classes that validate it.

Pydantic's JSON schema has all of them. The text of an option is the docstring below its field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from blindfit.coordinator.job.job import JobFile
from blindfit.parties.renamed import NAME
from blindfit.parties.systems import SYSTEMS, party_class, system

JOB, PARTY = "job", "party"
KINDS = {"boolean": "true or false", "integer": "whole number", "number": "number", "string": "text"}
LIMITS = {
    "exclusiveMinimum": "above {}",
    "minimum": "{} or more",
    "exclusiveMaximum": "below {}",
    "maximum": "at most {}",
}
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """
    Attributes:
        file: the kind of file that has it: JOB or PARTY.
        path: as `--set` takes it: taylor.epochs, datasets.NAME.url.
        protocols: the systems whose jobs may have it; empty: the jobs of every system.
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
    """Return the options of job files by table, then those of party files."""
    found: dict[str, list[Option]] = {}
    for name in SYSTEMS:
        for option in options_of(JOB, system(name).job):
            found.setdefault(option.path, []).append(replace(option, protocols=(name,)))
    job = [_merge(options) for options in found.values()]
    job += options_of(JOB, JobFile)
    job.sort(key=lambda option: ("." in option.path, option.table))
    return (*job, *options_of(PARTY, party_class(tuple(SYSTEMS))))


def _merge(options: list[Option]) -> Option:
    """Return one option for all systems that have it; where they differ in more, as the first of them has it."""
    protocols = tuple(name for option in options for name in option.protocols)
    merged = replace(options[0], protocols=() if len(protocols) == len(SYSTEMS) else protocols)
    return replace(merged, kind=" | ".join(protocols), default="walr") if merged.path == "protocol" else merged


def options_of(file: str, model: type[BaseModel]) -> list[Option]:
    """Return the options of the tables of a file."""
    schema = model.model_json_schema()
    return list(_options(file, schema, schema.get("$defs", {}), ""))


def _options(file: str, table: Schema, tables: Schema, prefix: str) -> Iterator[Option]:
    """Yield the options of a table, and after them those of the tables in it."""
    below: list[Option] = []
    for name, field in table["properties"].items():
        path = f"{prefix}{name}"
        inner, is_named = _table_in(field, tables)
        if inner is not None:
            below += _options(file, inner, tables, f"{path}.{NAME}." if is_named else f"{path}.")
            continue
        default = "needed" if name in table.get("required", ()) else _format_default(field.get("default"))
        kinds, text = " | ".join(dict.fromkeys(_kinds(field))), " ".join(field.get("description", "").split())
        yield Option(file, path, kinds, default, limits_of(field), text)
    yield from below


def _table_in(field: Schema, tables: Schema) -> tuple[Schema | None, bool]:
    """Return the table that a field is, and whether there is one for each name that the user chooses."""
    for part in _parts(field):
        if "$ref" in part:
            return tables[part["$ref"].rpartition("/")[2]], False
        values = part.get("additionalProperties")
        if isinstance(values, Mapping) and "$ref" in values:
            return _table_in(values, tables)[0], True
    return None, False


def _parts(field: Schema) -> list[Schema]:
    """Return all that a field may be, but nothing at all."""
    return [part for part in field.get("anyOf", [field]) if part.get("type") != "null"]


def _kinds(field: Schema) -> Iterator[str]:
    for part in _parts(field):
        if values := part.get("enum", [part["const"]] if "const" in part else []):
            yield from (f'"{value}"' if isinstance(value, str) else str(value) for value in values)
        elif part.get("type") == "array":
            inner = part.get("prefixItems", [part.get("items", {})])
            yield f"list of {', '.join(dict.fromkeys(kind for one in inner for kind in _kinds(one)))}"
        elif part.get("type") == "object":
            yield "table of names"
        else:
            yield "path" if part.get("format") == "path" else KINDS[part["type"]]


def limits_of(field: Schema) -> str:
    """Return the range of a number in words; "" if it has none."""
    parts = [field, *_parts(field)]
    return ", ".join(
        dict.fromkeys(words.format(_number(p[limit])) for limit, words in LIMITS.items() for p in parts if limit in p)
    )


def _number(value: float) -> str:
    """Return a large power of two as one, and any other number in up to six digits."""
    if isinstance(value, int) and value >= 2**16 and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _format_default(default: Any) -> str:
    if default is None or default in ("", [], {}):
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return ", ".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) else str(default)
