"""Score rows by PMML models with pypmml, which knows nothing of Blindfit: JSON in, JSON out."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def main() -> None:
    import pypmml

    found = []
    for case in json.load(sys.stdin):
        model = pypmml.Model.fromString(case["pmml"])
        found.append([_numbers(model.predict(row)) for row in case["rows"]])
    json.dump(found, sys.stdout)


def _numbers(result: Any) -> dict[str, float | None]:
    found = {name: None if value is None else float(value) for name, value in result.items()}
    return {name: None if value is None or math.isnan(value) else value for name, value in found.items()}


if __name__ == "__main__":
    main()
