"""Every code block of README and `docs/` runs, and its output is that in the block after it.

A page runs from top to bottom in one namespace, in its own folder. Commands run in a shell. Commands that install or
build, or that do not end, are only checked: the extra, the target and the options must exist.
"""

from __future__ import annotations

import gc
import json
import re
import shlex
import subprocess
import tomllib
import warnings
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import click
import pytest
from streamweld import stream
from streamweld.cli import main

from tests.docs.pages import ROOT, Block, blocks, matches, written
from tests.docs.session import addresses, gateway, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integrations.dropin.server import Gateway

__all__ = ["gateway"]

PAGES = [pytest.param(path, id=path.relative_to(ROOT).as_posix()) for path in written()]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


@pytest.fixture
def namespace() -> Iterator[dict[str, Any]]:
    """The namespace of one page. Its examples leave clients open, as short scripts do; their sockets are closed
    here."""
    names: dict[str, Any] = {"__name__": "__main__"}
    yield names
    names.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("path", PAGES)
def test_the_blocks_of_a_page_run(
    path: Path,
    backend: str,
    gateway: Gateway,
    namespace: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "backend", backend)
    monkeypatch.chdir(tmp_path)
    for name, value in prepare(tmp_path, gateway, backend).items():
        monkeypatch.setenv(name, value)
    for block in blocks(path.read_text("utf-8")):
        place = f"{path.name}:{block.line}"
        for name, value in addresses(gateway, block.gateway).items():
            monkeypatch.setenv(name, value)
        match block.language:
            case "python":
                _runs(block, namespace, place)
            case "console":
                _commands(block, place, backend)
            case "json":
                json.loads(block.code)
            case "toml":
                tomllib.loads(block.code)
            case "text":
                pass
            case other:
                pytest.fail(f"{place}: a block of {other!r}, which no test runs")


def _runs(block: Block, namespace: dict[str, Any], place: str) -> None:
    out = StringIO()
    with redirect_stdout(out):
        exec(compile("\n" * block.line + block.code, place, "exec", dont_inherit=True), namespace)
    expected = block.expected or ""
    assert matches(expected, out.getvalue()), f"{place} printed\n{out.getvalue()}\nand not\n{expected}"


def _commands(block: Block, place: str, backend: str) -> None:
    joined = block.code.replace("\\\n", " ")
    for entry in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        line, _, shown = entry.partition("\n")
        if _is_checked_alone(line, place):
            continue
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode in (0, 1), f"{place}: {line}: {done.stdout}{done.stderr}"
        if shown.strip():
            expected = shown.replace("backend     native", f"backend     {backend}")
            # The output of a command may continue after the part that the page shows.
            assert matches(expected.rstrip() + "\n…", done.stdout), (
                f"{place}: {line} printed\n{done.stdout}\nand not\n{expected}"
            )


def _is_checked_alone(line: str, place: str) -> bool:
    words = shlex.split(line, comments=True)
    environment: dict[str, str] = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    match words:
        case ["pip", "install", *what]:
            extras = {name for word in what for name in re.findall(r"[\w-]+", "".join(re.findall(r"\[(.*)\]", word)))}
            assert extras <= set(PROJECT["project"]["optional-dependencies"]), f"{place}: {line}"
        case ["make", *targets]:
            names = [target for target in targets if "=" not in target]
            for target in names:
                assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), f"{place}: {line}"
        case ["uv", "run", "streamweld" | "pytest", *_]:
            pass
        case ["curl" | "git" | "docker" | "systemctl" | "journalctl", *_]:
            pass
        case ["opentelemetry-instrument", "streamweld", "proxy", *options] | ["streamweld", "proxy", *options]:
            proxy = main.get_command(click.Context(main), "proxy")
            assert proxy is not None
            with pytest.MonkeyPatch.context() as patch:
                for name, value in environment.items():
                    patch.setenv(name, value)
                proxy.make_context("streamweld proxy", list(options))
        case _:
            return False
    return True


def test_pages_are_found() -> None:
    assert len(PAGES) > 15
    assert sum(len(blocks(page.values[0].read_text("utf-8"))) for page in PAGES) > 60  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pattern", "output", "same"),
    [
        ("a\n…\nc", "a\nb\nb\nc\n", True),
        ("a\n…\nc", "a\nc\n", True),
        ("a …", "a b\n", True),
        ("a", "a\nb\n", False),
        ("a\n…\nc", "a\nb\n", False),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_shown_output_is_compared(pattern: str, output: str, same: bool) -> None:
    assert matches(pattern, output) is same
