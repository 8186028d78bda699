"""Vertical training and prediction: alignment, masks, noise, what gradients give away, checkpoints."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STEPS = "tests/taylor/test_steps.py"
PLAN = "tests/taylor/test_plan.py"
OPTIMISER = "tests/taylor/test_optimiser.py"
LEAKS = "tests/taylor/test_gradient_leaks.py"
ALIGN = "tests/alignment/test_align.py"
PSI = "tests/alignment/test_psi.py"
LINK = "tests/alignment/test_link.py"
PREDICT = "tests/predict/test_protocol.py"
CHECKPOINTS = "tests/vertical/test_checkpoints.py"
PREFLIGHT = "tests/preflight/test_vertical.py"
PROCESSES = "tests/vertical/test_processes.py"

MUTANTS = (
    # --- masks and noise of gradients
    Mutant(
        "gradients-not-masked",
        (12,),
        "algorithms/protocols/taylor/steps.py",
        "rho = [seat.uniform(grid.hiding_bound(len(batch))) for _ in range(len(gradient))]",
        "rho = [0 for _ in range(len(gradient))]",
        (f"{STEPS}::test_step_3_is_the_gradient_and_a_mask_that_its_owner_knows",),
    ),
    Mutant(
        "masks-too-short",
        (12,),
        "algorithms/statistics/taylor_plan.py",
        "return 1 << (self.gradient_bound(batch_rows).bit_length() + HIDING_BITS)",
        "return 1 << (self.gradient_bound(batch_rows).bit_length() + HIDING_BITS // 8)",
        (f"{PLAN}::test_a_mask_hides_a_gradient_and_both_fit_in_a_slot",),
    ),
    Mutant(
        "no-room-for-the-mask",
        (11,),
        "algorithms/statistics/taylor_plan.py",
        "return (self.gradient_bound(batch_rows) + self.hiding_bound(batch_rows)).bit_length() + 1",
        "return self.hiding_bound(batch_rows).bit_length()",
        (f"{PLAN}::test_a_mask_hides_a_gradient_and_both_fit_in_a_slot",),
    ),
    Mutant(
        "key-node-adds-no-noise",
        (4, 12),
        "algorithms/protocols/taylor/steps.py",
        "    if steps == 0:\n",
        "    if steps >= 0:\n",
        (f"{STEPS}::test_noise_has_the_standard_deviation_that_was_asked_for",),
    ),
    Mutant(
        "label-dp-with-fresh-noise",
        (5,),
        "algorithms/protocols/taylor/steps.py",
        "{'kept' if parameters.noise_kept else epoch}",
        "{epoch}",
        (f"{STEPS}::test_noise_differs_by_party_batch_and_key_and_by_epoch_unless_kept",),
    ),
    Mutant(
        "label-dp-with-class-weights",
        (5,),
        "algorithms/protocols/taylor/parameters.py",
        "if parameters.noise_kept and parameters.encrypted_factors:",
        "if parameters.noise_kept and parameters.masked and parameters.encrypted_factors:",
        (f"{PLAN}::test_what_cannot_work_is_refused_before_the_start",),
    ),
    Mutant(
        "label-dp-that-stops-by-the-loss",
        (5,),
        "algorithms/protocols/taylor/parameters.py",
        "if parameters.noise_kept and parameters.hold_out_loss:",
        "if parameters.noise_kept and parameters.masked and parameters.hold_out_loss:",
        (f"{PLAN}::test_what_cannot_work_is_refused_before_the_start",),
    ),
    Mutant(
        "label-dp-without-the-row-clip",
        (5,),
        "parties/taylor/data_party.py",
        "            features = clip_integer_rows(features, bound)\n",
        "            features = clip_integer_rows(features, 2**31)\n",
        (f"{PREFLIGHT}::test_label_dp",),
        known=True,  # what is charged is tested, and the noise, but not that rows keep to the bound
    ),
    Mutant(
        "every-party-with-the-whole-bound",
        (5,),
        "parties/taylor/parameters.py",
        "return bound * math.sqrt(columns / all_columns)",
        "return bound",
        (f"{PREFLIGHT}::test_label_dp",),
        known=True,  # that the parties' bounds make up one bound is tested nowhere
    ),
    Mutant(
        "rows-clipped-a-step-too-long",
        (5,),
        "algorithms/fixed_point.py",
        "norm_bound // (roots[long, None] + 1)",
        "norm_bound // roots[long, None]",
        ("tests/predict/test_model_part.py", "tests/predict/test_scorer.py"),
    ),
    Mutant(
        "label-dp-not-charged",
        (1,),
        "parties/taylor/data_party.py",
        "is_charged = job.privacy is not None and active",
        "is_charged = job.privacy is None and active",
        (f"{PROCESSES}::test_label_dp_is_charged_once_to_the_active_partys_ledger",),
    ),
    # --- what gradients give away
    Mutant(
        "no-jitter",
        (12,),
        "parties/taylor/data_party.py",
        "jitter = 0.0 if job.privacy else job.taylor.jitter",
        "jitter = 0.0",
        (f"{PREFLIGHT}::test_a_job_without_trouble", f"{LEAKS}::test_no_jitter"),
        known=True,  # jitter is tested in the seats of the protocol, not where a party makes its seat
    ),
    Mutant(
        "jitter-left-out-of-the-terms",
        (12,),
        "algorithms/statistics/taylor_plan.py",
        "terms = -self.loss.cross * y + jitter",
        "terms = -self.loss.cross * y + 0 * jitter",
        (f"{PLAN}::test_label_terms_carry_the_jitter_and_stop_at_their_bound",),
    ),
    Mutant(
        "rows-that-stand-out",
        (12,),
        "algorithms/statistics/gradient_leaks.py",
        "MOST_LEVERAGE = 0.5",
        "MOST_LEVERAGE = 0.99",
        (LEAKS, "tests/attacks/test_lone_rows.py"),
    ),
    Mutant(
        "leverage-of-shortened-rows-not-looked-at-again",
        (12,),
        "algorithms/statistics/gradient_leaks.py",
        "out = int((found > most + SLACK).sum())",
        "out = int((found > 1 + SLACK).sum())",
        (f"{LEAKS}::test_rows_of_breast_cancer_stand_out_unless_they_are_shortened",),
    ),
    Mutant(
        "label-bits-not-counted",
        (12,),
        "algorithms/statistics/gradient_leaks.py",
        "    if bits <= most:\n",
        "    if bits <= 100 * most:\n",
        (f"{LEAKS}::test_label_bits_at_the_limit",),
    ),
    Mutant(
        "as-many-columns-as-rows",
        (12,),
        "algorithms/statistics/gradient_leaks.py",
        "LEAST_ROWS_PER_COLUMN = 4",
        "LEAST_ROWS_PER_COLUMN = 1",
        (LEAKS,),
    ),
    Mutant(
        "leaks-found-and-let-pass",
        (12,),
        "parties/taylor/leaks.py",
        "if leak.flag not in job.taylor.unsafe:",
        "if leak.flag in job.taylor.unsafe:",
        (f"{PROCESSES}::test_what_is_unsafe_or_wrong_is_one_line[taylor.jitter=0-jitter]",),
    ),
    Mutant(
        "one-split-for-all-seeds",
        (12,),
        "algorithms/statistics/taylor_plan.py",
        'public_generator(seed, "split")',
        'public_generator(0, "split")',
        (f"{PLAN}::test_a_seed_gives_one_plan_to_all",),
    ),
    Mutant(
        "scaled-on-test-rows-too",
        (12,),
        "parties/vertical/prepared.py",
        "fitted_on = with_rows(rows, plan.train)",
        "fitted_on = np.flatnonzero(rows.there)",
        (f"{PREFLIGHT}::test_a_job_without_trouble", "tests/report/vertical/test_vertical_content.py"),
        known=True,  # no test changes rows that are held out and looks at the scale
    ),
    Mutant(
        "walr-scaled-on-test-rows-too",
        (12,),
        "parties/walr/consumer.py",
        "Standardiser.fit(train.features, source.feature_names,",
        "Standardiser.fit([*train.features, *test.features], source.feature_names,",
        ("tests/walr/test_protocol.py", "tests/statistics/test_feature_scaling.py"),
        known=True,  # as above; the processes' tests do not notice it either
    ),
    # --- alignment
    Mutant(
        "points-of-a-peer-not-checked",
        (12,),
        "algorithms/alignment/psi.py",
        "if not all(map(bindings.crypto_core_ed25519_is_valid_point, _split(points))):",
        "if not points:",
        (f"{PSI}::test_a_wrong_point_is_refused_wherever_it_stands",),
    ),
    Mutant(
        "a-point-twice",
        (3, 12),
        "algorithms/alignment/psi.py",
        "if (ordered[1:] == ordered[:-1]).any():",
        "if (ordered[1:] < ordered[:-1]).any():",
        (f"{PSI}::test_a_point_twice_is_refused",),
    ),
    Mutant(
        "ids-not-shuffled",
        (12,),
        "algorithms/protocols/align.py",
        "return OwnSet(ids, psi.permutation(len(ids), uniform), BlindingKey.draw(uniform))",
        "return OwnSet(ids, np.arange(len(ids)), BlindingKey.draw(uniform))",
        (f"{ALIGN}::test_kept_order_does_not_leak",),
    ),
    Mutant(
        "common-rows-in-the-order-of-points",
        (12,),
        "algorithms/protocols/align.py",
        "order = psi.permutation(common, uniform)",
        "order = np.arange(common)",
        (f"{ALIGN}::test_the_common_order_is_the_key_nodes_and_uniform",),
    ),
    Mutant(
        "told-how-few-rows-are-common",
        (12,),
        "algorithms/protocols/align.py",
        "    if common < least:\n",
        "    if common < 1:\n",
        (f"{ALIGN}::test_how_few_rows_are_common_is_not_told",),
    ),
    Mutant(
        "one-blinding-key-for-all-sessions",
        (12,),
        "algorithms/alignment/psi.py",
        "(1 + uniform(GROUP_ORDER - 1)).to_bytes(",
        "(1 + len(DOMAIN)).to_bytes(",
        (f"{ALIGN}::test_no_point_is_sent_twice_and_two_runs_share_none",),
    ),
    Mutant(
        "filters-that-outlive-the-session",
        (12,),
        "algorithms/protocols/link.py",
        "HKDF(SHA256(), clk.SECRET_BYTES, salt=None, info=info).derive(shared)",
        "HKDF(SHA256(), clk.SECRET_BYTES, salt=None, info=info[:0]).derive(shared)",
        (f"{LINK}::test_secrets_agree_and_are_of_one_session",),
    ),
    Mutant(
        "matched-slots-first",
        (12,),
        "algorithms/protocols/link.py",
        "order = permutation(n_slots, uniform)",
        "order = np.arange(n_slots)",
        (f"{LINK}::test_a_partys_slots_do_not_depend_on_who_matches",),
    ),
    # --- prediction
    Mutant(
        "prediction-without-masks",
        (12,),
        "algorithms/protocols/predict.py",
        "    for message in added:\n        total += _expand(message.seed, len(part))\n",
        "    for message in added:\n        total += _expand(message.seed, len(part)) * np.uint64(0)\n",
        (f"{PREDICT}::test_masked_scores_look_uniform",),
    ),
    Mutant(
        "a-missing-mask-not-noticed",
        (12,),
        "algorithms/protocols/predict.py",
        "max(int(scores.max()), -int(scores.min())) > SCORE_LIMIT:",
        "max(int(scores.max()), -int(scores.min())) > 2**64:",
        (f"{PREDICT}::test_a_mask_that_is_missing_is_noticed",),
    ),
    Mutant(
        "changed-model-believed",
        (24,),
        "parties/files/written.py",
        'return verify(key.public_bytes, canonical_json(content), bytes.fromhex(signature["ed25519"]))',
        'return bool(bytes.fromhex(signature["ed25519"]))',
        ("tests/vertical/test_model_store.py::test_whatever_was_changed_is_noticed",),
    ),
    # --- a training that goes on
    Mutant(
        "resumed-on-a-changed-dataset",
        (17, 22),
        "parties/taylor/data_party.py",
        'if base["dataset_version"] != version:',
        'if not base["dataset_version"]:',
        (CHECKPOINTS,),
        known=True,  # resuming is tested with processes, on the rows that the training began with
    ),
    Mutant(
        "resumed-with-other-options",
        (17,),
        "parties/vertical/checkpoints.py",
        'if base.get("job") != digest_of(job):',
        'if not base.get("job"):',
        (f"{CHECKPOINTS}::test_a_job_is_resumed_with_the_options_that_it_began_with",),
    ),
    Mutant(
        "resumed-from-an-epoch-that-one-party-lacks",
        (17,),
        "parties/vertical/checkpoints.py",
        "max(set.intersection(*sets), default=0)",
        "max(set.union(*sets), default=0)",
        (f"{CHECKPOINTS}::test_parties_go_on_from_the_last_epoch_that_all_have",),
    ),
    Mutant(
        "velocity-lost-in-a-checkpoint",
        (17,),
        "algorithms/statistics/taylor.py",
        '            "velocity": self.velocity,\n',
        '            "velocity": 0 * self.velocity,\n',
        (f"{OPTIMISER}::test_a_restored_optimiser_goes_on_as_if_nothing_had_been",),
    ),
    Mutant(
        "secrets-stay-after-the-training",
        (24,),
        "parties/vertical/checkpoints.py",
        "        shutil.rmtree(self._directory, ignore_errors=True)\n",
        '        (self._directory / "base.json").touch()\n',
        (f"{CHECKPOINTS}::test_nothing_stays_when_the_training_is_done",),
    ),
    Mutant(
        "checkpoints-that-others-can-read",
        (24,),
        "parties/files/written.py",
        "replace_file(path, content, mode=0o600)",
        "replace_file(path, content, mode=0o644)",
        (f"{CHECKPOINTS}::test_the_newest_epochs_are_kept_and_come_back",),
    ),
)
