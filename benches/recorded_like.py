"""Generates streams that resemble recorded ones, in four dialects: 48 for each, from a fixed seed, with expected
results.

Most recorded streams are short, and few of their payloads look alike: a response in one chunk, a call with its complete
arguments, thinking before text, citations, a `completed` event that repeats tools and instructions. `KINDS` lists the
generated kinds; each kind is written in every dialect as that dialect's providers send it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from benches.shapes.chat import Shape

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS = ["The", "answer", "is", "that", "streams", "differ:", "some", "bring", "whole", "sentences,", "others", "a"]
_WORDS += ["Größe", "naïve", "café", "日本語", "のテキスト", "данные", "🙂", '"quoted"', "back\\slash", "tab\t"]
_WORDS += ["line\n", "`code`", "{json}", "<tag>", "3.14", "https://example.org/a?b=c"]
_TOOLS = ["get_weather", "search_files", "write_file", "run_query"]


@dataclass(frozen=True)
class _Call:
    call_id: str
    name: str
    pieces: list[str]

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class _Answer:
    """The content of one stream, before it is written in a dialect."""

    thinking: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    citations: int = 0
    calls: list[_Call] = field(default_factory=list)
    big: bool = False
    padded: bool = False  # chunks contain obfuscation


def _pieces(rng: random.Random, count: int, words: int = 1) -> list[str]:
    return [" ".join(rng.choices(_WORDS, k=words)) + " " for _ in range(count)]


def _call(rng: random.Random, fragments: int) -> _Call:
    arguments = {"path": f"src/file_{rng.randrange(999)}.py", "content": "".join(_pieces(rng, fragments)), "n": 1.5}
    text = orjson.dumps(arguments).decode()
    step = max(1, -(-len(text) // fragments))
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    return _Call(f"call_{rng.getrandbits(96):024x}", rng.choice(_TOOLS), pieces)


# Kind -> the number of its streams, and a function that generates their content.
KINDS: dict[str, tuple[int, Callable[[random.Random], _Answer]]] = {
    "short": (10, lambda rng: _Answer(text=_pieces(rng, rng.randint(2, 8)))),
    "one chunk": (6, lambda rng: _Answer(text=_pieces(rng, 1, words=rng.randint(1, 60)))),
    "medium": (6, lambda rng: _Answer(text=_pieces(rng, rng.randint(30, 120)))),
    "long": (2, lambda rng: _Answer(text=_pieces(rng, rng.randint(300, 500)))),
    "thinking": (6, lambda rng: _Answer(thinking=_pieces(rng, rng.randint(5, 60)), text=_pieces(rng, 20))),
    "whole call": (6, lambda rng: _Answer(calls=[_call(rng, 1) for _ in range(rng.randint(1, 3))])),
    "fragments": (4, lambda rng: _Answer(text=_pieces(rng, 3), calls=[_call(rng, rng.randint(10, 60))])),
    "citations": (4, lambda rng: _Answer(text=_pieces(rng, 12, words=8), citations=rng.randint(1, 5))),
    "big events": (4, lambda rng: _Answer(text=_pieces(rng, 10), calls=[_call(rng, 4)], big=True)),
}


# Long streams: name -> dialect, content, and three speed targets. The first two are those of a list for each feed and
# of `parse`, relative to httpx-sse + orjson. The third is that of a list for each feed, relative to split + msgspec.
LONG: dict[str, tuple[str, Callable[[random.Random], _Answer], tuple[float, float, float]]] = {
    "W1": ("chat", lambda rng: _Answer(text=_pieces(rng, 2000), padded=True), (20, 50, 8)),
    "W2": ("chat", lambda rng: _Answer(calls=[_call(rng, 250) for _ in range(4)]), (8, 10, 4)),
    "W3": ("responses", lambda rng: _Answer(text=_pieces(rng, 1000), calls=[_call(rng, 1000)]), (10, 10, 3.5)),
    "W4": (
        "anthropic",
        lambda rng: _Answer(
            thinking=_pieces(rng, 300), text=_pieces(rng, 300), calls=[_call(rng, 300) for _ in range(3)]
        ),
        (12, 12, 4),
    ),
}


def _line(payload: object, event: str | None = None) -> bytes:
    head = b"" if event is None else f"event: {event}\n".encode()
    return head + b"data: " + orjson.dumps(payload) + b"\n\n"


def _sources(count: int) -> list[dict[str, Any]]:
    return [{"url": f"https://example.org/page/{at}", "title": f"Page {at} of the handbook"} for at in range(count)]


def _schemas() -> list[dict[str, Any]]:
    """Return a request's tools as a provider repeats them."""
    parameter = {"type": "string", "description": "A path relative to the root of the repository. " * 3}
    schema = {"type": "object", "properties": {f"option_{at}": parameter for at in range(8)}, "required": ["option_0"]}
    return [{"type": "function", "name": name, "parameters": schema, "strict": True} for name in _TOOLS]


def _chat(answer: _Answer, rng: random.Random) -> list[bytes]:
    head = {
        "id": f"chatcmpl-{rng.getrandbits(64):x}",
        "object": "chat.completion.chunk",
        "created": 1_763_712_000 + rng.randrange(10**6),
        "model": rng.choice(["gpt-4.1-mini-2025-04-14", "deepseek-chat", "llama-3.3-70b-versatile"]),
        "system_fingerprint": f"fp_{rng.getrandbits(40):010x}",
    }
    if answer.big:
        head["prompt_filter_results"] = [{"prompt_index": at, "content_filter_results": {}} for at in range(20)]

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: object) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _line({**head, "choices": [choice], **more})

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": piece}) for piece in answer.thinking]
    for piece in answer.text:
        noise = {"obfuscation": "x" * rng.randrange(16)} if answer.padded else {}
        events.append(chunk({"content": piece}, **noise))
    for index, call in enumerate(answer.calls):
        for at, piece in enumerate(call.pieces):
            function: dict[str, Any] = {"arguments": piece}
            entry: dict[str, Any] = {"index": index, "function": function}
            if at == 0:
                entry |= {"id": call.call_id, "type": "function"}
                function["name"] = call.name
            events.append(chunk({"tool_calls": [entry]}))
    noted = [{"type": "url_citation", "url_citation": source} for source in _sources(answer.citations)]
    events.append(chunk({"annotations": noted} if noted else {}, "tool_calls" if answer.calls else "stop"))
    usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
    events.append(_line({**head, "choices": [], "usage": usage}))
    return [*events, b"data: [DONE]\n\n"]


def _responses(answer: _Answer, rng: random.Random) -> list[bytes]:
    events: list[bytes] = []
    output: list[dict[str, Any]] = []
    shown: dict[str, Any] = {
        "id": f"resp_{rng.getrandbits(200):050x}",
        "object": "response",
        "created_at": 1_763_712_000,
        "model": "gpt-5-mini-2025-08-07",
        "instructions": "Answer in one paragraph. " * (200 if answer.big else 2),
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tools": _schemas() if answer.big else [],
        "metadata": {},
    }

    def send(kind: str, **members: object) -> None:
        events.append(_line({"type": kind, **members, "sequence_number": len(events)}, kind))

    def opened(item: dict[str, Any]) -> dict[str, Any]:
        send("response.output_item.added", output_index=len(output), item=item)
        return {"item_id": item["id"], "output_index": len(output)}

    def closed(item: dict[str, Any]) -> None:
        send("response.output_item.done", output_index=len(output), item=item)
        output.append(item)

    for kind in ("created", "in_progress"):
        send(f"response.{kind}", response={**shown, "status": "in_progress", "output": [], "usage": None})
    if answer.thinking:
        item: dict[str, Any] = {"id": f"rs_{rng.getrandbits(200):050x}", "type": "reasoning", "summary": []}
        place = opened(item) | {"summary_index": 0}
        part = {"type": "summary_text", "text": ""}
        send("response.reasoning_summary_part.added", **place, part=part)
        for piece in answer.thinking:
            send("response.reasoning_summary_text.delta", **place, delta=piece, obfuscation="x" * rng.randrange(16))
        part = {**part, "text": "".join(answer.thinking)}
        send("response.reasoning_summary_text.done", **place, text=part["text"])
        send("response.reasoning_summary_part.done", **place, part=part)
        closed({**item, "summary": [part]})
    if answer.text:
        item = {"id": f"msg_{rng.getrandbits(200):050x}", "type": "message", "role": "assistant"}
        place = opened({**item, "status": "in_progress", "content": []}) | {"content_index": 0}
        text: dict[str, Any] = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        send("response.content_part.added", **place, part=text)
        for piece in answer.text:
            noise = "x" * rng.randrange(16)
            send("response.output_text.delta", **place, delta=piece, logprobs=[], obfuscation=noise)
        found = _sources(answer.citations)
        noted = [{"type": "url_citation", "start_index": 0, "end_index": 5, **source} for source in found]
        for at, note in enumerate(noted):
            send("response.output_text.annotation.added", **place, annotation_index=at, annotation=note)
        text = {**text, "text": "".join(answer.text), "annotations": noted}
        send("response.output_text.done", **place, text=text["text"], logprobs=[])
        send("response.content_part.done", **place, part=text)
        closed({**item, "status": "completed", "content": [text]})
    for call in answer.calls:
        item = {"id": f"fc_{rng.getrandbits(200):050x}", "type": "function_call", "call_id": call.call_id}
        item["name"] = call.name
        place = opened({**item, "status": "in_progress", "arguments": ""})
        for piece in call.pieces:
            noise = "x" * rng.randrange(16)
            send("response.function_call_arguments.delta", **place, delta=piece, obfuscation=noise)
        send("response.function_call_arguments.done", **place, arguments=call.arguments)
        closed({**item, "status": "completed", "arguments": call.arguments})
    usage = {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 70,
    }
    send("response.completed", response={**shown, "status": "completed", "output": output, "usage": usage})
    return events


def _anthropic(answer: _Answer, rng: random.Random) -> list[bytes]:
    events: list[bytes] = []
    blocks = 0

    def send(kind: str, **members: object) -> None:
        events.append(_line({"type": kind, **members}, kind))

    def block(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
        nonlocal blocks
        send("content_block_start", index=blocks, content_block=start)
        for delta in deltas:
            send("content_block_delta", index=blocks, delta=delta)
        send("content_block_stop", index=blocks)
        blocks += 1

    usage = {"input_tokens": 50, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 4}
    message = {"id": f"msg_{rng.getrandbits(96):024x}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": "claude-sonnet-4-5-20250929", "stop_reason": None, "stop_sequence": None, "usage": usage}
    send("message_start", message=message)
    send("ping")
    if answer.thinking:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in answer.thinking]
        deltas.append({"type": "signature_delta", "signature": f"{rng.getrandbits(1600):0400x}"})
        block({"type": "thinking", "thinking": "", "signature": ""}, deltas)
    if answer.big:
        used = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        block(used, [{"type": "input_json_delta", "partial_json": '{"query":"streams"}'}])
        pages = [{"type": "web_search_result", **source, "encrypted_content": "x" * 900} for source in _sources(10)]
        block({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": pages}, [])
    if answer.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in answer.text]
        for source in _sources(answer.citations):
            note = {"type": "web_search_result_location", "cited_text": "The answer", "encrypted_index": "x" * 60}
            deltas.insert(1, {"type": "citations_delta", "citation": {**note, **source}})
        block({"type": "text", "text": ""}, deltas)
    for call in answer.calls:
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *call.pieces]]
        block({"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}, pieces)
    reason = "tool_use" if answer.calls else "end_turn"
    send("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 20})
    send("message_stop")
    return events


def _gemini(answer: _Answer, rng: random.Random) -> list[bytes]:
    details = [{"modality": "TEXT", "tokenCount": 50}]
    answer_id = f"{rng.getrandbits(96):024x}"

    def chunk(part: dict[str, Any], **more: object) -> bytes:
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0, **more}
        usage = {"promptTokenCount": 50, "candidatesTokenCount": 20, "totalTokenCount": 70}
        usage |= {"promptTokensDetails": details} if answer.big else {}
        payload = {"candidates": [candidate], "usageMetadata": usage}
        return _line({**payload, "modelVersion": "gemini-2.5-flash", "responseId": answer_id})

    events = [chunk({"text": piece, "thought": True}) for piece in answer.thinking]
    events += [chunk({"text": piece}) for piece in answer.text]
    for call in answer.calls:  # arguments are always sent in one piece here
        function = {"id": call.call_id, "name": call.name, "args": orjson.Fragment(call.arguments)}
        events.append(chunk({"functionCall": function, "thoughtSignature": f"{rng.getrandbits(1600):0400x}"}))
    more: dict[str, Any] = {"finishReason": "STOP"}
    if answer.citations or answer.big:
        pages = [
            {"web": {"uri": source["url"], "title": source["title"]}} for source in _sources(answer.citations or 20)
        ]
        supports = [{"segment": {"endIndex": 5, "text": "The a"}, "groundingChunkIndices": [0]} for _ in pages]
        more["groundingMetadata"] = {"groundingChunks": pages, "groundingSupports": supports}
    return [*events, chunk({"text": ""}, **more)]


_WRITERS: dict[str, Callable[[_Answer, random.Random], list[bytes]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
DIALECTS = tuple(_WRITERS)


def recorded_like(dialect: str) -> list[Shape]:
    """Return the streams of one dialect, with their expected results."""
    rng = random.Random(15)
    shapes: list[Shape] = []
    for kind, (count, make) in KINDS.items():
        shapes += [_shape(kind, dialect, make(rng), rng) for _ in range(count)]
    return shapes


def long_shape(name: str) -> Shape:
    """Return one of `LONG`."""
    rng = random.Random(15)
    dialect, make, _ = LONG[name]
    return _shape(name, dialect, make(rng), rng)


def _shape(name: str, dialect: str, answer: _Answer, rng: random.Random) -> Shape:
    events = _WRITERS[dialect](answer, rng)
    calls = [(call.call_id, call.name, call.arguments) for call in answer.calls]
    return Shape(name, events, "".join(answer.text), calls, len(events), dialect)
