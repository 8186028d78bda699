"""Every public name is documented: what it takes, returns and raises, and an example, which runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blindfit
from tests.command import forked_parties
from tests.hints.following import refused
from tests.python_calls import typed_script
from tests.python_calls.prepared import names, prepare, start_server, wait_for
from tests.world.world import World

MODULES = ("blindfit", "blindfit.label_mechanisms", "blindfit.paillier")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OF_A_SERVER = {"DatasetDescription", "DatasetBudget", "NoisyAggregate", "MeasurementClient", "ReleasedLabels"}
OF_RUNNING_PARTIES = {"submit"}
NO_EXAMPLE = {"__version__", "Model"}  # a text, and a union of types


def public_names() -> list[tuple[str, str]]:
    return [(module, name) for module in MODULES for name in importlib.import_module(module).__all__]


def public(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def callables_of(module: str, name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield a function, or a class's own methods, by their full names."""
    found = public(module, name)
    if inspect.isfunction(found):
        yield name, found
    elif inspect.isclass(found):
        for method, member in vars(found).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not method.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{method}", function


ALL_CALLABLES = [pair for module, name in public_names() for pair in callables_of(module, name)]
CONSTRUCTORS = [
    (f"{name}.__init__", public(module, name).__init__)
    for module, name in public_names()
    if inspect.isclass(public(module, name)) and inspect.isfunction(public(module, name).__init__)
    if name != "Found"  # its document is the JSON of any command
]
CLASSES = sorted({name for module, name in public_names() if inspect.isclass(public(module, name))})


def class_of(name: str) -> type:
    return next(public(module, each) for module, each in public_names() if each == name)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = prepare(tmp_path_factory.mktemp("examples"))
    with forked_parties():
        blindfit.run(world.path("job.toml"), out=world.path("first"), progress=False)  # the meter's ledger has an entry
    return world


def run_examples(found: object, name: str, more: dict[str, Any]) -> None:
    module = inspect.getmodule(found)
    tests = doctest.DocTestFinder(recurse=False).find(found, name, module=module, globs={**names(), **more})
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said: list[str] = []
    for test in tests:
        runner.run(test, out=said.append, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def examples_of(name: str) -> Iterator[tuple[str, object]]:
    """Yield what has examples under a public name: itself, its methods and its properties."""
    found = next(public(module, each) for module, each in public_names() if each == name)
    yield name, found
    if inspect.isclass(found):
        for member, value in vars(found).items():
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"{name}.{member}", value


NAMES = sorted({name for _, name in public_names()} - NO_EXAMPLE - OF_A_SERVER)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_run(name: str, prepared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(prepared.root)
    with forked_parties():
        if name in OF_RUNNING_PARTIES:
            prepared.start("shop", "meter")
        try:
            for each, found in examples_of(name):
                run_examples(found, each, {})
        finally:
            prepared.stop()


def test_the_examples_of_a_measurement_server_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, address = start_server(tmp_path)
    monkeypatch.chdir(tmp_path / "ca")
    ids = [f"u{number}" for number in range(500)]
    features = np.random.default_rng(1).normal(size=(500, 2))
    identity = blindfit.load_identity("shop/certificate.pem", "shop/key.pem", "shop/authority.pem", "crl.pem")
    client = blindfit.MeasurementClient(identity, "meter", address)
    settings = blindfit.MechanismSettings("staircase", blindfit.LabelGrid(0.0, 100.0), epsilon=2.0)
    prepared = {
        "address": address,
        "ids": ids,
        "features": features,
        "identity": identity,
        "client": client,
        "description": wait_for(client.describe("visits")),
        "budget": wait_for(client.budget("visits")),
        "aggregate": wait_for(client.aggregate("visits", ids, features, epsilon=1.0, delta=1e-6, norm_bound=3.0)),
        "released_labels": wait_for(client.release_labels("prices", ids, settings)),
    }
    try:
        assert wait_for(typed_script.ask(client, ids, features)).shape == (2,)
        with refused("call release_labels"):
            wait_for(client.aggregate("prices", ids, features, epsilon=1.0, delta=1e-6, norm_bound=3.0))
        for name in sorted(OF_A_SERVER):
            for each, found in examples_of(name):
                run_examples(found, each, prepared)
    finally:
        world.stop()


# --- what a description has


@pytest.mark.parametrize(("name", "function"), ALL_CALLABLES)
def test_a_function_says_what_it_takes_returns_and_raises(name: str, function: Callable[..., Any]) -> None:
    said = inspect.getdoc(function) or ""
    assert said, f"{name} has no docstring"
    signature = inspect.signature(function)
    taken = [parameter for parameter in signature.parameters if parameter not in ("self", "cls")]
    section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", said, re.M | re.S)
    if taken:
        assert section is not None, f"{name} has no Args"
        described = re.findall(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*):", section[1], re.M)
        known = {one.strip("* ") for entry in described for one in entry.split(",")}
        assert known == set(taken), f"{name}: Args has {sorted(known)}, the signature {sorted(taken)}"
    returns = signature.return_annotation
    if returns not in (None, "None", "Iterator[None]"):
        assert re.search(r"^(Returns|Yields):|^(Return|Yield) ", said, re.M), f"{name} does not say what it returns"


@pytest.mark.parametrize("name", [name for name, _ in ALL_CALLABLES if "." not in name])
def test_a_function_has_an_example(name: str) -> None:
    function = next(each for each_name, each in ALL_CALLABLES if each_name == name)
    assert ">>> " in (inspect.getdoc(function) or ""), f"{name} has no example"


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_an_example(name: str) -> None:
    found = class_of(name)
    assert ">>> " in (vars(found).get("__doc__") or ""), f"{name} has no example"
    for member, value in vars(found).items():
        if isinstance(value, property) and not member.startswith("_"):
            assert value.__doc__, f"{name}.{member} has no docstring"


@pytest.mark.parametrize(("name", "function"), [*ALL_CALLABLES, *CONSTRUCTORS])
def test_a_function_takes_and_returns_exact_types(name: str, function: Callable[..., Any]) -> None:
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            assert str(parameter.annotation) not in ("Any", "typing.Any"), f"{name}: {parameter.name} is Any"
    returns = str(signature.return_annotation)
    assert returns not in ("Any", "typing.Any"), f"{name} returns Any"
    assert name.endswith("__init__") or "inspect._empty" not in returns, f"{name} has no return type"


# --- a typed program


def test_a_typed_program_runs(prepared: World) -> None:
    """mypy checks the same program: [tool.mypy] names it."""
    job, examples = prepared.path("job.toml"), names()
    with forked_parties():
        assert typed_script.train_and_load(job) == ["f0", "f1", "f2", "f3"]
        assert typed_script.watch(job) > 0
        assert typed_script.check(job) == 0
    assert 0 < typed_script.fit(examples["X"], examples["y"]) <= 3
