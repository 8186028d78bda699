"""Files that a data party keeps of a training whose weights stay in shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blindfit.algorithms.errors import LocalProtocolError
from blindfit.algorithms.protocols.falcon import FalconParameters, Trained
from blindfit.algorithms.protocols.shared_scores.model import SharedModelPart
from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.falcon.settings import FalconJob
from blindfit.parties.sessions.party import Party
from blindfit.parties.sessions.session import Session
from blindfit.parties.vertical.model_store import ModelStore, SharedModels
from blindfit.parties.vertical.prepared import Prepared
from blindfit.parties.vertical.scored_rows import ScoreQuota
from blindfit.parties.vertical.seats import Seats

AnyPart = VerticalModelPart | SharedModelPart


def make_shared_part(
    session: Session[FalconJob], seats: Seats, prepared: Prepared, parameters: FalconParameters, trained: Trained
) -> SharedModelPart:
    """Return the part of the model, before the party sets the bits of its scores (`with_score_bits`)."""
    if trained.kept is None or parameters.kept_bits is None:
        raise LocalProtocolError("the weights of this training were not kept in shares", session=session.id)
    return SharedModelPart(
        party=session.me.name,
        role=session.me.role,
        data_parties=seats.chain,
        standardiser=prepared.standardiser,
        columns=parameters.columns,
        intercept=parameters.intercept,
        kept_bits=parameters.kept_bits,
        score_limit=parameters.waves.bound,
        score_bits=0,
        trained_in=session.id,
        kept=trained.kept,
    )


def with_score_bits(part: AnyPart, quota: ScoreQuota) -> AnyPart:
    """Return a passive party's part, rounded as its scores demand."""
    if isinstance(part, SharedModelPart):
        return replace(part, score_bits=quota.score_bits())
    return replace(part, score_rounding=quota.rounding(part))


def has_model(party: Party, session: str) -> bool:
    return any(store(party.data_dir, party.vault).has(session) for store in (ModelStore, SharedModels))


def read_model(party: Party, job: FalconJob, session: str) -> AnyPart:
    """Return the stored model. Raise DataError as the stores do."""
    if job.falcon.stays_shared:
        return SharedModels(party.data_dir, party.vault).read(session)
    return ModelStore(party.data_dir, party.vault).read(session)


def write_shared(party: Party, session: str, part: SharedModelPart, report: dict[str, Any]) -> None:
    """Write shares to the folder from which predictions read them; no folder of reports gets them."""
    party.write_report(session, report)
    models = SharedModels(party.data_dir, party.vault)
    party.note(models.path(session), session)
    models.keep(part, session, party.stamp_text)
