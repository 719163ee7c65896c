"""Tools for testing code that reads LLM streams: build streams, break them as gateways do, record and replay them.

    stream = build("chat", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')])
    for broken in every_operator(stream):
        with BrokenGateway([broken]) as gateway:
            ...  # run an agent against gateway.url, and compare the result with broken.expected

`streamweld.testing.plugin` is a pytest plugin with the fixture `broken_gateway`. This package does not need an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from streamweld.testing.builders import build, random_parts
    from streamweld.testing.compare import differences
    from streamweld.testing.gateway import BrokenGateway, Reply, Request
    from streamweld.testing.mutate import (
        ASPECTS,
        OPERATORS,
        Operator,
        chain,
        every_operator,
        operators_for,
        random_chain,
    )
    from streamweld.testing.recording import Piece, Recorder, Recording, read_recording, write_recording
    from streamweld.testing.replay import ReplayTransport
    from streamweld.testing.stream import Call, Expected, Frame, Reasoning, Refusal, Stream, Text, Tokens

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


# The modules are imported on first use, because pytest loads this package's plugin in every run, and `repair(record=…)`
# needs only the module `recording`.
_MODULES: Final = ("builders", "compare", "gateway", "mutate", "recording", "replay", "stream")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            found = import_module(f"{__name__}.{module}")
            if name in found.__all__:
                globals()[name] = getattr(found, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
