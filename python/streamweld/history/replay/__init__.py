"""`replay`: rebuild a response as messages that its own API accepts, including calls of provider-executed tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.history.replay import ai_sdk, anthropic, chat, gemini, responses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld.history.replay.common import Replay
    from streamweld.response import Response

__all__ = ["replay"]

# Maps each stream dialect to its message dialect.
_DIALECTS: Final[Mapping[str, str]] = {
    "chat": chat.DIALECT,
    "responses": responses.DIALECT,
    "anthropic": anthropic.DIALECT,
    "gemini": gemini.DIALECT,
    "ai-sdk-ui": ai_sdk.UI,
    "ai-sdk-parts": ai_sdk.MODEL,
}
_WAYS: Final[Mapping[str, Callable[[Response], Replay]]] = {
    chat.DIALECT: chat.replay,
    anthropic.DIALECT: anthropic.replay,
    gemini.DIALECT: gemini.replay,
    ai_sdk.UI: ai_sdk.replay_ui,
    ai_sdk.MODEL: ai_sdk.replay_model,
}


def replay(response: Response, family: str) -> tuple[str, Replay] | None:
    """Return the message dialect and the messages of a response, or None if its dialect is unknown.

    `family`: the dialect of the surrounding messages. If `family` is also the Responses API, client-executed calls to
    built-in tools keep their item type, because their results are items of a matching type.
    """
    dialect = None if response.dialect is None else _DIALECTS.get(response.dialect)
    if dialect is None:
        return None
    if dialect == responses.DIALECT:
        return dialect, responses.replay(response, items=family == dialect)
    return dialect, _WAYS[dialect](response)
