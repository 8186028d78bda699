"""Which Blindfit this is."""

from __future__ import annotations

from importlib import metadata

import typer

from blindfit.version import __version__


def version() -> str:
    """Of what is installed; of a folder that nothing installed, what it says of itself."""
    try:
        return metadata.version("blindfit")
    except metadata.PackageNotFoundError:
        return __version__


def show(asked: bool) -> None:
    """`blindfit --version`."""
    if asked:
        typer.echo(f"blindfit {version()}")
        raise typer.Exit
