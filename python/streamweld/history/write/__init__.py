"""`write`: turn the neutral model into the target's messages. `SHAPES` lists what each dialect cannot represent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.write import ai_sdk_model, ai_sdk_ui, anthropic, bedrock, chat, gemini, responses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Turn

__all__ = ["SHAPES", "write"]

_WRITERS: Final[Mapping[str, Callable[[list[Turn], Context], dict[str, Any]]]] = {
    "openai-chat": chat.write,
    "responses": responses.write,
    "anthropic": anthropic.write,
    "gemini": gemini.write,
    "bedrock-converse": bedrock.write,
    "ai-sdk-ui": ai_sdk_ui.write,
    "ai-sdk-model": ai_sdk_model.write,
}
_EVERY: Final = ("image", "audio", "video", "file")
_OPENAI: Final = {"named": ("file",), "detailed": ("image",), "free_form_tools": True, "arguments_text": True}
_AI_SDK: Final = ("ai-sdk-ui", "ai-sdk-model")
# Constraints that hold by the shape of the dialect where the profile says nothing of them; members of a mapping always.
# `arguments_text`: arguments are a text that holds JSON. `free_form_tools`: calls whose input is text of their own.
# `inline`: kinds of media that must come as data, there is no place for an address. `text_input_of`: dialects whose
# calls may have a text for input, which stays: it is a free-form tool's there. `bytes`: the vendor's package takes
# data as bytes, and encodes them itself. `named`, `detailed`: kinds of media that may have a file name, and a level of
# detail.
SHAPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "openai-chat": {
        "named": ("file",),
        "detailed": ("image",),
        "inline": ("audio", "file"),
        "free_form_tools": True,
        "arguments_text": True,
    },
    "responses": {
        "named": ("file",),
        "detailed": ("image",),
        "inline": ("audio",),
        "free_form_tools": True,
        "arguments_text": True,
    },
    "anthropic": {"arguments": "object", "named": ("file",)},
    "gemini": {"arguments": "object"},
    "bedrock-converse": {"arguments": "object", "inline": _EVERY, "named": ("file",), "bytes": True},
    "ai-sdk-ui": {
        "results": {"required": True, "matched": True, "single": True, "adjacent": True},
        "arguments": "object",
        "named": _EVERY,
        "text_input_of": _AI_SDK,
    },
    "ai-sdk-model": {"arguments": "object", "named": _EVERY, "text_input_of": _AI_SDK},
}


def write(family: str, turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members of the target that hold the history."""
    return _WRITERS[family](turns, context)
