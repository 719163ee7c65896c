"""Decodes the tool parts of an AI SDK stream: a call's input, the complete call, its result, and the parts in between.

The parts `tool-input-start`, `tool-input-delta`, and `tool-input-end` contain the id of the call in `id`; `tool-call`
contains it in `toolCallId`. `tool-call` closes the call. `tool-input-end` does not close the call, because the final
arguments follow and may differ (`''` becomes `'{}'`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.ai_sdk.part import TypedPart

_ID_OF_INPUT = ("id", "toolCallId")
_ID_OF_CALL = ("toolCallId", "id")


class ToolReader:
    """Decodes the tool parts of one stream."""

    __slots__ = ("_assembler",)

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler

    def input_start(self, part: TypedPart) -> None:
        provider = part.provider()
        self._assembler.call_opened(
            0,
            Address(call_id=part.identity(*_ID_OF_INPUT), public_id=provider.item_id),
            part.descriptive_string("toolName"),
            None,
            part.flag("providerExecuted"),
            False,
            provider.metadata,
        )

    def input_delta(self, part: TypedPart) -> None:
        text, metadata = part.text("delta", "text"), part.metadata()
        if text or metadata is not None:
            address = Address(call_id=part.identity(*_ID_OF_INPUT))
            self._assembler.call_text(0, address, text, None, metadata)

    def input_end(self, part: TypedPart) -> None:
        """Handle the end of the input.

        `tool-input-end` has no content, but a provider may add metadata, such as Google's thought signature.
        """
        metadata, address = part.metadata(), Address(call_id=part.identity(*_ID_OF_INPUT))
        if metadata is not None:
            self._assembler.call_text(0, address, "", None, metadata)
        self._assembler.call_paused(0, address)

    def call(self, part: TypedPart) -> None:
        provider = part.provider()
        identity = part.identity(*_ID_OF_CALL)
        # `streamText` sets `invalid` if it rejects the input of a call. `streamText` also sends a result for such a
        # call, so the call is not dispatchable.
        refused = part.value.get("invalid") is True
        self._assembler.call_closed(
            0,
            Address(call_id=identity, public_id=provider.item_id),
            part.descriptive_string("toolName"),
            part.document("input", "args"),
            part.flag("providerExecuted"),
            False,
            provider.metadata,
            refused=refused,
        )
        if part.misses_arguments("input", "args"):
            self._assembler.call_misses_arguments(0, Address(call_id=identity))
        if refused and identity is not None:
            self._assembler.result(0, identity, part.json("error") or "null", True, None)

    def result(self, part: TypedPart) -> None:
        """Handle `tool-result`. Providers send the result in `result`, and `streamText` sends it in `output`.

        A preliminary result is replaced by the next result.
        """
        self._result(part, part.json("result", "output"), is_error=part.flag("isError"))

    def error(self, part: TypedPart) -> None:
        """Handle `tool-error`, which means that the tool failed when it ran. The `error` member can have any JSON
        type.
        """
        self._result(part, part.json("error"), is_error=True)

    def denied(self, part: TypedPart) -> None:
        """Handle `tool-output-denied`, after which the call is not dispatchable and has no output."""
        self._result(part, None, ("type", '"tool-output-denied"'), is_error=True)

    def _result(self, part: TypedPart, output: str | None, *more: tuple[str, str | None], is_error: bool) -> None:
        identity = part.identity("toolCallId")
        if identity is None:
            self._assembler.unknown(part.event, part.raw)
        else:
            self._assembler.result(0, identity, output or "null", is_error, part.metadata(*more))
