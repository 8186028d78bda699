"""`make demo-dp-lr`: a private fit that starts from a public one, then the gain by pre-training at each epsilon.

python -m examples.dp_lr.demo [--out DIR] [--set KEY=VALUE ...]
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.panel import Panel
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from blindfit import DPLogisticRegression, Pretrained, pretrain
from examples.demo import begin, console, run_job
from examples.dp_lr.prepare import PUBLIC_ROWS, tumours

HERE = Path(__file__).parent
EPSILONS = (0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
DELTA = 1e-5
DRAWS = 20  # draws of the split and of the noise
TEST_ROWS = 150
ARMS = ("no pre-training", "pre-training")


def main() -> None:
    options = begin(HERE, "Private logistic regression on breast cancer data, from a public start.", "patients.csv")
    run_job(HERE, options.out, options.set)
    with console.status(f"fitting {2 * len(EPSILONS) * DRAWS} models to measure the gain by pre-training"):
        found, references = measure()
    picture = options.out / "accuracy.png"
    draw(found, references, picture)
    console.print(comparison(found, references, picture))


def measure() -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return the accuracy on test rows for each arm, of shape (epsilons, draws), and of two models to compare with."""
    _, features, labels = tumours()
    found = {arm: np.zeros((len(EPSILONS), DRAWS)) for arm in ARMS}
    references: dict[str, list[float]] = {"only the public model": [], "scikit-learn, not private": []}
    for draw_number in range(DRAWS):
        order = np.random.default_rng(draw_number).permutation(len(labels))
        public, private, test = np.split(order, [PUBLIC_ROWS, len(order) - TEST_ROWS])
        start = pretrain(features[public], labels[public])
        # Both arms scale the features by the public rows, so that the gain comes only from the weights.
        starts = {ARMS[0]: replace(start, weights=(0.0,) * len(start.weights), intercept=0.0), ARMS[1]: start}
        for arm, init in starts.items():
            for place, epsilon in enumerate(EPSILONS):
                model = DPLogisticRegression(epsilon, DELTA, init=init).fit(features[private], labels[private])
                found[arm][place, draw_number] = model.score(features[test], labels[test])
        plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[private], labels[private])
        references["only the public model"].append(accuracy(start, features[test], labels[test]))
        references["scikit-learn, not private"].append(plain.score(features[test], labels[test]))
    return found, {name: float(np.mean(values)) for name, values in references.items()}


def accuracy(model: Pretrained, features: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean((model.scores(features) > 0) == (labels > 0)))


def comparison(found: dict[str, np.ndarray], references: dict[str, float], picture: Path) -> Panel:
    table = Table("epsilon", *ARMS, "gain, points", box=None)
    gains = found[ARMS[1]] - found[ARMS[0]]
    for epsilon, *figures, gain in zip(EPSILONS, *found.values(), gains, strict=True):
        cells = [f"{100 * row.mean():.1f} ± {100 * row.std(ddof=1):.1f}%" for row in figures]
        table.add_row(f"{epsilon:g}", *cells, f"{100 * gain.mean():+.1f} ± {100 * gain.std(ddof=1):.1f}")
    compared = "; ".join(f"{name} {value:.1%}" for name, value in references.items())
    table.caption = f"accuracy on test rows, mean and deviation of {DRAWS} draws; {compared}; drawn in {picture}"
    return Panel(table, title="known only because this is a demo", subtitle="delta 1e-5", expand=False)


def draw(found: dict[str, np.ndarray], references: dict[str, float], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for (name, value), style in zip(references.items(), (":", "--"), strict=True):
        axes.axhline(100 * value, color="#5d6879", linewidth=1, linestyle=style, label=name)
    for (arm, values), colour in zip(found.items(), ("#c2591b", "#2563b8"), strict=True):
        mean, spread = 100 * values.mean(axis=1), 100 * values.std(axis=1, ddof=1)
        axes.plot(EPSILONS, mean, color=colour, marker="o", markersize=4, label=arm)
        axes.fill_between(
            EPSILONS, mean - spread, np.minimum(mean + spread, 100), color=colour, alpha=0.15, linewidth=0
        )
    axes.set_xscale("log")
    axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
    axes.minorticks_off()
    axes.set_xlabel("epsilon")
    axes.set_ylabel("accuracy on test rows, %")
    axes.grid(color="#e1e5eb", linewidth=0.7)
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=144)


if __name__ == "__main__":
    main()
