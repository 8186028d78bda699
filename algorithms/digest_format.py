"""Write a field into a digest that outlives the code which computes it.

A party keeps digests of what it was asked, what it charged, what it counted and how a dataset was described. A later
version of Blindfit compares them with digests of its own, so one question must have one digest for ever. Each kind of
digest has a `DigestFormat`: it keeps the names and the values of the digest's first version, even if the code has
renamed them since.

Give a changed field an entry in the format of every digest that covers the field:

| change                    | entry                                                                       |
|---------------------------|-----------------------------------------------------------------------------|
| rename a field            | `renamed={"name now": "name in the digest"}`                                 |
| rename a value of a field | `values={"name in the digest": {"value now": "value in the digest"}}`        |
| add a field               | `added={"name": value}`, the value under which nothing differs from before   |
| remove a field            | `removed={"name": value}`, the value under which nothing differs from today  |

A field whose value is None is in no digest of a job or of a label release: a new option with the default None needs no
entry there. tests/store/test_digests.py compares every digest with that of the first version, and fails where an entry
is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[Any, Any]


@dataclass(frozen=True)
class DigestFormat:
    """
    Args:
        renamed: name in the code -> name in the digest.
        values: name in the digest -> value in the code -> value in the digest; also applies inside lists.
        added: name in the digest of a field that the first version did not have -> the value that means "as before".
        removed: name in the digest of a field that the code no longer has -> the value that means "as today"; the
            digest has "table.name" where the job still has other options of the table.

    Raises:
        ValueError: two names, or two values of one field, would have the same digest.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Values] = field(default_factory=dict)
    added: Mapping[str, Any] = field(default_factory=dict)
    removed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table in (self.renamed, *self.values.values()):
            if len(set(table.values())) < len(table):
                raise ValueError(f"two of {', '.join(map(repr, table))} have one name in the digest")

    def fields(self, current: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields under the names and with the values of the digest."""
        named = {self.renamed.get(name, name): value for name, value in current.items()}
        written = {name: _replace(value, self.values.get(name, {})) for name, value in named.items()}
        gone = {name: value for name, value in self.removed.items() if _has_table_of(name, written)}
        return gone | {n: value for n, value in written.items() if n not in self.added or value != self.added[n]}

    def restore(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields that `fields` wrote under the names and with the values of the code."""
        names = {old: now for now, old in self.renamed.items()}
        present = {name: value for name, value in {**self.added, **written}.items() if name not in self.removed}
        return {names.get(name, name): _replace(value, self._values_now(name)) for name, value in present.items()}

    def _values_now(self, name: str) -> Values:
        return {old: now for now, old in self.values.get(name, {}).items()}


def _has_table_of(name: str, written: Mapping[str, Any]) -> bool:
    """Return whether the fields include another one of the table that had `name`."""
    table = name.rpartition(".")[0]
    return not table or any(other.startswith(f"{table}.") for other in written)


def _replace(value: Any, values: Values) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_replace(item, values) for item in value)
    return values.get(value, value) if values and not isinstance(value, dict) else value
