"""Training in secret shares."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PROTOCOL, SEATS = "tests/falcon/test_protocol.py", "tests/falcon/test_seats.py"
TAMPERING = "tests/falcon/test_tampering.py"
CHANGED = f"{TAMPERING}::test_a_change_of_any_kind_of_message_ends_the_training"
UNIFORM = f"{PROTOCOL}::test_every_opened_value_is_uniform_but_for_the_bits"

MUTANTS = (
    Mutant(
        "the-mac-check-always-passes",
        (13,),
        "algorithms/protocols/falcon/check.py",
        "if not adds_up(residues):",
        "if not adds_up(residues) and not residues:",
        (f"{CHANGED}[Correction-2]",),
    ),
    Mutant(
        "what-was-opened-is-not-compared",
        (13,),
        "algorithms/protocols/falcon/check.py",
        "_require(theirs.opened == mine.opened,",
        "_require(len(theirs.opened) == len(mine.opened),",
        (f"{CHANGED}[CheckCommitment-3]",),
    ),
    Mutant(
        "a-residue-is-not-held-to-its-commitment",
        (13,),
        "algorithms/protocols/falcon/check.py",
        "_commit(other, context, residue) == committed[other].commitment",
        "_commit(other, context, residue) != b''",
        (f"{CHANGED}[ResidueCommitment-2]",),
    ),
    Mutant(
        "inputs-are-not-in-what-is-compared",
        (13,),
        "algorithms/protocols/falcon/seats.py",
        "self._opened.hear(masked)",
        "self._opened.hear(masked[:0])",
        (f"{CHANGED}[MaskedInput-3]",),
    ),
    Mutant(
        "masks-without-the-sessions-name",
        (13, 17),
        "algorithms/protocols/falcon/seats.py",
        'f"{self._run}/{self._dealt}/{item.name}"',
        'f"{self._dealt}/{item.name}"',
        (f"{PROTOCOL}::test_the_same_training_twice_opens_nothing_twice",),
    ),
    Mutant(
        "masks-without-a-number",
        (13,),
        "algorithms/protocols/falcon/seats.py",
        'f"{self._run}/{self._dealt}/{item.name}"',
        'f"{self._run}/{item.name}"',
        (UNIFORM, f"{PROTOCOL}::test_no_two_items_of_a_run_have_one_name"),
    ),
    Mutant(
        "a-range-test-that-opens-what-it-found",
        (12,),
        "algorithms/sharing/ranges.py",
        'return await multiply(party, f"{name}/hidden", total, hidden)',
        "return total",
        ("tests/sharing/test_ranges.py::test_what_is_opened_of_numbers_outside_does_not_say_which",),
    ),
    Mutant(
        "scores-past-the-waves-go-unnoticed",
        (11,),
        "algorithms/protocols/falcon/program.py",
        "if told[0]:",
        "if told[0] and model.epochs > p.epochs:",
        (f"{PROTOCOL}::test_weights_that_grow_are_refused_and_nothing_is_opened",),
    ),
    Mutant(
        "weights-opened-as-they-are",
        (12, 28),
        "parties/falcon/parameters.py",
        "kept_bits=None if as_they_are else kept_bits_for(len(plan.train), settings.model)",
        "kept_bits=None",
        (f"{SEATS}::test_what_a_job_leaves_behind",),
    ),
    Mutant(
        "opened-weights-are-not-counted",
        (28,),
        "parties/falcon/weight_bits.py",
        'transaction.add_label_layout(session.published.id, f"{what} {session.id}", share)',
        'transaction.add_label_layout(session.published.id, f"{what} {session.id}", 0.0)',
        (f"{SEATS}::test_trainings_on_the_same_labels_add_up_until_no_more_is_opened",),
    ),
    Mutant(
        "weights-that-are-opened-again-are-free",
        (28,),
        "parties/falcon/data_party.py",
        'count_bits(session, self._party.store, "weights", weights_share(parameters))',
        'session.job.resumes or count_bits(session, self._party.store, "weights", weights_share(parameters))',
        (f"{SEATS}::test_weights_that_are_opened_again_are_counted_again",),
    ),
    Mutant(
        "where-a-training-ends-is-free",
        (28,),
        "parties/falcon/data_party.py",
        'count_bits(session, self._party.store, "end", end_share(parameters, epochs))',
        "end_share(parameters, epochs)",
        ("tests/attacks/test_range_bits.py::test_with_the_rule_every_answer_is_counted_until_there_is_none",),
    ),
    Mutant(
        "a-check-that-was-begun-is-forgotten",
        (13,),
        "algorithms/protocols/falcon/check.py",
        "    begun(True)\n",
        "",
        (f"{SEATS}::test_a_check_that_was_begun_and_not_passed_ends_the_training",),
    ),
    Mutant(
        "a-loss-is-opened-with-all-its-bits",
        (12,),
        "algorithms/protocols/falcon/program.py",
        "MEAN_LOSS_BITS = 9",
        "MEAN_LOSS_BITS = 30",
        (f"{PROTOCOL}::test_the_active_party_learns_the_figures_of_the_test_rows_and_nobody_else",),
    ),
    Mutant(
        "the-same-question-is-opened-anew",
        (28,),
        "parties/falcon/data_party.py",
        "answer = None if job.resumes else answers.kept()",
        "answer = None",
        (f"{SEATS}::test_the_same_question_has_the_same_answer_and_nothing_is_opened_or_counted",),
    ),
    Mutant(
        "shares-of-another-run-are-taken-up",
        (17,),
        "parties/vertical/checkpoints.py",
        "if later > epoch:",
        "if later > epoch + 1:",
        (f"{SEATS}::test_shares_of_another_run_are_dropped_when_a_training_goes_on",),
    ),
    Mutant(
        "few-epochs-pass-the-policy",
        (28,),
        "parties/falcon/data_party.py",
        "if job.fewest_epochs < least:",
        "if job.falcon.epochs < 1:",
        (f"{SEATS}::test_few_epochs_are_refused_by_the_policy",),
    ),
    Mutant(
        "seeds-stay-when-a-check-has-failed",
        (13,),
        "parties/falcon/kept.py",
        "except (MacCheckFailed, MalformedMessage, UnexpectedStep):\n        checkpoints.remove()\n",
        "except (MacCheckFailed, MalformedMessage, UnexpectedStep):\n",
        (f"{SEATS}::test_when_a_check_fails_nothing_is_kept",),
    ),
)
