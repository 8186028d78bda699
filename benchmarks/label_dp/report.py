"""Make figures of the outcomes of benchmarks.label_dp: means, the paper's bold, sweeps, nearness, exceptions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.label_dp import published as label_dp_published
from benchmarks.label_dp.arms import ARMS, CONSTANT, NO_NOISE, OURS
from benchmarks.label_dp.results import Outcome

Figures = dict[str, Any]

NEARLY = 0.9
"""Part of the constant's error. A model with a larger error has hardly learnt from its labels."""


def summarise(name: str, outcomes: Sequence[Outcome]) -> Figures:
    """Return all figures of one dataset, from the outcomes of all its seeds, those of the constant included."""
    plain = _grouped(o for o in outcomes if not o["varied"])
    no_noise, constant = (plain.pop((math.inf, arm)) for arm in (NO_NOISE, CONSTANT))
    epsilons = sorted({epsilon for epsilon, _ in plain})
    rows = [_row(name, epsilon, {arm: plain[epsilon, arm] for arm in ARMS}) for epsilon in epsilons]
    return {
        "constant": _spread(constant),
        "no_noise": _spread(no_noise) | {"published": _published(name, math.inf, "rp-with-prior")},
        "rows": rows,
        "sweeps": _sweeps(outcomes),
        "nearness": _nearness(outcomes),
        "exceptions": exceptions(rows),
    }


def _grouped(outcomes: Iterable[Outcome]) -> dict[tuple[float, str], list[Outcome]]:
    groups = defaultdict(list)
    for outcome in outcomes:
        groups[outcome["epsilon"], outcome["arm"]].append(outcome)
    return dict(groups)


def _spread(outcomes: Sequence[Outcome]) -> Figures:
    errors = [o["mse"] for o in sorted(outcomes, key=lambda o: o["seed"])]
    std = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
    return {"mean": float(np.mean(errors)), "std": std, "per_seed": errors}


def _row(name: str, epsilon: float, groups: Mapping[str, Sequence[Outcome]]) -> Figures:
    arms = {arm: _spread(found) | _costs(found) for arm, found in groups.items()}
    published = {arm: _published(name, epsilon, ARMS[arm].published) for arm in groups}
    own_bold, published_bold = bold(arms), bold({arm: found for arm, found in published.items() if found})
    for arm, figures in arms.items():
        figures["bold"] = arm in own_bold
        figures["published"] = published[arm]
        if published[arm]:
            published[arm]["bold"] = arm in published_bold
    return {"epsilon": epsilon, "arms": arms}


def _costs(outcomes: Sequence[Outcome]) -> Figures:
    names = [n for n in ("epsilon_prior", "epsilon_spent", "label_error", "outside") if n in outcomes[0]]
    return {n: max(o[n] for o in outcomes) if n.startswith("eps") else _mean(o[n] for o in outcomes) for n in names}


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _published(name: str, epsilon: float, column: str | None) -> Figures:
    if column is None:
        return {}
    mean, std = label_dp_published.table(name)[epsilon][column]
    return {"mean": mean, "std": std}


def bold(arms: Mapping[str, Figures]) -> set[str]:
    """Return the arms that the paper would print in bold: mean +- std overlaps that of the least mean."""
    best = min(arms.values(), key=lambda found: found["mean"])
    return {arm for arm, found in arms.items() if found["mean"] - found["std"] <= best["mean"] + best["std"]}


# --- is rp-with-prior ever worse? ------------------------------------------------------------------------


def exceptions(rows: Sequence[Figures]) -> list[Figures]:
    """Return where a rival beats the best of OURS by more than one standard deviation.

    The deviation is the root mean square of those of the two arms.
    """
    found = []
    for row in rows:
        ours = min(OURS, key=lambda arm: row["arms"][arm]["mean"])
        for rival in (arm for arm in ARMS if ARMS[arm].rival):
            mine, theirs = row["arms"][ours], row["arms"][rival]
            std = math.sqrt((mine["std"] ** 2 + theirs["std"] ** 2) / 2)
            if (behind := mine["mean"] - theirs["mean"]) > std:
                found.append(
                    {
                        "epsilon": row["epsilon"],
                        "rival": rival,
                        "ours": ours,
                        "behind": behind,
                        "std": std,
                        "rival_mean": theirs["mean"],
                    }
                )
    return found


# --- what the options do ---------------------------------------------------------------------------------


def _sweeps(outcomes: Sequence[Outcome]) -> list[Figures]:
    """Return each sweep next to the published options, on the same seeds."""
    plain = {(o["arm"], o["epsilon"], o["seed"]): o["mse"] for o in outcomes if not o["varied"]}
    groups = defaultdict(list)
    for o in outcomes:
        if o["varied"]:
            groups[o["varied"], o["arm"], o["epsilon"], o["factor"]].append(o)
    sweeps = []
    for (varied, arm, epsilon, factor), found in sorted(groups.items()):
        spread, base = _spread(found), [plain[arm, epsilon, o["seed"]] for o in found]
        of = {"varied": varied, "arm": arm, "epsilon": epsilon, "factor": factor}
        sweeps.append(of | spread | {"mean_unchanged": _mean(base), "ratio": spread["mean"] / _mean(base)})
    return sweeps


def _nearness(outcomes: Sequence[Outcome]) -> list[Figures]:
    """Return how many outputs are near their label, over all seeds.

    Arms that only debias the outputs of another arm are left out.
    """
    groups = _grouped(o for o in outcomes if not o["varied"] and "nearness" in o and not ARMS[o["arm"]].debias)
    rows = []
    for (epsilon, arm), found in sorted(groups.items()):
        labels, near, expected = (sum(o["nearness"][n] for o in found) for n in ("labels", "near", "expected"))
        p = expected / labels
        of = {"epsilon": epsilon, "arm": arm, "labels": labels}
        rows.append(of | {"measured": near / labels, "formula": p, "z": _standard_errors(near, labels, p)})
    return rows


def _standard_errors(count: int, n: int, p: float) -> float | None:
    """Return how far a count is from its mean; None where the outcome is certain, as with a single band."""
    return (count - n * p) / math.sqrt(n * p * (1 - p)) if 0 < p < 1 else None


# --- in words --------------------------------------------------------------------------------------------


def explain(datasets: Mapping[str, Figures], audits: Sequence[Figures]) -> str:
    """Return paragraphs: why the honest figures differ from the published ones, and where rp-with-prior is behind."""
    paragraphs = [_leaks(audits)]
    for name, figures in datasets.items():
        sentences = [_of_prior(name, figures), _of_options(name, figures), rivals_ahead(name, figures)]
        paragraphs.append(" ".join(filter(None, sentences)))
    if any(_has_learnt_little(figures) for figures in datasets.values()):
        paragraphs.append(
            "An error near that of the constant (the mean label for every row) shows that hardly anything was learnt "
            "from the labels. A mechanism that tends to the prior's mean is then ahead of two others. Unbiased labels "
            "are mostly noise, and RPWithPrior tends to the middle of its interval."
        )
    return "\n\n".join(paragraphs)


def _leaks(audits: Sequence[Figures]) -> str:
    few = [audits[at] for at in sorted({0, len(audits) // 2, len(audits) - 1})]
    shown = ", ".join(f"{a['published_at_least']:.1f} where it claims {a['epsilon']:g}" for a in few)
    ours = "never" if all(a["ours_at_least"] <= a["epsilon"] for a in audits) else "sometimes"
    return (
        "The published figures are not of label DP at the stated epsilon. The published code builds its prior from the "
        "true labels of every batch but the last, so the interval [A1, A2] reveals labels without any noise. Its "
        "staircase noise is never near zero, so an output near a label excludes that label. Our audit of its epsilon "
        f"finds at least {shown} (99% confidence). For our noise the audit {ours} finds more than the claim. Here "
        "every prior is paid for out of epsilon, and Gaussian noise is the analytic one, which is smaller than the "
        "published noise."
    )


def _of_prior(name: str, figures: Figures) -> str:
    shown = [
        f"{s['ratio']:.2f} at epsilon {s['epsilon']:g}"
        for s in figures["sweeps"]
        if s["varied"] == "true prior" and s["arm"] == "rp"
    ]
    if not shown:
        return ""
    return (
        f"On {name}, the true prior in place of the honest one multiplies the test MSE of RPWithPrior by "
        f"{', '.join(shown)}."
    )


def _of_options(name: str, figures: Figures) -> str:
    """Return how much two options matter, which the paper finds to matter little."""
    ranges = []
    for varied, title in (("half_width", "half_width"), ("epsilon_prior", "the prior's part of epsilon")):
        found = [s for s in figures["sweeps"] if s["varied"] == varied and s["arm"] == "rp"]
        if found:
            factors, ratios = ({s[key] for s in found} for key in ("factor", "ratio"))
            by = f"times {min(factors):g} to {max(factors):g}"
            ranges.append(f"{title} {by} multiplies the test MSE by {min(ratios):.2f} to {max(ratios):.2f}")
    if not ranges:
        return ""
    return f"The paper finds that its options hardly matter. On {name}, {', and '.join(ranges)}."


def rivals_ahead(name: str, figures: Figures) -> str:
    if any(not exception["std"] for exception in figures["exceptions"]):
        return f"A single seed does not show which mechanism is ahead on {name}."
    if not figures["exceptions"]:
        return (
            f"On {name}, the better of our RPWithPrior variants is at no epsilon worse than Laplace, Staircase, "
            "RR-on-Bins or Unbiased by more than one standard deviation."
        )
    constant = figures["constant"]["mean"]
    listed = "; ".join(
        f"{ARMS[e['rival']].title} at {e['epsilon']:g} (by {e['behind']:.2g}, {e['behind'] / e['std']:.1f} deviations; "
        f"its error is {e['rival_mean'] / constant:.0%} of a constant's)"
        for e in figures["exceptions"]
    )
    return (
        f"On {name}, the best of our RPWithPrior variants is more than one standard deviation behind these mechanisms: "
        f"{listed}."
    )


def _has_learnt_little(figures: Figures) -> bool:
    exceptions = figures["exceptions"]
    if any(not exception["std"] for exception in exceptions):
        return False
    return any(e["rival_mean"] > NEARLY * figures["constant"]["mean"] for e in exceptions)
