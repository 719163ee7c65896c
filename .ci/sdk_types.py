"""Compares the types of the installed openai, anthropic and google-genai packages with those that the decoders read.

usage: python .ci/sdk_types.py

The script prints each event, item, content block, delta, finish reason and field that an SDK defines but that no table
in `_spec/dialects.json` turns into a typed event. The script exits with 1 if one of these names is not listed in
`.ci/sdk_types.toml`, which states why a type is kept as `Unknown` or as metadata. The script also exits with 1 if that
file lists a name that is now decoded, or that no longer exists in the SDK.
"""

from __future__ import annotations

import json
import sys
import tomllib
import typing
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path
from typing import Any

if typing.TYPE_CHECKING:
    import enum

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "python" / "streamweld" / "_spec"
REVIEWED = ROOT / ".ci" / "sdk_types.toml"


def members(union: Any) -> list[Any]:
    """Return the classes in a union, including those in nested and annotated unions."""
    if typing.get_origin(union) is typing.Annotated:
        return members(typing.get_args(union)[0])
    parts = typing.get_args(union)
    return [found for part in parts for found in members(part)] if parts else [union]


def types_of(union: Any) -> set[str]:
    """Return the values of `type` in a union of models."""
    return {
        word
        for model in members(union)
        if hasattr(model, "model_fields") and "type" in model.model_fields
        for word in typing.get_args(model.model_fields["type"].annotation)
        if isinstance(word, str)
    }


def aliases(model: Any) -> set[str]:
    """Return the names of a model's fields, as sent on the wire."""
    return {field.alias or name for name, field in model.model_fields.items()}


def words(*enums: type[enum.Enum]) -> set[str]:
    return {str(word.value) for one in enums for word in one if not str(word.value).endswith("UNSPECIFIED")}


def defined() -> dict[str, set[str]]:
    """Return the definitions of the SDKs, by kind."""
    from anthropic.types import ContentBlock, RawContentBlockDelta, RawMessageStreamEvent, StopReason
    from anthropic.types.beta import BetaContentBlock, BetaRawContentBlockDelta, BetaStopReason
    from google.genai import types as gemini
    from openai.types.responses import ResponseOutputItem, ResponseStreamEvent

    return {
        "openai: event": types_of(ResponseStreamEvent),
        "openai: item": types_of(ResponseOutputItem),
        "anthropic: event": types_of(RawMessageStreamEvent),
        "anthropic: block": types_of(ContentBlock) | types_of(BetaContentBlock),
        "anthropic: delta": types_of(RawContentBlockDelta) | types_of(BetaRawContentBlockDelta),
        "anthropic: stop reason": {
            word
            for reasons in (StopReason, BetaStopReason)
            for word in typing.get_args(reasons)
            if isinstance(word, str)
        },
        "google-genai: finish reason": words(gemini.FinishReason),
        "google-genai: part field": aliases(gemini.Part),
        "google-genai: candidate field": aliases(gemini.Candidate),
        "google-genai: response field": aliases(gemini.GenerateContentResponse) - {"sdkHttpResponse", "parsed"},
    }


def known() -> dict[str, list[str]]:
    """Return the names in `_spec`, by kind. A `*` at the start of a name matches any prefix."""
    dialects = json.loads((SPEC / "dialects.json").read_text("utf-8"))
    openai, anthropic, gemini = (dialects[name] for name in ("responses", "anthropic", "gemini"))
    return {
        "openai: event": [*events_of(openai)],
        "openai: item": ["message", "reasoning", *(name for table in _ITEM_TABLES for name in openai[table])],
        "anthropic: event": [*anthropic["events"]],
        "anthropic: block": [*anthropic["blocks"], *anthropic["provider_items"]],
        "anthropic: delta": [*anthropic["deltas"]],
        "anthropic: stop reason": [*anthropic["finish"]],
        "google-genai: finish reason": [*gemini["finish"]],
        "google-genai: part field": gemini["part_fields"],
        "google-genai: candidate field": gemini["candidate_fields"],
        "google-genai: response field": gemini["envelope_fields"],
    }


_ITEM_TABLES = ("call_types", "result_types", "provider_items")
# Events that are in no table, because their forms differ so much that the decoder handles each of them in code.
_OWN_FORM = [
    *("response.output_item.added", "response.output_item.done", "response.output_text.annotation.added"),
    *("response.content_part.added", "response.content_part.done"),
    *("response.reasoning_summary_part.added", "response.reasoning_summary_part.done"),
]


def events_of(openai: dict[str, Any]) -> list[str]:
    """Return the Responses events that the decoder handles."""
    tables = ("opening_events", "terminal_events", "error_events", "keepalive_events", "progress_events")
    tables += ("text_deltas", "text_values", "argument_deltas", "argument_values", "audio_deltas")
    tables += ("contentless_events", "result_deltas")
    return [*_OWN_FORM, *(name for table in tables for name in openai[table])]


def is_known(name: str, names: list[str]) -> bool:
    return any(fnmatchcase(name, one) for one in names)


def compared(
    sdk: dict[str, set[str]], spec: dict[str, list[str]], reviewed: dict[str, dict[str, str]]
) -> tuple[list[str], list[str]]:
    """Return the lines to print: new names, and names in the reviewed list that no longer apply."""
    missing = {kind: {name for name in names if not is_known(name, spec[kind])} for kind, names in sdk.items()}
    new = [
        f"{kind} {name}" for kind, names in missing.items() for name in sorted(names - reviewed.get(kind, {}).keys())
    ]
    stale = [
        f"{kind} {name}" for kind, rows in reviewed.items() for name in rows if name not in missing.get(kind, set())
    ]
    return new, stale


def main() -> int:
    reviewed = tomllib.loads(REVIEWED.read_text("utf-8")) if REVIEWED.exists() else {}
    sdk = defined()
    new, stale = compared(sdk, known(), reviewed)
    for line in new:
        print(f"new: {line}")
    for line in stale:
        print(f"no longer missing: {line}")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("openai", "anthropic", "google-genai"))
    print(f"sdk types: {sum(map(len, sdk.values()))} of {versions}; {len(new)} new, {len(stale)} stale entries")
    return 1 if new or stale else 0


if __name__ == "__main__":
    sys.exit(main())
