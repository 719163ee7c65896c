"""Puts back the beginning of arguments that lack only `{"`, because some gateways drop the first fragment of a call.

The text then has no JSON value, so the call could not be run. The beginning is put back only if nothing indicates that
more of the arguments is missing: the stream closed the call, the response ended with success, the arguments fit the
tool, and no other call lacks the end of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._json import loads_raw
from streamweld._pure.assemble.part import call_events
from streamweld._pure.assemble.resolve.names import is_name
from streamweld._pure.json.automaton import Automaton
from streamweld._pure.model.delta import CallEnding

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.settings import Tools

__all__ = ["restore_beginnings", "with_beginning"]

_LOST = b'{"'


def with_beginning(call: Call, tools: Tools) -> bytes | None:
    """Return the arguments of a closed call with the beginning that they lack. Return None if the text does not lack
    its beginning, or if more may be missing.
    """
    text = call.text
    if not call.ended or call.ending is not CallEnding.WHOLE or call.provider_executed or call.custom:
        return None
    if text.automaton.verdict != "broken" or text.overflow or call.announced_again:
        return None
    restored = _LOST + bytes(text.data)
    automaton = Automaton()
    if automaton.feed(restored) != "complete" or automaton.root != "object":
        return None
    arguments: dict[str, Any] = loads_raw(restored.decode())
    fits = is_name(next(iter(arguments))) and tools.allows(call.name, arguments.keys())
    return restored if fits else None


def restore_beginnings(choice: Choice) -> None:
    """Put back the beginnings that the arguments of open calls lack. Do nothing if the arguments of another call are
    unfinished, because a text without its beginning may be the rest of those arguments.
    """
    calls = [call for call in choice.calls if not call.dropped]
    if any(call.text.unfinished and not call.empty for call in calls):
        return
    for call in calls:
        restored = with_beginning(call, choice.shared.settings.tools) if call.outcome is None else None
        if restored is not None:
            choice.shared.out.diagnose("args_restored", call.part)
            choice.shared.count_arguments(call.text.size, len(restored))
            call.text.replace(restored)
            call.text.plain = False
            call_events.reset(choice, call)  # the text is emitted when the call closes
