"""Print what the texts under some paths break of the rules: python -m tests.words [PATH ...]."""

from __future__ import annotations

import sys
from collections import Counter

from tests.words.findings import all_findings

paths = tuple(sys.argv[1:])
shown = [one for one in all_findings() if not paths or one[0].startswith(paths)]
for place, finding in shown:
    print(f"{place}: {finding}")
counts = Counter(finding.split(":")[0] for _, finding in shown)
print(len(shown), "findings:", ", ".join(f"{name} {count}" for name, count in counts.most_common()))
