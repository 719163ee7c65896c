"""Reads the transcript of an audio answer, which is the text of the answer in every dialect except Chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamweld.response import Choice


def transcript(choice: Choice) -> str:
    """Return the transcript of a Chat answer that consists only of audio."""
    if choice.text or choice.refusal:
        return ""
    audio = (choice.provider_metadata or {}).get("audio", [])
    return "".join([piece.get("transcript", "") for piece in audio])
