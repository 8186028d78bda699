"""The settings of Sphinx. docs/build_site.py runs it, for `make docs`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import blindfit

project = "Blindfit"
copyright = "Blindfit contributors"  # noqa: A001
release = version = blindfit.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
highlight_language = "none"  # a block without a language is output
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!blindfit\.).*"),
    (r"py:.*", r"blindfit\.(algorithms|coordinator|parties|protos)\..*"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

nb_execution_mode = "cache"
nb_execution_cache_path = os.environ.get("BLINDFIT_DOCS_CACHE", "")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, Any] = {}  # no notebook has widgets, and their scripts would come from the network

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_preprocess_types = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, and no target for each attribute
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_title = "Blindfit"
html_static_path = ["_static"]
html_css_files = ["blindfit.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "Blindfit"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "primary_sidebar_end": [],
}


ROOT_PAGES = {  # the pages of the site that have the text of a file outside docs/
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
LINK = re.compile(r"\[([^\[\]]*)\]\((?![a-z]+:)([^()#\s]+)(#[^()\s]*)?\)")


def lead_out_of_docs(text: str, folder: Path, docs: Path) -> str:
    """Rewrite the links of a page that leave docs/, which a forge follows and a site cannot.

    A link to a root page leads to that page of the site. A link to a file of code offers the file for download. A link
    to a folder, or to a page that is not part of the site, becomes its text.

    Args:
        text: Markdown of the page.
        folder: folder to which the links are relative.
        docs: folder of the documentation.
    """

    def rewrite(found: re.Match[str]) -> str:
        shown, address, anchor = found[1], found[2], found[3] or ""
        target = Path(os.path.normpath(folder / address))
        if target.is_relative_to(docs):
            return found[0] if folder.is_relative_to(docs) else f"[{shown}](/{target.relative_to(docs)}{anchor})"
        name = str(target.relative_to(docs.parent))
        if name in ROOT_PAGES and (docs / ROOT_PAGES[name]).is_file():
            return f"[{shown}](/{ROOT_PAGES[name]}{anchor})"
        if target.is_file() and target.suffix != ".md":
            return f"[{shown}](path:/{os.path.relpath(target, docs)})"
        return shown if target.exists() else found[0]

    return LINK.sub(rewrite, text)


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    if Path(app.env.doc2path(docname)).suffix == ".md":
        docs = Path(app.srcdir)
        source[0] = lead_out_of_docs(source[0], (docs / docname).parent, docs)


def read_included(app: Sphinx, path: Path, _docname: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    source[0] = lead_out_of_docs(source[0], Path(os.path.normpath(docs / path)).parent, docs)


def escape_formulas(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Let |x| and coef_ in a docstring stand for themselves, which reStructuredText would read as references."""
    for number, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...", "..")):
            continue
        parts = re.split(r"(`+[^`]*`+)", line)
        escaped = (
            part if part.startswith("`") else re.sub(r"(?<!\\)(\||(?<=\w)_(?!\w))", r"\\\1", part) for part in parts
        )
        lines[number] = "".join(escaped)


def mark_pictures_with_a_dark_mode(app: Sphinx, doctree: nodes.document) -> None:
    """Keep the theme's white ground and filter away from pictures that have colours of their own for the dark mode."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir) / image["uri"]
        if path.suffix == ".svg" and path.is_file() and "prefers-color-scheme" in path.read_text():
            image["classes"].append("dark-light")


def setup(app: Sphinx) -> None:
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    app.connect("autodoc-process-docstring", escape_formulas, priority=900)  # after napoleon
    app.connect("doctree-read", mark_pictures_with_a_dark_mode)
