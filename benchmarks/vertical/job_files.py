"""Files of a job between processes on this machine, of data parties and a key node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

Roles = Mapping[str, str]


def write_parties(base: Path, roles: Roles, party_file: Callable[[str, Roles], str]) -> str:
    """Write each party's file, and return the tables of the parties for the job file."""
    tables = ""
    for name, role in roles.items():
        dataset = "" if role == "key-node" else 'dataset = "rows"\n'
        tables += f'[parties.{name}]\nrole = "{role}"\nconfig = "{name}.toml"\n{dataset}'
        (base / f"{name}.toml").write_text(party_file(name, roles))
    return tables


def begin_party_file(name: str, roles: Roles, system: str, policy: str) -> str:
    """Return a party file up to its peers.

    Args:
        policy: further lines of [policy].
    """
    text = f'name = "{name}"\nrole = "{roles[name]}"\ndata_dir = "state/{name}"\n'
    text += f'[policy]\nsystems = ["{system}"]\n{policy}'
    text += '[identity]\ncertificate = "-"\nkey = "-"\nauthority = "-"\n[peers.coordinator]\nrole = "coordinator"\n'
    return text + "".join(f'[peers.{peer}]\nrole = "{role}"\n' for peer, role in roles.items() if peer != name)
