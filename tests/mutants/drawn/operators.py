"""Small changes of code that a slip of the hand could make, kind by kind."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

Change = tuple[ast.AST, str]  # the node to replace, and its text afterwards
PAST_THE_EDGE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITE = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OTHER_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
OTHER_CALL |= {"floor": "ceil", "ceil": "floor"}
QUIET = {"log", "warnings"}  # texts of these calls are for a reader


@dataclass
class Defaults:
    """The arguments that have a default, by the name of the function or class that the project defines."""

    by_name: dict[str, list[set[str]]] = field(default_factory=dict)

    def learn(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.by_name.setdefault(node.name, []).append(_with_default(node.args))
            elif isinstance(node, ast.ClassDef):
                fields = [part for part in node.body if isinstance(part, ast.AnnAssign) and part.value is not None]
                makers = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
                names = {ast.unparse(part.target) for part in fields}
                self.by_name.setdefault(node.name, []).append(names.union(*(_with_default(m.args) for m in makers)))

    def may_be_left_out(self, call: ast.Call, keyword: str) -> bool:
        name = ast.unparse(call.func).rpartition(".")[2]
        known = self.by_name.get(name, ())
        return all(keyword in names for names in known)  # a library's arguments with a name are optional, mostly


def _with_default(arguments: ast.arguments) -> set[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    ordered = positional[len(positional) - len(arguments.defaults) :]
    named = [a for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is not None]
    return {argument.arg for argument in (*ordered, *named)}


@dataclass(frozen=True)
class Place:
    """A node, and what stands around it."""

    node: ast.AST
    module: ast.Module
    function: ast.FunctionDef | ast.AsyncFunctionDef | None
    owner: ast.ClassDef | None
    defaults: Defaults


def places_of(tree: ast.Module, defaults: Defaults) -> Iterator[Place]:
    """Yield every place whose change has a meaning: no annotation, docstring, decorator or text of an error."""
    yield from _places(tree, Place(tree, tree, None, None, defaults))


def _places(node: ast.AST, around: Place) -> Iterator[Place]:
    here = Place(node, around.module, around.function, around.owner, around.defaults)
    yield here
    inside = here
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        inside = Place(node, here.module, node, here.owner, here.defaults)
    elif isinstance(node, ast.ClassDef):
        inside = Place(node, here.module, None, node, here.defaults)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_comment", "exc", "cause"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_mute(child):
                yield from _places(child, inside)


def _is_mute(node: ast.AST) -> bool:
    """Return True if a change would have no meaning for a program."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
        return True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return any(ast.unparse(mark).partition(".")[2] == "overload" for mark in node.decorator_list)
    if isinstance(node, ast.Expr):
        value = node.value
        if isinstance(value, ast.Call):
            return ast.unparse(value.func).partition(".")[0] in QUIET
        return isinstance(value, ast.Constant)
    return False


# --- the kinds ----------------------------------------------------------------------------------------


def _with(node: ast.AST, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)


def _comparison(place: Place, table: Mapping[type, type]) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Compare):
        for number, op in enumerate(node.ops):
            if type(op) in table:
                ops = [*node.ops[:number], table[type(op)](), *node.ops[number + 1 :]]
                yield node, f"({_with(node, ops=ops)})"


def moves_an_edge(place: Place) -> Iterator[Change]:
    yield from _comparison(place, PAST_THE_EDGE)


def reverses_a_comparison(place: Place) -> Iterator[Change]:
    yield from _comparison(place, OPPOSITE)


def moves_a_bound(place: Place) -> Iterator[Change]:
    node = place.node
    bounds: list[ast.expr | None] = []
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "range" and not any(_is_star(a) for a in node.args):
        bounds = list(node.args[:2])
    elif isinstance(node, ast.Slice):
        bounds = [node.lower, node.upper]
    for bound in bounds:
        if bound is not None:
            yield from ((bound, f"({ast.unparse(bound)} {step})") for step in ("+ 1", "- 1"))


def _is_star(node: ast.AST) -> bool:
    return isinstance(node, ast.Starred)


def changes_arithmetic(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BinOp) and type(node.op) in OTHER_ARITHMETIC:
        if not any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)):
            yield node, f"({_with(node, op=OTHER_ARITHMETIC[type(node.op)]())})"
    elif isinstance(node, ast.AugAssign) and type(node.op) in OTHER_ARITHMETIC:
        yield node, _with(node, op=OTHER_ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, f"({ast.unparse(node.operand)})"


def swaps_and_with_or(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BoolOp):
        yield node, f"({_with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())})"


def drops_a_condition(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BoolOp):
        for number in range(len(node.values)):
            left = [*node.values[:number], *node.values[number + 1 :]]
            yield node, f"({_with(node, values=left) if len(left) > 1 else ast.unparse(left[0])})"
    elif isinstance(node, ast.comprehension):
        yield from ((condition, "True") for condition in node.ifs)


def negates(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Compare | ast.Constant):
        yield node.test, f"(not ({ast.unparse(node.test)}))"


def moves_a_constant(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, str(not node.value)
        elif isinstance(node.value, int | float):
            yield from ((node, f"({node.value!r} {step})") for step in ("+ 1", "- 1"))


def returns_a_sibling(place: Place) -> Iterator[Change]:
    node, function = place.node, place.function
    if not isinstance(node, ast.Return) or node.value is None or function is None:
        return
    value = node.value
    if isinstance(value, ast.Tuple) and not any(map(_is_star, value.elts)):
        yield from ((value, text) for text in _swapped(value, "elts", value.elts))
        return
    arguments = [a.arg for a in (*function.args.args, *function.args.kwonlyargs) if a.arg not in ("self", "cls")]
    stored = [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    for name in dict.fromkeys([*arguments, *stored]):
        if name != ast.unparse(value):
            yield value, name


def _swapped(node: ast.AST, name: str, values: list[ast.expr]) -> Iterator[str]:
    for first, second in itertools.pairwise(range(len(values))):
        if ast.dump(values[first]) == ast.dump(values[second]):
            continue
        swapped = list(values)
        swapped[first], swapped[second] = values[second], values[first]
        yield f"({_with(node, **{name: swapped})})"


def leaves_an_argument_out(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg is not None and place.defaults.may_be_left_out(node, keyword.arg):
                yield node, _with(node, keywords=[other for other in node.keywords if other is not keyword])


def deletes_a_statement(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Continue | ast.Break | ast.Delete) or (
        isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name) and place.function is not None
    ):
        yield node, "pass"


def deletes_a_raise(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Raise) and not (node.exc and "NotImplementedError" in ast.unparse(node.exc)):
        yield node, "pass"


def swaps_min_with_max(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call):
        before, dot, name = ast.unparse(node.func).rpartition(".")
        if name in OTHER_CALL:
            yield node.func, before + dot + OTHER_CALL[name]


def swaps_names(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call):
        if not any(map(_is_star, node.args)):
            yield from ((node, text) for text in _swapped(node, "args", node.args))
        named = [keyword for keyword in node.keywords if keyword.arg]
        for one, other in itertools.pairwise(named):
            if ast.dump(one.value) == ast.dump(other.value):
                continue
            names = {id(one): other.arg, id(other): one.arg}
            swapped = [ast.keyword(names.get(id(each), each.arg), each.value) for each in node.keywords]
            yield node, f"({_with(node, keywords=swapped)})"
    elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self" and isinstance(node.ctx, ast.Load):
        for name in _fields_like(node.attr, place.owner):
            yield node, f"self.{name}"
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        for name in _keys(place.module) - {node.slice.value}:
            yield node.slice, repr(name)


def _fields_like(name: str, owner: ast.ClassDef | None) -> list[str]:
    """Return the other fields of a class that have the same type."""
    types = {
        ast.unparse(part.target): ast.unparse(part.annotation)
        for part in (owner.body if owner else ())
        if isinstance(part, ast.AnnAssign)
    }
    return sorted(other for other, kind in types.items() if other != name and kind == types.get(name))


def _keys(module: ast.Module) -> set[str]:
    slices = [node.slice for node in ast.walk(module) if isinstance(node, ast.Subscript)]
    return {part.value for part in slices if isinstance(part, ast.Constant) and isinstance(part.value, str)}


Operator = Callable[[Place], Iterator[Change]]
OPERATORS: tuple[Operator, ...] = (
    moves_an_edge,
    reverses_a_comparison,
    moves_a_bound,
    changes_arithmetic,
    swaps_and_with_or,
    drops_a_condition,
    negates,
    moves_a_constant,
    returns_a_sibling,
    leaves_an_argument_out,
    deletes_a_statement,
    deletes_a_raise,
    swaps_min_with_max,
    swaps_names,
)
