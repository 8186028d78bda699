"""Commands for auditors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.cli.common import open_console, refuse_unused
from blindfit.coordinator.terminal import json_output
from blindfit.coordinator.terminal.exit_codes import ExitCode

PANEL = "Audit"
app = json_output.App()


@app.command(rich_help_panel=PANEL)
def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Of a walr run, or the active party's own.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for auditors.")],
) -> None:
    """Make one file of a finished walr training, for an auditor: charge, noisy sum, model, and who signed them."""
    from blindfit.coordinator.verify import export as export_

    export_.export(directory, out, open_console())


@app.command(rich_help_panel=PANEL)
def verify(
    release: Annotated[Path, typer.Argument(metavar="FILE", help="What `blindfit export` made.", show_default=False)],
    authority: Annotated[Path | None, typer.Option(metavar="FILE", help="The authority that you trust.")] = None,
    features: Annotated[str | None, typer.Option(metavar="TABLE", help="The features, to fit the model again.")] = None,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="training_rows.json, with --features.")] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="The table's column of ids, with --features.  [default: id]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Check such a file, offline and without trust in any party; exit status 1: something does not hold."""
    from blindfit.coordinator.verify import shown

    if features is None:
        refuse_unused("without --features no model is fitted again", {"--id": row_id})
    console, column = open_console(), row_id or "id"
    if not shown.run(
        release, console, authority=authority, features=features, rows=rows, row_id=column, as_json=as_json
    ):
        raise typer.Exit(ExitCode.FAILED)
