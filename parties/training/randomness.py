"""Where a training's split and batches come from: drawn once for the people and the parties, and used again.

A new snapshot of a party keeps the draw: otherwise its owner could publish a table again until the draw pleases.

Nobody who proposes a job chooses who is held out. On one machine, where the party's file says so, a job's `seed` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.protocols import draw
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.account.account import MOST_MEMBERSHIP, Account
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session

EVENT = "draw of who is held out"


def own_randomness(party: Party, session: Session[TrainingParameters]) -> PublicRandomness:
    """Return the split of rows that only this party has: the same for every job on the snapshot."""
    if session.job.seed is not None:
        return PublicRandomness.from_seed(session.job.seed)
    return PublicRandomness(party.secret.derive("split of a snapshot", bytes.fromhex(session.published.id)))


async def draw_together(
    party: Party, session: Session[TrainingParameters], data_parties: Sequence[str]
) -> PublicRandomness:
    """Return the split that all data parties know: drawn by commit and reveal, once for their people.

    Raises:
        PolicyRefused: too many draws were begun for this party's people.
    """
    if session.job.seed is not None:
        return PublicRandomness.from_seed(session.job.seed)
    context = parameters_digest({"data_parties": ",".join(data_parties)})
    others = [name for name in data_parties if name != session.me.name]
    account = Account.of(party.settings, session.me.dataset)
    kept = f"{context.hex()} {account.population}"
    known = _find(party, session, data_parties, kept)

    def begin() -> None:
        with party.store.transaction() as transaction:
            before = [entry for entry in account.entries(transaction, "membership") if entry.event == EVENT]
            if len(before) >= MOST_MEMBERSHIP:
                reason = (
                    f"{MOST_MEMBERSHIP} draws of who is held out were begun for the people of {session.me.dataset}, "
                    "and more would place some of them: its operator can start the account again "
                    "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)"
                )
                raise PolicyRefused(party=session.me.name, field="split", reason=reason)
            transaction.begin_draw(kept)
            about, read = ",".join(others), (session.published.id, session.id)
            transaction.add_disclosure(account.entry("membership", about, others, EVENT, session.id, 1, read))

    drawn = await draw.run_data_party(known, context, session.me.name, others, session.channel, begin=begin)
    if drawn != known:
        with party.store.transaction() as transaction:
            transaction.end_draw(kept, drawn.key)
    return drawn


def _find(
    party: Party, session: Session[TrainingParameters], data_parties: Sequence[str], kept: str
) -> PublicRandomness | None:
    """Return what was drawn before; a draw of an older version belongs to the snapshots that it was made for."""
    reader = party.store.reader()
    _, key = reader.draw(kept)
    if key:
        return PublicRandomness(key)
    older = parameters_digest({name: session.snapshots.get(name, "") for name in data_parties})
    _, key = reader.draw(older.hex())
    return PublicRandomness(key, orders_by_count=True) if key else None


def name_randomness(randomness: PublicRandomness) -> str:
    """What a charge calls it; whoever does not know it learns nothing."""
    return hashlib.sha256(b"blindfit public randomness named v1/" + randomness.key).hexdigest()
