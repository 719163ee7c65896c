"""`write`: convert the neutral model to the target's messages.

`SHAPES` lists the constraints that follow from the format of each dialect.
"""

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
_AI_SDK: Final = ("ai-sdk-ui", "ai-sdk-model")
# Constraints that follow from the format of the dialect. A constraint in this table applies only if the profile does
# not have that constraint. If the constraint is a mapping, each member listed here applies unless the profile has that
# member.
#
# `arguments_text`: arguments are a string that contains JSON.
# `free_form_tools`: the dialect has calls whose input is plain text instead of JSON.
# `inline`: kinds of media that must be sent as data, because the dialect does not support URLs for them.
# `text_input_of`: dialects in which the input of a call may be text. Text input is kept, because only free-form tools
# have it. `bytes`: the vendor's SDK accepts data as bytes and encodes it. `text_files`: files may be text. If files
# cannot be text, a textual file is written as a text block. `named`: kinds of media that can have a file name.
# `detailed`: kinds of media that can have a level of detail.
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
    "anthropic": {"arguments": "object", "named": ("file",), "text_files": True},
    "gemini": {"arguments": "object", "detailed": ("image",)},
    "bedrock-converse": {"arguments": "object", "inline": _EVERY, "named": ("file",), "bytes": True},
    "ai-sdk-ui": {
        "results": {"required": True, "matched": True, "single": True, "adjacent": True},
        "arguments": "object",
        "named": _EVERY,
        "detailed": ("image",),
        "text_files": True,
        "text_input_of": _AI_SDK,
    },
    "ai-sdk-model": {
        "arguments": "object",
        "named": _EVERY,
        "detailed": ("image",),
        "text_files": True,
        "text_input_of": _AI_SDK,
    },
}


def write(family: str, turns: list[Turn], context: Context) -> dict[str, Any]:
    """Return the request members that contain the history in the target's dialect."""
    return _WRITERS[family](turns, context)
