"""Faults that a person orders, to study the end of a job: `kill archive at epoch 3`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.running.progress import EPOCH
from blindfit.coordinator.terminal.wording import duration, join_names, plain
from blindfit.parties.data.origin import near_names
from blindfit.parties.settings import PARTY_NAME

Verb = Literal["kill", "freeze", "cut", "restart"]
VERBS: tuple[Verb, ...] = ("kill", "freeze", "cut", "restart")
LASTING = ("freeze", "cut")  # verbs of faults that may end
MAX_S = 86_400.0
MAX_CHARS = 200
STEPS_NAMED = 12
FORM = (
    'write a fault such as "kill shop at epoch 3", "freeze shop after 2s for 5s" or '
    '"cut shop at step read rows for 10s"'
)
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0}
_WORDS = re.compile(
    r"(?P<verb>\S+) (?P<party>\S+) (?:at (?P<at>.+?)|after (?P<after>\S+))(?: for (?P<for>[-+.\d]\S*))?"
)
_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|min)")


@dataclass(frozen=True)
class Fault:
    """A fault of one party at one moment of a job.

    Attributes:
        text: text of the person.
        epoch: epoch at which it happens; 0 if it does not depend on an epoch.
        step: step at which it happens, in the words of a progress line.
        after_s: seconds after the start of the job at which it happens; None if it does not depend on time.
        for_s: seconds after which it ends; None if it stays.
    """

    text: str
    verb: Verb
    party: str
    epoch: int = 0
    step: str = ""
    after_s: float | None = None
    for_s: float | None = None

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read a person's text.

        Raises:
            ConfigError: the text is wrong; one line names the error.
        """
        words = " ".join(text.split())
        if not words.isprintable() or len(words) > MAX_CHARS:
            raise _mistake(text, f"the text must have at most {MAX_CHARS} printable characters", FORM)
        found = _WORDS.fullmatch(words)
        if found is None:
            raise _mistake(text, "the text does not name a verb, a party and a moment", FORM)
        verb, party, at = found["verb"], found["party"], found["at"]
        if verb not in VERBS:
            raise _mistake(text, f"the verb {verb} is unknown", f"use {join_names(VERBS, 'or')}")
        if re.fullmatch(PARTY_NAME, party) is None:
            raise _mistake(text, f"{party} is not a party's name", FORM)
        if found["for"] and verb not in LASTING:
            raise _mistake(text, f'{verb} takes no "for"', "remove it: only freeze and cut end after a time")
        for_s = None if found["for"] is None else _seconds(text, found["for"])
        fault = cls(words, cast(Verb, verb), party, for_s=for_s)
        if at is None:
            return replace(fault, after_s=_seconds(text, found["after"]))
        return replace(fault, after_s=0.0) if at == "start" else _at_step(fault, at)

    def is_at(self, step: str) -> bool:
        """Return True if the fault happens when a party reports this step.

        A later epoch counts: short ones go unreported.
        """
        epoch = EPOCH.match(step)
        if self.epoch:
            return epoch is not None and int(epoch[1]) >= self.epoch
        return bool(self.step) and (step == self.step or step.startswith(f"{self.step}, "))

    def explain_absence(self, steps: Collection[str]) -> str:
        """Return why the fault never happened, after the job has ended.

        Args:
            steps: steps that the parties reported.
        """
        if self.epoch:
            return f"the job had no epoch {self.epoch}"
        if self.step:
            reported = join_names(sorted(steps), most=STEPS_NAMED) if steps else "none"
            return f"no party reported the step {self.step}; the steps that they reported: {reported}"
        return f"the job ended before {duration(self.after_s or 0.0)} had passed"


def parse_faults(texts: Sequence[str]) -> tuple[Fault, ...]:
    """Return the faults, at most one for each party.

    Raises:
        ConfigError: a text is wrong; one line names the error.
    """
    faults = tuple(map(Fault.parse, texts))
    for place, fault in enumerate(faults):
        if twin := next((other for other in faults[:place] if other.party == fault.party), None):
            raise ConfigError(
                f'{fault.party} has two faults: "{twin.text}" and "{fault.text}"',
                hint="give each party at most one fault, and run the job again for the other",
            )
    return faults


def check_faults(faults: Sequence[Fault], parties: Collection[str]) -> None:
    """Raise ConfigError: a fault names a party that the job does not have, or cuts a party that has no peer."""
    for fault in faults:
        if fault.verb == "cut" and len(parties) == 1:
            raise _mistake(fault.text, "the job has one party, and so no connection to cut", "use kill or freeze")
        if fault.party not in parties:
            hint = near_names(fault.party, list(parties), "parties of the job")
            raise _mistake(fault.text, f"the job has no party {fault.party}", hint)


def _at_step(fault: Fault, at: str) -> Fault:
    if at.startswith("start ") or re.search(r" for [-+.\d]", at):
        raise _mistake(fault.text, f"{plain(at)} is not a moment", FORM)
    if at.split()[0] != "epoch":
        return replace(fault, step=at.removeprefix("step "))
    number = at.removeprefix("epoch").strip()
    if not (number.isascii() and number.isdigit() and len(number) <= 5 and int(number)):
        raise _mistake(fault.text, f"{plain(number) or 'nothing'} is not an epoch", "use a number from 1 to 99999")
    return replace(fault, epoch=int(number))


def _seconds(text: str, amount: str) -> float:
    found = _TIME.fullmatch(amount)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not 0 < seconds <= MAX_S:
        raise _mistake(
            text, f"{amount} is not a time from 1ms to 1440min", 'write a time such as "500ms", "5s" or "2min"'
        )
    return seconds


def _mistake(text: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f'fault "{plain(text)}": {plain(what)}', hint=plain(hint))
