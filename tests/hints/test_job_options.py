"""Options that a job's file may not have, and what the error proposes to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from blindfit.algorithms.errors import ConfigError
from blindfit.coordinator.job.job import read_job
from tests.each_case import each_case
from tests.hints.following import refused, with_changes
from tests.hints.wrong_options import Wrong, follow

VERTICAL = {
    "bank": {"role": "active", "dataset": "loans"},
    "post": {"role": "passive", "dataset": "letters"},
    "keys": {"role": "key-node"},
}
MEASURED = {"bank": VERTICAL["bank"], "meter": {"role": "measurement", "dataset": "labels"}}
WITH_HOLDER = {**MEASURED, "post": VERTICAL["post"]}
DP = {"epsilon": 0.5}
FALCON_DP = {"validation_fraction": 0.0, "feature_bounds": ["*:-3:3"]}
JOBS: dict[str, dict[str, Any]] = {
    "taylor": {"protocol": "taylor", "parties": VERTICAL},
    "taylor-dp": {"protocol": "taylor", "parties": VERTICAL, "privacy": DP},
    "taylor-linked": {"protocol": "taylor", "parties": VERTICAL, "align": {"method": "linkage", "fields": ["name"]}},
    "falcon": {"protocol": "falcon", "parties": VERTICAL},
    "falcon-dp": {
        "protocol": "falcon",
        "parties": VERTICAL,
        "privacy": DP,
        "falcon": FALCON_DP,
        "split": {"test_fraction": 0.0},
    },
    "predict": {"protocol": "predict", "parties": VERTICAL, "predict": {"session": "s1"}},
    "walr": {"protocol": "walr", "parties": MEASURED, "privacy": DP},
    "walr-holder": {"protocol": "walr", "parties": WITH_HOLDER, "privacy": DP},
    "evaluate": {"protocol": "evaluate", "parties": MEASURED, "privacy": DP, "evaluate": {"session": "s1"}},
    "label-dp": {"protocol": "label-dp", "parties": MEASURED, "privacy": DP},
    "dp-lr": {"protocol": "dp-lr", "parties": {"bank": VERTICAL["bank"]}, "privacy": DP},
}


@each_case("job", JOBS)
def test_what_the_mistakes_are_made_in_is_right_itself(job: str) -> None:
    assert read_job(JOBS[job]).protocol == JOBS[job]["protocol"]


LINEAR = {"taylor.model": "linear"}
GRID = {"select.grid.l2": [0.1, 1.0]}
VAIN = "{} does nothing with the other options, remove it"
CASES = [
    # --- taylor
    Wrong(
        "taylor",
        {"taylor.schedule": "constant", "taylor.decay": 0.5},
        says="{} does nothing with the other options, remove it",
    ),
    *(
        Wrong("taylor", {**beside, option: value}, says=VAIN)
        for beside, option, value in [
            ({}, "taylor.momentum", 0.5),
            (LINEAR, "taylor.class_weights", "balanced"),
            (LINEAR, "taylor.threshold", 0.4),
            (LINEAR, "taylor.calibrate", False),
            ({"taylor.validation_fraction": 0}, "taylor.patience", 5),
            ({"taylor.patience": 0}, "taylor.tolerance", 0.1),
        ]
    ),
    Wrong(
        "taylor", {"taylor.norm_bound": 1.0}, says="taylor.norm_bound does nothing without privacy.epsilon, remove it"
    ),
    Wrong("taylor-dp", {"privacy.release": "monday"}, says="privacy.{} does nothing in a taylor job, remove it"),
    Wrong("taylor-dp", {"privacy.mechanism": "classic"}, says="privacy.{} does nothing in a taylor job, remove it"),
    Wrong(
        "taylor-dp",
        {"taylor.class_weights": "balanced"},
        says="taylor.class_weights: with label DP the change of one label would grow with the scores, remove it",
    ),
    Wrong(
        "taylor-dp",
        {"taylor.validation_fraction": 0.2},
        says="taylor.validation_fraction: with label DP whether to stop would reveal something about labels, remove it",
    ),
    Wrong("taylor-dp", {"taylor.jitter": 0.5}, says="taylor.{} does nothing with privacy.epsilon, remove it"),
    Wrong(
        "taylor-dp",
        {"taylor.unsafe": ["no-jitter"]},
        says="taylor.unsafe: {} does nothing with privacy.epsilon, remove it",
    ),
    # --- falcon
    *(
        Wrong("falcon", {**beside, option: value}, says=VAIN)
        for beside, option, value in [
            ({}, "falcon.key_bits", 3072),
            ({"falcon.schedule": "constant"}, "falcon.decay", 0.5),
            ({}, "falcon.momentum", 0.5),
            ({"falcon.model": "linear"}, "falcon.class_weights", "balanced"),
            ({"falcon.model": "linear"}, "falcon.threshold", 0.4),
            ({"falcon.model": "linear"}, "falcon.waves", "narrow"),
            ({"falcon.validation_fraction": 0}, "falcon.patience", 5),
            ({"falcon.validation_fraction": 0}, "falcon.tolerance", 0.1),
        ]
    ),
    Wrong(
        "falcon",
        {"falcon.weights": "shared", "falcon.unsafe": ["weight-bits"]},
        says='unsafe: weight-bits does nothing with weights = "shared", remove it',
    ),
    Wrong(
        "falcon",
        {"falcon.weights": "shared", "falcon.model": "linear"},
        says='weights: a linear model does not stay shared, take weights = "open"',
        mend={"falcon.weights": "open"},
    ),
    *(
        Wrong(
            "falcon",
            {"falcon.backend": "threshold", "falcon.security": "malicious"},
            says='set it to "semi-honest", or backend to "shares"',
            mend=mend,
        )
        for mend in ({"falcon.security": "semi-honest"}, {"falcon.backend": "shares"})
    ),
    *(
        Wrong(
            "falcon",
            {"falcon.backend": "threshold", option: value},
            says='{}: "{}" takes backend = "shares"',
            mend={"falcon.backend": "shares"},
        )
        for option, value in [
            ("falcon.model", "linear"),
            ("falcon.optimiser", "momentum"),
            ("falcon.l1", 0.1),
            ("falcon.class_weights", "balanced"),
        ]
    ),
    Wrong(
        "falcon",
        {"falcon.decay": 100, "falcon.epochs": 10_000, "falcon.schedule": "exponential"},
        says="lower decay, or epochs",
        mend={"falcon.decay": 0.001},
    ),
    Wrong(
        "falcon",
        {"falcon.decay": 1, "falcon.epochs": 10_000, "falcon.schedule": "exponential"},
        says="lower decay, or epochs",
        mend={"falcon.epochs": 10},
    ),
    Wrong(
        "falcon",
        {"falcon.patience": 0},
        says="validation_fraction: with patience = 0 nothing is decided by these rows: set it to 0",
        mend={"falcon.validation_fraction": 0},
    ),
    *(
        Wrong(
            "falcon",
            {"align.method": "linkage", "align.fields": ["name"]},
            says='set align.method = "psi" and remove other options of [align], or set protocol = "taylor"',
            mend=mend,
        )
        for mend in ({"align": {"method": "psi"}}, {"protocol": "taylor"})
    ),
    Wrong(
        "falcon",
        {"falcon.threshold": 0.4, "split.test_fraction": 0},
        says="falcon.threshold does nothing without test rows (split.test_fraction), remove it",
    ),
    Wrong("falcon", {"falcon.norm_bound": 2.0}, says="falcon.{} does nothing without privacy.epsilon, remove it"),
    Wrong("falcon-dp", {"privacy.mechanism": "classic"}, says="privacy.{} does nothing in a falcon job, remove it"),
    Wrong("falcon-dp", {"privacy.max_rows_per_person": 2}, says="privacy.{} does nothing in a falcon job, remove it"),
    Wrong(
        "falcon-dp",
        {"falcon.validation_fraction": 0.2},
        says="falcon.validation_fraction: with privacy.epsilon no loss is opened, set it to 0",
        mend={"falcon.validation_fraction": 0},
    ),
    Wrong(
        "falcon-dp",
        {"split.test_fraction": 0.2},
        says="split.test_fraction: with privacy.epsilon no figure of test rows is opened, set it to 0",
        mend={"split.test_fraction": 0},
    ),
    *(
        Wrong("falcon-dp", {option: value}, says="falcon.{} does not go with privacy.epsilon yet, remove it")
        for option, value in [("falcon.l1", 0.1), ("falcon.weights", "shared"), ("falcon.sampling", "replacement")]
    ),
    Wrong("falcon-dp", {"falcon.threshold": 0.4}, says="falcon.threshold does nothing with privacy.epsilon, remove it"),
    Wrong(
        "falcon-dp",
        {"falcon.unsafe": ["weight-bits"]},
        says="falcon.unsafe: {} does nothing with privacy.epsilon, remove it",
    ),
    Wrong(
        "falcon-dp",
        {"falcon.feature_bounds": []},
        says='with privacy.epsilon columns are scaled by public bounds, such as falcon.feature_bounds = ["*:-3:3"]',
        mend={"falcon.feature_bounds": ["*:-3:3"]},
    ),
    # --- linkage, prediction
    *(
        Wrong("taylor", {option: value}, says='{} does nothing with method = "psi", remove it')
        for option, value in [("align.fields", ["name"]), ("align.threshold", 0.9), ("align.match_rate", 0.3)]
    ),
    Wrong(
        "taylor-linked",
        {"align.fields": []},
        says='fields is missing: linkage compares some, such as ["last_name", "birth_date:date"]',
        mend={"align.fields": ["last_name", "birth_date:date"]},
    ),
    Wrong(
        "predict",
        {"align.method": "linkage", "align.fields": ["name"]},
        says='after a linkage no party learns which rows match, so no row can be scored: set align.method = "psi"',
        mend={"align": {"method": "psi"}},
    ),
    # --- walr
    Wrong(
        "walr",
        {"privacy": None},
        says="privacy.epsilon is missing: WALR is a release under",
        mend={"privacy.epsilon": 1},
    ),
    *(
        Wrong(
            "walr",
            {f"walr.{name}": -1},
            says='{} must be "auto" or a number that is not negative',
            mend={f"walr.{name}": to},
        )
        for name, to in [("norm_bound", "auto"), ("l2", "auto"), ("l2", 1.0)]
    ),
    Wrong(
        "walr", {"walr.norm_bound": 0}, says='norm_bound must be above 0, or "auto"', mend={"walr.norm_bound": "auto"}
    ),
    Wrong(
        "walr",
        {"walr.norm_bound": 2.0, "walr.norm_quantile": 0.9},
        says='norm_quantile does nothing if norm_bound is a number: set norm_bound = "auto"',
        mend={"walr.norm_bound": "auto"},
    ),
    *(
        Wrong(
            "walr",
            {"walr.init": "pretrained.json", "walr.l2": 0},
            says="init does nothing with l2 = 0, remove one: l2 shrinks towards the pre-trained weights",
            mend={option: None},
        )
        for option in ("walr.init", "walr.l2")
    ),
    Wrong(
        "walr-holder",
        {"walr.trust": "encrypted-rows"},
        says='walr.trust = "{}" is for one party\'s columns: passive parties need "{}"',
        mend={"walr.trust": "trusted"},
    ),
    Wrong(
        "walr-holder",
        {"walr.init": "pretrained.json"},
        says="walr.init does nothing where passive parties hold columns too, remove it",
    ),
    *(
        Wrong(
            "walr",
            {**beside, "privacy.mechanism": "classic"},
            says='mechanism = "classic" is proved only for epsilon < 1: take "analytic"',
            mend={"privacy.mechanism": "analytic"},
        )
        for beside in [{"privacy.epsilon": 1.0}, {"privacy.epsilon": 3.0}]
    ),
    # --- evaluate
    Wrong(
        "evaluate",
        {"evaluate.session": ""},
        says="evaluate.session is missing: the session of the training",
        mend={"evaluate.session": "s1"},
    ),
    Wrong(
        "evaluate",
        {"privacy": None},
        says="privacy.epsilon is missing: an evaluation is a release",
        mend={"privacy.epsilon": 1},
    ),
    Wrong(
        "evaluate",
        {"evaluate.score_bound": 1e-9},
        says='score_bound must be "auto" or a number, {} at least',
        mend={"evaluate.score_bound": "auto"},
    ),
    Wrong(
        "evaluate",
        {"evaluate.figures": ["log_loss"], "evaluate.bins": 10},
        says='bins does nothing without "auc" among the figures, remove it',
    ),
    Wrong(
        "predict",
        {"predict.session": ""},
        says="predict.session is missing: the session of the training",
        mend={"predict.session": "s1"},
    ),
    # --- label-dp
    Wrong(
        "label-dp",
        {"privacy": None},
        says="privacy.epsilon is missing: labels are released only under",
        mend={"privacy.epsilon": 1},
    ),
    Wrong("label-dp", {"label_dp.optimal_for": "squared"}, says='{} does nothing with mechanism = "{}", remove it'),
    Wrong(
        "label-dp",
        {"label_dp.half_width": -1.0, "label_dp.mechanism": "rp-banded", "label_dp.debias": False},
        says='half_width must be "auto" or a number above 0',
        mend={"label_dp.half_width": 1.0},
    ),
    Wrong(
        "label-dp",
        {"label_dp.mechanism": "rp-banded", "label_dp.debias": False},
        says="half_width is missing: rp-banded needs a number, in units of the label",
        mend={"label_dp.half_width": 1.0},
    ),
    *(
        Wrong(
            "label-dp",
            {"label_dp.mechanism": "rr-on-bins"},
            says="debias: {} cannot be debiased; set debias = false, or take",
            mend=mend,
        )
        for mend in [
            {"label_dp.debias": False},
            {"label_dp.mechanism": "rp-with-prior"},
            {"label_dp.mechanism": "unbiased"},
        ]
    ),
    Wrong(
        "label-dp",
        {"label_dp.mechanism": "laplace", "label_dp.debias": False},
        says="debias = false does nothing with mechanism = {}, which has no bias, remove it",
    ),
    Wrong(
        "label-dp", {"privacy.mechanism": "classic"}, says="privacy.mechanism does nothing in a label-dp job, remove it"
    ),
    Wrong("label-dp", {"privacy.delta": 1e-7}, says="privacy.delta does nothing with {}, whose delta is 0: remove it"),
    Wrong(
        "label-dp",
        {"label_dp.epsilon_prior": 0.5},
        says="label_dp.epsilon_prior is a part of privacy.epsilon, and must be below it",
        mend={"label_dp.epsilon_prior": 0.4},
    ),
    *(
        Wrong(
            "label-dp",
            {"privacy.epsilon": 40.0},
            says='use {} or less, or the mechanism "gaussian" up to 50',
            mend=mend,
        )
        for mend in [{"privacy.epsilon": 30}, {"label_dp.mechanism": "gaussian"}]
    ),
    Wrong(
        "label-dp",
        {"label_dp.regressor": "mlp", "label_dp.options": {"hidden_layer_sizes": "0"}},
        says='must be one to four widths below 10,000, such as "64,32"',
        mend={"label_dp.options": {"hidden_layer_sizes": "64,32"}},
    ),
    # --- dp-lr
    Wrong(
        "dp-lr",
        {"dp_lr.learning_rate": -1.0},
        says='learning_rate must be "auto" or a number from {} to {}',
        mend={"dp_lr.learning_rate": "auto"},
    ),
    Wrong(
        "dp-lr",
        {"dp_lr.neighbours": "add-or-remove"},
        says='public_rows is missing: with neighbours = "add-or-remove" the number of rows is private',
        mend={"dp_lr.public_rows": 1000},
    ),
    Wrong(
        "dp-lr",
        {"dp_lr.public_rows": 1000},
        says='public_rows does nothing with neighbours = "replace-one", whose number of rows is public, remove it',
    ),
    *(
        Wrong(
            "dp-lr",
            {"dp_lr.init": "pretrained.json", "dp_lr.public_dataset": "known"},
            says="init and public_dataset both name the start of descent: remove one of them",
            mend={option: None},
        )
        for option in ("dp_lr.init", "dp_lr.public_dataset")
    ),
    *(
        Wrong(
            "dp-lr",
            {"dp_lr.loss_share": 0.1, "dp_lr.public_dataset": "known"},
            says="loss_share pays for a loss that the rows of public_dataset give for free: remove one of them",
            mend={option: None},
        )
        for option in ("dp_lr.loss_share", "dp_lr.public_dataset")
    ),
    Wrong(
        "dp-lr",
        {"privacy": None},
        says="privacy.epsilon is missing: a dp-lr job is a release",
        mend={"privacy.epsilon": 1},
    ),
    Wrong("dp-lr", {"privacy.mechanism": "classic"}, says="privacy.mechanism does nothing in a dp-lr job, remove it"),
    Wrong(
        "dp-lr",
        {"privacy.max_rows_per_person": 2},
        says="privacy.max_rows_per_person does nothing in a dp-lr job, which protects rows: remove it",
    ),
    Wrong(
        "dp-lr",
        {"seed": 3, "split.test_fraction": 0},
        says="seed does nothing with split.test_fraction = 0: it only draws the split; remove it",
    ),
    # --- a grid
    Wrong(
        "falcon",
        {**GRID, "falcon.backend": "threshold"},
        says='select: folds are tested in shares: set falcon.backend = "shares", or remove [select]',
    ),
    Wrong(
        "falcon",
        {**GRID, "falcon.resume": "falcon-0badcafe"},
        says="select: a job that chooses options is not resumed: remove falcon.resume, and run it again",
    ),
    Wrong(
        "falcon-dp",
        GRID,
        says="select: with privacy.epsilon each fold's training would be a release that epsilon pays for, and no "
        "figure is opened: remove [select], or remove [privacy]",
        mend={"select": None},
    ),
    Wrong(
        "falcon",
        {**GRID, "select.by": "mse"},
        says='"log_loss", "accuracy" or "auc"',
        mend={"select.by": "auc"},
    ),
    Wrong(
        "taylor",
        {**GRID, "select.by": "auc"},
        says="select.by: a taylor job compares losses: remove it, as {} takes scores of rows",
        mend={"select.by": None},
    ),
    Wrong(
        "taylor",
        {**GRID, "taylor.resume": "taylor-0badcafe"},
        says="select: a job that chooses options is not resumed: remove taylor.resume, and run it again",
    ),
    Wrong(
        "taylor-linked",
        GRID,
        says="select: after a linkage nobody knows how many rows of a fold match: remove [select], or set "
        'align.method = "psi" and remove other options of [align]',
        mend={"select": None},
    ),
    Wrong(
        "taylor-dp",
        GRID,
        says="select: with privacy.epsilon the losses of folds would reveal something about labels that no budget pays "
        "for: remove [select], or remove [privacy]",
        mend={"select": None},
    ),
    # --- the file
    Wrong("dp-lr", {"taylor.epochs": 3}, says="{}: {} does nothing in a {} job, remove it"),
    Wrong("dp-lr", {"protocol": None}, says="it is one of {}", mend={"protocol": "dp-lr"}),
]


@each_case("wrong", CASES, ids=lambda wrong: f"{wrong.job}: {wrong.changes}")
def test_a_job_is_mended_as_its_error_says(wrong: Wrong) -> None:
    values = with_changes(JOBS[wrong.job], wrong.changes)
    with refused(wrong.says) as told:
        read_job(values)
    read_job(follow(values, told, wrong.mend))


WITHOUT_FOLDS = {
    "walr": "a walr job releases one noisy sum of all training rows, which has no folds: ",
    "label-dp": "a label-dp job pays for each label once, and its labels stay noisy in every fold: ",
    "dp-lr": "each fit of a dp-lr job is a release that its budget pays for, and so would each fold be: ",
    "predict": "this job trains nothing: ",
    "evaluate": "this job trains nothing: ",
}


@each_case("job", WITHOUT_FOLDS)
def test_a_system_without_folds_says_why_it_takes_no_grid(job: str) -> None:
    values = with_changes(JOBS[job], GRID)
    with pytest.raises(ConfigError) as caught:
        read_job(values)
    assert f"select: {WITHOUT_FOLDS[job]}remove [select]" in caught.value.message
    read_job(with_changes(values, {"select": None}))
