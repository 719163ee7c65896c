"""Order the parts of an assistant turn. Constraints: `call_order`, `calls_together`, `content_or_calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld.history.model import Call, Opaque, Reasoning, Text, Turn, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part

__all__ = ["run"]


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with calls at the end or in separate turns, if the target requires it."""
    last, apart = context.fact("call_order") == "last", bool(context.fact("content_or_calls"))
    together = bool(context.fact("calls_together"))
    if not (apart or ((last or together) and not context.survey(turns).trailing)):
        return turns
    out: list[Turn] = []
    for turn in turns:
        at = next((n for n, part in enumerate(turn.parts) if isinstance(part, Call)), None)
        if turn.role != "assistant" or at is None:
            out.append(turn)
            continue
        end = len(turn.parts)
        if not last:  # if other parts may follow the calls, only parts between two calls are moved
            end -= next(n for n, part in enumerate(reversed(turn.parts)) if isinstance(part, Call))
        else:
            # Claude thinks between its calls, and the API rejects a response whose thinking has another position:
            # https://github.com/UKGovernmentBEIS/inspect_ai/pull/4922
            final = max(n for n, part in enumerate(turn.parts) if isinstance(part, Call))
            if any(isinstance(part, Reasoning) for part in turn.parts[at:final]):
                at = final
        stays = Call | Opaque if last else Call  # server tool blocks keep their position
        late = [part for part in turn.parts[at:end] if not isinstance(part, stays)]
        if (last or together) and late:
            for part in late:
                context.edit("call_order", part.path, "moved before the calls")
            rest = [part for part in turn.parts[at:end] if isinstance(part, stays)]
            turn = with_parts(turn, (*turn.parts[:at], *late, *rest, *turn.parts[end:]))
        if apart and any(isinstance(part, Text) and part.text for part in turn.parts):
            out += _apart(turn, context)
            continue
        out.append(turn)
    return out


def _apart(turn: Turn, context: Context) -> list[Turn]:
    calls: list[Part] = [part for part in turn.parts if isinstance(part, Call)]
    rest: list[Part] = [part for part in turn.parts if not isinstance(part, Call)]
    context.edit("content_or_calls", turn.path, "moved the calls to a separate message")
    return [with_parts(turn, rest), Turn("assistant", tuple(calls), turn.origin)]
