"""Shapes of Responses streams, as OpenAI sends them: long item ids, numbered events, obfuscation.

`obfuscation` consists of random letters that pad each delta to a multiple of sixteen characters, so that no two events
look alike; text deltas have an empty `logprobs`. Texts and items are repeated in their `done` events and at the end.
"""

from __future__ import annotations

import random
import string

import orjson

from benches.shapes.chat import Shape, argument_pieces, text_pieces

_RESPONSE = "resp_07d2265248f742f6016a3c120577cc819eb21c20dbe6ebd5fa"


class _Wire:
    """Numbers the events of one stream and writes their frames."""

    def __init__(self, rng: random.Random) -> None:
        self.events: list[bytes] = []
        self._rng = rng

    def send(self, kind: str, **members: object) -> None:
        event = {"type": kind, **members, "sequence_number": len(self.events)}
        self.events.append(f"event: {kind}\ndata: ".encode() + orjson.dumps(event) + b"\n\n")

    def delta(self, kind: str, item_id: str, output_index: int, piece: str) -> None:
        """Write a delta with its members in OpenAI's order: `type`, then alphabetical."""
        noise = "".join(self._rng.choices(string.ascii_letters + string.digits, k=-len(piece) % 16))
        text = kind == "response.output_text.delta"
        self.send(
            kind,
            **({"content_index": 0} if text else {}),
            delta=piece,
            item_id=item_id,
            **({"logprobs": []} if text else {}),
            obfuscation=noise,
            output_index=output_index,
        )


def _response(
    status: str, output: list[dict[str, object]], tools: list[dict[str, object]], done: bool
) -> dict[str, object]:
    usage = {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 2000,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2050,
    }
    return {
        "id": _RESPONSE,
        "object": "response",
        "created_at": 1763712000,
        "status": status,
        "background": False,
        "completed_at": 1763712010 if done else None,
        "error": None,
        "frequency_penalty": 0.0,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": 4000,
        "max_tool_calls": None,
        "model": "gpt-4.1-mini-2025-04-14",
        "output": output,
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default" if done else "auto",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": tools,
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage if done else None,
        "user": None,
        "metadata": {},
    }


def _begin(rng: random.Random, tools: list[dict[str, object]]) -> _Wire:
    wire = _Wire(rng)
    for kind in ("created", "in_progress"):
        wire.send(f"response.{kind}", response=_response("in_progress", [], tools, done=False))
    return wire


def _end(wire: _Wire, output: list[dict[str, object]], tools: list[dict[str, object]]) -> list[bytes]:
    wire.send("response.completed", response=_response("completed", output, tools, done=True))
    return wire.events


def _tool(name: str) -> dict[str, object]:
    """Return a tool of the request, as a response repeats it."""
    properties = {"path": {"type": "string"}, "content": {"type": "string"}}
    parameters = {"type": "object", "properties": properties, "required": ["path", "content"]}
    return {
        "type": "function",
        "description": "Write a file.",
        "name": name,
        "parameters": {**parameters, "additionalProperties": False},
        "strict": True,
    }


def responses_text(count: int = 2000, seed: int = 3) -> Shape:
    """Return a stream of `count` output_text deltas of about five characters, about 275 bytes per event."""
    rng = random.Random(seed)
    pieces = text_pieces(rng, count)
    text = "".join(pieces)
    item_id = f"msg_{rng.getrandbits(200):050x}"
    place = {"content_index": 0, "item_id": item_id, "output_index": 0}
    item: dict[str, object] = {"id": item_id, "type": "message", "status": "in_progress", "content": []}
    part: dict[str, object] = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    wire = _begin(rng, [])
    wire.send("response.output_item.added", item={**item, "role": "assistant"}, output_index=0)
    wire.send("response.content_part.added", **place, part=part)
    for piece in pieces:
        wire.delta("response.output_text.delta", item_id, 0, piece)
    part = {**part, "text": text}
    item = {**item, "status": "completed", "content": [part], "role": "assistant"}
    wire.send("response.output_text.done", **place, logprobs=[], text=text)
    wire.send("response.content_part.done", **place, part=part)
    wire.send("response.output_item.done", item=item, output_index=0)
    return Shape("responses-text", _end(wire, [item], []), text=text, deltas=count, dialect="responses")


def responses_calls(*, interleaved: bool, calls: int = 4, fragments: int = 250, seed: int = 4) -> Shape:
    """Return parallel function_call items of many short fragments, sequential or interleaved."""
    rng = random.Random(seed)
    tools = [_tool(f"write_file_{index}") for index in range(calls)]
    wire = _begin(rng, tools)
    truth: list[tuple[str, str, str]] = []
    items: list[dict[str, object]] = []
    turns: list[tuple[int, int, str]] = []
    for index in range(calls):
        call_id, name = f"call_{rng.getrandbits(96):024x}", f"write_file_{index}"
        pieces = argument_pieces(rng, fragments)
        truth.append((call_id, name, "".join(pieces)))
        item: dict[str, object] = {"id": f"fc_{rng.getrandbits(200):050x}", "type": "function_call"}
        items.append({**item, "status": "in_progress", "arguments": "", "call_id": call_id, "name": name})
        turns += [(turn, index, piece) for turn, piece in enumerate(pieces)]
    done: dict[int, dict[str, object]] = {}
    last = {index: turn for turn, index, _ in turns}
    for turn, index, piece in sorted(turns, key=lambda turn: turn[:2]) if interleaved else turns:
        item = items[index]
        item_id = str(item["id"])
        if turn == 0:
            wire.send("response.output_item.added", item=item, output_index=index)
        wire.delta("response.function_call_arguments.delta", item_id, index, piece)
        if turn == last[index]:
            whole = truth[index][2]
            done[index] = {**item, "status": "completed", "arguments": whole}
            wire.send("response.function_call_arguments.done", arguments=whole, item_id=item_id, output_index=index)
            wire.send("response.output_item.done", item=done[index], output_index=index)
    events = _end(wire, [done[index] for index in range(calls)], tools)
    name = "responses-interleaved-calls" if interleaved else "responses-tool-calls"
    return Shape(name, events, calls=truth, deltas=len(turns), dialect="responses")


def responses_shapes() -> list[Shape]:
    return [responses_text(), responses_calls(interleaved=False), responses_calls(interleaved=True)]
