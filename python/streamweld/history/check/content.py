"""Check the content of messages.

This module checks the constraints `items`, `content`, `assistant_content`, `text_types`, `file_types`, `strip_fields`,
`required_members`, `not_null`, `members`, `annotations`, `citation_proofs`, `media_types`, `detected_types`,
`plain_media`,
`rejected_blocks`, `file_ids`, `image_details`, `free_form_tools`, `arguments`, `result_value`, `content_or_calls`,
`url_schemes`, `url_endings`, `file_names`, and those on empty text, messages, results and documents.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from streamweld._json import JsonFault, loads_arguments
from streamweld.history.check.ids import conforms
from streamweld.history.check.view import as_json, is_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streamweld.history.check.report import Path, Report
    from streamweld.history.check.view import Block, Json, Kind, Message, View

__all__ = ["check_content"]

# The first bytes of images, by format.
_STARTS: Final = {
    "png": re.compile(rb"\x89PNG\r\n"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8"),
    "webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
# Kinds of blocks that the content rules skip, because other rules or no rules apply to them.
_NO_CONTENT: Final[tuple[Kind, ...]] = ("reasoning", "call", "result", "reference", "other")
_MEDIA: Final[tuple[Kind, ...]] = ("image", "audio", "video", "file")
_CONTENT: Final[frozenset[Kind]] = frozenset({"text", *_MEDIA})
_REASONING: Final = ("reasoning_content", "reasoning")  # members with their own rules
_STRIPPED: Final[Mapping[Kind, str]] = {"text": "text", "call": "function_call", "reasoning": "reasoning"}
_URLS: Final = ("source", "image_url", "video_url", "audio_url", "document_url", "file_url")
_ENDING: Final = re.compile(r"^[^?#]*/[^/?#]*\.([A-Za-z0-9]+)(?:[?#]|$)")
_LONE: Final = re.compile("[\ud800-\udfff]")
_ROLES: Final[Mapping[str, str]] = {"developer": "system"}


def check_content(view: View, report: Report) -> None:
    """Apply all rules about content."""
    checks = [one for one, constraints in _MESSAGE_CHECKS if not constraints or any(map(report.fact, constraints))]
    arguments = report.fact("arguments") == "object" or report.fact("free_form_tools") is False
    alone = report.fact("content_or_calls")
    results = report.fact("result_value") == "object" or report.fact("result_empty")
    for message in view.messages:
        for one in checks:
            one(message, report)
        for block in message.blocks:
            if block.kind == "call" and arguments:
                _arguments(block, report)
            elif block.kind == "result" and results:
                _result(block, report)
        if alone and message.of("call") and not _silent(message):
            report.add("content_and_calls", message.path, "", "content_or_calls")
    _trailing(view, report)


def _silent(message: Message) -> bool:
    return not any(block.kind not in ("call", "reasoning") and block.text for block in message.blocks)


def _kinds(message: Message, report: Report) -> None:
    role = _ROLES.get(message.role, message.role)
    own = role == "assistant" and message.item == "message" and not message.plain
    if own and report.fact("assistant_content") == "string":
        report.add("assistant_not_string", (*message.path, "content"), "", "assistant_content")
    allowed = report.facts("content").get(role)
    for block in message.blocks:
        _kind(block, role, allowed, report)
        if block.kind == "result" and block.inner:
            in_result = report.facts("content").get("tool")
            for inner in block.inner:
                _kind(inner, "tool", in_result, report)


def _kind(block: Block, role: str, allowed: Sequence[str] | None, report: Report) -> None:
    """Check whether the target accepts a block of this kind in a message with this role."""
    kind = block.kind
    if (
        kind == "unknown"
        or (allowed is not None and kind not in _NO_CONTENT and kind not in allowed)
        or (kind == "file" and block.type not in (report.fact("file_types") or (block.type,)))
    ):
        report.add("content_kind", block.path, f"{block.type or kind} in a message with role {role}", "content")
    elif kind == "text":
        types = report.facts("text_types") if block.type else None
        wanted = types.get("user" if role == "tool" else role) if types else None
        if (
            wanted is not None
            and block.type != wanted
            and block.type not in report.facts("text_types_also").get(role, ())
        ):
            report.add("text_type", block.path, block.type, "text_types")
    elif kind in _MEDIA:
        _medium(block, report)
    elif kind == "other" and block.type in (report.fact("rejected_blocks") or ()):
        report.add("content_kind", block.path, block.type, "rejected_blocks")


def _medium(block: Block, report: Report) -> None:
    """Check the format of a media block, how its data is specified, and the level of detail of an image."""
    raw = block.json
    accepted = report.facts("media_types").get(block.kind)
    form = _format(raw)
    if accepted is not None and form is not None and form not in accepted:
        report.add("content_kind", block.path, f"{block.kind} of format {form}", "media_types")
    elif form is not None and block.kind in (report.fact("detected_types") or ()):
        actual = _detected(raw)
        if actual is not None and actual != form:
            report.add("media_type", block.path, f"{form}, but the data is of type {actual}", "detected_types")
    if report.fact("plain_media") is False and any(isinstance(raw.get(n), str) for n in ("image_url", "input_audio")):
        report.add("content_kind", block.path, f"{block.type} as a string", "plain_media")
    if report.fact("file_ids") is False and raw.get("file_id") is not None:
        report.add("content_kind", block.path, "a file id", "file_ids")
    schemes, url = report.fact("url_schemes"), _url(raw)
    if schemes is not None and url is not None and url.partition(":")[0].lower() not in schemes:
        report.add("content_kind", block.path, "a URL with this scheme", "url_schemes")
    endings = report.facts("url_endings").get(block.kind)
    found = _ENDING.search(url or "") if endings is not None else None
    if endings is not None and found is not None and found[1].lower() in endings:
        report.add("content_kind", block.path, f"a URL of a file of type {found[1]}", "url_endings")
    file = as_json(raw.get("file")) or raw
    nameless = block.kind == "file" and file.get("file_data") and not file.get("filename")
    if nameless and report.fact("file_names") == "required":
        report.add("document_name", block.path, "", "file_names")
    details, level = report.fact("image_details"), _detail(raw)
    if details is not None and level is not None and level not in details:
        report.add("content_kind", block.path, f"the level of detail {level}", "image_details")


def _detail(raw: Json) -> Any:
    """Return the level of detail: a member of the block or of its `image_url`, or an option of the AI SDK."""
    for holder in (raw, as_json(raw.get("image_url")) or {}):
        if holder.get("detail") is not None:
            return holder["detail"]
    options = as_json(raw.get("providerOptions")) or as_json(raw.get("providerMetadata")) or {}
    return (as_json(options.get("openai")) or {}).get("imageDetail")


def _url(raw: Json) -> str | None:
    """Return the URL in a media block, which is the value of a member or, within it, of the member `url`."""
    value = next((raw[name] for name in _URLS if raw.get(name) is not None), None)
    url = value if isinstance(value, str) else (as_json(value) or {}).get("url")
    return url if isinstance(url, str) else None


def _format(raw: Json) -> str | None:
    """Return the format in a media block, as spelled in `media_types`, or None if the block does not specify one."""
    source = as_json(raw.get("source")) or {}
    if isinstance(source.get("media_type"), str) and source.get("type") == "base64":
        return str(source["media_type"]).rpartition("/")[2]
    for name in ("input_audio", "image", "document", "video"):
        form = (as_json(raw.get(name)) or {}).get("format")
        if isinstance(form, str):
            return form
    return None


def _detected(raw: Json) -> str | None:
    """Return the format of an image's data, spelled as in `media_types`, or None if it is unknown."""
    source: Any = as_json((as_json(raw.get("image")) or raw).get("source")) or {}
    data = source.get("data") or source.get("bytes")
    if isinstance(data, str):
        try:
            data = b64decode(data[:24], altchars=b"-_" if "-" in data[:24] or "_" in data[:24] else None)
        except ValueError:
            return None
    head = bytes(data[:16]) if isinstance(data, bytes | bytearray) else b""
    return next((form for form, start in _STARTS.items() if start.match(head) is not None), None)


def _members(message: Message, report: Report) -> None:
    """Report members of model output that strict servers reject in a request."""
    strip = report.facts("strip_fields")
    for name in strip.get(message.item, ()):
        if message.raw.get(name) is not None:
            report.add("replayed_member", (*message.path, name), name, "strip_fields")
    for name in report.facts("not_null").get(message.item, ()):
        if message.raw.get(name, "") is None:
            report.add("member_null", (*message.path, name), name, "not_null")
    known = report.facts("members")
    if message.wire != "function":  # a function message must have a name
        _beyond(message.raw, message.path, known.get(message.role), report)
    kinds, file_types, proofs = report.fact("annotations"), report.fact("file_types"), report.facts("citation_proofs")
    for block in message.blocks:
        if block.raw.__class__ is str and not block.inner:
            continue  # content that is a string has no members
        if block.kind == "call" and block.type != "custom":
            raw = block.json
            _beyond(raw, block.path, known.get("call"), report)
            _beyond(as_json(raw.get("function")) or {}, (*block.path, "function"), known.get("function"), report)
        for inner in (block, *block.inner):
            if inner.kind not in _CONTENT or inner.kind not in known:
                continue
            if inner.kind != "file" or inner.type in (file_types or (inner.type,)):
                _beyond(inner.json, inner.path, known.get(inner.kind), report)
        for name in strip.get(_STRIPPED.get(block.kind, ""), ()) if message.item == "message" else ():
            if block.json.get(name) is not None:
                report.add("replayed_member", (*block.path, name), name, "strip_fields")
        if block.kind != "text":
            continue
        annotations: Any = block.json.get("annotations")
        if kinds is not None and is_list(annotations):
            for n, one in enumerate(annotations):
                kind = (as_json(one) or {}).get("type")
                if kind not in kinds:
                    report.add("replayed_member", (*block.path, "annotations", n), str(kind), "annotations")
        citations: Any = block.json.get("citations")
        if proofs and is_list(citations):
            for n, one in enumerate(citations):
                citation = as_json(one) or {}
                proof = proofs.get(str(citation.get("type")))
                if proof is not None and not citation.get(proof):
                    report.add("replayed_member", (*block.path, "citations", n), proof, "citation_proofs")


def _encoding(message: Message, report: Report) -> None:
    for block in message.blocks:
        for text in (block, *block.inner):
            if text.kind in ("text", "refusal") and not text.text.isascii() and _LONE.search(text.text):
                report.add("text_broken", text.path)


def _item_kind(message: Message, report: Report) -> None:
    accepted = report.fact("items")
    if accepted is None or "*" in accepted or ":" in message.item or message.item in accepted:
        return
    # Reasoning and free-form calls have their own rules.
    if message.item != "reasoning" and not any(block.kind in ("call", "result") for block in message.blocks):
        report.add("item_kind", message.path, message.item, "items")


def _missing(message: Message, report: Report) -> None:
    """Report missing members that servers require on calls, on results, on images, and on replayed items."""
    required = report.facts("required_members")
    of_calls, of_results, of_images = required.get("call"), required.get("tool"), required.get("image")
    if of_calls is not None or of_results is not None:
        for block in message.blocks:
            names = of_calls if block.kind == "call" else of_results if block.kind == "result" else None
            for name in names or ():
                if block.json.get(name) is None:
                    report.add("member_missing", block.path, name, "required_members")
    if of_images is not None:
        for block in message.blocks:
            for image in (block, *block.inner):
                for name in of_images if image.kind == "image" else ():
                    if image.json.get(name) is None:
                        report.add("member_missing", image.path, name, "required_members")
    replayed = message.item == "reasoning" or (message.item == "message" and message.role == "assistant")
    if not replayed or message.plain:
        return
    for name in required.get(message.item, ()):
        if message.raw.get(name) is None:
            report.add("member_missing", message.path, name, "required_members")
    for block in message.of("text"):
        for name in required.get("text", ()):
            if block.json.get(name) is None:
                report.add("member_missing", block.path, name, "required_members")


def _beyond(raw: Json, path: Path, known: Sequence[str] | None, report: Report) -> None:
    if known is None:
        return
    for name in raw:
        if name not in known and name not in _REASONING:
            report.add("member_unknown", (*path, name), "", "members")


def _emptiness(message: Message, report: Report) -> None:
    if message.role in ("tool", "other"):
        return
    spared = report.fact("empty_message") == "drop_unless_assistant" and message.role == "assistant"
    # A system message among the messages may only set options.
    spared = spared or (message.role == "system" and not message.raw.keys() <= {"role", "content"})
    if report.fact("empty_message") and not spared and _check_empty_text(message, report):
        report.add("message_empty", message.path, message.wire, "empty_message")
        return
    beside = report.fact("blank_beside_reasoning") and message.of("reasoning")
    for block in message.of("text"):
        if block.text == "" and report.fact("empty_text"):
            report.add("text_empty", block.path, "", "empty_text")
        elif block.text and not block.text.strip() and report.fact("blank_text") and not beside:
            report.add("text_blank", block.path, "", "blank_text")


def _check_empty_text(message: Message, report: Report) -> bool:
    # If the target rejects empty text blocks, a message whose only content is empty text also counts as empty.
    silent = report.fact("empty_message") == "drop_silent" and message.role == "assistant"
    empty = message.plain and message.bare and (silent or report.fact("empty_text") is not None)
    return not message.blocks or empty


def _trailing(view: View, report: Report) -> None:
    if report.fact("trailing_space") and view.messages and view.messages[-1].role == "assistant":
        blocks = view.messages[-1].blocks
        if blocks and blocks[-1].kind == "text" and blocks[-1].text.strip() and blocks[-1].text[-1].isspace():
            report.add("trailing_space", blocks[-1].path, "", "trailing_space")


def _documents(message: Message, report: Report) -> None:
    documents = message.of("file")
    if documents and report.fact("document_needs_text") and not message.of("text"):
        report.add("document_alone", documents[0].path, "", "document_needs_text")
    facts = report.facts("document_name")
    if facts:
        inner = [block for result in message.of("result") for block in result.inner if block.kind == "file"]
        for block in [*documents, *inner]:
            if not conforms(block.name or "", {**facts, "min": 1}):
                report.add("document_name", block.path, block.name or "", "document_name")


def _arguments(block: Block, report: Report) -> None:
    """If the target requires the arguments to be an object, check that they are one, or text that parses as one."""
    if report.fact("free_form_tools") is False and block.type in ("custom", "custom_tool_call"):
        report.add("call_free_form", block.path, block.name or "", "free_form_tools")
    if report.fact("arguments") != "object" or block.type in ("custom", "custom_tool_call"):
        return
    value: Any = block.arguments
    if isinstance(value, str) and block.type in ("function", "function_call"):
        try:
            value = loads_arguments(value)
        except JsonFault:
            value = None
    if as_json(value) is None:
        report.add("arguments_not_object", block.path, block.id or block.name or "", "arguments")


def _result(block: Block, report: Report) -> None:
    if report.fact("result_value") == "object" and as_json(block.arguments) is None:
        report.add("result_not_object", block.path, block.name or "", "result_value")
    facts = report.facts("result_empty")
    if facts:
        content: Any = block.json.get("content")
        if not content and (is_list(content) or facts.get("only") != "list"):
            report.add("result_empty", block.path, block.id or "", "result_empty")


# The checks that run on each message, with their constraints. A check with constraints runs only if the target has at
# least one of them.
_MESSAGE_CHECKS: Final[Sequence[tuple[Callable[[Message, Report], None], Sequence[str]]]] = (
    (_kinds, ()),
    (_members, ("strip_fields", "not_null", "members", "annotations")),
    (_encoding, ()),
    (_item_kind, ("items",)),
    (_missing, ("required_members",)),
    (_emptiness, ("empty_message", "empty_text", "blank_text")),
    (_documents, ("document_needs_text", "document_name")),
)
