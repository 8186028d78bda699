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
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a walr run, or of its active party.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="New file for auditors.")],
) -> Found:
    """Write a release file of a walr training, for an auditor.

    The file has the charge, the noisy sum and the model, with signatures.
    """
    from blindfit.coordinator.verify import export as export_

    return export_.export(directory, out)


@app.command(rich_help_panel=PANEL)
def verify(
    release: Annotated[
        Path, typer.Argument(metavar="FILE", help="Release file that `blindfit export` wrote.", show_default=False)
    ],
    authority: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate of the authority that you trust.")
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Measurement server that you expect. If there are two, name both."),
    ] = None,
    start: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Release file of the model that the fit started from. Repeatable."),
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Table of the features, to fit the model again.")
    ] = None,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File training_rows.json of the training, with --features.")
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column of the ids in the table, with --features.  [default: id]")
    ] = None,
) -> Found:
    """Check a release file offline, without trust in the active party.

    The last line names what the file does not prove. The exit status is 1 if a check fails.
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
