"""The page of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blindfit.coordinator.report.page import render_template
from blindfit.version import __version__

if TYPE_CHECKING:
    from blindfit.coordinator.plan.asked import Plan


def render_plan(name: str, protocol: str, plan: Plan) -> str:
    return render_template("plan/page.html.j2", title=name, protocol=protocol, version=__version__, plan=plan)
