"""`dedupe_reasoning`: remove items that a resumed stream repeated, so that no item id appears twice in a history.

When a client replays a stream, it may add extra messages with empty reasoning parts that have the `rs_` ids of earlier
messages. The Responses API then rejects the next turn ("Duplicate item found with id rs_…"). Two passes run over AI SDK
messages or Responses items; each Responses item counts as a message. The first pass removes parts that repeat the id
and text of another part of the same message. The second pass removes parts that have an id from an earlier message and
no new text. New text with the same id is a separate summary and is kept. The result does not depend on the API that the
history is sent to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from streamweld.errors import UsageError
from streamweld.history.edits import Edit
from streamweld.history.model import json_text, pointer
from streamweld.history.rules import edits

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["dedupe_reasoning"]

_T = TypeVar("_T", bound="Sequence[Any] | Mapping[str, Any]")
_Kind = Literal["rs", "fc", "msg"]
_KINDS: Final = ("rs", "fc", "msg")
_CONTAINERS: Final = ("messages", "input")
_ITEM_KINDS: Final[Mapping[str, _Kind]] = {
    "reasoning": "rs",
    "message": "msg",
    "function_call": "fc",
    "custom_tool_call": "fc",
}
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
# Providers whose metadata can hold an item id of the Responses API.
_PROVIDERS: Final = ("openai", "azure")
_CIPHER: Final = "reasoningEncryptedContent"


@dataclass(slots=True, eq=False)
class _Occurrence:
    """One part (or item) with an id. `text`: the content of the part, for comparison. `drop`: the rule that removes the
    part, if any.
    """

    at: int
    part: int | None
    kind: _Kind
    item_id: str
    text: str
    raw: Mapping[str, Any]
    cipher: str | None
    call_id: str | None
    owned: bool  # whether the part is in an assistant message; in other messages, repeated parts are kept
    drop: str | None = None

    @property
    def blank(self) -> bool:
        return self.kind != "fc" and not self.text.strip()


@dataclass(slots=True, eq=False)
class _Result:
    at: int
    part: int | None
    call_id: str


def dedupe_reasoning(
    messages: _T, *, items: Sequence[str] = ("rs",), on_edit: Callable[[Edit], object] | None = None
) -> _T:
    """Return the history without reasoning that repeats an earlier item.

    Parts without an item id are never changed. A message is dropped only if nothing or only step markers would remain.
    If several parts have the same id and text, the first one is kept. If only a removed part has encrypted content,
    that content moves to the kept part.

    Args:
        messages: AI SDK UIMessages or ModelMessages, Responses items, or the payload that contains them (`messages` or
            `input`).
        items: the kinds of item to remove: `rs` (reasoning), `fc` (calls, with their repeated results), `msg` (texts).
        on_edit: called with each Edit, in the order of the history.

    Returns:
        The input itself if it contains no repetition; otherwise a new object of the same type, which shares all
        unchanged messages with the input. The input is never changed.

    Raises:
        UsageError: if `items` contains an unknown kind.

    >>> said = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    >>> answer = {"type": "message", "role": "assistant", "content": "Yes."}
    >>> dedupe_reasoning([said, answer, {"type": "reasoning", "id": "rs_1", "summary": []}]) == [said, answer]
    True
    """
    if isinstance(items, str) or any(kind not in _KINDS for kind in items):
        raise UsageError(f"items={items!r}: each must be one of {', '.join(_KINDS)}")
    if isinstance(messages, Mapping):
        payload = cast("Mapping[str, Any]", messages)
        for name in _CONTAINERS:
            held = payload.get(name)
            if isinstance(held, list | tuple):
                done = _deduped(cast("Sequence[Any]", held), frozenset(items), (name,), on_edit)
                return messages if done is held else cast("_T", {**payload, name: done})
        return messages
    if not isinstance(messages, list | tuple):
        return messages
    return cast("_T", _deduped(messages, frozenset(items), (), on_edit))


def _deduped(
    messages: Sequence[Any],
    items: frozenset[str],
    base: tuple[str | int, ...],
    on_edit: Callable[[Edit], object] | None,
) -> Sequence[Any]:
    occurrences, results = _read(messages, items)
    _within(occurrences)
    _across(occurrences)
    _blank_first(occurrences)
    dropped: dict[int, dict[int | None, str]] = {}
    for one in occurrences:
        if one.drop is not None:
            dropped.setdefault(one.at, {})[one.part] = one.drop
    if not dropped:
        return messages
    for result in _repeated_results(occurrences, results):
        dropped.setdefault(result.at, {})[result.part] = "item_result_repeated"
    ciphers = _ciphers(occurrences)
    made: list[Any] = []
    for at, message in enumerate(messages):
        gone = dropped.get(at, {})
        if on_edit is not None:
            for part, rule in gone.items():
                on_edit(_edit(rule, message, at, part, base))
        if None in gone:
            continue
        kept = _rebuilt(message, gone, ciphers.get(at, {}))
        if kept is not None:
            made.append(kept)
        elif on_edit is not None:
            on_edit(
                _explained(
                    "item_message_dropped",
                    (*base, at),
                    "dropped a message because all of its parts were dropped",
                    message,
                )
            )
    return tuple(made) if isinstance(messages, tuple) else made


# Reading


def _read(messages: Sequence[Any], items: frozenset[str]) -> tuple[list[_Occurrence], list[_Result]]:
    occurrences: list[_Occurrence] = []
    results: list[_Result] = []
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        given = cast("Mapping[str, Any]", message)
        name = _parts_name(given)
        if name is None:
            _read_item(given, at, occurrences, results)
            continue
        owned = given.get("role") == "assistant"
        for n, raw in enumerate(cast("Sequence[Any]", given[name])):
            if isinstance(raw, Mapping):
                _read_part(cast("Mapping[str, Any]", raw), at, n, owned, occurrences, results)
    return [one for one in occurrences if one.kind in items], results


def _parts_name(message: Mapping[str, Any]) -> str | None:
    """Return the name of the member that contains the parts of an AI SDK message, or None for a Responses item."""
    if "role" not in message or message.get("type") == "message" or isinstance(message.get("content"), str):
        return None
    for name in ("parts", "content"):
        if isinstance(message.get(name), list | tuple):
            return name
    return None


def _read_item(item: Mapping[str, Any], at: int, occurrences: list[_Occurrence], results: list[_Result]) -> None:
    kind = item.get("type") or ("message" if "role" in item else None)
    if kind in _OUTPUTS:
        results.append(_Result(at, None, str(item.get("call_id"))))
        return
    found, item_id = _ITEM_KINDS.get(str(kind)), item.get("id")
    if found is None or not isinstance(item_id, str) or not item_id:
        return
    if found == "rs":
        pieces = [*_list(item.get("summary")), *_list(item.get("content"))]
        text = "\0".join([str(piece.get("text", "")) for piece in pieces if isinstance(piece, Mapping)])  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        text = text if text.strip("\0") else ""
    elif found == "msg":
        text = json_text([item.get("role"), item.get("content")], (at,)) if item.get("content") else ""
    else:
        text = json_text([item.get(name) for name in ("call_id", "name", "arguments", "input")], (at,))
    owned = found != "msg" or item.get("role") == "assistant"
    occurrences.append(
        _Occurrence(at, None, found, item_id, text, item, item.get("encrypted_content"), item.get("call_id"), owned)
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def _read_part(
    raw: Mapping[str, Any], at: int, n: int, owned: bool, occurrences: list[_Occurrence], results: list[_Result]
) -> None:
    kind = str(raw.get("type"))
    call_id: Any = None
    found: _Kind
    if kind in ("reasoning", "text"):
        found, text = ("rs" if kind == "reasoning" else "msg"), str(raw.get("text") or "")
    elif kind == "tool-result":
        results.append(_Result(at, n, str(raw.get("toolCallId"))))
        return
    elif "toolCallId" in raw:
        # In a UIMessage, the part for a call also contains the call's result, so parts with different results are not
        # duplicates.
        found, call_id = "fc", str(raw["toolCallId"])
        members = ("toolCallId", "type", "toolName", "input", "output", "errorText")
        text = json_text([raw.get(name) for name in members], (at, "parts", n))
    else:
        return
    item_id, cipher = _item_id_and_cipher(raw)
    if item_id is not None:
        occurrences.append(_Occurrence(at, n, found, item_id, text, raw, cipher, call_id, owned))


def _item_id_and_cipher(raw: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the item id and the encrypted content from the metadata of the first provider that has an item id."""
    for _, _, given in _metadata(raw):
        item_id = given.get("itemId")
        if isinstance(item_id, str) and item_id:
            return item_id, given.get(_CIPHER)
    return None, None


def _metadata(raw: Mapping[str, Any]) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    for member in ("providerMetadata", "callProviderMetadata", "providerOptions"):
        given = raw.get(member)
        if isinstance(given, Mapping):
            for provider in _PROVIDERS:
                inner: Any = cast("Mapping[str, Any]", given).get(provider)
                if isinstance(inner, Mapping):
                    yield member, provider, cast("Mapping[str, Any]", inner)


# Deciding


def _within(occurrences: list[_Occurrence]) -> None:
    """Mark parts that repeat the id and text of an earlier part of the same message."""
    seen: set[tuple[int, str, str, str]] = set()
    for one in occurrences:
        if one.part is None:
            continue
        key = (one.at, one.kind, one.item_id, one.text)
        if key in seen:
            one.drop = "item_repeated"
        seen.add(key)


def _across(occurrences: list[_Occurrence]) -> None:
    """Mark parts that repeat an id of an earlier message and have either no text or text already seen for that id."""
    known: dict[tuple[str, str], set[str]] = {}
    here: list[_Occurrence] = []
    for one in occurrences:
        if here and here[0].at != one.at:
            for earlier in here:
                known.setdefault((earlier.kind, earlier.item_id), set()).add(earlier.text)
            here = []
        here.append(one)
        texts = known.get((one.kind, one.item_id))
        if texts is not None and one.owned and one.drop is None and (one.blank or one.text in texts):
            one.drop = "item_repeated"


def _blank_first(occurrences: list[_Occurrence]) -> None:
    """Mark empty parts if their id has text only in a later message."""
    first_with_text: dict[tuple[str, str], int] = {}  # the first message in which the id has text
    for one in occurrences:
        if not one.blank and one.drop is None:
            first_with_text.setdefault((one.kind, one.item_id), one.at)
    for one in occurrences:
        if (
            one.blank
            and one.owned
            and one.drop is None
            and first_with_text.get((one.kind, one.item_id), one.at) > one.at
        ):
            one.drop = "item_blank_first"


def _repeated_results(occurrences: list[_Occurrence], results: list[_Result]) -> list[_Result]:
    """Return the results of dropped calls whose id already has a result."""
    waiting: Counter[str] = Counter()
    answered: set[str] = set()
    calls = [one for one in occurrences if one.drop is not None and one.call_id is not None]
    found: list[_Result] = []
    n = 0
    for result in results:
        while n < len(calls) and calls[n].at <= result.at:
            waiting[cast("str", calls[n].call_id)] += 1
            n += 1
        if result.call_id in answered and waiting[result.call_id]:
            waiting[result.call_id] -= 1
            found.append(result)
        answered.add(result.call_id)
    return found


def _ciphers(occurrences: list[_Occurrence]) -> dict[int, dict[int | None, str]]:
    """Return the encrypted content that kept parts must take over from dropped parts, keyed by message and part."""
    kept: dict[str, _Occurrence] = {}
    full: set[str] = set()
    for one in occurrences:
        if one.kind == "rs" and one.drop is None:
            kept.setdefault(one.item_id, one)
            if one.cipher:
                full.add(one.item_id)
    found: dict[int, dict[int | None, str]] = {}
    for one in occurrences:
        if one.kind == "rs" and one.drop is not None and one.cipher and one.item_id not in full:
            full.add(one.item_id)
            stays = kept[one.item_id]
            found.setdefault(stays.at, {})[stays.part] = one.cipher
    return found


# Writing


def _rebuilt(message: Any, gone: Mapping[int | None, str], ciphers: Mapping[int | None, str]) -> Any:
    """Return the message without the dropped parts, or None if nothing remains."""
    if not gone and not ciphers:
        return message
    if None in ciphers:
        return {**message, "encrypted_content": ciphers[None]}
    name = cast("str", _parts_name(message))
    parts = [_sealed(raw, ciphers.get(n)) for n, raw in enumerate(message[name]) if n not in gone]
    if gone and all(_type(raw) == "step-start" for raw in parts):
        return None
    return {**message, name: parts}


def _type(raw: Any) -> Any:
    return cast("Mapping[str, Any]", raw).get("type") if isinstance(raw, Mapping) else None


def _sealed(raw: Any, cipher: str | None) -> Any:
    if cipher is None:
        return raw
    for member, provider, given in _metadata(raw):
        if given.get("itemId"):
            return {**raw, member: {**raw[member], provider: {**given, _CIPHER: cipher}}}
    return raw


def _edit(rule: str, message: Any, at: int, part: int | None, base: tuple[str | int, ...]) -> Edit:
    if part is None:
        return _explained(
            rule, (*base, at), f"dropped the repeated item {message.get('id') or message.get('call_id')}", message
        )
    name = cast("str", _parts_name(message))
    raw = message[name][part]
    return _explained(rule, (*base, at, name, part), f"dropped the repeated {raw.get('type')} part", raw)


def _explained(rule: str, path: tuple[str | int, ...], what: str, removed: Any) -> Edit:
    known = edits()[rule]
    return Edit(rule, pointer(path), what, f"{known.text} ({known.source})", removed)
