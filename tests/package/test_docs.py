"""The README and the docstrings do what they say: every Python block runs, and prints what stands under it."""

from __future__ import annotations

import asyncio
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import streamweld
from streamweld import stream
from streamweld.cli.sample import sample

from tests.integrations.dropin.server import Gateway
from tests.integrations.dropin.streams import answers
from tests.support.places import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

README = (REPOSITORY / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```\n", README, re.MULTILINE | re.DOTALL)
MODULES = [
    module.name
    for module in pkgutil.walk_packages(streamweld.__path__, "streamweld.")
    if module.name not in {"streamweld._native", "streamweld.__main__"}
]


def pieces() -> list[bytes]:
    body = sample()
    return [body[at : at + 1460] for at in range(0, len(body), 1460)]


class Answer:
    """What every HTTP client's response can do."""

    def iter_bytes(self) -> Iterator[bytes]:
        yield from pieces()

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for piece in pieces():
            await asyncio.sleep(0)
            yield piece


@contextmanager
def streaming(*_: Any, **__: Any) -> Iterator[Answer]:
    yield Answer()


@asynccontextmanager
async def astreaming(*_: Any, **__: Any) -> AsyncIterator[Answer]:
    yield Answer()


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    """One that gives its calls no index."""
    with Gateway(answers()) as found:
        yield found.url("chat-b3") + "/v1"


def given(gateway: str) -> dict[str, Any]:
    """What the README's blocks take as there."""
    completions = SimpleNamespace(with_streaming_response=SimpleNamespace(create=streaming))
    return {
        "sw": streamweld,
        "asyncio": asyncio,
        "client": SimpleNamespace(stream=streaming),
        "async_client": SimpleNamespace(stream=astreaming),
        "openai_client": SimpleNamespace(chat=SimpleNamespace(completions=completions)),
        "url": "https://example.org/v1/chat/completions",
        "request": {"model": "m", "messages": []},
        "network": pieces(),
        "sample": sample(),
        "gateway": gateway,
    }


PYTHON = [
    pytest.param(code, BLOCKS[place + 1], id=f"block{place}")
    for place, (language, code) in enumerate(BLOCKS)
    if language == "python"
]


@pytest.mark.parametrize(("code", "following"), PYTHON)
def test_readme(
    backend: str, code: str, following: tuple[str, str], monkeypatch: pytest.MonkeyPatch, gateway: str
) -> None:
    monkeypatch.setattr(stream, "backend", backend)
    assert following[0] == "text", "a block of code is followed by what it prints"
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), given(gateway))
    assert out.getvalue() == following[1]


def test_readme_has_its_examples() -> None:
    assert len(PYTHON) >= 6
    assert README.index("make demo") < README.index("make test") < README.index("```python")


def test_the_demo_prints_what_the_readme_shows(backend: str) -> None:
    shown = README.split("$ make demo\n")[1].split("```")[0]
    env = {"STREAMWELD_BACKEND": backend, "PYTHONUTF8": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-m", "streamweld", "demo"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=env,
        check=True,
    )
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    rest = iter(printed)
    for line in shown.splitlines():
        wanted = line.replace("native", backend)
        if wanted.strip() == "…":
            continue
        pattern = re.escape(wanted).replace("…", ".*")
        assert any(re.fullmatch(pattern, candidate) for candidate in rest), f"{wanted!r} is not printed, or not there"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "backend", backend)
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={}, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_there_are_docstrings_with_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert found >= 5
