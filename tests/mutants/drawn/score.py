"""Try mutants that a seed draws, each with tests that run its line, and print how many the tests notice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tests.mutants.drawn.draw import Drawn
from tests.mutants.drawn.record import Record
from tests.mutants.run import Result, Trial

LEAST = 0.95  # share of the mutants that are not equivalent


class Tries(Protocol):
    def results(self, trials: Sequence[Trial]) -> list[Result]:
        """Return the tests' output for each trial."""


def score(
    tries: Tries,
    mutants: Sequence[Drawn],
    record: Record,
    equivalent: Mapping[tuple[str, str, str], str],
    *,
    seconds: float,
    say: Callable[[str], None],
) -> bool:
    """Return whether the tests notice enough of the mutants.

    Args:
        equivalent: reason why a mutant's change cannot be noticed, by its key.
        seconds: the recorded time of the tests that are run for one mutant, at most.
    """
    chosen = {mutant: record.chosen_for(mutant, seconds) for mutant in mutants}
    asked = [mutant for mutant in mutants if chosen[mutant] and mutant.key not in equivalent]
    results = tries.results([Trial(mutant.name, chosen[mutant], mutant) for mutant in asked])
    if fault := _find_fault_without_a_mutant(tries, results):
        say(f"{fault}\nTests that noticed a mutant do not pass without one")
        return False
    survivors = [mutant for mutant, result in zip(asked, results, strict=True) if result.outcome == "survived"]
    unasked = [mutant for mutant in mutants if not chosen[mutant] and mutant.key not in equivalent]
    for mutant in (*survivors, *unasked):
        say(f"\nsurvived: {mutant.operator}: {mutant.name}")
        say(
            f"  {len(chosen[mutant])} of the {len(record.tests_of(mutant))} tests that run it: {_pages(chosen[mutant])}"
        )
    same = [mutant for mutant in mutants if mutant.key in equivalent]
    for mutant in same:
        say(f"\nequivalent: {mutant.name}\n  {equivalent[mutant.key]}")
    late = [result.name for result in results if result.outcome == "timed out"]
    broken = [result.name for result in results if result.outcome == "error"]
    for name in (*late, *broken):
        say(f"\nnoticed by no test, but {'by a deadline' if name in late else 'its tests cannot run'}: {name}")
    counted = len(mutants) - len(same)
    noticed = counted - len(survivors) - len(unasked)
    say(
        f"\n{len(mutants)} mutants: {noticed} of {counted} noticed ({noticed / max(counted, 1):.1%}; {len(late)} by a "
        f"deadline, {len(broken)} as their tests cannot run), {len(same)} equivalent"
    )
    return noticed >= LEAST * counted


def _find_fault_without_a_mutant(tries: Tries, results: Sequence[Result]) -> str:
    """Run the tests that noticed a mutant again, all without one; return pytest's output if one fails."""
    noticed = {result.output for result in results if result.outcome == "noticed" and "::" in result.output}
    if not noticed:
        return ""
    [control] = tries.results([Trial("the tests that noticed", tuple(sorted(noticed)))])
    return "" if control.outcome == "survived" else control.output


def _pages(tests: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(test.partition("::")[0] for test in tests))
