"""An answer in the words it came in: what its API takes back as the assistant's turn, server tools and all.

It knows the names of the dialects, and which of them rebuilds what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.history import (
    replay_ai_sdk,
    replay_anthropic,
    replay_gemini,
    replay_openai_chat,
    replay_responses,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld.history.replay_pieces import Replay
    from streamweld.response import Response

__all__ = ["replay"]

# Dialect of a parser -> dialect of a history.
_DIALECTS: Final[Mapping[str, str]] = {
    "chat": replay_openai_chat.DIALECT,
    "responses": replay_responses.DIALECT,
    "anthropic": replay_anthropic.DIALECT,
    "gemini": replay_gemini.DIALECT,
    "ai-sdk-ui": replay_ai_sdk.UI,
    "ai-sdk-parts": replay_ai_sdk.MODEL,
}
_WAYS: Final[Mapping[str, Callable[[Response], Replay]]] = {
    replay_openai_chat.DIALECT: replay_openai_chat.replay,
    replay_anthropic.DIALECT: replay_anthropic.replay,
    replay_gemini.DIALECT: replay_gemini.replay,
    replay_ai_sdk.UI: replay_ai_sdk.replay_ui,
    replay_ai_sdk.MODEL: replay_ai_sdk.replay_model,
}


def replay(response: Response, family: str) -> tuple[str, Replay] | None:
    """The history dialect of an answer, and its messages there; None where nobody knows what it came in.

    `family`: the dialect of the messages around it. Where they are items too, what the client ran for an item of its
    own kind comes back as one.
    """
    dialect = None if response.dialect is None else _DIALECTS.get(response.dialect)
    if dialect is None:
        return None
    if dialect == replay_responses.DIALECT:
        return dialect, replay_responses.replay(response, items=family == dialect)
    return dialect, _WAYS[dialect](response)
