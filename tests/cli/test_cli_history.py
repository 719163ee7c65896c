"""`streamweld history`, run in its own process: its output, written files and exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.cli.test_cli import EVIL, streamweld

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

USER = {"role": "user", "content": "hi"}
CALL = {"id": "c.1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ORPHAN = [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
BROKEN = [{"role": "assistant", "content": "Hi "}]
REPLAYED = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {"type": "message", "role": "assistant", "content": "Yes."},
    {"type": "reasoning", "id": "rs_1", "summary": []},
]


def run(command: str, messages: Any, *args: str) -> subprocess.CompletedProcess[str]:
    return streamweld("auto", "history", command, "-", *args, stdin=json.dumps(messages).encode())


def test_check() -> None:
    done = run("check", BROKEN, "--target", "anthropic")
    assert done.returncode == 1
    assert "first_role" in done.stdout
    assert "/0/content" in done.stdout
    clean = run("check", [USER], "--target", "anthropic")
    assert (clean.returncode, clean.stdout.strip()) == (0, "clean: no violation")


def test_check_as_json(tmp_path: Path) -> None:
    file = tmp_path / "history.json"
    file.write_text(json.dumps({"messages": BROKEN}), "utf-8")
    done = streamweld("auto", "history", "check", str(file), "--target", "anthropic", "--json")
    reported = json.loads(done.stdout)
    assert (done.returncode, reported["file"], reported["target"]) == (1, str(file), "anthropic")
    assert reported["gateway"].startswith("anthropic@")
    assert [(row["rule"], row["path"]) for row in reported["violations"]] == [
        ("first_role", "/messages/0"),
        ("trailing_space", "/messages/0/content"),
    ]


def test_check_with_a_gateway_and_with_a_profile(tmp_path: Path) -> None:
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    items = [{"type": "message", "role": "user", "content": "hi"}, item]
    done = run("check", items, "--target", "responses", "--gateway", "vercel-ai-gateway@2026-01-29", "--json")
    assert [row["rule"] for row in json.loads(done.stdout)["violations"]] == ["call_refused"]
    profile = tmp_path / "mine.json"
    profile.write_text(json.dumps({"name": "mine", "like": "anthropic", "constraints": {"first_role": None}}), "utf-8")
    done = run("check", [{"role": "assistant", "content": "Hi"}], "--target", "anthropic", "--profile", str(profile))
    assert done.returncode == 0
    done = run("check", [], "--target", "anthropic", "--profile", str(profile), "--gateway", "anthropic")
    assert (done.returncode, done.stdout) == (2, "")


def test_check_fails_on_a_severity() -> None:
    warned = [USER, USER]
    target = ("--target", "anthropic")
    found = json.loads(run("check", warned, *target, "--json").stdout)["violations"]
    assert [(row["rule"], row["severity"]) for row in found] == [("roles_alternate", "warning")]
    for given, code in (
        ((), 1),
        (("--fail-on", "info"), 1),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "error"), 0),
    ):
        done = run("check", warned, *target, *given)
        assert (done.returncode, "roles_alternate" in done.stdout) == (code, True), given
    assert run("check", BROKEN, "--target", "anthropic", "--fail-on", "error").returncode == 1
    assert run("check", BROKEN, "--target", "anthropic", "--fail-on", "fatal").returncode == 2


def test_convert_shows_what_it_changed() -> None:
    done = run("convert", ORPHAN, "--target", "anthropic")
    assert done.returncode == 0
    assert "1/tool_calls/0 call_unanswered" in done.stderr
    assert "id c.1 -> " in done.stderr
    assert "edits" in done.stderr
    assert [message["role"] for message in json.loads(done.stdout)["messages"]] == ["user", "assistant", "user"]


def test_check_names_the_format_of_a_history_for_another_api() -> None:
    done = run("check", ORPHAN, "--to", "anthropic")
    assert done.returncode == 1
    reported = "this looks like a history for openai-chat: convert it first (streamweld history convert --to anthropic)"
    assert reported in done.stderr
    own = run("check", BROKEN, "--to", "anthropic")
    assert (own.returncode, own.stderr) == (1, "")
    assert run("check", ORPHAN, "--to", "chat").stderr == ""


def test_convert_writes_the_payload_where_it_is_asked_to(tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    done = run("convert", ORPHAN, "--target", "anthropic", "-o", str(file))
    payload = json.loads(file.read_text("utf-8"))
    assert [message["role"] for message in payload["messages"]] == ["user", "assistant", "user"]
    done = run("convert", ORPHAN, "--target", "anthropic", "-o", "-")
    assert json.loads(done.stdout) == payload
    assert "1/tool_calls/0 call_unanswered" in done.stderr
    checked = run("check", payload, "--target", "anthropic")
    assert checked.returncode == 0
    done = run("convert", ORPHAN, "--target", "anthropic", "--json")
    reported = json.loads(done.stdout)
    assert reported["payload"] == payload
    assert reported["ids"][0][0] == "c.1"
    assert reported["edits"]


def test_convert_takes_a_policy() -> None:
    done = run("convert", ORPHAN, "--target", "anthropic", "--policy", "orphan_call=drop", "--json")
    assert "tool_use" not in json.dumps(json.loads(done.stdout)["payload"])
    for wrong in ("orphan_call=keep", "orphans=drop", "orphan_call"):
        done = run("convert", ORPHAN, "--target", "anthropic", "--policy", wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("streamweld: ")


def test_convert_says_what_cannot_be_mended() -> None:
    done = run("convert", [], "--source", "openai-chat", "--target", "anthropic")
    assert (done.returncode, done.stdout) == (1, "")
    assert "too_few" in done.stderr


def test_dedupe() -> None:
    done = run("dedupe", REPLAYED)
    assert done.returncode == 0
    assert "@@ /2 item_repeated" in done.stderr
    assert "1 edit\n" in done.stderr
    assert json.loads(done.stdout) == REPLAYED[:2]
    assert json.loads(run("dedupe", REPLAYED, "-o", "-").stdout) == REPLAYED[:2]
    reported = json.loads(run("dedupe", {"input": REPLAYED}, "--items", "rs,fc,msg", "--json").stdout)
    assert reported["messages"] == {"input": REPLAYED[:2]}
    assert [edit["path"] for edit in reported["edits"]] == ["/input/2"]
    assert run("dedupe", REPLAYED, "--items", "all").returncode == 2


def test_what_cannot_be_read() -> None:
    for command in (["check", "--target", "anthropic"], ["dedupe"]):
        done = streamweld("auto", "history", command[0], "/no/such.json", *command[1:])
        assert (done.returncode, done.stdout) == (3, "")
        done = streamweld("auto", "history", command[0], "-", *command[1:], stdin=b"{")
        assert (done.returncode, done.stdout) == (3, "")
        assert "not JSON" in done.stderr
    assert run("check", 5, "--target", "anthropic").returncode == 2
    assert run("check", [], "--target", "smoke").returncode == 2
    assert run("check", []).returncode == 2


def test_nothing_in_a_history_moves_the_terminal() -> None:
    evil = [{"role": "assistant", "content": EVIL, "tool_calls": [CALL | {"id": EVIL}]}, {"role": EVIL}]
    done = run("check", evil, "--target", "openai-chat")
    for text in (done.stdout, done.stderr):
        assert "\x1b" not in text
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
    messages = [USER, {"role": "assistant", "content": "", "tool_calls": [CALL | {"id": EVIL}]}]
    done = run("convert", messages, "--target", "anthropic")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
