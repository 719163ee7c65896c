"""`streamweld scan`: every kind of input, unreadable input, and an interrupted scan."""

from __future__ import annotations

import base64
import gzip
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import streamweld.arrow
from click.testing import CliRunner
from streamweld.cli import main
from streamweld.cli.scan_rows import ARROW_COLUMNS
from streamweld.errors import MissingExtra, UsageError
from streamweld.integrations.captures import captures, find
from streamweld.testing import Piece, Recording, write_recording

from tests.bulk.bodies import BAD, anthropic, bodies, chat, cut_chat, facts, failed_chat, gemini, truth

if TYPE_CHECKING:
    from click.testing import Result


def run(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["scan", *map(str, arguments)], input=stdin)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "captures"
    made.mkdir()
    for number, body in enumerate(bodies(12)):
        (made / f"{number:02}.sse").write_bytes(body)
    (made / ".hidden.sse").write_bytes(BAD)
    (made / "deep").mkdir()
    (made / "deep" / "cut.sse").write_bytes(cut_chat())
    return made


def test_a_directory(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "calls.jsonl"
    done = run(folder, "-o", out)
    assert done.exit_code == 0, done.output
    found = rows(out)
    assert [row["path"] for row in found] == [str(folder / f"{number:02}.sse") for number in range(12)]
    assert [facts(row) for row in found] == [truth(number) for number in range(12)]
    assert not (tmp_path / "calls.jsonl.parts").exists()
    assert run(folder, "--recursive", "-o", out).exit_code == 1
    assert rows(out)[12]["completeness"] == "truncated"


def test_patterns_lists_and_standard_input(folder: Path, tmp_path: Path) -> None:
    assert list(find([str(folder / "0[12].sse")])) == [str(folder / "01.sse"), str(folder / "02.sse")]
    assert list(find([str(folder / "**" / "*.sse")])) == sorted(
        [str(folder / f"{number:02}.sse") for number in range(12)] + [str(folder / "deep" / "cut.sse")]
    )
    listed = tmp_path / "files.txt"
    listed.write_text(f"{folder / '03.sse'}\n\n{folder / '05.sse'}\n")
    out = tmp_path / "calls.jsonl"
    for arguments, stdin in ((["--files-from", listed], None), (["--files-from", "-"], listed.read_text())):
        assert run(*arguments, "-o", out, stdin=stdin).exit_code == 0
        assert [row["dialect"] for row in rows(out)] == ["anthropic", "gemini"]


def test_findings_only_and_exit_codes(folder: Path, tmp_path: Path) -> None:
    (folder / "failed.sse").write_bytes(failed_chat())
    out = tmp_path / "findings.jsonl"
    done = run(folder, "--recursive", "--findings-only", "-o", out)
    assert done.exit_code == 1
    assert sorted((row["path"].rpartition(os.sep)[2], row["completeness"]) for row in rows(out)) == [
        ("cut.sse", "truncated"),
        ("failed.sse", "truncated"),
    ]
    assert "14 streams, 12 without a finding" in done.output


def test_which_findings_fail(folder: Path, tmp_path: Path) -> None:
    body = chat(0).replace(b"data: [DONE]", b'data: {"id":1,"id":2}\n\ndata: [DONE]')
    warned = tmp_path / "warned.sse"
    warned.write_bytes(body)
    assert run(warned).exit_code == 1
    assert run(warned, "--fail-on", "error").exit_code == 0
    assert run(warned, "--exit-zero").exit_code == 0
    cut = folder / "deep" / "cut.sse"
    assert run(cut, "--fail-on", "error").exit_code == 1
    assert run(cut, "--exit-zero", "-o", tmp_path / "cut.jsonl").exit_code == 0


def test_all_columns_are_those_of_arrow(folder: Path, tmp_path: Path) -> None:
    names = ["model", "server_tool_calls", "refusal", *(name for name in ARROW_COLUMNS if name != "model")]
    names = list(dict.fromkeys(names))
    done = run(folder, "--recursive", "--columns", ",".join(names), "-o", tmp_path / "all.jsonl")
    assert done.exit_code == 1, done.output
    assert run(folder, "--recursive", "--columns", ",".join(names), "-o", tmp_path / "all.parquet").exit_code == 1
    found = rows(tmp_path / "all.jsonl")
    assert list(found[0]) == ["path", "row", "bytes", *names]
    assert pq.read_table(tmp_path / "all.parquet").to_pylist() == found
    given = pa.table({"body": [Path(row["path"]).read_bytes() for row in found]})
    expected = streamweld.arrow.parse(given, columns=names).to_pylist()
    for row in (*found, *expected):
        row["usage"] = row["usage"] and {**row["usage"], "raw": json.loads(row["usage"]["raw"])}  # spacing differs
    assert [{name: row[name] for name in names} for row in found] == expected
    wrong = run(folder, "--columns", "models", "-o", tmp_path / "x.jsonl")
    assert isinstance(wrong.exception, UsageError)
    assert str(wrong.exception).endswith("did you mean model?")


def test_a_column_lists_the_repairs(tmp_path: Path) -> None:
    chunk = b'data: {"id":"c","object":"%s","choices":[{"index":0,"delta":{"role":"assistant","content":"x"}%s}]}\n\n'
    last = b',"finish_reason":"stop"'
    bodies = {
        "clean": chunk % (b"chat.completion.chunk", last) + b"data: [DONE]\n\n",
        "ended": chunk % (b"chat.completion.chunk", last),
        "named": chunk % (b"x", last) + b"data: [DONE]\n\n",
        "cut": chunk % (b"chat.completion.chunk", b""),
    }
    for name, body in bodies.items():
        (tmp_path / f"{name}.sse").write_bytes(body)
    for out, columns in (("a.jsonl", "repairs,dialect"), ("b.parquet", "repairs")):
        done = run(tmp_path / "*.sse", "--columns", columns, "-o", tmp_path / out)
        assert "4 streams, 3 without a finding, 3 that `repair` changes" in done.output
    found = {Path(row["path"]).stem: row["repairs"] for row in rows(tmp_path / "a.jsonl")}
    assert found == {
        "clean": [],
        "ended": ["rewritten(end_missing)"],
        "named": ["rewritten(other_object)"],
        "cut": ["truncated"],
    }
    read = pq.read_table(tmp_path / "b.parquet").to_pylist()
    assert {Path(row["path"]).stem: row["repairs"] for row in read} == found
    (tmp_path / "null.jsonl").write_text('{"body": null}\n')
    assert run(tmp_path / "null.jsonl", "--columns", "repairs", "-o", tmp_path / "c.jsonl").exit_code == 0
    assert rows(tmp_path / "c.jsonl")[0]["repairs"] is None


def test_the_summary_counts_unreadable_input(folder: Path) -> None:
    (folder / "unknown.sse").write_bytes(b'data: {"contentBlockStart":{}}\n\n')
    assert "13 streams, 12 without a finding, 1 unreadable" in run(folder).output


def test_a_truncated_body_is_a_row_with_its_error(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "calls.jsonl"
    assert run(folder / "deep", "-o", out).exit_code == 1
    (row,) = rows(out)
    assert row["error"] == {
        "type": "TruncatedStream",
        "rule": "truncated",
        "message": "The stream ended before the response was complete: mid_event "
        f"[truncated at byte {len(cut_chat())}, event 4]",
        "detail": "mid_event",
        "code": None,
        "kind": None,
        "retryable": True,
        "byte_offset": len(cut_chat()),
        "event_ordinal": 4,
    }
    assert " 1  truncated" in run(folder / "deep").output  # counted once: the diagnostic and the error are one finding


@pytest.mark.parametrize("policy", ["salvage", "standard"])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".jsonl"])
def test_every_format_has_the_same_rows(folder: Path, tmp_path: Path, suffix: str, policy: str) -> None:
    """All formats give the same rows as `streamweld.arrow.parse`, whose rows come from Rust."""
    import streamweld.arrow

    (folder / "failed.sse").write_bytes(failed_chat())
    (folder / "bad.sse").write_bytes(BAD)
    (folder / "empty.sse").write_bytes(b"")
    out = tmp_path / f"calls{suffix}"
    assert run(folder, "--recursive", "-o", out, "--policy", policy).exit_code == 3  # BAD is not in a known dialect
    if suffix == ".jsonl":
        found = rows(out)
    else:
        read = pq.read_table(out) if suffix == ".parquet" else pa.ipc.open_file(out).read_all()
        assert read.schema.metadata[b"streamweld:schema"] == b"1"
        found = read.to_pylist()
    names = [row["path"] for row in found]
    data = pa.table({"path": names, "body": [Path(name).read_bytes() for name in names]})
    expected = streamweld.arrow.parse(data, keep=["path"], policy=policy).to_pylist()  # type: ignore[arg-type]
    for mine, theirs in zip(found, expected, strict=True):
        for row in (mine, theirs):
            if row["usage"] is not None:
                row["usage"]["raw"] = json.loads(row["usage"]["raw"])
            if row["error"] is not None:
                row["error"].pop("detail")
        assert {name: mine[name] for name in theirs} == theirs


def test_json_lines(tmp_path: Path) -> None:
    source = tmp_path / "log.jsonl"
    lines: list[Any] = [{"response": {"body": body.decode()}} for body in bodies(4)]
    lines += [{"response": {"body": None}}, {"response": {}}, {"response": {"body": 5}}, []]
    source.write_text("\n".join(json.dumps(line) for line in lines) + "\nnot json\n")
    out = tmp_path / "calls.jsonl"
    done = run(source, "--column", "response.body", "-o", out)
    assert done.exit_code == 3
    found = rows(out)
    assert [facts(row) for row in found[:4]] == [truth(number) for number in range(4)]
    assert found[4]["error"] is None
    assert found[4]["text"] is None
    assert [(row["row"], row["error"]["type"], row["error"]["rule"]) for row in found[5:]] == [
        (5, "CaptureError", "missing_column"),
        (6, "CaptureError", "wrong_type"),
        (7, "CaptureError", "missing_column"),
        (8, "CaptureError", "corrupt_row"),
    ]
    assert f"{source}, row 5: there is no member 'response.body' [missing_column]" in done.output
    plain = tmp_path / "plain.ndjson"
    plain.write_text(json.dumps({"body": chat(1).decode()}) + "\n")
    assert run(plain, "-o", out).exit_code == 0
    assert rows(out)[0]["text"] == "Héllo"


def test_recordings_of_streamweld(tmp_path: Path) -> None:
    body = chat(1)
    write_recording(Recording((Piece(0.0, body[:50]), Piece(0.1, body[50:]))), tmp_path / "good.jsonl")
    (tmp_path / "bad.jsonl").write_text((tmp_path / "good.jsonl").read_text().replace('"text"', '"none"'))
    (good,) = captures(str(tmp_path / "good.jsonl"))
    assert good.body == body
    (bad,) = captures(str(tmp_path / "bad.jsonl"))
    assert bad.error is not None
    assert (bad.body, bad.error.rule) == (None, "corrupt_file")
    assert "line 2" in str(bad.error)


def test_json_lines_that_are_a_stream_are_one_body(tmp_path: Path) -> None:
    source = tmp_path / "chunks.jsonl"
    payloads = [line[6:] for line in chat(1).splitlines() if line.startswith(b"data: {")]
    source.write_bytes(b"\n".join(payloads) + b"\n")
    (found,) = captures(str(source))
    assert found.body == source.read_bytes()


def test_parquet_and_arrow_files(tmp_path: Path) -> None:
    table = pa.table({"id": range(300), "body": pa.array(bodies(300))})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=70)
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    for name in ("in.parquet", "in.arrow"):
        out = tmp_path / "calls.jsonl"
        assert run(tmp_path / name, "--jobs", 2, "-o", out).exit_code == 0
        assert [facts(row) for row in rows(out)] == [truth(number) for number in range(300)]
        assert [row["row"] for row in rows(out)] == list(range(300))


def test_parquet_that_cannot_be_read(tmp_path: Path) -> None:
    table = pa.table({"id": range(300), "body": pa.array(bodies(300))})
    whole = tmp_path / "whole.parquet"
    pq.write_table(table, whole, row_group_size=100, compression="none", use_dictionary=False)
    damaged = bytearray(whole.read_bytes())
    metadata = pq.ParquetFile(whole).metadata.row_group(1).column(1)
    at = metadata.data_page_offset
    damaged[at : at + 200] = b"\xff" * 200
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-100])
    (tmp_path / "not.parquet").write_bytes(b"this is text")
    for name, row, rule in (
        ("cut.parquet", None, "corrupt_file"),
        ("not.parquet", None, "corrupt_file"),
        ("damaged.parquet", "some", "corrupt_file"),
    ):
        found = list(captures(str(tmp_path / name)))
        error = found[-1].error
        assert error is not None
        assert error.rule == rule
        assert error.path == str(tmp_path / name)
        assert all(capture.error is None for capture in found[:-1])
        if row is None:
            assert error.row is None
        else:
            # The first row group is intact, and none of its rows is lost.
            assert error.row == len(found) - 1 >= 64
            assert f", row {error.row}: " in str(error)
    (missing,) = captures(str(whole), column="answer")
    assert str(missing.error) == f"{whole}: there is no column 'answer'; the columns are id, body [missing_column]"
    (wrong,) = captures(str(whole), column="id")
    assert str(wrong.error) == f"{whole}: column 'id' is of type int64, not text or bytes [wrong_type]"
    done = run(tmp_path / "cut.parquet", "-o", tmp_path / "calls.jsonl")
    assert done.exit_code == 3
    assert str(tmp_path / "cut.parquet") in done.output


def test_har(tmp_path: Path) -> None:
    def entry(text: str | None, kind: str, method: str = "POST", **more: str) -> dict[str, Any]:
        content = {"mimeType": kind, **({} if text is None else {"text": text}), **more}
        return {"request": {"method": method}, "response": {"content": content}}

    entries = [
        entry(chat(1).decode(), "text/event-stream; charset=utf-8"),
        entry("<html>", "text/html", "GET"),
        entry('{"a": 1}', "application/json", "GET"),
        entry(base64.b64encode(gemini()).decode(), "text/event-stream", encoding="base64"),
        entry("###", "text/event-stream", encoding="base64"),
        {"request": {}},
    ]
    source = tmp_path / "traffic.har"
    source.write_text(json.dumps({"log": {"entries": entries}}))
    found = list(captures(str(source)))
    assert [capture.row for capture in found] == [0, 3, 4, 5]
    assert found[0].body == chat(1)
    assert found[1].body == gemini()
    assert [capture.error.rule for capture in found[2:] if capture.error] == ["corrupt_row", "corrupt_row"]
    source.write_text("{}")
    (broken,) = captures(str(source))
    assert broken.error is not None
    assert broken.error.rule == "corrupt_file"


def test_captured_http(tmp_path: Path) -> None:
    def chunked(body: bytes) -> bytes:
        pieces = [body[at : at + 100] for at in range(0, len(body), 100)]
        return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"

    def response(body: bytes, *fields: bytes, kind: bytes = b"text/event-stream") -> bytes:
        return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Type: " + kind, *fields, b"", body])

    zipped = gzip.compress(anthropic())
    data = (
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}\r\n"
        + response(chunked(chat(1)), b"Transfer-Encoding: chunked")
        + b"GET / HTTP/1.1\r\n\r\n"
        + response(b"<html>", b"Content-Length: 6", kind=b"text/html")
        + response(zipped, b"Content-Encoding: gzip", b"Content-Length: %d" % len(zipped))
        + response(b"x", b"Content-Encoding: br", b"Content-Length: 1")
        + response(gemini())
    )
    source = tmp_path / "proxy.log"
    source.write_bytes(data)
    found = list(captures(str(source)))
    assert [capture.body for capture in found] == [chat(1), anthropic(), None, gemini()]
    assert found[2].error is not None
    assert found[2].error.rule == "unsupported_encoding"
    # The connection broke. The part of the body that arrived is kept.
    source.write_bytes(response(chunked(chat(1))[:300], b"Transfer-Encoding: chunked"))
    (cut,) = captures(str(source))
    assert cut.body is not None
    assert chat(1).startswith(cut.body)
    assert len(cut.body) > 250


def test_a_body_that_inflates_too_far_is_an_error(tmp_path: Path) -> None:
    bomb = zlib.compress(b"x" * 10_000_000)
    source = tmp_path / "proxy.log"
    source.write_bytes(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: deflate\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(bomb), bomb)
    )
    (found,) = captures(str(source))
    assert found.error is not None
    assert "inflates to more than 200 times" in str(found.error)


def test_mitmproxy_flows(tmp_path: Path) -> None:
    def text(value: Any) -> bytes:
        if isinstance(value, dict):
            body = b"".join(text(part) for pair in value.items() for part in pair)
            return b"%d:%s}" % (len(body), body)
        if isinstance(value, list):
            body = b"".join(text(part) for part in value)
            return b"%d:%s]" % (len(body), body)
        if isinstance(value, bytes):
            return b"%d:%s," % (len(value), value)
        if isinstance(value, str):
            return b"%d:%s;" % (len(value.encode()), value.encode())
        if value is None:
            return b"0:~"
        return b"%d:%d#" % (len(str(value)), value)

    def flow(response: Any) -> bytes:
        return text({"version": 21, "type": "http", "response": response})

    kind = [[b"content-type", b"text/event-stream"]]
    data = flow({"headers": kind, "content": chat(1)}) + flow(None) + flow({"headers": kind, "content": gemini()})
    source = tmp_path / "traffic.mitm"
    source.write_bytes(data + b"99:broken")
    found = list(captures(str(source)))
    assert [(capture.row, capture.body) for capture in found[:2]] == [(0, chat(1)), (2, gemini())]
    assert found[2].error is not None
    assert found[2].error.rule == "corrupt_file"


def test_compressed_files(tmp_path: Path) -> None:
    source = tmp_path / "one.sse.gz"
    source.write_bytes(gzip.compress(chat(1)))
    assert [capture.body for capture in captures(str(source))] == [chat(1)]
    source.write_bytes(gzip.compress(chat(1))[:-20])
    (broken,) = captures(str(source))
    assert broken.error is not None
    assert broken.error.rule == "corrupt_file"


def test_what_cannot_be_opened(tmp_path: Path, folder: Path) -> None:
    out = tmp_path / "calls.jsonl"
    done = run(tmp_path / "nowhere.sse", folder / "01.sse", "-o", out)
    assert done.exit_code == 3
    assert f"{tmp_path / 'nowhere.sse'}: No such file or directory [unreadable]" in done.output
    assert [row["error"] and row["error"]["rule"] for row in rows(out)] == ["unreadable", None]


def test_without_pyarrow(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(folder, "-o", tmp_path / "calls.jsonl").exit_code == 0
    done = run(folder, "-o", tmp_path / "calls.parquet")
    assert isinstance(done.exception, MissingExtra)
    assert str(done.exception) == "pyarrow is not installed: pip install 'streamweld[bulk]'"
    assert not (tmp_path / "calls.parquet.parts").exists()


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_with_the_pure_backend(tmp_path: Path, folder: Path, suffix: str) -> None:
    out = tmp_path / f"calls{suffix}"
    command = [sys.executable, "-m", "streamweld", "scan", str(folder), "-o", str(out)]
    environment = {**os.environ, "STREAMWELD_BACKEND": "pure"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if suffix == ".jsonl":
        assert done.returncode == 0, done.stderr
        assert [facts(row) for row in rows(out)] == [truth(number) for number in range(12)]
    else:
        assert done.returncode == 2
        assert "streamweld: streamweld.arrow needs the native backend" in done.stderr
        assert not (tmp_path / "calls.parquet.parts").exists()


def test_usage(tmp_path: Path, folder: Path) -> None:
    for arguments, sentence in (
        ([], "there is nothing to scan"),
        ([folder, "--resume"], "--resume, --format and --columns need --output"),
        ([folder, "-o", tmp_path / "calls.csv"], "the output must end in .parquet"),
    ):
        done = run(*arguments)
        assert isinstance(done.exception, UsageError)
        assert sentence in str(done.exception)


def test_the_table(folder: Path) -> None:
    done = run(folder, "--recursive")
    assert done.exit_code == 1
    assert "13 streams, 12 without a finding" in done.output
    assert "cut.sse" in done.output
    assert "truncated" in done.output


def test_progress_has_rate_and_remaining_time(folder: Path, tmp_path: Path) -> None:
    done = run(folder, "--progress", "-o", tmp_path / "calls.jsonl")
    last = [line for line in done.output.splitlines() if " files, " in line][-1]
    assert last.startswith("12 of 12 files, 12 streams, ")
    assert "MB/s, 0 s left, 0 with findings" in last


def test_an_interrupted_scan_goes_on(tmp_path: Path) -> None:
    """A scan that was killed after its first part continues without losing or repeating rows."""
    source = tmp_path / "in.jsonl"
    count = 20_000
    with source.open("w") as file:
        for body in bodies(count):
            file.write(json.dumps({"body": body.decode("latin-1")}) + "\n")
    out = tmp_path / "calls.jsonl"
    command = [sys.executable, "-m", "streamweld", "scan", str(source), "-o", str(out)]
    killed = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    journal = tmp_path / "calls.jsonl.parts" / "journal.jsonl"
    end = time.monotonic() + 100
    while not journal.exists() or journal.read_text("ascii").count("\n") < 2:
        assert time.monotonic() < end
        assert killed.poll() is None, "the scan ended before it was killed"
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not out.exists()
    with pytest.raises(UsageError, match="left over from an interrupted scan; pass --resume"):
        _raise(run(source, "-o", out))
    with pytest.raises(UsageError, match="belongs to a scan of other files or with other options"):
        _raise(run(source, "-o", out, "--resume", "--policy", "standard"))
    done = run(source, "-o", out, "--resume")
    assert done.exit_code == 3, done.output  # every 1,000th body is not in a known dialect
    found = rows(out)
    assert [row["row"] for row in found] == list(range(count))
    assert sum(row["error"] is not None for row in found) == count // 1000
    assert f"{count} streams, {count - count // 1000} without a finding" in done.output
    assert not journal.parent.exists()


def _raise(done: Result) -> None:
    assert done.exception is not None
    raise done.exception


def test_a_body_of_no_known_dialect_cannot_be_read(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.sse", tmp_path / "b.sse"
    good.write_bytes(chat(0))
    bad.write_bytes(b"upstream timed out")
    done = run(good, bad)
    assert done.exit_code == 3
    assert f"streamweld: {bad}, row 0: " in done.stderr
    assert "1 stream, 1 without a finding" in run(good).stdout


def test_folders_in_a_folder_need_recursive(tmp_path: Path) -> None:
    (tmp_path / "rec" / "gateway").mkdir(parents=True)
    (tmp_path / "rec" / "gateway" / "a.sse").write_bytes(chat(0))
    done = run(tmp_path / "rec")
    assert isinstance(done.exception, UsageError)
    assert (
        str(done.exception)
        == f"{tmp_path / 'rec'}: contains only directories; pass --recursive to read the files in them"
    )
    assert run(tmp_path / "rec", "--recursive").exit_code == 0


def test_long_file_names_stay_on_one_line(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 120) / ("m" * 120 + ".sse")
    file.parent.mkdir()
    file.write_bytes(cut_chat())
    assert str(file) in [cell for line in run(file).stdout.splitlines() for cell in line.split()]


def test_a_result_of_scan_is_not_read_as_a_stream(folder: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    run(folder, "-o", first)
    done = run(first, "-o", second)
    assert done.exit_code == 3
    assert "first.jsonl: this is a result of `streamweld scan`, not a stream" in done.output
    (row,) = rows(second)
    assert (row["error"]["rule"], row["dialect"]) == ("wrong_type", None)
    assert run(first, "--column", "text").exit_code != 2  # a member that the user names is read
