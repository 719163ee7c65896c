"""Fix content that the target rejects, such as empty text, documents without text, or content that is not allowed for
a role.

Constraints: `content`, `inline`, `file_types`, `empty_text`, `blank_text`, `empty_message`, `trailing_space`,
`result_empty`, `document_needs_text`, `document_name`, `media_types`, `detected_types`, `text_files`, `file_ids`,
`image_details`,
`plain_media`, `rejected_blocks`, `url_schemes`, `url_types`,
`url_endings`, `file_names`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.citations import search_result
from streamweld.history.ids import form_of
from streamweld.history.media_types import (
    canonical,
    detected,
    is_concrete,
    short_form,
    standard_base64,
    takes,
    text_of,
    url_ending,
)
from streamweld.history.model import (
    CONTENT_PARTS,
    MISSING,
    Call,
    Media,
    Opaque,
    Reasoning,
    Result,
    Text,
    Turn,
    changed,
    copied,
    decoded,
    members_of,
    removed_value,
    with_parts,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from streamweld.history.context import Context
    from streamweld.history.model import Part

__all__ = ["run"]

_DOCUMENT: Final = "See the attached document."
_UNKNOWN: Final = "application/octet-stream"


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with content that the target accepts."""
    if not context.survey(turns).plain:
        turns = [
            members_sent
            for turn in turns
            if (members_sent := turn if _is_usual(turn) else _of_turn(turn, context)) is not None
        ]
    return _without_last_space(turns, context) if context.fact("trailing_space") == "strip" else turns


def _is_usual(turn: Turn) -> bool:
    """Return whether the turn has only text, calls, reasoning, and results that are text, and no part is empty.

    Every target accepts such content. This quick test accepts most turns.
    """
    only_reasoning = True
    for part in turn.parts:
        kind = type(part)
        if kind is not Reasoning:
            only_reasoning = False
        if isinstance(part, Text):
            if part.refusal or not part.text or part.text.isspace():
                return False
        elif isinstance(part, Result):
            if part.value is not MISSING or not part.parts:
                return False
            for inner in part.parts:
                if not isinstance(inner, Text) or inner.refusal or not inner.text or inner.text.isspace():
                    return False
        elif kind is not Call and kind is not Reasoning:
            return False
    return not only_reasoning


def _of_turn(turn: Turn, context: Context) -> Turn | None:
    kinds = context.facts("content").get("system" if turn.role == "developer" else turn.role)
    drop_empty, drop_blank = context.fact("empty_text") == "drop", context.fact("blank_text") == "drop"
    parts: list[Part] = []
    altered = False
    for part in turn.parts:
        members_sent: Part | None = part
        if isinstance(part, Result):
            members_sent = _of_result(part, context)
        elif isinstance(part, CONTENT_PARTS):
            members_sent = _content(part, kinds, drop_empty, drop_blank, context)
        altered = altered or members_sent is not part
        if members_sent is not None:
            parts.append(members_sent)
    if context.fact("document_needs_text") and turn.role == "user" and _is_bare_document(parts):
        context.edit("document_text", turn.path, "added a text part, because the target rejects a document without one")
        parts.append(Text(text=_DOCUMENT, path=turn.path))
        altered = True
    silent = context.fact("empty_message") == "drop_silent" and turn.role == "assistant" and _is_silent(parts, context)
    if silent or (not parts and (turn.parts or _needs_content(turn, context))):
        if silent or not turn.parts:
            context.edit(
                "message_empty", turn.path, "dropped a message because it has no content", _removed(turn, parts)
            )
        return None
    return with_parts(turn, parts) if altered else turn


def _needs_content(turn: Turn, context: Context) -> bool:
    """Return whether the target rejects a message without content.

    The AI SDK's UI accepts empty assistant messages. A system message among others may only set options.
    """
    if turn.role == "system" and turn.origin is not None and turn.origin.extra and not turn.top:
        return False
    fact = context.fact("empty_message")
    return fact is not None and not (fact == "drop_unless_assistant" and turn.role == "assistant")


def _is_silent(parts: list[Part], context: Context) -> bool:
    """Return whether a message has neither text nor calls.

    Reasoning does not count if it is in a member outside the content.
    """
    beside = context.facts("reasoning").get("accept") == "field"
    return bool(parts) and all(
        not part.text if isinstance(part, Text) else beside and isinstance(part, Reasoning) for part in parts
    )


def _removed(turn: Turn, parts: list[Part]) -> Any:
    if turn.origin is not None and turn.origin.raw is not None:
        return turn.origin.raw
    return [removed_value(part) for part in parts if not isinstance(part, Text)] or None


def _is_bare_document(parts: list[Part]) -> bool:
    files = any(isinstance(part, Media) and part.kind == "file" for part in parts)
    return files and not any(isinstance(part, Text) for part in parts)


def _content(
    part: Text | Media | Opaque, kinds: Collection[str] | None, drop_empty: bool, drop_blank: bool, context: Context
) -> Part | None:
    if isinstance(part, Opaque):
        if part.dialect == context.family and part.kind not in (context.fact("rejected_blocks") or ()):
            return part
        found = search_result(part, context.family)
        if found is not None:
            context.lose_members(found[1], part.path, "the target does not have this member")
            return found[0]
        within = _text_within(part)
        why = "the target can represent only the text of this part"
        if not within:
            why = "only the source's own format can represent this part"
        context.lose(part.kind, part.path, why, part.raw)
        return Text(text=within, path=part.path) if within else None
    if isinstance(part, Text):
        if part.signature:  # an empty text with a signature is sent because of the signature
            return part
        if drop_empty and not part.text:
            context.edit("text_empty", part.path, "dropped an empty text part", part.text)
            return None
        if drop_blank and not part.text.strip():
            context.edit("text_blank", part.path, "dropped a text part that is only white space", part.text)
            return None
        if part.refusal and kinds is not None and "refusal" not in kinds:
            if part.origin is not None and part.origin.dialect == context.family:
                context.edit("content_kind", part.path, "changed a refusal to text")
            else:
                context.lose("refusal", part.path, "the target has no refusals; the refusal is written as text", True)
            return changed(part, refusal=False)
        return part
    foreign = part.origin is None or part.origin.dialect != context.family
    part = _canonical(_with_one_source(part, context) if foreign else part, context, foreign=foreign)
    part = _with_detected_type(part, context)
    can_be_text = part.data is not None if part.kind in (context.fact("inline") or ()) else bool(part.data or part.url)
    if can_be_text and foreign and context.fact("bytes"):
        can_be_text = decoded(part.data or "") is not None
    types = context.fact("file_types") if part.kind == "file" and not foreign else None
    other = types is not None and _type(part) not in types
    other = other or (not foreign and context.fact("plain_media") is False and _is_plain(part))
    formats: Collection[str] | None = context.facts("media_types").get(part.kind)
    known = formats is None or takes(formats, part, written=foreign)
    if foreign and not context.fact("text_files") and (text := text_of(part)) is not None:
        gone = part.raw if part.raw is not None else part.data
        context.edit("content_kind", part.path, "wrote the text of a file as text", gone)
        return Text(text=text, path=part.path)
    stored = part.file_id is not None and context.fact("file_ids") is False
    known = known and not stored and _is_reachable(part, context)
    if (kinds is None or part.kind in kinds) and known and (can_be_text or not (foreign or other)):
        if foreign:
            _lose_names(part, context)
        part = _with_file_name(_with_known_detail(part, context), context, foreign=foreign)
        if not other:  # the writer generates a valid name for a part that was changed
            return part if foreign or _is_named(part, context) else changed(part)
        context.edit("file_type", part.path, "moved the media to a block form that the target accepts")
        return changed(part)
    gone = part.raw if part.raw is not None else part.data or part.url or part.file_id
    if (text := text_of(part)) is not None:
        context.edit("content_kind", part.path, "wrote the text of a file as text", gone)
        return Text(text=text, path=part.path, origin=part.origin, at=part.at, touched=True)
    context.edit("content_kind", part.path, f"replaced a part of kind {part.kind} with a note", gone)
    note = f"[{part.kind} omitted{': ' + part.filename if part.filename else ''}]"
    return Text(text=note, path=part.path, origin=part.origin, at=part.at, touched=True)


def _text_within(part: Opaque) -> str:
    """Return the text of a search result, of a document that consists of blocks, or of Bedrock's guarded content."""
    raw = members_of(part.raw)
    if part.dialect == "bedrock-converse":
        raw = members_of(raw.get(part.kind))
    elif part.dialect != "anthropic":
        return ""
    content: Any = None
    if part.kind == "guardContent":
        content = members_of(raw.get("text")).get("text")
    elif part.kind == "document":
        content = members_of(raw.get("source")).get("content")
    elif part.kind in ("search_result", "searchResult"):
        content = raw.get("content")
    if isinstance(content, str):
        return content
    blocks: list[Any] = content if content.__class__ is list else []
    texts = [members_of(block).get("text") for block in blocks]
    return "\n\n".join([text for text in texts if isinstance(text, str) and text.strip()])


def _with_one_source(part: Media, context: Context) -> Media:
    """Return the part with its data, otherwise its URL, otherwise its file id. A block has one source in every API.

    Data can be sent to every server; a file id is valid only for the server that issued it.
    """
    given = [name for name in ("data", "url", "file_id") if getattr(part, name)]
    if len(given) < 2:
        return part
    for name in given[1:]:
        why = f"the part has {given[0].replace('_', ' ')}, and the target has one source per part"
        context.lose(name, part.path, why, getattr(part, name))
    return copied(part, **dict.fromkeys(given[1:]))


def _canonical(part: Media, context: Context, *, foreign: bool) -> Media:
    """Return the part with the registered name of its media type, and with its data in standard base64.

    A part of the target's own dialect is changed only if the target lists the formats that it accepts.
    """
    media_type = None if part.media_type is None else canonical(part.media_type)
    if foreign:
        data = None if part.data is None else standard_base64(part.data)
        same = media_type == part.media_type and data == part.data
        return part if same else copied(part, media_type=media_type, data=data)
    if media_type == part.media_type or part.data is None or context.facts("media_types").get(part.kind) is None:
        return part
    context.edit("file_type", part.path, f"changed the media type {part.media_type!r} to {media_type!r}")
    return changed(part, media_type=media_type)


def _with_detected_type(part: Media, context: Context) -> Media:
    """Return the part with the media type of its data, if the target compares both."""
    if part.data is None or part.media_type is None or part.kind not in (context.fact("detected_types") or ()):
        return part
    found = detected(part.data)
    if found is None or found == canonical(part.media_type) or not found.startswith(f"{part.kind}/"):
        return part
    context.edit("media_type", part.path, f"changed the media type {part.media_type!r} to {found!r}")
    return changed(part, media_type=found)


def _is_reachable(part: Media, context: Context) -> bool:
    """Return whether the target can fetch the URL of a part, and accepts the media type of the file at that URL.

    Only some targets can fetch `gs://` and `file://` URLs. The ending of the URL is checked as well, because a request
    in the target's format may not contain the media type.
    """
    schemes: Collection[str] | None = context.fact("url_schemes")
    if part.url is None:
        return True
    if schemes is not None and part.url.partition(":")[0].lower() not in schemes:
        return False
    types: Collection[str] | None = context.facts("url_types").get(part.kind)
    known = part.media_type is not None and is_concrete(part.media_type) and canonical(part.media_type) != _UNKNOWN
    if types is not None and known and short_form(part.media_type or "", part.kind) not in types:
        return False
    return url_ending(part.url) not in context.facts("url_endings").get(part.kind, ())


def _with_file_name(part: Media, context: Context, *, foreign: bool) -> Media:
    """Return the part with a name if the target requires one for the data of a file."""
    named = part.filename or part.data is None or part.kind != "file"
    if named or context.fact("file_names") != "required":
        return part
    form = re.sub(r"[^a-z0-9]", "", short_form(part.media_type or "", "file"))
    name = f"document.{'bin' if form in ('', 'octetstream') else form}"
    if foreign:
        return copied(part, filename=name)
    context.edit("document_name", part.path, f"added the file name {name!r}")
    return changed(part, filename=name)


def _lose_names(part: Media, context: Context) -> None:
    """Record the loss of a file name or an image's level of detail that the target cannot represent."""
    if part.filename and part.kind not in (context.fact("named") or ()):
        context.lose(
            "filename", part.path, f"the target has no file names for parts of kind {part.kind}", part.filename
        )
    if part.detail not in (None, "auto") and part.kind not in (context.fact("detailed") or ()):
        context.lose("detail", part.path, "the target has no detail level for images", part.detail)


def _with_known_detail(part: Media, context: Context) -> Media:
    """Return the part, without its level of detail if the target does not support that level."""
    known: Collection[str] | None = context.fact("image_details")
    if known is None or part.detail is None or part.detail in known:
        return part
    context.lose("detail", part.path, "the target does not have this level of detail", part.detail)
    return changed(part, detail=None)


def _is_named(part: Media, context: Context) -> bool:
    """Return whether the target accepts the document's name."""
    fact = context.fact("document_name")
    return fact is None or part.kind != "file" or form_of(fact).fits(part.filename or "")


def _is_plain(part: Media) -> bool:
    """Return whether the media value in the block is a string instead of an object, as Mistral allows."""
    raw = members_of(part.raw)
    return any(isinstance(raw.get(name), str) for name in ("image_url", "input_audio"))


def _type(part: Media) -> str:
    """Return the block type of a file; `file_id` for Mistral's `file`, which differs from OpenAI's."""
    raw = members_of(part.raw)
    return "file_id" if raw.get("type") == "file" and "file" not in raw else str(raw.get("type"))


def _of_result(result: Result, context: Context) -> Result:
    kinds = context.facts("content").get("tool")
    drop_empty, drop_blank = context.fact("empty_text") == "drop", context.fact("blank_text") == "drop"
    inner: list[Text | Media | Opaque] = []
    altered = False
    for part in result.parts:
        if isinstance(part, Text) and not part.text and drop_empty:
            if part.raw is not None:
                context.edit("text_empty", part.path or result.path, "dropped an empty text part", part.text)
                altered = True
            continue  # a result without content has the same meaning
        members_sent = _content(part, kinds, drop_empty, drop_blank, context)
        altered = altered or members_sent is not part
        if isinstance(members_sent, CONTENT_PARTS):
            inner.append(members_sent)
    empty = context.facts("result_empty")
    fill = empty.get("text")
    if empty.get("only") == "list" and members_of(result.raw).get("content") != []:
        fill = None
    if fill and not inner and (result.value is MISSING or result.value == ""):
        context.edit("result_empty", result.path, "added a text part to an empty result")
        return changed(result, parts=(Text(text=fill),), value=MISSING)
    return changed(result, parts=tuple(inner)) if altered else result


def _without_last_space(turns: list[Turn], context: Context) -> list[Turn]:
    """Remove trailing white space from the last text of a final assistant message."""
    last = turns[-1] if turns else None
    if last is None or last.role != "assistant" or not last.parts:
        return turns
    part = last.parts[-1]
    if not isinstance(part, Text) or part.text == part.text.rstrip():
        return turns
    text = part.text.rstrip()
    context.edit("trailing_space", part.path, "removed the white space at the end", part.text[len(text) :])
    if not text:
        return [*turns[:-1], with_parts(last, last.parts[:-1])] if len(last.parts) > 1 else turns[:-1]
    found, made = context.survey(turns), [*turns[:-1], with_parts(last, (*last.parts[:-1], changed(part, text=text)))]
    found.adopt(made)
    return made
