"""Read AI SDK UIMessages and ModelMessages for the checker.

Source: the AI SDK's message types, convertToModelMessages and convertToLanguageModelPrompt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.history.check.view import Block, Message, View, as_json, blocks_of, is_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld.history.check.report import Path, Report
    from streamweld.history.check.view import Json, Kind

__all__ = ["read_model", "read_ui"]

_SHOWN_ONLY: Final = ("step-start", "source-url", "source-document", "reasoning-file", "custom")
_ANSWERED: Final = ("output-available", "output-error", "output-denied")
_STATES: Final = (*_ANSWERED, "input-streaming", "input-available", "approval-requested", "approval-responded")
# The valid values of `approved` in each state that can have an approval.
_APPROVED: Final[Mapping[str, tuple[Any, ...]]] = {
    "approval-requested": (None,),
    "approval-responded": (True, False),
    "output-available": (True,),
    "output-error": (True,),
    "output-denied": (False,),
}
_ALWAYS: Final = ("approval-requested", "approval-responded", "output-denied")  # states that must have an approval


def _media(media_type: Any) -> Kind:
    head = str(media_type or "").partition("/")[0]
    return cast("Kind", head) if head in ("image", "audio", "video") else "file"


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _messages(items: Sequence[Any], base: Path, report: Report) -> list[tuple[Json, Path, str]]:
    found: list[tuple[Json, Path, str]] = []
    for n, raw in enumerate(items):
        fields = as_json(raw)
        if fields is None or not isinstance(fields.get("role"), str):
            report.add("shape", (*base, n), "a message must be an object with a role")
        else:
            found.append((fields, (*base, n), str(fields["role"])))
    return found


def read_ui(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """Read UIMessages, and report items that are not messages.

    A tool part becomes a call and, if present, its result.
    """
    messages: list[Message] = []
    rows = _messages(items, base, report)
    last_user = max((n for n, (_, _, wire) in enumerate(rows) if wire == "user"), default=-1)
    for at, (fields, path, wire) in enumerate(rows):
        parts = fields.get("parts")
        if not is_list(parts):
            report.add("shape", path, "the `parts` of a message must be a list")
            parts = ()
        blocks: list[Block] = []
        for n, raw in enumerate(cast("Sequence[Any]", parts)):
            piece = as_json(raw)
            if piece is None:
                report.add("shape", (*path, "parts", n), "a part must be an object")
            else:
                blocks += _ui_part(piece, (*path, "parts", n), at == len(rows) - 1, at < last_user, report)
        messages.append(Message(wire, wire, path, fields, blocks))
    return View(messages, base, payload).join()


def _ui_part(raw: Json, path: Path, last: bool, superseded: bool, report: Report) -> list[Block]:
    """Return the blocks of a part.

    `last`: whether the part is in the last message. `superseded`: whether a user message follows.
    """
    kind = str(raw.get("type"))
    if kind in ("text", "reasoning"):
        if not isinstance(raw.get("text"), str):
            report.add("shape", path, "a text part must have a string in `text`")
        return [Block(cast("Kind", kind), path, raw, kind, str(raw.get("text") or ""))]
    if kind == "file":
        return [Block(_media(raw.get("mediaType")), path, raw, kind)]
    if kind == "dynamic-tool" or kind.startswith("tool-"):
        if raw.get("providerExecuted"):
            return [Block("other", path, raw, kind)]
        name = raw.get("toolName") if kind == "dynamic-tool" else kind[5:]
        call_id, state = _name(raw.get("toolCallId")), raw.get("state")
        facts, approval = report.facts("results"), as_json(raw.get("approval"))
        approved = None if approval is None else approval.get("approved")
        call = Block("call", path, raw, kind, id=call_id, name=_name(name))
        # The AI SDK does not send parts that are still streaming. A call that awaits approval or execution needs no
        # result.
        call.settled = state == "input-streaming"
        if facts.get("awaits_approval") and state in ("approval-requested", "approval-responded"):
            open_request = state == "approval-requested" and bool(facts.get("supersedes_requests")) and superseded
            call.settled = last or open_request
        if state not in _STATES:
            report.add("shape", path, f"the `state` of a tool part is missing or unknown: {state!r}")
        elif not _fits(str(state), approval):
            report.add("approval_state", path, str(state))
        denied = state == "approval-responded" and approved is False
        if denied or (state in _ANSWERED and not raw.get("preliminary")):
            return [call, Block("result", path, raw, kind, id=call_id)]
        return [call]
    known = kind in _SHOWN_ONLY or kind.startswith("data-")
    return [Block("other" if known else "unknown", path, raw, kind)]


def _fits(state: str, approval: Json | None) -> bool:
    if approval is None:
        return state not in _ALWAYS
    return isinstance(approval.get("id"), str) and approval.get("approved") in _APPROVED.get(state, ())


def read_model(items: Sequence[Any], base: Path, payload: Json, report: Report) -> View:
    """Read ModelMessages, and report items that are not messages."""
    messages: list[Message] = []

    def part(raw: Json, at: Path) -> Block:
        return _model_part(raw, at, report)

    for fields, path, wire in _messages(items, base, report):
        content = fields.get("content")
        blocks, plain = blocks_of(content, (*path, "content"), report, part)
        if wire == "system" and not plain:
            report.add("shape", path, "the content of a system message must be a string")
        if wire == "tool" and plain:
            report.add("shape", path, "the content of a tool message must be a list of results")
        if content is None:
            report.add("shape", path, "a message must have `content`: a string or a list")
        if wire != "tool":  # results outside tool messages belong to provider-executed calls
            for block in blocks:
                block.kind = "other" if block.kind == "result" else block.kind
        messages.append(Message(wire, wire, path, fields, blocks, plain))
    _approvals(messages, report)
    return View(messages, base, payload).join("tool")


def _approvals(messages: list[Message], report: Report) -> None:
    """Check that each approval response has a request, and that each request has a call.

    A call at the end of the history may still be waiting for approval.
    """
    calls: dict[str, Block] = {}
    requests: set[str] = set()
    asking = max((n for n, message in enumerate(messages) if message.role != "tool"), default=-1)
    answered = {block.id for message in messages for block in message.of("result")}
    for at, message in enumerate(messages):
        for block in message.blocks:
            if block.type == "tool-call":
                calls[str(block.json.get("toolCallId"))] = block
            elif block.type == "tool-approval-request":
                call = calls.get(str(block.json.get("toolCallId")))
                requests.add(str(block.json.get("approvalId")))
                if call is None:
                    report.add("approval_unasked", block.path, str(block.json.get("toolCallId")))
                elif report.facts("results").get("awaits_approval"):
                    call.settled = at == asking and call.id not in answered
            elif block.type == "tool-approval-response" and str(block.json.get("approvalId")) not in requests:
                report.add("approval_unasked", block.path, str(block.json.get("approvalId")))


def _model_part(raw: Json, path: Path, report: Report) -> Block:
    kind = str(raw.get("type"))
    if kind in ("text", "reasoning"):
        if not isinstance(raw.get("text"), str):
            report.add("shape", path, "a text part must have a string in `text`")
        return Block(cast("Kind", kind), path, raw, kind, str(raw.get("text") or ""))
    if kind == "image":
        return Block("image", path, raw, kind)
    if kind == "file":
        return Block(_media(raw.get("mediaType")), path, raw, kind)
    if kind == "tool-call" and raw.get("providerExecuted"):
        return Block("other", path, raw, kind)
    if kind in ("tool-call", "tool-result"):
        block = Block("call" if kind == "tool-call" else "result", path, raw, kind)
        block.id, block.name = _name(raw.get("toolCallId")), _name(raw.get("toolName"))
        if kind == "tool-result":
            output = as_json(raw.get("output"))
            if output is None or not isinstance(output.get("type"), str):
                report.add("shape", path, "the `output` of a tool result must be an object with a type")
        return block
    known = kind in ("tool-approval-request", "tool-approval-response", *_SHOWN_ONLY)
    return Block("other" if known else "unknown", path, raw, kind)
