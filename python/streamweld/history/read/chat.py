"""Read Chat Completions messages, including those of compatible servers: DeepSeek, Kimi, Mistral, OpenRouter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.history.chat_members import COMMON
from streamweld.history.chat_reasoning import (
    DETAILS,
    EXTRA_CONTENT,
    PROVIDER_FIELDS,
    REASONING_ITEMS,
    SIGNATURE_MEMBERS,
    THINKING_BLOCKS,
    call_signature,
    holds_only,
    lists_one_text,
    member_signature,
    text_signatures,
)
from streamweld.history.media_types import detected
from streamweld.history.model import (
    CONTENT_PARTS,
    EMPTY,
    MISSING,
    Call,
    Media,
    Opaque,
    Origin,
    Reasoning,
    Result,
    Text,
    Turn,
    copied,
)
from streamweld.history.read.chat_reasoning import read_reasoning, thinking_block
from streamweld.history.read.common import (
    as_list,
    as_mapping,
    as_optional_text,
    as_text,
    extra_members,
    free_form_input,
    locate,
    media_from_url,
    new_origin,
    split_data_url,
    text_part,
    unknown_role,
    with_inner_members,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld.history.model import Part, Path
    from streamweld.history.read.common import Json

__all__ = ["DIALECT", "read"]

DIALECT: Final = "openai-chat"
_ROLES: Final = ("system", "developer", "user", "assistant")
_MESSAGE: Final = frozenset(
    {
        *("role", "content", "refusal", "tool_calls", "tool_call_id", "function_call"),
        *("reasoning_content", "reasoning", DETAILS, THINKING_BLOCKS, REASONING_ITEMS),
    }
)
_BARE: Final = frozenset({"role", "content", "tool_calls"})
_RESULT: Final = _MESSAGE | {"name"}
_CALL: Final = frozenset({"id", "type", "function", "custom", "index"})
_TEXT: Final = frozenset({"type", "text"})
_REFUSAL: Final = frozenset({"type", "refusal"})
_MEDIA: Final = frozenset({"type", "image_url", "input_audio", "file", "video_url", "audio_url"})
_FUNCTION: Final = frozenset({"name", "arguments"})
_CUSTOM: Final = frozenset({"name", "input"})
_IMAGE: Final = frozenset({"url", "detail"})
_AUDIO: Final = frozenset({"data", "format"})
_FILE: Final = frozenset({"file_data", "file_id", "filename"})
_DOCUMENT: Final = frozenset({"type", "document_url", "document_name", "file_id"})
_THINKING: Final = frozenset({"type", "thinking", "closed"})
# The last steps of the paths to a message's content and calls.
_CONTENT: Final = ("content",)
_CALLS: Final = ("tool_calls",)


def read(raw: Any, path: Path, issuer: str | None = None) -> list[Turn]:
    """Return the turns of one message.

    Raises:
        HistoryError: if the message is not an object, or has a role that the dialect does not have.
    """
    message: Json = raw if raw.__class__ is dict else as_mapping(raw, path)
    role = message.get("role")
    if role == "tool" or role == "function":
        return [_result(message, path)]
    if role not in _ROLES:
        raise unknown_role(role, (*_ROLES, "tool", "function"), DIALECT, path)
    content = message.get("content")
    if type(content) is str and len(message) == 2:  # most messages have only a role and text
        origin = Origin(DIALECT, path, message, 1, COMMON)
        return [Turn(role, (Text(origin, 0, path + _CONTENT, None, EMPTY, False, content),), origin)]
    calls = message.get("tool_calls")
    # Most messages with calls have exactly these members. Counting members is faster than comparing their names.
    bare = (calls is not None and len(message) == 3 and "content" in message) or _BARE.issuperset(message)
    origin = Origin(DIALECT, path, message, 0, EMPTY if bare else extra_members(message, _MESSAGE))
    parts: list[Part] = []
    signatures: Mapping[str, str] = EMPTY
    signature: str | None = None  # signature of the message's text
    if not bare:
        thought = read_reasoning(message, origin, path, issuer)
        parts, signatures = thought.parts, thought.signatures
        if role == "assistant" and EXTRA_CONTENT in message:
            signature = member_signature(message, EXTRA_CONTENT)
        elif role == "assistant" and PROVIDER_FIELDS in message:
            signature = next(iter(text_signatures(message)), None)
            if signature is None and lists_one_text(message):  # copies of the signatures of calls
                origin.extra = {key: value for key, value in origin.extra.items() if key != PROVIDER_FIELDS}
    if content is not None and not (content == "" and calls and signature is None):
        parts += _content(content, origin, path + _CONTENT)
        if signature is not None:
            _sign_text(parts, signature, message, origin)
    if not bare and (refusal := as_text(message.get("refusal"), path)):
        parts.append(Text(*locate(origin, (*path, "refusal")), text=refusal, refusal=True))
    if calls is not None:
        beneath = path + _CALLS
        entries = as_list(calls, beneath)
        origin.stale = not entries  # servers reject an empty list, so the message must be rewritten
        for n, entry in enumerate(entries):
            parts.append(_call(entry, origin, (*beneath, n), signatures))
    if not bare and isinstance(legacy := message.get("function_call"), dict):
        function = as_mapping(legacy, path)
        common = with_inner_members(locate(origin, (*path, "function_call")), ("function_call", function, _FUNCTION))
        arguments = _arguments(function.get("arguments"))
        parts.append(Call(*common, call_id="", name=as_text(function.get("name"), path), **arguments))
    if bare and _are_common(parts):
        origin.extra = COMMON
    return [Turn(role, tuple(parts), origin)]


def _are_common(parts: list[Part]) -> bool:
    """Return whether the parts have only common members."""
    for part in parts:
        if type(part) is Call:
            if part.extra is not COMMON:
                return False
        elif type(part) is not Text or part.refusal or part.extra is not EMPTY:
            return False
    return True


def _only_signature(entry: Json, signature: str | None) -> frozenset[str]:
    """Return the members that contain this signature and nothing else."""
    if signature is None:
        return frozenset()
    return frozenset(name for name in SIGNATURE_MEMBERS if name in entry and holds_only(entry, name, signature))


def _sign_text(parts: list[Part], signature: str, message: Json, origin: Origin) -> None:
    """Move the signature of a message to its last part, which Gemini signs, if that part is text.

    If the member contains anything else, it is kept as an extra member.
    """
    last = parts[-1] if parts else None
    name = EXTRA_CONTENT if EXTRA_CONTENT in message else PROVIDER_FIELDS
    whole = lists_one_text(message) if name == PROVIDER_FIELDS else name in _only_signature(message, signature)
    if isinstance(last, Text) and not last.refusal and whole:
        parts[-1] = copied(last, signature=signature)
        origin.extra = {key: value for key, value in origin.extra.items() if key != name}


def _arguments(arguments: Any) -> Any:
    """Return the arguments as fields of a `Call`. The arguments should be text, but some servers send an object."""
    return {"arguments": arguments} if isinstance(arguments, str) else {"input": {} if arguments is None else arguments}


def _call(raw: Any, origin: Origin, path: Path, signatures: Mapping[str, str]) -> Call:
    entry: Json = raw if raw.__class__ is dict else as_mapping(raw, path)
    call_id: Any = entry.get("id")
    function: Any = entry.get("function")
    if not isinstance(call_id, str):
        call_id = as_text(call_id, path)
    elif (
        len(entry) == 3
        and entry.get("type") == "function"
        and function.__class__ is dict
        and len(function) == 2
        and not signatures
    ):
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str) and isinstance(arguments, str):  # nearly all calls have just these members
            at = origin.count
            origin.count = at + 1
            return Call(origin, at, path, entry, COMMON, False, call_id, name, arguments)
    known, signature, extra = _CALL, None, EMPTY
    if signatures or not _CALL.issuperset(entry):
        signature = call_signature(entry) or signatures.get(call_id)
        known = _CALL | _only_signature(entry, signature)
        extra = extra_members(entry, known)
    if entry.get("type") == "custom" or entry.get("custom") is not None:
        custom = as_mapping(entry.get("custom"), (*path, "custom"))
        common = with_inner_members(locate(origin, path, entry, known), ("custom", custom, _CUSTOM))
        value: Any = {"input": free_form_input(custom, (*path, "custom"))}
        name = as_text(custom.get("name"), path)
        return Call(*common, call_id=call_id, name=name, input=value, custom=True, signature=signature)
    if function.__class__ is not dict:
        function = as_mapping(function, (*path, "function"))
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str):
        name = as_text(name, path)
    if not isinstance(arguments, str) or len(function) > 2:
        common = with_inner_members(locate(origin, path, entry, known), ("function", function, _FUNCTION))
        return Call(*common, call_id=call_id, name=name, signature=signature, **_arguments(arguments))
    at = origin.count
    origin.count = at + 1
    return Call(origin, at, path, entry, extra, False, call_id, name, arguments, MISSING, None, signature)


def _result(message: Json, path: Path) -> Turn:
    inner: tuple[Text | Media | Opaque, ...] = ()
    content = message.get("content")
    if isinstance(content, str):
        inner = (Text(None, 0, path + _CONTENT, None, EMPTY, False, content),)
    elif content is not None:
        given = _content(content, new_origin(DIALECT, path, None, _MESSAGE), (*path, "content"))
        inner = tuple([part for part in given if isinstance(part, CONTENT_PARTS)])
    call_id, name, extra = message.get("tool_call_id"), None, COMMON
    if len(message) > 3 or call_id is None or type(content) is not str:  # members other than role, id and text
        name = as_text(message.get("name"), path) or None
        extra = extra_members(message, _RESULT)
    if not isinstance(call_id, str):
        call_id = as_text(call_id, path)
    origin = Origin(DIALECT, path, message, 1, extra)
    return Turn("tool", (Result(origin, 0, path, message, EMPTY, False, call_id, inner, MISSING, name),))


def _content(content: Any, origin: Origin, path: Path) -> list[Part]:
    if isinstance(content, str):
        return [text_part(origin, path, content)]
    return [_block(as_mapping(raw, (*path, n)), origin, (*path, n)) for n, raw in enumerate(as_list(content, path))]


def _block(raw: Json, origin: Origin, path: Path) -> Part:
    kind = raw.get("type")
    if kind == "text" and isinstance(raw.get("text"), str):
        return Text(*locate(origin, path, raw, _TEXT), text=raw["text"])
    if kind == "refusal":
        return Text(*locate(origin, path, raw, _REFUSAL), text=as_text(raw.get("refusal"), path), refusal=True)
    if kind == "image_url":
        image = raw.get("image_url")
        if isinstance(image, str):
            return media_from_url(locate(origin, path, raw, _MEDIA), image, None, kind="image")
        image = as_mapping(image, path)
        common = with_inner_members(locate(origin, path, raw, _MEDIA), ("image_url", image, _IMAGE))
        url, detail = as_text(image.get("url"), path), as_optional_text(image.get("detail"), path)
        return media_from_url(common, url, None, kind="image", detail=detail)
    if kind == "video_url":
        video = raw.get("video_url")
        url = video if isinstance(video, str) else as_text(as_mapping(video, path).get("url"), path)
        return media_from_url(locate(origin, path, raw, _MEDIA), url, None, kind="video")
    if kind == "audio_url":  # vLLM and Mistral
        audio = raw.get("audio_url")
        url = audio if isinstance(audio, str) else as_text(as_mapping(audio, path).get("url"), path)
        return media_from_url(locate(origin, path, raw, _MEDIA), url, None, kind="audio")
    if kind == "input_audio":
        if isinstance(raw.get("input_audio"), str):  # Mistral's AudioChunk: base64 or a URL
            common, audio = locate(origin, path, raw, _MEDIA), raw["input_audio"]
            if "://" in audio[:9] or audio.startswith("data:"):
                return media_from_url(common, audio, None, kind="audio")
            return Media(*common, kind="audio", media_type=detected(audio), data=audio)
        audio = as_mapping(raw.get("input_audio"), path)
        common = with_inner_members(locate(origin, path, raw, _MEDIA), ("input_audio", audio, _AUDIO))
        return Media(
            *common, kind="audio", media_type=f"audio/{audio.get('format')}", data=as_text(audio.get("data"), path)
        )
    if kind == "document_url" or (kind == "file" and "file" not in raw):  # Mistral's DocumentURLChunk and FileChunk
        common, address = locate(origin, path, raw, _DOCUMENT), raw.get("document_url")
        if isinstance(address, str):
            return media_from_url(
                common, address, None, kind="file", filename=as_optional_text(raw.get("document_name"), path)
            )
        return Media(*common, kind="file", file_id=as_optional_text(raw.get("file_id"), path))
    if kind == "file":
        file = as_mapping(raw.get("file"), path)
        media_type, data, rest = split_data_url(as_text(file.get("file_data"), path))
        common = with_inner_members(locate(origin, path, raw, _MEDIA), ("file", file, _FILE))
        return Media(
            *common,
            kind="file",
            media_type=media_type,
            data=data or rest or None,
            file_id=as_optional_text(file.get("file_id"), path),
            filename=as_optional_text(file.get("filename"), path),
        )
    if kind == "redacted_thinking" or (kind == "thinking" and isinstance(raw.get("thinking"), str)):
        return thinking_block(raw, origin, path, member=None)  # Anthropic's form; Mistral's `thinking` is a list
    if kind == "thinking":
        thought = raw.get("thinking")
        common = locate(origin, path, raw, _THINKING)
        if isinstance(thought, list):
            pieces = [as_mapping(piece, path) for piece in as_list(thought, path)]
            common = with_inner_members(common, *[("thinking", piece, _TEXT) for piece in pieces])
            thought = "".join([as_text(piece.get("text"), path) for piece in pieces])
        return Reasoning(*common, segments=(as_text(thought, path),), kind="thinking")
    return Opaque(*locate(origin, path, raw), kind=str(kind), dialect=DIALECT)
