"""`streamweld check`, run in its own process: its output and exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.servers.command import EVIL, in_lines, streamweld
from tests.support.servers.wire import DONE, end, event, text

if TYPE_CHECKING:
    from pathlib import Path

OUTPUT = {"type": "tool-output-available", "toolCallId": "call_1", "output": 1}
UI = [event({"type": "start", "messageId": "m"}), event(OUTPUT), event({"type": "finish"}), DONE]


@pytest.fixture
def checked(tmp_path: Path) -> dict[str, Path]:
    """Files to check: one without findings, one with a finding, one with only a finding of severity info, one in an
    unknown dialect.
    """
    made = {"missing": tmp_path / "missing.sse", "folder": tmp_path}
    bodies = {
        "clean": UI[0] + UI[2] + DONE,
        "finding": b"".join(UI),
        "info": UI[0] + b": x\n\nevent: finish\n" + UI[2] + DONE,
        "unknown": event({"contentBlockStart": {}}),
    }
    for name, body in bodies.items():
        made[name] = tmp_path / f"{name}.sse"
        made[name].write_bytes(body)
    return made


def test_check_as_json(backend: str, checked: dict[str, Path]) -> None:
    done = streamweld(backend, "check", "--json", *[checked[name] for name in ("clean", "finding", "info", "unknown")])
    assert (done.returncode, done.stderr) == (1, "")
    clean, finding, info, unknown = in_lines(done.stdout)
    assert clean == {
        "diagnostics": [],
        "file": str(checked["clean"]),
        "bytes": checked["clean"].stat().st_size,
        "dialect": "ai-sdk-ui",
        "findings": [],
        "violations": [],
        "violations_dropped": 0,
        "error": None,
        "hint": None,
    }
    (violation,) = finding["violations"]
    assert finding["findings"] == [violation["rule"]] == ["ai-sdk-ui.output_unknown"]
    assert (violation["byte_offset"], violation["event_ordinal"]) == (len(UI[0]), 1)
    assert (violation["severity"], violation["source"][:6]) == ("error", "AI SDK")
    assert (info["findings"], [v["rule"] for v in info["violations"]]) == ([], ["ai-sdk-ui.event_line"])
    assert (unknown["findings"], unknown["error"]["seen"]) == (["unknown_dialect"], ["contentBlockStart"])
    piped = streamweld(backend, "check", "--json", "--dialect", "ai-sdk-ui", "-", stdin=b"".join(UI))
    assert in_lines(piped.stdout) == [{**finding, "file": "-"}]


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["clean"], 0),
        (["info"], 0),
        (["clean", "info"], 0),
        (["finding"], 1),
        (["clean", "unknown"], 1),
        (["missing"], 3),
        (["folder", "finding"], 3),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",), ("-v",)])
def test_exit_codes_of_check(checked: dict[str, Path], names: list[str], code: int, options: tuple[str, ...]) -> None:
    done = streamweld("pure", "check", *options, *[checked[name] for name in names])
    assert done.returncode == code
    for name in names:
        assert (str(checked[name]) in done.stderr) == (name in ("missing", "folder"))


def test_an_unknown_stream_is_not_clean_if_its_finding_is_ignored(checked: dict[str, Path]) -> None:
    done = streamweld("pure", "check", "--ignore", "unknown_dialect", checked["unknown"])
    assert (done.returncode, "clean" in done.stdout) == (0, False)
    assert "not checked: the dialect is unknown" in done.stdout
    many = streamweld("pure", "check", "--ignore", "unknown_dialect", checked["unknown"], checked["clean"])
    assert "2 streams, 1 without a finding, 1 not checked (unknown dialect)" in many.stdout
    inspected = streamweld("pure", "inspect", "--ignore", "unknown_dialect", checked["unknown"])
    assert (inspected.returncode, "clean" in inspected.stdout) == (0, False)


ERROR = b'{"error":{"message":"Rate limit reached","type":"rate_limit_error","code":"429"}}'
JOINED = b'data: {"choices":[{"delta":{"content":"a"}}]}' * 2


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (ERROR, "framing.error_only"),
        (b"data: " + ERROR + b"\n\n", "framing.error_only"),
        (b"data: " + ERROR + b"\n\ndata: [DONE]\n\n", "framing.error_only"),
        (b"<html><body>502 Bad Gateway</body></html>", "not_an_event_stream"),
        (b'{"detail":"Not found"}', "unknown_dialect"),
        (JOINED, "line_ends_missing"),
    ],
)
def test_a_body_without_a_response_is_a_finding(tmp_path: Path, backend: str, body: bytes, found: str) -> None:
    file = tmp_path / "error.sse"
    file.write_bytes(body)
    done = streamweld(backend, "check", "--json", file)
    assert (done.returncode, done.stderr) == (1, "")
    (line,) = in_lines(done.stdout)
    assert found in line["findings"]
    ignored = streamweld(backend, "check", "--ignore", found, file)
    assert ignored.returncode == 0


def test_check_for_people(checked: dict[str, Path], tmp_path: Path) -> None:
    shown = streamweld("pure", "check", checked["finding"]).stdout
    for output_text in (
        str(checked["finding"]),
        "ai-sdk-ui",
        "error",
        "output_unknown",
        "call_1",
        "process-ui-message",
    ):
        assert output_text in shown, output_text
    assert "clean: no finding" in streamweld("pure", "check", checked["info"]).stdout
    assert "contentBlockStart" in streamweld("pure", "check", checked["unknown"]).stdout
    many = streamweld("pure", "check", *[checked[name] for name in ("clean", "finding", "info", "unknown")]).stdout
    for output_text in ("4 streams, 2 without a finding", "unknown_dialect", "ai-sdk-ui.event_line", "warning"):
        assert output_text in many, output_text
    assert "clean.sse" not in many
    often = tmp_path / "often.sse"
    often.write_bytes(UI[0] + UI[1] * 120 + UI[2] + DONE)
    shown = streamweld("pure", "check", often).stdout
    assert shown.count(" ai-sdk-ui.output_unknown ") == 3
    assert "and 97 more ai-sdk-ui.output_unknown" in shown
    assert "and 20 more violations, which are not listed" in shown
    assert streamweld("pure", "check", "-v", often).stdout.count(" ai-sdk-ui.output_unknown ") == 100


def test_check_moves_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / f"evil{EVIL.replace('/', '')}.sse"
    file.write_bytes(UI[0] + event({"type": EVIL}) + f"{EVIL}\n\n".encode() + DONE)
    for args in ((file,), (file, file), ("-v", file, file), ("--json", file)):
        done = streamweld("pure", "check", *args)
        assert done.returncode == 1
        assert [char for char in done.stdout if not char.isprintable() and char != "\n"] == []


def test_a_dialect_that_is_not_that_of_the_stream_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "a.sse"
    file.write_bytes(text("Hello") + end("stop"))
    done = streamweld("auto", "check", "--dialect", "anthropic", str(file))
    assert done.returncode == 1
    found = " ".join(done.stdout.split())
    assert "the stream is in a different dialect from the one that the caller specified: chat" in found
