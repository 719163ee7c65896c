"""Content that no event contains, in repaired Messages streams that anthropic-python reads over HTTP on loopback.

The vectors are in `tests/vectors/repair/anthropic.json`. What the client must hold is in this file.
"""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from anthropic import Anthropic

from tests.support.backends import using
from tests.support.servers.loopback import loopback
from tests.support.vector_files import chunks_of, load

if TYPE_CHECKING:
    from tests.support.servers.loopback import Loopback

__all__ = ["loopback"]

VECTORS = {vector["name"]: vector for vector in load("repair") if vector["file"] == "anthropic"}


def cited(text: str) -> dict[str, Any]:
    return {
        "type": "web_search_result_location",
        "cited_text": text,
        "url": "https://a.example",
        "title": "T",
        "encrypted_index": "I",
    }


def repaired(body: bytes) -> bytes:
    return sw.convert(body, source="anthropic", target="same", seed="vec")


def read(loopback: Loopback, body: bytes) -> dict[str, Any]:
    """Return the final message of the client, without members that are None."""
    key = loopback.put([body])
    with (
        Anthropic(api_key="none", base_url=f"{loopback.origin}/{key}", max_retries=0) as client,
        client.beta.messages.stream(model="c", max_tokens=64, messages=[{"role": "user", "content": "q"}]) as stream,
    ):
        message = stream.get_final_message()
    loopback.drop(key)
    return message.model_dump(exclude_none=True, warnings=False)


TEXT = {"type": "text", "text": "Hm"}
SEARCHED = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {"type": "web_search_result", "title": "T", "url": "https://a.example", "encrypted_content": "E"},
        ],
    },
    {
        "type": "server_tool_use",
        "id": "srvtoolu_2",
        "name": "bash_code_execution",
        "input": {"command": "x"},
        "caller": {"type": "direct"},
    },
    {
        "type": "bash_code_execution_tool_result",
        "tool_use_id": "srvtoolu_2",
        "content": {
            "type": "bash_code_execution_result",
            "stdout": "1.50é",
            "stderr": "",
            "return_code": 0,
            "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}],
        },
    },
    {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "run", "input": {"a": 1}, "server_name": "srv"},
    {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_1",
        "is_error": False,
        "content": [{"type": "text", "text": "r"}],
    },
    {"type": "text", "text": "Hi"},
]
CITED = {"type": "text", "text": "x", "citations": [cited("a"), cited("b")]}
CONTENT: dict[str, list[dict[str, Any]]] = {
    "results-after-a-faulty-block": [TEXT, *SEARCHED],
    "results-in-a-stream-rewritten-from-its-start": [TEXT, *SEARCHED],
    "citations-after-a-faulty-block": [TEXT, CITED],
    "citations-in-a-stream-rewritten-from-its-start": [TEXT, CITED],
    "a-repair-begins-between-citations": [CITED | {"text": "xy"}],
    "an-unknown-block-after-a-faulty-block": [
        TEXT,
        {"type": "of_tomorrow", "told": [1, 2.5], "deep": {"a b": " c "}},
        {"type": "text", "text": "z"},
    ],
    "a-compaction-after-a-faulty-block": [
        TEXT,
        {"type": "compaction", "content": "sum", "encrypted_content": "E"},
        {"type": "text", "text": "z"},
    ],
}


@pytest.mark.parametrize("name", CONTENT)
def test_the_client_holds_the_blocks(backend: str, loopback: Loopback, name: str) -> None:
    with using(backend):
        made = repaired(b"".join(chunks_of(VECTORS[name])))
    assert read(loopback, made)["content"] == CONTENT[name]


@pytest.mark.parametrize(
    "name", ["the-end-of-the-message-after-a-faulty-block", "the-message-in-a-stream-rewritten-from-its-start"]
)
def test_the_client_holds_the_members_of_the_message(backend: str, loopback: Loopback, name: str) -> None:
    with using(backend):
        made = repaired(b"".join(chunks_of(VECTORS[name])))
    message = read(loopback, made)
    from_start = name.startswith("the-message")
    usage = message["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (3, 9)
    assert usage["server_tool_use"]["web_search_requests"] == 1
    assert usage["output_tokens_details"] == {"thinking_tokens": 4}
    assert usage["iterations"][0]["output_tokens"] == 9
    assert usage.get("service_tier") == ("standard" if from_start else None)
    assert message["container"]["id"] == "c1"
    assert message["stop_sequence"] == "x"
    assert message["stop_details"]["type"] == "refusal"
    assert message["context_management"]["applied_edits"][0]["cleared_tool_uses"] == 2


def frame(kind: str, rest: str) -> bytes:
    return f'event: {kind}\ndata: {{"type":"{kind}",{rest}}}\n\n'.encode()


HEAD = frame("message_start", '"message":{"id":"m","type":"message","role":"assistant","model":"c","content":[]}')


def blocks(number: int, deltas: int) -> bytes:
    start = f'"index":{number},"content_block":{{"type":"of_tomorrow","told":"{"x" * 100}"}}'
    delta = f'"index":{number},"delta":{{"type":"of_tomorrow_delta","more":"{"y" * 1000}"}}'
    return (
        frame("content_block_start", start)
        + frame("content_block_delta", delta) * deltas
        + frame("content_block_stop", f'"index":{number}')
    )


def test_nothing_accumulates_of_what_is_written(backend: str) -> None:
    """Deltas of unknown blocks are not kept in memory. The starts count as text of the response."""
    with using(backend):
        converter = sw.StreamConverter(source="anthropic", target="same")
        converter.feed(HEAD)
        written = 0
        for number in range(20):
            written += len(converter.feed(blocks(number, 10)))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(20, 60):
            written += len(converter.feed(blocks(number, 100)))
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert converter.repaired
    assert written > 4_000_000
    assert grown < 400_000


def test_what_waits_is_bounded(backend: str) -> None:
    """If the first block is never stopped, all others are queued. The queued deltas are bounded, and the loss is
    reported."""
    first = frame("content_block_start", '"index":0,"content_block":{"type":"text","text":""}')
    with using(backend):
        converter = sw.StreamConverter(source="anthropic", target="same")
        converter.feed(HEAD + first)
        for number in range(1, 9):
            converter.feed(blocks(number, 500))
        ends = frame(
            "message_delta", '"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}'
        )
        made = converter.feed(ends + b'event: message_stop\ndata: {"type":"message_stop"}\n\n') + converter.close()
    assert 900_000 < len(made) < 1_400_000
    assert [one.detail for one in converter.diagnostics if one.code == "not_carried"] == ["unknown"]
    assert made.count(b"event: content_block_start\n") == 8
