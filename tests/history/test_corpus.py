"""Every recorded response as history, for its own API and four others: the output is valid, and every loss is reported.

`history_losses.json`, which was reviewed by hand, contains the number of losses of each dialect in each target. A run
without all recordings does not compare them. STREAMWELD_REWRITE=1 rewrites the file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from functools import cache
from typing import Any

import pytest
import streamweld as sw
from streamweld.errors import StreamweldError
from streamweld.events import ProviderItem, ReasoningDone, ToolCall, ToolResult, Unknown
from streamweld.history import Conversion, check, convert

from tests.support.corpus import FOLDERS, absent, recordings
from tests.support.places import TESTS

COUNTS = TESTS / "history" / "history_losses.json"
OWN = {
    "chat": "openai-chat",
    "responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "aisdk-parts": "ai-sdk-model",
    "aisdk-ui": "ai-sdk-ui",
}
OTHERS = ("anthropic", "responses", "openai-chat", "gemini")
# Items whose results the client sends as items of a dedicated type.
OUTPUTS = {"apply_patch_call": "apply_patch_call_output", "tool_search_call": "tool_search_output"}

pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")


@cache
def answers(folder: str) -> list[tuple[str, sw.Response]]:
    """Return every complete response in a folder. Truncated streams and errors are not part of a history."""
    found = []
    for recording in recordings(folder):
        try:
            found.append((recording.name, sw.parse(recording.body, dialect=recording.dialect)))
        except StreamweldError:
            continue
    return found


def history(response: sw.Response, target: str) -> tuple[list[Any], str]:
    """Return the user's message, the response and the next message, in the format of the user's code, and their
    dialect.
    """
    calls = response.dispatchable_calls
    kinds = [(call.provider_metadata or {}).get("type") for call in calls]
    if target == "responses" and any(kind in OUTPUTS for kind in kinds):
        results = [
            {"type": OUTPUTS.get(kind or "", "function_call_output"), "call_id": call.call_id, "output": "ok"}
            for call, kind in zip(calls, kinds, strict=True)
        ]
        return [{"role": "user", "content": "q"}, response, *results], "responses"
    after = [{"role": "tool", "tool_call_id": call.call_id, "content": "ok"} for call in calls]
    return [
        {"role": "user", "content": "q"},
        response,
        *(after or [{"role": "user", "content": "go on"}]),
    ], "openai-chat"


def converted(response: sw.Response, target: str) -> Conversion:
    messages, source = history(response, target)
    return convert(messages, source=source, target=target)


def routes() -> list[Any]:
    return [
        pytest.param(folder, target, id=f"{folder}-{target}")
        for folder in FOLDERS
        for target in dict.fromkeys((OWN[folder], *OTHERS))
    ]


def counted(folder: str, target: str) -> tuple[dict[str, int], dict[str, int]]:
    losses: Counter[str] = Counter()
    edits: Counter[str] = Counter()
    for _, response in answers(folder):
        made = converted(response, target)
        losses.update(loss.feature for loss in made.losses)
        edits.update(edit.rule for edit in made.edits)
    return dict(sorted(losses.items())), dict(sorted(edits.items()))


@pytest.mark.parametrize(("folder", "target"), routes())
def test_every_answer(folder: str, target: str) -> None:
    for name, response in answers(folder):
        made = converted(response, target)
        assert check(made.payload, target=target) == [], name
        again = convert(made.payload, source=target, target=target)
        assert again.payload is made.payload, (name, again.edits)
        assert not again.edits, name
        assert not again.losses, name
        made_up = [edit for edit in made.edits if edit.rule in ("result_unasked", "duplicate_result")]
        assert not made_up, (name, made_up)
        unheard = [edit for edit in made.edits if edit.rule == "call_unanswered"]
        broken = [item for item in response.items if isinstance(item, ToolCall) and not item.dispatchable]
        assert len(unheard) <= len(broken), (name, unheard)


def wire(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


@pytest.mark.parametrize("folder", FOLDERS)
def test_its_own_api_gets_all_of_it(folder: str) -> None:
    """Signatures, encrypted data, server tools and their results are kept unchanged, or a report gives the reason."""
    target = OWN[folder]
    seen = 0
    for name, response in answers(folder):
        made = converted(response, target)
        held = wire(made.payload)
        payload_of = wire([*(e.removed for e in made.edits), *(x.removed for x in made.losses)]) if made.edits else ""
        for item in response.items:
            marks: list[str] = []
            if isinstance(item, ReasoningDone):
                marks = [text for text in (item.signature, item.encrypted_content, item.text.strip()) if text]
            elif isinstance(item, ToolCall) and item.provider_executed:
                marks = [item.call_id] if not item.call_id.startswith("call_sw_") else []
            elif isinstance(item, ToolResult):
                marks = [wire(item.output)] if item.output else []
            elif isinstance(item, ProviderItem):
                marks = [wire(item.value)]
            elif isinstance(item, Unknown):
                marks = [wire(json.loads(item.raw))] if item.raw.startswith(b"{") else []
            for mark in marks:
                seen += 1
                inner = wire(mark)[1:-1] if not mark.startswith(("{", "[", '"')) else mark
                assert inner in held or inner in payload_of or gone(inner, made), (name, mark[:200])
    assert seen or folder not in ("anthropic", "responses", "gemini")


def gone(mark: str, made: Conversion) -> bool:
    """Return True if a report contains the value as an event, which is not JSON, or if several reports each contain a
    part of a text.
    """
    entries = (*made.edits, *made.losses)
    lists = [entry.removed for entry in entries if isinstance(entry.removed, list)]
    whole = "".join(str(piece.get("text")) for pieces in lists for piece in pieces if isinstance(piece, dict))
    if any(mark[:40] in repr(entry.removed) for entry in entries):
        return True
    return not mark.startswith(("{", "[", '"')) and squeezed(json.loads(f'"{mark}"')) in squeezed(whole)


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(("folder", "target"), routes())
def test_what_is_lost_was_reviewed(folder: str, target: str) -> None:
    losses, edits = counted(folder, target)
    found = {"answers": len(answers(folder)), "losses": losses, "edits": edits}
    key = f"{folder} -> {target}"
    if os.environ.get("STREAMWELD_REWRITE"):
        reviewed = json.loads(COUNTS.read_text("utf-8")) if COUNTS.exists() else {}
        reviewed[key] = found
        COUNTS.write_text(json.dumps(dict(sorted(reviewed.items())), indent=1) + "\n", "utf-8")
    assert found == json.loads(COUNTS.read_text("utf-8"))[key]
