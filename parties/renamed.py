"""Names that options, their values and commands had before. An old name does not work: its error gives the new name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NAME = "NAME"  # stands for the name of a table that the user chose: datasets.NAME.url

# Earlier path of an option -> its path today, in party files and in job files.
OPTIONS: dict[str, str] = {
    "align.least_common": "align.min_common",
    "policy.protocols": "policy.systems",
    "policy.least_rows": "policy.min_rows",
    "policy.least_common": "policy.min_common",
    "policy.least_linked": "policy.taylor.min_linked",
    "policy.mechanisms": "policy.label-dp.mechanisms",
    "policy.most_epsilon": "policy.max_epsilon",
    "policy.most_delta": "policy.max_delta",
    "policy.most_failed_uploads": "policy.max_failed_uploads",
    "policy.models_per_row": "datasets.NAME.models_per_row",
    "datasets.NAME.scores_may_be_solved_for": "datasets.NAME.models_per_row",
    "datasets.NAME.publish_every_h": "datasets.NAME.snapshot_every_h",
    "datasets.NAME.consumers": "datasets.NAME.active_parties",
    "datasets.NAME.holders": "datasets.NAME.passive_parties",
}
# Path of an option today -> each earlier value -> its value today; this applies to the entries of a list, too.
VALUES: dict[str, dict[str, str]] = {
    "walr.trust": {"split-labels": "two-servers", "paillier": "encrypted-rows", "shares": "shared-rows"},
    "evaluate.trust": {"split-labels": "two-servers", "paillier": "encrypted-rows", "shares": "shared-rows"},
}
# Earlier first word of a command -> its word today.
COMMANDS: dict[str, str] = {"publish": "snapshot", "audit": "attack", "calibrate": "benchmark"}


def old_names(values: Mapping[str, Any]) -> list[str]:
    """Return a line for each old name in the tables of a file or of a proposed job."""
    return [line for path, value in _options((), values) for line in _lines(path, value)]


def new_name(path: Sequence[str]) -> str:
    """Return today's name of the option with this earlier path; "" if no option had this path."""
    for old, new in OPTIONS.items():
        if _matches(old, path):
            chosen = path[old.split(".").index(NAME)] if NAME in old.split(".") else NAME
            return ".".join(chosen if part == NAME else part for part in new.split("."))
    return ""


def rename(old: str, new: str) -> str:
    """Return the line that refuses an old option."""
    return f"{old} is now {new}: rename it"


def lines_about(word: str) -> list[str]:
    """Return a line for each option that had this path or this name, and for each option that had this value."""
    if new := new_name(word.split(".")):
        return [rename(word, new)]
    options = [rename(old, new) for old, new in OPTIONS.items() if old.rpartition(".")[2] == word]
    return options + [_change(option, word, values[word]) for option, values in VALUES.items() if word in values]


def _change(option: str, old: str, new: str) -> str:
    return f'{option} = "{old}" is now "{new}": change the value'


def _options(table: tuple[str, ...], values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in values.items():
        yield (*table, name), value
        if isinstance(value, Mapping):
            yield from _options((*table, name), value)


def _lines(path: tuple[str, ...], value: Any) -> Iterator[str]:
    if new := new_name(path):
        yield rename(".".join(path), new)
    given = value if isinstance(value, list | tuple) else [value]
    for option, values in VALUES.items():
        for old in values if _matches(option, path) else ():
            if old in given:
                yield _change(".".join(path), old, values[old])


def _matches(pattern: str, path: Sequence[str]) -> bool:
    parts = pattern.split(".")
    return len(parts) == len(path) and all(p in (NAME, part) for p, part in zip(parts, path, strict=True))
