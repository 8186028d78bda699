"""What an active party writes for auditors when it has trained: `release.json`, which may be given to anybody who may
have the model, and `training_rows.json`, which is for whoever has its rows too, and is as private as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from blindfit.algorithms.protocols import walr, walr_statement
from blindfit.algorithms.protocols.walr import AggregateOpen, NoisySum
from blindfit.algorithms.protocols.walr_statement import Between
from blindfit.algorithms.statistics.logistic import Floats
from blindfit.algorithms.statistics.walr_fit import WalrFit
from blindfit.algorithms.statistics.walr_model import WALRModel
from blindfit.parties.files import written
from blindfit.parties.files.vault import MODEL_KEY
from blindfit.parties.identity import connections, key_proof
from blindfit.parties.measurement.servers import Released, proof_of
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.sessions import Session
from blindfit.parties.store.store import stamp
from blindfit.parties.walr import release_document
from blindfit.parties.walr.release_document import Fit, Made, Message, Parts, SignedReceipt, Signer
from blindfit.parties.walr.settings import WalrJob

RELEASE_FILE, ROWS_FILE = "release.json", "training_rows.json"
ROWS_FORMAT = "blindfit-walr-rows-1"
BATCHES = "batches"


def write_release(
    party: Party,
    session: Session[WalrJob],
    released: Released,
    model: WALRModel,
    fit: WalrFit,
    start: Floats | None,
    batches_seed: bytes,
) -> None:
    """Of one trusted server's release; sealed with the key that signs model parts."""
    key, identity = party.vault.signing_key(party.data_dir / MODEL_KEY), connections.current(party.identity)
    proof = key_proof.prove(identity, key_proof.RELEASES, key.public_bytes)
    (server,), request, answer = released.servers, released.request, released.aggregate.answer
    about = Between(server.member.name, session.me.name, server.description.population)
    held = party.store.reader().receipt_held(about.server, about.population)
    parts = Parts(
        release=release_of(request, answer, about),
        entry=answer.entry,
        receipt=SignedReceipt.of((answer.receipt, answer.receipt_signature)),
        newest_receipt=SignedReceipt.of(held),
        server=Signer.of(about.server, server.description.receipt_key, proof_of(server.description)),
        party=Signer.of(session.me.name, key.public_bytes, proof),
        authority=key_proof.encoded(key_proof.authority_of(identity)).hex(),
        fit=_fit(session.job, fit, start, batches_seed),
        model=model.to_dict(),
        transcript=transcript_of(request, answer, about),
        made=Made(time=stamp(), session=session.id, numpy=np.__version__),
    )
    written.write_file(party.file(session.id, RELEASE_FILE), release_document.encode(parts, key))


def release_of(request: AggregateOpen, answer: NoisySum, about: Between) -> dict[str, Any]:
    stated: dict[str, Any] = json.loads(walr_statement.statement(request, answer, about))
    return stated


def _fit(job: WalrJob, fit: WalrFit, start: Floats | None, batches_seed: bytes) -> Fit:
    return Fit(
        settings={**job.walr.model_dump(), "init": None},  # a path of the operator's
        l2=fit.l2,
        solver=fit.result.solver,
        iterations=int(fit.result.iterations),
        converged=bool(fit.result.converged),
        batches_seed=batches_seed.hex(),
        init=None if start is None else [float(weight) for weight in start],
    )


def transcript_of(request: AggregateOpen, answer: NoisySum, about: Between) -> list[Message]:
    """The one question, the rows (by their salted hash) and the one answer."""
    digests = {
        "AggregateOpen": walr.request_digest(request).hex(),
        "WeightRows": request.content_sha256.hex(),
        "NoisySum": walr_statement.digest(request, answer, about),
    }
    names = {"active": about.consumer, "measurement": about.server}
    return [
        Message(
            step=arrow.step,
            sender=names["active" if arrow.message is not NoisySum else "measurement"],
            receiver=names["measurement" if arrow.message is not NoisySum else "active"],
            message=arrow.message.__name__,
            sha256=digests[arrow.message.__name__],
        )
        for arrow in walr.TABLE.arrows
        if arrow.message.__name__ in digests
    ]


def write_rows(party: Party, session: Session[WalrJob], released: Released, ids: Sequence[str]) -> None:
    """Which rows were sent, in their order, which of them did not count, and the salt of their hash."""
    content = {
        "format": ROWS_FORMAT,
        "content_salt": released.request.content_salt.hex(),
        "ids": list(ids),
        "not_counted": np.flatnonzero(~released.aggregate.kept).tolist(),
    }
    written.write_json(party.file(session.id, ROWS_FILE), content)
