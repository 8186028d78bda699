"""Jobs that both commands refuse because of files of an earlier job."""

from __future__ import annotations

from tests.refusals.both import ANYBODY
from tests.refusals.case import BUDGET, EVALUATE, POLICY, Case
from tests.refusals.worlds import (
    begun,
    dp_lr,
    evaluation,
    exchanged_parts,
    failed_session,
    falcon,
    full,
    many_draws,
    over_model,
    part_of_model,
    prediction,
    restored,
    revealed_scores,
    setting,
    taylor,
    trained,
    trained_alone,
    trained_in_private,
    trained_under_label_dp,
    walr,
)

RESUMED = ['taylor.resume="cut-0123"']
SCORED = ['evaluate.scores="scored-0123"']


SCORES = "parties/vertical/scored_rows.py ScoreQuota._check: "
OTHER = ["taylor.l2=0.5"]
EARLIER = [
    Case(f"{SCORES}some of these rows", trained, "post", sets=OTHER),
    Case(f"{SCORES}{{}} would reveal", taylor, "post", revealed_scores),
    Case("parties/taylor/label_layouts.py refusal", taylor, "bank", full),
    Case("parties/falcon/weight_bits.py refusal", falcon, "bank", full, ["split.test_fraction=0"]),
    Case("parties/training/randomness.py _check_room", taylor, "bank", many_draws),
    Case(BUDGET, trained_under_label_dp, "bank", sets=OTHER),
    Case(BUDGET, trained_in_private, ANYBODY, sets=["falcon.l2=0.5"]),
    Case(BUDGET, trained_alone, "shop", sets=["dp_lr.iterations=9"]),
    Case("parties/store/charging.py check_rollbacks", dp_lr, "shop", restored("shop")),
    Case("parties/store/charging.py check_rollbacks", walr, "meter", restored("meter")),
    Case("parties/predict/prediction.py JointPrediction._part: in that training", exchanged_parts, ANYBODY),
    Case("parties/vertical/checkpoints.py refuse_another_job", taylor, ANYBODY, begun(is_read=True), RESUMED),
    # --- earlier jobs
    Case("parties/snapshots/snapshots.py Snapshots.of_session", taylor, "bank", begun(), RESUMED),
    Case("parties/snapshots/snapshots.py Snapshots.to_read", taylor, "bank", begun(other=True), RESUMED),
    Case(
        "parties/training/rows.py require_offered: datasets.{}.features does",
        evaluation,
        "shop",
        setting("datasets.rows.features", ["x0"], "shop"),
        ['evaluate.rows="all"'],
    ),
    Case(
        "parties/training/rows.py require_offered: datasets.{}.except",
        evaluation,
        "shop",
        setting("datasets.rows.except", ["x0"], "shop"),
        ['evaluate.rows="all"'],
    ),
    Case(
        "parties/training/rows.py require_offered: datasets.{}: column",
        evaluation,
        "shop",
        setting("datasets.rows.person", "x0", "shop"),
        ['evaluate.rows="all"'],
    ),
    Case(f"{EVALUATE}._find_predicted_file: it has made", evaluation, "shop", part_of_model(), SCORED),
    Case(f"{EVALUATE}._find_predicted_file: the model of", evaluation, "shop", part_of_model("another-0123"), SCORED),
    Case(f"{EVALUATE}._find_predicted_file: (_refuse)", evaluation, "shop", part_of_model(""), SCORED),
    Case(f"{EVALUATE}._find_predicted_file: (_refuse) #2", evaluation, "shop", part_of_model("", "gone.csv"), SCORED),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        evaluation,
        "meter",
        setting("policy.min_rows", 900, "meter"),
    ),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        evaluation,
        "meter",
        setting("policy.min_rows", 900, "meter"),
        ['evaluate.rows="all"'],
    ),
    Case(f"{EVALUATE}._file", evaluation, "shop", sets=['evaluate.session="nobody-0123"']),
    Case(f"{EVALUATE}.check", evaluation, "shop", sets=['evaluate.scores="predicted-0123"']),
    Case(f"{EVALUATE}._model: {{}} is not a model", evaluation, "shop", over_model("[]")),
    Case(f"{EVALUATE}._model: (_refuse)", evaluation, "shop", over_model('{"session": "another-0123"}')),
    Case(f"{EVALUATE}._read", evaluation, "shop", over_model('{"format": "other"}'), ['evaluate.rows="all"']),
    Case(f"{EVALUATE}._check_done", evaluation, "shop", failed_session),
    Case(POLICY + "{} is not a system", evaluation, "meter", setting("policy.systems", ["walr"], "meter")),
    Case("parties/predict/prediction.py JointPrediction._part: it has no", prediction, "bank"),
]
