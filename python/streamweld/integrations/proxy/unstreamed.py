"""Convert responses that are not streamed: fold the events of a response into the JSON body of the target API.

The events are those that `StreamConverter` writes, so the body has the same content as a streamed response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson

from streamweld.integrations._inflate import slices
from streamweld.integrations.proxy.json_values import object_of
from streamweld.sse import iter_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.convert import StreamConverter

__all__ = ["converted", "folded"]


def converted(converter: StreamConverter, body: bytes | bytearray, dialect: str) -> bytes | None:
    """Convert the body of a response to `dialect`, which is the converter's target.

    Returns None if the response contains an error.
    """
    made = [converter.feed(part) for part in slices(body)]
    made.append(converter.close())
    return folded(b"".join(made), dialect) if converter.error is None else None


def folded(stream: bytes, dialect: str) -> bytes:
    """Fold a stream in `dialect` into the JSON body. The stream must not contain a fault."""
    payloads = _payloads(stream)
    match dialect:
        case "chat":
            made = _chat(payloads)
        case "anthropic":
            made = _anthropic(payloads)
        case "gemini":
            made = _gemini(payloads)
        case _:
            made = next(given_value["response"] for given_value in payloads if given_value["type"] in _TERMINAL)
    return orjson.dumps(made)


_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})


def _payloads(stream: bytes) -> Iterator[dict[str, Any]]:
    for frame in iter_frames([stream]):
        if frame.data != "[DONE]":
            yield cast("dict[str, Any]", orjson.loads(frame.data))


class _Texts:
    """Texts that arrive in pieces.

    Each text is the value of a member of an object. The pieces of all texts are joined once, at the end.
    """

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, str], tuple[dict[str, Any], list[str]]] = {}

    def add(self, owner: dict[str, Any], name: str, piece: str) -> None:
        """Append a piece to the text `owner[name]`. The member's current value is the beginning of the text."""
        found = self._pieces.get((id(owner), name))
        if found is None:
            found = self._pieces[id(owner), name] = (owner, [owner.get(name) or ""])
            owner[name] = ""  # add the member now, so that members are in the order in which their texts began
        found[1].append(piece)

    def join(self) -> None:
        """Write the joined texts into their objects."""
        for (_, name), (owner, pieces) in self._pieces.items():
            owner[name] = "".join(pieces)


def _chat(chunks: Iterator[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    texts = _Texts()
    for chunk in chunks:
        if not made:
            made = {name: chunk[name] for name in ("id", "object", "created", "model")}
            made["object"] = "chat.completion"
        for choice in chunk["choices"]:
            index = choice["index"]
            whole = choices.setdefault(
                index, {"index": index, "message": {"role": "assistant", "content": None}, "finish_reason": None}
            )
            _join(whole["message"], choice["delta"], texts)
            whole["finish_reason"] = choice["finish_reason"] or whole["finish_reason"]
        if "usage" in chunk:
            made["usage"] = chunk["usage"]
    texts.join()
    usage = made.pop("usage", None)
    made["choices"] = [choices[index] for index in sorted(choices)]
    return made if usage is None else {**made, "usage": usage}


def _join(message: dict[str, Any], delta: dict[str, Any], texts: _Texts) -> None:
    for name in ("content", "reasoning_content", "refusal"):
        if delta.get(name):
            texts.add(message, name, delta[name])
    for name in ("annotations", "reasoning_details"):
        if name in delta:
            message.setdefault(name, []).extend(delta[name])
    if not delta.get("tool_calls"):
        return
    calls = message.setdefault("tool_calls", [])
    for piece in delta["tool_calls"]:
        if piece["index"] == len(calls):
            calls.append({name: value for name, value in piece.items() if name != "index"})
        else:
            texts.add(calls[piece["index"]]["function"], "arguments", piece["function"]["arguments"])


def _anthropic(events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    inputs: dict[int, list[str]] = {}
    texts = _Texts()
    for event in events:
        match event["type"]:
            case "message_start":
                made = event["message"]
            case "content_block_start":
                made["content"].append(event["content_block"])
            case "content_block_delta":
                delta, block = event["delta"], made["content"][event["index"]]
                if delta["type"] == "input_json_delta":
                    inputs.setdefault(event["index"], []).append(delta["partial_json"])
                else:  # text, thinking or signature, which is also the name of the part's member
                    name = delta["type"].removesuffix("_delta")
                    texts.add(block, name, delta[name])
            case "message_delta":
                made |= event["delta"]
                made["usage"] |= event["usage"]
            case _:
                continue
    texts.join()
    for index, pieces in inputs.items():
        made["content"][index]["input"] = _object("".join(pieces))
    return made


def _object(text: str) -> Any:
    """Parse the arguments for APIs that represent them as an object. Text that is not JSON is returned as text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _gemini(chunks: Iterator[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    candidates: dict[int, dict[str, Any]] = {}
    texts = _Texts()
    for chunk in chunks:
        for sent in chunk.get("candidates", ()):
            candidate = cast("dict[str, Any]", sent)
            index = cast("int", candidate.get("index", 0))
            whole = candidates.setdefault(index, {"content": {"role": "model", "parts": []}})
            whole |= {name: value for name, value in candidate.items() if name != "content"}
            parts = cast("list[dict[str, Any]]", whole["content"]["parts"])
            for part in cast("list[dict[str, Any]]", object_of(candidate.get("content")).get("parts") or []):
                last = parts[-1] if parts else {}
                if _is_text(part) and _is_text(last) and part.get("thought") == last.get("thought"):
                    texts.add(last, "text", part["text"])
                else:
                    parts.append(part)
        made |= {name: value for name, value in chunk.items() if name != "candidates"}
    texts.join()
    return {"candidates": [candidates[index] for index in sorted(candidates)], **made}


def _is_text(part: dict[str, Any]) -> bool:
    """Return True if a part contains only text, so that it can be joined with another text part."""
    return "text" in part and part.keys() <= {"text", "thought"}
