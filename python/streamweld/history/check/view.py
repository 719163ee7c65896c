"""The checker's view of a history: messages made of blocks, with their paths.

Each target has a reader, which builds this view from the wire format and reports values that do not match the format.
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
# `unknown`: a block type that does not exist in the target. `other`: a valid block type without rules.
Kind = Literal[
    "text", "refusal", "image", "audio", "file", "video", "reasoning", "call", "result", "reference", "other", "unknown"
]
_EMPTY: Final[Json] = {}


@dataclass(slots=True, eq=False)
class Block:
    """One block of a message. `type`: the block's type, as in the source."""

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
    settled: bool = False  # a call that does not need a result, because it awaits approval or the server ran it

    @property
    def json(self) -> Json:
        return as_json(self.raw) or _EMPTY


@dataclass(slots=True, eq=False)
class Message:
    """One message or item.

    `role`: the role, with the same names for all targets. `wire`: the role, as in the source. `plain`: whether the
    content is a string rather than a list of blocks.
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
        """Whether the message has no content other than empty texts."""
        return all(block.kind == "text" and not block.text for block in self.blocks)


@dataclass(slots=True, eq=False)
class View:
    """A complete history. `turns`: the messages, grouped into turns of consecutive messages."""

    messages: list[Message]
    base: Path
    payload: Json
    top: Any = None  # system prompt outside the messages
    top_path: Path = ()
    turns: list[list[Message]] = field(default_factory=list[list[Message]])

    def join(self, *roles: str) -> View:
        """Fill `turns`. Consecutive messages with the same role form one turn if the role is in the list."""
        for message in self.messages:
            if self.turns and message.role in roles and self.turns[-1][0].role == message.role:
                self.turns[-1].append(message)
            else:
                self.turns.append([message])
        return self


def as_json(value: Any) -> Json | None:
    """Return the value if it is a JSON object, otherwise None."""
    kind = value.__class__
    if kind is dict:  # a fast test that covers nearly every value; `isinstance` with an abstract class is slow
        return cast("Json", value)
    if kind is str or value is None:
        return None
    return cast("Json", value) if isinstance(value, Mapping) else None


def is_list(value: Any) -> bool:
    """Return whether the value would be an array in JSON."""
    return isinstance(value, list | tuple)


def blocks_of(
    content: Any, path: Path, report: Report, read: Callable[[Json, Path], Block | None]
) -> tuple[list[Block], bool]:
    """Return the blocks of a message's content, and whether the content is a string.

    If the content is null, the list of blocks is empty.
    """
    if content is None:
        return [], False
    if isinstance(content, str):
        return [Block("text", path, content, "", content)], True
    if not is_list(content):
        report.add("shape", path, "the content must be a string or a list")
        return [], False
    found: list[Block] = []
    for n, raw in enumerate(cast("Sequence[Any]", content)):
        fields = as_json(raw)
        if fields is None:
            report.add("shape", (*path, n), "a block must be an object")
            continue
        block = read(fields, (*path, n))
        if block is not None:
            found.append(block)
    return found, False
