"""Parts of a dataset's URL, and the form in which it may be shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlalchemy.engine import URL


POSTGRESQL_DRIVERS = ("postgresql", "postgresql+psycopg")
KINDS_OF_SINK = "csv:PATH, parquet:PATH, sqlite:///PATH?table=NAME or postgresql://USER@HOST/DATABASE?table=NAME"
KINDS_OF_URL = f"excel:PATH?sheet=NAME, {KINDS_OF_SINK}"

FileFormat = Literal["csv", "parquet", "excel"]
FORMATS: dict[str, FileFormat] = {"csv": "csv", "parquet": "parquet", "excel": "excel"}
ENDINGS: dict[str, FileFormat] = {"csv": "csv", "parquet": "parquet", "xlsx": "excel", "xlsm": "excel"}
SHEET = "?sheet="


def parse_database_url(url: str) -> URL | None:
    """Return the parts of a URL, or None if it is not a database URL."""
    from sqlalchemy.engine import make_url  # here: a CSV file needs no SQLAlchemy
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError):  # ValueError: the port is not a number
        return None


def database_of(url: str) -> URL | None:
    """Return the parts of the URL of an SQLite or PostgreSQL table; None for other URLs."""
    parsed = parse_database_url(url)
    return parsed if parsed and parsed.drivername in ("sqlite", *POSTGRESQL_DRIVERS) else None


def without_password(url: str) -> str:
    """Return a URL as errors and logs may show it: without a password, and without the options after `?`, which may
    hold one.
    """
    if "://" not in url:
        if file_of(url) is not None:
            return url
        if "@" in url:  # such as USER:WORD@HOST, a URL without its beginning
            return "..."
        name, equals, _ = url.partition("=")  # such as what libpq takes, host=HOST password=WORD
        return f"{name}=..." if equals else url
    parsed = parse_database_url(url)
    if parsed is None:
        return url.partition("://")[0] + "://..."
    return parsed.set(query={}).render_as_string(hide_password=True)


def file_of(url: str) -> tuple[FileFormat, Path] | None:
    """Return the format and path of `csv:PATH`, `parquet:PATH`, `excel:PATH` or a path with a known ending; else
    None.
    """
    scheme, colon, rest = url.partition(":")
    if colon and scheme in FORMATS and rest:
        is_excel = FORMATS[scheme] == "excel"
        return FORMATS[scheme], Path(rest.partition(SHEET)[0] if is_excel else rest)
    path = url.partition(SHEET)[0]
    ending = ENDINGS.get(Path(path).suffix.lower().removeprefix("."))
    if "://" not in url and ending is not None and (path == url or ending == "excel"):
        return ending, Path(path)
    return None


def sheet_of(url: str) -> str:
    """Return the sheet that the URL of an Excel file names; "" if it names no sheet."""
    return url.partition(SHEET)[2]
