"""Give every call and its result an id that the target accepts. Constraint: `tool_id`."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.encode.common.tool_ids import PREFIX
from streamweld.history.chat_reasoning import signature_member
from streamweld.history.ids import IdForm, Minter, form_of
from streamweld.history.media_types import standard_base64
from streamweld.history.model import EMPTY, ApprovalRequest, Call, Result, arguments_text, changed, decoded, with_parts
from streamweld.history.open_calls import OpenCalls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Turn

__all__ = ["required_form", "run"]

_HOLDERS: Final = (Call, Result, ApprovalRequest)  # parts with the id of a call
_MARK: Final = "__thought__"
# LiteLLM appends Gemini's thought signature to a call id: https://github.com/BerriAI/litellm/issues/16895
_CARRIED: Final = re.compile(rf"(.+?){_MARK}([A-Za-z0-9+/_-]+=*)", re.DOTALL)
_SIGNED_CALLS: Final = frozenset({"gemini", "ai-sdk-model", "ai-sdk-ui"})  # dialects that can sign a call


def required_form(constraints: Mapping[str, Any]) -> IdForm:
    """Return the form of an id that a target with these constraints requires. It depends only on the constraints."""
    fact: Mapping[str, Any] = constraints.get("tool_id") or EMPTY
    return IdForm() if fact.get("keep") else form_of(fact)  # kept ids may have any form but must not be empty


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with ids that the target accepts.

    If several calls have the same id, the first one keeps the id if possible.
    """
    fact = context.facts("tool_id")
    form: IdForm = context.constraints["id_form"]
    found = context.survey(turns)
    if found.paired:
        given = [call.call_id for call in found.calls]
        joined = "\0".join(given)
        if form.fit(given) and PREFIX not in joined and (form.carriers or _MARK not in joined):
            context.ids.keep(given)
            return turns
    unique = None if fact.get("keep") else fact.get("unique")
    minter = Minter(form, frozenset([call.call_id for call in found.calls if form.fits(call.call_id)]))
    open_calls: OpenCalls[str] = OpenCalls()
    times: dict[str, int] = {}  # number of calls so far, by source id
    first: dict[str, str] = {}  # target ids by source id, if several calls may have the same id
    latest: dict[str, str] = {}
    out: list[Turn] = []
    for n, turn in enumerate(turns):
        parts: list[Part] | None = None
        own: dict[str, int] = {}  # number of calls in this turn, by source id
        for at, part in enumerate(turn.parts):
            new: str | None = None
            signature: str | None = None
            if isinstance(part, Call):
                plain, signature = (part.call_id, None) if form.carriers else _split(part.call_id)
                count = times[part.call_id] = times.get(part.call_id, 0) + 1
                here = own[part.call_id] = own.get(part.call_id, 0) + 1
                if not part.call_id and fact.get("optional"):
                    new = ""
                elif not part.call_id:
                    new = minter.nameless(f"{part.name}\0{arguments_text(part)}\0{count}")
                elif form.carries(part.call_id):
                    twice = unique and (count if unique == "request" else here) > 1
                    new = minter.nameless(f"{part.call_id}\0{count}") if twice else minter.first(part.call_id)
                elif unique == "request" and count > 1:
                    new = minter.numbered(plain, count)
                elif unique and here > 1:
                    new = minter.numbered(plain, here)
                else:
                    new = first.get(part.call_id)
                    if new is None:
                        new = first[part.call_id] = minter.first(plain)
                open_calls.add(n, part.call_id, part.name, new)
                latest[part.call_id] = new
                context.ids.add(part.call_id, new)
                if new != part.call_id:
                    context.edit("tool_id", part.path, f"changed the call id {part.call_id!r} to {new!r}")
            elif isinstance(part, Result):
                new = open_calls.take(part.call_id, part.name)
                if new is None:
                    new = latest.get(part.call_id, part.call_id)
                    if not form.fits(new) and not (fact.get("optional") and not new):
                        new = latest[part.call_id] = minter.first(new)
            elif isinstance(part, ApprovalRequest):
                new = latest.get(part.call_id)
            if new is not None and isinstance(part, _HOLDERS) and new != part.call_id:
                parts = list(turn.parts) if parts is None else parts
                parts[at] = changed(part, call_id=new)
                if signature is not None and isinstance(part, Call) and not part.signature:
                    parts[at] = _signed(part, new, signature, context)
        out.append(turn if parts is None else with_parts(turn, parts))
    return out


def _split(call_id: str) -> tuple[str, str | None]:
    """Return an id without the signature that a gateway appended, and the signature itself, which is base64."""
    found = _CARRIED.fullmatch(call_id)
    if found is None:
        return call_id, None
    signature = standard_base64(found[2])
    data = decoded(signature)
    if data is None or b64encode(data).decode().rstrip("=") != signature.rstrip("="):
        return call_id, None
    return found[1], found[2]


def _signed(call: Call, call_id: str, signature: str, context: Context) -> Call:
    """Return the call with this id.

    If the target accepts a signature on a call, add the signature that was part of the old id.
    """
    known = signature_member(context.facts("members").get("call", ())) is not None
    if context.family in _SIGNED_CALLS or known or context.facts("reasoning").get("details"):
        return changed(call, call_id=call_id, signature=signature)
    context.lose("signature", call.path, "the target has no member for the signature of a call", signature)
    return changed(call, call_id=call_id)
