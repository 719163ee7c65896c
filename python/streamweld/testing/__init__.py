"""Test code that reads LLM streams: build them, break them as gateways do, record and replay them.

    stream = build("chat", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')])
    for broken in every_operator(stream):
        with BrokenGateway([broken]) as gateway:
            ...  # run an agent against gateway.url, and compare with broken.expected

`streamweld.testing.plugin` is the pytest plugin with the fixture `broken_gateway`. Needs no extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld.testing.build import build, random_parts
from streamweld.testing.compare import differences
from streamweld.testing.gateway import BrokenGateway, Reply, Request
from streamweld.testing.mutate import ASPECTS, OPERATORS, Operator, chain, operators_for, random_chain
from streamweld.testing.recording import Piece, Recorder, Recording, read_recording, write_recording
from streamweld.testing.replay import ReplayTransport
from streamweld.testing.stream import Call, Expected, Frame, Reasoning, Refusal, Stream, Text, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ASPECTS",
    "OPERATORS",
    "BrokenGateway",
    "Call",
    "Expected",
    "Frame",
    "Operator",
    "Piece",
    "Reasoning",
    "Recorder",
    "Recording",
    "Refusal",
    "ReplayTransport",
    "Reply",
    "Request",
    "Stream",
    "Text",
    "Tokens",
    "build",
    "chain",
    "differences",
    "every_operator",
    "operators_for",
    "random_chain",
    "random_parts",
    "read_recording",
    "write_recording",
]


def every_operator(*streams: Stream, seed: int = 0) -> Iterable[Stream]:
    """Yield one broken stream for each operator that applies to one of these streams: to the first that it applies to.

    Args:
        *streams: conformant streams of one dialect.
        seed: of the operators' random choices.
    """
    for operator in operators_for(streams[0].dialect):
        made = next((made for stream in streams if (made := operator(stream, seed)) is not None), None)
        if made is not None:
            yield made
