"""streamweld as a contender, for one backend: the events of a feed, the final values without events, and a converted
stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamweld
from streamweld._backend import load, load_converter
from streamweld.convert import StreamConverter
from streamweld.events import TextDelta, TextDone, ToolCall
from streamweld.options import Limits, Policy, to_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld._backend import Backend, Converter
    from streamweld.convert import Target
    from streamweld.options import Dialect

    from benches.rivals import Reader, Result


def events_per_feed(
    backend: Backend,
    dialect: str = "chat",
    *,
    policy: Policy | None = None,
    tools: Callable[[], Mapping[str, object]] | None = None,
) -> Reader:
    """Return a reader that feeds the reads and accesses every event, as a consumer does.

    `tools` returns the tools of the next request. `StreamParser` resolves options with tools for each stream, and so
    does the reader.
    """
    make = load(backend)
    usual = None if tools is not None else to_config(policy or Policy(), Limits())

    def read(reads: list[bytes]) -> Result:
        parser = make(dialect, usual or to_config(policy or Policy(), Limits(), tools=tools and tools()))
        text: list[str] = []
        calls: list[tuple[str, str, str]] = []
        for chunk in reads:
            for event in parser.feed(chunk):
                kind = type(event)
                if kind is TextDelta:
                    text.append(event.text)
                elif kind is ToolCall:
                    calls.append((event.call_id, event.name, event.arguments))
        parser.close()
        return "".join(text), calls

    return read


def final_values(backend: Backend, dialect: str = "chat") -> Reader:
    """Return a reader that works like `parse(body)`: no event objects, and the authoritative values at the end."""
    make = load(backend)
    config = to_config(Policy(), Limits())

    def read(reads: list[bytes]) -> Result:
        parser = make(dialect, config)
        for chunk in reads:
            parser.feed_silent(chunk)
        parser.close_silent()
        events = parser.snapshot()[0]
        text = "".join(event.text for event in events if type(event) is TextDone)
        return text, [(event.call_id, event.name, event.arguments) for event in events if type(event) is ToolCall]

    return read


def converted(backend: Backend, source: Dialect, target: Target) -> Callable[[list[bytes]], bytes]:
    """Return a function that converts a list of reads and returns the bytes of the target.

    It uses `StreamConverter` for the backend of this process, and the internal converter class for the other backend.
    """
    config = to_config(Policy(), Limits(), seed="bench")
    options = {
        "prefix": "bench",
        "hold_arguments": False,
        "include_usage": True,
        "reasoning_events": "openai",
        "cut_ending": "incomplete",
    }

    def make() -> Converter | StreamConverter:
        if backend == streamweld.backend:
            return StreamConverter(source=source, target=target, seed="bench")
        return load_converter(backend)(source, target, config, options)

    def run(reads: list[bytes]) -> bytes:
        converter = make()
        written = [converter.feed(chunk) for chunk in reads]
        written.append(converter.close())
        return b"".join(written)

    return run
