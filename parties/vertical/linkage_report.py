"""Facts of a linkage for the key node's operator, and for no data party: number of matches, likeness, number of errors.

The key node writes them next to its transcript, for its owner only.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from blindfit.algorithms.protocols.linkage import LinkageSummary

EFFECT = (
    "A wrong match is noise in the second party's features: its weights shrink, the more so the better it predicts. "
    "Missed matches cost rows, and bias a model only if the missed rows differ from the others."
)
TOO_LOW = "The ends of wrong_share lie far apart: the threshold is too low for so few matches; raise align.threshold."
FAR = 0.05


def content_of(summary: LinkageSummary) -> dict[str, Any]:
    """Return the report that only the key node's operator may read: it would reveal too much to a data party."""
    errors, bars = summary.errors, summary.histogram
    least, most = errors.wrong_share
    return {
        "for": "only the key node's operator",
        "records": list(summary.sizes),
        "matches": summary.n_matches,
        "threshold": summary.threshold,
        "expected_errors": {
            "wrong_share": [round(least, 4), round(most, 4)],
            "missed_share": round(errors.missed_share, 4),
        },
        "similarities": [
            {"from": round(low, 4), "to": round(high, 4), "matches": matched, "best_non_matches": other}
            for (low, high), matched, other in zip(
                pairwise(bars.edges), bars.matches, bars.best_non_matches, strict=True
            )
        ],
        "what_errors_do": EFFECT if most - least < FAR else f"{EFFECT} {TOO_LOW}",
    }
