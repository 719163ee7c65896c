"""The Response: the fold of closing events, its fields, and its immutability."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from streamweld import StreamParser
from streamweld import stream as stream_module
from streamweld.errors import TruncatedStream, UpstreamError
from streamweld.events import (
    Diagnostic,
    Event,
    File,
    Finished,
    ProviderItem,
    ReasoningDone,
    RefusalDone,
    ResponseStarted,
    Source,
    TextDelta,
    TextDone,
    TextStarted,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    ToolResultDelta,
    Unknown,
    UpstreamErrorEvent,
    Usage,
)
from streamweld.response import Choice, Response

from tests.support.harness import read
from tests.support.vector_files import chunks_of, label, load

STARTED = ResponseStarted("r1", "m1", 1763712000, {"provider": "x"})
REASONING = ReasoningDone(0, "Hm. ", "raw")
TEXT = TextDone(1, "Hello ")
CALL = ToolCall(2, "call_1", "f", '{"a":1}', "complete")
SERVER = ToolCall(3, "call_2", "search", "{}", "complete", provider_executed=True)
RESULT = ToolResult(4, "call_2", {"hits": 3})
MORE = TextDone(5, "world", ({"url": "u"},))
CUT = ToolCall(6, "call_3", "g", '{"a":', "incomplete")
SOURCE = Source(7, url="https://example.org")
FILE = File(8, media_type="image/png", data="AAAA")
REFUSAL = RefusalDone(9, "No.")
KEPT = ProviderItem(10, "compaction", {"type": "compaction", "id": "cmp_1"}, "cmp_1")
PARTS = [REASONING, TEXT, CALL, SERVER, RESULT, MORE, CUT, SOURCE, FILE, REFUSAL, KEPT]
USAGE = Usage(1, 2, 3, raw={"total_tokens": 3})
FINISHED = Finished("tool_calls", "tool_use", 0, {"logprobs": []})
NOTE = Diagnostic("unstable_id", "warning", 5, 1, 2, "call_9")
ERROR = UpstreamErrorEvent("500", "server_error", "boom", b"{}")


def whole() -> Response:
    return Response([STARTED, *PARTS, USAGE, FINISHED], "complete", [NOTE], 2, dialect="chat")


def test_fields() -> None:
    response = whole()
    assert (response.id, response.model, response.created) == ("r1", "m1", 1763712000)
    assert response.provider_metadata == {"provider": "x"}
    assert response.text == "Hello world"
    assert response.reasoning == "Hm. "
    assert response.refusal == "No."
    assert response.items == tuple(PARTS)
    assert response.tool_calls == (CALL, CUT)
    assert response.dispatchable_calls == (CALL,)
    assert response.server_tool_calls == (SERVER,)
    assert (response.finish_reason, response.raw_finish_reason) == ("tool_calls", "tool_use")
    assert response.usage is USAGE
    assert response.completeness == "complete"
    assert response.diagnostics == (NOTE,)
    assert response.diagnostics_dropped == 2
    assert response.error is None
    (choice,) = response.choices
    assert choice.index == 0
    assert choice.provider_metadata == {"logprobs": []}
    for name in ("text", "reasoning", "refusal", "items", "tool_calls", "dispatchable_calls", "server_tool_calls"):
        assert getattr(choice, name) == getattr(response, name)


def test_nothing_came() -> None:
    response = Response()
    assert (response.id, response.model, response.created, response.usage, response.error) == (None,) * 5
    assert (response.text, response.reasoning, response.refusal) == ("", "", "")
    assert (response.items, response.tool_calls, response.dispatchable_calls, response.choices) == ((),) * 4
    assert (response.finish_reason, response.raw_finish_reason) == (None, None)
    assert (response.completeness, response.diagnostics) == ("open", ())
    assert json.loads(json.dumps(response.to_dict()))["choices"] == []
    assert repr(response) == ("Response(id=None, model=None, finish_reason=None, completeness='open', diagnostics=0)")


def test_the_lowest_choice_stands_on_the_response() -> None:
    response = Response([TextDone(3, "two", (), 2), TextDone(7, "one", (), 1), Finished("stop", "stop", 2)])
    assert [choice.index for choice in response.choices] == [1, 2]
    assert response.text == "one"
    assert response.finish_reason is None
    assert response.choices[1].finish_reason == "stop"
    assert "choices=2" in repr(response)


def test_items_stand_in_order_of_first_sight() -> None:
    assert Response([MORE, CALL, REASONING]).items == (REASONING, CALL, MORE)


def test_only_closing_events_count() -> None:
    noise: list[Event] = [TextStarted(1), TextDelta(1, "Hel"), ToolCallDelta(2, "{"), NOTE, Unknown("x", b"")]
    noise.append(ToolResultDelta(4, "call_2", {"delta": "x"}))
    response = Response([*noise, STARTED, *PARTS, *noise, USAGE, FINISHED], "complete", [NOTE], 2, dialect="chat")
    assert response == whole()


def test_a_text_that_was_taken_back_never_was() -> None:
    response = Response([TextDone(0, ""), RefusalDone(1, ""), ReasoningDone(2, "", "raw"), TEXT])
    assert response.items == (TEXT,)
    kept = [
        TextDone(0, "", ({"url": "u"},)),
        ReasoningDone(1, "", "redacted", encrypted_content="gAAA"),
        ReasoningDone(2, "", "thinking", signature="sig"),
        TextDone(3, "", provider_metadata={"k": 1}),
    ]
    assert response.items != Response(kept).items == tuple(kept)


def test_a_snapshot_leaves_out_what_was_taken_back() -> None:
    signed = ReasoningDone(2, "", "raw", signature="s")
    named = ReasoningDone(3, "", "raw", item_id="rs_1")
    noted = TextDone(4, "", (), 0, {"a": 1})
    cited = TextDone(5, "", ({"url": "u"},))
    kept = Unknown("x", b"{}")
    of_other = TextDone(9, "b", choice=1)
    finished = Finished("stop", "stop", 1)
    response = Response(
        (
            TextDone(0, ""),
            TextDone(0, "", (), 0, {}),
            ReasoningDone(1, "", "raw", None, "", ""),
            RefusalDone(1, ""),
            finished,
            signed,
            named,
            TextStarted(4, "msg_1"),
            TextStarted(5),
            TextStarted(7, "msg_taken_back"),
            TextStarted(8, "msg_of_no_choice", 2),
            noted,
            cited,
            kept,
            of_other,
        ),
        ordered=True,
    )
    first, second = response.choices
    assert (first.index, first.items, first.finish_reason) == (0, (signed, named, noted, cited, kept), None)
    assert first.item_ids == {3: "rs_1", 4: "msg_1"}
    assert (second.index, second.items, second.finish_reason) == (1, (of_other,), "stop")
    assert pickle.loads(pickle.dumps(response)) == response


def test_a_response_shows_the_moment_at_which_it_was_taken(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A response is the same whether it is read at once, after more input, after the end, or after its parser was
    deleted.
    """
    monkeypatch.setattr(stream_module, "backend", backend)
    parser = StreamParser(dialect="chat")
    parser.feed(b'data: {"id":"c1","model":"m","choices":[{"delta":{"content":"Hel"}}]}\n\n')
    early = parser.response
    parser.feed(b'data: {"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}\n\n')
    parser.feed(b"data: [DONE]\n\n")
    late = parser.response
    parser.close()
    ended, again = parser.response, parser.response
    del parser
    assert (early.text, early.completeness, early.finish_reason) == ("Hel", "open", None)
    assert early.dialect == ended.dialect == "chat"
    assert (ended.text, ended.completeness, ended.finish_reason) == ("Hello", "complete", "stop")
    assert ended.choices == (Choice(0, (TextDone(0, "Hello"),), Finished("stop", "stop")),)
    assert (ended.diagnostics, ended.diagnostics_dropped, ended.error, ended.usage) == ((), 0, None, None)
    assert ended == late == again == pickle.loads(pickle.dumps(again)) != early


def test_a_fault_carries_what_was_read_before(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "backend", backend)
    parser = StreamParser(dialect="chat")
    parser.feed(b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n')
    with pytest.raises(TruncatedStream) as raised:
        parser.close()
    partial = raised.value.partial
    assert partial is not None
    assert (partial.text, partial.completeness) == ("Hel", "truncated")
    assert partial == parser.response
    assert [note.code for note in partial.diagnostics] == [note.code for note in parser.diagnostics]


def test_threads_may_read_one_response(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The members of a response are built when one of them is first read, in any thread."""
    monkeypatch.setattr(stream_module, "backend", backend)
    for number in range(50):
        parser = StreamParser(dialect="chat")
        parser.feed(b'data: {"choices":[{"delta":{"content":"%d"},"finish_reason":"stop"}]}\n\n' % number)
        parser.feed(b"data: [DONE]\n\n")
        parser.close()
        responses = [parser.response] * 4
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda response: response.text, responses)) == [str(number)] * 4


def test_the_last_usage_and_error_hold() -> None:
    response = Response([USAGE, ERROR, Usage(total_tokens=9)])
    assert response.usage == Usage(total_tokens=9)
    assert response.error is ERROR
    assert "error='boom'" in repr(response)


@pytest.mark.parametrize("name", [name for name in dir(Response) if not name.startswith("_") and name != "to_dict"])
def test_nothing_can_be_set(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(whole(), name, None)


def test_sequences_are_tuples_and_attributes_are_fixed() -> None:
    response = whole()
    for name in ("items", "tool_calls", "dispatchable_calls", "server_tool_calls", "choices", "diagnostics"):
        assert type(getattr(response, name)) is tuple
        assert type(getattr(response, name)) is tuple
    with pytest.raises(AttributeError):
        response.colour = "red"  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="unhashable"):
        hash(response)
    with pytest.raises(TypeError, match="unhashable"):
        hash(response.choices[0])


def test_equality() -> None:
    assert whole() == whole()
    assert whole().choices[0] == Choice(0, PARTS, FINISHED)
    assert whole() != Response([STARTED, *PARTS, USAGE, FINISHED], "assumed", [NOTE], 2)
    assert whole() != Response([STARTED, *PARTS[1:], USAGE, FINISHED], "complete", [NOTE], 2)
    assert whole() != "whole"
    assert whole().choices[0] != "choice"


def test_pickle() -> None:
    for response in (Response(), whole(), Response([ERROR], "truncated")):
        again = pickle.loads(pickle.dumps(response))
        assert again == response
        assert repr(again) == repr(response)
    assert pickle.loads(pickle.dumps(whole().choices[0])) == whole().choices[0]


def test_to_dict_is_json() -> None:
    made = whole().to_dict()
    assert json.loads(json.dumps(made)) == made
    assert list(made) == [
        *("id", "model", "created", "dialect", "completeness", "choices", "usage", "error", "diagnostics"),
        *("diagnostics_dropped", "provider_metadata"),
    ]
    (choice,) = made["choices"]
    assert choice["text"] == "Hello world"
    assert [item["type"] for item in choice["items"]] == [item.type for item in PARTS]
    assert choice["item_ids"] == {}
    (known,) = Response([TextStarted(0, "msg_1"), TextDone(0, "Hello")]).to_dict()["choices"]
    assert known["item_ids"] == {"0": "msg_1"}
    assert made["usage"]["raw"] == {"total_tokens": 3}
    assert Response([ERROR]).to_dict()["error"]["message"] == "boom"


def test_repr_is_short() -> None:
    assert repr(Response([TextDone(0, "x" * 1000)])) == (
        f"Response(id=None, model=None, text='{'x' * 59}…', finish_reason=None, completeness='open', diagnostics=0)"
    )
    assert repr(Choice(1, [TEXT], FINISHED)) == "Choice(index=1, text='Hello ', finish_reason='tool_calls')"


@pytest.mark.parametrize("vector", load("chat"), ids=label)
def test_a_snapshot_folds_to_what_all_events_fold_to(backend: str, vector: dict[str, Any]) -> None:
    """Once the stream has ended, a snapshot equals the fold of all events. After an exception, only the snapshot has
    open parts.
    """
    outcome = read(backend, chunks_of(vector), vector.get("options"))
    response = outcome.response
    folded = Response(
        outcome.events,
        response.completeness,
        response.diagnostics,
        response.diagnostics_dropped,
        dialect=response.dialect,
    )
    if outcome.error is None or isinstance(outcome.error, TruncatedStream | UpstreamError):
        assert folded == response
    else:
        assert folded.items == response.items[: len(folded.items)]


LATE_STARTS = {
    "chat": (
        {"id": "", "model": "", "choices": [{"index": 0, "delta": {"content": "a"}}]},
        {"id": "r1", "model": "m1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ),
    "gemini": (
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
        {"responseId": "r1", "modelVersion": "m1", "candidates": [{"finishReason": "STOP"}]},
    ),
    "responses": (
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.completed", "response": {"id": "r1", "model": "m1", "status": "completed", "output": []}},
    ),
    "anthropic": (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}},
        {"type": "message_start", "message": {"id": "r1", "model": "m1", "content": []}},
    ),
}


@pytest.mark.parametrize("dialect", LATE_STARTS)
def test_id_and_model_of_a_later_payload(backend: str, dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "backend", backend)
    parser = StreamParser(dialect=dialect)  # type: ignore[arg-type]
    for payload in LATE_STARTS[dialect]:
        parser.feed(b"data: " + json.dumps(payload).encode() + b"\n\n")
    assert (parser.response.id, parser.response.model) == ("r1", "m1")
