"""streamweld as a contender, for one backend: a list of events a feed, and the final values without events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._backend import load
from streamweld.events import TextDelta, TextDone, ToolCall
from streamweld.options import Limits, Policy, to_config

if TYPE_CHECKING:
    from streamweld._backend import Backend

    from benches.rivals import Reader, Result


def events_per_feed(backend: Backend, dialect: str = "chat") -> Reader:
    """Feeds the reads and touches every event, as a consumer does."""
    make = load(backend)
    config = to_config(Policy(), Limits())

    def read(reads: list[bytes]) -> Result:
        parser = make(dialect, config)
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
    """What `parse(body)` does: no event objects, the authoritative values at the end."""
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
