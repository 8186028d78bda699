"""`blindfit pretrain`: public rows of a party -> pretrained.json, for walr.init and dp_lr.init."""

from __future__ import annotations

from pathlib import Path

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.terminal.json_output import Found
from blindfit.coordinator.terminal.wording import quantity
from blindfit.parties.dp_lr.rows import fit_public
from blindfit.parties.files.written import write_file
from blindfit.parties.settings import PartySettings


def pretrain(settings: PartySettings, base_dir: Path, dataset: str, out: Path, l2: float | None) -> Found:
    """Raise ConfigError, DataError: the dataset is not public, or cannot be fitted; nothing is written."""
    if l2 is not None and not 0 <= l2 < float("inf"):
        raise ConfigError(f"--l2 must be finite and at least 0, not {l2:g}")
    model = fit_public(settings, base_dir, dataset, l2)
    write_file(out, model.to_json().encode())
    features = len(model.standardiser.kept)
    document = {"file": out, "features": features, "dataset": dataset}
    return Found(document, (f"{out}: {quantity(features, 'feature')}, fitted to {dataset}",))
