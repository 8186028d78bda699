"""Three public tables that nobody prepared for us, from packages that the tests install anyway.

Each is split between organisations that share an id, and saved as the programs of such organisations save tables.
"""

from __future__ import annotations

import gzip
import io
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd


def read_titanic() -> Any:
    """Return the passengers as a data frame."""
    packed = files("sklearn").joinpath("datasets/tests/data/openml/id_40945/data-v1-dl-16826755.arff.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    names = [line.split("'")[1] for line in lines if line.startswith("@attribute")]
    rows = [line for line in lines[lines.index("@data") + 1 :] if not line.startswith("%")]
    return pd.read_csv(io.StringIO("\n".join(rows)), names=names, na_values="?", escapechar="\\")


def titanic(folder: Path) -> None:
    """Save the passengers of the Titanic (scikit-learn's tests): names, gaps; German spreadsheets, one in cp1252."""
    table = read_titanic()
    table.insert(0, "passenger", [f"T{i:04}" for i in range(len(table))])
    german: dict[str, Any] = {"sep": ";", "decimal": ","}
    table[["passenger", "name", "sex", "age", "survived"]].to_csv(folder / "register.csv", **german)  # with its index
    other = ["passenger", "pclass", "sibsp", "parch", "ticket", "fare", "cabin", "embarked", "home.dest"]
    shuffled = table[other].sample(frac=1, random_state=1)
    shuffled.to_csv(folder / "shipping line.csv", index=False, encoding="cp1252", **german)


def births(folder: Path) -> None:
    """Save births in Pennsylvania (statsmodels' tests): texts of two levels; one file has tabs between its fields."""
    with files("statsmodels").joinpath("treatment/tests/results/cataneo2.csv").open() as file:
        table: Any = pd.read_csv(file)
    table.insert(0, "birth", [f"b{i}" for i in range(len(table))])
    mother = ["mmarried", "mhisp", "foreign", "alcohol", "deadkids", "mage", "medu", "nprenatal", "monthslb", "order"]
    table[["birth", *mother, "mrace", "mbsmoke"]].to_csv(folder / "clinic.csv", index=False)
    shuffled = table.sample(frac=1, random_state=2)
    shuffled[["birth", "mbsmoke"]].to_csv(folder / "health_office_survey.csv", sep="\t", index=False)
    shuffled[["birth", "fhisp", "fage", "fedu", "frace", "prenatal", "birthmonth"]].to_csv(
        folder / "town.csv", index=False
    )
    table[["birth", "bweight"]].to_csv(folder / "scales.csv", index=False)


def stocks(folder: Path) -> None:
    """Save prices of shares by day (matplotlib's sample data): dates in English words, shares without a price yet."""
    with files("matplotlib").joinpath("mpl-data/sample_data/Stocks.csv").open() as file:
        table: Any = pd.read_csv(file, comment="#")
    table = table.dropna(subset=["IBM"])
    table["quoted on"] = pd.to_datetime(table["Date"]).dt.strftime("%d/%m/%Y")
    table[["Date", "quoted on", "IBM", "AAPL", "MSFT", "^GSPC"]].to_csv(folder / "broker.csv", index=False)
    table[["Date", "XRX", "AMZN", "DELL", "GOOGL", "ADBE", "^IXIC"]].to_csv(folder / "exchange.csv", index=False)


TABLES = {"titanic": titanic, "births": births, "stocks": stocks}
