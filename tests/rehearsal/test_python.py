"""The same in Python, as in a notebook."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import blindfit
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.rehearsal import NOTHING, STAMP
from blindfit.coordinator.running import launcher
from tests.command import Forked
from tests.world.measured import shop_and_meter


def test_rehearsals_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": Forked}))
    monkeypatch.chdir(tmp_path)
    world = shop_and_meter(tmp_path)
    world.set("policy.systems", ["walr", "evaluate"])
    job = blindfit.Job("job.toml")
    results = [blindfit.run(job, rehearse=True, progress=False, privacy={"epsilon": epsilon}) for epsilon in (0.5, 1.5)]
    assert [result.report.privacy.spent_epsilon for result in results] == pytest.approx([0.5, 1.5], rel=0.01)
    result = results[-1]
    assert result.document["rehearsal"] == STAMP
    assert STAMP in result._repr_html_()
    assert set(result.scores["rehearsal"]) == {NOTHING}
    assert result.model.rehearsal == STAMP
    with pytest.raises(DataError, match="rehearsal: nothing was charged"):
        blindfit.export_model(result.model, "sql", out=tmp_path / "model.sql")
    world.job("evaluate", file="evaluate.toml", evaluate={"session": "x"}, privacy={"epsilon": 1.0})
    assert not blindfit.check("evaluate.toml", model=result, rehearse=True).refuses
    evaluated = blindfit.evaluate("evaluate.toml", model=result, rehearse=True, progress=False)
    assert evaluated.document["rehearsal"] == STAMP
    assert evaluated.folder == Path("runs/evaluate-rehearsal")
    assert not world.path("state").exists()
