"""Prints what pyproject.toml in this folder depends on, with the extras that are named: python requirements.py demo"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = [requirement for name in sys.argv[1:] for requirement in project["optional-dependencies"][name]]
print(*project["dependencies"], *extras, sep="\n")
