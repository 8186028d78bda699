"""Facts about every option of job files and party files.

Pydantic's JSON schema has the kind, the range and the default. The docstring below a field describes the option; its
sentences about the default, the effect and a change are facts of their own. advice.toml has the facts that a docstring
lacks, and an example.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from blindfit.coordinator.job.job import JobFile
from blindfit.coordinator.terminal.titles import with_title
from blindfit.coordinator.terminal.wording import join_names
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
SENTENCE = re.compile(r'(?<=[.!?])\s+(?=[A-Z0-9"`{])')
DEFAULT = re.compile(r"By default |The default ")
CHANGE = re.compile(r"(?:Add|Change|Choose|Give|Keep|Leave|List|Lower|Name|Raise|Set|Take) ")
EFFECT = re.compile(
    r"(?:A (?:greater|high|larger|longer|low|lower|shorter|smaller|wider)|Another|Each additional|Fewer|Lowering|More"
    r"|Raising) "
)
NAMES = {"datasets": "rows", "derive": "curve", "pairs": '"archive shop"', "populations": "people"}
"""A name for NAME in an example, by the table that has such names; other tables have names of parties."""
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """Facts about one option.

    Attributes:
        file: kind of file that has the option: JOB or PARTY.
        path: name of the option in `--set`: taylor.epochs, datasets.NAME.url.
        default: value that acts by default, or words about what acts.
        text: description of the option.
        effect: effect of a larger value, or of each value.
        when: reason to change the option.
        example: value in TOML.
        protocols: systems whose jobs may have the option; empty for all systems.
    """

    file: str
    path: str
    kind: str
    default: str
    limits: str
    text: str
    effect: str = ""
    when: str = ""
    example: str = ""
    protocols: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def toml(self) -> tuple[str, ...]:
        """Lines of a file that set the option: the head of the table, if there is one, and the value."""
        words = self.table.split(".")
        names = [
            NAMES.get(before, "shop") if word == NAME else word
            for before, word in zip(["", *words], words, strict=False)
        ]
        value = f"{self.path.rpartition('.')[2]} = {self.example}"
        return (f"[{'.'.join(names)}]", value) if self.table else (value,)


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
    """Return one option for all systems that have it, with the other facts of the first system."""
    protocols = tuple(name for option in options for name in option.protocols)
    merged = replace(options[0], protocols=() if len(protocols) == len(SYSTEMS) else protocols)
    if merged.path != "protocol":
        return merged
    named = join_names([with_title(name) for name in protocols], "or")
    return replace(merged, kind=" | ".join(protocols), default="walr", text=f"{merged.text} It is {named}.")


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
        default = "required" if name in table.get("required", ()) else _format_default(field.get("default"))
        kinds, text = " | ".join(dict.fromkeys(_kinds(field))), " ".join(field.get("description", "").split())
        yield _with_facts(Option(file, path, kinds, default, limits_of(field), text))
    yield from below


def _with_facts(option: Option) -> Option:
    """Return an option whose text is split into facts, with its advice."""
    more = advice()[option.file].get(option.path, {})
    first, *others = SENTENCE.split(option.text)
    by_kind: dict[str, list[str]] = {"text": [first], "default": [], "effect": [], "when": []}
    for sentence in others:
        patterns = {"default": DEFAULT, "when": CHANGE, "effect": EFFECT}
        kind = next((name for name, pattern in patterns.items() if pattern.match(sentence)), "text")
        by_kind[kind].append(sentence)
    default = more.get("default") or " ".join(_without_opening(sentence) for sentence in by_kind["default"])
    return replace(
        option,
        text=" ".join(by_kind["text"]),
        effect=" ".join([*by_kind["effect"], *filter(None, [more.get("effect")])]),
        when=" ".join([*by_kind["when"], *filter(None, [more.get("when")])]),
        default=": ".join(filter(None, [option.default, default])),
        example=more.get("example", ""),
    )


def _without_opening(sentence: str) -> str:
    """Return what acts by default, from a sentence such as "By default the cores of this machine."."""
    return sentence.removeprefix("By default ").rstrip(".")


@cache
def advice() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the content of advice.toml: facts by the kind of file and the path of an option."""
    return tomllib.loads(files(__package__).joinpath("advice.toml").read_text("utf-8"))


def _table_in(field: Schema, tables: Schema) -> tuple[Schema | None, bool]:
    """Return the table of a field, and True if there is one for each name that the user chooses."""
    for part in _parts(field):
        if "$ref" in part:
            return tables[part["$ref"].rpartition("/")[2]], False
        values = part.get("additionalProperties")
        if isinstance(values, Mapping) and "$ref" in values:
            return _table_in(values, tables)[0], True
    return None, False


def _parts(field: Schema) -> list[Schema]:
    """Return the kinds of a field, without null."""
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
    """Return a large power of two as 2^n, and any other number in up to six digits."""
    if isinstance(value, int) and value >= 2**16 and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _format_default(default: Any) -> str:
    """Return the default value as text; an empty text if only words can describe the default."""
    if default is None or default in ("", [], {}):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, list):
        return ", ".join(map(str, default))
    if isinstance(default, int):
        return f"{default:,}"
    return f"{default:g}" if isinstance(default, float) else str(default)
