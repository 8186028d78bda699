"""The network between the parties of a job that runs on one machine, such as "40ms 100mbit". No party receives it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, model_validator

from blindfit.parties.tables import Settings

DURATIONS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
RATES = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
MOST_DELAY_S = 1.0  # opening a connection takes six delays, and parties give up after ten seconds
LEAST_BITS_PER_S, MOST_BITS_PER_S = 1e4, 1e9  # one core carries about twice as much
QUANTITY = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)([a-zA-Z]*)")
FORM = 'write a latency, a jitter and a bandwidth, such as "40ms", "100mbit", "40ms 100mbit" or "40ms 5ms 100mbit"'


def _quantity(text: str, units: Mapping[str, float], example: str) -> float:
    """Return the value of a text such as 40ms in seconds, or of 100mbit in bits per second.

    Raises:
        ValueError: the text is wrong.
    """
    found = QUANTITY.fullmatch(text)
    if found is None or found[2].lower() not in units:
        *others, last = units
        raise ValueError(f"{text!r} is not a number and a unit: {', '.join(others)} or {last}, such as {example}")
    return float(found[1]) * units[found[2].lower()]


def _check_delay(text: str) -> str:
    if not 0 < _quantity(text, DURATIONS, "40ms") <= MOST_DELAY_S:
        raise ValueError(f"{text} must be above 0 and at most {MOST_DELAY_S:g}s; leave it out for no delay")
    return text


def _check_rate(text: str) -> str:
    if not LEAST_BITS_PER_S <= _quantity(text, RATES, "100mbit") <= MOST_BITS_PER_S:
        least, most = LEAST_BITS_PER_S / 1e3, MOST_BITS_PER_S / 1e9
        raise ValueError(f"{text} must be {least:g}kbit to {most:g}gbit; leave it out for no limit")
    return text


def _as_text(value: object) -> object:
    """Return a number as a text, whose error then names the units."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Delay = Annotated[str, BeforeValidator(_as_text), AfterValidator(_check_delay)]
Rate = Annotated[str, BeforeValidator(_as_text), AfterValidator(_check_rate)]


@dataclass(frozen=True)
class Line:
    """One direction of the link between two parties.

    Attributes:
        latency_s: one-way latency.
        jitter_s: largest additional delay of a packet.
        bits_per_s: bandwidth; None for no limit.
    """

    latency_s: float = 0.0
    jitter_s: float = 0.0
    bits_per_s: float | None = None


class LinkSettings(Settings):
    """Delay and bandwidth of the link between two parties."""

    latency: Delay | None = None
    """One-way latency, such as "40ms": a message and its answer take twice as long. Raising it slows down systems with
    many rounds. By default nothing is delayed. Units: us, ms, s."""
    jitter: Delay | None = None
    """Longest additional delay of a packet, such as "5ms". Each packet draws its own; packets keep their order. By
    default every packet takes the latency."""
    bandwidth: Rate | None = None
    """Bandwidth in each direction, in bits per second, such as "100mbit". Lowering it slows down systems that send many
    bytes. By default it has no limit. Units: kbit, mbit, gbit."""

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, given: Any) -> Any:
        return _tables_of(given) if isinstance(given, str) else given

    @model_validator(mode="after")
    def _sets_something(self) -> Self:
        if not any(value for _, value in self):
            raise ValueError(f"it sets nothing: {FORM}")
        return self

    def in_words(self) -> str:
        return ", ".join(self._words())

    def _words(self) -> Iterator[str]:
        if self.latency is not None:
            latency_s = _quantity(self.latency, DURATIONS, "")
            yield f"{delay_in_words(latency_s)} one way ({delay_in_words(2 * latency_s)} there and back)"
        if self.jitter is not None:
            yield f"up to {delay_in_words(_quantity(self.jitter, DURATIONS, ''))} of jitter"
        if self.bandwidth is not None:
            yield bits_in_words(_quantity(self.bandwidth, RATES, ""))

    def line(self) -> Line:
        return Line(
            0.0 if self.latency is None else _quantity(self.latency, DURATIONS, ""),
            0.0 if self.jitter is None else _quantity(self.jitter, DURATIONS, ""),
            None if self.bandwidth is None else _quantity(self.bandwidth, RATES, ""),
        )


class PairSettings(LinkSettings):
    """Link between two parties that differs from the others; NAME is both of their names, such as "archive shop"."""

    latency: Delay | None = None
    """One-way latency between the two parties that NAME names, such as "archive shop". By default that of [network]."""
    jitter: Delay | None = None
    """Longest additional delay of a packet between these two parties. By default that of [network]."""
    bandwidth: Rate | None = None
    """Bandwidth in each direction between these two parties. By default that of [network]."""


class NetworkSettings(LinkSettings):
    """Network that `blindfit run` simulates between the parties, such as "40ms 100mbit"; by default none."""

    pairs: dict[str, PairSettings] = {}

    @model_validator(mode="after")
    def _names_each_pair_once(self) -> Self:
        seen: set[frozenset[str]] = set()
        for pair in self.pairs:
            names = frozenset(pair.split())
            if len(pair.split()) != 2 or len(names) != 2:
                raise ValueError(f'pairs: {pair!r} is not the names of two parties, such as "archive shop"')
            if names in seen:
                raise ValueError(f"pairs: {' and '.join(sorted(names))} stand there twice, remove one")
            seen.add(names)
        return self

    def find_unknown(self, parties: Iterable[str]) -> list[str]:
        """Return the names in `pairs` of parties that the job does not have."""
        return sorted({name for pair in self.pairs for name in pair.split()} - set(parties))

    def line_between(self, one: str, other: str) -> Line:
        """Return one direction of the link between two parties; the other direction is the same."""
        own = next((link for pair, link in self.pairs.items() if set(pair.split()) == {one, other}), None)
        return self.line() if own is None else self.model_copy(update=own.model_dump(exclude_none=True)).line()

    def in_words(self) -> str:
        """Return the network in words, for a report."""
        said = [super().in_words()]
        said += [f"{' and '.join(pair.split())}: {link.in_words()}" for pair, link in self.pairs.items()]
        return "; ".join(filter(None, said))


def _tables_of(text: str) -> dict[str, str]:
    """Return a text such as "40ms 5ms 100mbit" as the options it stands for.

    Raises:
        ValueError: the text has another form.
    """
    words = text.split()
    delays = [word for word in words if _has_unit(word, DURATIONS)]
    rates = [word for word in words if _has_unit(word, RATES)]
    unknown = [word for word in words if word not in (*delays, *rates)]
    if unknown:
        units = ", ".join(DURATIONS | RATES)
        raise ValueError(f"{unknown[0]!r} is not a number and a unit (units: {units}); {FORM}")
    if not words or len(delays) > 2 or len(rates) > 1 or words != delays + rates:
        raise ValueError(f"{text!r} has another form: {FORM}")
    return dict([*zip(("latency", "jitter"), delays, strict=False), *(("bandwidth", rate) for rate in rates)])


def _has_unit(word: str, units: Mapping[str, float]) -> bool:
    found = QUANTITY.fullmatch(word)
    return found is not None and found[2].lower() in units


def delay_in_words(seconds: float) -> str:
    return f"{seconds * 1e3:g} ms" if seconds < 1 else f"{seconds:g} s"


def bits_in_words(bits_per_s: float) -> str:
    name, unit = next((name, unit) for name, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)) if bits_per_s >= unit)
    return f"{bits_per_s / unit:g} {name}bit/s"
