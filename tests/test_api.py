"""The rules of the house, checked against the public names."""

import ast
import dataclasses
import inspect
import sys
from pathlib import Path

import pytest

import tfpe
from tfpe._settings import Settings

ROOT = Path(tfpe.__file__).parent
FUNCTIONS = [n for n in tfpe.__all__ if inspect.isfunction(getattr(tfpe, n))]
CALLABLES = [n for n in tfpe.__all__ if callable(getattr(tfpe, n))]
WITH_SETTINGS = ("shift_matrix", "timescales", "timing_signal", "timing_signal_at")
DEFAULTS = {
    "layout": "interleaved",
    "spectrum": None,
    "min_timescale": 1.0,
    "max_timescale": 10_000.0,
    "cosine_first": False,
    "odd_channel": "zero",
    "first_position": 0,
    "amplitude": 1.0,
}
KEYWORD, VARIABLE = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD


def parameters(thing):
    return inspect.signature(thing).parameters


def test_all_is_sorted_and_names_what_there_is():
    assert list(tfpe.__all__) == sorted(tfpe.__all__)
    assert set(tfpe.__all__) <= set(dir(tfpe))
    assert {
        "SinusoidalPositionalEncoding",
        "layout_permutation",
        "positions_from_mask",
        "positions_from_segments",
        "shift_matrix",
        "timescales",
        "timing_signal",
        "timing_signal_at",
    } <= set(tfpe.__all__)


def test_settings_have_the_same_names_and_defaults_everywhere():
    fields = {field.name: field.default for field in dataclasses.fields(Settings)}
    assert fields == DEFAULTS
    arguments = parameters(tfpe.SinusoidalPositionalEncoding.__init__)
    of_layer = {name: p.default for name, p in arguments.items() if name in DEFAULTS}
    assert of_layer == DEFAULTS
    assert [name for name in arguments if name in DEFAULTS] == list(DEFAULTS)
    config = tfpe.SinusoidalPositionalEncoding().get_config()
    assert {name: config[name] for name in DEFAULTS} == DEFAULTS
    for name in WITH_SETTINGS:
        assert parameters(getattr(tfpe, name))["settings"].kind is VARIABLE


@pytest.mark.parametrize("name", FUNCTIONS)
def test_optional_arguments_of_functions_are_keyword_only(name):
    for argument in parameters(getattr(tfpe, name)).values():
        if argument.default is not inspect.Parameter.empty:
            assert argument.kind is KEYWORD or argument.name == "mask"


def test_layer_takes_what_the_design_says():
    own = {"axis": -2, "skip_masked": False}
    arguments = parameters(tfpe.SinusoidalPositionalEncoding.__init__)
    assert list(arguments) == ["self", *DEFAULTS, *own, "kwargs"]
    assert {name: arguments[name].default for name in own} == own
    call = parameters(tfpe.SinusoidalPositionalEncoding.call)
    assert {n: p.default for n, p in list(call.items())[2:]} == {
        "start_index": 0,
        "positions": None,
        "mask": None,
    }


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring_says_what_comes_in_what_comes_out_and_what_goes_wrong(name):
    text = inspect.getdoc(getattr(tfpe, name))
    first = text.splitlines()[0]
    assert first.endswith(".")
    assert len(first) <= 80
    for section in ("Args:", "Returns:", "Raises:", "Example:"):
        assert section in text.splitlines(), section
    assert ">>> " in text


@pytest.mark.parametrize("name", CALLABLES)
def test_docstring_names_every_argument(name):
    thing = getattr(tfpe, name)
    arguments = list(parameters(thing))
    if inspect.isclass(thing):
        arguments += [n for n in parameters(thing.call) if n != "self"]
    text = inspect.getdoc(thing)
    for argument in arguments:
        stars = "**" if argument in ("settings", "kwargs") else ""
        assert f"    {stars}{argument}: " in text, argument


def imports(source):
    """Yields the modules that a file imports outside functions."""
    waiting = list(ast.parse(source.read_text()).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += ast.iter_child_nodes(node)


def imported_with(name):
    """Returns the modules outside the package that one of its modules brings."""
    files = {
        ".".join(source.relative_to(ROOT.parent).with_suffix("").parts): source
        for source in ROOT.rglob("*.py")
    }
    files |= {n.removesuffix(".__init__"): source for n, source in files.items()}
    found, waiting, seen = set(), [name], set()
    while waiting:
        module = waiting.pop()
        if module in files and module not in seen:
            seen.add(module)
            waiting += imports(files[module])
        elif not module.startswith("tfpe."):
            found.add(module.split(".")[0])
    return found - {"tfpe"} - sys.stdlib_module_names


def test_import_of_tfpe_brings_keras_and_numpy_alone():
    assert imported_with("tfpe") == {"keras", "numpy"}


@pytest.mark.parametrize("module", ["table", "layouts", "spectra", "conventions"])
def test_what_lives_on_the_host_needs_numpy_alone(module):
    assert imported_with(f"tfpe.{module}") <= {"numpy"}
    assert "numpy" in imported_with("tfpe.table")


def test_library_has_no_assert_statements():
    for source in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            assert not isinstance(node, ast.Assert), source
