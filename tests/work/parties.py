"""Settings of a party with workers."""

from __future__ import annotations

from typing import Any

from blindfit.parties.settings import PartySettings
from blindfit.parties.tables import validate


def party(**compute: Any) -> PartySettings:
    values = {
        "name": "shop",
        "role": "active",
        "identity": {"certificate": "ca/shop.pem", "key": "ca/shop.key", "authority": "ca/authority.pem"},
        "peers": {"coordinator": {"role": "coordinator"}},
        "compute": compute,
    }
    return validate(values, PartySettings, source="shop.toml")
