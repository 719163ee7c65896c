"""The checker's view of a history: messages made of blocks, with their paths.

Each target's reader builds it from the wire shape and reports what does not match that shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamweld.history.check.report import Path, Report

__all__ = ["Block", "Json", "Kind", "Message", "View", "as_json", "blocks_of", "is_list"]

Json = Mapping[str, Any]
# `unknown`: no block that the target has. `other`: one that it has, and that no rule here speaks of.
Kind = Literal[
    "text", "refusal", "image", "audio", "file", "video", "reasoning", "call", "result", "reference", "other", "unknown"
]
_EMPTY: Final[Json] = {}


@dataclass(slots=True, eq=False)
class Block:
    """One piece of a message. `type`: its name on the wire."""

    kind: Kind
    path: Path
    raw: Any = None
    type: str = ""
    text: str = ""
    id: str | None = None
    name: str | None = None
    arguments: Any = None
    item_id: str | None = None
    signature: str | None = None
    encrypted: str | None = None
    inner: list[Block] = field(default_factory=list["Block"])
    settled: bool = False  # a call that needs no result: it waits for approval, or its server ran it

    @property
    def json(self) -> Json:
        return as_json(self.raw) or _EMPTY


@dataclass(slots=True, eq=False)
class Message:
    """One message, or one item. `role`: who speaks, in words of all targets; `wire`: as it is written there.

    `plain`: the content is a text, not a list of blocks.
    """

    role: str
    wire: str
    path: Path
    raw: Json
    blocks: list[Block]
    plain: bool = False
    item: str = "message"

    def of(self, kind: Kind) -> list[Block]:
        return [block for block in self.blocks if block.kind == kind]

    @property
    def bare(self) -> bool:
        """Nothing is in it but empty texts."""
        return all(block.kind == "text" and not block.text for block in self.blocks)


@dataclass(slots=True, eq=False)
class View:
    """A whole history. `turns`: what asks and what answers, each the messages of one side that belong together."""

    messages: list[Message]
    base: Path
    payload: Json
    top: Any = None  # a system prompt outside of the messages
    top_path: Path = ()
    turns: list[list[Message]] = field(default_factory=list[list[Message]])

    def join(self, *roles: str) -> View:
        """Makes the turns: messages of these roles that follow each other are one."""
        for message in self.messages:
            if self.turns and message.role in roles and self.turns[-1][0].role == message.role:
                self.turns[-1].append(message)
            else:
                self.turns.append([message])
        return self


def as_json(value: Any) -> Json | None:
    """The value if it is an object."""
    return cast("Json", value) if isinstance(value, Mapping) else None


def is_list(value: Any) -> bool:
    """Whether JSON would write it as an array."""
    return isinstance(value, list | tuple)


def blocks_of(
    content: Any, path: Path, report: Report, read: Callable[[Json, Path], Block | None]
) -> tuple[list[Block], bool]:
    """The blocks of a content that is a text or a list of objects, and whether it is a text. Null has none."""
    if content is None:
        return [], False
    if isinstance(content, str):
        return [Block("text", path, content, "", content)], True
    if not is_list(content):
        report.add("shape", path, "the content is neither text nor a list")
        return [], False
    found: list[Block] = []
    for n, raw in enumerate(cast("Sequence[Any]", content)):
        told = as_json(raw)
        if told is None:
            report.add("shape", (*path, n), "a block that is no object")
            continue
        block = read(told, (*path, n))
        if block is not None:
            found.append(block)
    return found, False
