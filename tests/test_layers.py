"""The layers hold: arrows point down only, in Python and in Rust. A new module fails here until it has a place below.

Reads sources as text; imports nothing of streamweld.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "streamweld"
CORE, BINDINGS = (ROOT / "rust" / crate / "src" for crate in ("core", "py"))

# From the bottom up. A module imports only from lines below its own, and from its own family (FAMILIES).
PYTHON_LAYERS = (
    "_spec _words _show _source _extension _native _pure",
    "_items errors _pure.numeral",
    "_pure.automaton",
    "_pure.json_door",
    "_json",
    "_arguments usage _sdk_objects",
    "_events",
    "events options",
    "_pure.block _pure.frame _pure.delta _pure.journal _pure.kinds _pure.members",
    "_pure.sse _pure.out _pure.complaint _pure.counts",
    "_pure.notes",
    "_pure.ai_sdk_part",
    "_pure.ai_sdk_block",
    "_pure.assemble*",
    "_pure.dialect",
    "_pure.dialect.think",
    "_pure.dialect.*",
    "_pure.ladder _pure.decoding _pure.behind_error",
    "_pure.stage _pure.array_body",
    "_pure.ending",
    "_pure.parser",
    "_pure.encode.writer _pure.encode.mint _pure.encode.losses _pure.encode.usage _pure.encode.finish",
    "_pure.encode.told _pure.encode.same _pure.encode.citations _pure.encode.passed",
    "_pure.encode.job",
    "_pure.encode.blocks _pure.encode.custody",
    "_pure.encode.direct",
    "_pure.encode.sequential",
    "_pure.encode.ai_sdk",
    "_pure.encode.* _pure.encode",
    "_pure.convert _pure.repair",
    "_backend",
    "sse response",
    "check.violation",
    "check.framing check.lifecycle",
    "check.responses_items",
    "check.*",
    "check",
    "stream _step _progress",
    "iterators _writer",
    "convert",
    "history.rules history.profiles history.edits history.model history.ids history.open_calls",
    "history.approvals history.chat_reasoning history.dialects history.models history.policy history.provider_metadata",
    "history.survey",
    "history.context",
    "history.payload",
    "history.replay*",
    "history.read*",
    "history.passes* history.write*",
    "history.resume",
    "history.check*",
    "history.*",
    "history",
    "requests.policy requests.tables requests.schemas",
    "requests.work",
    "requests.names requests.spelling",
    "requests.tools",
    "requests.options requests.tool_choice requests.answer_format requests.thinking requests.constraints",
    "requests.same",
    "requests.*",
    "requests",
    "streamweld",
    "integrations._*",
    "integrations.httpx integrations.aiohttp integrations.otel",
    "integrations.*",
    "cli.* integrations",
    "cli",
    "__main__",
)
RUST_CORE_LAYERS = (
    "spec few rare",
    "limits policy json.number json.token json.escape json.verdict json.amount",
    "json.text json.automaton",
    "json.value json.members json.repeats",
    "json.scan",
    "json",
    "config fault delta complaint leftovers texts block",
    "event",
    "counts",
    "sse.*",
    "sse out array_body",
    "arrival lost",
    "assemble.*",
    "assemble",
    "wire",
    "envelope.* envelope notes decode",
    "ai_sdk_part ai_sdk_piece",
    "ai_sdk_block",
    "dialect.think",
    "dialect.*",
    "dialect",
    "ladder",
    "waiting behind_error",
    "stage",
    "decoding detection",
    "gate ending",
    "parser",
    "encode.writer encode.mint encode.losses encode.usage encode.finish encode.citations encode.passed",
    "encode.compact",
    "encode.same encode.job encode.kept encode.ai_sdk_chunk",
    "encode.block* encode.custody",
    "encode.direct",
    "encode.order",
    "encode.sequential",
    "encode.ai_sdk",
    "encode.*",
    "encode",
    "repair.pieces repair.read repair.said repair.verdict",
    "convert repair.hand repair.held",
    "repair repair.ending repair.part",
    "lib",
)
RUST_BINDINGS_LAYERS = (
    "events errors shelf",
    "words",
    "config input delta objects",
    "sink",
    "parser sse convert",
    "repair",
    "lib",
)
DIALECTS = ("chat", "responses", "anthropic", "gemini", "ai_sdk_parts", "ai_sdk_ui")
# Modules of one family are one thing cut in parts, and may import each other. One family for each dialect.
FAMILIES = (
    *("_pure.assemble*", "assemble.*", "envelope*", "json.*", "sse.*", "repair*", "encode.block*"),
    *(
        "history.check*",
        "history.read*",
        "history.replay*",
        "history.passes*",
        "history.write*",
        "cli.*",
        "integrations.proxy*",
        "integrations._*",
    ),
    *(f"{place}.{name}*" for place in ("_pure.dialect", "_pure.encode", "dialect", "encode") for name in DIALECTS),
)
# Beside them: a splitter of text that any decoder may put before the assembler; what encoders write with.
COMMON = {"think", "writer", "compact", "mint", "losses", "usage", "finish", "told", "same", "citations", "job"}
COMMON |= {"passed", "direct", "order", "kept", "block", "blocks", "blocks_calls", "custody", "sequential"}
COMMON |= {"ai_sdk", "ai_sdk_chunk"}
# What the core of a stream may not know: sans-I/O in both languages.
IO_PYTHON = {
    *("asyncio", "datetime", "logging", "multiprocessing", "os", "pathlib", "random", "select", "selectors", "signal"),
    *("socket", "ssl", "subprocess", "sys", "threading", "time", "httpx", "anyio"),
}
IO_RUST = re.compile(r"\bstd::(net|time|thread|env|fs|io|process)\b|\bprintln!|\beprintln!|\bpyo3\b")
# The Python that the bindings reach for by name; more would be a second way into the package.
BINDINGS_MAY_NAME = {f"streamweld.{name}" for name in ("events", "errors", "_native", "_arguments", "_json", "usage")}


@dataclass(frozen=True)
class Arrow:
    source: str
    target: str
    line: int
    types_only: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


def place(module: str, layers: tuple[str, ...]) -> int | None:
    """The layer of a module: the first exact name, else the first pattern that fits."""
    named = [n for n, line in enumerate(layers) if module in line.split()]
    fitting = [n for n, line in enumerate(layers) if any(fnmatchcase(module, pattern) for pattern in line.split())]
    return (named + fitting)[0] if named or fitting else None


def of_one_family(one: str, other: str) -> bool:
    return any(fnmatchcase(one, family) and fnmatchcase(other, family) for family in FAMILIES)


def none_of(found: list[str]) -> None:
    """All of them in the failure, not the first."""
    assert not found, "\n" + "\n".join(found)


def upward(arrows: list[Arrow], layers: tuple[str, ...]) -> list[str]:
    found = []
    for arrow in arrows:
        source, target = place(arrow.source, layers), place(arrow.target, layers)
        assert source is not None, f"{arrow.source} has no place in the table of layers"
        assert target is not None, f"{arrow}, which has no place in the table of layers"
        if target >= source and not of_one_family(arrow.source, arrow.target) and not arrow.types_only:
            found.append(str(arrow))
    return found


def family_of_dialect(module: str) -> str | None:
    """`_pure.dialect.chat_calls` and `dialect.chat.read` are both the dialect `chat`."""
    parts = module.split(".")
    for folder in ("dialect", "encode"):
        if folder in parts[:-1]:
            inside = parts[parts.index(folder) + 1]
            # Two dialects have names of several words; they know each other as little as any other two.
            return next((name for name in DIALECTS if inside.startswith(name)), inside)
    return None


def between_dialects(arrows: list[Arrow]) -> list[str]:
    # What belongs to no dialect any of them may use.
    both = [(arrow, family_of_dialect(arrow.source), family_of_dialect(arrow.target)) for arrow in arrows]
    return [str(arrow) for arrow, one, other in both if one and other and one != other and other not in COMMON]


# --- Python


def python_files() -> dict[str, Path]:
    """Module names below `streamweld`, which is itself called by that name."""
    modules = {}
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "streamweld"] = path
    return modules


def nodes(tree: ast.AST, types_only: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import, at any depth, and whether it stands under `if TYPE_CHECKING`, where it is never executed."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, types_only
        elif isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for statement in child.body:
                yield from nodes(ast.Module([statement], []), True)
            for statement in child.orelse:
                yield from nodes(ast.Module([statement], []), types_only)
        else:
            yield from nodes(child, types_only)


def inner_name(dotted: str, modules: dict[str, Path]) -> str | None:
    """`streamweld.events.TextDelta` -> `events`; None for what is not streamweld's."""
    if dotted != "streamweld" and not dotted.startswith("streamweld."):
        return None
    rest = dotted.removeprefix("streamweld").removeprefix(".")
    while rest and rest not in modules and rest != "_native":
        rest = rest.rpartition(".")[0]
    return rest or "streamweld"


def python_arrows(module: str, path: Path, modules: dict[str, Path]) -> list[Arrow]:
    arrows = []
    stub = path.suffix == ".pyi"
    for node, types_only in nodes(ast.parse(path.read_text("utf-8")), types_only=stub):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: a relative import hides its arrow"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = [alias.name for alias in node.names]
        targets = {inner_name(name, modules) for name in names} - {None, module}
        arrows += [Arrow(module, target, node.lineno, types_only) for target in sorted(filter(None, targets))]
    return arrows


def all_python_arrows() -> list[Arrow]:
    modules = python_files()
    return [arrow for module, path in modules.items() for arrow in python_arrows(module, path, modules)]


def test_python_arrows_point_down() -> None:
    modules = python_files()
    assert len(modules) > 10
    none_of([name for name in modules if place(name, PYTHON_LAYERS) is None])
    none_of(upward(all_python_arrows(), PYTHON_LAYERS))


def test_python_dialects_do_not_know_each_other() -> None:
    none_of(between_dialects(all_python_arrows()))


def test_every_module_of_a_dialect_is_one_of_the_six() -> None:
    inside = {family_of_dialect(name) for name in python_files() if name.startswith("_pure.dialect.")}
    inside |= {family_of_dialect(name) for name in rust_files(CORE) if name.startswith("dialect.")}
    assert inside <= {*DIALECTS, "think"}
    assert family_of_dialect("_pure.dialect.ai_sdk_ui_tools") == family_of_dialect("dialect.ai_sdk_ui.tools")
    assert family_of_dialect("_pure.dialect.ai_sdk_ui") != family_of_dialect("_pure.dialect.ai_sdk_parts")


def test_integrations_are_imported_by_nobody_but_the_command_that_starts_the_proxy() -> None:
    users = [a for a in all_python_arrows() if a.target.split(".")[0] == "integrations"]
    none_of([str(user) for user in users if not user.source.startswith(("integrations", "cli.proxy"))])


def test_the_command_line_is_imported_by_its_entry_only() -> None:
    users = {a.source for a in all_python_arrows() if a.target.split(".")[0] == "cli"}
    assert {user for user in users if user.split(".")[0] != "cli"} <= {"__main__"}


def test_the_pure_core_does_no_input_or_output() -> None:
    found = []
    for module, path in python_files().items():
        if not module.startswith("_pure"):
            continue
        for node, _ in nodes(ast.parse(path.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found += [f"{module}:{node.lineno} imports {name}" for name in names if name.split(".")[0] in IO_PYTHON]
    none_of(found)


# --- Rust


def rust_code(path: Path) -> str:
    """The source without comments, strings and the tests at its end: what is left holds the arrows. Lines stay."""
    text = path.read_text("utf-8").split("#[cfg(test)]\nmod tests {")[0]
    noise = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'', re.DOTALL)
    return noise.sub(lambda found: "\n" * found[0].count("\n"), text)


def rust_files(source: Path) -> dict[str, Path]:
    modules = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "mod" else parts)] = path
    return {name: path for name, path in modules.items() if "tests" not in name.split(".")}


def listed(group: str) -> Iterator[str]:
    """`a::b, c::{d, e::f}` -> `a::b`, `c::d`, `c::e::f`."""
    depth, start = 0, 0
    items = []
    for at, letter in enumerate(group + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            items.append(group[start:at].strip())
            start = at + 1
    for item in filter(None, items):
        head, brace, tail = item.partition("{")
        if brace:
            yield from (head + inner for inner in listed(tail.rpartition("}")[0]))
        else:
            yield item


def rust_arrows(module: str, path: Path, modules: dict[str, Path]) -> list[Arrow]:
    code = rust_code(path)
    home = [] if module == "lib" else module.split(".")
    arrows = set()
    for found in re.finditer(r"\b(crate|(?:super::)*super)::((?:\w+::)*)(\{|\*|\w+)", code):
        base = [] if found[1] == "crate" else home[: -found[1].count("super")]
        ends = [found[3]]
        if found[3] == "{":
            depth = 1
            at = found.end()
            while depth:
                depth += (code[at] == "{") - (code[at] == "}")
                at += 1
            ends = list(listed(code[found.end() : at - 1]))
        for end in ends:
            parts = base + [part for part in (found[2] + end).split("::") if part]
            while parts and ".".join(parts) not in modules:
                parts.pop()
            target = ".".join(parts) or "lib"
            # A part may use what its parent holds for all parts (`super::MAX`): the parent is then no layer above.
            if target != module and not module.startswith(target + "."):
                arrows.add(Arrow(module, target, code.count("\n", 0, found.start()) + 1))
    return sorted(arrows, key=lambda arrow: arrow.line)


RUST = pytest.mark.parametrize(
    ("source", "layers"),
    [
        pytest.param(CORE, RUST_CORE_LAYERS, id="core"),
        pytest.param(BINDINGS, RUST_BINDINGS_LAYERS, id="py"),
    ],
)


@RUST
def test_rust_arrows_point_down(source: Path, layers: tuple[str, ...]) -> None:
    modules = rust_files(source)
    assert "lib" in modules
    none_of([name for name in modules if place(name, layers) is None])
    arrows = [arrow for module, path in modules.items() for arrow in rust_arrows(module, path, modules)]
    none_of(upward(arrows, layers))
    none_of(between_dialects(arrows))


def test_the_rust_core_does_no_input_or_output_and_knows_no_python() -> None:
    found = [
        f"{module}:{code.count(chr(10), 0, hit.start()) + 1}: {hit[0]}"
        for module, path in rust_files(CORE).items()
        for code in [rust_code(path)]
        for hit in IO_RUST.finditer(code)
    ]
    none_of(found)
    manifest = tomllib.loads((CORE.parent / "Cargo.toml").read_text("utf-8"))
    assert set(manifest["dependencies"]) == {"memchr", "serde_json"}
    assert "#![forbid(unsafe_code)]" in (CORE / "lib.rs").read_text("utf-8")


def test_the_bindings_name_only_what_they_may_of_the_package() -> None:
    named = {
        name
        for path in BINDINGS.rglob("*.rs")
        for name in re.findall(r'"(streamweld\.[\w.]+)"', path.read_text("utf-8"))
    }
    assert named <= BINDINGS_MAY_NAME


# --- The checks themselves


def test_an_arrow_that_points_up_is_found(tmp_path: Path) -> None:
    low = tmp_path / "low.py"
    low.write_text("if TYPE_CHECKING:\n    import streamweld.cli.x\ndef f():\n    from streamweld import high\n")
    modules = {"low": low, "high": low, "cli.x": low}
    arrows = python_arrows("low", low, modules)
    assert [str(arrow) for arrow in arrows] == ["low:2 imports cli.x", "low:4 imports high"]
    assert upward(arrows, ("low", "high", "cli.*")) == ["low:4 imports high"]
    with pytest.raises(AssertionError, match="no place"):
        upward(arrows, ("low", "high"))


def test_an_arrow_in_rust_is_found(tmp_path: Path) -> None:
    low = tmp_path / "low.rs"
    low.write_text(
        "// use crate::no;\n"
        'use crate::{a::{self, B}, c::d::E};\nuse super::f::G;\nfn x() { crate::h::i("crate::no") }\n'
        "#[cfg(test)]\nmod tests {\n    use crate::no;\n}\n"
    )
    modules = dict.fromkeys(["dialect.low", "a", "c", "c.d", "dialect.f", "h", "no", "dialect"], low)
    found = [str(arrow) for arrow in rust_arrows("dialect.low", low, modules)]
    assert sorted(found) == [
        *("dialect.low:2 imports a", "dialect.low:2 imports c.d"),
        *("dialect.low:3 imports dialect.f", "dialect.low:4 imports h"),
    ]
    assert between_dialects(rust_arrows("dialect.low", low, modules)) == ["dialect.low:3 imports dialect.f"]
