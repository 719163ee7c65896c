"""Builds the closing event of every part in its current state. A `Response` is built from these events.

The state of the assembler is not changed. Parts are in order of first appearance, except that calls are in their final
order relative to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.finish_reason import conclude
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.part.close_calls import in_order
from streamweld.events import Finished

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld.events import Event

__all__ = ["client_calls", "finished_event", "part_events", "shown_calls"]


def shown_calls(choice: Choice) -> list[Call]:
    """Return the calls that have a name, arguments or a final result, in their final order. A call that has none of
    these is not part of the response.
    """
    return [call for call in in_order(choice) if call.outcome is not None or call.name or not call.empty]


def client_calls(choice: Choice) -> list[Call]:
    """Return those calls of `shown_calls` that the client must run, in their final order. Only calls that the client
    must run justify the finish reason `tool_calls`.
    """
    return [call for call in shown_calls(choice) if not call.provider_executed]


def part_events(choices: Iterable[Choice], attached: Mapping[int, Event]) -> list[Event]:
    """Return the closing event of every part of every choice. For a text part with an item id, its start event comes
    first.
    """
    events: list[tuple[int, Event]] = list(attached.items())
    for choice in choices:
        named = [part for part in choice.textual.parts if part.item_id is not None and part.channel == "text"]
        events += [(part.part, part.started(None)) for part in named if not part.void]
        events += [(part.part, part.done()) for part in choice.textual.parts if not part.void]
        calls = [call for call in shown_calls(choice) if not (call.tentative and call.empty)]
        positions = sorted(call.part for call in calls)
        events += [
            (position, call_events.final_event(choice, call)) for position, call in zip(positions, calls, strict=True)
        ]
    events.sort(key=lambda one: one[0])
    return [event for _, event in events]


def finished_event(choice: Choice) -> Finished:
    """Return the `Finished` event of a choice. If the choice has not ended, the reason is the one that would be emitted
    now.
    """
    reason = choice.finish.concluded or conclude(choice, client_calls(choice))
    return Finished(
        reason,
        choice.finish.raw,
        choice=choice.index,
        provider_metadata=call_events.parse_metadata(choice.metadata.text()),
    )
