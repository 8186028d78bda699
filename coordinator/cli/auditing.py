"""Commands for auditors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blindfit.coordinator.cli.common import refuse_unused
from blindfit.coordinator.terminal.json_output import App, Found

PANEL = "Audit"
app = App()


@app.command(rich_help_panel=PANEL)
def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Of a walr run, or the active party's own.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file for auditors.")],
) -> Found:
    """Make one file of a finished walr training, for an auditor: charge, noisy sum, model, and who signed them."""
    from blindfit.coordinator.verify import export as export_

    return export_.export(directory, out)


@app.command(rich_help_panel=PANEL)
def verify(
    release: Annotated[Path, typer.Argument(metavar="FILE", help="What `blindfit export` made.", show_default=False)],
    authority: Annotated[Path | None, typer.Option(metavar="FILE", help="The authority that you trust.")] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="The measurement server that you expect; of two servers name both."),
    ] = None,
    start: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="The release file of the model that the fit started from; may be repeated."),
    ] = None,
    features: Annotated[str | None, typer.Option(metavar="TABLE", help="The features, to fit the model again.")] = None,
    rows: Annotated[Path | None, typer.Option(metavar="FILE", help="training_rows.json, with --features.")] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="The table's column of ids, with --features.  [default: id]")
    ] = None,
) -> Found:
    """Check such a file offline, without trust in any party. A line says what nothing in the file covers.

    The exit status is 1 if a check fails.
    """
    from blindfit.coordinator.verify import shown

    if features is None:
        refuse_unused("without --features no model is fitted again", {"--id": row_id})
    return shown.verify(
        release,
        authority=authority,
        servers=server or [],
        starts=start or [],
        features=features,
        rows=rows,
        row_id=row_id or "id",
    )
