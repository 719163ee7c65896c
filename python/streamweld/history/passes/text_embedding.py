"""Write calls and results as text for targets that do not accept calls or results. Constraint: `text_embedding`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.history.model import Call, Media, Result, Text, Turn, arguments_text, result_text, with_parts

if TYPE_CHECKING:
    from streamweld.history.context import Context
    from streamweld.history.model import Part

__all__ = ["run"]

_TEXT_ONLY: Final = "only the text of this part can be written"


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with calls and results written as text."""
    if context.fact("function_calls") is not False:
        return turns
    forms = context.facts("text_embedding")
    join: str = forms.get("join", "\n\n")
    out: list[Turn] = []
    for turn in turns:
        if turn.role == "assistant" and any(isinstance(part, Call) for part in turn.parts):
            out.append(_calls(turn, forms["call"], join, context))
        elif turn.role == "tool":
            out.append(_results(turn, forms["result"], join, context))
        else:
            out.append(turn)
    return out


def _calls(turn: Turn, form: str, join: str, context: Context) -> Turn:
    texts: list[str] = []
    rest: list[Part] = []
    _leave_members(turn, context)
    for part in turn.parts:
        if isinstance(part, Call):
            context.edit("call_as_text", part.path, f"wrote the call of {part.name!r} as text")
            if part.signature:
                context.lose("signature", part.path, _TEXT_ONLY, part.signature)
            text_of_part = {"name": part.name, "arguments": arguments_text(part) or "{}", "call_id": part.call_id}
            texts.append(_filled(form, text_of_part))
        elif isinstance(part, Text):
            texts.append(part.text)
        else:
            rest.append(part)
    text = Text(text=join.join([text for text in texts if text]), path=turn.path)
    return with_parts(turn, [*rest, text], origin=None)


def _results(turn: Turn, form: str, join: str, context: Context) -> Turn:
    texts: list[str] = []
    rest: list[Part] = []
    _leave_members(turn, context)
    for part in turn.parts:
        if isinstance(part, Result):
            context.edit("result_as_text", part.path, f"wrote the result of {part.call_id!r} as text")
            if part.is_error:
                context.lose_error_flag(part)
            texts.append(_filled(form, {"call_id": part.call_id, "output": result_text(part)}))
            rest += [inner for inner in part.parts if isinstance(inner, Media)]
        else:
            rest.append(part)
    return Turn("user", (Text(text=join.join(texts), path=turn.path), *rest))


def _leave_members(turn: Turn, context: Context) -> None:
    """Record extra members of messages and blocks as losses, because they cannot be written as text."""
    origins = {id(part.origin): part.origin for part in turn.parts if part.origin is not None}
    for origin in origins.values():
        context.lose_members(origin.extra, origin.path, _TEXT_ONLY)
    for part in turn.parts:
        context.lose_members(part.extra, part.path, _TEXT_ONLY)
        for inner in part.parts if isinstance(part, Result) else ():
            context.lose_members(inner.extra, inner.path, _TEXT_ONLY)


def _filled(form: str, text_of_part: dict[str, str]) -> str:
    """Return the template with each `{name}` replaced by its value. Braces in the values are not replaced."""
    pieces = form.split("{")
    out = [pieces[0]]
    for piece in pieces[1:]:
        name, brace, tail = piece.partition("}")
        out.append(text_of_part[name] + tail if brace and name in text_of_part else "{" + piece)
    return "".join(out)
