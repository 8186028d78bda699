"""The command that simulates every system on one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.cli import training
from blindfit.coordinator.cli.common import open_console
from blindfit.coordinator.terminal.json_output import App, Found, call_of
from blindfit.coordinator.terminal.titles import TITLES, with_title
from blindfit.coordinator.terminal.wording import join_names

app = App()


@app.command(rich_help_panel=training.PANEL)
def simulate(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="One table with all columns: a CSV, Parquet or Excel file, sqlite:///PATH?table=NAME or "
            "postgresql://USER@HOST/DATABASE?table=NAME.",
            show_default=False,
        ),
    ],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column to learn. Required.")] = "",
    parties: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of parties that get columns at random; 3 if none is named."),
    ] = None,
    party: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME: COLUMN, ...", help="Party with its columns; the first one is active. Repeatable."),
    ] = None,
    row_id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column that names a row; by default rows are numbered."),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text of label 1, such as yes; guessed by default, and printed.")
    ] = None,
    label_range: Annotated[
        str,
        typer.Option(metavar="LOW:HIGH", help="Public range of labels, for label-dp; by default that of the table."),
    ] = "",
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:LOW:HIGH",
            help="Public bounds of a feature, for dp-lr; by default those of the table. Repeatable.",
        ),
    ] = None,
    systems: Annotated[
        str,
        typer.Option(
            metavar="NAME,...", help=f"Systems to compare, or all: {join_names([with_title(name) for name in TITLES])}."
        ),
    ] = "all",
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER,...", help="Epsilons to compare, in systems that take one.")
    ] = "1",
    repeat: Annotated[int, typer.Option(metavar="N", help="Number of repeats with other held-out rows and noise.")] = 1,
    overlap: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of a party's rows that every party has, above 0 to 1.")
    ] = 1.0,
    duplicates: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of a party's ids that its records have twice, 0 to below 1.")
    ] = 0.0,
    missing: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the values of training rows that are emptied, 0 to 0.9.")
    ] = 0.0,
    same_order: Annotated[
        bool, typer.Option("--same-order", help="Keep the order of the table's rows at every party.")
    ] = False,
    test_fraction: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of all rows that no party has. Quality is measured on them.")
    ] = 0.25,
    network: Annotated[
        str, typer.Option(metavar="TEXT", help='Network between the parties, such as "40ms 100mbit"; default: none.')
    ] = "",
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Number of runs at once; by default as many as the cores allow.")
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the cut: the same seed deals the same columns and rows.")
    ] = 0,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", help="Folder for the results. The same folder again runs only what is missing."
        ),
    ] = Path("runs/simulate"),
    warn_only: Annotated[
        bool,
        typer.Option("--warn-only", help="Go on with a warning where a run passes a limit of a budget or account."),
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SYSTEM.OPTION=VALUE", help="Option of one system's jobs, as in a job file. Repeatable."
        ),
    ] = None,
) -> Found:
    """Compare all systems on one table. Nothing is charged.

    The results are quality, privacy, time and bytes.
    """
    from blindfit.coordinator.simulate import command
    from blindfit.coordinator.simulate.words import read_asked

    asked = read_asked(
        label=label,
        parties=parties,
        party=party or [],
        row_id=row_id,
        positive=positive,
        label_range=label_range,
        bounds=bounds or [],
        systems=systems,
        epsilon=epsilon,
        repeats=repeat,
        overlap=overlap,
        duplicates=duplicates,
        missing=missing,
        shuffle=not same_order,
        test_fraction=test_fraction,
        seed=seed,
    )
    wish = command.Wish(asked, network, tuple(overrides or ()), jobs, warn_only)
    return command.simulate(table, wish, out, open_console(context), call_of(context).command).found
