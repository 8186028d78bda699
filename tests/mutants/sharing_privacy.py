"""Training in secret shares under differential privacy."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NOISE, JOBS = "tests/falcon/test_noise.py", "tests/falcon/test_private.py"

MUTANTS = (
    Mutant(
        "one-party-alone-puts-noise-in",
        (4, 5),
        "blindfit.algorithms.protocols.falcon.noise:Noise.put_in",
        "for owner in range(len(self.row_bounds))]",
        "for owner in range(1)]",
        (f"{NOISE}::test_all_parties_noise_and_nothing_else_moves_the_weights",),
    ),
    Mutant(
        "noise-in-shares-for-a-row-that-goes-and-none-that-comes",
        (5,),
        "blindfit.algorithms.protocols.falcon.noise:REPLACED",
        "REPLACED = 2",
        "REPLACED = 1",
        (f"{NOISE}::test_each_party_has_the_whole_deviation_of_what_one_row_changes",),
    ),
    Mutant(
        "residuals-are-bounded-where-the-waves-are-right",
        (5,),
        "blindfit.algorithms.sharing.residual_bound:residual_bound",
        "(0.5 + largest_swing(waves))",
        "(0.5 + 0.5)",
        ("tests/sharing/test_residual_bound.py::test_no_residual_in_shares_passes_its_bound[17+20-wide]",),
    ),
    Mutant(
        "rounding-may-lengthen-rows-that-go-into-shares",
        (5, 6),
        "blindfit.parties.falcon.data_party:make_held",
        "features = clip_integer_rows(features, row_bound)",
        "features = features.copy()",
        (f"{NOISE}::test_no_row_is_longer_than_its_bound_after_rounding",),
    ),
    Mutant(
        "the-range-is-opened-under-differential-privacy",
        (12, 25),
        "blindfit.algorithms.protocols.falcon.program:_judge",
        "    if p.noise is not None:\n        await seat.check()\n",
        "    if p.noise is not None and not p.epochs:\n        await seat.check()\n",
        (f"{NOISE}::test_nothing_is_opened_but_masked_numbers_and_the_weights",),
    ),
    Mutant(
        "a-charge-in-shares-pays-for-every-opening",
        (1, 26),
        "blindfit.parties.falcon.draws:Draws._next",
        "draw for draw in draws if not reader.answer(self._session.me.name, draw.request_id)",
        "draw for draw in draws if draw",
        (f"{JOBS}::test_weights_that_were_opened_and_lost_are_charged_again[False]",),
    ),
    Mutant(
        "a-passive-party-of-a-training-in-shares-pays-nothing",
        (1, 22),
        "blindfit.parties.falcon.draws:Draws.charge",
        "            hold_receipt(self._party.store, payer, key, population, given)\n            self._pay()\n",
        "            hold_receipt(self._party.store, payer, key, population, given)\n",
        (f"{JOBS}::test_nothing_is_put_in_before_this_partys_charge_is_on_the_disk",),
    ),
    Mutant(
        "a-training-in-shares-is-charged-before-all-can-pay",
        (2,),
        "blindfit.parties.falcon.draws:Draws.charge",
        "        self.check()\n        channel,",
        "        channel,",
        (f"{JOBS}::test_a_budget_that_an_earlier_job_has_spent_anywhere_ends_another_one_before_anybody_is_charged",),
    ),
    Mutant(
        "all-batches-of-an-epoch-get-one-noise",
        (4, 5),
        "blindfit.algorithms.protocols.falcon.program:_noises",
        "put_in[number]",
        "put_in[0 * number]",
        (f"{NOISE}::test_every_step_of_every_epoch_has_noise_of_its_own",),
    ),
    Mutant(
        "each-batch-takes-the-noise-of-the-first",
        (4, 5),
        "blindfit.algorithms.protocols.falcon.program:_epoch",
        "noises[number]",
        "noises[0]",
        (f"{NOISE}::test_every_step_of_every_epoch_has_noise_of_its_own",),
    ),
    Mutant(
        "noise-is-drawn-once-for-an-epoch",
        (4, 5),
        "blindfit.algorithms.protocols.falcon.noise:Noise.draw",
        "    return np.array([[number",
        "    numbers = [numbers[0] for _ in numbers]\n        return np.array([[number",
        (f"{NOISE}::test_every_step_of_every_epoch_has_noise_of_its_own",),
    ),
)
