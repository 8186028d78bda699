"""The version of Blindfit."""

from __future__ import annotations

from importlib import metadata

import typer

from blindfit.version import __version__


def version() -> str:
    """Return the version of the installed package; without one, the version that the source folder states."""
    try:
        return metadata.version("blindfit")
    except metadata.PackageNotFoundError:
        return __version__


def show(asked: bool) -> None:
    """`blindfit --version`."""
    if asked:
        typer.echo(f"blindfit {version()}")
        raise typer.Exit
