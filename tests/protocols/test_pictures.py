"""The pictures of the documentation equal the output of docs/drawing, from today's tables of messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
DRAWN = ("chooser", "walr", "label_dp", "taylor", "falcon", "dp_lr", "session", "release", "two_servers")
SVG = "{http://www.w3.org/2000/svg}"


def test_the_pictures_are_current() -> None:
    done = subprocess.run([sys.executable, "docs/drawing", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_has_a_title_a_text_and_a_dark_mode(name: str) -> None:
    drawn = ET.parse(ROOT / f"docs/pictures/{name}.svg").getroot()
    title, description, style = (drawn.findtext(SVG + tag) or "" for tag in ("title", "desc", "style"))
    assert len(title.split()) > 3
    assert len(description.split()) > 20
    assert "prefers-color-scheme: dark" in style
    texts = list(drawn.iter(SVG + "text"))
    assert all(float(text.get("x", "0")) < float(drawn.get("width", "0")) for text in texts)
