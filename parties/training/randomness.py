"""Where a training's split and batches come from: drawn once for the snapshots that it reads, and used again.

Nobody who proposes a job chooses who is held out. On one machine, where the party's file says so, a job's `seed` does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from blindfit.algorithms.errors import PolicyRefused
from blindfit.algorithms.messages import parameters_digest
from blindfit.algorithms.protocols import draw
from blindfit.algorithms.randomness import PublicRandomness
from blindfit.parties.job.parameters import TrainingParameters
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session

MOST_DRAWS = 16  # for the same snapshots and parties: who ends draws early could choose among so many


def own_randomness(party: Party, session: Session[TrainingParameters]) -> PublicRandomness:
    """Of a split that concerns the rows of this party alone: the same for every job on the snapshot."""
    if session.job.seed is not None:
        return PublicRandomness.from_seed(session.job.seed)
    return PublicRandomness(party.secret.derive("split of a snapshot", bytes.fromhex(session.published.id)))


async def draw_together(
    party: Party, session: Session[TrainingParameters], data_parties: Sequence[str]
) -> PublicRandomness:
    """Of a split that all data parties know: drawn by commit and reveal, once for their snapshots.

    Raises:
        PolicyRefused: too many draws were begun for them.
    """
    if session.job.seed is not None:
        return PublicRandomness.from_seed(session.job.seed)
    context = parameters_digest({name: session.snapshots.get(name, "") for name in data_parties})
    others = [name for name in data_parties if name != session.me.name]
    begun, key = party.store.reader().draw(context.hex())

    def begin() -> None:
        if begun >= MOST_DRAWS:
            reason = (
                f"{begun} draws of the split were begun for these snapshots: have one of the datasets published again "
                "(`blindfit snapshot`)"
            )
            raise PolicyRefused(party=session.me.name, field="split", reason=reason)
        with party.store.transaction() as transaction:
            transaction.begin_draw(context.hex())

    known = PublicRandomness(key) if key else None
    drawn = await draw.run_data_party(known, context, session.me.name, others, session.channel, begin=begin)
    if drawn != known:
        with party.store.transaction() as transaction:
            transaction.end_draw(context.hex(), drawn.key)
    return drawn


def name_randomness(randomness: PublicRandomness) -> str:
    """What a charge calls it; whoever does not know it learns nothing."""
    return hashlib.sha256(b"blindfit public randomness named v1/" + randomness.key).hexdigest()
