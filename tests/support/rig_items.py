"""A test rig for the assembler's item interface: the wire deltas of dialects that open and close their parts."""

from __future__ import annotations

from typing import Any

from streamweld import events as ev
from streamweld._pure.model.delta import Address

from tests.support.rig import Rig


class Items(Rig):
    """A rig for items. Its methods take the members of an item's address as keyword arguments."""

    def __init__(self, *args: Any, dialect: str = "responses", **options: Any) -> None:
        super().__init__(*args, **options)
        self.asm.set_dialect(dialect)

    def item(self, kind: Any = "message", **at: Any) -> Items:
        self.asm.item_opened(0, kind, Address(**at))
        return self

    def part(self, text: str | None = None, kind: Any = "message", metadata: str | None = None, **at: Any) -> Items:
        self.asm.part_opened(0, kind, Address(**at), channel_of(kind), "summary", text, metadata)
        return self

    def say(self, text: str, kind: Any = "message", **at: Any) -> Items:
        self.asm.part_text(0, kind, Address(**at), channel_of(kind), "summary", text, None)
        return self

    def value(self, text: str, kind: Any = "message", **at: Any) -> Items:
        self.asm.part_value(0, kind, Address(**at), channel_of(kind), "summary", text)
        return self

    def close_part(
        self, text: str | None = None, kind: Any = "message", metadata: str | None = None, **at: Any
    ) -> Items:
        self.asm.part_closed(0, kind, Address(**at), channel_of(kind), "summary", text, metadata)
        return self

    def close(self, kind: Any = None, encrypted: str | None = None, **at: Any) -> Items:
        self.asm.item_closed(0, kind, Address(**at), encrypted, None)
        return self

    def open(self, name: str | None = "f", args: str | None = None, *, provider: bool = False, **at: Any) -> Items:
        self.asm.call_opened(0, Address(**at), name, args, provider, False, None)
        return self

    def args(self, text: str, **at: Any) -> Items:
        self.asm.call_text(0, Address(**at), text, None, None)
        return self

    def args_done(self, text: str, **at: Any) -> Items:
        self.asm.call_value(0, Address(**at), text)
        return self

    def call_done(
        self, args: str | None = None, name: str | None = None, *, provider: bool = False, **at: Any
    ) -> Items:
        self.asm.call_closed(0, Address(**at), name, args, provider, False, None)
        return self

    def again(self, args: str, name: str = "f", **at: Any) -> Items:
        self.asm.restate_call(0, Address(**at), name, args, False, False, None)
        return self

    def text_again(self, text: str, kind: Any = "message", **at: Any) -> Items:
        self.asm.restate_part(0, kind, Address(**at), channel_of(kind), "summary", text, None)
        return self

    def end(self, reason: str | None = "completed") -> Items:
        self.done(reason)
        return self

    def texts(self) -> list[str]:
        return [e.text for e in self.asm.snapshot() if isinstance(e, ev.TextDone) and e.text]

    def shown(self, *kinds: str) -> list[str]:
        """Return the events so far as short strings, optionally of some kinds only."""
        self.check()
        return [type(e).__name__ for e in self.events if not kinds or type(e).__name__ in kinds]


def channel_of(kind: str) -> Any:
    return "reasoning" if kind == "reasoning" else "text"


FC1: dict[str, Any] = {"item_id": "fc_1", "index": 0}
FC2: dict[str, Any] = {"item_id": "fc_2", "index": 1}


def opened() -> Items:
    return Items().open(call_id="c1", **FC1)
