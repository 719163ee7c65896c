"""Replace Responses items that the target does not accept: calls to built-in tools, and items created by the server.

A call that the client ran (shell, apply_patch, computer) becomes a function call with its output. If the target is
another Responses gateway, an item that the server created becomes assistant text. Constraint: `items`.

When xAI runs a call itself, it sends the call as `custom_tool_call` without an output (vectors `xai-*` in
`responses/plain_calls`). A `custom_tool_call` was run by the client only if the history contains an output for it, or
the request declares the tool. xAI receives its own calls unchanged (constraint `server_calls`). Other Responses targets
reject a call without a result, so a placeholder result is added for them.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streamweld._spec import DIALECTS
from streamweld.history.ids import form_of
from streamweld.history.model import (
    EMPTY,
    MISSING,
    Call,
    Media,
    Opaque,
    Origin,
    Result,
    Text,
    Turn,
    copied,
    json_text,
    members_of,
    result_text,
    with_parts,
)
from streamweld.history.read.common import media_from_url

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Part, Role
    from streamweld.history.read.common import CommonFields

__all__ = ["run"]

_RESPONSES: Final = "responses"
_ANY: Final = "*"


class _Tool(NamedTuple):
    """A built-in tool that the client runs.

    `name`: the name of the function that replaces it. `members`: the members that contain the arguments of a call, in
    the order of preference. `output`: the type of the items with the outputs.
    """

    name: str
    members: tuple[str, ...]
    output: str


_CALLS: Final[Mapping[str, _Tool]] = {
    "shell_call": _Tool("shell", ("action",), "shell_call_output"),
    "local_shell_call": _Tool("local_shell", ("action",), "local_shell_call_output"),
    "apply_patch_call": _Tool("apply_patch", ("operation",), "apply_patch_call_output"),
    "computer_call": _Tool("computer", ("action", "actions"), "computer_call_output"),
    "tool_search_call": _Tool("tool_search", ("arguments",), "tool_search_output"),
}
_OUTPUTS: Final = frozenset(tool.output for tool in _CALLS.values())
# Items that contain nothing for the model, and items that can be resolved only by the server that stores them.
_UNREADABLE: Final = frozenset(
    {
        *("item_reference", "None", "compaction", "compaction_trigger", "mcp_list_tools", "additional_tools"),
        *("configuration_update", "program", "program_output"),
    }
)
_SERVER_TOOLS: Final = frozenset[str](DIALECTS["responses"]["provider_tools"])
_HEAD: Final = frozenset({"id", "type", "status", "result", "caller"})  # members that are not written as text


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns, with items that the target does not accept replaced by function calls, results and texts."""
    turns = _with_server_calls(turns, context)
    if not context.survey(turns).opaque:
        return turns
    accepted: Collection[str] = (context.fact("items") or (_ANY,)) if context.family == _RESPONSES else ()
    turns = _with_output_ids(turns, context)
    unpaired = _unpaired(turns, context)
    out: list[Turn] = []
    for turn in turns:
        pairs = [pair for part in turn.parts if (pair := _converted(part, accepted, unpaired, context)) is not None]
        if len(pairs) == len(turn.parts) and all(map(is_, [part for _, part in pairs], turn.parts)):
            out.append(turn)
            continue
        run: list[Part] = []
        role: Role = turn.role
        for own_role, part in pairs:
            wanted = own_role or turn.role
            if run and wanted != role:
                out.append(with_parts(turn, run, role=role))
                run = []
            role = wanted
            run.append(part)
        if run:
            out.append(with_parts(turn, run, role=role))
    return out


def _with_server_calls(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns, with calls that the server ran replaced by opaque items."""
    if context.family == _RESPONSES and not context.fact("server_calls"):
        return turns
    found = context.survey(turns)
    calls = [call for call in found.calls if call.custom and call.name in _SERVER_TOOLS - context.tools.keys()]
    if not calls:
        return turns
    answered = {result.call_id for result in found.results}
    served = {id(call) for call in calls if call.call_id not in answered}
    return [
        with_parts(turn, [_item(part) if id(part) in served else part for part in turn.parts])
        if any(id(part) in served for part in turn.parts)
        else turn
        for turn in turns
    ]


def _with_output_ids(turns: list[Turn], context: Context) -> list[Turn]:
    """Set the `id` of each local shell output to the call id of its call, and return the turns.

    OpenAI's types require the call id in the member `id` (`openai-python`, LocalShellCallOutput), and vLLM uses these
    types to validate requests. Some clients put the call id into `call_id`, or send the item id of the call instead.
    Codex sends a `function_call_output` (codex-rs, ResponseItem::LocalShellCall).
    """
    functions = {call.call_id for call in context.survey(turns).calls}
    calls: dict[str, str] = {}  # call id or item id -> call id
    called: set[str] = set()
    out: list[Turn] = []
    for turn in turns:
        parts: list[Part] = []
        for part in turn.parts:
            raw = members_of(part.raw) if isinstance(part, Opaque) and part.dialect == _RESPONSES else EMPTY
            if raw.get("type") == "local_shell_call" and isinstance(raw.get("call_id"), str):
                calls[raw["call_id"]] = raw["call_id"]
                if raw["call_id"] not in functions:  # otherwise, the output may be that of the function
                    called.add(raw["call_id"])
                if isinstance(raw.get("id"), str):
                    calls.setdefault(raw["id"], raw["call_id"])
            elif isinstance(part, Opaque) and raw.get("type") == "local_shell_call_output":
                part = _named(part, raw, calls, context)
            elif isinstance(part, Result) and part.call_id in called and _is_text(part):
                context.edit("output_id", part.path, "converted the output of a function to that of a local shell")
                made = {"type": "local_shell_call_output", "id": part.call_id, "output": result_text(part)}
                whole = None if part.origin is None else _origin_of(part.origin, made)
                part = Opaque(whole, 0, part.path, made, kind="local_shell_call_output", dialect=_RESPONSES)
            parts.append(part)
        out.append(turn if all(map(is_, parts, turn.parts)) else with_parts(turn, parts))
    return turns if all(map(is_, out, turns)) else out


def _is_text(part: Result) -> bool:
    return part.value is MISSING and all(isinstance(inner, Text) for inner in part.parts)


def _named(part: Opaque, raw: Mapping[str, Any], calls: Mapping[str, str], context: Context) -> Opaque:
    members_sent = [name for name in (raw.get("call_id"), raw.get("id")) if isinstance(name, str) and name]
    wanted = next((calls[name] for name in members_sent if name in calls), members_sent[0] if members_sent else None)
    if wanted is None or (raw.get("id") == wanted and "call_id" not in raw):
        return part
    context.edit("output_id", part.path, f"set the id of the output to the id of its call, {wanted!r}", raw.get("id"))
    own = {name: value for name, value in raw.items() if name not in ("id", "call_id")}
    made = {"type": own.pop("type"), "id": wanted, **own}
    return copied(part, raw=made, touched=True, origin=None if part.origin is None else _origin_of(part.origin, made))


def _origin_of(origin: Origin, raw: Any) -> Origin:
    return Origin(origin.dialect, origin.path, raw, origin.count, stale=True)


def _item(call: Part) -> Opaque:
    return Opaque(call.origin, call.at, call.path, call.raw, kind="custom_tool_call", dialect=_RESPONSES)


def _unpaired(turns: list[Turn], context: Context) -> set[int]:
    """Return the `id()` of every item of a client call that is not in a pair: one call, then its output.

    Items with an id that the target rejects are returned as well. The passes `pairing` and `ids` can repair only
    function calls and results, so all items with such an id are converted. Codex completes the calls of its own tools
    as well (codex-rs, core/src/context_manager/normalize.rs).
    """
    if context.family != _RESPONSES:  # they are replaced in any case
        return set()
    pairs: dict[str, _Items] = {}
    for turn in turns:
        for part in turn.parts:
            if not isinstance(part, Opaque) or part.dialect != _RESPONSES:
                continue
            fields = members_of(part.raw)
            if part.kind == "item_reference":  # the server may store the other half of a pair
                return set()
            call_id = _call_id(part.kind, fields)
            if call_id and fields.get("execution") != "server" and (part.kind in _CALLS or part.kind in _OUTPUTS):
                pairs.setdefault(call_id, _Items()).add(part)
    results = context.facts("results")
    unanswered = bool(results.get("required")) and not context.pending
    unasked = bool(results.get("matched")) and not context.chained
    twice = context.facts("tool_id").get("unique") == "request"
    form = form_of(context.facts("tool_id"))
    return {
        id(part)
        for call_id, items in pairs.items()
        if not form.fits(call_id) or items.is_broken(unanswered=unanswered, unasked=unasked, twice=twice)
        for part in items.parts
    }


@dataclass(slots=True, eq=False)
class _Items:
    """The calls and outputs with one id. The counts are keyed by the type of the output.

    `waiting`: calls that have no output yet. `spare`: outputs that follow no waiting call.
    """

    parts: list[Opaque] = field(default_factory=list[Opaque])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    spare: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, part: Opaque) -> None:
        self.parts.append(part)
        output = _CALLS[part.kind].output if part.kind in _CALLS else part.kind
        if part.kind in _CALLS:
            self.calls[output] = self.calls.get(output, 0) + 1
            self.waiting[output] = self.waiting.get(output, 0) + 1
        elif self.waiting.get(output):
            self.waiting[output] -= 1
        else:
            self.spare[output] = self.spare.get(output, 0) + 1

    def is_broken(self, *, unanswered: bool, unasked: bool, twice: bool) -> bool:
        """Return whether the target rejects the items: calls without an output, and so on."""
        if (unanswered and any(self.waiting.values())) or (twice and any(count > 1 for count in self.calls.values())):
            return True
        # A spare output precedes its call, repeats another output, or has no call at all.
        return any(output in self.calls or unasked for output in self.spare)


def _converted(
    part: Part, accepted: Collection[str], unpaired: Collection[int], context: Context
) -> tuple[Role | None, Part] | None:
    """Return the role of the turn and the replacement for a part, or None if the part is dropped.

    The role is None if the role of the turn does not change.
    """
    if not isinstance(part, Opaque):
        return None, part
    raw = part.raw
    summary = _summary(part, context)
    if summary is not None:
        context.edit("item_as_text", part.path, "wrote the summary of a compaction as text", raw)
        return None, Text(text=summary, path=part.path)
    item = part.dialect == _RESPONSES and part.origin is not None and raw is part.origin.raw
    takes = part.kind in accepted or _ANY in accepted or ":" in part.kind
    if not item or (takes and id(part) not in unpaired):
        return None, part
    members_sent = members_of(raw)
    if part.kind in _CALLS and not (part.kind == "tool_search_call" and members_sent.get("execution") == "server"):
        context.edit("item_as_call", part.path, f"converted a {part.kind} to a function call", raw)
        return "assistant", _call(part, members_sent)
    if part.kind in _OUTPUTS and _call_id(part.kind, members_sent):
        context.edit("item_as_call", part.path, f"converted a {part.kind} to the output of a function call", raw)
        return "tool", _result(part, members_sent)
    if context.family != _RESPONSES:  # `passes.content` records the loss
        return None, part
    if part.kind in _UNREADABLE or part.kind in _OUTPUTS:
        context.lose(
            part.kind, part.path, "the target does not accept such items, and this one has no readable text", raw
        )
        return None
    context.edit("item_as_text", part.path, f"wrote a {part.kind} as text", raw)
    text_of_part = {name: value for name, value in members_sent.items() if name not in _HEAD and value is not None}
    text = f"[{part.kind}]" if not text_of_part else f"[{part.kind}] {json_text(text_of_part, part.path)}"
    role: Role = "user" if part.kind == "mcp_approval_response" else "assistant"
    return role, Text(text=text, path=part.path)


def _summary(part: Opaque, context: Context) -> str | None:
    """Return the text of an Anthropic compaction if the target is another API, otherwise None.

    A compaction summarizes, and so replaces, all messages before it.
    """
    if part.kind != "compaction" or part.dialect in (_RESPONSES, context.family):
        return None
    content = members_of(part.raw).get("content")
    return content if isinstance(content, str) and content.strip() else None


def _call_id(kind: str, members_sent: Mapping[str, Any]) -> str:
    """Return the id that pairs a call with its output. A local shell output has this id in its `id` member."""
    found = members_sent.get("id" if kind == "local_shell_call_output" else "call_id") or members_sent.get("call_id")
    return found if isinstance(found, str) else ""


def _call(part: Opaque, members_sent: Mapping[str, Any]) -> Call:
    tool = _CALLS[part.kind]
    value: Any = next((members_sent[member] for member in tool.members if members_sent.get(member) is not None), {})
    if isinstance(value, list):  # a computer call with several actions
        value = {"actions": value}
    call_id = _call_id(part.kind, members_sent)
    return Call(part.origin, part.at, part.path, part.raw, EMPTY, True, call_id, tool.name, json_text(value, part.path))


def _result(part: Opaque, members_sent: Mapping[str, Any]) -> Result:
    place = (part.origin, part.at, part.path, part.raw, EMPTY, True)
    call_id, output = _call_id(part.kind, members_sent), members_sent.get("output", members_sent.get("tools"))
    failed = members_sent.get("status") == "failed"
    if part.kind == "computer_call_output":
        shot = members_of(output)
        url, file_id = shot.get("image_url"), shot.get("file_id")
        where: CommonFields = (None, 0, part.path, None, EMPTY)
        image = (
            media_from_url(where, url, None, kind="image")
            if isinstance(url, str)
            else Media(*where, kind="image", file_id=file_id if isinstance(file_id, str) else None)
        )
        return Result(*place, call_id=call_id, parts=(image,), is_error=failed)
    if isinstance(output, str) or output is None:
        text = Text(text=output or "", path=part.path)
        return Result(*place, call_id=call_id, parts=(text,), is_error=failed)
    return Result(*place, call_id=call_id, value=output, is_error=failed)
