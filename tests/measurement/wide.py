"""A request for wide rows."""

from __future__ import annotations

from blindfit.algorithms.privacy.ledger import Budget

WIDE = Budget(1000.0, 1e-6)
