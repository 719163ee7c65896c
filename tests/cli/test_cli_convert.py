"""`streamweld convert`, run in its own process: its output, where it is written, and its exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import streamweld as sw

from tests.support.servers.command import EVIL, streamweld
from tests.support.servers.wire import call, end, text

if TYPE_CHECKING:
    from pathlib import Path

BODY = text("Hello") + end("stop")
REPAIRED = call(-1, "a", "f", "{}") + end("tool_calls")  # index_unusable, a warning
CUT = text("Hel") + call(0, "call_1", "f", '{"a":')


@pytest.mark.parametrize("target", ["responses", "gemini", "anthropic"])
def test_what_it_writes_is_what_the_library_writes(backend: str, tmp_path: Path, target: str) -> None:
    file = tmp_path / "body.sse"
    file.write_bytes(BODY)
    done = streamweld(backend, "convert", file, "--to", target, "--seed", "s")
    assert done.stdout.encode() == sw.convert(BODY, target=target, seed="s")  # type: ignore[arg-type]
    assert done.returncode == 0
    piped = streamweld(backend, "convert", "-", "--to", target, "--from", "chat", "--seed", "s", stdin=BODY)
    assert (piped.stdout, piped.returncode) == (done.stdout, 0)


def test_a_fault_is_told_beside_the_honest_ending(backend: str) -> None:
    done = streamweld(backend, "convert", "-", "--to", "responses", "--from", "chat", stdin=CUT)
    assert done.returncode == 1
    assert "event: response.incomplete\n" in done.stdout
    assert "[truncated at byte" in done.stderr


def test_what_is_told_moves_no_terminal(backend: str) -> None:
    done = streamweld(backend, "convert", "-", "--to", "gemini", stdin=text("Hi") + end(EVIL))
    assert done.stdout
    assert not any(ord(letter) < 32 and letter != "\n" for letter in done.stderr)


def test_a_stream_of_the_target_is_repaired(backend: str) -> None:
    for target in ("chat", "same"):
        same = streamweld(backend, "convert", "-", "--to", target, stdin=BODY)
        assert (same.returncode, same.stdout, same.stderr) == (0, BODY.decode(), "")
    again = BODY.decode().replace("data: [DONE]", "data: null\n\ndata: [DONE]")
    repaired = streamweld(backend, "convert", "-", "--to", "same", stdin=again.encode())
    assert (repaired.returncode, repaired.stdout) == (0, BODY.decode())
    assert "[null_payload at" in repaired.stderr


@pytest.mark.parametrize(
    ("body", "options", "code"),
    [
        (REPAIRED, (), 1),
        (REPAIRED, ("--fail-on", "error"), 0),
        (REPAIRED, ("--exit-zero",), 0),
        (BODY, ("--fail-on", "info"), 0),
        (CUT, ("--fail-on", "error"), 1),
        (CUT, ("--exit-zero",), 0),
    ],
)
def test_which_findings_fail(backend: str, body: bytes, options: tuple[str, ...], code: int) -> None:
    done = streamweld(backend, "convert", "-", "--to", "same", *options, stdin=body)
    assert done.returncode == code, done.stderr


def test_usage(backend: str, tmp_path: Path) -> None:
    assert streamweld(backend, "convert", "-", stdin=BODY).returncode == 2
    assert streamweld(backend, "convert", "-", "--to", "gemini", "--seed", "a b", stdin=BODY).returncode == 2
    assert streamweld(backend, "convert", tmp_path / "none.sse", "--to", "gemini").returncode == 3
