"""Source of a training's split and batches: a draw that is made once for the people and the parties, and used again.

A new snapshot of a party keeps the draw: otherwise its owner could publish a table again until the draw pleases.

Nobody who proposes a job chooses which rows are held out. On one machine, if the party's file allows it, a job's `seed`
does.
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
from blindfit.parties.store.database import Reads

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
    context, account = _context_of(data_parties), Account.of(party.settings, session.me.dataset)
    others = [name for name in data_parties if name != session.me.name]
    kept = _name_in_store(context, account)
    known = find_draw(party, session, data_parties)

    def begin() -> None:
        with party.store.transaction() as transaction:
            _check_room(transaction, account, session)
            transaction.begin_draw(kept)
            about, read = ",".join(others), (session.published.id, session.id)
            transaction.add_disclosure(account.entry("membership", about, others, EVENT, session.id, 1, read))

    drawn = await draw.run_data_party(known, context, session.me.name, others, session.channel, begin=begin)
    if drawn != known:
        with party.store.transaction() as transaction:
            transaction.end_draw(kept, drawn.key)
    return drawn


def check_new_draw(party: Party, session: Session[TrainingParameters]) -> None:
    """Raise PolicyRefused as `draw_together` does, if the data parties do not all know the same draw."""
    with party.store.view() as reader:
        _check_room(reader, Account.of(party.settings, session.me.dataset), session)


def _check_room(reader: Reads, account: Account, session: Session[TrainingParameters]) -> None:
    before = [entry for entry in account.entries(reader, "membership") if entry.event == EVENT]
    if len(before) >= MOST_MEMBERSHIP:
        reason = (
            f"{MOST_MEMBERSHIP} draws of held-out rows were begun for the people of {session.me.dataset}, "
            "and more would reveal the place of some of them: its operator can start the account again "
            "(`blindfit ledger PARTY.TOML --reset-account DATASET --reason TEXT`)"
        )
        reader.excess.stop(PolicyRefused(party=session.me.name, field="split", reason=reason))


def _context_of(data_parties: Sequence[str]) -> bytes:
    return parameters_digest({"data_parties": ",".join(data_parties)})


def _name_in_store(context: bytes, account: Account) -> str:
    return f"{context.hex()} {account.population}"


def find_draw(
    party: Party, session: Session[TrainingParameters], data_parties: Sequence[str]
) -> PublicRandomness | None:
    """Return the earlier draw; a draw of an older version belongs to the snapshots that it was made for."""
    if session.job.seed is not None:
        return PublicRandomness.from_seed(session.job.seed)
    kept = _name_in_store(_context_of(data_parties), Account.of(party.settings, session.me.dataset))
    reader = party.store.reader()
    _, key = reader.draw(kept)
    if key:
        return PublicRandomness(key)
    older = parameters_digest({name: session.snapshots.get(name, "") for name in data_parties})
    _, key = reader.draw(older.hex())
    return PublicRandomness(key, orders_by_count=True) if key else None


def name_randomness(randomness: PublicRandomness) -> str:
    """Return the name of a draw for a charge. Anyone who does not know the draw learns nothing from its name."""
    return hashlib.sha256(b"blindfit public randomness named v1/" + randomness.key).hexdigest()
