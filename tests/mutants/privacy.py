"""Noise, clipping, the accountant, and the label mechanisms."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NOISE_LAW = "tests/privacy/test_noise_law.py"
GAUSSIAN = "tests/privacy/test_gaussian.py"
ACCOUNTANT = "tests/privacy/test_accountant.py"
DP_GRADIENT = "tests/privacy/test_dp_gradient.py"
ACCOUNTING = "tests/release_labels/test_accounting.py"
FIXED_POINT = "tests/walr/test_fixed_point.py"
STEPS = "tests/walr/test_steps.py"
DP_LR_ESTIMATOR = "tests/estimators/test_dp_logistic_regression.py"
DP_LR_TRAINING = "tests/dp_lr/test_training.py"
EVERY_MECHANISM = "tests/privacy/label_mechanisms/test_every_mechanism.py"
LABEL_NOISE = "tests/privacy/label_mechanisms/test_noise.py"

MUTANTS = (
    # --- noise
    Mutant(
        "noise-halved",
        (4, 5),
        "algorithms/privacy/gaussian.py",
        "sample_vector(len(sums), Fraction(self.sigma_squared), uniform)",
        "sample_vector(len(sums), Fraction(self.sigma_squared, 4), uniform)",
        (f"{NOISE_LAW}::test_a_mechanism_draws_the_noise_that_it_states",),
    ),
    Mutant(
        "one-noise-for-all-coordinates",
        (4, 5),
        "algorithms/privacy/discrete_gaussian.py",
        "return [sample(sigma_squared, uniform) for _ in range(n)]",
        "return [sample(sigma_squared, uniform)] * n",
        (f"{DP_GRADIENT}::test_the_noise_has_its_law_and_every_coordinate_its_own",),
    ),
    Mutant(
        "zero-drawn-twice-as-often",
        (4,),
        "algorithms/privacy/discrete_gaussian.py",
        "if negative and magnitude == 0:",
        "if negative and magnitude < 0:",
        (f"{NOISE_LAW}::test_the_discrete_laplace_inside_it_has_its_law",),
    ),
    Mutant(
        "secret-noise-with-a-bias",
        (4,),
        "algorithms/randomness.py",
        "if drawn < space - space % m:",
        "if drawn < space:",
        ("tests/privacy/test_randomness.py::test_values_past_the_last_multiple_are_thrown_away",),
    ),
    Mutant(
        "variance-rounded-down",
        (4, 7),
        "algorithms/privacy/gaussian.py",
        "return math.ceil(Fraction(self.noise_multiplier)",
        "return math.floor(Fraction(self.noise_multiplier)",
        (f"{GAUSSIAN}::test_the_variance_is_rounded_up",),
    ),
    Mutant(
        "noise-of-a-few-steps-allowed",
        (5, 6),
        "algorithms/privacy/gaussian.py",
        "if self.sigma_squared < LEAST_STD_STEPS**2:",
        "if self.sigma_squared < LEAST_STD_STEPS:",
        (f"{GAUSSIAN}::test_a_grid_too_coarse_for_the_noise_is_refused",),
    ),
    Mutant(
        "classic-formula-above-one",
        (5,),
        "algorithms/privacy/gaussian.py",
        "    if epsilon >= 1:\n",
        "    if epsilon >= 10:\n",
        (f"{GAUSSIAN}::test_classic_is_refused_where_it_is_wrong",),
    ),
    # --- sensitivity and clipping
    Mutant(
        "sensitivity-forgets-a-persons-rows",
        (5, 22),
        "algorithms/protocols/walr.py",
        "return self.norm_bound * max(1, self.max_rows_per_person)",
        "return self.norm_bound",
        (f"{STEPS}::test_a_person_of_m_rows_has_m_times_the_sensitivity",),
    ),
    Mutant(
        "server-does-not-check-norms",
        (5, 22),
        "algorithms/protocols/walr.py",
        "rows, scaled = fixed_point.enforce_norm_bound(batch.weights, self.request.norm_bound)",
        "rows, scaled = batch.weights, 0",
        (f"{STEPS}::test_a_row_that_is_too_long_counts_as_one_of_the_bound",),
    ),
    Mutant(
        "rows-rounded-to-nearest",
        (5, 6),
        "algorithms/fixed_point.py",
        "enforce_norm_bound(scaled.astype(np.int32), norm_bound)",
        "enforce_norm_bound(np.rint(scaled).astype(np.int32), norm_bound)",
        (f"{FIXED_POINT}::test_rounding_is_toward_zero",),
    ),
    Mutant(
        "one-step-past-the-norm",
        (5,),
        "algorithms/fixed_point.py",
        "real, real) > float(norm_bound) ** 2)",
        "real, real) > float(norm_bound + 1) ** 2)",
        (f"{FIXED_POINT}::test_one_step_past_the_bound_is_seen",),
    ),
    Mutant(
        "sum-in-single-precision",
        (6, 11),
        "algorithms/protocols/walr.py",
        "(chosen.astype(np.float64) @ rows.astype(np.float64))",
        "(chosen.astype(np.float32) @ rows.astype(np.float32))",
        (f"{STEPS}::test_the_largest_batch_is_summed_exactly",),
    ),
    Mutant(
        "replacing-counts-as-adding",
        (5,),
        "algorithms/privacy/noisy_iterations.py",
        '{"replace-one": 2, "add-or-remove": 1}',
        '{"replace-one": 1, "add-or-remove": 1}',
        (f"{DP_LR_ESTIMATOR}::test_the_noise_is_over_the_sensitivity",),
    ),
    Mutant(
        "gradients-not-clipped",
        (5,),
        "algorithms/statistics/dp_gradient.py",
        "(residuals / clip_norm)[:, None], CLIP_STEPS, GRID_BITS)",
        "(residuals / clip_norm)[:, None], 16 * CLIP_STEPS, GRID_BITS)",
        (f"{DP_GRADIENT}::test_one_row_changes_the_integer_sums_by_no_more_than_the_sensitivity",),
    ),
    Mutant(
        "losses-not-cut",
        (5,),
        "algorithms/statistics/dp_gradient.py",
        "np.clip(softplus(np.where(happened, -scores, scores)), 0, LOSS_BOUND)",
        "softplus(np.where(happened, -scores, scores))",
        (f"{DP_GRADIENT}::test_one_row_changes_the_integer_sums_by_no_more_than_the_sensitivity",),
    ),
    Mutant(
        "one-sample-for-all-iterations",
        (5, 7),
        "algorithms/statistics/dp_gradient.py",
        "    for _ in range(settings.n_iterations):\n        chosen = slice(None) if sample is None else sample()\n",
        "    chosen = slice(None) if sample is None else sample()\n    for _ in range(settings.n_iterations):\n",
        (f"{DP_GRADIENT}::test_every_iteration_sums_a_sample_of_its_own",),
    ),
    Mutant(
        "samples-more-often-than-accounted",
        (5, 7),
        "algorithms/privacy/noisy_iterations.py",
        "chosen: NDArray[np.bool_] = words < int(batch_fraction * 2**PROBABILITY_BITS)",
        "chosen: NDArray[np.bool_] = words < int(1.02 * batch_fraction * 2**PROBABILITY_BITS)",
        (f"{DP_GRADIENT}::test_each_row_is_drawn_with_the_accounted_probability_and_by_itself",),
    ),
    # --- the accountant
    Mutant(
        "the-noisiest-release-is-forgotten",
        (2, 7),
        "algorithms/privacy/accountant.py",
        "inverse = math.hypot(*(1 / s for s in noise_multipliers))",
        "inverse = max((1 / s for s in noise_multipliers), default=0.0)",
        (f"{ACCOUNTANT}::test_never_below_and_never_far_above_the_library",),
    ),
    Mutant(
        "iterations-not-composed",
        (7,),
        "algorithms/privacy/noisy_iterations.py",
        'composed = privacy.n_iterations if privacy.spending == "run" else 1',
        "composed = 1",
        (f"{DP_GRADIENT}::test_a_run_spends_what_the_accountant_says",),
    ),
    Mutant(
        "epsilon-not-rounded-up",
        (7,),
        "algorithms/privacy/events.py",
        "        while 1 / multiplier < epsilon:\n            multiplier = math.nextafter(multiplier, 0.0)\n",
        "",
        (f"{ACCOUNTING}::test_an_epsilon_survives_the_ledger",),
    ),
    Mutant(
        "delta-without-rounding-margins",
        (7,),
        "algorithms/privacy/gaussian.py",
        "return min(1.0, delta * (1 + _ROUNDING) + larger_term * _CANCELLATION)",
        "return min(1.0, delta)",
        (f"{GAUSSIAN}::test_delta_is_never_below_the_exact_one_and_little_above",),
    ),
    Mutant(
        "transforms-loss-not-subtracted",
        (7,),
        "algorithms/privacy/accountant.py",
        "total.get_epsilon_for_delta(delta - _TRANSFORM_LOSES)",
        "total.get_epsilon_for_delta(delta)",
        (f"{ACCOUNTING}::test_never_below_the_exact_composition",),
    ),
    Mutant(
        "a-persons-rows-cost-as-one",
        (7, 22),
        "algorithms/protocols/release_labels.py",
        "return ReleaseEvent.pure(rows * settings.epsilon, neighbours)",
        "return ReleaseEvent.pure(settings.epsilon, neighbours)",
        ("tests/release_labels/test_protocol.py::test_step_2_what_a_release_costs",),
    ),
    # --- label mechanisms
    Mutant(
        "true-bin-kept-too-often",
        (4, 5),
        "algorithms/privacy/label_mechanisms/rr_on_bins.py",
        "swapped = drawn >= np.uint64(kept - other)",
        "swapped = drawn >= np.uint64(kept)",
        (f"{EVERY_MECHANISM}::test_draws_follow_the_law",),
    ),
    Mutant(
        "debiasing-with-the-wrong-sign",
        (4,),
        "algorithms/privacy/label_mechanisms/rp_with_prior.py",
        "return middle + (super().debias(outputs) - middle) / self.share_near",
        "return middle - (super().debias(outputs) - middle) / self.share_near",
        (f"{EVERY_MECHANISM}::test_debiased_mean_is_the_label",),
    ),
    Mutant(
        "weights-rounded-past-epsilon",
        (5, 6),
        "algorithms/privacy/label_mechanisms/drawing.py",
        "return math.floor(lighter * exp_bounds(epsilon)[0])",
        "return math.ceil(lighter * exp_bounds(epsilon)[0])",
        (f"{LABEL_NOISE}::test_the_heavier_weight_is_the_largest_that_keeps_epsilon",),
    ),
    Mutant(
        "delta-of-the-grid-forgotten",
        (5,),
        "algorithms/privacy/label_mechanisms/gaussian.py",
        "return gaussian_delta(s, self.epsilon) + highest + table_delta(std_steps, self.epsilon)",
        "return gaussian_delta(s, self.epsilon) + table_delta(std_steps, self.epsilon)",
        (f"{LABEL_NOISE}::test_gaussian_keeps_delta_on_coarse_grids",),
    ),
    Mutant(
        "noise-on-too-coarse-a-grid",
        (5,),
        "algorithms/privacy/label_mechanisms/gaussian.py",
        "while multiplier * cells < LEAST_STD_STEPS:",
        "while multiplier * cells < LEAST_STD_STEPS / 16:",
        (f"{LABEL_NOISE}::test_gaussian_keeps_delta_at_every_epsilon_and_on_the_grid_that_is_chosen",),
    ),
    Mutant(
        "what-the-tables-miss-not-counted",
        (5,),
        "algorithms/privacy/label_mechanisms/gaussian_tables.py",
        "for _, std in parts_of(std_steps)) / 2.0**WEIGHT_BITS",
        "for _, std in parts_of(std_steps)) / 2.0 ** (2 * WEIGHT_BITS)",
        (f"{LABEL_NOISE}::test_a_table_misses_less_of_its_law_than_is_charged",),
    ),
    Mutant(
        "a-draw-not-decided-by-its-later-bits",
        (4, 5),
        "algorithms/privacy/label_mechanisms/gaussian_tables.py",
        "        for row in np.flatnonzero(undecided):",
        "        for row in np.flatnonzero(undecided)[:0]:",
        (f"{LABEL_NOISE}::test_a_draw_is_decided_by_later_bits_where_the_first_word_does_not",),
    ),
    Mutant(
        "prior-estimated-for-nothing",
        (5, 7),
        "algorithms/privacy/label_mechanisms/fitting.py",
        "left = math.nextafter(settings.epsilon - epsilon_prior, 0.0)",
        "left = math.nextafter(settings.epsilon, 0.0)",
        ("tests/privacy/label_mechanisms/test_fitting.py::test_epsilons_add_up",),
    ),
    Mutant(
        "label-range-halved",
        (5,),
        "parties/taylor/parameters.py",
        "LABEL_RANGE = 2.0",
        "LABEL_RANGE = 1.0",
        ("tests/report/vertical/test_vertical_statement.py::test_the_noise_is_what_the_key_node_adds",),
    ),
    # --- asking again
    Mutant(
        "fit-again-draws-again",
        (1,),
        "algorithms/estimators/remembered.py",
        "if key not in _released:",
        "if key:",
        (f"{DP_LR_ESTIMATOR}::test_another_release_draws_other_noise_and_the_same_gives_the_same_model",),
    ),
    Mutant(
        "one-private-row-fewer-than-the-policy",
        (12,),
        "parties/dp_lr/trainer.py",
        "if rows.n_trained < settings.policy.least_rows:",
        "if rows.n_trained + 1 < settings.policy.least_rows:",
        (f"{DP_LR_TRAINING}::test_the_least_number_of_rows_is_enough_and_one_less_is_not",),
    ),
    Mutant(
        "request-id-that-anyone-can-guess",
        (12, 19),
        "parties/dp_lr/budget.py",
        "return Request(hashlib.sha256(signature).hexdigest()[:32], snapshot)",
        "return Request(hashlib.sha256(digest).hexdigest()[:32], snapshot)",
        (f"{DP_LR_TRAINING}::test_a_request_id_tells_nothing_without_the_partys_key",),
    ),
    Mutant(
        "any-budget-when-charging-a-training",
        (2,),
        "parties/dp_lr/budget.py",
        "            entry = add_entry(\n                transaction,\n                self._session,\n"
        "                self._budget,\n",
        "            entry = add_entry(\n                transaction,\n                self._session,\n"
        "                Budget(50.0, self._budget.delta),\n",
        (f"{DP_LR_TRAINING}::test_the_last_of_the_budget_has_one_winner",),
    ),
)
