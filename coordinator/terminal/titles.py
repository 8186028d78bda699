"""The plain title of each system, which reports, help and documents show next to its name."""

from __future__ import annotations

TITLES = {
    "walr": "One noisy sum",
    "label-dp": "Noisy labels",
    "taylor": "Vertical training with encrypted gradients",
    "falcon": "Vertical training on secret shares",
    "dp-lr": "A private model from one party's rows",
}


def with_title(system: str) -> str:
    """Return the name of a system with its title; only the name for kinds of jobs without a title."""
    return f"{system} ({TITLES[system]})" if system in TITLES else system
