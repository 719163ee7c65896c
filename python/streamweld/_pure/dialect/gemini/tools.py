"""Decodes the parts of a candidate other than text and function calls: files, code that the model ran, and provider
tools.

A result without an id belongs to the preceding call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.gemini.spec_tables import CODE_TOOL, a_word, an_id
from streamweld._pure.json.members import as_object, leftovers
from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload

__all__ = ["KINDS", "read_tool"]

KINDS = frozenset(
    {
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    }
)

_FILE_FIELDS = {"inlineData": frozenset({"mimeType", "data"}), "fileData": frozenset({"mimeType", "fileUri"})}
_TOOL_CALL_FIELDS = frozenset({"id", "toolType", "args"})
_TOOL_RESPONSE_FIELDS = frozenset({"id", "response"})
_CODE_FAILED = frozenset({"OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"})


def read_tool(
    assembler: Assembler,
    choice: int,
    position: int,
    kind: str,
    payload: Payload,
    part: Mapping[str, Any],
    path: Path,
    extra: Raw,
    notes: Anomalies,
) -> None:
    """Decode one part of a candidate.

    `kind`: the kind of the part, which is one of `KINDS`. `position`: the position of the part in its candidate.
    `extra`: the unknown members of the part.
    """
    inner = notes.an_object(part, path, kind)
    if inner is None:
        return
    whole = payload.raw(*path) or "{}"
    path = (*path, kind)
    raw = payload.raw(*path) or "{}"
    match kind:
        case "inlineData" | "fileData":
            extra |= leftovers(payload, path, inner, _FILE_FIELDS[kind])
            data = notes.a_text(inner, path, "data") if kind == "inlineData" else ""
            uri = a_word(inner, path, "fileUri", notes) if kind == "fileData" else None
            media_type = a_word(inner, path, "mimeType", notes)
            assembler.file(choice, media_type, notes.clean(data) or None, uri, as_object(extra))
        case "executableCode":
            address = Address(call_id=an_id(payload, inner, path, notes), index=position)
            assembler.call_opened(choice, address, CODE_TOOL, raw, True, False, as_object(extra))
            assembler.item_closed(choice, "call", address, None, None)
        case "codeExecutionResult":
            failed = a_word(inner, path, "outcome", notes) in _CODE_FAILED
            _result(assembler, choice, an_id(payload, inner, path, notes), raw, failed, extra, whole)
        case "toolCall":
            extra |= leftovers(payload, path, inner, _TOOL_CALL_FIELDS)
            address = Address(call_id=an_id(payload, inner, path, notes), index=position)
            name = a_word(inner, path, "toolType", notes)
            arguments = payload.raw(*path, "args") if inner.get("args") is not None else "{}"
            assembler.call_opened(choice, address, name, arguments, True, False, as_object(extra))
            assembler.item_closed(choice, "call", address, None, None)
        case "toolResponse":
            extra |= leftovers(payload, path, inner, _TOOL_RESPONSE_FIELDS)
            output = payload.raw(*path, "response") or "null"
            _result(assembler, choice, an_id(payload, inner, path, notes), output, False, extra, whole)
        case _:
            # The member is `functionResponse`, which means that a relay ran the function itself.
            extra |= leftovers(payload, path, inner, _TOOL_RESPONSE_FIELDS)
            output = payload.raw(*path, "response") or "null"
            _result(assembler, choice, an_id(payload, inner, path, notes), output, False, extra, whole)


def _result(
    assembler: Assembler, choice: int, call_id: str | None, output: str, failed: bool, extra: Raw, part: str
) -> None:
    """Emit the result of a call.

    A result without an id belongs to the last closed call. If there is no such call, `part` is emitted as unknown
    content.
    """
    call_id = call_id or assembler.last_closed_call(choice)
    if call_id is None:
        assembler.kept_unknown(choice, None, part.encode())
    else:
        assembler.result(choice, call_id, output, failed, as_object(extra))
