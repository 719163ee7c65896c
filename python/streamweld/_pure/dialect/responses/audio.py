"""Collects the audio of a stream and the transcript of the audio.

At the end of the response, all fragments become metadata of the choice, as they do in the Chat dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.assemble.part.object_merge import Growth
from streamweld._pure.assemble.rule_context import byte_length
from streamweld._pure.dialect.responses.spec_tables import AUDIO_DELTAS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.responses.read import Reader


class Audio:
    """The audio fragments that have been received, as JSON."""

    __slots__ = ("_assembler", "_pieces", "_size")

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._pieces: list[str] = []
        self._size = 0

    def delta(self, event: Mapping[str, Any], reader: Reader) -> bool:
        """Store the fragment in an audio event. Return False if the event has no string `delta`."""
        if not isinstance(event.get("delta"), str):
            return False
        piece = f'{{"{AUDIO_DELTAS[reader.kind]}":{reader.payload.raw("delta")}}}'
        size = byte_length(piece)
        self._assembler.hold(Growth(size, 1))
        self._size += size
        self._pieces.append(piece)
        return True

    def leave(self) -> None:
        """Emit all fragments as one `audio` list in the metadata of the choice."""
        if self._pieces:
            text = f'{{"audio":[{",".join(self._pieces)}]}}'
            self.forget()
            self._assembler.choice_metadata(0, text)

    def forget(self) -> None:
        """Discard the fragments, because the response restarts."""
        self._assembler.hold(Growth(self._size, len(self._pieces)).released())
        self._pieces.clear()
        self._size = 0
