"""Check that each tool call has exactly one result, in the position that the target requires.

Each problem is reported once. For example, if a result is too late, the result is reported, but its call is not
reported as unanswered. Constraints: `results`, `call_order`, `calls_after`, `calls_together`, `function_calls`,
`function_results`, `call_reference`, `server_calls`, `tools_required`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamweld._spec import DIALECTS
from streamweld.history.check.view import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld.history.check.report import Report
    from streamweld.history.check.view import Block, Message, View

__all__ = ["check_pairs"]

_SERVER_TOOLS: Final = frozenset[str](DIALECTS["responses"]["provider_tools"])


@dataclass(slots=True, eq=False)
class _PendingCall:
    """A call that expects a result. `turn`: the number of the turn that contains the call."""

    block: Block
    turn: int
    answered: bool = False


def check_pairs(view: View, report: Report, tools: Any) -> None:
    """Apply all rules about calls and results."""
    calls = [block for message in view.messages for block in message.of("call")]
    results = [block for message in view.messages for block in message.of("result")]
    refused = _refused(calls, results, report)
    if report.fact("server_calls"):
        _settle_server_calls(calls, results, tools)
    _references(view, report)
    if report.fact("tools_required") and tools is not None and not tools and (calls or results):
        report.add("tools_missing", (calls or results)[0].path, "", "tools_required")
    _check_call_order(view, report)
    if not refused:
        _pair(view, report)
    for message in view.messages:
        _check_result_order(message, report)


def _settle_server_calls(calls: Iterable[Block], results: Iterable[Block], tools: Any) -> None:
    """Mark as settled the calls that the gateway's server ran, because they need no result."""
    answered = {block.id for block in results}
    declared = {tool if isinstance(tool, str) else (as_json(tool) or {}).get("name") for tool in tools or ()}
    for block in calls:
        if block.type == "custom_tool_call" and block.name in _SERVER_TOOLS and block.name not in declared:
            block.settled = block.id not in answered


def _refused(calls: Iterable[Block], results: Iterable[Block], report: Report) -> bool:
    """Report all calls, or all results, that the gateway does not accept.

    Returns True if the gateway does not accept calls or does not accept results. The caller then does not check the
    pairing of calls and results.
    """
    refused = False
    for constraint, rule, blocks in (
        ("function_calls", "call_refused", calls),
        ("function_results", "result_refused", results),
    ):
        if report.fact(constraint) is False:
            refused = True
            for block in blocks:
                report.add(rule, block.path, block.id or "", constraint)
    return refused


def _references(view: View, report: Report) -> None:
    if report.fact("call_reference") is False:
        for message in view.messages:
            for block in message.of("reference"):
                if (block.id or "").startswith("fc_"):
                    report.add("call_by_reference", block.path, block.id or "", "call_reference")


def _check_call_order(view: View, report: Report) -> None:
    after = report.fact("calls_after")
    together = report.fact("calls_together")
    for n, turn in enumerate(view.turns):
        blocks = [block for message in turn for block in message.blocks]
        calls = [at for at, block in enumerate(blocks) if block.kind == "call"]
        if not calls:
            continue
        if report.fact("call_order") == "last":
            thinks = any(block.kind == "reasoning" for block in blocks[calls[0] : calls[-1]])
            for block in blocks[calls[-1] if thinks else calls[0] :]:
                if block.kind not in ("call", "other"):
                    report.add("call_not_last", block.path, block.type, "call_order")
                    break
        if after and (n == 0 or view.turns[n - 1][0].role not in after):
            before = view.turns[n - 1][0].role if n else "no message"
            report.add("call_place", blocks[calls[0]].path, f"after {before}", "calls_after")
        if together:
            for block in blocks[calls[0] : calls[-1]]:
                if block.kind != "call":
                    report.add("calls_apart", block.path, block.type, "calls_together")


class _Pairing:
    """Matches each result to its call."""

    def __init__(self, view: View, report: Report) -> None:
        self.facts = report.facts("results")
        self.report = report
        self.by_position = bool(report.facts("tool_id").get("optional"))
        stored = view.payload.get("previous_response_id") or view.payload.get("conversation")
        self.chained = bool(stored) and report.fact("stored_responses") is not False
        self.adjacent: Any = self.facts.get("adjacent")
        self.pending: list[_PendingCall] = []
        self.waiting: dict[str, deque[_PendingCall]] = {}  # unanswered calls, by id
        self.known: set[str] = set()
        self.coming: dict[str, deque[Block]] = {}  # calls that have not been reached yet, by id
        self.early: dict[int, int] = {}  # calls that follow their result, by `id()` of the call's block
        for message in view.messages:
            for block in message.blocks:
                if block.kind == "call" and block.id is not None:
                    self.coming.setdefault(block.id, deque()).append(block)

    def add_call(self, block: Block, turn: int) -> _PendingCall:
        call = _PendingCall(block, turn, answered=block.settled or self.early.pop(id(block), 0) > 0)
        self.pending.append(call)
        if block.id is not None:
            self.known.add(block.id)
            coming = self.coming[block.id]
            if coming and coming[0] is block:
                coming.popleft()
            self.waiting.setdefault(block.id, deque()).append(call)
        return call

    def earlier(self, call_id: str) -> _PendingCall | None:
        waiting = self.waiting.get(call_id)
        while waiting:
            if not waiting[0].answered:
                return waiting[0]
            waiting.popleft()
        return None

    def misplaced(self, result: Block) -> None:
        """Report a result that does not belong to any call at this position."""
        call_id = result.id or ""
        late = self.earlier(call_id)
        if late is not None:
            late.answered = True
            self.report.add("result_not_adjacent", result.path, call_id, "results")
        elif call_id in self.known:
            if self.facts.get("single"):
                self.report.add("result_repeated", result.path, call_id, "results")
        elif self.coming.get(call_id):
            self.early[id(self.coming[call_id].popleft())] = 1
            self.report.add("result_before_call", result.path, call_id, "results")
        elif self.facts.get("matched") and not self.chained:
            self.report.add("result_unmatched", result.path, call_id, "results")


def _pair(view: View, report: Report) -> None:
    pairing = _Pairing(view, report)
    here: list[_PendingCall] = []  # unanswered calls to which results at the current position may belong
    for number, turn in enumerate(view.turns):
        # Results can follow their calls until the next assistant turn or, in AI SDK messages, until the next user turn.
        before_user = pairing.adjacent == "before_user"
        calls, results = _calls_and_results(turn)
        if pairing.adjacent and not before_user:
            here = [call for call in here if call.turn == number - 1]
        elif before_user:
            here = [] if turn[0].role in ("user", "system") else [call for call in here if not call.answered]
        if not calls and not results:
            continue
        # In UIMessages, one part can be a call and also its result.
        both = {id(block.raw) for block in calls} if turn[0].role == "assistant" else set[int]()
        _answer(pairing, here, [result for result in results if id(result.raw) not in both], report)
        here += [pairing.add_call(block, number) for block in calls]
        _answer(pairing, here, [result for result in results if id(result.raw) in both], report)
    if pairing.facts.get("required"):
        for call in pairing.pending:
            if not call.answered:
                report.add("call_unanswered", call.block.path, call.block.id or call.block.name or "", "results")


def _calls_and_results(turn: list[Message]) -> tuple[list[Block], list[Block]]:
    calls: list[Block] = []
    results: list[Block] = []
    for message in turn:
        for block in message.blocks:
            if block.kind == "call":
                calls.append(block)
            elif block.kind == "result":
                results.append(block)
    return calls, results


def _answer(pairing: _Pairing, here: list[_PendingCall], results: list[Block], report: Report) -> None:
    """Match results to the calls that they may belong to at this position: by id or, without ids, by name and order."""
    if not results:
        return
    if not pairing.adjacent:
        for result in results:
            call = pairing.earlier(result.id or "")
            if call is None:
                pairing.misplaced(result)
            else:
                call.answered = True
        return
    by_id: dict[str, deque[tuple[int, _PendingCall]]] = {}
    for position, call in enumerate(here):
        if call.block.id is not None:
            by_id.setdefault(call.block.id, deque()).append((position, call))
    last = -1
    disordered = False
    for result in results:
        found = _open(by_id, result.id)
        if found is None and pairing.by_position and (result.id is None or result.id not in by_id):
            found = _named(here, result)
        if found is None:
            pairing.misplaced(result)
            continue
        position, call = found
        call.answered = True
        if position < last and not disordered and pairing.facts.get("same_order"):
            disordered = True
            report.add("results_out_of_order", result.path, result.name or result.id or "", "results")
        last = max(last, position)


def _open(by_id: dict[str, deque[tuple[int, _PendingCall]]], call_id: str | None) -> tuple[int, _PendingCall] | None:
    waiting = by_id.get(call_id or "")
    while waiting:
        position, call = waiting.popleft()
        if not call.answered:
            return position, call
    return None


def _named(here: list[_PendingCall], result: Block) -> tuple[int, _PendingCall] | None:
    for position, call in enumerate(here):
        if not call.answered and call.block.name == result.name and (call.block.id is None or result.id is None):
            return position, call
    return None


def _check_result_order(message: Message, report: Report) -> None:
    """Check results that share a message with other content.

    Depending on the target, results must come first, must be alone, or must not be combined with other kinds of blocks.
    """
    facts = report.facts("results")
    results = message.of("result")
    if not results or message.role == "assistant" or len(results) == len(message.blocks):
        return
    others = [block for block in message.blocks if block.kind != "result"]
    if facts.get("alone"):
        report.add("result_not_alone", others[0].path, others[0].type, "results")
        return
    if facts.get("first") and message.blocks.index(results[-1]) > message.blocks.index(others[0]):
        report.add("result_not_first", results[-1].path, results[-1].id or "", "results")
    for block in others:
        if block.kind in (facts.get("beside_not") or ()):
            report.add("result_beside", block.path, block.type, "results")
