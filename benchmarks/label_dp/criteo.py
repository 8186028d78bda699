"""Read the Criteo Sponsored Search Conversion Log, from Criteo's own file to integers and a few real columns.

The file has 23 columns, tab separated and without a header. The response is SalesAmountInEuro; rows without a sale
(-1) and above 400 are dropped, which leaves 1,645,977 of 15,995,634; Sale and click_timestamp are not used. Hashed
columns are numbered by value, values that occur in fewer than 10 of the rows left being one number, 0. The file is read
in blocks. Only the used rows stay in memory, about 200 bytes each.

Source: Tallis and Yadav 2018 (the data); Liu et al. 2025, Section 5.2 (what is dropped and used).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from benchmarks.label_dp.data import EPSILONS, Dataset
from blindfit.algorithms.errors import DataError
from blindfit.algorithms.privacy.label_mechanisms import LabelGrid

RESPONSE = "SalesAmountInEuro"
NUMBERS = ("time_delay_for_conversion", "nb_clicks_1week", "product_price")
HASHED = (
    "product_age_group", "device_type", "audience_id", "product_gender", "product_brand",
    *(f"product_category{level}" for level in range(1, 8)),
    "product_country", "product_id", "product_title", "partner_id", "user_id",
)  # fmt: skip
COLUMNS = ("Sale", RESPONSE, NUMBERS[0], "click_timestamp", *NUMBERS[1:], *HASHED)
MOST_EUROS = 400.0
LEAST_OCCURRENCES = 10
BLOCK_BYTES = 1 << 24

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class CriteoRows:
    """Args:
    amounts: the response, in euros.
    numbers: (rows, 3), in the order of NUMBERS.
    codes: (rows, 17), in the order of HASHED; 0 is every rare value.
    sizes: number of codes of each hashed column, 0 included.
    """

    amounts: Floats = field(repr=False)
    numbers: Floats = field(repr=False)
    codes: Codes = field(repr=False)
    sizes: tuple[int, ...]

    def dataset(self) -> Dataset:
        """Return the data for the release of their labels, without features."""
        priors = (0.017,) * 6 + (0.01,) * 3 + (0.005, 0.003, 0.002)
        return Dataset(
            "Criteo",
            np.empty((len(self.amounts), 0)),
            self.amounts,
            LabelGrid(0.0, MOST_EUROS, 40_000),
            rounding=1.0,
            half_widths=dict.fromkeys(EPSILONS, 70.0),
            epsilon_priors=dict(zip(EPSILONS, priors, strict=True)),
        )


def read(path: Path, *, least: int = LEAST_OCCURRENCES, block_bytes: int = BLOCK_BYTES) -> CriteoRows:
    """Raise DataError: the file is missing, is not of this format, or no row is left."""
    if not path.exists():
        raise DataError(f"{path} does not exist", hint="https://ailab.criteo.com has CriteoSearchData")
    indices, kept = [Index() for _ in HASHED], []
    try:
        for table in blocks(path, block_bytes, (RESPONSE, *NUMBERS), HASHED):
            amount = table[RESPONSE]
            kept.append(
                _kept(table.filter(pc.and_(pc.greater_equal(amount, 0), pc.less_equal(amount, MOST_EUROS))), indices)
            )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path} is not in Criteo's format: {str(error).splitlines()[0]}",
            hint=f"{len(COLUMNS)} columns, tab separated, without a header: {', '.join(COLUMNS[:3])}, ...",
        ) from None
    amounts, numbers, codes = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    if not len(amounts):
        raise DataError(f"{path} has no row with {RESPONSE} in 0..{MOST_EUROS:g}")
    sizes = [_number_frequent(column, least) for column in codes.T]
    return CriteoRows(amounts, numbers, codes, tuple(sizes))


def blocks(path: Path, block_bytes: int, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[pa.Table]:
    """Yield some of the columns, a block of rows at a time.

    Raises:
        pyarrow.ArrowInvalid: the file is not of this format.
    """
    types = dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(texts, pa.string())
    reader = csv.open_csv(
        path,
        read_options=csv.ReadOptions(column_names=COLUMNS, block_size=block_bytes),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=types, include_columns=list(types)),
    )
    for batch in reader:
        yield pa.Table.from_batches([batch])


class Index:
    """Values numbered from 0 as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def codes(self, column: pa.ChunkedArray) -> Codes:
        encoded = column.combine_chunks().dictionary_encode()
        known = self._numbers
        numbers = [known.setdefault(value, len(known)) for value in encoded.dictionary.to_pylist()]
        return np.array(numbers, dtype=np.int32)[encoded.indices.to_numpy()] if numbers else np.empty(0, np.int32)


def _kept(table: pa.Table, indices: list[Index]) -> tuple[Floats, Floats, Codes]:
    numbers = np.column_stack([table[name].to_numpy() for name in NUMBERS])
    codes = np.column_stack([index.codes(table[name]) for index, name in zip(indices, HASHED, strict=True)])
    return table[RESPONSE].to_numpy(), numbers, codes


def _number_frequent(column: Codes, least: int) -> int:
    """Number the frequent values from 1 and the others 0, in place, and return how many codes there are."""
    frequent = np.bincount(column) >= least
    column[:] = np.where(frequent, np.cumsum(frequent), 0)[column]
    return int(frequent.sum()) + 1


# --- a file of the same format ---------------------------------------------------------------------------


def generate(path: Path, rows: int, seed: int = 0, *, sales: float = 0.11) -> None:
    """Write rows in Criteo's format. Amounts follow price and brand, and a small part of them is above 400 euros."""
    draw = np.random.default_rng(seed)
    sold = draw.random(rows) < sales
    price, brand = np.round(draw.lognormal(3.2, 0.9, rows), 2), draw.zipf(1.6, rows) % 500
    amount = np.where(sold, np.round(price * (1 + brand % 5) + draw.exponential(5, rows), 2), -1.0)
    values = {name: draw.zipf(1.5, rows) % (50 if name != "user_id" else rows) for name in HASHED} | {
        "product_brand": brand
    }
    hashed = [[f"{value:032X}" if value else "-1" for value in values[name].tolist()] for name in HASHED]
    delay, clicks = np.where(sold, draw.integers(0, 2_592_000, rows), -1), draw.integers(-1, 200, rows)
    clock = 1_596_439_471 + np.arange(rows)
    real = (sold.astype(int), amount, delay, clock, clicks, np.where(draw.random(rows) < 0.3, 0.0, price))
    with path.open("w") as file:
        for line in zip(*(column.tolist() for column in real), *hashed, strict=True):
            file.write("\t".join(map(str, line)) + "\n")
