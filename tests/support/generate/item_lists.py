"""Responses streams whose items list other parts than the streamed ones: joined, divided, reordered, dropped or
repeated.

The seed determines the stream.
"""

from __future__ import annotations

import json
import random
from typing import Any

__all__ = ["random_case"]

TEXTS = ("a", "b", "ab", "aa", "Hi ", "Hi", "world", "\U0001f600", "")
_NAMES = {
    "output_text": ("response.output_text", "content_index", "text"),
    "refusal": ("response.refusal", "content_index", "refusal"),
    "reasoning_text": ("response.reasoning_text", "content_index", "text"),
    "summary_text": ("response.reasoning_summary_text", "summary_index", "text"),
}


class _Item:
    """One item: its streamed parts in order."""

    def __init__(self, rng: random.Random, number: int) -> None:
        self.rng = rng
        self.reasons = rng.random() < 0.3
        self.index = number
        self.id = f"{'rs' if self.reasons else 'msg'}_{number}" if rng.random() < 0.85 else None
        self.parts: list[tuple[str, str]] = []
        self.events: list[dict[str, Any]] = []

    def stream(self) -> None:
        rng = self.rng
        if rng.random() < 0.8:
            self.event("response.output_item.added", item=self.item([]))
        for _ in range(rng.randrange(1, 5)):
            self.part()
        for _ in range(rng.randrange(3)):
            self.close(*self.label(), rng.choice(TEXTS))

    def label(self) -> tuple[str, int | None]:
        kinds = ["summary_text", "reasoning_text"] if self.reasons else ["output_text"] * 4 + ["refusal"]
        number = None if self.rng.random() < 0.05 else self.rng.randrange(3)
        return self.rng.choice(kinds), number

    def part(self) -> None:
        rng = self.rng
        kind, number = self.label()
        text = ""
        if rng.random() < 0.4:
            text = rng.choice(TEXTS) if rng.random() < 0.3 else ""
            self.content_part("added", kind, number, text)
        for _ in range(rng.randrange(4)):
            if rng.random() < 0.3:
                number = self.label()[1]
            piece = rng.choice(TEXTS)
            text += piece
            self.event(_NAMES[kind][0] + ".delta", kind, number, delta=piece)
            if kind == "output_text" and rng.random() < 0.15:
                mark = {"type": "url_citation", "url": f"u{len(self.events)}"}
                self.event("response.output_text.annotation.added", kind, number, annotation=mark)
        self.parts.append((kind, text))
        if rng.random() < 0.5:
            self.close(kind, number, text if rng.random() < 0.8 else rng.choice(TEXTS))

    def close(self, kind: str, number: int | None, text: str) -> None:
        rng = self.rng
        if rng.random() < 0.2:
            number = self.label()[1]
        if rng.random() < 0.7:
            self.event(_NAMES[kind][0] + ".done", kind, number, **{_NAMES[kind][2]: text})
        if rng.random() < 0.7:
            self.content_part("done", kind, number, text)

    def content_part(self, end: str, kind: str, number: int | None, text: str) -> None:
        name = "reasoning_summary_part" if kind == "summary_text" else "content_part"
        self.event(f"response.{name}.{end}", kind, number, part=self.entry(kind, text))

    def entry(self, kind: str, text: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": kind, _NAMES[kind][2]: text}
        if kind == "output_text":
            entry["annotations"] = [{"type": "file_citation", "n": n} for n in range(self.rng.choice((0, 0, 0, 1, 2)))]
        if self.rng.random() < 0.1:
            entry["own"] = self.rng.randrange(3)
        return entry

    def item(self, parts: list[tuple[str, str]]) -> dict[str, Any]:
        item: dict[str, Any] = {"type": "reasoning", "summary": []} if self.reasons else {"type": "message"}
        if self.id is not None:
            item["id"] = self.id
        item["content"] = [self.entry(kind, text) for kind, text in parts if kind != "summary_text"]
        if self.reasons:
            item["summary"] = [self.entry(kind, text) for kind, text in parts if kind == "summary_text"]
        if self.rng.random() < 0.15:
            item["phase"] = "final"
        return item

    def listed(self) -> list[tuple[str, str]]:
        """Return the parts as they appear in the item's list."""
        rng, parts = self.rng, list(self.parts)
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            at = rng.randrange(len(parts) + 1)
            kind, text = parts[at] if at < len(parts) else self.parts[0]
            way = rng.randrange(8)
            if way == 0:
                rng.shuffle(parts)
            elif way == 1:
                parts[at : at + 1] = []
            elif way == 2:
                parts.insert(at, (kind, rng.choice(TEXTS)))
            elif way == 3 and at + 1 < len(parts):
                parts[at : at + 2] = [(kind, text + parts[at + 1][1])]
            elif way == 4 and len(text) > 1:
                cut = rng.randrange(1, len(text))
                parts[at : at + 1] = [(kind, text[:cut]), (kind, text[cut:])]
            elif way == 5:
                parts[at : at + 1] = [(kind, text + rng.choice(TEXTS))]
            elif way == 6:
                parts.insert(at, (kind, text))
            else:
                parts[at : at + 1] = [(kind, "")]
        return parts

    def event(self, name: str, kind: str | None = None, number: int | None = None, **members: Any) -> None:
        event: dict[str, Any] = {"type": name}
        if kind is not None and self.id is not None:
            event["item_id"] = self.id
        event["output_index"] = self.index
        if kind is not None and number is not None:
            event[_NAMES[kind][1]] = number
        self.events.append(event | members)


def random_case(seed: int) -> tuple[bytes, dict[str, Any]]:
    """Return stream number `seed`: (body, options)."""
    rng = random.Random(f"item lists {seed}")
    items = [_Item(rng, number) for number in range(rng.choice((1, 1, 1, 2)))]
    for item in items:
        item.stream()
        for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
            item.event("response.output_item.done", item=item.item(item.listed()))
    events = [event for item in items for event in item.events]
    if rng.random() < 0.1:
        rng.shuffle(events)
    events.insert(0, {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}})
    response: dict[str, Any] = {"id": "r", "object": "response", "status": "completed"}
    if rng.random() < 0.5:
        response["output"] = [item.item(item.listed()) for item in items]
        if rng.random() < 0.2:
            rng.shuffle(response["output"])
        for item in response["output"]:
            if rng.random() < 0.15:
                item["id"] = "other"
    events.append({"type": "response.completed", "response": response})
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    policy = rng.choice(("standard", "standard", "salvage", "strict"))
    return body.encode(), {"dialect": "responses", "policy": policy}
