"""The table of an organisation: a file, or a table of a database."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blindfit.algorithms.errors import ConfigError
from blindfit.parties.data.origin import Origin, Reader
from blindfit.parties.data.urls import KINDS_OF_URL, SHEET, database_of, file_of, sheet_of, without_password

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

SECRETS = ("password", "secret")  # parts of names of PostgreSQL options with a secret


@dataclass(frozen=True)
class Place:
    """A table as a person types it: a path, or the `url` of a dataset.

    Args:
        word: path or URL; it may hold a password, so it is never shown.
    """

    word: str

    def __post_init__(self) -> None:
        if self._url is None and file_of(self.word) is None:
            raise self.refusal()

    def __repr__(self) -> str:
        return f"Place({str(self)!r})"

    def __str__(self) -> str:
        shown = without_password(self.word)
        return f"table {self.stem} of {shown}" if self._url is not None else shown

    def refusal(self) -> ConfigError:
        return ConfigError(
            f"{self}: Blindfit cannot read this kind of table",
            hint=f"name a .csv, .parquet or .xlsx file, or use {KINDS_OF_URL}",
        )

    @property
    def _url(self) -> URL | None:
        return database_of(self.word) if "://" in self.word else None

    @property
    def stem(self) -> str:
        """Name of the table: the file without its ending, or the database's table."""
        if self._url is not None:
            return str(self._url.query.get("table", ""))
        found = file_of(self.word)
        return found[1].stem if found is not None else ""

    @property
    def file(self) -> Path | None:
        """File with the rows, which moves with its party; None if a database server has the rows."""
        if self._url is not None:
            return Path(self._url.database or "") if self._url.get_backend_name() == "sqlite" else None
        found = file_of(self.word)
        return found[1] if found is not None else None

    @property
    def hides_password(self) -> bool:
        """True if the user typed a password, which no file receives."""
        return self._url is not None and (self._url.password is not None or _secrets(self._url) != [])

    def url_from(self, folder: Path) -> str:
        """Return the `url` of a dataset in a party file of this folder; it has no password."""
        if self._url is None:
            found = file_of(self.word)
            sheet = sheet_of(self.word) if found is not None and found[0] == "excel" else ""
            return "" if found is None else f"{found[0]}:{_relative(found[1], folder)}{SHEET if sheet else ''}{sheet}"
        url = self._url.set(query={key: value for key, value in self._url.query.items() if not _is_secret(key)})
        if url.get_backend_name() == "sqlite":
            url = url.set(database=_relative(Path(url.database or ""), folder))
        elif url.password is not None:
            url = url._replace(password=None)  # `set` ignores None
        return url.render_as_string(hide_password=False)

    def open_database(self, origin: Origin) -> Reader | None:
        """Return a database's table; None for a file.

        Raises:
            DataError: the table does not exist or cannot be opened.
        """
        if self._url is None:
            return None
        from blindfit.parties.data.database import open_table  # not at the top: a file needs no SQLAlchemy

        return open_table(self._url, Path(), origin, None)

    def as_declared(self, table: Reader, texts: Collection[str]) -> Reader:
        """Return the same table, with columns read by the types of the database or of Excel's cells.

        Args:
            texts: columns that are texts, for any type.
        """
        if self._url is not None:
            from blindfit.parties.data.database import SqlTable, as_declared

            return as_declared(table, frozenset(texts)) if isinstance(table, SqlTable) else table
        found = file_of(self.word)
        if found is not None and found[0] == "excel":
            from blindfit.parties.data.excel_file import ExcelFile

            return table.as_typed(frozenset(texts)) if isinstance(table, ExcelFile) else table
        return table


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.expanduser().resolve(), folder.resolve())).as_posix()


def _is_secret(option: str) -> bool:
    return any(word in option.lower() for word in SECRETS)


def _secrets(url: URL) -> list[str]:
    return [option for option in url.query if _is_secret(option)]
