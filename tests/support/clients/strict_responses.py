"""Read a Responses stream by the combined rules of openai-python and openai-node, without a process or a server.

Both clients store one item at each output index and one part at each position of an item, and raise if an event does
not match the stored data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

CALLS = ("function_call", "custom_tool_call", "shell_call", "shell_call_output")
OPTIONAL_ID = ("function_call", "custom_tool_call")
LIFECYCLE = ("created", "queued", "in_progress", "completed", "failed", "incomplete")
# For each family of events: the type of the item, the item's list of parts, and the type and the text member of the
# part.
TEXTS = {
    "output_text": ("message", "content", "output_text", "text"),
    "refusal": ("message", "content", "refusal", "refusal"),
    "reasoning_text": ("reasoning", "content", "reasoning_text", "text"),
    "reasoning_summary_text": ("reasoning", "summary", "summary_text", "text"),
}
ARGUMENTS = {
    "function_call_arguments": ("function_call", "arguments"),
    "custom_tool_call_input": ("custom_tool_call", "input"),
}


class RefusedError(Exception):
    """A client would raise on this stream."""


def require(condition: object, why: str) -> None:
    if not condition:
        raise RefusedError(why)


def identities(item: dict[str, Any]) -> list[str]:
    """Return the keys by which clients find an item."""
    kind = item.get("type")
    require(isinstance(kind, str), "an item without a type")
    named = []
    if "id" in item:
        require(isinstance(item["id"], str) and item["id"], "an item with an empty id")
        named.append(f"id:{item['id']}")
    else:
        require(kind in OPTIONAL_ID, "an item without an id")
    if kind in CALLS:
        require(isinstance(item.get("call_id"), str), "a call without a call id")
        named.append(f"call:{kind}:{item['call_id']}")
    return named


@dataclass
class StrictReader:
    """The state that clients store for one response."""

    response: dict[str, Any] | None = None
    final: dict[str, Any] | None = None
    items: dict[int, dict[str, Any]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)

    def event(self, event: dict[str, Any]) -> None:
        """Apply one event."""
        kind = event["type"].removeprefix("response.")
        if kind in LIFECYCLE:
            self._lifecycle(kind, event["response"])
            return
        require(self.response is not None, f"{kind} before response.created")
        family, _, verb = kind.rpartition(".")
        if kind == "output_item.added":
            self._add(event["output_index"], event["item"])
        elif kind == "output_item.done":
            self._close(event["output_index"], event["item"])
        elif family in TEXTS:
            self._text(family, verb, event)
        elif family in ARGUMENTS:
            wanted, member = ARGUMENTS[family]
            item = self._item(event, wanted)
            item[member] = item[member] + event["delta"] if verb == "delta" else event[member]
        elif family in ("content_part", "reasoning_summary_part"):
            self._part(family, verb, event)
        elif "output_index" in event:
            require(event["output_index"] in self.items, "an event for an item that was not added")

    def _lifecycle(self, kind: str, response: dict[str, Any]) -> None:
        if self.response is None:
            require(kind == "created", f"{kind} before response.created")
            self.response = response
            self.items = dict(enumerate(response.get("output") or []))
            return
        require(response.get("id") == self.response.get("id"), "the id of the response changed")
        if kind not in ("completed", "failed", "incomplete"):
            return
        self.final = response
        if kind != "completed":
            return
        output = response.get("output")
        if output is None:
            self.final = {**response, "output": [self.items[at] for at in sorted(self.items)]}
            return
        found = {name: item for item in output for name in identities(item)}
        for at, item in self.items.items():
            same = found.get(identities(item)[-1])
            require(same is not None or at in self.done, "an item that was not finished")
            require(same is None or same.get("id") == item.get("id") or "id" not in item, "the id of an item changed")

    def _add(self, at: int, item: dict[str, Any]) -> None:
        require(isinstance(at, int) and at >= 0, "an item without an index")
        require(at not in self.items, f"two items at index {at}")
        known = {name for other in self.items.values() for name in identities(other)}
        require(known.isdisjoint(identities(item)), "two items with one id")
        self.items[at] = json.loads(json.dumps(item))

    def _close(self, at: int, item: dict[str, Any]) -> None:
        known = self.items.get(at)
        require(known is not None, "the end of an item that was not added")
        assert known is not None
        identities(item)
        require(known["type"] == item.get("type"), "the type of an item changed")
        optional = "id" not in known and known["type"] in OPTIONAL_ID
        require(known.get("id") == item.get("id") or optional, "the id of an item changed")
        require(known["type"] not in CALLS or known["call_id"] == item.get("call_id"), "the call id of an item changed")
        self.items[at] = json.loads(json.dumps(item))
        self.done.add(at)

    def _item(self, event: dict[str, Any], wanted: str) -> dict[str, Any]:
        item = self.items.get(event.get("output_index", -1))
        require(item is not None, "content of an item that was not added")
        assert item is not None
        require(event.get("item_id") and event["item_id"] == item.get("id"), "content under another item's id")
        require(item["type"] == wanted, f"{wanted} content in an item of type {item['type']}")
        return item

    def _part(self, family: str, verb: str, event: dict[str, Any]) -> None:
        part = json.loads(json.dumps(event["part"]))
        is_summary = family == "reasoning_summary_part"
        wanted = "reasoning" if is_summary or part["type"] == "reasoning_text" else "message"
        parts = self._item(event, wanted).setdefault("summary" if is_summary else "content", [])
        at = event.get("summary_index" if is_summary else "content_index")
        if verb == "added":
            require(at == len(parts), "a part at another position")
            parts.append(part)
        else:
            require(isinstance(at, int) and 0 <= at < len(parts), "the end of a part that was not added")
            parts[at] = part

    def _text(self, family: str, verb: str, event: dict[str, Any]) -> None:
        if verb not in ("delta", "done"):
            return
        wanted, holder, kind, member = TEXTS[family]
        parts = self._item(event, wanted).get(holder) or []
        at = event.get("summary_index" if holder == "summary" else "content_index")
        require(isinstance(at, int) and 0 <= at < len(parts), "text of a part that was not added")
        require(holder == "summary" or parts[at]["type"] == kind, f"{kind} in a part of another type")
        parts[at][member] = parts[at][member] + event["delta"] if verb == "delta" else event[member]


def read(body: bytes) -> dict[str, Any]:
    """Return the final response of a stream; raises `RefusedError` if a client would raise."""
    reader = StrictReader()
    for block in body.decode().replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip(" ") for line in block.split("\n") if line.startswith("data:"))
        if data and data != "[DONE]":
            reader.event(json.loads(data))
    require(reader.final is not None, "no end")
    assert reader.final is not None
    return reader.final
