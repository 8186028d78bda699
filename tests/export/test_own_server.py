"""An active party signs as its own measurement server: every signature is good, and nobody else took part."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from blindfit.algorithms.privacy import ledger as book
from blindfit.algorithms.privacy.charges import Charges
from blindfit.algorithms.privacy.events import ReleaseEvent
from blindfit.algorithms.privacy.ledger import Charge
from blindfit.algorithms.protocols.walr import statement as walr_statement
from blindfit.algorithms.protocols.walr.statement import Between
from blindfit.coordinator.verify import checks
from blindfit.parties.files.signing import SigningKey
from blindfit.parties.identity import key_proof
from blindfit.parties.identity.authority import PartyFiles
from blindfit.parties.identity.identity import load_identity
from blindfit.parties.walr import release_document, release_file
from tests.export.tampering import sealed_again
from tests.export.trained import shop_and_meter, train
from tests.world import World


def forge(world: World, parts: dict[str, Any]) -> None:
    """Replace the answer by a sum that shop made up without noise, in shop's own ledger."""
    files = PartyFiles.in_folder(world.root / "ca" / "shop")
    identity = load_identity(files.certificate, files.key, files.authority)
    key = SigningKey.load_or_create(world.root / "state/shop" / "made-up.pem")
    proof = key_proof.prove(identity, key_proof.RECEIPTS, key.public_bytes)
    true = parts["servers"][0]
    request, answer, about = walr_statement.read(true["release"])
    made_up = request, replace(answer, sums=np.zeros_like(answer.sums)), Between("shop", "shop", about.population)
    old = book.from_json_line(true["entry"], 1)
    digest = walr_statement.digest(*made_up)
    event, asked = ReleaseEvent.from_canonical(old.event), (old.request_id, old.content_sha256)
    charge = Charge(old.population, event, old.dataset, old.snapshot, "shop", *asked, old.epsilon, old.delta, old.unit)
    entry = book.append(None, charge, time=old.time, answer_sha256=digest)
    receipt = book.receipt_for("shop", entry, Charges.of([book.charge_of(entry)]), lambda _: entry)
    statement = receipt.statement()
    signed = {"statement": statement.decode(), "signature": key.sign(statement).hex()}
    parts["servers"] = [
        {
            "release": json.loads(walr_statement.statement(*made_up)),
            "encrypted": None,
            "entry": book.to_json_line(entry),
            "receipt": signed,
            "newest_receipt": signed,
            "signer": release_document.Signer.of("shop", key.public_bytes, proof).model_dump(),
        }
    ]
    parts["sum"]["sums"] = [0] * len(answer.sums)
    parts["transcript"] = [message.model_dump() for message in release_file.transcript_of(*made_up)]


def test_a_party_is_not_its_own_measurement_server(tmp_path: Path) -> None:
    world = shop_and_meter(tmp_path)
    encoded = (train(world) / "release.json").read_bytes()
    forged = sealed_again(encoded, world.path("state/shop"), lambda parts: forge(world, parts))
    found = checks.verify(forged, world.authority).results
    assert [(result.name, result.why) for result in found if result.why] == [
        (
            "shop: role of the measurement server",
            "the certificate of shop carries the role active, and not measurement",
        ),
        ("shop: names", "shop signs as its own measurement server: no other party counted or drew noise"),
    ]
