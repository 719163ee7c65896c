"""A test rig for the assembler of the pure backend: fragments in, events and calls out, without bytes, chunks or a
parser.

At its end, every rig checks that the deltas of each call add up to its final text, and that each call was emitted once.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamweld import events as ev
from streamweld._pure.assemble import Assembler, Fragment
from streamweld._pure.model.output import Output
from streamweld.errors import TruncatedStream
from streamweld.options import Policy, to_config

OSLO = '{"city":"Oslo"}'
ROME = '{"city":"Rome"}'
KEY = '{"city":'
VALUE = '"Oslo"}'


class Rig:
    """An assembler and its output."""

    def __init__(self, policy: Policy | str = "standard", *, silent: bool = False, **options: Any) -> None:
        self.out = Output(to_config(policy, **options))
        self.out.silent = silent
        self.asm = Assembler(to_config(policy, **options), self.out)
        self.events: list[Any] = []

    def __call__(
        self, index: int | None, identity: str | None = None, name: str | None = None, args: Any = None, **more: Any
    ) -> Rig:
        """Feed one fragment in its own payload; a dict as arguments is an object payload."""
        choice = more.pop("choice", 0)
        if isinstance(args, dict):
            more["object_arguments"], args = json.dumps(args, separators=(",", ":")), None
        self.asm.call(choice, Fragment(index=index, id=identity, name=name, arguments=args, has_index_key=True, **more))
        self.out.ordinal += 1
        return self

    def text(self, text: str, choice: int = 0, metadata: str | None = None) -> Rig:
        self.asm.text(choice, text, metadata)
        return self

    def done(self, reason: str | None = "tool_calls") -> Rig:
        if reason is not None:
            self.asm.finish(0, reason)
        self.asm.done()
        return self.check()

    def cut(self) -> Rig:
        with pytest.raises(TruncatedStream) as caught:
            self.asm.end("nothing")
        self.fault = caught.value
        return self.check()

    def check(self) -> Rig:
        self.events += self.out.take()
        text: dict[int, str] = {}
        final: dict[int, Any] = {}
        started: set[int] = set()
        for event in self.events:
            part = getattr(event, "part", None)
            if isinstance(event, ev.Diagnostic) or part is None:
                continue
            assert part not in final, f"{event} after {final.get(part)}"
            match event:
                case ev.ToolCallStarted():
                    assert part not in started
                    started.add(part)
                    text[part] = ""
                case ev.ToolCallDelta():
                    assert event.arguments
                    text[part] += event.arguments
                case ev.ToolCallReset():
                    assert part in started
                    text[part] = ""
                case ev.ToolCallRetracted():
                    assert part in started
                    final[part] = event
                case ev.ToolCall():
                    assert text[part] == event.arguments
                    final[part] = event
                case _:
                    pass
        if not self.out.silent and self.asm.completeness != "open":
            assert started <= final.keys()
        return self

    @property
    def calls(self) -> list[Any]:
        shown = [e for e in self.asm.snapshot() if isinstance(e, ev.ToolCall)]
        if not self.out.silent and self.asm.completeness != "open":
            closed = [e for e in self.events if isinstance(e, ev.ToolCall)]
            for choice in {call.choice for call in shown + closed}:
                assert [c for c in shown if c.choice == choice] == [c for c in closed if c.choice == choice]
        return shown

    @property
    def brief(self) -> list[tuple[str, str, str]]:
        """Return (id, name, arguments) of every call; `*` is a generated id."""
        return [
            ("*" if call.call_id.startswith("call_sw_") else call.call_id, call.name, call.arguments)
            for call in self.calls
        ]

    @property
    def codes(self) -> list[str]:
        return [d.code for d in self.out.diagnostics if d.code not in {"id_minted", "index_missing"}]

    def count(self, kind: type) -> int:
        return sum(isinstance(event, kind) for event in self.events)


def two(first: str = "a", second: str = "b", name: str = "f") -> list[tuple[str, str, str]]:
    return [(first, name, OSLO), (second, name, ROME)]
