"""Decodes the tool chunks of a UI message stream: the deltas of a call's input, the complete input, and the output.

`toolCallId` is the only id that these chunks have. Both `tool-input-available` and `tool-input-error` close a call;
`tool-input-error` also reports that the input was rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.model.delta import Address

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.dialect.ai_sdk.part import TypedPart


class ToolReader:
    """Decodes the tool chunks of one stream."""

    __slots__ = ("_assembler",)

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler

    def input_start(self, chunk: TypedPart) -> None:
        provider = chunk.provider()
        self._assembler.call_opened(
            0,
            Address(call_id=chunk.identity("toolCallId"), public_id=provider.item_id),
            chunk.descriptive_string("toolName"),
            None,
            chunk.flag("providerExecuted"),
            False,
            provider.metadata,
        )

    def input_delta(self, chunk: TypedPart) -> None:
        text, metadata = chunk.text("inputTextDelta"), chunk.metadata()
        if text or metadata is not None:
            address = Address(call_id=chunk.identity("toolCallId"))
            self._assembler.call_text(0, address, text, None, metadata)

    def input_available(self, chunk: TypedPart) -> None:
        self._close(chunk, refused=False)

    def input_error(self, chunk: TypedPart) -> None:
        """Handle `tool-input-error`, which means that the tool does not exist or its schema forbids the arguments.

        The call is still emitted, so that its arguments are not lost. The rejection becomes the call's result, as in
        the SDK's client, which sets the state `output-error`. A call with a result is not dispatchable.
        """
        identity = self._close(chunk, refused=True)
        if identity is not None:
            self._assembler.result(0, identity, chunk.json("errorText") or "null", True, None)

    def output_available(self, chunk: TypedPart) -> None:
        """Handle the output of a call. A preliminary output is replaced by the next output."""
        self._result(chunk, chunk.json("output"), is_error=False)

    def output_error(self, chunk: TypedPart) -> None:
        self._result(chunk, chunk.json("errorText"), is_error=True)

    def output_denied(self, chunk: TypedPart) -> None:
        """Handle a denied call, which is not dispatchable and has no output."""
        self._result(chunk, None, ("type", '"tool-output-denied"'), is_error=True)

    def _close(self, chunk: TypedPart, *, refused: bool) -> str | None:
        provider = chunk.provider()
        identity = chunk.identity("toolCallId")
        self._assembler.call_closed(
            0,
            Address(call_id=identity, public_id=provider.item_id),
            chunk.descriptive_string("toolName"),
            chunk.document("input", "args"),
            chunk.flag("providerExecuted"),
            False,
            provider.metadata,
            refused=refused,
        )
        if chunk.misses_arguments("input", "args"):
            self._assembler.call_misses_arguments(0, Address(call_id=identity))
        return identity

    def _result(self, chunk: TypedPart, output: str | None, *more: tuple[str, str | None], is_error: bool) -> None:
        identity = chunk.identity("toolCallId")
        if identity is None:
            self._assembler.unknown(chunk.event, chunk.raw)
        else:
            self._assembler.result(0, identity, output or "null", is_error, chunk.metadata(*more))
