"""Assumptions of a WALR plan about labels: a rate and a strength, the last model, or public weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blindfit.algorithms.errors import ConfigError
from blindfit.algorithms.statistics.linear.logistic import scores, sigmoid
from blindfit.algorithms.statistics.linear.pretraining import Pretrained
from blindfit.algorithms.statistics.walr.forecast import Assumed
from blindfit.coordinator.plan.asked import Asked
from blindfit.coordinator.preflight.parties import PartyHere
from blindfit.coordinator.walr.rows import Read
from blindfit.parties.data.source import Source
from blindfit.parties.walr.start import read_known_model

BASE_RATE, STRENGTH = 0.1, 1.0  # if the command line gives no value


def assume(read: Read, source: Source, active: PartyHere, asked: Asked) -> tuple[Assumed, list[tuple[str, str]]]:
    if asked.strength is not None and asked.model is not None:
        raise ConfigError("--strength does nothing with --model, because a model has its own strength: remove one")
    known, where = _find_model(read, source, active, asked)
    if known is None:
        rate, strength = asked.base_rate, asked.strength
        assumed = Assumed(BASE_RATE if rate is None else rate, STRENGTH if strength is None else strength)
        guessed = [name for name, given in (("--base-rate", rate), ("--strength", strength)) if given is None]
        text = f"scores of standard deviation {assumed.strength:g} in a random direction of the features"
        return assumed, [("assumed", f"{_rate(assumed)}, {text}"), *_list_guesses(guessed)]
    weights = read.weights_of(known)
    intercept = 0.0 if read.job.walr.intercept else _constant(known, read)
    z = scores(read.rows, weights) + intercept
    rate = float(sigmoid(z).mean()) if asked.base_rate is None else asked.base_rate
    assumed = Assumed(rate, theta=weights)
    facts = [("assumed", f"{_rate(assumed)}, scores from {where}, of standard deviation {z.std():.3g}")]
    if read.init is not None and asked.model is None:
        facts.append(("", "the fit shrinks towards the same weights, which is the best case"))
    return assumed, facts


def _find_model(read: Read, source: Source, active: PartyHere, asked: Asked) -> tuple[Pretrained | None, str]:
    if asked.model is not None:
        return read_known_model(asked.model, source), str(asked.model)
    if read.init is not None and asked.strength is None:
        return read.init, f"the weights of {active.base_dir / str(read.job.walr.init)}"
    return None, ""


def _constant(model: Pretrained, read: Read) -> float:
    """Return what the model adds to all scores if the rows have no constant column."""
    return float(model.weights_for(read.prepared.standardiser, intercept=True)[-1])


def _rate(assumed: Assumed) -> str:
    return f"{assumed.base_rate:.3g} of the labels positive"


def _list_guesses(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    if options:
        yield "", f"these values are defaults: give {' and '.join(options)}, or a known model (--model)"
