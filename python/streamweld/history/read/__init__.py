"""`read`: convert messages of any dialect to the neutral model. A list may mix messages and `Response` objects."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.read import ai_sdk_model, ai_sdk_ui, anthropic, bedrock, chat, gemini, response, responses
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streamweld.history.model import Part, Path, Turn

__all__ = ["read"]


_READERS: Final[Mapping[str, Callable[[Any, Path, str | None], list[Turn]]]] = {
    "openai-chat": chat.read,
    "responses": responses.read,
    "anthropic": anthropic.read,
    "gemini": gemini.read,
    "bedrock-converse": bedrock.read,
    "ai-sdk-ui": ai_sdk_ui.read,
    "ai-sdk-model": ai_sdk_model.read,
}
_SYSTEM: Final[Mapping[str, Callable[[Any], list[Turn]]]] = {
    "responses": responses.read_instructions,
    "anthropic": anthropic.read_system,
    "gemini": gemini.read_system,
    "bedrock-converse": bedrock.read_system,
}


def read(
    family: str, items: Sequence[Any] | str | Response, system: Any, base: Path, issuer: str | None, first: int = 0
) -> list[Turn]:
    """Return the turns of a history: a system prompt outside the messages first, then the turns of each message.

    Consecutive results form one turn. In the Responses API, where every item is a separate message, consecutive
    assistant items also form one turn. `first`: the index of the first message, if the messages are only the end of a
    history.

    Raises:
        HistoryError: if a message is not valid in its dialect (`unreadable`, `unknown_role`).
    """
    turns: list[Turn] = []
    if system is not None and family in _SYSTEM:
        turns += _SYSTEM[family](system)
    reader = _READERS[family]
    if isinstance(items, str):
        return turns + reader(items, base, issuer)
    if isinstance(items, Response):
        return turns + response.read_as_it_was(items, base, issuer, _READERS, family)
    joinable = ("tool", "assistant") if family == "responses" else ("tool",)
    nothing: list[Part] = []
    run = nothing  # the parts of the last turn if more parts may still be added to it
    role = ""
    paths = product(*[(step,) for step in base], range(first, first + len(items)))
    for item, path in zip(items, paths, strict=True):
        if item.__class__ is dict or not isinstance(item, Response):
            found = reader(item, path, issuer)
        else:
            found = response.read_as_it_was(item, path, issuer, _READERS, family)
        for turn in found:
            if run:
                if turn.role == role and turn.parts:
                    run += turn.parts
                    continue
                turns[-1].parts = tuple(run)
                run = nothing
            if turn.role in joinable:
                role = turn.role
                run = list(turn.parts)
            turns.append(turn)
    if run:
        turns[-1].parts = tuple(run)
    return turns
