"""The command line, run in its own process: its output and exit codes."""

from __future__ import annotations

import importlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
import streamweld as sw
from streamweld._messages import rows_hint
from streamweld._spec import CODES
from streamweld.cli.sample import ARGUMENTS, CALL_ID, DELTAS, NAME, TEXT, sample

from tests.support.servers.command import EVIL, in_lines, streamweld
from tests.support.servers.wire import DONE, call, chunk, end, event, text

CLEAN = text("Hello") + end("stop")
FINDING = text("Hello") + call(-2, "a", "f", "{}") + end()
CUT = text("Hel") + call(0, "call_1", "f", '{"a":')


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made = {}
    for name, body in {"clean": CLEAN, "finding": FINDING, "cut": CUT}.items():
        made[name] = tmp_path / f"{name}.sse"
        made[name].write_bytes(body)
    made["missing"] = tmp_path / "missing.sse"
    made["folder"] = tmp_path
    return made


# demo


def test_the_bundled_stream_is_what_it_claims_to_be() -> None:
    lines = sample().split(b"\n")
    payloads = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    deltas = [d for p in payloads for c in p["choices"] for d in c["delta"].get("tool_calls", ())]
    assert len(deltas) == DELTAS == 231
    assert {delta["id"] for delta in deltas} == {CALL_ID}
    assert [delta["function"]["name"] for delta in deltas] == [NAME, *[""] * 230]
    assert any(line.startswith(b":") for line in lines)
    assert lines[-3:] == [b"data: [DONE]", b"", b""]


def test_demo(backend: str) -> None:
    done = streamweld(backend, "demo")
    assert done.returncode == 0
    for reply_text in (
        "231 tool calls, 230 of them without a name",
        "1 tool call, 1 to run",
        f"{NAME}  id {CALL_ID}  complete",
        "language: python",
        "def primes(limit):",
        "args_replay_dropped",
        CODES["finish_contradicts"].text.rstrip("."),
        f"backend     {backend}, ",
        "events per second",
    ):
        assert reply_text in done.stdout, reply_text
    assert "\x1b" not in done.stdout


def test_demo_as_json(backend: str) -> None:
    (line,) = in_lines(streamweld(backend, "demo", "--json").stdout)
    assert (line["backend"], line["naive_calls"], line["completeness"]) == (backend, 231, "complete")
    (made,) = line["calls"]
    assert (made["name"], made["call_id"], made["arguments"], made["state"]) == (NAME, CALL_ID, ARGUMENTS, "complete")
    assert line["events_per_second"] > 0


def test_demo_raw_can_be_inspected(backend: str) -> None:
    raw = streamweld(backend, "demo", "--raw").stdout
    assert raw.encode() == sample()
    done = streamweld(backend, "inspect", "--json", "-", stdin=raw.encode())
    (line,) = in_lines(done.stdout)
    assert (line["file"], line["text"]) == ("-", TEXT)
    assert line["findings"] == [
        "chat.arguments_not_object",
        "chat.call_head_repeated",
        "args_replay_dropped",
        "chat.finish_hides_calls",
    ]


# inspect


def test_inspect_as_json(backend: str, files: dict[str, Path]) -> None:
    done = streamweld(backend, "inspect", "--json", files["clean"], files["finding"], files["cut"])
    assert (done.returncode, done.stderr) == (1, "")
    clean, finding, cut = in_lines(done.stdout)
    assert clean == {
        "file": str(files["clean"]),
        "bytes": len(CLEAN),
        "dialect": "chat",
        "id": None,
        "model": None,
        "completeness": "complete",
        "finish_reason": "stop",
        "raw_finish_reason": "stop",
        "text": "Hello",
        "reasoning": "",
        "refusal": "",
        "tool_calls": [],
        "tool_results": [],
        "reasoning_parts": [],
        "item_ids": {},
        "usage": None,
        "choices": 1,
        "findings": [],
        "repaired": False,
        "repairs": [],
        "diagnostics": [],
        "diagnostics_dropped": 0,
        "violations": clean["violations"],
        "error": None,
    }
    assert {violation["severity"] for violation in clean["violations"]} <= {"info", "warning", "error"}
    assert finding["findings"]
    codes = {d["code"] for d in finding["diagnostics"] if d["severity"] != "info"}
    broken = {v["rule"] for v in finding["violations"] if v["severity"] != "info"}
    assert (codes | broken, len(finding["findings"])) == (set(finding["findings"]), len(codes) + len(broken))
    assert all(
        isinstance(d["byte_offset"], int) and isinstance(d["event_ordinal"], int) for d in finding["diagnostics"]
    )
    assert [c["dispatchable"] for c in finding["tool_calls"]] == [True] * len(finding["tool_calls"])
    assert (cut["completeness"], cut["findings"]) == (
        "truncated",
        ["chat.finish_missing", "chat.done_missing", "truncated"],
    )
    assert (cut["error"]["error"], cut["error"]["where"]) == ("TruncatedStream", "mid_arguments")
    assert [(c["state"], c["dispatchable"]) for c in cut["tool_calls"]] == [("incomplete", False)]


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["clean"], 0),
        (["clean", "clean"], 0),
        (["finding"], 1),
        (["clean", "cut"], 1),
        (["missing"], 3),
        (["folder"], 3),
        (["missing", "finding"], 3),
        (["clean", "missing"], 3),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",), ("-v",)])
def test_exit_codes(files: dict[str, Path], names: list[str], code: int, options: tuple[str, ...]) -> None:
    done = streamweld("auto", "inspect", *options, *[files[name] for name in names])
    assert done.returncode == code
    readable = [name for name in names if name not in ("missing", "folder")]
    for name in names:
        assert (str(files[name]) in done.stderr) == (name not in readable)
    if options == ("--json",):
        assert [line["file"] for line in in_lines(done.stdout)] == [str(files[name]) for name in readable]


@pytest.mark.parametrize(
    "args",
    [
        ["inspect"],
        ["inspect", "--policy", "lenient", "x"],
        ["inspect", "--dialect", "klingon", "x"],
        ["inspect", "--nonsense", "x"],
        ["nonsense"],
        ["demo", "more"],
        ["bench", "--rounds", "0"],
        ["check"],
        ["check", "--dialect", "klingon", "x"],
    ],
)
def test_usage(args: list[str]) -> None:
    done = streamweld("auto", *args)
    assert done.returncode == 2
    assert "Usage: " in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize(
    "args",
    [
        ["inspect", "--json"],
        ["inspect"],
        ["inspect", "-v"],
        ["check", "--json"],
        ["convert", "--to", "responses"],
        ["demo", "--raw"],
    ],
)
def test_an_output_that_cannot_be_written(files: dict[str, Path], args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "streamweld", *args, *([files["finding"]] if args[0] != "demo" else [])],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("streamweld: the output cannot be written: ")


@pytest.mark.parametrize("start", [["-m", "streamweld"], [str(Path(sys.executable).parent / "streamweld")]])
def test_a_backend_that_does_not_exist(start: list[str]) -> None:
    if start[0] != "-m" and not Path(start[0]).exists():
        pytest.skip("the script is not installed")
    done = subprocess.run(
        [sys.executable, *start, "demo"],
        capture_output=True,
        text=True,
        env=os.environ | {"STREAMWELD_BACKEND": "natve"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "streamweld: STREAMWELD_BACKEND='natve': it must be auto, native or pure\n"


def test_inspect_policies(files: dict[str, Path]) -> None:
    (line,) = in_lines(streamweld("auto", "inspect", "--json", "--policy", "salvage", files["cut"]).stdout)
    assert (line["error"], line["findings"]) == (None, ["truncated", "chat.finish_missing", "chat.done_missing"])
    done = streamweld("auto", "inspect", "--json", "--policy", "strict", files["finding"])
    (line,) = in_lines(done.stdout)
    assert line["error"]["policy"] == "strict"
    assert line["findings"] == ["chat.call_index", line["error"]["rule"]]
    assert done.returncode == 1


def test_inspect_tells_the_error_that_a_policy_reads_on_behind(files: dict[str, Path]) -> None:
    files["clean"].write_bytes(b'data: {"error":{"message":"boom","type":"overloaded","code":500}}\n\n')
    ask = ("inspect", "--dialect", "chat", "--policy", "salvage", files["clean"])
    (line,) = in_lines(streamweld("auto", *ask, "--json").stdout)
    reported = {"type": "upstream_error_event", "code": "500", "kind": "overloaded", "message": "boom"}
    assert (line["error"], line["findings"]) == (reported, ["upstream_error", "framing.error_only"])
    assert "500 overloaded boom" in streamweld("auto", *ask).stdout


def test_inspect_for_people(backend: str, files: dict[str, Path]) -> None:
    done = streamweld(backend, "inspect", files["clean"])
    for reply_text in (
        str(files["clean"]),
        "dialect",
        "chat",
        "Hello",
        "complete",
        "`repair` passes this stream through unchanged",
    ):
        assert reply_text in done.stdout
    cut = streamweld(backend, "inspect", files["cut"]).stdout
    for reply_text in ("truncated", "call_1", "incomplete", '{"a":', "ended before the response was complete"):
        assert reply_text in cut
    assert "clean" not in cut
    many = streamweld(backend, "inspect", files["clean"], files["finding"], files["cut"]).stdout
    for reply_text in ("3 streams, 1 without a finding", "truncated", "completeness"):
        assert reply_text in many
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    reported = streamweld(backend, "inspect", "-", stdin=text("a") + chunk({}, "eos", usage=usage) + DONE).stdout
    assert "input 3, output 4, total 7" in reported
    assert "stop (sent: eos)" in reported
    unreported = streamweld(backend, "inspect", "-", stdin=text("a") + DONE).stdout
    assert "stop (none sent)" in unreported
    page = streamweld(backend, "inspect", "-", stdin=b"<html>\n502 Bad Gateway\n</html>").stdout
    for reply_text in ("the body is not an event stream", "<html>", "502 Bad Gateway"):
        assert reply_text in page


def test_a_call_that_has_its_result_is_not_to_be_run(backend: str) -> None:
    body = b"".join(
        [
            event({"type": "start", "messageId": "m"}),
            event({"type": "tool-input-available", "toolCallId": "a", "toolName": "f", "input": {}}),
            event({"type": "tool-output-available", "toolCallId": "a", "output": 1}),
            event({"type": "tool-input-available", "toolCallId": "b", "toolName": "f", "input": {}}),
            event({"type": "finish"}),
            DONE,
        ]
    )
    (line,) = in_lines(streamweld(backend, "inspect", "--json", "-", stdin=body).stdout)
    assert [(call["call_id"], call["dispatchable"]) for call in line["tool_calls"]] == [("a", False), ("b", True)]


def test_inspect_shows_which_calls_may_run(backend: str, tmp_path: Path) -> None:
    """The views for people show how many calls there are, and which of them are dispatchable, as `--json` does."""
    file = tmp_path / "calls.sse"
    file.write_bytes(call(0, "a", "look", "{}") + call(1, "b", "find", '{"q": "unfinis') + end())
    one = streamweld(backend, "inspect", file).stdout
    assert re.search(r"look +a +complete +yes +\{\}", one), one
    assert re.search(r"find +b +incomplete +no ", one), one
    many = streamweld(backend, "inspect", file, file).stdout
    assert re.search(r"file +dialect +text +calls +dispatchable +finish", many), many
    assert re.search(r"calls\.sse +chat +0 +2 +1 +tool_calls +complete", many), many


def test_inspect_json_shows_what_a_later_turn_needs(backend: str) -> None:
    """`inspect --json` includes results of the provider's tools, provider metadata of reasoning, and the wire ids of
    items."""
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    run = {"id": "mcp_1", "type": "mcp_call", "name": "f", "server_label": "s", "arguments": "{}", "output": "ok"}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "x", "annotations": []}],
    }
    output = [item, search, run, message]
    done = {"id": "r", "object": "response", "status": "completed", "created_at": 1, "model": "m", "output": output}
    body = event({"type": "response.created", "response": {**done, "status": "in_progress", "output": []}}) + b"".join(
        event({"type": "response.output_item.done", "output_index": n, "item": one}) for n, one in enumerate(output)
    )
    body += event({"type": "response.completed", "response": done})
    (line,) = in_lines(streamweld(backend, "inspect", "--json", "-", stdin=body).stdout)
    assert [(r["call_id"], r["output"], r["is_error"]) for r in line["tool_results"]] == [("mcp_1", "ok", False)]
    (reasoning,) = line["reasoning_parts"]
    assert (reasoning["item_id"], reasoning["encrypted_content"], reasoning["signature"]) == ("rs_1", "gAAA", None)
    assert "text" not in reasoning
    assert line["item_ids"] == {"0": "rs_1", "1": "ws_1", "2": "mcp_1", "4": "msg_1"}
    assert [call["provider_executed"] for call in line["tool_calls"]] == [True, True]


def test_nothing_moves_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / f"evil{EVIL.replace('/', '')}.sse"
    body = text(f"a{EVIL}\nb") + call(0, f"id{EVIL}", f"name{EVIL}", json.dumps({"k": EVIL})) + end(f"reason{EVIL}")
    file.write_bytes(body)
    error = tmp_path / "error.sse"
    error.write_bytes(text("a") + event({"error": {"message": EVIL, "code": EVIL}}))
    for args in ((file,), (error,), (file, error), ("-v", file, error), ("--json", file, error), (f"{file}/x",)):
        done = streamweld("auto", "inspect", *args)
        shown = done.stdout + done.stderr
        assert shown
        bad = [char for char in shown if not char.isprintable() and char != "\n"]
        assert bad == [], args
        assert "[bold]" in shown


def test_a_terminal_that_is_not_utf8(files: dict[str, Path]) -> None:
    files["clean"].write_bytes(text("Größe → 日本") + end("stop"))
    done = subprocess.run(
        [sys.executable, "-m", "streamweld", "inspect", files["clean"]],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        check=False,
    )
    assert done.returncode == 0
    assert b"\\u2192" in done.stdout


def test_the_progress_bar_is_for_people(files: dict[str, Path]) -> None:
    """The progress bar is on standard error, only if that is a terminal and there are many files."""

    def seen(*args: str | os.PathLike[str]) -> bytes:
        master, slave = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-m", "streamweld", "inspect", "--json", *args],
            stdout=subprocess.PIPE,
            stderr=slave,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
            check=False,
        )
        os.close(slave)
        out = b""
        try:
            while piece := os.read(master, 65536):
                out += piece
        except OSError:  # the terminal was closed
            pass
        finally:
            os.close(master)
        assert len(in_lines(done.stdout.decode())) == len(args)
        return out

    assert b"inspect" in seen(*[files["clean"]] * 5)
    assert seen(files["clean"]) == b""


def test_bench(backend: str) -> None:
    lines = in_lines(streamweld(backend, "bench", "--json", "--rounds", "2").stdout)
    readers = {line["reader"] for line in lines}
    assert {"native, events", "native, response only", "pure, events", "pure, response only"} < readers
    assert {line["shape"] for line in lines} == {"text", "tool call"}
    for line in lines:
        assert line["microseconds_per_chunk"] > 0
        assert {"streamweld", "python", "machine", "processor"} <= line.keys()
        if "floor" in line["reader"]:
            assert line["times_the_floor"] == 1
    shown = streamweld(backend, "bench", "--rounds", "2").stdout
    assert "MB/s" in shown


def test_bench_times_nothing_that_is_wrong() -> None:
    bench = importlib.import_module("streamweld.cli.bench")
    shape = bench.Shape("wrong", sample(), "another text", [])
    with pytest.raises(click.ClickException, match="nothing was timed"):
        bench._measure(shape, ["pure"], 1)


# the entry point


def test_help_and_version(backend: str) -> None:
    shown = streamweld(backend, "--help").stdout
    for reply_text in ("demo", "inspect", "check", "bench", "Exit codes"):
        assert reply_text in shown
    for command in ("demo", "inspect", "check", "bench"):
        done = streamweld(backend, command, "-h")
        assert done.returncode == 0
        assert "--json" in done.stdout
    version = streamweld(backend, "--version").stdout
    assert version.startswith("streamweld ")
    assert f"backend {backend}" in version


@pytest.mark.parametrize("missing", [["click"], ["rich"], ["click", "rich"]])
def test_without_the_extra(missing: list[str]) -> None:
    code = f"import sys; sys.modules.update({dict.fromkeys(missing)!r}); from streamweld.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"streamweld: the command line needs {' and '.join(missing)}: pip install 'streamweld[cli]'"
    ]


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no SIGPIPE")
@pytest.mark.parametrize(
    "args", [["inspect"], ["inspect", "--json"], ["check"], ["convert", "--to", "anthropic"], ["demo", "--raw"]]
)
def test_a_closed_pipe_ends_a_command_by_its_signal(files: dict[str, Path], args: list[str]) -> None:
    given = [] if args[0] == "demo" else [str(files["finding"])]
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "streamweld", *args, *given],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


SCANNED = {"path": 'a "b.sse', "row": 0, "bytes": 7, "dialect": "chat", "error": {"type": "X", "message": "x"}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (SCANNED, "is a result of `streamweld scan`, not a stream: read the files that its column `path` names"),
        ({"body": "data: {}\n\n"}, "use `streamweld scan`"),
        ({"id": 'a"', "n": 1.5, "x": None, "body": "data: {}\n\n" * 999}, "use `streamweld scan`"),
    ],
)
@pytest.mark.parametrize("args", [["inspect"], ["check"], ["convert", "--to", "anthropic"], ["report", "-o", "r.html"]])
def test_json_lines_about_many_responses_are_named(
    tmp_path: Path, args: list[str], line: dict[str, object], said: str
) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text(f"{json.dumps(line)}\n" * 2, "ascii")
    if args[0] == "report":
        args = ["report", "-o", str(tmp_path / "r.html")]
    done = streamweld("auto", *args, str(file))
    assert done.returncode == 3
    assert said in done.stderr
    assert "many.jsonl" in done.stderr
    with pytest.raises(sw.StreamError, match=re.escape(said)):
        sw.parse(file.read_bytes())


def test_a_recording_that_is_parsed_as_a_body_is_named() -> None:
    with pytest.raises(sw.StreamError, match=r"is a streamweld recording: pass `streamweld\.testing\.read_recording"):
        sw.parse(b'{"streamweld_recording": 1, "method": "POST", "path": "/"}\n{"at": 0.1, "text": "data: {}"}\n')


@pytest.mark.parametrize(
    "body", [b'{"path":1}', b'{"id":"x","choices":[{"body":"y"}]}', b'{"x":"\\"body\\":"}', b'{"body":{}}']
)
def test_other_json_is_not_taken_for_rows(body: bytes) -> None:
    assert rows_hint(body) == ""


def test_a_file_that_is_no_stream_is_not_said_to_be_repaired(tmp_path: Path) -> None:
    file = tmp_path / "calls.parquet"
    file.write_bytes(b"PAR1" + bytes(range(256)) * 40 + b'{"a":\n' * 9 + b"PAR1")
    done = streamweld("auto", "inspect", str(file))
    assert done.returncode == 1
    assert "a Parquet file (`streamweld scan` reads it)" in " ".join(done.stdout.split())
    assert "`repair` does not apply, because this is not a stream" in done.stdout
    assert "for these reasons" not in done.stdout
