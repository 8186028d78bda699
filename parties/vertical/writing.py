"""Files that a data party keeps of a vertical training: its part of the model, its report, the scores of its test
rows.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from blindfit.algorithms.statistics.vertical.model import VerticalModelPart
from blindfit.parties.files.vault import MODEL_KEY
from blindfit.parties.files.written import encode_signed_json
from blindfit.parties.sessions.party import Party
from blindfit.parties.vertical.evaluation import Tested
from blindfit.parties.vertical.model_store import ModelStore
from blindfit.parties.vertical.prepared import Prepared


def write_part(party: Party, session: str, part: VerticalModelPart, report: dict[str, Any]) -> None:
    """Write part and report for the party's operator, and the part again for joint predictions."""
    key = party.vault.signing_key(party.data_dir / MODEL_KEY)
    party.write(session, "model.json", encode_signed_json(party.stamp({**part.to_dict(), "session": session}), key))
    party.write_report(session, report)
    ModelStore(party.data_dir, party.vault).keep(part, session, party.stamp_text)


def write_test_scores(party: Party, session: str, prepared: Prepared, tested: Tested) -> None:
    party.write_table(session, "test_scores.csv", {"id": _test_ids(prepared), **tested.columns()})


def write_test_rows(party: Party, session: str, prepared: Prepared) -> None:
    """Write the ids of the test rows, if nobody has their scores."""
    party.write_table(session, "test_rows.csv", {"id": _test_ids(prepared)})


def _test_ids(prepared: Prepared) -> Any:
    return prepared.rows.ids.take(pa.array(prepared.plan.test))
