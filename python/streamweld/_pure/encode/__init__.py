"""Contains the encoder for each target dialect. Only this module lists all encoders."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.encode.common.encode_context import Encoder

__all__ = ["TARGETS", "load_encoder"]

# Encoders are imported on demand, because a process rarely writes more than one or two dialects.
TARGETS: Final[Mapping[str, tuple[str, str]]] = {
    "chat": ("chat", "Chat"),
    "responses": ("responses", "Responses"),
    "anthropic": ("anthropic", "Anthropic"),
    "gemini": ("gemini", "Gemini"),
    "ai-sdk-parts": ("ai_sdk.parts", "AiSdkParts"),
    "ai-sdk-ui": ("ai_sdk.ui", "AiSdkUi"),
}


def load_encoder(target: str) -> type[Encoder]:
    """Return the encoder class for a target."""
    module, name = TARGETS[target]
    return cast("type[Encoder]", getattr(import_module(f"streamweld._pure.encode.{module}"), name))
