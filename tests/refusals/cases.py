"""Jobs that `run` refuses before the first message that depends on a row: `check` refuses each in the same words."""

from __future__ import annotations

from tests.refusals.both import ANYBODY
from tests.refusals.case import BUDGET, POLICY, Case
from tests.refusals.earlier import EARLIER
from tests.refusals.worlds import (
    archive,
    archive_of_private_rows,
    dp_lr,
    edited_ledger,
    falcon,
    few_common_rows,
    full_share,
    label_dp,
    lost_database,
    many_sessions,
    model_of_other_columns,
    other_coordinator,
    person,
    private_falcon,
    published,
    regions,
    setting,
    settings,
    taylor,
    uploads,
    walr,
    wide_falcon,
    without_phe,
    writing,
)

LAUNCHER = "coordinator/running/launcher.py "
SMALL = {"people": {"epsilon": 0.5, "delta": 1e-5}}

TWO_POINTS = ["select.grid.l2=[0.01,0.1]"]
ANY_MODELS = setting("datasets.loans.models_per_row", "unlimited", "bank")

CASES = [
    # --- files
    Case(LAUNCHER + "party_settings: parties.", walr, "meter", setting("parties.meter.config", None, "job")),
    Case(LAUNCHER + "party_settings: {}: name", walr, "meter", setting("name", "metre", "meter")),
    Case(LAUNCHER + "check_member: parties", walr, "meter", setting("parties.meter.dataset", "clicks", "job")),
    Case(LAUNCHER + "coordinator_name", walr, "coordinator", other_coordinator),
    # --- what a party keeps
    Case("parties/store/database.py make_lost_error", dp_lr, "shop", lost_database),
    Case(
        "parties/store/database.py Store.__init__",
        dp_lr,
        "shop",
        writing("state/shop/party.sqlite", "no database " * 99),
    ),
    Case("parties/store/charging.py check_chain", dp_lr, "shop", edited_ledger),
    # --- datasets
    Case(
        "coordinator/running/snapshots.py publish_first",
        walr,
        "meter",
        published(
            "meter",
            settings(
                ("datasets.rows.population", "others", "meter"),
                ("populations", {"others": {"epsilon": 9.0, "delta": 1e-5}}, "meter"),
            ),
        ),
    ),
    Case(
        "parties/snapshots/scored.py refuse_weak_content: {}: {}: a party",
        taylor,
        "shop",
        setting("datasets.loans.models_per_row", None, "shop"),
    ),
    Case(
        "parties/snapshots/scored.py refuse_weak_content: {}: {}: its rows",
        taylor,
        "post",
        setting("datasets.loans.models_per_row", 60, "post"),
    ),
    # --- policies
    Case(POLICY + "{} is not a system", walr, "meter", setting("policy.systems", ["evaluate"], "meter")),
    Case(POLICY + "{} is not a system", taylor, "post", setting("policy.systems", ["falcon"], "post")),
    Case(
        LAUNCHER + "check_member: it is",
        taylor,
        "post",
        settings(("role", "active", "post"), ("datasets.loans.models_per_row", None, "post")),
    ),
    Case(POLICY + "(_refuse) #2", walr, "meter", setting("policy.max_epsilon", 0.5, "meter")),
    Case(POLICY + "(_refuse) #2", walr, "shop", setting("policy.max_delta", 1e-7, "shop")),
    Case(POLICY + "(_refuse) #2", label_dp, "meter", setting("policy.label-dp.mechanisms", ["laplace"], "meter")),
    Case(POLICY + "(_refuse) #2", taylor, "bank", sets=["taylor.unsafe=['label-bits']"]),
    Case(POLICY + "(_refuse) #2", taylor, "post", setting("policy.min_common", 150, "post")),
    Case(
        "parties/sessions/admission.py Admission._address_of: {} is not",
        walr,
        "shop",
        setting("peers.meter.role", "passive", "shop"),
    ),
    Case(
        "parties/measurement/seat.py MeasurementSeat.check: (_refuse)",
        walr,
        "meter",
        settings(("datasets.rows.label_kind", "number", "meter"), ("datasets.rows.label_range", [0.0, 1.0], "meter")),
    ),
    Case(
        "parties/measurement/seat.py MeasurementSeat.check: (_refuse) #2",
        walr,
        "meter",
        sets=["privacy.max_rows_per_person=3"],
    ),
    Case(
        "parties/measurement/seat.py MeasurementSeat.check_members",
        walr,
        "meter",
        settings(("peers.bank.role", "active", "meter"), ("datasets.rows.active_parties", ["bank"], "meter")),
    ),
    # --- budgets and limits
    Case(BUDGET, walr, "meter", setting("populations", SMALL, "meter")),
    Case(BUDGET, label_dp, "meter", setting("populations", SMALL, "meter")),
    Case(BUDGET, dp_lr, "shop", setting("populations", SMALL, "shop")),
    Case(BUDGET, taylor, "bank", setting("populations.customers.epsilon", 0.5, "bank"), ["privacy.epsilon=0.8"]),
    Case(BUDGET, private_falcon, "post", setting("populations.customers.epsilon", 0.5, "post")),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        walr,
        "meter",
        setting("policy.min_rows", 900, "meter"),
        ["split.test_fraction=0"],
    ),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        label_dp,
        "meter",
        setting("policy.min_rows", 900, "meter"),
        ["split.test_fraction=0"],
    ),
    Case(
        "parties/settings.py PolicySettings.check_rows",
        dp_lr,
        "shop",
        setting("policy.min_rows", 900, "shop"),
        ["split.test_fraction=0"],
    ),
    Case(
        "parties/vertical/scored_rows.py check_gives_scores",
        taylor,
        "post",
        setting("datasets.loans.models_per_row", 0, "post"),
    ),
    # --- what the job needs of a dataset
    Case("parties/training/rows.py check_features", walr, "shop", setting("datasets.rows.features", None, "shop")),
    Case("parties/training/rows.py check_features", taylor, "post", setting("datasets.loans.features", None, "post")),
    Case(
        "parties/training/budget.py population_of",
        private_falcon,
        "post",
        settings(("datasets.loans.population", None, "post"), ("populations", None, "post")),
    ),
    Case(
        "parties/training/budget.py population_of",
        dp_lr,
        "shop",
        settings(("datasets.rows.population", None, "shop"), ("populations", None, "shop")),
    ),
    Case(
        "parties/training/feature_bounds.py in_order: {}: {} has no bounds",
        private_falcon,
        "post",
        sets=['falcon.feature_bounds=["bank0:-4:4", "bank1:-4:4", "bank2:-4:4", "shop0:-4:4", "shop1:-4:4"]'],
    ),
    Case("parties/training/unit.py refuse_persons", taylor, "post", person("post", "loans"), ["privacy.epsilon=0.8"]),
    Case(
        "parties/training/unit.py refuse_dependent_rows: datasets.{}.missing",
        private_falcon,
        "post",
        setting("datasets.loans.missing", "mean", "post"),
    ),
    Case(
        "parties/training/unit.py refuse_dependent_rows: datasets.{}.missing",
        dp_lr,
        "shop",
        setting("datasets.rows.missing", "mean", "shop"),
    ),
    Case(
        "parties/vertical/training.py DataParty.check: datasets.{}.label is",
        taylor,
        "bank",
        settings(
            ("datasets.loans.label", None, "bank"),
            ("datasets.loans.population", None, "bank"),
            ("populations", None, "bank"),
        ),
    ),
    Case(
        "parties/vertical/training.py DataParty.check: datasets.{}.label_kind",
        falcon,
        "bank",
        sets=['falcon.model="linear"'],
    ),
    Case("parties/vertical/checkpoints.py refuse_unknown", taylor, "bank", sets=['taylor.resume="vertical-0123"']),
    Case(
        "parties/taylor/parameters.py check_label_dp: datasets.{}.label_range",
        taylor,
        "bank",
        setting("datasets.loans.label_kind", "number", "bank"),
        ["privacy.epsilon=0.8", 'taylor.model="linear"'],
    ),
    Case(
        "parties/label_dp/consumer.py LabelRegression.check",
        label_dp,
        "shop",
        sets=[
            'label_dp.regressor="mlp"',
            "label_dp.options={ hidden_layer_sizes = '1000,1000,1000', max_iter = 10000 }",
        ],
    ),
    Case(
        "parties/label_dp/consumer.py LabelRegression._check_study: label_dp",
        label_dp,
        "shop",
        sets=['label_dp.evaluate_on="truth"'],
    ),
    Case(
        "parties/label_dp/consumer.py LabelRegression._check_study: datasets",
        label_dp,
        "shop",
        sets=['label_dp.evaluate_on="rows"'],
    ),
    Case(
        "parties/dp_lr/rows.py _check_has_both: datasets.{}: a dp-lr job needs f",
        dp_lr,
        "shop",
        setting("datasets.rows.features", None, "shop"),
    ),
    Case(
        "parties/dp_lr/rows.py _check_has_both: datasets.{}: a dp-lr job needs a",
        dp_lr,
        "shop",
        setting("datasets.rows.label_kind", "number", "shop"),
    ),
    Case(
        "parties/dp_lr/rows.py public_source: {} has no dataset", dp_lr, "shop", sets=['dp_lr.public_dataset="attic"']
    ),
    Case(
        "parties/dp_lr/rows.py public_source: datasets.{}: {} does not",
        dp_lr,
        "shop",
        sets=['dp_lr.public_dataset="rows"'],
    ),
    Case(
        "parties/dp_lr/trainer.py Trainer.check",
        dp_lr,
        "shop",
        sets=[
            "dp_lr.iterations=100000",
            "dp_lr.public_rows=100000000",
            'dp_lr.neighbours="add-or-remove"',
            'dp_lr.feature_bounds=["*:-4:4"]',
        ],
    ),
    Case("parties/training/public_model.py within", dp_lr, "shop", sets=['dp_lr.init="../elsewhere.json"']),
    Case(
        "parties/training/public_model.py load_pretrained",
        dp_lr,
        "shop",
        writing("start.json", "{}"),
        ['dp_lr.init="start.json"'],
    ),
    Case(
        "parties/walr/start.py read_known_model", walr, "shop", writing("start.json", "{}"), ['walr.init="start.json"']
    ),
    Case(
        "parties/walr/start.py read_start",
        walr,
        "shop",
        writing("start.json", '{"rehearsal": "yes"}'),
        ['walr.init="start.json"'],
    ),
    Case("parties/training/unit.py refuse_dependent_rows: datasets.{}.categories", dp_lr, "shop", regions),
    Case(
        "parties/dp_lr/rows.py public_source: datasets.{} and {} do not",
        dp_lr,
        "shop",
        archive(public=True),
        ['dp_lr.public_dataset="archive"'],
    ),
    Case(
        "parties/measurement/ways/several_parties.py AtServer.check: (refuse)",
        few_common_rows,
        "meter",
        is_same_place=False,
    ),
    Case(
        "parties/training/unit.py refuse_dependent_rows: datasets.{}.derive",
        dp_lr,
        "shop",
        setting("datasets.rows.derive", {"age": {"by": "bins", "of": "x0", "bins": 4}}, "shop"),
    ),
    Case(
        "parties/snapshots/populations.py _refuse_content",
        dp_lr,
        "shop",
        archive_of_private_rows(labels=True),
        ['dp_lr.public_dataset="archive"'],
    ),
    Case(
        "parties/snapshots/populations.py _refuse_private_people",
        dp_lr,
        "shop",
        archive_of_private_rows(labels=False),
        ['dp_lr.public_dataset="archive"'],
    ),
    Case(
        "parties/training/public_model.py read_public_model",
        dp_lr,
        "shop",
        model_of_other_columns,
        ['dp_lr.init="start.json"'],
    ),
    Case(
        "parties/taylor/engine.py check_engine",
        taylor,
        ANYBODY,
        sets=['paillier.engine="phe"'],
        within=without_phe,
    ),
    Case(
        "parties/measurement/release_labels.py LabelReleases._fit_without_labels",
        label_dp,
        "meter",
        sets=["privacy.delta=1e-70", 'label_dp.mechanism="gaussian"'],
        is_same_place=False,
    ),
    Case(
        "parties/taylor/leaks.py refuse_few_batches: (PolicyRefused)",
        taylor,
        ANYBODY,
        setting("datasets.loans.models_per_row", "unlimited", "bank"),
        sets=["select.folds=10", "select.grid.l2=[0.01, 0.1]"],
    ),
    Case(
        "parties/taylor/leaks.py refuse_few_batches: {}; {}",
        taylor,
        ANYBODY,
        setting("datasets.loans.models_per_row", "unlimited", "bank"),
        sets=["select.folds=10", "select.grid.l2=[0.01, 0.1]", "taylor.batch_rows=10"],
    ),
    Case("parties/measurement/charging.py check_space", walr, "meter", full_share),
    Case("parties/dp_lr/settings.py DPLRSettings.bounds_of", dp_lr, "shop", sets=['dp_lr.feature_bounds=["zz:-1:1"]']),
    Case("parties/falcon/parameters.py parameters_of", falcon, ANYBODY, sets=["falcon.validation_fraction=0.0"]),
    # --- limits that are used up before either command
    Case("parties/measurement/uploads.py check_uploads: (PolicyRefused)", walr, "meter", uploads(20)),
    Case("parties/measurement/uploads.py check_uploads: (PolicyRefused) #2", walr, "meter", uploads(1000, "bank")),
    Case("parties/sessions/admission.py Admission._check_room: (LimitExceeded) #2", walr, "meter", many_sessions),
    # --- what would leak
    Case("parties/taylor/leaks.py refusal", taylor, ANYBODY, sets=["taylor.gradient_noise=0.0"]),
    Case("parties/falcon/weight_bits.py refusal", wide_falcon, "bank"),
    # --- folds and grids
    Case("parties/snapshots/scored.py check_number_of_models", taylor, "bank", sets=TWO_POINTS),
    Case("parties/taylor/leaks.py refuse_few_batches: (PolicyRefused)", taylor, ANYBODY, ANY_MODELS, TWO_POINTS),
    Case(
        "parties/taylor/leaks.py refuse_few_batches: {}; {}",
        taylor,
        ANYBODY,
        ANY_MODELS,
        [*TWO_POINTS, "select.folds=10", "taylor.batch_rows=8"],
    ),
    Case(
        "parties/training/unit.py refuse_dependent_rows: datasets.{}.derive",
        dp_lr,
        "shop",
        setting("datasets.rows.derive", {"bad": {"by": "bins", "of": "x0", "bins": 3}}, "shop"),
    ),
    *EARLIER,
]
"""Every place that a job reaches; a place may have several cases."""
