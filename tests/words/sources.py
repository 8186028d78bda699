"""Every text that a person reads, with the place where it stands: pages, messages, docstrings, comments."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.words.rules import Kind

ROOT = Path(__file__).parents[2]
PRODUCT = ("algorithms", "coordinator", "parties", "blindfit", "examples", "docs", "protos", "benchmarks")


@dataclass(frozen=True)
class Text:
    """
    Attributes:
        place: file and line.
        prose: text without code.
        describes: kind of name that this text describes ("function", "test", "class", "value"); None for other texts.
    """

    place: str
    kind: Kind
    prose: str
    describes: str | None = None


def prose_of(text: str) -> str:
    """Return a text without code, addresses and mathematics."""
    text = re.sub(r"```.*?```|~~~.*?~~~", " ", text, flags=re.S)
    text = re.sub(r"\$\$.*?\$\$|(?<!\\)\$[^$\n]+\$", "X", text, flags=re.S)
    text = re.sub(r"``.+?``|`[^`]*`", "X", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"https?://\S+|[\w./-]+\.(?:md|toml|py|svg|csv|html|json)(?:#[\w-]+)?\b", "X", text)
    return re.sub(r"[ \t]+", " ", text)


def tracked(*endings: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    paths = (ROOT / name for name in listed.stdout.splitlines())
    return sorted(path for path in paths if path.name.endswith(endings) and path.is_file() and not path.is_symlink())


def all_texts() -> Iterator[Text]:
    for path in tracked(".md", ".ipynb", ".j2"):
        yield from page_texts(path)
    for path in tracked(".py"):
        if not path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
            yield from python_texts(path)
    yield from make_texts(ROOT / "Makefile")


def page_texts(path: Path) -> Iterator[Text]:
    name = str(path.relative_to(ROOT))
    if path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"], 1):
            if cell["cell_type"] == "markdown":
                yield from _paragraphs("".join(cell["source"]), f"{name}: cell {number}: line ")
        return
    text = path.read_text("utf-8")
    if path.suffix == ".j2":
        text = re.sub(r"<(style|script).*?</\1>|\{#.*?#\}", lambda match: "\n" * match[0].count("\n"), text, flags=re.S)
        text = re.sub(r"\{%.*?%\}", lambda match: "\n" * match[0].count("\n"), text, flags=re.S)
        text = re.sub(r"\{\{.*?\}\}", "X", text, flags=re.S)
        text = re.sub(r"</?(?:p|li|h\d|td|th|tr|div|section|ul|table|figcaption|figure|title)\b[^>]*>", "\n\n", text)
        text = re.sub(r"<[^>]*>", "", text)
    yield from _paragraphs(text, f"{name}:")


def _paragraphs(text: str, where: str) -> Iterator[Text]:
    """Yield the paragraphs, table cells and list items of a page, without blocks of code and quotations."""
    gathered: list[str] = []
    start, fence = 1, None

    def close() -> Iterator[Text]:
        if gathered:
            prose = prose_of(" ".join(gathered))
            gathered.clear()
            if re.search(r"[a-z]{2}", prose):
                yield Text(f"{where}{start}", Kind.PAGE, prose)

    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if fence is None and (opened := re.match(r"(`{3,}|~{3,}|:{3,})(\{[\w-]+\})?", bare)):
            yield from close()
            if opened[1][0] != ":" and (opened[2] or "") not in {
                "{note}",
                "{warning}",
                "{tip}",
                "{admonition}",
                "{important}",
            }:
                fence = opened[1]
            continue
        if fence is not None:
            fence = None if bare == fence else fence
            continue
        if (
            not bare
            or bare.startswith((">", "<!--", "|-", "| -", "$$", "```", "~~~", ":"))
            or re.fullmatch(r"[|: -]+", bare)
        ):
            yield from close()
        elif line.startswith(("    ", "\t")) and not gathered:
            continue
        elif bare.startswith("|"):
            yield from close()
            for cell in prose_of(bare).strip("|").split("|"):
                if re.search(r"[a-z]{2}", cell):
                    yield Text(f"{where}{number}", Kind.PAGE, cell.strip())
        else:
            if re.match(r"#|[-*+] |\d+\. ", bare):
                yield from close()
            if not gathered:
                start = number
            gathered.append(re.sub(r"^(?:#+|[-*+]|\d+\.) +", "", bare))
            if bare.startswith("#"):
                yield from close()
    yield from close()


def python_texts(path: Path) -> Iterator[Text]:
    source, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
    product = name.split("/")[0] in PRODUCT
    tree = ast.parse(source)
    described: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings(node, name, described)
    if product:
        yield from _messages(tree, name, described)
    yield from _comments(source, name)


def _docstrings(node: ast.AST, name: str, described: set[ast.expr]) -> Iterator[Text]:
    body = getattr(node, "body", [])
    for before, statement in zip([None, *body], body, strict=False):
        if not (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
        ):
            continue
        described.add(statement.value)
        if before is None:
            what = _what_it_describes(node, name)
        elif isinstance(before, ast.Assign | ast.AnnAssign):
            what = "value"
        else:
            continue
        yield from _parts_of_docstring(statement.value.value, f"{name}:{statement.lineno}", what)


def _what_it_describes(node: ast.AST, name: str) -> str:
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        return "class"
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    decorators = " ".join(ast.unparse(one) for one in node.decorator_list)
    if "property" in decorators or "overload" in decorators:
        return "value"
    if name.startswith("tests/") and (node.name.startswith("test") or "fixture" in decorators or "given" in decorators):
        return "test"
    return "function"


SECTIONS = r"Args|Attributes|Returns|Raises|Yields|Sources?|Examples?|Notes?|Departures[\w ]*|Learns?|Steps?"
SECTION = re.compile(rf"^ *({SECTIONS}):\s*$")
ENTRY = re.compile(r"^ +(\*{0,2}[\w.`\[\], *]+?)(?: \([^)]*\))?: +(.*)$")


def _parts_of_docstring(docstring: str, place: str, what: str) -> Iterator[Text]:
    """Yield the paragraphs of a docstring and the entries of its sections."""
    section, first = None, True
    paragraph: list[str] = []
    kind: str | None = what

    def close() -> Iterator[Text]:
        nonlocal first, kind
        if paragraph:
            prose = prose_of(" ".join(paragraph))
            yield Text(place, Kind.DOCSTRING, prose, kind if kind != what or first else None)
            first = False
            paragraph.clear()
        kind = what

    for line in docstring.splitlines():
        bare = line.strip()
        if (found := SECTION.match(line)) is not None:
            yield from close()
            first, section = False, found[1]
            continue
        if section in {"Example", "Examples", "Source", "Sources"} and bare:
            continue
        if section in {"Args", "Attributes"} and (entry := ENTRY.match(line)) is not None:
            yield from close()
            kind, paragraph = "entry", [entry[2]]
            continue
        if section == "Returns" and bare and not paragraph:
            kind = "entry"
        if (
            not bare
            or bare.startswith((">>>", "...", "|", "- ", "* "))
            or (line.startswith("        ") and section is None and not paragraph)
        ):
            yield from close()
            if bare.startswith(("- ", "* ")):
                paragraph.append(bare[2:])
            continue
        paragraph.append(bare)
    yield from close()


def _messages(tree: ast.Module, name: str, described: set[ast.expr]) -> Iterator[Text]:
    """Yield every string with at least three words."""
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if node in inside or node in described:
            continue
        if isinstance(node, ast.JoinedStr):
            inside.update(
                ast.walk(node)
                if not any(isinstance(part, ast.FormattedValue) and _has_text(part) for part in node.values)
                else node.values
            )
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if (
            len(re.findall(r"[A-Za-z]{2,}", prose_of(text))) >= 3
            and " " in text.strip()
            and not re.search(r"[\\^]|SELECT |CREATE |\(\?|\{[^}]*:[^}]*\}", text)
        ):
            for paragraph in re.split(r"\n\s*\n|\n(?=[-#|] )", prose_of(text)):
                if paragraph.strip():
                    yield Text(f"{name}:{node.lineno}", Kind.MESSAGE, " ".join(paragraph.split()))


def _has_text(part: ast.FormattedValue) -> bool:
    return any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) and " " in one.value.strip()
        for one in ast.walk(part.value)
    )


def _comments(source: str, name: str) -> Iterator[Text]:
    """Yield the comments; lines that follow each other are one."""
    gathered: list[str] = []
    start, last = 0, -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        own_line = token.line.strip().startswith("#")
        if gathered and (token.start[0] != last + 1 or not own_line):
            yield Text(f"{name}:{start}", Kind.COMMENT, prose_of(" ".join(gathered)))
            gathered = []
        if not gathered:
            start = token.start[0]
        if not re.match(r"# ?(?:noqa|type:|pragma|fmt:|ruff|!)", token.string):
            gathered.append(re.sub(r"# ?(?:noqa|type: ignore).*", "", token.string).lstrip("# "))
        last = token.start[0]
    if gathered:
        yield Text(f"{name}:{start}", Kind.COMMENT, prose_of(" ".join(gathered)))


def make_texts(path: Path) -> Iterator[Text]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if (found := re.search(r"#+ +(.*)$", line)) is not None:
            yield Text(f"{path.name}:{number}", Kind.MESSAGE, prose_of(found[1]))
