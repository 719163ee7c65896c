"""Stores the calls that a gateway sends outside the usual place of a choice, until they can be compared with the other
calls of the choice.

Gateways repeat the calls of a delta in `function_call`, in `message`, on the choice, or on the chunk. A call that the
delta does not contain is a separate call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.part.object_merge import Growth
from streamweld._pure.assemble.rule_context import byte_length
from streamweld._pure.dialect.chat.calls import is_repeated
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld._pure.model.delta import Fragment

if TYPE_CHECKING:
    from streamweld._pure.assemble import Assembler
    from streamweld._pure.model.output import Output

__all__ = ["SideCalls"]


class _SideCall:
    __slots__ = ("fragment", "pieces")

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self.pieces = [_text(fragment)]


class SideCalls:
    """The calls of one choice that were sent outside the usual place. These calls may repeat the other calls of the
    choice.
    """

    __slots__ = ("_assembler", "_calls", "_index", "_known", "_legacy", "_size")

    def __init__(self, index: int, assembler: Assembler) -> None:
        self._index = index
        self._assembler = assembler
        self._calls: list[_SideCall] = []
        self._known: set[tuple[str | None, str | None, str]] = set()
        self._legacy: _SideCall | None = None  # the last call in `function_call`, whose arguments may follow in pieces
        self._size = 0

    def add(self, fragment: Fragment) -> None:
        """Store a call unless it repeats an earlier call. The caller compares the call with the other calls of the
        payload.
        """
        text = _text(fragment)
        key = (fragment.id, fragment.name, text)
        if not any(key) or key in self._known:
            return
        if self._assembler.compare_call(self._index, fragment.id, fragment.name or "", text) != "repeated":
            self._known.add(key)
            self._store(fragment, text)

    def add_legacy(self, fragment: Fragment, beside: list[Fragment]) -> None:
        """Store a piece of `function_call`, unless the same payload contains it in another member."""
        text = _text(fragment)
        if not (fragment.id or fragment.name or text) or is_repeated(fragment, beside):
            return
        if fragment.name is None and self._legacy is not None:
            self._hold(text)
            self._legacy.pieces.append(text)
        else:
            self._legacy = self._store(fragment, text)

    def settle(self, out: Output) -> None:
        """Emit the stored calls that differ from all other calls. This method is called when no call can change any
        more.
        """
        if not self._calls:
            return
        calls = self._calls
        self.clear()
        is_unclear = False
        for call in calls:
            sent, text = call.fragment, "".join(call.pieces)
            compared = self._assembler.compare_call(self._index, sent.id, sent.name or "", text)
            if compared == "own":
                out.mark_misread("other_member")  # clients look only in the delta
                own = Fragment(id=sent.id, name=sent.name, arguments=text, custom=sent.custom, metadata=sent.metadata)
                self._assembler.call(self._index, own)
            is_unclear = is_unclear or compared == "unclear"
        if is_unclear:
            out.diagnose("conflict", detail="tool_calls")

    def clear(self) -> None:
        """Discard the stored calls, because they have been compared or the response restarts."""
        self._assembler.hold(Growth(self._size, len(self._calls)).released())
        self._calls, self._legacy, self._size = [], None, 0
        self._known.clear()

    def _store(self, fragment: Fragment, text: str) -> _SideCall:
        self._assembler.hold(Growth(0, 1))
        self._hold(text + (fragment.id or "") + (fragment.name or "") + (fragment.metadata or ""))
        call = _SideCall(fragment)
        self._calls.append(call)
        return call

    def _hold(self, text: str) -> None:
        size = byte_length(text)
        self._assembler.hold(Growth(size, 0))
        self._size += size


def _text(fragment: Fragment) -> str:
    return replace_lone_surrogates(fragment.object_arguments or fragment.arguments or "")
