"""Random request histories, valid and broken, derived from a seed: one script of events that can be written in any
dialect.

Every text, argument and result contains a unique token (`«17»`), so that a test can detect what was lost.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

DIALECTS = ("openai-chat", "responses", "anthropic", "gemini", "bedrock-converse", "ai-sdk-ui", "ai-sdk-model")
IDS = (
    *("call_1", "call.1", "call_1_", "toolu_01", "functions.run:0", "terminal:0", "x" * 41, "y" * 70, "é", "abc123def"),
    *("call_a.b", "call_a_b", "call_a-b", "fc_1|call_2", "a b", "id__thought__QUJD", "1"),
)


@dataclass
class Call:
    call_id: str
    name: str
    arguments: str


@dataclass
class Event:
    """One step of the script. `kind`: system, developer, user, assistant, results."""

    kind: str
    text: str | None = None
    image: bool = False
    reasoning: str | None = None
    calls: list[Call] = field(default_factory=list)
    results: list[tuple[str, str, str, bool]] = field(default_factory=list)  # id, name, output, error


class Maker:
    def __init__(self, seed: int, *, broken: bool) -> None:
        self.random = random.Random(seed)
        self.broken = broken
        self.tokens: list[str] = []

    def token(self) -> str:
        self.tokens.append(f"«{len(self.tokens)}»")
        return self.tokens[-1]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def text(self) -> str:
        if self.broken and self.chance(0.06):
            return self.random.choice(["", " ", "\n"])
        return self.token() + self.random.choice(["", " ", " trailing \n", ' "quoted" {x}', " ünï \U0001f600"])

    def call(self, n: int) -> Call:
        made = self.random.choice(IDS) if self.chance(0.4) else f"call_{n}_{self.random.randrange(10**6)}"
        name = self.random.choice(["search", "get_time", "run"])
        arguments = json.dumps({"q": self.token(), "n": self.random.randrange(9)}, ensure_ascii=False)
        if self.broken:
            if self.chance(0.06):
                name = self.random.choice(["", "a b", "9lives", "z" * 70])
            if self.chance(0.08):
                arguments = self.random.choice([arguments[:-3], "", "[1]", '"x"', "null"])
            if self.chance(0.05):
                made = ""
        return Call(made, name, arguments)

    def script(self, turns: int) -> list[Event]:
        out: list[Event] = []
        if self.chance(0.5):
            out.append(Event("system", self.token()))
        if self.chance(0.2):
            out.append(Event("developer", self.token()))
        for n in range(turns):
            if not (self.broken and self.chance(0.12)):
                out.append(Event("user", self.text(), image=self.chance(0.15)))
            if self.broken and self.chance(0.1):
                out.append(Event("user", self.text()))
            for _ in range(self.random.choice([0, 0, 1, 1, 2])):
                calls = [self.call(n) for _ in range(self.random.choice([1, 1, 2, 3]))]
                seen: set[str] = set()
                calls = [c for c in calls if self.broken or (c.call_id not in seen and not seen.add(c.call_id))]
                reasoning = self.token() if self.chance(0.3) else None
                text = self.text() if self.chance(0.5) else None
                out.append(Event("assistant", text, reasoning=reasoning, calls=calls))
                results = [(c.call_id, c.name, self.token(), self.chance(0.1)) for c in calls]
                out.append(Event("results", results=results))
            if self.chance(0.8):
                out.append(Event("assistant", self.text(), reasoning=self.token() if self.chance(0.2) else None))
            if self.broken and self.chance(0.05):
                out.append(Event("system", self.token()))
        return self.damaged(out) if self.broken else out

    def damaged(self, events: list[Event]) -> list[Event]:
        for _ in range(self.random.randrange(4)):
            if not events:
                break
            at = self.random.randrange(len(events))
            event = events[at]
            match self.random.randrange(8):
                case 0 if event.results:  # a call without a result
                    event.results.pop(self.random.randrange(len(event.results)))
                case 1 if event.results:  # duplicate result
                    again = self.random.choice(event.results)
                    event.results.append((again[0], again[1], self.token(), again[3]))
                case 2 if event.kind == "results":  # late result
                    events.insert(min(len(events), at + self.random.randrange(1, 4)), events.pop(at))
                case 3 if event.kind == "results":  # early result
                    events.insert(max(0, at - self.random.randrange(1, 3)), events.pop(at))
                case 4:  # result without a call
                    events.insert(at, Event("results", results=[(self.random.choice(IDS), "", self.token(), False)]))
                case 5 if event.calls:  # duplicate call
                    twin = self.random.choice(event.calls)
                    event.calls.append(Call(twin.call_id, twin.name, twin.arguments))
                case 6 if event.calls:  # two calls with one id
                    twin = self.random.choice(event.calls)
                    event.calls.append(Call(twin.call_id, twin.name, json.dumps({"q": self.token()})))
                    later = events[at + 1 : at + 2]
                    if later and later[0].kind == "results":
                        later[0].results.append((twin.call_id, twin.name, self.token(), False))
                case 7 if event.kind == "results" and len(event.results) > 1:
                    event.results.reverse()
                case _:
                    pass
        return [event for event in events if event.kind != "results" or event.results]


def payload_of(events: list[Event], dialect: str) -> Any:
    """Return the script as a payload of that dialect."""
    return _WRITERS[dialect](events)


def value_of(arguments: str) -> Any:
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return {"_broken": arguments}
    return value if isinstance(value, dict) else {"_odd": value}


PIXEL = "iVBORw0KGgo="


def _chat(events: list[Event]) -> Any:
    messages: list[Any] = []
    for e in events:
        if e.kind == "results":
            messages += [{"role": "tool", "tool_call_id": i, "content": o} for i, _, o, _ in e.results]
            continue
        message: dict[str, Any] = {"role": e.kind, "content": e.text}
        if e.image:
            blocks = [
                {"type": "text", "text": e.text},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ]
            message["content"] = blocks
        if e.reasoning:
            message["reasoning_content"] = e.reasoning
        if e.calls:
            message["tool_calls"] = [
                {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in e.calls
            ]
        elif e.text is None:
            message["content"] = ""
        messages.append(message)
    return {"messages": messages}


def _responses(events: list[Event]) -> Any:
    items: list[Any] = []
    for n, e in enumerate(events):
        if e.reasoning:
            item = {"type": "reasoning", "id": f"rs_{n}", "summary": [{"type": "summary_text", "text": e.reasoning}]}
            items.append(item | ({"encrypted_content": f"gAAA{n}"} if n % 2 else {}))
        if e.kind == "results":
            items += [{"type": "function_call_output", "call_id": i, "output": o} for i, _, o, _ in e.results]
            continue
        if e.kind == "assistant" and e.text is not None:
            block = {"type": "output_text", "text": e.text, "annotations": []}
            items.append(
                {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "content": [block]}
            )
        elif e.image:
            blocks = [
                {"type": "input_text", "text": e.text},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
            ]
            items.append({"role": e.kind, "content": blocks})
        elif e.text is not None:
            items.append({"role": e.kind, "content": e.text})
        for m, c in enumerate(e.calls):
            head = {"type": "function_call", "id": f"fc_{n}_{m}", "call_id": c.call_id, "name": c.name}
            items.append({**head, "arguments": c.arguments, "status": "completed"})
    return {"input": items}


def _sided(events: list[Event], say: Any, container: str, assistant: str) -> Any:
    """Write the script for dialects with two roles. Results go into user messages, and a following user message is
    merged with them.
    """
    system: list[Any] = []
    messages: list[Any] = []
    before = ""
    for e in events:
        blocks = say(e)
        if e.kind in ("system", "developer"):
            system += blocks
            continue
        side = assistant if e.kind == "assistant" else "user"
        if before == "results" and e.kind == "user" and messages:
            messages[-1][container] += blocks
        else:
            messages.append({"role": side, container: blocks})
        before = e.kind
    return system, messages


def _anthropic(events: list[Event]) -> Any:
    def say(e: Event) -> list[Any]:
        out: list[Any] = []
        if e.reasoning:
            out.append(
                {"type": "thinking", "thinking": e.reasoning, "signature": "c2ln" if len(e.reasoning) % 2 else ""}
            )
        if e.text is not None:
            out.append({"type": "text", "text": e.text})
        if e.image:
            out.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
        out += [{"type": "tool_use", "id": c.call_id, "name": c.name, "input": value_of(c.arguments)} for c in e.calls]
        out += [{"type": "tool_result", "tool_use_id": i, "content": o, "is_error": err} for i, _, o, err in e.results]
        return out

    system, messages = _sided(events, say, "content", "assistant")
    return {"system": system, "messages": messages} if system else {"messages": messages}


def _gemini(events: list[Event]) -> Any:
    def say(e: Event) -> list[Any]:
        out: list[Any] = []
        if e.reasoning:
            out.append({"text": e.reasoning, "thought": True})
        if e.text is not None:
            out.append({"text": e.text})
        if e.image:
            out.append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
        out += [
            {"functionCall": {**given(c.call_id, 1), "name": c.name, "args": value_of(c.arguments)}} for c in e.calls
        ]
        out += [
            {"functionResponse": {**given(i, 2), "name": n, "response": {"error" if r else "output": o}}}
            for i, n, o, r in e.results
        ]
        return out

    def given(call_id: str, side: int) -> dict[str, str]:
        """Return the id members for one side. Ids are optional: of four calls, the first has no id, the second has an
        id on the call, the third on the response, and the fourth on both.
        """
        return {"id": call_id} if len(call_id) % 4 & side else {}

    system, contents = _sided(events, say, "parts", "model")
    return {"systemInstruction": {"parts": system}, "contents": contents} if system else {"contents": contents}


def _bedrock(events: list[Event]) -> Any:
    def say(e: Event) -> list[Any]:
        out: list[Any] = []
        if e.reasoning:
            out.append({"reasoningContent": {"reasoningText": {"text": e.reasoning, "signature": "c2ln"}}})
        if e.text is not None:
            out.append({"text": e.text})
        if e.image:
            out.append({"image": {"format": "png", "source": {"bytes": PIXEL}}})
        out += [{"toolUse": {"toolUseId": c.call_id, "name": c.name, "input": value_of(c.arguments)}} for c in e.calls]
        for i, _, o, err in e.results:
            block: dict[str, Any] = {"toolUseId": i, "content": [{"text": o}]}
            out.append({"toolResult": block | ({"status": "error"} if err else {})})
        return out

    system, messages = _sided(events, say, "content", "assistant")
    return {"system": system, "messages": messages} if system else {"messages": messages}


def _model(events: list[Event]) -> Any:
    messages: list[Any] = []
    for e in events:
        if e.kind in ("system", "developer"):
            messages.append({"role": "system", "content": e.text})
            continue
        out: list[Any] = []
        if e.reasoning:
            options = {"openai": {"itemId": f"rs_{len(messages)}", "reasoningEncryptedContent": "gAAA"}}
            out.append({"type": "reasoning", "text": e.reasoning, "providerOptions": options})
        if e.text is not None:
            out.append({"type": "text", "text": e.text})
        if e.image:
            out.append({"type": "file", "data": PIXEL, "mediaType": "image/png"})
        for c in e.calls:
            call: dict[str, Any] = {"type": "tool-call", "toolCallId": c.call_id, "toolName": c.name}
            out += [call | {"input": value_of(c.arguments)}]
        for i, n, o, err in e.results:
            result: dict[str, Any] = {"type": "tool-result", "toolCallId": i, "toolName": n}
            out += [result | {"output": {"type": "error-text" if err else "text", "value": o}}]
        messages.append({"role": "tool" if e.kind == "results" else e.kind, "content": out})
    return {"messages": messages}


def _ui(events: list[Event]) -> Any:
    """Write AI SDK UI messages. A result is a member of its call's part. A result without a call in the previous step
    is dropped.
    """
    messages: list[Any] = []
    for n, e in enumerate(events):
        if e.kind == "results":
            continue
        out: list[Any] = []
        if e.reasoning:
            meta = {"openai": {"itemId": f"rs_{n}", "reasoningEncryptedContent": "gAAA"}}
            out.append({"type": "reasoning", "text": e.reasoning, "providerMetadata": meta, "state": "done"})
        if e.text is not None:
            out.append({"type": "text", "text": e.text})
        if e.image:
            out.append({"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PIXEL}"})
        answers = {i: (o, err) for i, _, o, err in events[n + 1].results} if n + 1 < len(events) else {}
        for c in e.calls:
            part: dict[str, Any] = {"type": f"tool-{c.name}", "toolCallId": c.call_id, "input": value_of(c.arguments)}
            if c.call_id in answers:
                output, failed = answers[c.call_id]
                told_ = (
                    {"state": "output-error", "errorText": output}
                    if failed
                    else {"state": "output-available", "output": output}
                )
                part |= told_
            else:
                part["state"] = "input-available"
            out.append(part)
        role = "system" if e.kind == "developer" else e.kind
        if role == "assistant" and messages and messages[-1]["role"] == "assistant" and n % 2:
            messages[-1]["parts"] += [{"type": "step-start"}, *out]
        else:
            messages.append({"id": f"m{n}", "role": role, "parts": out})
    return {"messages": messages}


_WRITERS = {
    "openai-chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock-converse": _bedrock,
    "ai-sdk-ui": _ui,
    "ai-sdk-model": _model,
}
