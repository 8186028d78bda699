"""Files that an active party writes for auditors after a training.

`release.json` may be given to anybody who may have the model. For encrypted rows there is one exception: the operator
of the server, who may know the noise. `training_rows.json` is for an auditor who also has the party's rows, and is as
private as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from blindfit.algorithms.messages import canonical_json
from blindfit.algorithms.protocols import walr
from blindfit.algorithms.protocols.walr import (
    AggregateOpen,
    NoisySum,
    WeightRows,
    encrypted_rows,
    shared_rows,
    statement,
    two_servers,
)
from blindfit.algorithms.protocols.walr.encrypted_rows import EncryptedRows
from blindfit.algorithms.protocols.walr.messages import BlockFit, MaskedRows
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.algorithms.statistics.walr.fit import WalrFit
from blindfit.algorithms.statistics.walr.model import WALRModel
from blindfit.parties.files.vault import MODEL_KEY
from blindfit.parties.identity import key_proof
from blindfit.parties.identity.identity import current
from blindfit.parties.measurement.calls import Aggregate, proof_of
from blindfit.parties.measurement.servers import Released, Server, content_salt
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.store.database import stamp
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import (
    RELEASE_FILE,
    Answered,
    EncryptedSum,
    Fit,
    Made,
    Message,
    Parts,
    SignedReceipt,
    Signer,
    Start,
    Sum,
)
from blindfit.parties.walr.settings import WalrJob

ROWS_FILE = "training_rows.json"
ROWS_FORMAT = "blindfit-walr-rows-1"
BATCHES = "batches"


def write_release(
    party: Party,
    session: Session[WalrJob],
    released: Released,
    model: WALRModel | VerticalModelPart,
    fit: Fit,
    own_norm_bound: int | None = None,
) -> None:
    """Write the release of one server, or of two with shares, sealed with the key that signs model parts.

    Args:
        model: the model, or the party's part of it if others hold columns too.
        own_norm_bound: bound of the party's columns in grid steps, if others hold columns too.
    """
    key, identity = party.vault.signing_key(party.data_dir / MODEL_KEY), current(party.identity)
    proof = key_proof.prove(identity, key_proof.RELEASES, key.public_bytes)
    each = list(zip(released.servers, released.requests, released.answers, strict=True))
    messages = [transcript_of(request, one.signed, _between(session, server)) for server, request, one in each]
    parts = Parts(
        servers=[_make_answered(party, session, *of_server) for of_server in each],
        sum=_sum(session.job, released, own_norm_bound),
        party=Signer.of(session.me.name, key.public_bytes, proof),
        authority=key_proof.encode(key_proof.authority_of(identity)).hex(),
        fit=fit,
        model=model.to_dict(),
        transcript=[message for of_server in messages for message in of_server],
        made=Made(time=stamp(), session=session.id, numpy=np.__version__),
    )
    party.write(session.id, RELEASE_FILE, release_document.encode(parts, key, rehearses=party.settings.rehearses))


def _between(session: Session[WalrJob], server: Server) -> Between:
    return Between(server.member.name, session.me.name, server.description.population)


def _make_answered(
    party: Party, session: Session[WalrJob], server: Server, request: AggregateOpen, aggregate: Aggregate
) -> Answered:
    about, description, answer = _between(session, server), server.description, aggregate.signed
    return Answered(
        release=json.loads(statement.statement(request, answer, about)),
        encrypted=EncryptedSum.of(aggregate.opening) if aggregate.opening else None,
        entry=answer.entry,
        receipt=SignedReceipt.of((answer.receipt, answer.receipt_signature)),
        newest_receipt=SignedReceipt.of(party.store.reader().receipt_held(about.server, about.population)),
        signer=Signer.of(about.server, description.receipt_key, proof_of(description)),
    )


def _sum(job: WalrJob, released: Released, own_norm_bound: int | None) -> Sum:
    answer = released.aggregate.answer
    return Sum(
        draw=job.required_privacy.release,
        sums=answer.sums.tolist(),
        noise_std=answer.noise_std,
        epsilon_of_both=two_servers.epsilon_of_both(released.request) if job.asks_shares else None,
        own_norm_bound=own_norm_bound,
    )


def own_fit(job: WalrJob, fit: WalrFit, start: Start | None, batches_seed: bytes) -> Fit:
    return Fit(
        settings=_settings(job),
        l2=fit.l2,
        solver=fit.result.solver,
        iterations=int(fit.result.iterations),
        converged=bool(fit.result.converged),
        batches_seed=batches_seed.hex(),
        init=start,
    )


def servers_fit(job: WalrJob, fit: BlockFit) -> Fit:
    """Return the fit of several parties' columns, as the server reported it."""
    return Fit(
        settings=_settings(job),
        l2=fit.l2,
        solver=fit.solver,
        iterations=int(fit.iterations),
        converged=bool(fit.converged),
        batches_seed=None,
        init=None,
    )


def _settings(job: WalrJob) -> dict[str, Any]:
    return {**job.walr.model_dump(), "init": None}  # init is a path of the operator


def transcript_of(request: AggregateOpen, answer: NoisySum, about: Between) -> list[Message]:
    """Return the single request to a server, the rows (by their salted hash) and its single answer."""
    rows: type[Any] = MaskedRows if request.in_shares else EncryptedRows if request.key else WeightRows
    digests: dict[type[Any], str] = {
        AggregateOpen: walr.request_digest(request).hex(),
        rows: request.content_sha256.hex(),
        NoisySum: statement.digest(request, answer, about),
    }
    tables = walr.TABLE, encrypted_rows.TABLE, shared_rows.TABLE
    steps = {arrow.message: arrow.step for table in tables for arrow in table.arrows}
    return [
        Message(
            step=steps[kind],
            sender=about.server if kind is NoisySum else about.consumer,
            receiver=about.consumer if kind is NoisySum else about.server,
            message=kind.__name__,
            sha256=digest,
        )
        for kind, digest in digests.items()
    ]


def write_rows(party: Party, session: Session[WalrJob], released: Released, ids: Sequence[str]) -> None:
    """Write the ids of the rows that were sent, in order, the rows that did not count, and the salt of the rows' hash.

    If others hold columns too, only the server knows which rows counted.
    """
    not_counted = None if released.request.blocks else np.flatnonzero(~released.aggregate.kept).tolist()
    content = {
        "format": ROWS_FORMAT,
        "content_salt": content_salt(party, session).hex(),  # servers that do not read rows never get it
        "ids": list(ids),
        "not_counted": not_counted,
    }
    party.write(session.id, ROWS_FILE, canonical_json(content) + b"\n")  # no program reads it
