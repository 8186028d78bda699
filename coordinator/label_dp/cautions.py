"""Cautions that a reader needs before trusting a regression on released labels; each caution names what to do."""

from __future__ import annotations

from blindfit.coordinator.label_dp.figures import Figures
from blindfit.coordinator.report.label_privacy import warn_of_large_delta
from blindfit.coordinator.terminal.wording import count, figure, percent, quantity

MOST_CLIPPED = 0.05
MOST_NOISE = 0.1  # of the range, added to a typical prediction
SURE = 2.0  # standard errors
TREES = ("decision-tree", "random-forest", "gradient-boosting")


def cautions_of(facts: Figures) -> list[str]:
    found = (
        _warn_of_bias(facts),
        _warn_of_noise(facts),
        _warn_of_no_gain(facts),
        _warn_of_clipped_labels(facts),
        _warn_of_withheld_rows(facts),
        _warn_of_no_convergence(facts),
        warn_of_large_delta(facts.privacy.delta, facts.rows.sent),
    )
    return [caution for caution in found if caution]


def _warn_of_bias(facts: Figures) -> str:
    privacy = facts.privacy
    if facts.fit.debiased:
        return ""
    return (
        f"The bias of {privacy.mechanism} was not removed. The mean of a released label may be off by up to "
        f"{figure(privacy.largest_bias)}, and the model learns this mean. Its error on true labels is unknown. "
        "Additive noise and unbiased have no bias; rp-with-prior can be debiased."
    )


def error_of_noise(facts: Figures) -> float:
    """Return the standard deviation that the noise adds to a prediction of least squares, on an average row."""
    share = (facts.rows.features + 1) / max(1, facts.rows.trained)
    return float(facts.privacy.noise_std * min(1.0, share) ** 0.5)


def _warn_of_noise(facts: Figures) -> str:
    added = error_of_noise(facts)
    if added <= MOST_NOISE * facts.privacy.width:
        return ""
    return (
        f"The noise of a label has the standard deviation {figure(facts.privacy.noise_std)}. With "
        f"{quantity(facts.rows.trained, 'row')} and {quantity(facts.rows.features, 'feature')} a linear model's "
        f"predictions would be off by about {figure(added)}, in a range of {figure(facts.privacy.width)}. More rows, "
        "fewer features or a larger epsilon help."
    )


def _warn_of_no_gain(facts: Figures) -> str:
    """Warn of a model that is not better than the training labels' mean for every row."""
    released, true = facts.on_released, facts.on_true
    if true is not None:
        if true.r2 > 0:
            return ""
        seen = f"on true labels it explains {percent(true.r2)} of their variance"
    elif released is not None and released.gain is not None and released.gain_error is not None:
        if released.gain > SURE * released.gain_error:
            return ""
        seen = f"its gain in mean squared error is {figure(released.gain)} +- {figure(released.gain_error)}"
    else:
        return ""
    trees = " Trees follow the noise: take ridge, or raise label_dp.options.min_samples_leaf, which costs no budget."
    advice = trees if facts.fit.regressor in TREES else " A larger epsilon, more rows or fewer features would help."
    return f"Nothing shows that this {facts.fit.regressor} is better than a constant, the mean label: {seen}.{advice}"


def _warn_of_clipped_labels(facts: Figures) -> str:
    outside = facts.privacy.rows_outside
    if outside is None or outside <= MOST_CLIPPED * facts.rows.sent:
        return ""
    return (
        f"By the private prior about {count(round(outside))} labels lie outside the interval to which "
        f"{facts.privacy.mechanism} clips them. Debiasing does not remove the effect of clipping on their mean. "
        'half_width = "auto" clips less.'
    )


def _warn_of_withheld_rows(facts: Figures) -> str:
    rows = facts.rows
    if not rows.withheld:
        return ""
    most = quantity(facts.privacy.max_rows_per_person, "row")
    return (
        f"{quantity(rows.withheld, 'row')} of {count(rows.sent)} ({percent(rows.withheld / rows.sent)}) got no label: "
        f"at most {most} labels of a person may be released. These rows are not in the model."
    )


def _warn_of_no_convergence(facts: Figures) -> str:
    if facts.fit.converged:
        return ""
    return f"The fit of {facts.fit.regressor} stopped before it converged. Raise label_dp.options.max_iter."
