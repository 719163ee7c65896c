"""`streamweld.arrow` with pyarrow: rows are compared with hand-written rows and with `parse`, and invalid input does
not raise.
"""

from __future__ import annotations

import datetime as dt
import decimal
import gc
import subprocess
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pytest
import streamweld
import streamweld.arrow
from streamweld.errors import StreamError, UsageError
from streamweld.options import Limits

from tests.bulk.bodies import BAD, anthropic, bodies, chat, cut_chat, facts, failed_chat, truth
from tests.support.corpus import FOLDERS, recordings

KINDS: dict[str, Any] = {
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int16(), pa.string()),
    "dictionary of binary": pa.dictionary(pa.uint32(), pa.binary()),
}


def table(rows: list[bytes | None], kind: Any = None) -> pa.Table:
    column = pa.array(rows, kind or pa.binary()) if not str(kind).startswith("dictionary") else None
    if column is None:
        plain = pa.array(rows, kind.value_type)
        column = plain.dictionary_encode().cast(kind)
    return pa.table({"id": pa.array(range(len(rows)), pa.int64()), "body": column})


def test_rows_are_the_truth() -> None:
    found = streamweld.arrow.parse(table(list(bodies(2000))), keep=["id"]).to_pylist()
    assert [row["id"] for row in found] == list(range(2000))
    wrong = [(row["id"], facts(row), truth(row["id"])) for row in found if facts(row) != truth(row["id"])]
    assert not wrong
    assert sum(row["error"] is not None for row in found) == 2


@pytest.mark.parametrize("name", KINDS)
def test_every_layout_of_bytes_and_text(name: str) -> None:
    rows = [chat(1), None, anthropic(), b"", chat(1)]
    found = streamweld.arrow.parse(table(rows, KINDS[name])).to_pylist()
    assert [row["text"] for row in found] == ["Héllo", None, "Hi", "", "Héllo"]
    assert all(value is None for value in found[1].values())
    assert found[3]["completeness"] == "truncated"


def test_a_slice_is_read_from_its_own_start() -> None:
    whole = table([chat(number) for number in range(9)])
    found = streamweld.arrow.parse(whole.slice(4, 3), keep=["id"]).to_pylist()
    assert [row["id"] for row in found] == [4, 5, 6]
    assert [row["tool_calls"][0]["call_id"] for row in found] == ["call_4", "call_5", "call_6"]


@pytest.mark.parametrize("policy", ["salvage", "standard", "strict"])
def test_a_row_is_what_parse_returns(policy: Any) -> None:
    rows = [chat(1), cut_chat(), failed_chat(), BAD, b"", anthropic()]
    columns = (*streamweld.arrow.COLUMNS, "response_id", "model", "created", "raw_finish_reason", "refusal", "choices")
    found = streamweld.arrow.parse(table(rows), policy=policy, columns=columns).to_pylist()
    for body, row in zip(rows, found, strict=True):
        _compare(body, row, policy)


def _parsed(body: bytes, policy: Any) -> tuple[streamweld.Response, StreamError | None]:
    try:
        return streamweld.parse(body, policy=policy), None
    except StreamError as error:
        return error.partial or streamweld.Response(), error


def _compare(body: bytes, row: dict[str, Any], policy: Any) -> None:
    response, raised = _parsed(body, policy)
    assert row["text"] == response.text
    assert row["reasoning"] == response.reasoning
    assert row["completeness"] == response.completeness
    assert row["finish_reason"] == response.finish_reason
    assert row["dialect"] == response.dialect
    assert [(c["call_id"], c["name"], c["arguments"], c["state"], c["reason"]) for c in row["tool_calls"]] == [
        (c.call_id, c.name, c.arguments, c.state, c.reason) for c in response.tool_calls
    ]
    dispatchable = {call.part for call in response.dispatchable_calls}
    assert {call["part"] for call in row["tool_calls"] if call["dispatchable"]} == dispatchable
    assert [(d["code"], d["byte_offset"], d["event_ordinal"], d["detail"]) for d in row["diagnostics"]] == [
        (d.code, d.byte_offset, d.event_ordinal, d.detail) for d in response.diagnostics
    ]
    if response.usage is None:
        assert row["usage"] is None
    else:
        counts = {name: count for name, count in row["usage"].items() if name != "raw"}
        assert counts == {name: getattr(response.usage, name) for name in counts}
    if "model" in row:
        assert (row["response_id"], row["model"], row["created"]) == (response.id, response.model, response.created)
        assert row["choices"] == len(response.choices)
        assert row["refusal"] == response.refusal
    if raised is not None:
        error = row["error"]
        assert (error["type"], error["rule"], error["message"]) == (type(raised).__name__, raised.rule, str(raised))
        assert (error["byte_offset"], error["event_ordinal"]) == (
            raised.byte_offset or 0,
            raised.event_ordinal or 0,
        ) or (error["byte_offset"] is None)
        assert error["retryable"] == raised.retryable
    elif response.error is not None:
        assert row["error"]["type"] == "UpstreamError"
        assert (row["error"]["code"], row["error"]["kind"]) == (response.error.code, response.error.kind)
    elif response.completeness == "truncated":
        (cut,) = [found for found in response.diagnostics if found.code == "truncated"]
        error = row["error"]
        assert (error["type"], error["rule"], error["detail"]) == ("TruncatedStream", "truncated", cut.detail)
        assert (error["byte_offset"], error["event_ordinal"]) == (cut.byte_offset, cut.event_ordinal)
    else:
        assert row["error"] is None


def test_a_truncated_row_has_the_error_that_standard_raises() -> None:
    body = cut_chat()
    for end in (0, 20, body.index(b"\n\n") + 2, len(body)):
        (row,) = streamweld.arrow.parse(table([body[:end]]), policy="salvage").to_pylist()
        with pytest.raises(streamweld.TruncatedStream) as caught:
            streamweld.parse(body[:end], dialect="chat")
        expected = caught.value
        assert row["error"]["type"] == "TruncatedStream"
        assert (row["error"]["rule"], row["error"]["detail"]) == ("truncated", expected.where)
        assert (row["error"]["byte_offset"], row["error"]["retryable"]) == (expected.byte_offset, True) == (end, True)


def test_a_truncated_row_without_room_for_its_diagnostic_has_the_error() -> None:
    limits = streamweld.Limits(max_diagnostics=1)
    damaged = b"data: {broken}\n\n" + cut_chat()
    (row,) = streamweld.arrow.parse(table([damaged]), dialect="chat", limits=limits).to_pylist()
    assert [found["code"] for found in row["diagnostics"]] == ["malformed_json"]
    assert (row["completeness"], row["error"]["rule"]) == ("truncated", "truncated")


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("policy", ["salvage", "standard"])
def test_recorded_streams_are_what_parse_returns(folder: str, policy: Any) -> None:
    found = recordings(folder)
    if not found:
        pytest.skip("no recorded streams (STREAMWELD_CORPUS)")
    rows = [recording.body for recording in found]
    read = streamweld.arrow.parse(table(list(rows)), policy=policy, threads=2).to_pylist()
    assert len(read) == len(rows)
    for body, row in zip(rows, read, strict=True):
        _compare(body, row, policy)


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_change_nothing(threads: int) -> None:
    data = table([*bodies(300), None, *bodies(1, 999), cut_chat()])
    one = streamweld.arrow.parse(data, keep=["id"])
    many = streamweld.arrow.parse(data, keep=["id"], threads=threads)
    assert many.equals(one)
    assert many.to_pylist()[301]["error"]["rule"] == "not_an_event_stream"
    assert streamweld.arrow.events(data, threads=threads).equals(streamweld.arrow.events(data))


def test_the_output_has_the_kind_of_the_input() -> None:
    data = table([chat(1), chat(2)])
    batch = data.to_batches()[0]
    assert isinstance(streamweld.arrow.parse(data), pa.Table)
    assert isinstance(streamweld.arrow.parse(batch), pa.RecordBatch)
    assert isinstance(streamweld.arrow.parse(batch["body"]), pa.RecordBatch)
    assert isinstance(streamweld.arrow.parse(data["body"]), pa.Table)
    reader = streamweld.arrow.parse(data.to_reader())
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.read_all().equals(streamweld.arrow.parse(data))
    assert streamweld.arrow.parse(data.slice(0, 0)).num_rows == 0
    assert streamweld.arrow.parse(data.to_batches()[0].to_struct_array()).num_rows == 2


def test_a_reader_is_read_batch_by_batch() -> None:
    taken: list[int] = []

    def batches() -> Any:
        for number in range(4):
            taken.append(number)
            yield table([chat(number)]).to_batches()[0]

    source = pa.RecordBatchReader.from_batches(table([]).schema, batches())
    reader = streamweld.arrow.parse(source)
    assert taken == []
    assert reader.read_next_batch().to_pylist()[0]["tool_calls"][0]["call_id"] == "call_0"
    assert len(taken) < 4
    assert reader.read_all().num_rows == 3


def test_a_null_struct_is_a_null_row() -> None:
    whole = pa.StructArray.from_arrays(
        [pa.array([1, 2]), pa.array([chat(1), chat(2)])], ["id", "body"], mask=pa.array([False, True])
    )
    found = streamweld.arrow.parse(whole, keep=["id"]).to_pylist()
    assert [(row["id"], row["text"]) for row in found] == [(1, "Héllo"), (None, None)]


KEPT: dict[str, Any] = {
    "timestamp": pa.array([dt.datetime(2026, 1, 1)] * 3, pa.timestamp("us", "Europe/Berlin")),  # noqa: DTZ001
    "decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("2.5")], pa.decimal128(10, 2)),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "list": pa.array([[1], None, [2, 3]]),
    "list view": pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())),
    "struct": pa.array([{"x": 1}, None, {"x": 2}]),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    "string view": pa.array(["longer than twelve bytes", None, "x"], pa.string_view()),
    "null": pa.nulls(3),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"])),
    "extension": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"] * 3, pa.binary(16))),
    "union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 2]), pa.array(["x"])]
    ),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("start", [0, 1])
def test_kept_columns_pass_through(name: str, start: int) -> None:
    data = pa.table({"kept": KEPT[name], "body": [chat(1), None, anthropic()]}).slice(start)
    parsed = streamweld.arrow.parse(data, keep=["kept"])
    assert parsed.schema.field("kept").type == KEPT[name].type
    expected = KEPT[name].to_pylist()[start:]
    assert parsed["kept"].to_pylist() == expected
    of_events = streamweld.arrow.events(data, keep=["kept"])
    assert of_events.schema.field("kept").type == KEPT[name].type
    rows = set(of_events["row"].to_pylist())
    assert rows == {row for row in range(3 - start) if row + start != 1}
    for kept, row in zip(of_events["kept"].to_pylist(), of_events["row"].to_pylist(), strict=True):
        assert kept == expected[row]


def test_the_schema_is_what_parse_makes() -> None:
    made = streamweld.arrow.parse(table([chat(1)]))
    described = streamweld.arrow.schema()
    assert pa.schema(described) == made.schema
    assert tuple(described.names) == streamweld.arrow.COLUMNS
    assert described.version == "1"
    assert made.schema.metadata == {b"streamweld:schema": b"1"}
    assert pa.schema(streamweld.arrow.events_schema()) == streamweld.arrow.events(table([chat(1)])).schema
    assert streamweld.arrow.spark_ddl(["text", "usage", "choices"]) == (
        "text STRING, usage STRUCT<input_tokens: BIGINT, output_tokens: BIGINT, total_tokens: BIGINT, "
        "cached_input_tokens: BIGINT, cache_write_tokens: BIGINT, reasoning_tokens: BIGINT, raw: STRING>, choices INT"
    )


def test_the_schema_of_version_1() -> None:
    """A changed column requires a new version. Change `VERSION` together with this test."""
    assert streamweld.arrow.schema().ddl == (
        "dialect STRING, completeness STRING, finish_reason STRING, text STRING, reasoning STRING, "
        "tool_calls ARRAY<STRUCT<part: INT, call_id: STRING, item_id: STRING, name: STRING, arguments: STRING, "
        "state: STRING, reason: STRING, raw_arguments: STRING, aliases: ARRAY<STRING>, custom: BOOLEAN, "
        "dispatchable: BOOLEAN>>, "
        "usage STRUCT<input_tokens: BIGINT, output_tokens: BIGINT, total_tokens: BIGINT, cached_input_tokens: BIGINT, "
        "cache_write_tokens: BIGINT, reasoning_tokens: BIGINT, raw: STRING>, "
        "diagnostics ARRAY<STRUCT<code: STRING, severity: STRING, byte_offset: BIGINT, event_ordinal: BIGINT, "
        "part: INT, detail: STRING>>, "
        "error STRUCT<type: STRING, rule: STRING, message: STRING, detail: STRING, code: STRING, kind: STRING, "
        "retryable: BOOLEAN, byte_offset: BIGINT, event_ordinal: BIGINT>"
    )


def test_events_are_those_of_a_parser() -> None:
    rows = [chat(1), None, anthropic(), cut_chat()]
    found = streamweld.arrow.events(table(rows), keep=["id"], policy="standard").to_pylist()
    assert [row["id"] for row in found] == [row["row"] for row in found]
    for number, body in enumerate(rows):
        mine = [row for row in found if row["row"] == number]
        assert [row["position"] for row in mine] == list(range(len(mine)))
        if body is None:
            assert mine == []
            continue
        parser = streamweld.StreamParser(policy="standard")
        events = parser.feed(body)
        raised: StreamError | None = None
        try:
            events += parser.close()
        except StreamError as error:
            raised = error
            events += error.events
        if raised is not None:
            last = mine.pop()
            assert (last["type"], last["code"], last["message"]) == ("error", raised.rule, str(raised))
        assert [row["type"] for row in mine] == [event.type for event in events]
        for row, event in zip(mine, events, strict=True):
            values = event.to_dict()
            if event.type == "response_started":
                values["response_id"] = values.pop("id")
            for name, value in values.items():
                if name in row and name not in ("raw", "usage", "provider_metadata", "annotations", "aliases"):
                    assert row[name] == value, (name, event)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"body": "bodyx"}, 'body: the input has no column "bodyx"; its columns are id, body'),
        ({"body": "id"}, 'column "id" has the type Int64; bodies are read from binary or UTF-8 columns'),
        ({"keep": ["nope"]}, 'keep: the input has no column "nope"; its columns are id, body'),
        ({"keep": "id"}, "keep='id': it must be a sequence of names, such as ['id']"),
        ({"keep": ["id", "id"]}, "keep: 'id' is listed twice"),
        ({"columns": ["texts"]}, 'columns: there is no column "texts"'),
        ({"columns": ["text", "text"]}, 'columns: "text" is listed twice'),
        ({"columns": []}, "columns=(): the output would have no column"),
        ({"threads": 0}, "threads=0: it must be a whole number from 1 to 256"),
        ({"threads": True}, "threads=True: it must be a whole number from 1 to 256"),
        ({"dialect": "chats"}, "dialect='chats': it must be one of auto, chat"),
    ],
)
def test_a_wrong_option_is_a_usage_error(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        streamweld.arrow.parse(table([chat(1)]), **options)
    assert sentence in str(caught.value)


def test_what_is_not_arrow_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="data is a list, which has no Arrow PyCapsule interface"):
        streamweld.arrow.parse([chat(1)])  # type: ignore[arg-type]


def test_a_kept_column_cannot_hide_one_of_the_output() -> None:
    with pytest.raises(UsageError, match='keep: the output has a column "text" of its own'):
        streamweld.arrow.parse(pa.table({"text": ["a"], "body": [chat(1)]}), keep=["text"])


def test_a_reader_that_fails_keeps_its_error() -> None:
    def batches() -> Any:
        yield table([chat(1)]).to_batches()[0]
        raise OSError("disk on fire")

    source = pa.RecordBatchReader.from_batches(table([]).schema, batches())
    reader = streamweld.arrow.parse(source)
    assert reader.read_next_batch().num_rows == 1
    with pytest.raises(Exception, match="disk on fire"):
        reader.read_next_batch()


def test_the_limits_are_those_of_a_stream() -> None:
    """300 MB in one event are rejected once the limit is exceeded, and the rows around it are not affected."""
    long = b'data: {"choices":[{"delta":{"content":"' + b"x" * 300_000_000 + b'"}}]}\n\n'
    batch = pa.record_batch({"body": pa.array([chat(1), long, chat(2)], pa.large_binary())})
    read = streamweld.arrow.parse(batch)
    # The file is read in several parts because of its size, but returned as one batch.
    assert isinstance(read, pa.RecordBatch)
    found = read.to_pylist()
    assert [row["text"] for row in found] == ["Héllo", "", "Héllo"]
    assert found[1]["error"]["type"] == "LimitExceeded"
    assert found[1]["error"]["rule"] == "limit_max_event_bytes"
    capped = streamweld.arrow.parse(table([chat(1)]), limits=Limits(max_stream_bytes=100)).to_pylist()
    assert capped[0]["error"]["rule"] == "limit_max_stream_bytes"


def test_other_threads_run_while_a_batch_is_read() -> None:
    data = table([chat(number) for number in range(60_000)])
    ticks: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    streamweld.arrow.parse(data)
    end = time.perf_counter()
    over.set()
    thread.join()
    inside = [at for at in ticks if start < at < end]
    # If the GIL were held, the other thread could not run between start and end. How often it runs
    # depends on the machine.
    assert inside, end - start


def test_nothing_is_kept_after_a_batch() -> None:
    data = table([chat(number) for number in range(1000)])
    streamweld.arrow.parse(data)
    gc.collect()
    before = pa.total_allocated_bytes()
    for _ in range(20):
        streamweld.arrow.parse(data)
    gc.collect()
    assert pa.total_allocated_bytes() <= before


def test_pyarrow_is_not_needed() -> None:
    code = (
        "import sys, streamweld.arrow\n"
        "assert not {'pyarrow', 'numpy'} & set(sys.modules)\n"
        "print(streamweld.arrow.schema(['text']).ddl)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "text STRING\n"


def test_the_pure_backend_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamweld.arrow.backend", "pure")
    for call in (streamweld.arrow.schema, lambda: streamweld.arrow.parse(table([chat(1)]))):
        with pytest.raises(UsageError, match=r"streamweld\.arrow needs the native backend.*unset that variable"):
            call()
    monkeypatch.setattr("streamweld.arrow.extension", lambda: None)
    for call in (streamweld.arrow.schema, lambda: streamweld.arrow.parse(table([chat(1)]))):
        with pytest.raises(UsageError, match=r"native backend.*pip install --only-binary streamweld .*FILE\.jsonl"):
            call()
