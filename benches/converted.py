"""Reads a Responses or Messages stream by its published rules, to check the output of converters.

Independent of streamweld and of any converter. Texts and calls are assembled from deltas, by item id (Responses) or
block index (Messages), as the official clients do; values that the stream repeats must be equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benches.shapes.chat import Shape


@dataclass(slots=True)
class Told:
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
    told = _READERS[target](body)
    found: list[str] = [] if told.ended else ["no end"]
    if "".join(told.texts) != shape.text:
        found.append("text")
    for at, name in enumerate(("call ids", "names", "arguments")):
        if [call[at] for call in told.calls] != [call[at] for call in shape.calls]:
            found.append(name)
    found += told.faults
    return f"wrong: {', '.join(found)}" if found else "right"


def _responses(body: bytes) -> Told:
    told = Told()
    calls: dict[str, list[str]] = {}
    for event in events_of(body):
        kind = event["type"]
        if kind == "response.output_text.delta":
            told.texts.append(event["delta"])
        elif kind == "response.output_text.done" and event["text"] != "".join(told.texts):
            told.fault("output_text.done differs")
        elif kind == "response.output_item.added" and event["item"]["type"] == "function_call":
            item = event["item"]
            calls[item["id"]] = [item["call_id"], item["name"], item["arguments"]]
        elif kind == "response.function_call_arguments.delta":
            if event["item_id"] not in calls:
                told.fault("deltas of an item that was not added")
                continue
            calls[event["item_id"]][2] += event["delta"]
        elif kind == "response.function_call_arguments.done":
            if event["arguments"] != calls.get(event["item_id"], ["", "", ""])[2]:
                told.fault("arguments.done differs")
        elif kind == "response.completed":
            told.ended = True
            output = event["response"]["output"]
            again = [[item["call_id"], item["name"], item["arguments"]] for item in output if "call_id" in item]
            said = [part["text"] for item in output if item["type"] == "message" for part in item["content"]]
            if again != list(calls.values()) or "".join(said) != "".join(told.texts):
                told.fault("completed.output differs")
    told.calls = list(calls.values())
    return told


def _messages(body: bytes) -> Told:
    """Read blocks in sequence, each with a start, deltas and a stop:
    https://docs.anthropic.com/en/docs/build-with-claude/streaming, "Event types"."""
    told = Told()
    blocks: dict[int, list[str]] = {}
    running: set[int] = set()
    for event in events_of(body):
        kind = event["type"]
        if kind == "content_block_start":
            block = event["content_block"]
            if running:
                told.fault("blocks overlap")
            running.add(event["index"])
            blocks[event["index"]] = [block.get("id", ""), block.get("name", ""), block.get("text", "")]
        elif kind == "content_block_delta":
            if event["index"] not in running:
                told.fault("deltas of a block that is not open")
            delta = event["delta"]
            blocks[event["index"]][2] += delta["text"] if delta["type"] == "text_delta" else delta["partial_json"]
        elif kind == "content_block_stop":
            if event["index"] not in running:
                told.fault("a stop of a block that is not open")
            running.discard(event["index"])
        elif kind == "message_stop":
            told.ended = True
            if running:
                told.fault("blocks left open")
    told.texts = [block[2] for block in blocks.values() if not block[0]]
    told.calls = [block for block in blocks.values() if block[0]]
    return told


_READERS = {"responses": _responses, "anthropic": _messages}
