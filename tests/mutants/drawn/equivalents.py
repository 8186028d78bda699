"""Drawn mutants whose change no test can notice, and why."""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
"""The reasons by the key of a mutant: file, text before and text afterwards."""
