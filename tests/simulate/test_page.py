"""The page of a simulation opens without a network, for any content of its table."""

from __future__ import annotations

from blindfit.coordinator.simulate import page
from blindfit.coordinator.simulate.kept import Failed
from blindfit.coordinator.simulate.recommendation import RULES, recommend
from tests.report.pages import HOSTILE, Elements, check_nothing_is_loaded_or_run
from tests.simulate.studies import done, results


def test_nothing_is_loaded_or_run_and_everything_is_shown() -> None:
    found = results(
        {
            ("taylor", None): [done(0.8, protects=HOSTILE, warnings=[HOSTILE])],
            ("walr", 1.0): [done(0.7, laid_out=HOSTILE)],
            ("falcon", None): [Failed(HOSTILE, "read the log")],
        },
        not_for={"label-dp": f"not for this label: {HOSTILE}"},
    )
    written = page.render(found, list(recommend(found)), [HOSTILE], {"label": HOSTILE, "seed": "0"})
    check_nothing_is_loaded_or_run(written, plots=3)
    text = " ".join(Elements(written).text.split())
    assert text.count(HOSTILE) >= 7
    for sentence in (*recommend(found), *RULES):
        assert sentence in text
    assert f"falcon: {HOSTILE}; read the log" in text
    assert f"label-dp: not for this label: {HOSTILE}" in text
