"""`convert`: convert a complete request for another API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from streamweld import history
from streamweld._messages import hinted
from streamweld._sdk_objects import plain
from streamweld.errors import HistoryError, UsageError
from streamweld.history import HistoryPolicy
from streamweld.history.payload import STORED, plain_items
from streamweld.history.places import converted_before, error_before
from streamweld.history.profiles import resolve, target_name
from streamweld.requests import (
    answer_format,
    cache_marks,
    constraints,
    legacy,
    options,
    same_api,
    spelling,
    thinking,
    tool_choice,
    tools,
)
from streamweld.requests.context import RequestContext
from streamweld.requests.names import Names
from streamweld.requests.policy import RequestPolicy
from streamweld.requests.tables import MODEL, listed, object_of, spec

if TYPE_CHECKING:
    from streamweld._literals import Source, Target
    from streamweld.history import Profile
    from streamweld.history.places import Moved
    from streamweld.requests.tables import Json

__all__ = ["Conversion", "convert"]


@dataclass(frozen=True, slots=True)
class Conversion(history.Conversion):
    """A complete request, converted for the target.

    Attributes:
        payload: the request. Unchanged parts are the same objects as in the source.
        edits: every change that goes beyond translation.
        ids: the map of tool call ids.
        losses: members and options that the target cannot represent.
        tool_names: maps the source name of each renamed tool to its name in the payload. A tool is renamed if the
            target rejects its name.
    """

    tool_names: Mapping[str, str] = field(default_factory=dict[str, str])


@hinted(to="target")
def convert(
    request: Mapping[str, Any] | Any,
    *,
    source: Source = "auto",
    target: Target,
    gateway: str | Profile | Mapping[str, Any] | None = None,
    provider: str | None = None,
    policy: RequestPolicy | HistoryPolicy | None = None,
) -> Conversion:
    """Convert a complete request for another API: messages, tools and options.

    Args:
        request: the request for the source API, as a mapping or an SDK object. The request may contain SDK objects
            (pydantic models, dataclasses, and response objects among the messages). The request is not modified.
        source: `openai-chat` (or `chat`), `mistral`, `responses`, `anthropic`, `gemini`, `bedrock-converse`,
            `ai-sdk-model`, `ai-sdk-ui`, or `auto`.
        target: one of the same names, except `auto`.
        gateway: the profile whose constraints apply: a name, `name@date`, a `Profile`, or a mapping; None for the
            target's own API.
        provider: the vendor or gateway that issued the signatures in the assistant's turns, for turns that do not
            identify the issuer.
        policy: how options that the target does not support are handled, and how broken histories are repaired. A
            `HistoryPolicy` is shorthand for `RequestPolicy(history=…)`.

    Returns:
        The request for the target, every edit, every loss, and the maps of ids and tool names. Members that the
        target's API does not have are recorded as losses. If source and target are the same API, members that
        streamweld does not recognize are kept.

    Raises:
        UsageError: if the source, target, gateway or provider does not exist, or if the request has no messages.
        HistoryError: under the same conditions as `history.convert`. With `vital="raise"`, also with the rule
            `unsupported_option`.
    """
    profile = resolve(gateway, target)
    if isinstance(policy, HistoryPolicy):
        policy = RequestPolicy(history=policy)
    given, moved = _plain(request)
    try:
        return converted_before(_converted(given, source, profile, provider, policy or RequestPolicy()), moved)
    except HistoryError as error:
        raise error_before(error, moved) from None


def _converted(
    given: Json, source: Source, profile: Profile, provider: str | None, policy: RequestPolicy
) -> Conversion:
    known = spelling.detect(given, profile.target) if source == "auto" else target_name(source, "source")
    normal = spelling.normal(given, known, profile.target)
    context = RequestContext(normal.request, given, known, profile, policy, moved=normal.moved)
    for path, value in normal.repeated:
        context.lose_given(path, "another member sets the same option and takes precedence", value)
    legacy.modernize(context)
    cache_marks.limit(context)
    cache_marks.order(context)
    done = _history(context, provider)
    names = Names(context)
    if context.same:
        own = {
            name: done.payload.get(name, value)
            for name, value in context.request.items()
            if name in done.payload or name == "thinking"
        }
        made = same_api.translate(context, own | dict(done.payload), names)
    else:
        made = _translated(context, done.payload, names)
    constraints.apply(context, made)
    if context.same and made.keys() == given.keys() and all(made[name] is given[name] for name in made):
        made = cast("dict[str, Any]", given)
    edits, losses = context.placed(done)
    entry = {(loss.feature, loss.path) for loss in losses}
    losses = (*losses, *[loss for loss in context.losses if (loss.feature, loss.path) not in entry])
    return Conversion(made, (*edits, *context.edits), done.ids, losses, tool_names=names.renamed)


def _plain(request: Any) -> tuple[Json, Moved]:
    found, moved = plain_items(request if isinstance(request, Mapping) else plain(request))
    if not isinstance(found, Mapping):
        hint = "; a list of messages is converted by `history.convert`" if isinstance(found, list) else ""
        raise UsageError(f"the request must be a mapping or an object with the members of a request{hint}")
    return cast("Json", found), moved


def _history(context: RequestContext, provider: str | None) -> history.Conversion:
    """Convert the messages and the other members that belong to the history."""
    given = context.request
    own = spec("history")[context.source]
    context.used.update((name,) for name in own)
    part = {name: given[name] for name in own if given.get(name) is not None}
    continued = context.same and context.profile.constraints.get("stored_responses") is not False
    if context.same:  # the code for options converts thinking, and references to turns that the target does not store
        apart = {"thinking"} if continued else {"thinking", *STORED}
        part = {name: value for name, value in given.items() if name not in apart}
    elif "model" in given:
        part["model"] = given["model"]
    policy = context.policy.history
    stateful = any(given.get(name) is not None for name in STORED)
    if stateful and not continued and policy.orphan_result == "synthesise":
        policy = replace(policy, orphan_result="text")  # the server stores the calls, so they must not be synthesized
    store = given.get("store")
    if not isinstance(store, bool):
        store = None if context.same or context.target != "responses" else False
    return history.convert(
        part,
        source=cast("Source", context.source),
        target=cast("Target", context.target),
        gateway=context.profile,
        provider=provider,
        policy=policy,
        tools=_tools_of(context),
        store=store,
    )


def _tools_of(context: RequestContext) -> Any:
    given = context.request
    if context.source == "bedrock-converse":
        found = object_of(given.get("toolConfig")).get("tools")
    else:
        found = given.get("tools")
        found = found if found is not None else given.get("functions")
    return found


def _lose_prefill(context: RequestContext) -> None:
    """Record the loss of a prefilled response: a final assistant message that the source's model would continue."""
    table = spec("prefill")
    messages = listed(context.request.get("messages"))
    last = object_of(messages[-1] if messages else None)
    gateways = table["lost"].get(context.target, ())
    if (
        context.source not in table["sources"]
        or context.profile.name not in gateways
        or last.get("role") != "assistant"
    ):
        return
    blocks = [object_of(block) for block in listed(last.get("content"))]
    if not any(call in block or block.get("type") == call for block in blocks for call in table["calls"]):
        why = "the target does not continue an assistant message; its response follows the message"
        context.lose("prefill", ("messages", len(messages) - 1), why, vital=True)


def _translated(context: RequestContext, payload: Json, names: Names) -> dict[str, Any]:
    made: dict[str, Any] = {}
    model = context.request.get(MODEL.get(context.source, "model"))
    context.used.add((MODEL.get(context.source, "model"),))
    if model is not None:
        made[MODEL.get(context.target, "model")] = model
    _lose_prefill(context)
    own = spec("history")[context.target]
    made |= {name: payload[name] for name in (*own[1:], own[0]) if name in payload}
    kept = tools.accepted(tools.read(context), context)
    kept = list(tools.write(kept, context, names, made))
    tool_choice.translate(tool_choice.read(context), kept, context, names, made)
    constraints.include(context, made)
    options.translate(context, made, tools=bool(kept))
    answer_format.translate(answer_format.read(context), context, made)
    note = thinking.read(context)
    constraints.require(context, made, note)  # before `thinking`, because max_tokens limits the thinking budget
    thinking.translate(note, context, made)
    context.unused()
    return made
