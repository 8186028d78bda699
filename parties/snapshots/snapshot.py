"""One snapshot of a dataset: its description, and the source that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog

from blindfit.algorithms.columns.recipes import Log1p
from blindfit.algorithms.columns.record import MISSING_WORDS, Kind, TableColumn, TableRecord, column_of_level
from blindfit.algorithms.digest_format import DigestFormat
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.statistics.vertical.score_leaks import RowContent
from blindfit.parties.data.dialect import OPTIONS, PLAIN
from blindfit.parties.data.encoding import AsWritten, ByModel, rule_of
from blindfit.parties.data.origin import Origin, refuse_missing_names
from blindfit.parties.data.recipe_settings import RecipeSettings, read_derive, recipes_of
from blindfit.parties.data.settings import DatasetSettings, PartyDatasetSettings, is_csv, words_besides
from blindfit.parties.data.source import Source
from blindfit.parties.data.urls import without_password
from blindfit.parties.snapshots.people import Digests, read_digests
from blindfit.parties.snapshots.row_content import content_of_columns, count_unknowns
from blindfit.parties.snapshots.rows_file import FILE, RowsFile
from blindfit.parties.store.snapshots import SnapshotRow
from blindfit.parties.tables import toml_of

log = structlog.get_logger(__name__)

DIGEST = DigestFormat(
    renamed={"left_out": "except"},
    added={
        "missing_words": list(MISSING_WORDS),
        "except": [],
        "derive": {},
        "reference_levels": {},
        **asdict(PLAIN),
    },
)
"""Form of a dataset's options in a snapshot's `meaning`. It shows whether the file still describes the dataset so."""


COLUMNS = ("url", "id", "person", "label", "label_kind", "split", "features", "quasi_identifiers", "missing")


ENCODED = (  # applied when a snapshot is made
    "positive",
    "categories",
    "dates",
    "missing_words",
    "left_out",
    "derive",
    "reference_levels",
    *OPTIONS,
)


SERVES: dict[Kind, tuple[Kind, ...]] = {  # kind that a model needs -> kinds of a snapshot's column that serve
    "number": ("number", "boolean"),
    "boolean": ("boolean", "number"),
    "date": ("date",),
    "category": ("category",),
}


DESCRIBE: dict[Kind, str] = {
    "number": "take it out of `categories` and `dates`",
    "boolean": "take it out of `categories` and `dates`",
    "date": "name it in `dates`; the table must hold dates there",
    "category": "name it in `categories`",
}


@dataclass(frozen=True, repr=False)
class Snapshot:
    """A published dataset.

    Args:
        batch_rows: rows that are held in memory at a time, from the party's present file.
        remarks: remarks on how it was made, if that was just now.
    """

    row: SnapshotRow
    directory: Path
    batch_rows: int
    remarks: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())

    def people(self) -> Digests:
        """Return the keyed digest of each row's id, uint64 (rows,).

        Raises:
            DataError: the file is missing or damaged.
        """
        return read_digests(self.directory, self.row.rows)

    @property
    def table_columns(self) -> int:
        """Number of the table's columns that its features reveal."""
        return count_unknowns(record_of(self.row))

    def source(self) -> Source:
        """Return its rows with all columns that it was published with. Only a party that keeps rows has them.

        Raises:
            DataError: some of these columns cannot be read.
        """
        meaning = DIGEST.restore(json.loads(self.row.meaning))
        for name, problem in meaning.get("unusable", {}).items():
            raise _unusable(self.row, name, problem)
        settings = {name: meaning[name] for name in COLUMNS if meaning.get(name) is not None}
        columns = tuple(meaning["columns"])
        chosen = DatasetSettings(**{**settings, "features": columns, "batch_rows": self.batch_rows})
        return Source.of(self._file, chosen, self.row.dataset, record_of(self.row), columns, AsWritten())

    def for_model(
        self, record: TableRecord, columns: Sequence[str], means: Mapping[str, float], *, labels: bool = False
    ) -> Source:
        """Return its rows in the form of a model: the model's columns, converted by its record. No row is read here.

        Args:
            columns: columns of the model, in order.
            means: value that stands for a missing one, by the model's columns, if the dataset allows missing values.
            labels: True to read the dataset's label too.

        Raises:
            DataError: the snapshot lacks a column, has it in another kind, or cannot read it.
        """
        meaning, there, file = DIGEST.restore(json.loads(self.row.meaning)), record_of(self.row), self._file
        kept = ("url", "id", "missing", *(("label", "label_kind") if labels else ()))
        settings = {name: meaning[name] for name in kept if meaning.get(name) is not None}
        problems = meaning.get("unusable", {})
        described = {name: _find_described_kind(name, meaning) for name in problems}
        check_kinds(record, {**described, **{column.name: column.kind for column in there.columns}}, file.origin)
        check_recipes(record, read_derive(meaning["derive"]), file.origin)
        for told in words_that_are_levels(
            record, meaning["url"], meaning["missing_words"], meaning["categories"], file.origin
        ):
            log.warning(told, dataset=self.row.dataset)
        for name in (settings["id"], *record.names, *filter(None, [settings.get("label")])):
            if name in problems:
                raise _unusable(self.row, name, problems[name])
        if older := [c.name for c in record.columns if c.kind == "category" and c.name not in file.names]:
            raise file.origin.error(
                "it was made by an older version, and keeps no texts of this column",
                column=older[0],
                hint="publish the dataset again",
            )
        chosen = DatasetSettings(**{**settings, "features": tuple(columns), "batch_rows": self.batch_rows})
        return Source.of(file, chosen, self.row.dataset, record.with_fill(means), columns, ByModel(record))

    @property
    def _file(self) -> RowsFile:
        return RowsFile(self.directory / FILE, Origin(self.row.dataset, f"snapshot {self.row.number}"))


def check_kinds(record: TableRecord, there: Mapping[str, Kind], origin: Origin) -> None:
    """Raise DataError if the table lacks a column of a model's record, or has it in another kind."""
    refuse_missing_names(record.names, list(there), origin)
    for column in record.columns:
        kind = there[column.name]
        if kind not in SERVES[column.kind]:
            problem = f"the model reads it as a {column.kind}, and the dataset describes a {kind}"
            raise origin.error(problem, column=column.name, hint=DESCRIBE[column.kind])


def check_recipes(record: TableRecord, derive: Mapping[str, RecipeSettings], origin: Origin) -> None:
    """Check that publishing the rows refuses numbers that the recipes of a model cannot take.

    Otherwise a prediction would end by such a number, and other parties would learn that a row has it.

    Raises:
        DataError: the dataset does not declare the recipe.
    """
    checked = {(settings.by, settings.sources) for settings in derive.values()}
    for recipe in record.recipes:
        if recipe.by == Log1p.by and (recipe.by, recipe.of) not in checked:
            option = f"datasets.{origin.dataset}.derive.{recipe.name}"
            raise origin.error(
                f"the model computes its {recipe.by}, and the dataset does not declare this recipe",
                column=recipe.of[0],
                hint=f'set {option} = {{ by = "{recipe.by}", of = {toml_of(recipe.of[0])} }}',
            )


def words_that_are_levels(
    record: TableRecord, url: str, words: Sequence[str], categories: Any, origin: Origin
) -> Iterator[str]:
    """Yield a warning for the operator about levels of the model that a csv dataset takes for missing values.

    This does not refuse the dataset: the levels may be those of rows, and others would learn from a refusal what they
    hold.
    """
    for column in record.columns if is_csv(url) else ():
        declared = categories.get(column.name, ()) if isinstance(categories, Mapping) else ()
        taken = {*column.chosen, *(column.reference or ())} & set(words) - {*record.missing_words, *declared}
        if taken:
            yield (
                f"column {column.name}: a level of the model is one of datasets.{origin.dataset}.missing_words, so it "
                "is missing in this csv file unless it is quoted; take it out of the words"
            )


def _find_described_kind(column: str, meaning: Mapping[str, Any]) -> Kind:
    """Return the kind that the party's file gives to a column that could not be read."""
    if column in (meaning["categories"] or ()):
        return "category"
    return "date" if column in (meaning["dates"] or ()) else "number"


def _unusable(row: SnapshotRow, column: str, problem: str) -> DataError:
    hint = f"correct it, and publish the dataset again: snapshot {row.number} has no column {column}"
    return DataError(problem, hint=hint)


def content_of(row: SnapshotRow, known: Sequence[SnapshotRow] = ()) -> RowContent:
    """Return the content of its rows. A few rows to score do not show what their columns can hold.

    Args:
        known: other snapshots of the party; a column holds as much as the snapshot in which it has most values.
    """
    counts = [json.loads(one.meaning)["distinct"] for one in (row, *known)]
    return content_of_columns(json.loads(row.meaning)["columns"], record_of(row), counts)


def record_of(row: SnapshotRow) -> TableRecord:
    """Return the record of its columns, without means."""
    meaning = json.loads(row.meaning)
    levels, dates = meaning.get("levels", {}), meaning.get("dates") or ()
    booleans, reference = meaning.get("booleans", ()), meaning.get("reference", {})
    bases, sources = meaning.get("reference_levels", {}), meaning.get("sources", ())
    are_found = not isinstance(meaning.get("categories"), Mapping)  # then every level of a row has a column
    columns = []
    for name in _table_columns(meaning):
        rule = rule_of(meaning.get("missing", ""), lacks_values=name in meaning.get("indicators", ()))
        if name in levels:
            base = bases.get(name) if bases.get(name) not in levels[name] else None
            others = [] if are_found else reference.get(name)
            met = None if others is None else tuple(level for level in others if level != base)
            chosen = tuple(levels[name])
            columns.append(TableColumn(name, "category", chosen, met, rule, declared=not are_found, base=base))
        else:
            kind: Kind = "date" if name in dates else "boolean" if name in booleans else "number"
            columns.append(TableColumn(name, kind, missing=rule, is_feature=name not in sources))
    known = [level for column in columns for level in column.chosen]
    words = words_besides(known, meaning.get("url", ""), meaning.get("missing_words", MISSING_WORDS))
    recipes = recipes_of(read_derive(meaning.get("derive", {})), [column.name for column in columns])
    used = {source for recipe in recipes for source in recipe.of}
    read = tuple(column for column in columns if column.is_feature or column.name in used)
    return TableRecord(read, missing_words=words, recipes=recipes)


def _table_columns(meaning: Mapping[str, Any]) -> list[str]:
    """Return the table's columns that a snapshot's come from, in order."""
    levels, indicators = meaning.get("levels", {}), meaning.get("indicators", ())
    of_made = {column_of_level(name, level): name for name in levels for level in levels[name]}
    of_made |= {column_of_level(name, ""): name for name in indicators}
    return list(dict.fromkeys(of_made.get(name, name) for name in meaning.get("columns", meaning["distinct"])))


def meaning_of(settings: PartyDatasetSettings) -> dict[str, Any]:
    chosen = settings.model_dump(mode="json", include={*COLUMNS, *ENCODED, "population"})
    return DIGEST.fields({**chosen, "url": without_password(settings.url)})
