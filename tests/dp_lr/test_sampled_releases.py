"""Gaussian releases of Poisson samples, as one charge of the ledger."""

from __future__ import annotations

import pytest

from blindfit.algorithms.errors import DataError, UnsupportedEvent
from blindfit.algorithms.privacy.accountant import composed_epsilon, fits
from blindfit.algorithms.privacy.events import ReleaseEvent, Sampling
from blindfit.algorithms.privacy.noisy_iterations import RunPrivacy
from tests.each_case import each_case

DELTA, WORDS = 1e-5, "one row is replaced, a/b"
GAUSSIAN = ReleaseEvent("gaussian", 4.0, WORDS)


def sampled(privacy: RunPrivacy) -> ReleaseEvent:
    sampling = Sampling(privacy.batch_fraction, privacy.n_iterations, privacy.sensitivity)
    return ReleaseEvent("sampled-gaussian", privacy.noise_multiplier(), WORDS, sampling)


@pytest.fixture(scope="module")
def event() -> ReleaseEvent:
    return sampled(RunPrivacy(1.0, DELTA, 50, 0.1))


@pytest.mark.parametrize(
    "privacy",
    [
        RunPrivacy(1.0, DELTA, 50, 0.1),
        RunPrivacy(1.0, DELTA, 100, 0.1, "add-or-remove"),
        RunPrivacy(4.0, DELTA, 500, 0.02),
        RunPrivacy(8.0, DELTA, 20, 0.9, "add-or-remove"),
    ],
    ids=str,
)
def test_a_run_fits_exactly_the_budget_it_was_made_for(privacy: RunPrivacy) -> None:
    event = sampled(privacy)
    assert fits([], event, privacy.epsilon, DELTA)
    assert not fits([], event, privacy.epsilon * 0.98, DELTA)


def test_it_composes_by_the_librarys_own_accountant(event: ReleaseEvent) -> None:
    import dp_accounting as library
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    accountant = PLDAccountant(library.NeighboringRelation.REPLACE_ONE, 5e-4)
    noise = library.GaussianDpEvent(event.noise_multiplier * 2)
    assert event.sampling is not None
    accountant.compose(library.PoissonSampledDpEvent(event.sampling.batch_fraction, noise), 100)
    accountant.compose(library.GaussianDpEvent(GAUSSIAN.noise_multiplier * 2))
    assert composed_epsilon([event, GAUSSIAN, event], DELTA) == pytest.approx(accountant.get_epsilon(DELTA), rel=5e-3)


def test_a_sample_costs_less_than_all_rows_and_more_than_nothing(event: ReleaseEvent) -> None:
    whole = ReleaseEvent("gaussian", event.unsampled_multiplier, WORDS)
    assert composed_epsilon([event], DELTA) < composed_epsilon([whole], DELTA) / 5
    assert composed_epsilon([event, GAUSSIAN], DELTA) > composed_epsilon([GAUSSIAN], DELTA)
    assert composed_epsilon([event, ReleaseEvent.pure(0.5, WORDS)], DELTA) > composed_epsilon([event], DELTA) + 0.2


def test_the_ledger_reads_what_it_wrote(event: ReleaseEvent) -> None:
    text = event.canonical()
    assert ReleaseEvent.from_canonical(text) == event
    assert text.endswith(f"*50*2/{WORDS}")


@each_case(
    "text",
    [
        f"sampled-gaussian/0x1p+1/{WORDS}",
        f"sampled-gaussian/0x1.0000000000000p+1/0.5*50*2/{WORDS}",
        f"sampled-gaussian/0x1.0000000000000p+1/0x1.0000000000000p-1*050*2/{WORDS}",
        f"sampled-gaussian/0x1.0000000000000p+1/0x1.0000000000000p-1*50/{WORDS}",
    ],
)
def test_another_text_is_no_event(text: str) -> None:
    with pytest.raises(DataError):
        ReleaseEvent.from_canonical(text)


@each_case("wrong", [(1.0, 50, 2), (0.0, 50, 2), (0.5, 0, 2), (0.5, 50, 3)])
def test_a_sampling_is_one(wrong: tuple[float, int, int]) -> None:
    with pytest.raises(UnsupportedEvent):
        Sampling(*wrong)


def test_sampling_goes_with_its_mechanism_alone() -> None:
    with pytest.raises(UnsupportedEvent, match="a sampled-gaussian release must declare its sampling"):
        ReleaseEvent("gaussian", 1.0, WORDS, Sampling(0.5, 5, 1))
    with pytest.raises(UnsupportedEvent, match="a sampled-gaussian release must declare its sampling"):
        ReleaseEvent("sampled-gaussian", 1.0, WORDS)
