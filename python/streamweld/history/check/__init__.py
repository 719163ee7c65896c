"""`check`: find the rules of a target API and gateway that a request history breaks.

    for violation in check(messages, target="anthropic"):
        print(violation.path, violation.rule, violation.source)

The rules come from the vendors' documentation, and the constraints of a gateway come from its profile. The checker does
not modify the history. The checker and `convert` share no code, so each can be used to test the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._messages import hinted
from streamweld.errors import UsageError
from streamweld.history.check import ai_sdk, anthropic, bedrock, chat, gemini, responses
from streamweld.history.check.client_calls import check_client_calls
from streamweld.history.check.content import check_content
from streamweld.history.check.ids import check_ids
from streamweld.history.check.order import check_order
from streamweld.history.check.pairs import check_pairs
from streamweld.history.check.reasoning import check_reasoning
from streamweld.history.check.report import HistoryViolation, Report
from streamweld.history.check.view import View, as_json, is_list
from streamweld.history.payload import plain_items
from streamweld.history.places import violation_before
from streamweld.history.profiles import Profile, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from streamweld._literals import Target
    from streamweld.history.check.report import Path
    from streamweld.history.check.view import Json

__all__ = ["HistoryViolation", "check"]

# For each target: the payload member that contains the messages, and the function that reads them.
_READERS: Final[Mapping[str, tuple[str, Callable[[Sequence[Any], Path, Json, Report], View]]]] = {
    "openai-chat": ("messages", chat.read),
    "mistral": ("messages", chat.read),
    "responses": ("input", responses.read),
    "anthropic": ("messages", anthropic.read),
    "gemini": ("contents", gemini.read),
    "bedrock-converse": ("messages", bedrock.read),
    "ai-sdk-ui": ("messages", ai_sdk.read_ui),
    "ai-sdk-model": ("messages", ai_sdk.read_model),
}


@hinted(to="target")
def check(
    messages: Sequence[Any] | Mapping[str, Any],
    *,
    target: Target,
    gateway: str | Profile | Mapping[str, Any] | None = None,
    tools: Iterable[Any] | None = None,
) -> list[HistoryViolation]:
    """List the rules of an API that a request history breaks, in the order of the history.

    Args:
        messages: the history in the target's own format: the list of messages (items or contents), or the request
            payload that contains it. The checker also uses these members of a payload: the system prompt, `store:
            false`, `thinking`, the tools, and `previous_response_id` (if it is set, results may belong to calls that
            only the server stores).
        target: `openai-chat` (or `chat`), `responses`, `anthropic`, `gemini`, `mistral`, `bedrock-converse`,
            `ai-sdk-ui` or `ai-sdk-model` (or `ai-sdk-parts`).
        gateway: the gateway's profile: a name, a Profile, or a mapping; None for the target's own API.
        tools: the tools of the request, if the payload does not contain them.

    Returns:
        One violation for each place where a rule is broken; an empty list if there are none. Two kinds of error cannot
        be detected from a request alone: reasoning that another provider issued, and missing content.

    Raises:
        UsageError: if the target or gateway is unknown, or if the payload has no messages.

    >>> [found.rule for found in check([{"role": "assistant", "content": "Hi "}], target="anthropic")]
    ['first_role', 'trailing_space']
    """
    profile = resolve(gateway, target)
    messages, moved = plain_items(messages)
    member, read = _READERS[profile.target]
    payload: Mapping[str, Any] = {}
    base: Path = ()
    items: Any = messages
    if isinstance(messages, Mapping):
        payload, base, items = messages, (member,), messages.get(member)
        if payload.get("store") is False:
            profile = profile.with_options(store=False)
        if isinstance(items, str) and member == "input":
            items = [{"type": "message", "role": "user", "content": items}]
    if not is_list(items):
        raise UsageError(
            f"messages must be a list, or a mapping with a list in {member!r}, for target {profile.target!r}"
        )
    report = Report(profile)
    view = read(cast("Sequence[Any]", items), base, payload, report)
    check_order(view, report)
    check_pairs(view, report, _tools(tools, payload))
    check_client_calls(view, report)
    check_ids(view, report)
    check_reasoning(view, report)
    check_content(view, report)
    return [violation_before(found, moved) for found in report.found()]


def _tools(tools: Iterable[Any] | None, payload: Json) -> list[Any] | None:
    """Return the tools of the request, or None if neither the argument nor the payload lists tools."""
    if tools is not None:
        return list(tools)
    config = as_json(payload.get("toolConfig"))
    fields = payload.get("tools") if config is None else config.get("tools")
    return fields if isinstance(fields, list) else None  # pyright: ignore[reportUnknownVariableType]
