"""Import graphs of the Python package and of the Rust crates, read from their sources as text.

An edge is the use of an item that another file defines. Imports under `TYPE_CHECKING` are edges; `mod` and `pub use`
lines and re-exports in an `__init__.py` are not. This module does not import streamweld.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "python" / "streamweld"
CORE, BINDINGS = (REPOSITORY / "rust" / crate / "src" for crate in ("core", "py"))

Graph = dict[str, set[str]]  # module -> modules that it uses; Rust module paths use dots too


def tracked_files() -> list[PurePosixPath]:
    """List the tracked files of the repository. In a source distribution, which has no git history, list the files in
    the source folders.
    """
    done = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode == 0 and done.stdout:
        return [PurePosixPath(name) for name in done.stdout.splitlines()]
    sources = [
        path for folder in ("python", "rust", "tests", "docs", "benches") for path in (REPOSITORY / folder).rglob("*.*")
    ]
    skipped = {"target", "node_modules", "__pycache__"}
    return [PurePosixPath(p.relative_to(REPOSITORY)) for p in sources if p.is_file() and not skipped & set(p.parts)]


def python_modules() -> dict[str, Path]:
    """Return the modules by their name below `streamweld`; the package itself is named `streamweld`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "streamweld"] = path
    return found


def python_imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every dotted name that a file imports, at any depth, with its line."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: use an absolute import"
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
            # The module after `from` is imported first, even if the imported name is a module in that package.
            yield f"{node.module}", node.lineno


def re_exports(path: Path) -> bool:
    """Return True for an `__init__.py` that only re-exports names."""
    kinds = (ast.Import, ast.ImportFrom, ast.Expr, ast.If, ast.Assign, ast.AnnAssign)
    return path.name == "__init__.py" and all(isinstance(n, kinds) for n in ast.parse(path.read_text("utf-8")).body)


def python_graph() -> Graph:
    """Return the edges between the modules of the package, without modules that only re-export."""
    modules = python_modules()
    faces = {name for name, path in modules.items() if re_exports(path)}
    graph: Graph = {name: set() for name in modules}
    for name in modules.keys() - faces:
        for dotted, _ in python_imports(modules[name]):
            if dotted != "streamweld" and not dotted.startswith("streamweld."):
                continue
            target = dotted.removeprefix("streamweld").removeprefix(".")
            while target and target not in modules:
                target = target.rpartition(".")[0]
            if target and target != name and target not in faces:
                graph[name].add(target)
    return graph


def rust_code(path: Path) -> str:
    """Return the source without comments, strings and the tests at its end. Line numbers are preserved."""
    text = path.read_text("utf-8").split("#[cfg(test)]\nmod tests {")[0]
    noise = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'', re.DOTALL)
    return noise.sub(lambda found: "\n" * found[0].count("\n"), text)


def rust_modules(source: Path) -> dict[str, Path]:
    """Return the modules of a crate by their path with dots; the root is `lib`."""
    found = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "mod" else parts)] = path
    return {name: path for name, path in found.items() if "tests" not in name.split(".")}


def _members(group: str) -> Iterator[str]:
    """Expand `a::b, c::{d, e::f}` to `a::b`, `c::d`, `c::e::f`."""
    depth, start = 0, 0
    for at, letter in enumerate(group + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            item, start = group[start:at].strip(), at + 1
            head, brace, tail = item.partition("{")
            if brace:
                yield from (head + inner for inner in _members(tail.rpartition("}")[0]))
            elif item:
                yield item


def rust_graph(source: Path) -> Graph:
    """Return the edges between the modules of a crate. `pub use` lines are not edges."""
    modules = rust_modules(source)
    graph: Graph = {name: set() for name in modules}
    for name, path in modules.items():
        code = re.sub(r"\bpub(\([a-z]+\))?\s+use\s[^;]+;", "", rust_code(path))
        home = [] if name == "lib" else name.split(".")
        for found in re.finditer(r"\b(crate|(?:super::)*super)::((?:\w+::)*)(\{|\*|\w+)", code):
            base = [] if found[1] == "crate" else home[: -found[1].count("super")]
            ends = [found[3]]
            if found[3] == "{":
                depth, at = 1, found.end()
                while depth:
                    depth += (code[at] == "{") - (code[at] == "}")
                    at += 1
                ends = list(_members(code[found.end() : at - 1]))
            for end in ends:
                parts = base + [part for part in (found[2] + end).split("::") if part]
                while parts and ".".join(parts) not in modules:
                    parts.pop()
                target = ".".join(parts) or "lib"
                if target != name:
                    graph[name].add(target)
    return graph


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the import cycles (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        path.append(module)
        for target in sorted(graph.get(module, ())):
            if target not in order:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in path:
                low[module] = min(low[module], order[target])
        if low[module] == order[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return found
