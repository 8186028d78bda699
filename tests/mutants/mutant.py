"""A dangerous change of one place, and the tests that should notice it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

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


@lru_cache(8)
def _meaning(text: str) -> str:
    """Of a file that many mutants are made of, one after the other."""
    return ast.dump(ast.parse(text))


@dataclass(frozen=True, slots=True)
class Mutant:
    """
    Args:
        promises: which of PROMISES it would break.
        file: from the project's root.
        before: occurs once in the file; short, and without imports and paths, so that it outlives moves.
        after: what stands there in the mutant.
        tests: node ids or files of pytest, from the project's root; one of them should fail.
        known: nothing notices it today; when something does, the run fails until the mark is gone.
    """

    name: str
    promises: tuple[int, ...]
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    known: bool = False

    def applied_to(self, text: str) -> str:
        """Raises ValueError: `before` does not occur exactly once, or what comes out is the same or no Python."""
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: `before` occurs {text.count(self.before)} times in {self.file}")
        mutated = text.replace(self.before, self.after)
        if mutated == text:
            raise ValueError(f"{self.name}: `after` is `before`")
        if self.file.endswith(".py"):
            try:
                same = ast.dump(ast.parse(mutated)) == _meaning(text)
            except SyntaxError as error:
                raise ValueError(f"{self.name}: {self.file} would not parse: {error}") from None
            if same:
                raise ValueError(f"{self.name}: nothing but comments or spaces would change")
        return mutated

    @property
    def test_files(self) -> tuple[Path, ...]:
        return tuple(Path(test.partition("::")[0]) for test in self.tests)
