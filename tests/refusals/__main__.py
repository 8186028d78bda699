"""Write tests/refusals/README.md: `python -m tests.refusals`."""

from __future__ import annotations

from tests.refusals.page import PAGE, render

PAGE.write_text(render(), "utf-8")
