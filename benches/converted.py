"""Reads a Responses or Messages stream by its published rules, to check the output of converters.

This module does not depend on streamweld or on a converter. Texts and calls are assembled from deltas, by item id
(Responses) or block index (Messages), as in the official clients. Values that the stream repeats must be equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benches.shapes.chat import Shape


@dataclass(slots=True)
class Converted:
    """The contents of the stream, its contradictions, and violations of the event order of its dialect."""

    texts: list[str] = field(default_factory=list[str])
    calls: list[list[str]] = field(default_factory=list[list[str]])
    faults: list[str] = field(default_factory=list[str])
    ended: bool = False

    def fault(self, what: str) -> None:
        """Record a fault, once."""
        if what not in self.faults:
            self.faults.append(what)


def events_of(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the payloads of the frames, except the end marker."""
    for frame in body.split(b"\n\n"):
        data = frame[frame.find(b"data: ") + 6 :]
        if data and data != b"[DONE]":
            yield orjson.loads(data)


def verdict(body: bytes, shape: Shape, target: str) -> str:
    """Return `right`, or `wrong: …` with every difference from the source."""
    result = _READERS[target](body)
    found: list[str] = [] if result.ended else ["no end"]
    if "".join(result.texts) != shape.text:
        found.append("text")
    for at, name in enumerate(("call ids", "names", "arguments")):
        if [call[at] for call in result.calls] != [call[at] for call in shape.calls]:
            found.append(name)
    found += result.faults
    return f"wrong: {', '.join(found)}" if found else "right"


def _responses(body: bytes) -> Converted:
    result = Converted()
    calls: dict[str, list[str]] = {}
    for event in events_of(body):
        kind = event["type"]
        if kind == "response.output_text.delta":
            result.texts.append(event["delta"])
        elif kind == "response.output_text.done" and event["text"] != "".join(result.texts):
            result.fault("output_text.done differs")
        elif kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            item = event["item"]
            calls[item["id"]] = [item["call_id"], item["name"], item["arguments"]]
        elif kind == "response.function_call_arguments.delta":
            if event["item_id"] not in calls:
                result.fault("deltas of an item that was not added")
                continue
            calls[event["item_id"]][2] += event["delta"]
        elif kind == "response.function_call_arguments.done":
            if event["arguments"] != calls.get(event["item_id"], ["", "", ""])[2]:
                result.fault("arguments.done differs")
        elif kind == "response.completed":
            result.ended = True
            output = event["response"]["output"]
            again = [[item["call_id"], item["name"], item["arguments"]] for item in output if "call_id" in item]
            message_texts = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
            if again != list(calls.values()) or "".join(message_texts) != "".join(result.texts):
                result.fault("completed.output differs")
    result.calls = list(calls.values())
    return result


def _messages(body: bytes) -> Converted:
    """Read blocks in sequence, each with a start, deltas and a stop:
    https://docs.anthropic.com/en/docs/build-with-claude/streaming, "Event types"."""
    result = Converted()
    blocks: dict[int, list[str]] = {}
    running: set[int] = set()
    for event in events_of(body):
        kind = event["type"]
        if kind == "content_block_start":
            block = event["content_block"]
            if running:
                result.fault("blocks overlap")
            running.add(event["index"])
            blocks[event["index"]] = [block.get("id", ""), block.get("name", ""), block.get("text", "")]
        elif kind == "content_block_delta":
            if event["index"] not in running:
                result.fault("deltas of a block that is not open")
            delta = event["delta"]
            blocks[event["index"]][2] += delta["text"] if delta["type"] == "text_delta" else delta["partial_json"]
        elif kind == "content_block_stop":
            if event["index"] not in running:
                result.fault("a stop of a block that is not open")
            running.discard(event["index"])
        elif kind == "message_stop":
            result.ended = True
            if running:
                result.fault("blocks left open")
    result.texts = [block[2] for block in blocks.values() if not block[0]]
    result.calls = [block for block in blocks.values() if block[0]]
    return result


_READERS = {"responses": _responses, "anthropic": _messages}
