"""`streamweld requests`: its output, written files and exit codes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from click.testing import CliRunner, Result
from streamweld.cli import main
from streamweld.errors import UsageError

from tests.support.servers.command import EVIL, streamweld

if TYPE_CHECKING:
    from pathlib import Path

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "look up", "parameters": {"type": "object", "properties": {}}}}
REQUEST = {"model": "m", "messages": [USER], "max_tokens": 100, "seed": 7, "tools": [TOOL], "tool_choice": "required"}


class Run(Protocol):
    def __call__(self, command: str, request: Any, *args: str) -> Result: ...


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "request.json"


@pytest.fixture
def run(file: Path) -> Run:
    def invoke(command: str, request: Any, *args: str) -> Result:
        file.write_text(json.dumps(request), "utf-8")
        done = CliRunner().invoke(main, ["requests", command, str(file), *args], env={"COLUMNS": "200"})
        assert done.exception is None or isinstance(done.exception, SystemExit | UsageError), done.exception
        return done

    return invoke


def test_convert_writes_the_request_and_reports_the_rest(run: Run, tmp_path: Path) -> None:
    done = run("convert", REQUEST, "--to", "anthropic")
    assert done.exit_code == 0
    payload = json.loads(done.stdout)
    assert (payload["tool_choice"], payload["max_tokens"], payload["messages"]) == ({"type": "any"}, 100, [USER])
    (name,) = [tool["name"] for tool in payload["tools"]]
    assert re.fullmatch(r"look_up[a-zA-Z0-9_-]*", name)
    assert "lost /seed " in done.stderr
    assert "@@ /tools/0 tool_name" in done.stderr
    assert f"tool look up -> {name}" in done.stderr
    written = tmp_path / "written.json"
    done = run("convert", REQUEST, "--to", "anthropic", "-o", str(written))
    assert json.loads(written.read_text("utf-8")) == payload
    assert "lost /seed " in done.stdout


def test_convert_as_json(run: Run) -> None:
    done = run("convert", REQUEST, "--to", "anthropic", "--from", "chat", "--json")
    made = json.loads(done.stdout)
    assert made.keys() == {"payload", "edits", "ids", "losses", "tool_names"}
    assert made["tool_names"] == {"look up": made["payload"]["tools"][0]["name"]}
    assert [loss["path"] for loss in made["losses"]] == ["/seed"]
    assert (done.stderr, made["payload"]["messages"]) == ("", [USER])


def test_convert_takes_a_policy(run: Run) -> None:
    stopped = {**REQUEST, "n": 2}
    assert run("convert", stopped, "--to", "anthropic", "--policy", "vital=report").exit_code == 0
    done = run("convert", stopped, "--to", "anthropic", "--policy", "vital=raise")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "unsupported_option" in done.stderr
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    orphan = {"messages": [USER, {"role": "assistant", "content": None, "tool_calls": [call]}]}
    done = run("convert", orphan, "--to", "anthropic", "--policy", "orphan_call=drop")
    assert "tool_use" not in done.stdout
    assert "tool_use" in run("convert", orphan, "--to", "anthropic").stdout


def test_check_reports_the_rules_that_a_request_breaks(run: Run, file: Path) -> None:
    broken = {"model": "m", "messages": [USER], "seed": 7}
    done = run("check", broken, "--to", "anthropic")
    assert done.exit_code == 1
    assert "/seed" in done.stdout
    reported = json.loads(run("check", broken, "--to", "anthropic", "--json").stdout)
    assert (reported["file"], reported["target"], reported["gateway"][:10]) == (
        *(str(file), "anthropic", "anthropic@"),
    )
    assert {"/seed"} <= {row["path"] for row in reported["violations"]}
    clean = run("check", json.loads(run("convert", REQUEST, "--to", "anthropic").stdout), "--to", "anthropic")
    assert (clean.exit_code, clean.stdout.strip()) == (0, "clean: no violation")


def test_check_fails_on_a_severity(run: Run) -> None:
    warned = {"model": "m", "messages": [USER], "max_tokens": 5, "seed": 7}
    for given, code in (
        ((), 1),
        (("--fail-on", "info"), 1),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "error"), 0),
    ):
        done = run("check", warned, "--to", "anthropic", *given)
        assert (done.exit_code, "option_unknown" in done.stdout) == (code, True), given
    refused = {**warned, "messages": [{"role": "assistant", "content": "Hi "}]}
    assert run("check", refused, "--to", "anthropic", "--fail-on", "error").exit_code == 1


def test_check_names_the_api_of_a_request_for_another_one(run: Run) -> None:
    for target in ("anthropic", "gemini"):  # for Gemini, the messages are in another member
        done = run("check", {**REQUEST, "stream_options": {"include_usage": True}}, "--to", target)
        hint = f"a request for openai-chat: convert it first (streamweld requests convert --to {target})"
        assert hint in done.stderr
    assert run("check", {"messages": [USER], "seed": 7, "max_token": 1}, "--to", "chat").stderr == ""


@pytest.mark.parametrize("command", ["check", "convert"])
@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (REQUEST, ("--to", "openai"), "did you mean chat or responses?"),
        (REQUEST, (), "Missing option '--to'"),
        (REQUEST, ("--to", "chat", "--gateway", "deepseek", "--profile", "x"), "use either --gateway or --profile"),
        (REQUEST, ("--to", "chat", "--gateway", "deep-seek"), "did you mean deepseek?"),
        ([USER], ("--to", "anthropic"), "a mapping"),
        ({"model": "m"}, ("--to", "anthropic"), "messages"),
    ],
)
def test_wrong_usage(run: Run, command: str, given: Any, options: tuple[str, ...], message: str) -> None:
    done = run(command, given, *options)
    assert (done.exit_code != 0, done.stdout) == (True, "")
    assert message in (str(done.exception) if isinstance(done.exception, UsageError) else done.stderr)


def test_exit_codes_of_a_process(file: Path) -> None:
    done = streamweld("auto", "requests", "check", "-", "--to", "anthropic", stdin=json.dumps([USER]).encode())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("streamweld: the request must be a mapping")
    assert "a list of messages is" in done.stderr
    for command, body in (("check", None), ("convert", "{")):
        if body is not None:
            file.write_text(body, "utf-8")
        done = streamweld("auto", "requests", command, file, "--to", "chat")
        assert (done.returncode, done.stdout) == (3, "")
        assert str(file) in done.stderr


def test_nothing_in_a_request_moves_the_terminal(run: Run) -> None:
    evil = {"messages": [{"role": "user", "content": EVIL}], EVIL: EVIL, "tools": [{"name": EVIL}], "stop": EVIL}
    checked = run("check", evil, "--to", "anthropic")
    converted = run("convert", evil, "--to", "anthropic", "--from", "chat")
    for text in (checked.stdout, checked.stderr, converted.stderr):
        assert "\x1b" not in text
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
    assert "lost" in converted.stderr
