"""Replaces the audio of a Chat answer with its transcript, because no other dialect has this audio.

The parser attaches all pieces of the audio to the event that finishes the choice. If the choice has text of its own,
the transcript would repeat it, so nothing is added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._pure.json.kinds import is_array, is_object
from streamweld.events import Finished, RefusalDelta, RefusalDone, TextDelta, TextDone, TextStarted

if TYPE_CHECKING:
    from streamweld.events import Event

__all__ = ["Transcripts"]

_PART: Final = 2**32 - 1  # carriers are numbered downward from here, unlike the source's parts


class Transcripts:
    """Creates the texts of the transcripts of one stream."""

    __slots__ = ("_answered",)

    def __init__(self) -> None:
        self._answered: set[int] = set()  # choices with text

    def written(self, event: Event) -> list[Event]:
        """Return the events to write instead of an event."""
        match event:
            case TextDelta() | TextDone() | RefusalDelta() | RefusalDone() if event.text:
                self._answered.add(event.choice)
            case Finished() if event.choice not in self._answered:
                text = _transcript(event)
                if text:
                    self._answered.add(event.choice)
                    return [*_text(event.choice, text), event]
            case _:
                pass
        return [event]


def _text(choice: int, text: str) -> list[Event]:
    return [
        TextStarted(_PART, choice=choice),
        TextDelta(_PART, text, choice=choice),
        TextDone(_PART, text, choice=choice),
    ]


def _transcript(event: Finished) -> str:
    audio: object = (event.provider_metadata or {}).get("audio")
    pieces: list[object] = [piece.get("transcript") for piece in audio if is_object(piece)] if is_array(audio) else []
    return "".join([piece for piece in pieces if isinstance(piece, str)])
