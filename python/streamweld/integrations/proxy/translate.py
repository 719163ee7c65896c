"""Convert a request for the upstream with `streamweld.requests`, and return what is needed to handle the response.

A request is refused if an option that changes the response cannot be expressed in the upstream's API. Minor options (a
seed, a penalty) are dropped and listed in `Translated.dropped`. This module does no I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld import requests
from streamweld._show import printable
from streamweld.errors import HistoryError, UsageError
from streamweld.history.conversion import tool_names
from streamweld.integrations.proxy.json_values import list_of, object_of
from streamweld.integrations.proxy.refusals import Refusal
from streamweld.requests import RequestPolicy
from streamweld.requests.tables import gateway_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streamweld.history import Loss
    from streamweld.integrations.proxy.config import ProxyConfig, ProxyDialect

__all__ = ["Translated", "translated"]

_POLICY: Final = RequestPolicy(vital="raise")
_SHOWN: Final = 300
# Only member names that match this pattern are logged, because a client can send any name.
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}", re.ASCII)
_MOST_DROPPED: Final = 20
# Members that the proxy itself handles. For example, the Gemini API has no `stream` member, because the endpoint
# selects streaming.
_OWN: Final = frozenset({"stream", "include_usage"})


@dataclass(frozen=True, slots=True)
class Translated:
    """A request for the upstream.

    Attributes:
        payload: the body; if nothing changed, the object that was passed in.
        tools: the names of the tools that the request declares.
        known_call_ids: the call ids of earlier turns, which the response must not reuse.
        include_usage: True if the client wants usage in a stream.
        dropped: the names of the dropped members.
    """

    payload: Mapping[str, Any]
    tools: tuple[str, ...]
    known_call_ids: frozenset[str]
    include_usage: bool
    dropped: tuple[str, ...]


def translated(request: Mapping[str, Any], source: ProxyDialect, config: ProxyConfig, *, stream: bool) -> Translated:
    """Convert a request for the upstream of `config`.

    Args:
        request: the request including its model, even in dialects whose requests do not contain the model.
        source: the client's dialect. If the upstream has the same dialect, the request is only adapted to the gateway's
            rules.
        config: the configuration of the proxy; `to` must be set.
        stream: True if the client asks for a stream.

    Raises:
        Refusal: 400 if the upstream's API cannot express the request or its history, or if a member has an invalid
            type.
    """
    try:
        return _translated(request, source, config, stream=stream)
    except HistoryError as error:
        raise _refusal(error, cast("str", config.to)) from None
    except UsageError as error:
        raise Refusal(400, "invalid_request", printable(str(error), _SHOWN)) from None
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError):
        text = "the request cannot be converted: a member is missing or has the wrong type"
        raise Refusal(400, "invalid_request", text) from None


def _translated(request: Mapping[str, Any], source: ProxyDialect, config: ProxyConfig, *, stream: bool) -> Translated:
    if not isinstance(request.get("model"), str):
        raise Refusal(400, "invalid_model", "model must be a string")
    to = cast("ProxyDialect", config.to)
    profile = config.profile(to)
    done = requests.convert(request, source=source, target=cast("Any", profile.target), gateway=profile, policy=_POLICY)
    if done.tool_names:
        name = next(iter(done.tool_names))
        raise Refusal(400, "unsupported_tool_name", f"the upstream accepts no tool named {printable(name, 100)}")
    payload: Mapping[str, Any] = done.payload
    if source != to:
        payload = {name: value for name, value in payload.items() if name not in ("stream", "stream_options")}
        if stream and to != "gemini":
            payload["stream"] = True
            lacks = gateway_facts(profile.name, profile.target).get("lacks", ())
            if profile.target == "openai-chat" and "include_usage" not in lacks:
                payload["stream_options"] = {"include_usage": True}
    requested = object_of(request.get("stream_options")).get("include_usage") is True
    return Translated(
        payload,
        tuple(tool_names(request.get("tools"))),
        frozenset(_call_ids(payload, to)),
        include_usage=source != "chat" or requested or not stream,
        dropped=_dropped(done.losses),
    )


def _refusal(error: HistoryError, to: str) -> Refusal:
    if error.rule == "unsupported_option":
        location = printable(error.path.removeprefix("/"), _SHOWN)
        return Refusal(400, error.rule, f"{location}: the upstream's API ({to}) cannot express it")
    return Refusal(400, "invalid_history", str(error))


def _dropped(losses: tuple[Loss, ...]) -> tuple[str, ...]:
    words = {loss.feature if _WORD.fullmatch(loss.feature) else "other": None for loss in losses}
    return tuple(word for word in words if word not in _OWN)[:_MOST_DROPPED]


def _call_ids(payload: Mapping[str, Any], to: str) -> Iterator[str]:
    for word in _ids(payload, to):
        if isinstance(word, str):
            yield word


def _ids(payload: Mapping[str, Any], to: str) -> Iterator[object]:
    match to:
        case "responses":
            for item in list_of(payload.get("input")) or ():
                yield object_of(item).get("call_id")
        case "gemini":
            for turn in list_of(payload.get("contents")) or ():
                for part in list_of(object_of(turn).get("parts")) or ():
                    yield object_of(object_of(part).get("functionCall")).get("id")
        case _:
            member = "tool_calls" if to == "chat" else "content"
            for message in list_of(payload.get("messages")) or ():
                for call in list_of(object_of(message).get(member)) or ():
                    yield object_of(call).get("id")
