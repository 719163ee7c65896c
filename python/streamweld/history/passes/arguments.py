"""Repair tool call arguments that are not a JSON object: truncated text, lists, bare values.

Constraints: `arguments`, `arguments_text`, `free_form_tools`, `text_input_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.model import Call, Result, arguments_object, arguments_text, changed, removed_value, with_parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["run"]

_FORMS: Final = {True: "a JSON string", False: "a JSON object"}


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with all arguments converted to objects. `policy.truncated_arguments` selects the repair."""
    objects, free = context.fact("arguments") == "object", bool(context.fact("free_form_tools"))
    text_of = context.fact("text_input_of") or ()
    turns = _spelled(turns, context)
    if (not objects and free) or _is_sound(context.survey(turns).calls, objects, free):
        return turns
    out: list[Turn] = []
    gone: dict[str, int] = {}  # number of dropped calls whose result has not been reached yet, by id
    for turn in turns:
        parts: list[Part] = []
        touched = False
        for part in turn.parts:
            if isinstance(part, Result) and gone.get(part.call_id):
                gone[part.call_id] -= 1
                removed = removed_value(part)
                context.edit(
                    "arguments_broken", part.path, "dropped the result because its tool call was dropped", removed
                )
                touched = True
                continue
            if isinstance(part, Call) and part.custom and not free:
                if part.origin is not None and part.origin.dialect == context.family:
                    context.edit(
                        "call_free_form",
                        part.path,
                        f"put the free-form text of the call of {part.name!r} into a JSON argument",
                    )
                else:
                    context.lose("custom", part.path, "the target's tools take a JSON object, not free-form text", True)
                part = changed(part, custom=False)
                touched = True
            own = part.origin is not None and part.origin.dialect in text_of
            if not isinstance(part, Call) or part.custom or not objects or (own and part.arguments is not None):
                parts.append(part)
                continue
            if arguments_object(part) is not None:
                if _is_empty(part):
                    if part.origin is not None and part.origin.dialect == context.family:
                        context.edit(
                            "arguments_empty", part.path, f"replaced the empty arguments of {part.name!r} with {{}}"
                        )
                    part = changed(part, arguments=None, input={})
                    touched = True
                parts.append(part)
                continue
            touched = True
            text_of_part: Any = part.arguments if part.arguments is not None else part.input
            if context.policy.truncated_arguments == "drop":
                gone[part.call_id] = gone.get(part.call_id, 0) + 1
                context.edit(
                    "arguments_broken",
                    part.path,
                    f"dropped the call of {part.name!r} because its arguments are not a JSON object",
                    part.raw,
                )
            elif context.policy.truncated_arguments == "empty":
                context.edit(
                    "arguments_broken",
                    part.path,
                    f"replaced the arguments of {part.name!r} with {{}} because they are not a JSON object",
                    text_of_part,
                )
                parts.append(changed(part, arguments=None, input={}))
            else:
                context.edit(
                    "arguments_broken",
                    part.path,
                    f"put the arguments of {part.name!r} into the member `_raw`, because they are not a JSON object",
                )
                parts.append(changed(part, arguments=None, input={"_raw": text_of_part}))
        if parts or not touched:
            out.append(with_parts(turn, parts) if touched else turn)
    return out


def _spelled(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with arguments in the form that the target requires (a string or an object).

    Only calls that were read from the target's own dialect are changed.
    """
    text = bool(context.fact("arguments_text"))
    if not any(_is_misspelled(call, text, context) for call in context.survey(turns).calls):
        return turns
    out: list[Turn] = []
    for turn in turns:
        parts: list[Part] = []
        for part in turn.parts:
            if isinstance(part, Call) and _is_misspelled(part, text, context):
                context.edit("arguments_form", part.path, f"wrote the arguments of {part.name!r} as {_FORMS[text]}")
                part = (
                    changed(part, arguments=arguments_text(part))
                    if text
                    else changed(part, arguments=None, input=arguments_object(part))
                )
            parts.append(part)
        out.append(with_parts(turn, parts))
    return out


def _is_misspelled(call: Call, text: bool, context: Context) -> bool:
    if call.custom or call.raw is None or call.origin is None or call.origin.dialect != context.family:
        return False
    if text:
        return call.arguments is None
    is_text = call.arguments is not None
    return call.input is None or call.input == [] or (is_text and arguments_object(call) is not None)


def _is_sound(calls: Iterable[Call], objects: bool, free: bool) -> bool:
    """Return whether the arguments of all calls may stay unchanged."""
    for call in calls:
        if call.custom:
            if not free:
                return False
        elif objects and (arguments_object(call) is None or _is_empty(call)):
            return False
    return True


def _is_empty(call: Call) -> bool:
    """Return whether the arguments are an empty object in another form: blank text, or an empty list."""
    given: object = call.input
    if call.arguments is None:
        return given == []
    if not call.arguments.strip():
        return True
    parsed: object = call.parsed if arguments_object(call) == {} else None
    return parsed == []
