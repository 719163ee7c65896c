"""Shapes of Anthropic Messages streams, as Anthropic sends them. This module does not depend on streamweld.

Every event has an `event:` line, and a random number of blanks before its last brace, because Anthropic pads its events
so that their sizes do not reveal their text.
"""

from __future__ import annotations

import random

import orjson

from benches.shapes.chat import Shape, argument_pieces, text_pieces


class _Wire:
    def __init__(self, rng: random.Random) -> None:
        self.events: list[bytes] = []
        self._rng = rng

    def send(self, kind: str, **members: object) -> None:
        payload = orjson.dumps({"type": kind, **members})[:-1] + b" " * self._rng.randrange(16) + b"}"
        self.events.append(f"event: {kind}\ndata: ".encode() + payload + b"\n\n")

    def delta(self, index: int, kind: str, member: str, piece: str) -> None:
        self.send("content_block_delta", index=index, delta={"type": kind, member: piece})


def _begin(rng: random.Random) -> _Wire:
    wire = _Wire(rng)
    usage = {
        "input_tokens": 50,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 4,
        "service_tier": "standard",
        "inference_geo": "not_available",
    }
    wire.send(
        "message_start",
        message={
            "model": "claude-sonnet-4-5-20250929",
            "id": "msg_01PSvJdjd5keNSD63VHjYzex",
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        },
    )
    return wire


def _end(wire: _Wire, reason: str) -> list[bytes]:
    usage = {
        "input_tokens": 50,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 2000,
    }
    wire.send("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    wire.send("message_stop")
    return wire.events


def anthropic_text(count: int = 2000, seed: int = 5) -> Shape:
    """Return a stream of `count` text deltas of about five characters, about 125 bytes per event."""
    rng = random.Random(seed)
    pieces = text_pieces(rng, count)
    wire = _begin(rng)
    wire.send("content_block_start", index=0, content_block={"type": "text", "text": ""})
    wire.send("ping")
    for piece in pieces:
        wire.delta(0, "text_delta", "text", piece)
    wire.send("content_block_stop", index=0)
    return Shape("anthropic-text", _end(wire, "end_turn"), text="".join(pieces), deltas=count, dialect="anthropic")


def anthropic_tool_use(calls: int = 4, fragments: int = 250, seed: int = 6) -> Shape:
    """Return sequential tool_use blocks, as the format requires, each with an empty input_json_delta first."""
    rng = random.Random(seed)
    wire = _begin(rng)
    truth: list[tuple[str, str, str]] = []
    deltas = 0
    for index in range(calls):
        call_id, name = f"toolu_{rng.getrandbits(96):024x}", f"write_file_{index}"
        pieces = argument_pieces(rng, fragments)
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}, "caller": {"type": "direct"}}
        wire.send("content_block_start", index=index, content_block=block)
        for piece in ["", *pieces]:
            wire.delta(index, "input_json_delta", "partial_json", piece)
        wire.send("content_block_stop", index=index)
        truth.append((call_id, name, "".join(pieces)))
        deltas += len(pieces)
    return Shape("anthropic-tool-use", _end(wire, "tool_use"), calls=truth, deltas=deltas, dialect="anthropic")


def anthropic_shapes() -> list[Shape]:
    return [anthropic_text(), anthropic_tool_use()]
