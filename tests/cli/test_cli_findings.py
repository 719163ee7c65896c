"""Behavior that `check` and `inspect` share: which findings they report, in which format, at which place, and the exit
code.
"""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from streamweld.cli import main
from streamweld.cli.sample import sample
from streamweld.report.finding import Lines
from streamweld.testing import Piece, Recording, write_recording

from tests.support.servers.command import in_lines, streamweld
from tests.support.servers.wire import DONE, call, end, event, text

if TYPE_CHECKING:
    from pathlib import Path

# The line numbers are those of `grep -n` for the bundled stream; the rules and codes are those in docs/guides.
DIAGNOSTICS = [("args_replay_dropped", 95313, 253, 519), ("finish_contradicts", 96735, 256, 525)]
RULES = [
    ("chat.role_repeated", 352, 1, 9),
    ("chat.arguments_not_object", 6633, 23, 53),
    ("chat.call_head_repeated", 7027, 24, 55),
    ("chat.finish_hides_calls", 96212, 254, 521),
]


def run(*args: object) -> Result:
    """Run the command in this process, for tests that do not depend on the entry point."""
    done = CliRunner().invoke(main, [str(arg) for arg in args], env={"COLUMNS": "200"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    file = tmp_path / "a,b 1.sse"
    file.write_bytes(sample())
    return file


@pytest.mark.parametrize(
    "command", [["inspect", "--json"], ["check", "--json"], ["convert", "--to", "anthropic", "--seed", "s"]]
)
@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_a_recording_of_streamweld_is_read_as_its_body(
    command: list[str], suffix: str, recording: Path, tmp_path: Path
) -> None:
    body = recording.read_bytes()
    made = tmp_path / f"r{suffix}"
    write_recording(Recording((Piece(0.0, body[:5000]), Piece(0.1, body[5000:]))), tmp_path / "r.jsonl")
    if suffix.endswith(".gz"):
        made.write_bytes(gzip.compress((tmp_path / "r.jsonl").read_bytes()))
    plain, done = run(*command, recording), run(*command, made)
    assert done.exit_code == plain.exit_code
    assert done.stdout.replace(str(made), str(recording)) == plain.stdout


def test_a_broken_recording_names_the_line(tmp_path: Path) -> None:
    made = tmp_path / "r.jsonl"
    made.write_text('{"streamweld_recording": 1, "method": "POST", "path": "/", "status": 200}\n{"at": 1}\n')
    done = run("inspect", made)
    assert done.exit_code == 3
    assert "line 2" in done.stderr


def test_the_lines_of_the_bundled_stream() -> None:
    body = sample()
    for _, offset, _, line in DIAGNOSTICS + RULES:
        if offset < len(body) - 20:
            assert body[:offset].count(b"\n") + 1 == line


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_line_numbers_of_every_line_end(size: int) -> None:
    body = b"a\r\nb\nc\rd\n\n\r\r\ne"
    lines = Lines()
    for at in range(0, len(body), size):
        lines.feed(body[at : at + size])
    # a=1 CR LF | b=2 LF | c=3 CR | d=4 LF | LF=5 | CR=6 | CR LF=7 | e=8
    assert [lines[at] for at in range(len(body))] == [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 7, 8]


def test_inspect_has_diagnostics_and_rules_with_place_and_link(backend: str, recording: Path) -> None:
    (line,) = in_lines(streamweld(backend, "inspect", "--json", recording).stdout)
    reported = [(d["code"], d["byte_offset"], d["event_ordinal"], d["line"]) for d in line["diagnostics"]]
    assert reported == DIAGNOSTICS
    broken = [(v["rule"], v["byte_offset"], v["event_ordinal"], v["line"]) for v in line["violations"]]
    assert broken == RULES
    assert line["violations"][0]["help_url"].endswith("/docs/rules.md#chat.role_repeated")
    shown = streamweld(backend, "inspect", recording).stdout
    for code, offset, ordinal, number in DIAGNOSTICS + RULES:
        assert re.search(rf"{re.escape(code)} +{offset} +{number} +{ordinal} ", shown), code


def test_select_and_ignore(recording: Path) -> None:
    (line,) = in_lines(run("inspect", "--json", "--select", "finish_*,chat.role_*", recording).stdout)
    assert [d["code"] for d in line["diagnostics"]] == ["finish_contradicts"]
    assert [v["rule"] for v in line["violations"]] == ["chat.role_repeated"]
    assert line["findings"] == []
    done = run("inspect", "--ignore", "args_replay_dropped,chat.*", recording)
    assert done.exit_code == 0
    assert "args_replay_dropped" not in done.stdout
    done = run("check", "--ignore", "chat.*", recording)
    assert (done.exit_code, "clean: no finding" in done.stdout) == (0, True)
    done = run("check", "--select", "chat.call_head_repeated", "--ignore", "chat.role_repeated", recording)
    assert done.exit_code == 1
    assert "chat.call_head_repeated" in done.stdout
    assert "chat.arguments_not_object" not in done.stdout


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_a_broken_rule_alone_is_a_finding(command: str, tmp_path: Path) -> None:
    """The name and id that a second fragment repeats do not need a repair, but they violate a rule."""
    file = tmp_path / "heads.sse"
    file.write_bytes(call(0, "a", "look", "{") + call(0, "a", "look", "}") + end())
    shown = run(command, file)
    assert (shown.exit_code, "chat.call_head_repeated" in shown.stdout) == (1, True)
    assert run(command, "--json", file).exit_code == 1
    assert run(command, file, file).exit_code == 1
    assert run(command, "--ignore", "chat.call_head_repeated", file).exit_code == 0


def test_the_error_that_ends_a_stream_can_be_ignored(tmp_path: Path) -> None:
    file = tmp_path / "cut.sse"
    file.write_bytes(text("Hel"))
    assert run("inspect", file).exit_code == 1
    assert run("inspect", "--ignore", "truncated,chat.*", file).exit_code == 0
    file.write_bytes(b'data: {"contentBlockStart":{}}\n\n')
    assert run("check", file).exit_code == 1
    assert run("check", "--ignore", "unknown_dialect", file).exit_code == 0


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_a_pattern_that_matches_no_code(command: str, recording: Path) -> None:
    done = streamweld("auto", command, "--ignore", "chat.role_repeatd", recording)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'chat.role_repeatd' matches no code; did you mean chat.role_repeated" in done.stderr


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_exit_zero(command: str, recording: Path, tmp_path: Path) -> None:
    assert run(command, recording).exit_code == 1
    assert run(command, "--exit-zero", recording).exit_code == 0
    assert run(command, "--exit-zero", tmp_path / "missing").exit_code == 3


@pytest.mark.parametrize("command", ["check", "inspect"])
@pytest.mark.parametrize("options", [(), ("--json",), ("--output-format", "github"), ("--output-format", "sarif")])
def test_fail_on_is_the_least_severity_that_fails(command: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """The exit codes for streams whose worst finding is of each severity, without the option and with each value."""
    streams = {
        "error": sample(),
        "warning": call(0, "a", "look", "{") + call(0, "a", "look", "}") + end(),
        "info": event({"type": "start"}) + b": x\n\nevent: finish\n" + event({"type": "finish"}) + DONE,
    }
    expected = {
        None: {"error": 1, "warning": 1, "info": 0},
        "error": {"error": 1, "warning": 0, "info": 0},
        "warning": {"error": 1, "warning": 1, "info": 0},
        "info": {"error": 1, "warning": 1, "info": 1},
    }
    files = {name: tmp_path / f"{name}.sse" for name in streams}
    for name, file in files.items():
        file.write_bytes(streams[name])
    for least, codes in expected.items():
        chosen = () if least is None else ("--fail-on", least)
        assert {name: run(command, *options, *chosen, file).exit_code for name, file in files.items()} == codes, least
        assert run(command, *options, *chosen, *files.values()).exit_code == 1
    assert run(command, *options, "--fail-on", "error", files["warning"], files["info"]).exit_code == 0
    assert run(command, *options, "--fail-on", "info", "--exit-zero", files["error"]).exit_code == 0
    assert run(command, *options, "--fail-on", "error", tmp_path / "missing").exit_code == 3
    assert run(command, *options, "--fail-on", "fatal", files["info"]).exit_code == 2


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_fail_on_does_not_hide_warnings(command: str, tmp_path: Path) -> None:
    file, clean = tmp_path / "warning.sse", tmp_path / "info.sse"
    file.write_bytes(call(0, "a", "look", "{") + call(0, "a", "look", "}") + end())
    clean.write_bytes(event({"type": "start"}) + b": x\n\nevent: finish\n" + event({"type": "finish"}) + DONE)
    assert "chat.call_head_repeated" in run(command, "--fail-on", "error", file).stdout
    assert "2 streams, 1 without a finding" in run(command, "--fail-on", "error", file, clean).stdout
    (line,) = in_lines(run(command, "--json", "--fail-on", "error", file).stdout)
    assert line["findings"] == ["chat.call_head_repeated"]
    assert "ai-sdk-ui.event_line" in run(command, "--fail-on", "info", clean, clean).stdout
    assert "2 streams, 0 without a finding" in run(command, "--fail-on", "info", clean, file).stdout


@pytest.mark.parametrize("command", ["check", "inspect"])
@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_output_goes_to_a_file(command: str, form: str, recording: Path, tmp_path: Path) -> None:
    file = tmp_path / "out"
    shown = run(command, "--output-format", form, recording)
    done = run(command, "--output-format", form, "-o", file, recording)
    assert (done.stdout, done.exit_code) == ("", shown.exit_code)
    assert len(file.read_text("utf-8")) > 100
    squeezed = [re.sub(r"[\s─]+", "", reported) for reported in (file.read_text("utf-8"), shown.stdout)]
    assert squeezed[0] == squeezed[1] or form == "text"


def test_an_output_file_that_cannot_be_opened(recording: Path, tmp_path: Path) -> None:
    done = streamweld("auto", "check", "-o", tmp_path / "no" / "out", recording)
    assert done.returncode == 3
    assert done.stderr.startswith("streamweld: the output cannot be written: ")


def test_github_annotations(recording: Path) -> None:
    shown = run("inspect", "--output-format", "github", recording).stdout.splitlines()
    file = str(recording).replace(",", "%2C")
    assert [line.split("::")[1] for line in shown] == [
        f"notice file={file},line=9,title=chat.role_repeated",
        f"error file={file},line=53,title=chat.arguments_not_object",
        f"warning file={file},line=55,title=chat.call_head_repeated",
        f"warning file={file},line=519,title=args_replay_dropped",
        f"warning file={file},line=521,title=chat.finish_hides_calls",
        f"notice file={file},line=525,title=finish_contradicts",
    ]
    assert shown[3].endswith("docs/rules.md#args_replay_dropped")


def test_sarif(recording: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean.sse"
    clean.write_bytes(text("a") + end("stop"))
    done = run("inspect", "--output-format", "sarif", recording, clean)
    assert done.exit_code == 1
    log = json.loads(done.stdout)
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (reported,) = log["runs"]
    ids = [rule["id"] for rule in reported["tool"]["driver"]["rules"]]
    results = [result for result in reported["results"] if "a%2Cb%201.sse" in str(result)]
    assert [result["ruleId"] for result in results] == [
        *("chat.role_repeated", "chat.arguments_not_object", "chat.call_head_repeated"),
        *("args_replay_dropped", "chat.finish_hides_calls", "finish_contradicts"),
    ]
    for result in reported["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error")
        assert result["message"]["text"]
    (place,) = results[3]["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": recording.as_uri()},
        "region": {"startLine": 519, "byteOffset": 95313, "byteLength": len(sample()[95313:].splitlines(True)[0])},
    }


def test_sarif_has_paths_below_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    cut = tmp_path / "runs" / "cut.sse"
    cut.write_bytes(text("a"))
    log = json.loads(run("inspect", "--output-format", "sarif", cut).stdout)
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"runs/cut.sse"}
    assert all(place["region"].get("byteLength") != 0 for place in places)


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_sarif_reports_a_file_that_cannot_be_read(command: str, tmp_path: Path) -> None:
    done = run(command, "--output-format", "sarif", tmp_path / "missing.sse")
    assert done.exit_code == 3
    (reported,) = json.loads(done.stdout)["runs"]
    (result,) = reported["results"]
    assert (result["ruleId"], result["level"]) == ("unreadable", "error")
    (invocation,) = reported["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["locations"] == result["locations"]
    complete = tmp_path / "clean.sse"
    complete.write_bytes(text("a") + end("stop"))
    (reported,) = json.loads(run(command, "--output-format", "sarif", complete).stdout)["runs"]
    assert reported["invocations"][0]["executionSuccessful"] is True


def test_many_files_are_summed_up(recording: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean.sse"
    clean.write_bytes(text("a") + end("stop"))
    shown = run("inspect", *[clean] * 20, recording).stdout
    assert "21 streams, 20 without a finding" in shown
    assert "clean.sse" not in shown
    assert re.search(r"^ +1  args_replay_dropped$", shown, re.MULTILINE)
    assert re.search(r"^ +1  chat\.call_head_repeated$", shown, re.MULTILINE)


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_standard_input_is_read_once(command: str) -> None:
    done = streamweld("auto", command, "-", "-", stdin=sample())
    assert (done.returncode, done.stdout) == (2, "")
    assert "- is standard input, which can be read only once" in done.stderr


@pytest.mark.parametrize(("set_to", "colored"), [(None, True), ("1", False)])
def test_no_color(set_to: str | None, colored: bool) -> None:
    """https://no-color.org: no color if NO_COLOR is set; bold text is not color."""
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "120"} | ({} if set_to is None else {"NO_COLOR": set_to})
    history = json.dumps([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b "}])
    subprocess.run(
        [sys.executable, "-m", "streamweld", "history", "convert", "--to", "anthropic", "-"],
        input=history.encode(),
        stdout=slave,
        stderr=slave,
        env=environment,
        check=False,
    )
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:  # the terminal was closed
        pass
    finally:
        os.close(master)
    assert b"1 edit" in shown
    assert bool(re.search(rb"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])", shown)) is colored


HTML = b"<!DOCTYPE html>\n<html><body>502 Bad Gateway</body></html>\n"


@pytest.mark.parametrize(
    ("body", "hint"), [(gzip.compress(sample()), "compressed with gzip"), (HTML, "the body is an HTML page")]
)
@pytest.mark.parametrize("command", ["check", "inspect"])
def test_a_body_that_is_not_a_stream_is_one_finding(tmp_path: Path, command: str, body: bytes, hint: str) -> None:
    file = tmp_path / "a.sse"
    file.write_bytes(body)
    done = run(command, file, "--json")
    assert done.exit_code == 1
    (row,) = in_lines(done.stdout)
    assert (row["violations"], row["diagnostics"]) == ([], [])
    assert len(row["findings"]) <= 1
    shown = run(command, file).stdout
    assert shown.count(hint) == 1
    assert "bad_utf8" not in shown


def test_report_rejects_a_body_that_is_not_a_stream(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(HTML)
    done = run("report", tmp_path / "a.sse", "-o", tmp_path / "r.html")
    assert done.exit_code == 3
    assert "the body is an HTML page" in done.stderr
    assert not (tmp_path / "r.html").exists()


def test_report_names_the_first_line_that_a_recording_lacks(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"at": 0.1, "text": "data: [DONE]\\n\\n"}\n')
    done = run("report", tmp_path / "a.jsonl", "-o", tmp_path / "r.html")
    assert done.exit_code == 3
    assert "the first line lacks `streamweld_recording`" in done.stderr


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_compressed_files_are_decompressed(tmp_path: Path, command: str) -> None:
    plain, packed = tmp_path / "a.sse", tmp_path / "a.sse.gz"
    plain.write_bytes(sample())
    packed.write_bytes(gzip.compress(sample()))
    rows = [in_lines(run(command, file, "--json").stdout)[0] | {"file": ""} for file in (plain, packed)]
    assert rows[0] == rows[1]
    packed.write_bytes(gzip.compress(sample())[:-20])
    assert run(command, packed).exit_code == 3
    assert run("report", packed, "-o", tmp_path / "r.html").exit_code == 3


def test_a_folder_is_named_with_the_commands_that_read_it(tmp_path: Path) -> None:
    done = run("inspect", tmp_path)
    assert done.exit_code == 3
    assert "this is a folder; `streamweld scan` and `streamweld report` read folders" in done.stderr


HEAD = (
    b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}]}\n\n'
)


def test_a_diagnostic_without_a_repair_is_described_so(tmp_path: Path) -> None:
    file = tmp_path / "a.sse"
    last = b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"lunch"}]}\n\n'
    file.write_bytes(HEAD + last + b"data: [DONE]\n\n")
    shown = run("inspect", file).stdout
    assert "finish_unknown" in shown
    assert "`repair` passes this stream through unchanged" in shown
    assert in_lines(run("inspect", file, "--json").stdout)[0]["repaired"] is False


def test_a_repair_without_a_diagnostic_of_the_parser_is_listed(tmp_path: Path) -> None:
    file = tmp_path / "a.sse"
    file.write_bytes(HEAD.replace(b'"x"}', b'"x"},"finish_reason":"stop"'))
    (row,) = in_lines(run("inspect", file, "--json").stdout)
    assert (row["repaired"], row["repairs"]) == (True, ["rewritten(end_missing)"])
    shown = run("inspect", file).stdout
    assert (
        "`repair` changes the bytes of this stream for these reasons:\n  rewritten(end_missing): The stream ended"
        in shown
    )
    assert "unchanged" not in shown
    many = run("inspect", file, file).stdout
    assert "streams that `repair` changes: 2, by reason\n     2  rewritten(end_missing)" in many


def test_a_truncation_is_a_repair(tmp_path: Path) -> None:
    file = tmp_path / "a.sse"
    file.write_bytes(HEAD)
    (row,) = in_lines(run("inspect", file, "--json").stdout)
    assert (row["repaired"], row["repairs"]) == (True, ["truncated"])


def test_a_stream_that_ends_before_its_dialect_is_known_does_not_pass_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "a.sse"
    file.write_bytes(b'data: {"type":"response.created","response":{\n\n')
    (row,) = in_lines(run("inspect", file, "--json").stdout)
    assert (row["dialect"], row["repaired"], row["repairs"]) == (None, True, ["malformed_json"])


def test_codes_are_not_broken_in_a_file(tmp_path: Path) -> None:
    names = [tmp_path / f"{letter * 10}.sse" for letter in "ab"]
    for name in names:
        name.write_bytes(sample())
    done = CliRunner().invoke(main, ["inspect", *map(str, names), "-o", str(tmp_path / "out.txt")])
    assert done.exit_code == 1
    (row, _) = in_lines(run("inspect", *names, "--json").stdout)
    written = (tmp_path / "out.txt").read_text("utf-8")
    assert len(row["findings"]) > 2
    for code in row["findings"]:
        assert len(re.findall(rf"(?<![\w.]){re.escape(code)}(?![\w.])", written)) >= 3, code


def test_long_file_names_stay_on_one_line(tmp_path: Path) -> None:
    names = [tmp_path / ("n" * 100) / (letter * 100 + ".sse") for letter in "ab"]
    names[0].parent.mkdir()
    for name in names:
        name.write_bytes(sample())
    done = CliRunner().invoke(main, ["inspect", *map(str, names)])
    assert [name.name for name in names] == re.findall(r"^ *([ab]{100}\.sse) ", done.stdout, re.MULTILINE)
