"""A dangerous change of one place, and the tests that should notice it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from tests.mutants.definitions import definitions_of, modules_with, path_of

PROMISES = {
    1: "a release is charged before it leaves, and asking again gives the same answer",
    2: "the last unit of budget has one winner",
    3: "nothing counts twice",
    4: "the noise has its law",
    5: "the claimed epsilon holds",
    6: "no floating-point channel",
    7: "the accountant never under-reports",
    8: "a bad ciphertext is never decrypted",
    9: "a bad public key is never used",
    10: "ciphertexts say nothing on the side",
    11: "no overflow",
    12: "labels and features leak no further than the protocol's table says",
    13: "tampering aborts secret sharing",
    14: "the wire is hard",
    15: "only the named may",
    16: "every limit holds",
    17: "a crash loses nothing",
    18: "a bad network loses nothing",
    19: "no secrets in logs",
    20: "nothing received is executed",
    21: "a restored backup refunds nothing",
    22: "the privacy unit holds",
    23: "versions do not mix",
    24: "what is kept is guarded",
    25: "nothing private shows before its charge",
    26: "a charge is for a snapshot and a question",
    27: "nobody starves the others",
    28: "what repeats give away is counted",
    31: "a model scores the same everywhere",
    32: "the first cause is named",
}


class Change(Protocol):
    """A change of one place, as the runner tries it."""

    @property
    def name(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...

    def path_in(self, root: Path) -> Path:
        """Return the file that it changes in a copy of the project."""

    def applied_in(self, root: Path) -> str:
        """Return the text of that file with the change in it.

        Raises:
            ValueError: the change does not fit the file.
        """


@lru_cache(8)
def _meaning(text: str) -> str:
    """Return what a file means to Python. Many mutants change one file, one after the other."""
    return ast.dump(ast.parse(text))


@dataclass(frozen=True, slots=True)
class Mutant:
    """
    Args:
        promises: numbers of the PROMISES that it would break.
        place: a module and a definition in it, such as "blindfit.parties.node:PartyNode.stop": a function, a class
            or a constant.
        before: the definition has this text once; it is short, so that it outlives changes next to it.
        after: the text that the mutant has in its place.
        tests: node ids or files of pytest, from the project's root; one of them should fail.
        known: no test notices it today. When a test does, the run fails until this mark is removed.
    """

    name: str
    promises: tuple[int, ...]
    place: str
    before: str
    after: str
    tests: tuple[str, ...]
    known: bool = False

    def path_in(self, root: Path) -> Path:
        """Return the file of its module in a copy of the project."""
        return path_of(root, self.place.partition(":")[0])

    def applied_in(self, root: Path) -> str:
        """Return the text of its file in a copy of the project, with the mutant in it.

        Raises:
            ValueError: there is no such definition, `before` does not occur exactly once in it, or the result has the
                same meaning or is not Python.
        """
        path, (module, _, qualified) = self.path_in(root), self.place.partition(":")
        text = path.read_text("utf-8") if path.is_file() else ""
        place = definitions_of(text).get(qualified)
        if place is None:
            elsewhere = ", ".join(modules_with(root, qualified)) or "no module"
            raise ValueError(f"{self.name}: {module} does not define {qualified}; {elsewhere} defines it")
        definition = text[place]
        if definition.count(self.before) != 1:
            raise ValueError(f"{self.name}: `before` occurs {definition.count(self.before)} times in {self.place}")
        mutated = text[: place.start] + definition.replace(self.before, self.after) + text[place.stop :]
        if mutated == text:
            raise ValueError(f"{self.name}: `after` is `before`")
        try:
            same = ast.dump(ast.parse(mutated)) == _meaning(text)
        except SyntaxError as error:
            raise ValueError(f"{self.name}: {self.place} would not parse: {error}") from None
        if same:
            raise ValueError(f"{self.name}: nothing but comments or spaces would change")
        return mutated

    @property
    def test_files(self) -> tuple[Path, ...]:
        return tuple(Path(test.partition("::")[0]) for test in self.tests)
