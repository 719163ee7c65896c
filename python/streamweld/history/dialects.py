"""The names of the message dialects, and the request members that contain the history in each dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONTAINERS", "FAMILIES", "Container"]


@dataclass(frozen=True, slots=True)
class Container:
    """The names of the request members that contain the messages and the system prompt."""

    messages: str
    system: str | None = None


# Maps each source or target name to its dialect.
FAMILIES: Final[Mapping[str, str]] = {
    "openai-chat": "openai-chat",
    "chat": "openai-chat",
    "mistral": "openai-chat",
    "responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "bedrock-converse": "bedrock-converse",
    "ai-sdk-ui": "ai-sdk-ui",
    "ai-sdk-model": "ai-sdk-model",
    "ai-sdk-parts": "ai-sdk-model",
}
CONTAINERS: Final[Mapping[str, Container]] = {
    "openai-chat": Container("messages"),
    "responses": Container("input", "instructions"),
    "anthropic": Container("messages", "system"),
    "gemini": Container("contents", "systemInstruction"),
    "bedrock-converse": Container("messages", "system"),
    "ai-sdk-ui": Container("messages"),
    "ai-sdk-model": Container("messages"),
}
