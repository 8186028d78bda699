"""Columns of the same people at several parties."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

JOBS, STEPS = "tests/walr_blocks/test_jobs.py", "tests/walr_blocks/test_steps.py"
AFTER = "tests/walr_blocks/test_after_training.py"
EVALUATE = "parties/evaluate/consumer.py"
PROTOCOL, DESK = "algorithms/protocols/walr_blocks.py", "parties/measurement/desk.py"

MUTANTS = (
    Mutant(
        "l2-tells-how-many-columns-of-others-are-constant",
        (12,),
        "parties/walr/server.py",
        "l2_of(settings, answer, request, request.n_columns)",
        "l2_of(settings, answer, request, len(trained_on))",
        ("tests/walr_blocks/test_release_file.py::test_l2_does_not_tell_how_many_columns_of_others_are_constant",),
    ),
    Mutant(
        "the-active-party-gets-the-sums-of-anothers-columns",
        (4, 12),
        PROTOCOL,
        "sums=answer.sums[-own_columns(request, blocks) :]",
        "sums=answer.sums",
        (f"{JOBS}::test_the_sum_is_exact_over_the_rows_that_all_have",),
    ),
    Mutant(
        "a-passive-partys-row-may-be-of-any-length",
        (4, 5),
        PROTOCOL,
        "        if scaled:\n            raise _of_block",
        "        if scaled < 0:\n            raise _of_block",
        (f"{JOBS}::test_a_passive_party_that_sends_other_rows_is_named_and_nothing_is_charged",),
    ),
    Mutant(
        "the-active-party-says-what-a-holder-sends",
        (5,),
        PROTOCOL,
        "if (opened.norm_bound, opened.content_sha256) != (block.norm_bound, block.content_sha256):",
        "if opened.norm_bound < 0:",
        (f"{JOBS}::test_an_active_party_that_asks_for_something_else_is_refused_and_nothing_is_charged",),
    ),
    Mutant(
        "one-release-fitted-as-often-as-anybody-likes",
        (12,),
        DESK,
        "if stored and stored[0] != self._holders().settings_sha256:",
        "if stored and not stored[0]:",
        (f"{JOBS}::test_a_release_is_fitted_once",),
    ),
    Mutant(
        "weights-told-of-the-same-rows-are-not-added-up",
        (12,),
        "parties/store/store.py",
        "SELECT coalesce(sum(bits), 0) FROM told_bits",
        "SELECT coalesce(max(bits), 0) FROM told_bits",
        (f"{JOBS}::test_weights_that_hang_on_the_same_rows_are_counted_over_all_fits",),
    ),
    Mutant(
        "weights-are-told-as-exactly-as-they-were-fitted",
        (12,),
        PROTOCOL,
        "    return np.ldexp(np.rint(np.ldexp(weights, bits)), -bits) + 0.0",
        "    return weights if bits else weights",
        (f"{STEPS}::test_told_weights_are_on_the_grid_of_their_error",),
    ),
    Mutant(
        "a-holder-whom-the-label-holder-did-not-name-is-told-weights",
        (12,),
        DESK,
        "if b.holder not in self._dataset.settings.holders",
        "if not b.holder",
        (f"{JOBS}::test_a_holder_whom_the_label_holder_did_not_name_gets_no_weights",),
    ),
    Mutant(
        "an-unknown-id-is-told-by-its-place-among-the-common-rows",
        (12,),
        DESK,
        "raise CannotAnswer(party=self._service.name) from None",
        "raise",
        (f"{JOBS}::test_a_person_asked_for_who_is_not_in_the_table_is_not_told_by_place",),
    ),
    Mutant(
        "how-many-rows-the-holders-have-in-common-is-told-where-they-are-too-few",
        (12,),
        DESK,
        "        except (DuplicateId, UnknownId, TooFewRows) as error:",
        "        except (DuplicateId, UnknownId) as error:",
        (f"{JOBS}::test_too_few_rows_in_common_are_not_counted_to_anybody",),
    ),
    Mutant(
        "an-id-that-comes-twice-is-placed-among-the-common-rows",
        (12,),
        PROTOCOL,
        "            if name in self._seen:\n",
        "            if name == self._seen:\n",
        (f"{JOBS}::test_an_id_that_comes_twice_does_not_tell_how_many_before_it_are_common",),
    ),
    Mutant(
        "a-snapshot-may-be-two-parties",
        (12,),
        "algorithms/protocols/handshake.py",
        "        if theirs.snapshot:\n",
        "        if not theirs:\n",
        (f"{JOBS}::test_an_active_party_does_not_have_anothers_bits_counted_for_its_own_snapshot",),
    ),
    Mutant(
        "all-bits-of-a-norm-bound-are-told",
        (12,),
        PROTOCOL,
        "math.ldexp(math.ceil(math.ldexp(mantissa, BOUND_BITS)), exponent - BOUND_BITS)",
        "math.ldexp(mantissa, exponent)",
        (f"{STEPS}::test_a_norm_bound_is_told_in_seven_bits_and_never_less_than_it_is",),
    ),
    Mutant(
        "a-fit-without-an-end-may-be-tried-with-any-settings",
        (12,),
        "parties/walr/server.py",
        "    except RangeError as error:",
        "    except LocalProtocolError as error:",
        (f"{JOBS}::test_a_fit_without_an_end_is_the_one_fit_of_its_release",),
    ),
    Mutant(
        "a-norm-bound-is-told-under-any-number-of-settings",
        (12,),
        "parties/walr/holders.py",
        'if session.job.walr.norm_bound == "auto":\n        count_bound',
        'if session.job.walr.norm_bound == "never":\n        count_bound',
        (f"{JOBS}::test_a_norm_bound_is_told_under_few_settings",),
    ),
    # --- evaluations
    Mutant(
        "a-model-is-charged-for-anothers-scores",
        (26,),
        EVALUATE,
        "if made.model != model:",
        "if not made.model:",
        (f"{AFTER}::test_a_model_is_not_evaluated_by_the_scores_of_another",),
    ),
    Mutant(
        "the-command-takes-scores-of-another-model",
        (26,),
        "coordinator/evaluate.py",
        "    if of != session:\n",
        "    if not of:\n",
        (f"{AFTER}::test_the_command_takes_no_scores_of_another_model",),
    ),
    Mutant(
        "a-job-that-failed-is-evaluated",
        (17, 26),
        EVALUATE,
        'if row is not None and row.state != "DONE":',
        'if row is not None and row.state == "HELD":',
        (f"{AFTER}::test_a_job_that_could_not_write_its_model_does_not_take_over_an_earlier_one",),
    ),
    Mutant(
        "a-model-file-of-another-training-is-evaluated",
        (26,),
        EVALUATE,
        'if content.get("session", job.evaluate.session) != job.evaluate.session:',
        'if content.get("session") == "":',
        (f"{AFTER}::test_a_model_that_another_partys_job_wrote_over_is_not_taken_for_the_first",),
    ),
    Mutant(
        "scores-of-many-predictions-are-evaluated",
        (26,),
        "parties/predict/prediction.py",
        'sink.kind == "csv" and sink.if_exists == "replace":',
        'sink.kind == "csv":',
        (f"{AFTER}::test_scores_are_evaluated_where_a_file_has_those_of_one_prediction",),
    ),
)
