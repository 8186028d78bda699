"""What a dataset's URL says, and how it may be shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


POSTGRESQL_DRIVERS = ("postgresql", "postgresql+psycopg")
KINDS_OF_URL = "csv:PATH, parquet:PATH, sqlite:///PATH?table=NAME or postgresql://USER@HOST/DATABASE?table=NAME"

FileFormat = Literal["csv", "parquet"]
FORMATS: dict[str, FileFormat] = {"csv": "csv", "parquet": "parquet"}


def parse_database_url(url: str) -> URL | None:
    """The URL in parts, or None where it is no database URL."""
    from sqlalchemy.engine import make_url  # here: a CSV file needs no SQLAlchemy
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        return None


def database_of(url: str) -> URL | None:
    """The parts of the URL of an SQLite or PostgreSQL table; else None."""
    parsed = parse_database_url(url)
    return parsed if parsed and parsed.drivername in ("sqlite", *POSTGRESQL_DRIVERS) else None


def without_password(url: str) -> str:
    """A URL as errors and logs may show it: no password, nor any option after `?`, which may hold one too."""
    if "://" not in url:
        return url
    parsed = parse_database_url(url)
    if parsed is None:
        return url.partition("://")[0] + "://..."
    return parsed.set(query={}).render_as_string(hide_password=True)


def file_of(url: str) -> tuple[FileFormat, Path] | None:
    """The format and path of `csv:PATH`, `parquet:PATH` or a path whose ending tells; else None."""
    scheme, colon, rest = url.partition(":")
    if colon and scheme in FORMATS and rest:
        return FORMATS[scheme], Path(rest)
    ending = Path(url).suffix.lower().removeprefix(".")
    if "://" not in url and ending in FORMATS:
        return FORMATS[ending], Path(url)
    return None
