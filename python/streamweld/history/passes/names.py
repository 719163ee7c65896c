"""Give every call a name that the target accepts, with the namespace of its tool. Constraint: `tool_name`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.ids import IdForm, form_of, leading, qualified
from streamweld.history.model import Call, Result, changed, with_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["required_form", "run"]

_NAMED: Final = (Call, Result)
_NAMESPACE: Final = "namespace"


def required_form(constraints: Mapping[str, Any]) -> tuple[IdForm, re.Pattern[str] | None]:
    """Return the form of a name, and a pattern for its first character, that a target with these constraints requires.

    The result depends only on the constraints.
    """
    fact: Mapping[str, Any] | None = constraints.get("tool_name")
    if fact is None:
        return IdForm(), None
    return form_of(fact), re.compile(f"[{fact['start']}]") if "start" in fact else None


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with names that the target accepts.

    A missing name is taken from the call's result or, if the request has only one tool, from that tool; otherwise it is
    `unknown`.
    """
    turns = _without_namespaces(turns, context)
    form, start = context.constraints["name_form"]
    found = context.survey(turns)
    names = {call.name for call in found.calls} | {result.name for result in found.results if result.name is not None}
    if all(_is_good(name, form, start) for name in names):
        return turns
    members_sent: dict[str, str] = {}  # call id -> tool name in the result
    for result in found.results:
        if result.name:
            members_sent.setdefault(result.call_id, result.name)
    renamed: dict[str, str] = {}
    out: list[Turn] = []
    for turn in turns:
        parts: list[Part] | None = None
        for at, part in enumerate(turn.parts):
            if not isinstance(part, _NAMED) or (isinstance(part, Result) and part.name is None):
                continue
            name = part.name or ""
            new = name
            if not name.strip():
                if isinstance(part, Result):
                    continue
                new = members_sent.get(part.call_id, "") if part.call_id else ""
                if not new.strip():
                    new = next(iter(context.tools)) if len(context.tools) == 1 else "unknown"
                context.edit("name_empty", part.path, f"set the missing name of a call to {new!r}")
            fitting = _fitting(new, form, start, renamed)
            if fitting != new and isinstance(part, Call):
                context.edit("name_form", part.path, f"changed the tool name {new!r} to {fitting!r}")
            if fitting != name:
                parts = list(turn.parts) if parts is None else parts
                parts[at] = changed(part, name=fitting)
        out.append(turn if parts is None else with_parts(turn, parts))
    return out


def _without_namespaces(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with the namespace of each call in its name. Only the Responses API has namespaces."""
    if context.family == "responses" or not any(_namespace(call) for call in context.survey(turns).calls):
        return turns
    out: list[Turn] = []
    for turn in turns:
        parts: list[Part] = []
        for part in turn.parts:
            namespace = _namespace(part) if isinstance(part, Call) else None
            if isinstance(part, Call) and namespace:
                name = qualified(namespace, part.name)
                what = f"wrote the tool {part.name!r} of a namespace as {name!r}"
                context.edit("name_form", part.path, what, namespace)
                part = changed(
                    part, name=name, extra={key: value for key, value in part.extra.items() if key != _NAMESPACE}
                )
            parts.append(part)
        out.append(with_parts(turn, parts))
    return out


def _namespace(call: Call) -> str | None:
    """Return the namespace of a call, or None if it has none or no name that could include it."""
    if not call.extra or not call.name or call.origin is None or call.origin.dialect != "responses":
        return None
    found = call.extra.get(_NAMESPACE)
    return found if isinstance(found, str) else None


def _is_good(name: str, form: IdForm, start: re.Pattern[str] | None) -> bool:
    return bool(name.strip()) and form.fits(name) and (start is None or start.match(name) is not None)


def _fitting(name: str, form: IdForm, start: re.Pattern[str] | None, renamed: dict[str, str]) -> str:
    if form.fits(name) and (start is None or start.match(name) is not None):
        return name
    if name not in renamed:
        made = form.made(name)
        renamed[name] = made if start is None or start.match(made) else form.made(leading(start) + name)
    return renamed[name]
