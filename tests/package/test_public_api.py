"""The public interface: names, signatures, types, and a cheap import."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
import streamweld as sw
from streamweld import _backend, _extension, _native, errors, events, options, response, sse, stream
from streamweld._extension import extension
from streamweld._spec import EVENTS
from streamweld.errors import UsageError

PACKAGE = Path(sw.__file__).parent
MODULES = [sw, errors, events, options, response, sse, stream, importlib.import_module("streamweld.iterators")]
MODULES += [importlib.import_module(f"streamweld.{name}") for name in ("check", "convert")]  # `sw.check` is a function


def test_names() -> None:
    assert sw.__all__ == sorted(sw.__all__)
    for module in MODULES:
        for name in module.__all__:
            assert hasattr(module, name), f"{module.__name__}.{name}"
    found: dict[str, Any] = {}
    exec("from streamweld import *", found)
    assert set(sw.__all__) <= found.keys()


def test_the_surface_is_what_was_promised() -> None:
    promised = {
        *("StreamParser", "parse", "iter_events", "iter_batches", "aiter_events", "aiter_batches"),
        *("Response", "Policy", "Limits", "backend", "events", "errors", "sse", "__version__"),
        *("StreamweldError", "StreamError", "UsageError", "check", "Violation"),
    }
    assert promised <= set(sw.__all__)
    assert all(not name.startswith("_") or name == "__version__" for name in sw.__all__)


@pytest.mark.parametrize(
    ("made", "signature"),
    [
        (
            sw.StreamParser,
            (
                "(*, dialect: 'Dialect' = 'auto', policy: 'Base | Policy' = 'standard', limits: 'Limits' = LIMITS, "
                "tools: 'Tools | None' = None, known_call_ids: 'Iterable[str]' = (), "
                "content_type: 'str | None' = None, seed: 'str | None' = None) -> 'None'"
            ),
        ),
        (sw.StreamParser.feed, "(self, data: 'bytes | bytearray | memoryview') -> 'list[Event]'"),
        (sw.StreamParser.close, "(self, *, broken: 'bool' = False) -> 'list[Event]'"),
        (sw.parse, "(body: 'bytes | bytearray | memoryview', **options: 'Unpack[StreamOptions]') -> 'Response'"),
        (
            sw.check,
            "(body: 'bytes | bytearray | memoryview', dialect: 'CheckDialect' = 'auto') -> 'list[Violation]'",
        ),
        (
            sw.iter_events,
            (
                "(chunks: 'Iterable[bytes | bytearray | memoryview]', *, close_source: 'bool' = True, "
                "**options: 'Unpack[StreamOptions]') -> 'EventIterator[Event]'"
            ),
        ),
        (
            sw.aiter_batches,
            (
                "(chunks: 'AsyncIterable[bytes | bytearray | memoryview]', *, idle_timeout: 'float | None' = None, "
                "event_timeout: 'float | None' = None, close_source: 'bool' = True, "
                "**options: 'Unpack[StreamOptions]') -> 'AsyncEventIterator[list[Event]]'"
            ),
        ),
    ],
)
def test_signatures(made: Any, signature: str) -> None:
    written = str(inspect.signature(made)).replace(repr(sw.Limits()), "LIMITS")
    assert written == signature


def test_the_options_are_those_of_the_parser() -> None:
    parameters = inspect.signature(sw.StreamParser).parameters
    assert list(parameters) == list(stream.StreamOptions.__annotations__)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_everything_public_is_documented(module: Any) -> None:
    assert module.__doc__
    for name in module.__all__:
        thing = getattr(module, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        assert inspect.getdoc(thing), f"{module.__name__}.{name}"
        for attribute, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not attribute.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{attribute}"


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (sw.convert, "to", "convert() has no argument to=; did you mean target=?"),
        (sw.iter_convert, "to", "iter_convert() has no argument to=; did you mean target=?"),
        (sw.convert, "polcy", "convert() has no argument polcy=; did you mean policy=?"),
        (sw.history.convert, "to", "convert() has no argument to=; did you mean target=?"),
        (sw.history.check, "to", "check() has no argument to=; did you mean target=?"),
        (sw.requests.convert, "to", "convert() has no argument to=; did you mean target=?"),
        (sw.arrow.parse, "column", "parse() has no argument column=; did you mean body=?"),
        (sw.parse, "text_calls", "parse() has no argument text_calls=; did you mean policy=Policy(text_calls=…)?"),
        (sw.parse, "dialct", "parse() has no argument dialct=; did you mean dialect=?"),
    ],
)
def test_an_unknown_keyword_is_named_with_the_one_that_was_meant(function: Any, given: str, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        function(b"", **{given: "chat"})
    assert str(caught.value) == message


DOCUMENTED = ("arrow", "errors", "events", "history", "integrations", "report", "requests", "sse", "testing", "usage")


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_modules_are_attributes(name: str) -> None:
    done = imported(f"import streamweld as sw; print(sw.{name}.__name__)")
    assert done.stdout == f"streamweld.{name}\n", done.stderr


def test_the_backend_is_one_of_two() -> None:
    assert sw.backend in typing.get_args(_backend.Backend)
    assert _backend.load("pure").__module__ == "streamweld._pure.pipeline.parser"


def imported(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | env, check=False
    )


def test_the_variable_chooses(backend: str) -> None:
    done = imported("import streamweld; print(streamweld.backend)", STREAMWELD_BACKEND=backend)
    assert done.stdout == f"{backend}\n"
    done = imported("import streamweld", STREAMWELD_BACKEND="fast")
    assert "UsageError: STREAMWELD_BACKEND='fast': it must be auto, native or pure" in done.stderr


HIDE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name == "streamweld._native":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
"""


def test_without_the_extension() -> None:
    code = HIDE + (
        "import streamweld as sw\n"
        "from streamweld import _events\n"
        "print(sw.backend, sw.events.TextDelta is _events.TextDelta)\n"
        'print(sw.parse(b\'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\ndata: [DONE]\\n\\n\').text)\n'
        "from streamweld._backend import load\n"
        "try: load('native')\n"
        "except sw.UsageError as error: print(error)\n"
    )
    for choice in ("auto", "pure"):
        done = imported(code, STREAMWELD_BACKEND=choice)
        assert done.stdout.splitlines() == [
            "pure True",
            "Hi",
            "streamweld._native is not installed: this is a pure-Python installation of streamweld",
        ], done.stderr
    done = imported(HIDE + "import streamweld", STREAMWELD_BACKEND="native")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "streamweld.errors.UsageError: STREAMWELD_BACKEND=native, but streamweld._native is not installed"
    )


def test_a_broken_extension_is_no_reason_to_go_on_without() -> None:
    code = HIDE.replace('raise ModuleNotFoundError(f"No module named {name!r}", name=name)', "raise ImportError('bad')")
    done = imported(code + "import streamweld")
    assert done.returncode == 1
    assert "ImportError: bad" in done.stderr
    code = HIDE.replace("name=name)", "name='libssl')")
    done = imported(code + "import streamweld")
    assert done.returncode == 1


STALE = """
import sys, types
module = types.ModuleType("streamweld._native")
module.__file__ = "/somewhere/_native.abi3.so"
for name in {names!r}:
    setattr(module, name, type(name, (), {{"__match_args__": {fields!r}}}))
sys.modules["streamweld._native"] = module
import streamweld
"""


@pytest.mark.parametrize(
    ("lacks", "fields", "missing"),
    [("Repairer", (), "Repairer"), ("TextDelta", (), "TextDelta"), (None, ("part",), r"\w+\.\w+")],
)
def test_an_extension_of_other_sources_is_reported_at_import(
    lacks: str | None, fields: tuple[str, ...], missing: str
) -> None:
    """For example, after an update of the Python files without a build of the extension."""
    tree = ast.parse((PACKAGE / "_native.pyi").read_text("utf-8"))
    (listed,) = [node for node in tree.body if isinstance(node, ast.Assign)]
    names = [name for name in ast.literal_eval(listed.value) if name != lacks]
    for choice in ("auto", "native"):
        done = imported(STALE.format(names=names, fields=fields), STREAMWELD_BACKEND=choice)
        assert done.returncode == 1
        last = done.stderr.splitlines()[-1]
        assert re.fullmatch(
            r"ImportError: /somewhere/_native\.abi3\.so was built from different sources than this version of "
            rf"streamweld: it lacks {missing}\. Reinstall streamweld, or run `make build` in a source tree",
            last,
        ), last


def test_importing_stays_cheap() -> None:
    """Importing streamweld does not import an HTTP library, an event loop, the command line or package metadata."""
    heavy = "asyncio click rich httpx importlib.metadata logging socket concurrent"
    done = imported(f"import sys, streamweld; print([name for name in {heavy.split()!r} if name in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_version() -> None:
    from importlib.metadata import version

    assert sw.__version__ == version("streamweld")
    with pytest.raises(AttributeError, match="nonsense"):
        sw.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert (PACKAGE / "_native.pyi").is_file()


def test_the_stub_is_the_module() -> None:
    """Names, methods and properties are compared. `make lint` runs stubtest, which checks more and takes longer."""
    assert extension() is _native
    tree = ast.parse((PACKAGE / "_native.pyi").read_text("utf-8"))
    (listed,) = [node for node in tree.body if isinstance(node, ast.Assign)]
    assert set(ast.literal_eval(listed.value)) == set(_native.__all__)
    assert set(_native.__all__) == {*_extension.NAMES, *EVENTS}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = getattr(_native, node.name)
        written = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        written = {name for name in written if not name.startswith("__")}
        assert written == {name for name in dir(cls) if not name.startswith("_")}


def test_both_parsers_have_the_protocol() -> None:
    wanted = {name for name in vars(_backend.Parser) if not name.startswith("_")}
    for name in typing.get_args(_backend.Backend):
        assert wanted <= set(dir(_backend.load(name)))


def test_a_user_s_mistake_is_an_error_of_the_user() -> None:
    with pytest.raises(UsageError):
        sw.StreamParser(policy="lenient")  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [sw.Policy, sw.Limits])
def test_help_explains_every_option(made: Any) -> None:
    """`help(Policy)` documents each option under `Args:`."""
    arguments = (inspect.getdoc(made) or "").partition("\nArgs:\n")[2].partition("\n\nRaises:")[0]
    explained = re.findall(r"^ {4}(\w+): \S", arguments, re.MULTILINE)
    assert explained == [option.name for option in dataclasses.fields(made)]


def test_help_names_every_value_of_a_switch() -> None:
    """`help(Policy)` lists every value of an option, and the number of the ambiguity that the option decides, which
    diagnostics cite.
    """
    arguments = (inspect.getdoc(sw.Policy) or "").partition("\nArgs:\n")[2].partition("\n\nRaises:")[0]
    paragraphs = dict(re.findall(r"^ {4}(\w+): (.*?)(?=^ {4}\w|\Z)", arguments, re.MULTILINE | re.DOTALL))
    numbered = {switch for switch, text in paragraphs.items() if text.startswith("AM")}
    assert numbered == {
        name for name in options._SWITCHES if name not in ("empty_call_without_reason", "missing_terminal")
    }
    for name, hint in typing.get_type_hints(sw.Policy).items():
        for value in typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ():
            assert f'"{value}"' in paragraphs[name], (name, value)


@pytest.mark.parametrize("made", [sw.parse, sw.iter_events, sw.aiter_events])
def test_help_names_the_options_of_a_stream(made: Any) -> None:
    named = (inspect.getdoc(made) or "").partition("**options:")[2].partition("\n\n")[0]
    assert re.findall(r"`([a-z_]+)`", named) == list(stream.StreamOptions.__annotations__)
