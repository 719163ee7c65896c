"""Normalize media types, detect them from the data of a file, and extract the text of textual files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.history.model import decoded, members_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from streamweld.history.model import Media

__all__ = [
    "canonical",
    "detail_of",
    "detected",
    "document_type",
    "is_concrete",
    "resolution_of",
    "short_form",
    "standard_base64",
    "takes",
    "text_of",
    "url_ending",
    "written_type",
]

_ALIASES: Final = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_PCM: Final = frozenset({"audio/l16", "audio/pcm"})  # raw audio can be played only with the type's parameters
_STANDARD: Final = str.maketrans("-_", "+/")

_SHORT: Final = {
    "jpg": "jpeg",
    "pjpeg": "jpeg",
    "x-png": "png",
    "mpeg": "mp3",
    "mpeg3": "mp3",
    "x-mpeg": "mp3",
    "x-mp3": "mp3",
    "plain": "txt",
    "markdown": "md",
    "msword": "doc",
    "vnd.ms-excel": "xls",
    "vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "wave": "wav",
    "x-wav": "wav",
    "vnd.wave": "wav",
    "x-pn-wav": "wav",
    "x-flac": "flac",
    "x-m4a": "m4a",
}
# Gemini's levels of detail: https://ai.google.dev/gemini-api/docs/media-resolution. Of OpenAI's levels, `original` has
# the most tokens, and `auto` is the default, for which Gemini has no level.
_RESOLUTIONS: Final = {
    "low": "MEDIA_RESOLUTION_LOW",
    "medium": "MEDIA_RESOLUTION_MEDIUM",
    "high": "MEDIA_RESOLUTION_HIGH",
    "original": "MEDIA_RESOLUTION_ULTRA_HIGH",
}
_DETAILS: Final = {level: detail for detail, level in _RESOLUTIONS.items()}
_DOCUMENTS: Final = {
    "txt": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
    "md": "text/markdown",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_ENDINGS: Final = {
    **_DOCUMENTS,
    **dict.fromkeys(("jpg", "jpeg"), "image/jpeg"),
    **{name: f"image/{name}" for name in ("png", "gif", "webp", "heic", "heif")},
    **{name: f"video/{name}" for name in ("mp4", "webm", "mpeg")},
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "htm": "text/html",
    "json": "application/json",
    "xml": "application/xml",
    "pdf": "application/pdf",
}
_SHORT_VIDEO: Final = {  # `video/mpeg` is not MP3
    "quicktime": "mov",
    "x-matroska": "mkv",
    "x-flv": "flv",
    "x-ms-wmv": "wmv",
    "3gpp": "three_gp",
}
# Maps the first bytes of a file to its media type. WebP and WAV are containers that specify their type at byte 8.
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
)
_CONTAINERS: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_TEXTUAL: Final = frozenset({"json", "xml", "javascript", "x-javascript", "yaml", "x-yaml", "toml", "x-sh", "sql"})
_HEAD: Final = 24  # number of base64 characters that contain the bytes needed for detection


def canonical(media_type: str) -> str:
    """Return a media type in lower case, without parameters, and with the registered name of an image format.

    >>> canonical("image/JPG;charset=utf-8")
    'image/jpeg'
    """
    name = media_type.partition(";")[0].strip().lower()
    return media_type if name in _PCM else _ALIASES.get(name, name)


def document_type(form: str) -> str:
    """Return the media type of a document that is given by its short name, as in Bedrock.

    >>> document_type("csv")
    'text/csv'
    """
    return _DOCUMENTS.get(form, f"application/{form}")


def detail_of(resolution: str) -> str | None:
    """Return the level of detail for a level of Gemini's `mediaResolution`, or None for another text.

    >>> detail_of("MEDIA_RESOLUTION_ULTRA_HIGH")
    'original'
    """
    return _DETAILS.get(resolution)


def resolution_of(detail: str) -> str | None:
    """Return the level of Gemini's `mediaResolution` for a level of detail, or None if it is the default or unknown."""
    return _RESOLUTIONS.get(detail)


def standard_base64(data: str) -> str:
    """Return base64 data in the standard alphabet. Pydantic, and therefore google-genai, uses the URL-safe alphabet."""
    return data.translate(_STANDARD) if "-" in data or "_" in data else data


def short_form(media_type: str, kind: str) -> str:
    """Return the part of a media type after the slash, with the same spelling for all aliases of a format.

    >>> short_form("audio/X-WAV; rate=8000", "audio")
    'wav'
    """
    name = media_type.partition(";")[0].rpartition("/")[2].strip().lower()
    return (_SHORT_VIDEO if kind == "video" else _SHORT).get(name, name)


def is_concrete(media_type: str | None) -> bool:
    """Return whether a media type names a specific format, unlike `image` (AI SDK) or `image/*`."""
    return media_type is not None and not media_type.endswith("/*") and "/" in media_type


def url_ending(url: str) -> str:
    """Return the ending of the file name in a URL, in lower case and without the dot; empty if there is none.

    >>> url_ending("https://example.com/a/notes.TXT?v=1#top")
    'txt'
    """
    name = url.partition("#")[0].partition("?")[0].rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


def written_type(part: Media, default: str) -> str:
    """Return the media type of a part, otherwise the type that the ending of its URL names, otherwise the default."""
    if part.media_type or not part.url:
        return part.media_type or default
    found = _ENDINGS.get(url_ending(part.url))
    return found if found and (part.kind == "file" or found.startswith(part.kind)) else default


def detected(data: str) -> str | None:
    """Return the media type of base64 data, detected from its first bytes, or None if it is unknown."""
    head = decoded(data[:_HEAD]) or b""
    if head[:4] == b"RIFF":
        return _CONTAINERS.get(head[8:12])
    return next((media_type for beginning, media_type in _BEGINNINGS if head.startswith(beginning)), None)


def takes(accepted: Collection[str], part: Media, *, written: bool) -> bool:
    """Return whether a target that accepts these formats (`text` for any text) accepts the data of a part.

    `written`: whether the writer creates a new block for the part, so that it can choose the form of a text.
    """
    if part.data is None or part.media_type is None or short_form(part.media_type, part.kind) in accepted:
        return True
    return "text" in accepted and text_of(part) is not None and (written or _is_text_source(part))


def _is_text_source(part: Media) -> bool:
    return members_of(members_of(part.raw).get("source")).get("type") == "text"


def text_of(part: Media) -> str | None:
    """Return the text of a textual file, or None for other files."""
    if part.kind != "file" or part.data is None or part.media_type is None:
        return None
    head, _, name = part.media_type.partition(";")[0].strip().lower().partition("/")
    if head != "text" and name not in _TEXTUAL and not name.endswith(("+json", "+xml")):
        return None
    data = decoded(part.data)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None
