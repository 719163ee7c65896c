"""Human-readable messages: the meaning of a code, where it is documented, and what to do about unusable input."""

from __future__ import annotations

import difflib
import re
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar, cast

from streamweld._spec import CODES, LIMITS, load_conversions, load_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from streamweld import Diagnostic

__all__ = [
    "HEAD_BYTES",
    "RECORDING_MARK",
    "RULES_PAGE",
    "choice_message",
    "code_label",
    "code_sentence",
    "code_text",
    "diagnostic_help_url",
    "diagnostic_message",
    "docs_url",
    "error_help_url",
    "help_url",
    "hinted",
    "input_hint",
    "is_markup",
    "is_readable",
    "is_scan_result",
    "label_text",
    "reject_keywords",
    "reject_text",
    "rows_hint",
]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_DOCS: Final = "https://github.com/streamweld/streamweld/blob/main/docs"
RULES_PAGE: Final = f"{_DOCS}/rules.md"


def code_text(code: str) -> str:
    """Return the message of a diagnostic code or of an error's rule, without a full stop.

    The message of an unknown code is the code itself.
    """
    if code in CODES:
        return CODES[code].text.rstrip(".")
    rule = load_errors()["rules"].get(code)
    if rule is not None:
        return cast("str", rule["text"])
    limit = code.removeprefix("limit_")
    return f"the stream exceeds {limit}" if limit != code and limit in LIMITS else code


def code_label(code: str, detail: str) -> str:
    """Return the code, with the detail in parentheses if the code has a fixed set of details."""
    return f"{code}({detail})" if code in CODES and detail in CODES[code].details else code


def label_text(label: str) -> str:
    """Return the meaning of a label's detail if the label has one, otherwise the meaning of its code."""
    code, _, detail = label.removesuffix(")").partition("(")
    return CODES[code].details[detail] if detail else f"{code_text(code)}."


def code_sentence(code: str, detail: str) -> str:
    """Return the message of a diagnostic code, followed by a colon and the detail.

    Args:
        code: a diagnostic code or an error's rule; the message of an unknown code is the code itself.
        detail: the part that depends on the stream; may be empty.
    """
    if not detail:
        return CODES[code].text if code in CODES else code_text(code)
    return f"{code_text(code)}: {detail}{_meaning(code, detail)}"


def _meaning(code: str, detail: str) -> str:
    """Return the meaning of a detail in parentheses, or an empty string if the code does not define the meaning of this
    detail.
    """
    if code == "not_carried":
        found = [loss for loss in load_conversions()["losses"] if loss["id"] == detail]
        return f" ({found[0]['feature']}; {found[0]['reason']})" if found else ""
    meaning = CODES[code].details.get(detail) if code in CODES else None
    return f" ({meaning.rstrip('.')})" if meaning else ""


def docs_url(page: str) -> str:
    """Return the URL of a page of the documentation, such as `reference/losses.md`."""
    return f"{_DOCS}/{page}"


def help_url(code: str) -> str:
    """Return the URL of the section that explains a diagnostic code or a rule of the checker."""
    return f"{RULES_PAGE}#{code}"


def error_help_url(rule: str) -> str:
    """Return the URL of the section that explains the `rule` of a `StreamError`."""
    return docs_url("concepts/limits.md") if rule.startswith("limit_") else help_url(rule)


def diagnostic_message(diagnostic: Diagnostic) -> str:
    return code_sentence(diagnostic.code, diagnostic.detail)


def diagnostic_help_url(diagnostic: Diagnostic) -> str:
    return error_help_url(diagnostic.code)


# Patterns that recognize a body that is not a stream by its first bytes.

HEAD_BYTES: Final = 512
"""Number of body bytes that `input_hint` needs."""

_DECOMPRESS: Final = "decompress it first, or read it with the client's decoding method: iter_bytes(), not iter_raw()"
_PACKED: Final = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x78\x01", "deflate"),
    (b"\x78\x5e", "deflate"),
    (b"\x78\x9c", "deflate"),
    (b"\x78\xda", "deflate"),
)
_FILES: Final = (
    (b"\x7fELF", "an executable program (ELF)"),
    (b"MZ", "an executable program (Windows)"),
    (b"\xcf\xfa\xed\xfe", "an executable program (Mach-O)"),
    (b"\xca\xfe\xba\xbe", "an executable program (Mach-O or Java)"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PAR1", "a Parquet file (`streamweld scan` reads it)"),
    (b"ARROW1", "an Arrow file (`streamweld scan` reads it)"),
    (b"SQLite format 3\x00", "an SQLite database"),
)
RECORDING_MARK: Final = b'{"streamweld_recording"'
"""The first bytes of a recording's file."""

# Patterns for the first line of two kinds of JSON Lines files: those that `streamweld scan` wrote, and those with a
# `body` member after members with simple values. All quantifiers are possessive, so matching takes linear time.
_STRING: Final = rb'"(?:[^"\\]|\\.)*+"'
_SCANNED: Final = re.compile(
    rb'\s*+\{\s*+"path"\s*+:\s*+%s\s*+,\s*+"row"\s*+:\s*+\d++\s*+,\s*+"bytes"' % _STRING, re.DOTALL
)
_SIMPLE: Final = rb"(?:%s|[-+.\w]++)" % _STRING
_BODIES: Final = re.compile(
    rb'\s*+\{\s*+(?:(?!"body")%s\s*+:\s*+%s\s*+,\s*+)*+"body"\s*+:\s*+"' % (_STRING, _SIMPLE), re.DOTALL
)
_BOM: Final = b"\xef\xbb\xbf"
# The atomic group ends each comment at its first `-->`. Without an atomic group, the number of match attempts would
# double with each comment.
_HTML: Final = re.compile(
    rb"\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_XML: Final = re.compile(rb"\s*<\?xml\b")
_REPR: Final = re.compile(rb"b(?:'|\")(?:data|event|id|retry)?:")
_CONTROLS: Final = frozenset(range(32)) - frozenset(b"\t\n\r\x1b")


def input_hint(head: bytes) -> str:
    """Describe a body that is not a stream and what to do about it.

    Returns an empty string if the first bytes do not identify such a body.

    Args:
        head: the first `HEAD_BYTES` bytes of the body, or all of them if there are fewer.
    """
    for magic, name in _PACKED:
        if head.startswith(magic):
            return f"the body is compressed with {name}: {_DECOMPRESS}"
    for magic, name in _FILES:
        if head.startswith(magic):
            return f"the body is {name}: pass the bytes of a response"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_utf16(head):
        return "the body is UTF-16 text: pass the bytes as they were received, or encode the text as UTF-8"
    text = head.removeprefix(_BOM)
    for pattern, name in ((_HTML, "an HTML page"), (_XML, "an XML document")):
        if pattern.match(text):
            return f"the body is {name}: check the URL, the credentials, and proxies on the way to the gateway"
    rows = rows_hint(head)
    if rows:
        return f"the body is {rows}"
    if head.startswith(RECORDING_MARK):
        return "the body is a streamweld recording: pass `streamweld.testing.read_recording(file).body`"
    if _REPR.match(head):
        return "the body is the repr of a bytes object: pass the bytes themselves, not str() of them"
    if _is_binary(head):
        return f"the body is not text, and may be compressed (for example, with br): {_DECOMPRESS}"
    return ""


def is_scan_result(head: bytes) -> bool:
    """Return whether a file is JSON Lines that `streamweld scan` wrote. `head`: the first `HEAD_BYTES` bytes of the
    file.
    """
    return _SCANNED.match(head) is not None


def rows_hint(head: bytes) -> str:
    """Describe a JSON Lines file with one response per line, and name the command that reads such files.

    Returns an empty string if the first bytes do not identify such a file.
    """
    if is_scan_result(head):
        return "a result of `streamweld scan`, not a stream: read the files that its column `path` names"
    if _BODIES.match(head):
        only = "which reads files that are named .jsonl or .ndjson"
        return f"JSON Lines with a response in the member `body` of each line: use `streamweld scan`, {only}"
    return ""


def is_markup(head: bytes) -> bool:
    """Return whether a body is an HTML page or an XML document. `head`: the first `HEAD_BYTES` bytes of the body."""
    text = head.removeprefix(_BOM)
    return _HTML.match(text) is not None or _XML.match(text) is not None


def is_readable(head: bytes) -> bool:
    """Return whether a body is text that can be shown. `head`: the first `HEAD_BYTES` bytes of the body."""
    binary = tuple([magic for magic, _ in (*_PACKED, *_FILES)])
    return not (head.startswith((*binary, b"\xff\xfe", b"\xfe\xff")) or _is_utf16(head) or _is_binary(head))


def _is_utf16(head: bytes) -> bool:
    """Return whether this is ASCII text in UTF-16 without a byte order mark, in which every second byte is NUL."""
    start = head[:64]
    odd, even = start[1::2], start[::2]
    return len(start) >= 8 and any(not any(one) and all(other) for one, other in ((odd, even), (even, odd)))


def _is_binary(head: bytes) -> bool:
    """Detect binary data.

    The data is text, not binary, if it has few control characters and is valid UTF-8 apart from a truncated character
    at the end.
    """
    if len(head) < 16:
        return False
    controls = sum(byte in _CONTROLS for byte in head)
    broken = head.decode("utf-8", "replace").count("\ufffd") - head.count(b"\xef\xbf\xbd")
    return (controls + broken) * 10 > len(head)


def reject_text(data: object) -> None:
    """Raise a helpful TypeError if the input is text, a path, a file or a list of chunks instead of bytes."""
    if isinstance(data, bytes | bytearray | memoryview):
        return
    if isinstance(data, str):
        if "\n" not in data and "{" not in data:
            raise TypeError("a stream is read from bytes, not from str: to read a file, pass Path(name).read_bytes()")
        raise TypeError(
            "a stream is read from bytes, not from str: pass iter_bytes() instead of iter_text() or iter_lines(), open "
            "files with mode 'rb', or encode the text as UTF-8"
        )
    try:
        memoryview(cast("bytes", data)).release()
    except (TypeError, ValueError):
        pass
    else:
        return  # another kind of buffer; mmap, for example, also has read()
    given = type(data).__name__
    for method, opened in (("read_bytes", ""), ("read", " (open the file in mode 'rb')")):
        if hasattr(data, method):
            raise TypeError(f"a stream is read from bytes, not from {given}: pass the result of .{method}(){opened}")
    if isinstance(data, list | tuple) or hasattr(data, "__next__"):
        raise TypeError(
            f"a stream is read from bytes, not from {given}: iter_events() reads a source of several chunks"
        )


# Informal names for dialects, and the dialects that each may refer to.
_CALLED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("openai", "gpt", "chatgpt", "azure"), ("chat", "responses")),
    **dict.fromkeys(
        ("openai-chat", "chat-completions", "completions", "deepseek", "groq", "litellm", "mistral", "openrouter"),
        ("chat",),
    ),
    **dict.fromkeys(("together", "fireworks", "vllm", "ollama", "qwen", "xai"), ("chat",)),
    **dict.fromkeys(("openai-responses", "response"), ("responses",)),
    **dict.fromkeys(("claude", "messages", "anthropic-messages"), ("anthropic",)),
    **dict.fromkeys(("google", "vertex", "google-genai", "generatecontent"), ("gemini",)),
    **dict.fromkeys(("ai-sdk", "aisdk", "vercel", "ai", "ai-sdk-model"), ("ai-sdk-parts", "ai-sdk-ui")),
    **dict.fromkeys(("sse", "any", "detect", "none", "unknown"), ("auto",)),
}


def choice_message(
    name: str, value: object, choices: Sequence[str], *, informal: Mapping[str, Sequence[str]] = _CALLED
) -> str:
    """Return the message for an invalid option value, including the value that was probably meant.

    Args:
        name: the option.
        value: the invalid value.
        choices: the valid values.
        informal: for each informal name, in lower case, the valid values that it may mean.
    """
    wanted = str(value).lower().replace("_", "-").replace(" ", "-")
    family = wanted.partition("-")[0]  # of a model: `claude-opus-4`
    called = informal.get(wanted) or (family not in choices and informal.get(family)) or (family,)
    if "chat" not in choices:  # histories and requests
        called = tuple("openai-chat" if one == "chat" else one for one in called)
    meant = [one for one in called if one in choices]
    meant = meant or [one for one in choices if one.startswith(f"{wanted}-")]
    meant = meant or difflib.get_close_matches(wanted, choices, 1)
    hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
    return f"{name}={value!r}: it must be one of {', '.join(choices)}{hint}"


def hinted(*names: str, **called: str) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Decorate a function so that the TypeError for an unknown keyword argument suggests the intended argument.

    Args:
        *names: keyword arguments that the function passes on, in addition to those in its signature.
        **called: names that other functions or commands use, each with the name that this function uses.
    """

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @wraps(function)
        def call(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
            try:
                return function(*args, **options)
            except TypeError:
                known = [*signature(function).parameters, *names]
                reject_keywords(function.__name__, options, known, {name: f"{one}=" for name, one in called.items()})
                raise

        return call

    return decorate


def reject_keywords(
    function: str, options: Mapping[str, object], known: Sequence[str], called: Mapping[str, str]
) -> None:
    """Raise a TypeError if an option does not exist. The message suggests the intended argument.

    Args:
        function: the name of the function.
        options: the keyword arguments of the call.
        known: the arguments that exist.
        called: names that other functions or commands use, and what to write instead.
    """
    for name in options:
        if name in known:
            continue
        near = [f"{one}=" for one in difflib.get_close_matches(name, known, 1)]
        meant = [called[name]] if name in called else near
        hint = f"; did you mean {meant[0]}?" if meant else ""
        raise TypeError(f"{function}() has no argument {name}={hint}") from None
