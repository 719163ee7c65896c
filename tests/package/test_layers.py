"""The structure of the code: layers by folder, no import cycles, no crowded folder, no I/O in the core.

ARCHITECTURE.md describes the folders. A new file does not have to be added here, because it belongs to the layer of its
folder.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.support.imports import (
    BINDINGS,
    CORE,
    PACKAGE,
    Graph,
    cycles,
    python_graph,
    python_imports,
    python_modules,
    rust_code,
    rust_graph,
    rust_modules,
    tracked_files,
)

MOST_FILES = 25  # maximum number of files per folder

# The layers, from bottom to top. A folder may use itself, the other folders in its string, and those in earlier
# strings.
STREAM_LAYERS = ("json", "model", "sse", "assemble dialect fastpath", "text_calls", "pipeline", "encode", "repair")
RUST_LAYERS = (*STREAM_LAYERS, "lib")
PURE_LAYERS = tuple(" ".join(f"_pure.{folder}" for folder in line.split()) for line in STREAM_LAYERS)
# The pure backend creates the user-visible results of a stream (events, errors, usage), so they are below it.
EVENT_LAYERS = (
    "_spec _literals _show _extension",
    "_pure.json",
    "_json _arguments _messages _events events errors usage",
)
# The rest of the package. A module that is not listed belongs to the public interface.
PACKAGE_LAYERS = (
    *EVENT_LAYERS,
    *PURE_LAYERS[1:],
    "surface",
    "check history",
    "requests report",
    "integrations",
    "cli",
    "__main__",
)
DIALECTS = {"chat", "responses", "anthropic", "gemini", "ai_sdk"}
AI_SDK = {"parts", "ui"}

# Modules that the sans-I/O code must not use, in both languages.
IO_PYTHON = {
    *("asyncio", "datetime", "logging", "multiprocessing", "os", "pathlib", "random", "select", "selectors", "signal"),
    *("socket", "ssl", "subprocess", "sys", "threading", "time", "httpx", "anyio"),
}
IO_RUST = re.compile(r"\bstd::(net|time|thread|env|fs|io|process)\b|\bprintln!|\beprintln!|\bpyo3\b")
# The Python modules that the bindings may import; others would be a second way into the package.
BINDINGS_MAY_NAME = {
    f"streamweld.{name}" for name in ("events", "errors", "usage", "_native", "_arguments", "_json", "_messages")
}


def layer_of(module: str, layers: tuple[str, ...]) -> int:
    for number, line in enumerate(layers):
        if any(module == folder or module.startswith(f"{folder}.") for folder in line.split()):
            return number
    return layers.index("surface")


def upward(graph: Graph, layers: tuple[str, ...]) -> list[str]:
    return [
        f"{source} uses {target}"
        for source, targets in sorted(graph.items())
        for target in sorted(targets)
        if layer_of(target, layers) > layer_of(source, layers)
    ]


def dialect_of(module: str) -> str | None:
    """Return the dialect of a decoder or encoder; None for shared code."""
    parts = module.removeprefix("_pure.").split(".")
    if parts[0] not in ("dialect", "encode", "fastpath") or len(parts) < 2 or parts[1] not in DIALECTS:
        return None
    return ".".join(parts[1:3]) if parts[1] == "ai_sdk" and len(parts) > 2 and parts[2] in AI_SDK else parts[1]


def between_dialects(graph: Graph) -> list[str]:
    found = []
    for source, targets in sorted(graph.items()):
        for target in sorted(targets):
            one, other = dialect_of(source), dialect_of(target)
            if one and other and one != other and "ai_sdk" not in (one, other):
                found.append(f"{source} uses {target}")
    return found


GRAPHS = pytest.mark.parametrize(
    "graph",
    [
        pytest.param(python_graph(), id="python"),
        pytest.param(rust_graph(CORE), id="rust-core"),
        pytest.param(rust_graph(BINDINGS), id="rust-py"),
    ],
)


@GRAPHS
def test_no_import_cycles(graph: Graph) -> None:
    assert sum(map(len, graph.values())) > 5
    assert cycles(graph) == []


def test_python_layers() -> None:
    assert upward(python_graph(), PACKAGE_LAYERS) == []


def test_rust_layers() -> None:
    graph = rust_graph(CORE)
    folders = {folder for line in RUST_LAYERS for folder in line.split()}
    assert {module.split(".")[0] for module in graph} == folders
    assert upward(graph, RUST_LAYERS) == []


def test_the_pure_backend_has_the_folders_of_the_core() -> None:
    """The pure backend has every folder of the core except `fastpath`, which affects only speed."""
    inside = {name.split(".")[1] for name in python_modules() if name.startswith("_pure.")}
    assert inside == {folder for line in STREAM_LAYERS for folder in line.split()} - {"fastpath"}


@GRAPHS
def test_dialects_do_not_use_each_other(graph: Graph) -> None:
    assert between_dialects(graph) == []


def test_integrations_are_used_only_by_the_command_line() -> None:
    users = {
        source
        for source, targets in python_graph().items()
        if any(target.split(".")[0] == "integrations" for target in targets)
    }
    assert {user for user in users if user.split(".")[0] not in ("integrations", "cli")} == set()


def test_the_command_line_is_used_only_by_its_entry_point() -> None:
    users = {s for s, targets in python_graph().items() if any(t.split(".")[0] == "cli" for t in targets)}
    assert {user for user in users if user.split(".")[0] != "cli"} <= {"__main__"}


def test_the_pure_core_does_no_io() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for module, path in python_modules().items()
        if module.startswith("_pure")
        for name, line in python_imports(path)
        if name.split(".")[0] in IO_PYTHON
    ]
    assert found == []


def test_the_rust_core_does_no_io_and_uses_no_python() -> None:
    found = [
        f"{module}:{code.count(chr(10), 0, hit.start()) + 1}: {hit[0]}"
        for module, path in rust_modules(CORE).items()
        for code in [rust_code(path)]
        for hit in IO_RUST.finditer(code)
    ]
    assert found == []
    manifest = tomllib.loads((CORE.parent / "Cargo.toml").read_text("utf-8"))
    assert set(manifest["dependencies"]) == {"memchr", "serde_json"}
    assert "#![forbid(unsafe_code)]" in (CORE / "lib.rs").read_text("utf-8")


def test_the_bindings_import_only_what_they_may() -> None:
    named = {
        name
        for path in BINDINGS.rglob("*.rs")
        for name in re.findall(r'"(streamweld\.[\w.]+)"', path.read_text("utf-8"))
    }
    assert named <= BINDINGS_MAY_NAME


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent for path in tracked_files() if path.suffix in {".py", ".rs", ".json", ".mjs"})
    assert {str(folder): count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_the_cycle_finder_finds_cycles() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert cycles({"a": {"b"}, "b": set()}) == []


def test_a_path_of_python_is_read_as_a_module() -> None:
    assert layer_of("_pure.dialect.chat.calls", PACKAGE_LAYERS) == layer_of("_pure.assemble", PACKAGE_LAYERS)
    assert dialect_of("_pure.dialect.ai_sdk.parts.tools") == "ai_sdk.parts"
    assert dialect_of("dialect.think_tags") is None
    assert Path(PACKAGE).name == "streamweld"
