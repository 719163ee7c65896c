"""Build conformant streams of each dialect from a list of parts.

stream = build("anthropic", [Reasoning("Oslo?"), Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')])
stream.body, stream.expected
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from streamweld._messages import choice_message
from streamweld.testing.pieces import fragments_of, random_arguments, random_text
from streamweld.testing.stream import Call, Expected, Frame, Part, Reasoning, Refusal, Stream, Text, Tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streamweld.testing.stream import Dialect

__all__ = ["build", "random_parts"]

DONE = Frame("[DONE]", role="end")
TOKENS = Tokens(11, 7)


def build(
    dialect: Dialect,
    parts: Iterable[Part],
    *,
    usage: Tokens | None = TOKENS,
    finish: str | None = None,
    seed: int | None = None,
) -> Stream:
    """Build a conformant stream.

    Args:
        dialect: the wire format.
        parts: texts, reasoning, refusals and calls, in order.
        usage: the token counts; None omits them if the dialect permits.
        finish: `stop`, `length` or `tool_calls`; None selects `tool_calls` if there are calls, otherwise `stop`.
        seed: the random seed for splitting texts and arguments. None splits each text into two pieces.

    Raises:
        ValueError: if the dialect does not exist, or if there is a refusal and the dialect does not support it.
        TypeError: if `parts` is not a list of parts, or if the arguments of a call are not text.
    """
    if dialect not in _BUILDERS:
        raise ValueError(choice_message("dialect", dialect, tuple(_BUILDERS)))
    if isinstance(cast("object", parts), Part):
        raise TypeError(f"parts must be a list, not a single {type(parts).__name__}: write [{type(parts).__name__}(…)]")
    if isinstance(cast("object", parts), str):
        raise TypeError("parts must be a list of parts, not a str: pass [Text(…)]")
    given = tuple(parts)
    filled: list[Part] = []
    for part in given:
        if not isinstance(cast("object", part), Part):
            raise TypeError(f"parts contains {part!r}: it must be Text, Reasoning, Refusal or Call")
        if isinstance(part, Call) and not isinstance(cast("object", part.arguments), str):
            raise TypeError(f"the arguments of the call {part.name!r} must be JSON text: use json.dumps(…)")
        if isinstance(part, Refusal) and dialect not in ("chat", "responses"):
            raise ValueError(f"{dialect} has no refusals: use Text")
        if isinstance(part, Call) and part.id is None:
            part = Call(part.name, part.arguments, f"call_{sum(isinstance(each, Call) for each in filled) + 1}")
        filled.append(part)
    calls = tuple(part for part in filled if isinstance(part, Call))
    reason = finish or ("tool_calls" if calls else "stop")
    seen: set[str | None] = set()
    wanted: list[Call] = []
    for call in calls:
        wanted.append(Call(call.name, call.arguments, None if call.id in seen else call.id))
        seen.add(call.id)
    expected = Expected(
        _joined(filled, Text),
        _joined(filled, Reasoning),
        _joined(filled, Refusal),
        tuple(wanted),
        reason,
        None if dialect == "ai-sdk-ui" else usage,
    )
    frames = _BUILDERS[dialect](filled, _splitter(seed), reason, usage)
    return Stream(dialect, tuple(filled), tuple(frames), expected)


_NAMES = ("get", "get_weather", "get_weather_now", "search", "search_web", "run", "run_tests", "fetch")
_VALUES = (
    "{}",
    "",
    '{"q":1}',
    '{"q":2}',
    '{"q":"a"}',
    '{"x":{"q":1}}',
    '{"list":[1,{"q":1}]}',
    '{"city":"Zürich","n":3}',
)


def random_parts(dialect: Dialect, seed: int) -> list[Part]:
    """Return one to five random parts that the dialect can represent.

    Calls may have equal names, or names with a common prefix. Arguments may be equal, empty, nested or long. Ids are
    sometimes repeated.
    """
    rng = random.Random(f"parts {dialect} {seed}")  # noqa: S311 (not for secrets)
    kinds: list[type[Part]] = [Text, Text, Reasoning, Call, Call, Call]
    if dialect in ("chat", "responses"):
        kinds.append(Refusal)
    out: list[Part] = []
    for number in range(rng.randint(1, 5)):
        kind = rng.choice(kinds)
        if kind is Call:
            arguments = rng.choice(_VALUES) if rng.random() < 0.7 else random_arguments(rng, 1)
            call = Call(rng.choice(_NAMES), arguments, f"call_{number + 1}")
            calls = [part for part in out if isinstance(part, Call)]
            if calls and rng.random() < 0.05 and dialect in ("chat", "responses", "anthropic"):
                again = replace(call, id=rng.choice(calls).id)
                if all(_differ(part, again) for part in calls if part.id == again.id):
                    call = again
            out.append(call)
        else:
            text = rng.choice(("ok", "Let me look it up.", "Es dauert: Zürich, 日本 🙂.")) + random_text(rng, 3)
            out.append(kind(text))
    return out


def _differ(one: Call, other: Call) -> bool:
    """Return True if a reader cannot confuse two calls that have the same id.

    Two calls can be confused if one looks like a duplicate of the other, or like a placeholder for it.
    """
    values = [value_of(one), value_of(other)]
    return one.name != other.name or (values[0] != values[1] and all(values))


def _joined(parts: list[Part], kind: type[Text | Reasoning | Refusal]) -> str:
    return "".join(part.text for part in parts if isinstance(part, kind))


def _splitter(seed: int | None) -> Callable[[str], list[str]]:
    if seed is not None:
        rng = random.Random(seed)  # noqa: S311 (not for secrets)
        return lambda text: fragments_of(rng, text)
    return lambda text: [piece for piece in (text[: len(text) // 2], text[len(text) // 2 :]) if piece]


def value_of(call: Call) -> Any:
    """Return the arguments as a value; empty text becomes an empty object."""
    return json.loads(call.arguments or "{}")


# Chat Completions


def chunk(delta: Any, finish: str | None = None, **top: Any) -> dict[str, Any]:
    """Return one Chat Completions chunk."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "model-1"}
    return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | top


_CHAT_MEMBER = {Text: "content", Reasoning: "reasoning_content", Refusal: "refusal"}


def _chat(parts: list[Part], split: Callable[[str], list[str]], finish: str, usage: Tokens | None) -> list[Frame]:
    out = [Frame(chunk({"role": "assistant", "content": ""}), role="start")]
    index = 0
    for number, part in enumerate(parts):
        if isinstance(part, Call):
            head = {"index": index, "id": part.id, "type": "function", "function": {"name": part.name, "arguments": ""}}
            out.append(Frame(chunk({"tool_calls": [head]}), role="open", part=number))
            for piece in split(part.arguments):
                entry = {"index": index, "function": {"arguments": piece}}
                out.append(Frame(chunk({"tool_calls": [entry]}), role="delta", part=number, piece=piece))
            index += 1
        else:
            member = _CHAT_MEMBER[type(part)]
            out += [Frame(chunk({member: piece}), role="delta", part=number, piece=piece) for piece in split(part.text)]
    out.append(Frame(chunk({}, finish), role="finish"))
    if usage is not None:
        total = usage.input + usage.output
        counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": total}
        out.append(Frame(chunk({}) | {"choices": [], "usage": counts}, role="usage"))
    return [*out, DONE]


# Responses


def _responses(parts: list[Part], split: Callable[[str], list[str]], finish: str, usage: Tokens | None) -> list[Frame]:
    base = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "model-1"}
    out: list[Frame] = []

    def add(kind: str, role: Any = "other", part: int | None = None, piece: str = "", **members: Any) -> None:
        name = f"response.{kind}"
        if "content" in members:  # the name `part` is already used for another parameter
            members["part"] = members.pop("content")
        out.append(Frame({"type": name, "sequence_number": len(out)} | members, name, role, part, piece))

    started: dict[str, Any] = base | {"status": "in_progress", "output": []}
    add("created", "start", response=started)
    add("in_progress", response=started)
    output: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        item: dict[str, Any]
        identity = f"item_{number + 1}"
        at: dict[str, Any] = {"output_index": number}
        of: dict[str, Any] = at | {"item_id": identity}
        if isinstance(part, Call):
            item = {
                "type": "function_call",
                "id": identity,
                "call_id": part.id,
                "name": part.name,
                "status": "completed",
            }
            add("output_item.added", "open", number, item=item | {"status": "in_progress", "arguments": ""}, **at)
            for piece in split(part.arguments):
                add("function_call_arguments.delta", "delta", number, piece, delta=piece, **of)
            add("function_call_arguments.done", part=number, arguments=part.arguments, name=part.name, **of)
            item = item | {"arguments": part.arguments}
        else:
            thought = isinstance(part, Reasoning)
            refused = isinstance(part, Refusal)
            member = "refusal" if refused else "text"
            content: dict[str, Any] = {"type": "summary_text" if thought else "refusal" if refused else "output_text"}
            if not (thought or refused):
                content |= {"annotations": []}
            name = "reasoning_summary_text" if thought else "refusal" if refused else "output_text"
            position: dict[str, Any] = of | {"summary_index" if thought else "content_index": 0}
            within = "reasoning_summary_part" if thought else "content_part"
            item = {"type": "reasoning" if thought else "message", "id": identity}
            item |= {"summary": []} if thought else {"role": "assistant", "status": "in_progress", "content": []}
            add("output_item.added", "open", number, item=item, **at)
            add(f"{within}.added", "other", number, content=content | {member: ""}, **position)
            for piece in split(part.text):
                add(f"{name}.delta", "delta", number, piece, delta=piece, **position)
            add(f"{name}.done", "other", number, **position, **{member: part.text})
            content = content | {member: part.text}
            add(f"{within}.done", "other", number, content=content, **position)
            item = item | ({"summary": [content]} if thought else {"status": "completed", "content": [content]})
        add("output_item.done", "close", number, item=item, **at)
        output.append(item)
    status = "incomplete" if finish == "length" else "completed"
    last: dict[str, Any] = base | {"status": status, "output": output}
    if status == "incomplete":
        last["incomplete_details"] = {"reason": "max_output_tokens"}
    if usage is not None:
        total = usage.input + usage.output
        last["usage"] = {"input_tokens": usage.input, "output_tokens": usage.output, "total_tokens": total}
    add(status, "end", response=last)
    return out


# Anthropic Messages


def _anthropic(parts: list[Part], split: Callable[[str], list[str]], finish: str, usage: Tokens | None) -> list[Frame]:
    out: list[Frame] = []

    def add(kind: str, role: Any = "other", part: int | None = None, piece: str = "", **members: Any) -> None:
        out.append(Frame({"type": kind} | members, kind, role, part, piece))

    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "model-1", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None}
    counts = usage or Tokens(0, 0)
    message["usage"] = {"input_tokens": counts.input, "output_tokens": 1}
    add("message_start", "start", message=message)
    for number, part in enumerate(parts):
        block: dict[str, Any]
        if isinstance(part, Call):
            block = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            kind, member, text = "input_json_delta", "partial_json", part.arguments
        elif isinstance(part, Reasoning):
            block = {"type": "thinking", "thinking": "", "signature": ""}
            kind, member, text = "thinking_delta", "thinking", part.text
        else:
            block, kind, member, text = {"type": "text", "text": ""}, "text_delta", "text", part.text
        add("content_block_start", "open", number, index=number, content_block=block)
        for piece in split(text):
            add("content_block_delta", "delta", number, piece, index=number, delta={"type": kind, member: piece})
        if isinstance(part, Reasoning):
            delta = {"type": "signature_delta", "signature": "c2ln"}
            add("content_block_delta", "other", number, index=number, delta=delta)
        add("content_block_stop", "close", number, index=number)
    reason = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}[finish]
    ending = {"stop_reason": reason, "stop_sequence": None}
    add("message_delta", "finish", delta=ending, usage={"output_tokens": counts.output})
    add("message_stop", "end")
    return out


# Gemini


def _gemini(parts: list[Part], split: Callable[[str], list[str]], finish: str, usage: Tokens | None) -> list[Frame]:
    out: list[Frame] = []

    def add(part: dict[str, Any], number: int | None, piece: str = "", **candidate: Any) -> dict[str, Any]:
        content = {"role": "model", "parts": [part]}
        data: dict[str, Any] = {"candidates": [{"content": content, "index": 0} | candidate], "modelVersion": "model-1"}
        data["responseId"] = "r1"
        role: Any = "end" if number is None else "delta"
        out.append(Frame(data, role=role, part=number, piece=piece))
        return data

    for number, part in enumerate(parts):
        if isinstance(part, Call):
            add({"functionCall": {"id": part.id, "name": part.name, "args": value_of(part)}}, number, part.arguments)
        else:
            more = {"thought": True} if isinstance(part, Reasoning) else {}
            for piece in split(part.text):
                add({"text": piece} | more, number, piece)
    last = add({"text": ""}, None, finishReason="MAX_TOKENS" if finish == "length" else "STOP")
    if usage is not None:
        total = usage.input + usage.output
        counts = {"promptTokenCount": usage.input, "candidatesTokenCount": usage.output, "totalTokenCount": total}
        last["usageMetadata"] = counts
    return out


# AI SDK


def _ai_sdk(parts: list[Part], split: Callable[[str], list[str]], *, ui: bool) -> list[Frame]:
    out: list[Frame] = []
    for number, part in enumerate(parts):
        if isinstance(part, Call):
            identity = "toolCallId" if ui else "id"
            start = {"type": "tool-input-start", identity: part.id, "toolName": part.name}
            out.append(Frame(start, role="open", part=number))
            for piece in split(part.arguments):
                delta = {"type": "tool-input-delta", identity: part.id, "inputTextDelta" if ui else "delta": piece}
                out.append(Frame(delta, role="delta", part=number, piece=piece))
            if not ui:
                out.append(Frame({"type": "tool-input-end", "id": part.id}, part=number))
            done: dict[str, Any] = {"toolCallId": part.id, "toolName": part.name}
            if ui:
                done = {"type": "tool-input-available"} | done | {"input": value_of(part)}
            else:
                done = {"type": "tool-call"} | done | {"input": part.arguments or "{}"}
            out.append(Frame(done, role="close", part=number))
        else:
            kind = "reasoning" if isinstance(part, Reasoning) else "text"
            own = str(number)
            out.append(Frame({"type": f"{kind}-start", "id": own}, role="open", part=number))
            for piece in split(part.text):
                delta = {"type": f"{kind}-delta", "id": own, "delta": piece}
                out.append(Frame(delta, role="delta", part=number, piece=piece))
            out.append(Frame({"type": f"{kind}-end", "id": own}, role="close", part=number))
    return out


_AI_SDK_FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool-calls"}


def _parts(parts: list[Part], split: Callable[[str], list[str]], finish: str, usage: Tokens | None) -> list[Frame]:
    counts = usage or Tokens(0, 0)
    end: dict[str, Any] = {"type": "finish", "finishReason": {"unified": _AI_SDK_FINISH[finish], "raw": None}}
    end["usage"] = {"inputTokens": {"total": counts.input}, "outputTokens": {"total": counts.output}}
    return [
        Frame({"type": "stream-start", "warnings": []}, role="start"),
        Frame({"type": "response-metadata", "id": "r1", "modelId": "model-1"}),
        *_ai_sdk(parts, split, ui=False),
        Frame(end, role="end"),
    ]


def _ui(parts: list[Part], split: Callable[[str], list[str]], finish: str, usage: Tokens | None) -> list[Frame]:
    del usage  # the UI message stream has no field for usage
    return [
        Frame({"type": "start", "messageId": "msg-1"}, role="start"),
        Frame({"type": "start-step"}),
        *_ai_sdk(parts, split, ui=True),
        Frame({"type": "finish-step"}),
        Frame({"type": "finish", "finishReason": _AI_SDK_FINISH[finish]}, role="finish"),
        DONE,
    ]


_BUILDERS: dict[str, Callable[[list[Part], Callable[[str], list[str]], str, Tokens | None], list[Frame]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ai-sdk-parts": _parts,
    "ai-sdk-ui": _ui,
}
