"""`convert`: read a request history, run the passes on it, and write it for the target."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from streamweld._messages import choice_message, hinted
from streamweld._sdk_objects import is_absent, plain
from streamweld.errors import HistoryError, UsageError
from streamweld.history import passes, profiles
from streamweld.history.chat_members import lists_common
from streamweld.history.context import Context
from streamweld.history.dialects import CONTAINERS, FAMILIES
from streamweld.history.edits import Conversion, Edit
from streamweld.history.model import members_of, pointer
from streamweld.history.payload import STORED, items_of, payload_of, plain_items
from streamweld.history.places import converted_before, error_before
from streamweld.history.policy import HistoryPolicy
from streamweld.history.read import gemini_contents, read
from streamweld.history.read.detect import detect
from streamweld.history.resume import Snapshot, resume
from streamweld.history.rules import edits as edit_rules
from streamweld.history.write import SHAPES, write
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Collection

    from streamweld._literals import Source, Target
    from streamweld.history.model import Path, Turn
    from streamweld.history.profiles import Profile

__all__ = ["convert", "tool_names"]

_FORM: Final = "message_form"
_POLICY: Final = HistoryPolicy()
_DICTS: Final = {dict}
_WHOLE: Final = (str, Response)  # a history that is not a list
_CONTAINERS: Final = (list, dict, Mapping, Sequence, Response)


@hinted(to="target")
def convert(
    messages: Sequence[Any] | Mapping[str, Any] | Response,
    *,
    source: Source = "auto",
    target: Target,
    gateway: str | Profile | Mapping[str, Any] | None = None,
    provider: str | None = None,
    policy: HistoryPolicy | None = None,
    tools: Iterable[Any] | Mapping[str, Any] | None = None,
    store: bool | None = None,
    previous: Conversion | None = None,
) -> Conversion:
    """Convert a request history for another API, and fix what that API would reject.

    Args:
        messages: the messages or items, the request that contains them, or a `Response`, which becomes the assistant's
            next turn. A list may mix messages, Responses and SDK objects. The list is not modified. Other members of a
            request are kept if the target has a member with the same name and meaning; otherwise they are recorded as
            losses. To also convert the other members, call `streamweld.requests.convert`.
        source: `openai-chat`, `mistral`, `responses`, `anthropic`, `gemini`, `bedrock-converse`, `ai-sdk-ui`,
            `ai-sdk-model`, or `auto`.
        target: one of the same dialects (type `history.Target`); `chat` and `ai-sdk-parts` are aliases for
            `openai-chat` and `ai-sdk-model`.
        gateway: the profile whose constraints apply: a name, `name@date`, a `Profile`, or a mapping; None for the
            target's own API.
        provider: the vendor or gateway that issued the signatures in the assistant's turns, for turns that do not
            identify the issuer. Names are not case-sensitive; `providers` in `_spec/gateways.json` lists them.
        policy: how broken histories are repaired.
        tools: the tools of the request: their names, a mapping keyed by name, or their definitions in any dialect.
        store: whether the target stores items between requests (Responses API only).
        previous: an earlier conversion of the first messages of this list, with the same options. If possible, the
            output of that conversion is reused, and only the new messages are converted. The payload is the same as
            without this option; the edits of the reused part come first. Messages are compared by identity, so a
            message that was modified in place is not detected.

    Returns:
        The payload, the edits, the map of ids and the losses. Unchanged parts of the payload are the same objects as in
        the source.

    Raises:
        UsageError: if the source, target, gateway or provider does not exist.
        HistoryError: if a message is not valid in its dialect (`unreadable`, `unknown_role`). With
            `on_unfixable="raise"`, also if a violation cannot be repaired: `too_few`, `user_missing`, `last_role`,
            `tools_missing`, or an error that `check` finds in dialect-specific blocks (`content_kind`).
    """
    if target not in FAMILIES:
        raise UsageError(choice_message("target", target, tuple(FAMILIES)))
    if source != "auto" and source not in FAMILIES:
        raise UsageError(choice_message("source", source, ("auto", *FAMILIES)))
    options = _Options(source, target, gateway, provider, policy or _POLICY, tools, store, previous)
    entry: Any = messages
    lone = not isinstance(entry, _CONTAINERS) and plain(entry) is not entry
    entry = [entry] if lone else entry
    whole = entry.__class__ is dict or isinstance(entry, Mapping)
    if whole and any(map(is_absent, cast("Mapping[str, Any]", entry).values())):
        entry = {name: value for name, value in cast("Mapping[str, Any]", entry).items() if not is_absent(value)}
    try:
        return _grouped(entry, options, pending=lone)
    except HistoryError as error:
        # Readers reject SDK objects, because they are not mappings. SDK objects are converted only after such an error,
        # so that plain data does not have to be searched for them.
        made, moved = plain_items(entry) if error.rule == "unreadable" else (entry, {})
        if made is entry:
            raise
    try:
        return converted_before(_grouped(made, options, pending=lone), moved)
    except HistoryError as error:
        raise error_before(error, moved) from None


@dataclass(slots=True, eq=False)
class _Options:
    """The arguments of `convert` other than the messages."""

    source: str
    target: str
    gateway: str | Profile | Mapping[str, Any] | None
    provider: str | None
    policy: HistoryPolicy
    tools: Iterable[Any] | Mapping[str, Any] | None
    store: bool | None
    previous: Conversion | None


def _grouped(messages: Any, options: _Options, *, pending: bool) -> Conversion:
    """Convert the messages, with Gemini's parts that stand for contents grouped to contents."""
    made, moved, formed = gemini_contents.grouped(messages, options.source)
    if made is messages:
        return _converted(messages, options, pending=pending)
    try:
        done = converted_before(_converted(made, options, pending=pending), moved)
    except HistoryError as error:
        raise error_before(error, moved) from None
    if FAMILIES[options.target] != "gemini":
        return done
    what = "wrote texts and parts as an object with a role and parts"
    edits = [Edit(_FORM, pointer(path), what, edit_rules()[_FORM].why) for path in formed]
    return replace(done, edits=(*edits, *done.edits))


def _converted(messages: Any, options: _Options, *, pending: bool) -> Conversion:
    family = FAMILIES[options.target]
    whole = messages.__class__ is dict or isinstance(messages, Mapping)
    given = cast("Mapping[str, Any]", messages) if whole else None
    items, base = items_of(messages)
    source = options.source
    if source == "auto":
        source_family = detect(() if isinstance(items, _WHOLE) else items, given, family)
    else:
        source_family = FAMILIES[source]
    container = CONTAINERS[source_family]
    system = None if given is None or container.system is None else given.get(container.system)
    store = options.store
    if store is None and given is not None and isinstance(given.get("store"), bool):
        store = given["store"]
    profile = profiles.resolve(options.gateway, options.target)
    if store is not None:
        profile = profile.with_options(store=store)
    issuer = _issuer(options.provider, profile.constraints)
    constraints = profile.derived(family, lambda: _constraints(family, profile.constraints))
    stored = given is not None and any(given.get(name) is not None for name in STORED)
    chained = stored and family == "responses" and constraints.get("stored_responses") is not False
    policy = options.policy
    if stored and not chained and policy.orphan_result == "synthesise":
        policy = replace(policy, orphan_result="text")  # only the source's server stores the calls
    context = Context(
        target=options.target,
        family=family,
        constraints=constraints,
        policy=policy,
        provider=issuer,
        model=_model(given),
        tools=tool_names(options.tools if options.tools is not None else (given or {}).get("tools")),
        pending=pending or isinstance(messages, Response),
        chained=chained,
    )
    seen = _snapshot(items, base, source_family, system, profile, context)
    if options.previous is not None and seen is not None:

        def alone(some: Sequence[Any], first: int) -> Conversion:
            part = context.fresh()
            turns = passes.run(read(source_family, some, None, base, issuer, first), part)
            written = write(family, turns, part)
            if part.policy.on_unfixable == "raise":
                _refuse(turns, written, None, profile, part)
            return Conversion(written, tuple(part.edits), part.ids, tuple(part.losses))

        again = resume(options.previous, seen, alone)
        if again is not None:
            names = (CONTAINERS[family].system, seen.member)
            written = {name: again.payload[name] for name in names if name is not None and name in again.payload}
            seen.losses = again.losses
            payload = payload_of(given, items, source, source_family, written, context)
            return Conversion(payload, again.edits, again.ids, (*again.losses, *context.losses), seen)
    given_turns = read(source_family, items, system, base, issuer)
    turns = passes.run(given_turns, context)
    if turns is given_turns and _is_written(items, source_family, turns, context):
        written = {CONTAINERS[family].messages: items}
    else:
        written = write(family, turns, context)
    if seen is not None:
        seen.losses = tuple(context.losses)
    payload = payload_of(given, items, source, source_family, written, context)
    if context.policy.on_unfixable == "raise" and not context.pending:
        _refuse(turns, payload, given, profile, context)
    return Conversion(payload, tuple(context.edits), context.ids, tuple(context.losses), seen)


def _is_written(items: Any, source_family: str, turns: list[Turn], context: Context) -> bool:
    """Return whether the writer would return the input messages unchanged, because no pass changed them.

    The result is always False for APIs other than Chat Completions, because their writers also merge or complete
    messages.
    """
    if source_family != "openai-chat" or context.family != source_family or not isinstance(items, list):
        return False
    for turn in turns:
        if turn.origin is not None and turn.origin.stale:
            return False
    return set(map(type, items)) == _DICTS  # the writer replaces a Response in the list with a message


def _model(given: Mapping[str, Any] | None) -> str | None:
    """Return the model specified in the request, or None."""
    for name in ("model", "modelId"):
        found = None if given is None else given.get(name)
        if isinstance(found, str):
            return found
    return None


def _snapshot(
    items: Sequence[Any] | str | Response, base: Path, source: str, system: Any, profile: Profile, context: Context
) -> Snapshot | None:
    """Return the state that a later call with `previous` is compared with, or None if the conversion cannot be
    continued.

    A conversion cannot be continued if the output for one turn depends on other turns.
    """
    counted = context.facts("reasoning").get("max_replayed") is not None
    if isinstance(items, _WHOLE) or counted or context.family == "ai-sdk-ui":
        return None
    options = (
        *(source, context.target, profile, context.policy, context.provider, context.model, context.tools),
        *(system, context.chained),
    )
    return Snapshot(options, tuple(items), base, CONTAINERS[context.family].messages)


def _refuse(
    turns: list[Turn], payload: Mapping[str, Any], given: Mapping[str, Any] | None, profile: Profile, context: Context
) -> None:
    """Raise HistoryError for violations that no edit can repair: too few messages, no user message, a wrong last role,
    content of an unknown kind.
    """
    lead = next((n for n, turn in enumerate(turns) if not turn.top), len(turns))  # skip the system prompt
    sent = turns[lead:]
    last: Collection[str] | None = context.fact("last_role")
    if len(sent) < (context.fact("min_items") or 0):
        rule = "too_few"
    elif context.fact("user_required") and not any(turn.role == "user" for turn in sent):
        rule = "user_missing"
    elif last is not None and sent and sent[-1].role not in last:
        rule = "last_role"
    elif context.survey(turns).opaque or (context.fact("tools_required") and _is_without_tools(given)):
        rule = ""
    else:
        return
    from streamweld.history.check import check

    tools: list[Any] | None = [] if _is_without_tools(given) else None
    found = check(payload, target=cast("Target", profile.target), gateway=profile, tools=tools)
    if not rule:  # dialect-specific blocks must exist in the target's dialect
        # `convert` does not turn calls into text if the request declares no tools, so `check` may report them here.
        found = [one for one in found if one.severity == "error"]
        if not found:
            return
        rule = found[0].rule
    first = found[0] if found else None
    raise HistoryError(rule, first.path if first else "", found, first.message if first else "")


def _is_without_tools(given: Mapping[str, Any] | None) -> bool:
    """Return whether the request has an empty list of tools."""
    return given is not None and [] in (given.get("tools"), members_of(given.get("toolConfig")).get("tools"))


def _is_several(value: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _issuer(word: str | None, constraints: Mapping[str, Any]) -> str | None:
    """Return the issuer for the `provider` argument, which is a name in `providers` or an issuer in the profile."""
    if word is None or word in (members_of(constraints.get("reasoning")).get("issuers") or ()):
        return word
    return profiles.provider(word)


def _constraints(family: str, constraints: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the profile's constraints, and values that are derived from them and from the format of the dialect."""
    facts = dict(constraints)
    for name, value in SHAPES[family].items():
        entry = facts.get(name)
        if entry is None:
            facts[name] = value
        elif isinstance(entry, Mapping):
            facts[name] = {**entry, **value}  # pyright: ignore[reportUnknownVariableType]
    if "members" in facts:
        facts["members"] = {kind: frozenset(known) for kind, known in facts["members"].items()}
        facts["common_members"] = lists_common(facts["members"])
    return facts | passes.derived(facts)


def tool_names(tools: Any) -> dict[str, Any]:
    """Return the tools keyed by name. `tools` contains names, a mapping, or definitions in any dialect."""
    if tools is None:
        return {}
    if isinstance(tools, Mapping):
        return dict(cast("Mapping[str, Any]", tools))
    if not _is_several(tools):
        raise UsageError("tools must be a list of tool names or definitions, or a mapping from tool name to schema")
    found: dict[str, Any] = {}
    for tool in tools:
        if isinstance(tool, str):
            found[tool] = None
        elif tool.__class__ is dict or isinstance(tool, Mapping):  # nearly every definition is a dict
            entry = cast("Mapping[str, Any]", tool)
            declared: Any = entry.get("functionDeclarations")
            several: list[Any] = declared if declared.__class__ is list else []
            for raw in (entry, entry.get("function"), entry.get("toolSpec"), *several):
                name = members_of(raw).get("name")
                if isinstance(name, str):
                    found[name] = raw
    return found
