"""The runtime environment of the documentation's examples: files, a gateway on the loopback interface, and environment
variables.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from typing import TYPE_CHECKING

import pytest
from streamweld.cli.sample import recordings, sample

from tests.docs.pages import DOCS
from tests.integrations.dropin.server import Answer, Gateway
from tests.integrations.dropin.streams import answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHAT = "chat-b3"  # parallel calls without an index
MESSAGES = "messages-d"  # a call's block repeated at a new index
RECORDING = "recording"  # the bundled stream, in reads of a TCP segment

HISTORY = [
    {"role": "user", "content": "What did they find?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "functions.search:0", "type": "function", "function": {"name": "search", "arguments": '{"q": "x'}}
        ],
    },
    {"role": "user", "content": "What did they find?"},
]

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 100, "seed": 7}


def pieces() -> list[bytes]:
    body = sample()
    return [body[at : at + 1460] for at in range(0, len(body), 1460)]


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    """Serve every stream of `vectors/dropin`, and the recording, on the loopback interface."""
    with Gateway(answers() | {RECORDING: Answer(pieces())}) as found:
        yield found


def prepare(folder: Path, gateway: Gateway, backend: str) -> dict[str, str]:
    """Write the files that the examples read into `folder`, and return the environment variables for the examples."""
    (folder / "sample.sse").write_bytes(sample())
    (folder / "recordings").mkdir()
    for name, recorded in recordings().items():
        (folder / "recordings" / name).write_bytes(recorded)
    (folder / "history.json").write_text(json.dumps(HISTORY), "utf-8")
    (folder / "request.json").write_text(json.dumps(REQUEST), "utf-8")
    shutil.copy(DOCS / "proxy" / "proxy.toml", folder / "proxy.toml")
    commands = folder / "bin"
    commands.mkdir()
    command = commands / "streamweld"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m streamweld "$@"\n', "utf-8")
    command.chmod(command.stat().st_mode | stat.S_IEXEC)
    return {
        "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', '')}",
        "STREAMWELD_BACKEND": backend,
        "PYTHONUTF8": "1",
        "COLUMNS": "120",
        **addresses(gateway, None),
    }


def addresses(gateway: Gateway, name: str | None) -> dict[str, str]:
    """Return the environment variables that the official clients read."""
    return {
        "OPENAI_BASE_URL": gateway.url(name or CHAT) + "/v1",
        "OPENAI_API_KEY": "key",
        "ANTHROPIC_BASE_URL": gateway.url(name or MESSAGES),
        "ANTHROPIC_API_KEY": "key",
    }
