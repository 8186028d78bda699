"""The tables of benchmarks.label_dp, for a terminal and for a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.kit.pages import put_between
from benchmarks.label_dp.arms import ARMS

Figures = Mapping[str, Any]
PARTS = (
    ("laplace", "gaussian", "staircase", "rr-on-bins", "unbiased"),
    ("rp", "rp debiased", "rp auto", "rp auto debiased", "rp-banded"),
)


def show(result: Figures, console: Console) -> None:
    for name, figures in result["datasets"].items():
        none = figures["no_noise"]
        title = f"{name}: test MSE on true labels, {len(none['per_seed'])} seeds, (published); no noise {cell(none)}"
        for part in PARTS:
            console.print(_terminal(title, ["epsilon", *(ARMS[arm].title for arm in part)], _rows(figures, part)))
        console.print(_terminal(f"{name}: MSE over that with the published option", *sweep_table(figures)))
        console.print(_terminal(f"{name}: outputs within h of labels in [A1, A2]", *nearness_table(figures)))
    console.print(_terminal("Staircase noise: epsilon is at least (99% confidence)", *audit_table(result)))
    console.print(result["explanation"])


def _terminal(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(*heads, title=title)
    for row in rows:
        table.add_row(*row)
    return table


def _rows(
    figures: Figures, part: Sequence[str], *, mark: str = "[bold]{}[/bold]", between: str = "\n"
) -> list[list[str]]:
    return [
        [f"{row['epsilon']:g}", *(_with_published(row["arms"][arm], mark, between) for arm in part)]
        for row in figures["rows"]
    ]


def _with_published(figures: Figures, mark: str, between: str) -> str:
    shown = mark.format(cell(figures)) if figures["bold"] else cell(figures)
    published = figures["published"]
    if not published:
        return shown
    theirs = mark.format(cell(published)) if published["bold"] else cell(published)
    return f"{shown}{between}({theirs})"


def cell(figures: Figures) -> str:
    return f"{figures['mean']:.4f} ±{figures['std']:.4f}"


def sweep_table(figures: Figures) -> tuple[list[str], list[list[str]]]:
    """Return the test MSE over that with the published option on the same seeds: biased, debiased."""
    sweeps = figures["sweeps"]
    ratios = {(s["varied"], s["factor"], s["epsilon"], s["arm"]): f"{s['ratio']:.2f}" for s in sweeps}
    epsilons, arms = (sorted({s[key] for s in sweeps}) for key in ("epsilon", "arm"))
    rows = [
        [
            varied if varied == "true prior" else f"{varied} x {factor:g}",
            *(", ".join(ratios[varied, factor, epsilon, arm] for arm in arms) for epsilon in epsilons),
        ]
        for varied, factor in sorted({(s["varied"], s["factor"]) for s in sweeps})
    ]
    return ["varied", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], rows


def nearness_table(figures: Figures) -> tuple[list[str], list[list[str]]]:
    """Return measured shares, each with that of the formula and the standard errors between them."""
    found = {(n["epsilon"], n["arm"]): n for n in figures["nearness"]}
    epsilons, arms = (sorted({key[place] for key in found}) for place in (0, 1))
    rows = [[f"{epsilon:g}", *(_nearness_cell(found[epsilon, arm]) for arm in arms)] for epsilon in epsilons]
    return ["epsilon", *(ARMS[arm].title for arm in arms)], rows


def _nearness_cell(nearness: Figures) -> str:
    apart = "" if nearness["z"] is None else f"; {nearness['z']:+.1f}"
    return f"{nearness['measured']:.4f} ({nearness['formula']:.4f}{apart})"


def audit_table(result: Figures) -> tuple[list[str], list[list[str]]]:
    heads = ["epsilon claimed", "published code", "ours"]
    rows = [
        [f"{a['epsilon']:g}", f"{a['published_at_least']:.2f}", f"{a['ours_at_least']:.2f}"] for a in result["audit"]
    ]
    return heads, rows


# --- for a document --------------------------------------------------------------------------------------


BEGIN, END = "<!-- figures of benchmarks.label_dp -->", "<!-- end of the figures -->"
WIDTH = 125


def put_into(page: str, result: Figures) -> str:
    """Return the page with the tables and the explanation between its two marks."""
    return put_between(page, BEGIN, END, markdown(result))


def markdown(result: Figures) -> str:
    return "\n".join(_markdown_lines(result)) + "\n"


def _markdown_lines(result: Figures) -> Iterator[str]:
    for name, figures in result["datasets"].items():
        none = figures["no_noise"]
        yield f"\n**{name}**, {len(none['per_seed'])} seeds; without noise {cell(none)}:\n"
        for part in PARTS:
            rows = _rows(figures, part, mark="**{}**", between="<br>")
            yield from (*_pipes(["epsilon", *(ARMS[arm].title for arm in part)], rows), "")
    for name, figures in result["datasets"].items():
        if figures["sweeps"]:
            yield f"\n{name}, test MSE over that with the published option on the same seeds: biased, debiased.\n"
            yield from _pipes(*sweep_table(figures))
        if figures["nearness"]:
            yield f"\n{name}, outputs within h of labels in [A1, A2]: measured (formula; standard errors apart).\n"
            yield from _pipes(*nearness_table(figures))
    yield "\nStaircase noise, what its epsilon is at least (99% confidence):\n"
    yield from _pipes(*audit_table(result))
    yield from ("\n" + fill(paragraph, WIDTH) for paragraph in result["explanation"].split("\n\n"))


def _pipes(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
