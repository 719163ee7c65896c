"""Reads the reasoning in a delta from the first reasoning field with text, `reasoning_details`, and `thinking_blocks`.

Gateways may send the same text in two fields, or send the accumulated text in each delta. Each text is used only once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from streamweld._pure.dialect.chat.content import read_reasoning
from streamweld._pure.json.kinds import is_array, is_object
from streamweld._pure.json.scanner import between_halves, has_lone_surrogate, replace_lone_surrogates
from streamweld._spec import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Path, Payload

FIELDS: tuple[str, ...] = DIALECTS["chat"]["reasoning_fields"]
_BLOCKS = "thinking_blocks"
MEMBERS = frozenset((*FIELDS, "reasoning_details", _BLOCKS))
# LiteLLM writes the JSON of a Gemini part that has a signature into the text of a block. The JSON of such a part is not
# reasoning.
_PARTS: tuple[str, ...] = tuple(DIALECTS["chat"]["block_parts"])

# The default minimum length of `SoFar`, in characters. With a minimum of 1, "a" followed by "and" would be treated as a
# repetition.
_CUMULATIVE_FROM = 4
_BLANK = " \t\n\r\x0c"


_HIGH = tuple(map(chr, range(0xD800, 0xDC00)))


class SoFar:
    """The accumulated text of a source that may repeat this text in each piece.

    The pieces are joined only when a repetition is possible, so that appending takes linear time.

    `least`: minimum length of the accumulated text. If the accumulated text is shorter, no piece is treated as a
    repetition.
    """

    __slots__ = ("_least", "length", "_pieces")

    def __init__(self, least: int = _CUMULATIVE_FROM) -> None:
        self._least = least
        self.length = 0
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        self.length += len(text)
        self._pieces.append(text)

    def may_be_repeated_by(self, text: str) -> bool:
        """Return whether `text` begins with the accumulated text, but that text is too short to prove a repetition."""
        if not 0 < self.length < min(self._least, len(text)):
            return False
        whole = "".join(self._pieces)
        return bool(whole.strip(_BLANK)) and text.startswith(whole)

    def repeated_by(self, text: str) -> bool:
        if not self._least <= self.length <= len(text):
            return False
        whole = "".join(self._pieces)
        self._pieces = [whole]
        return text.startswith(whole)

    def new_in(self, text: str) -> tuple[str, bool]:
        """Return the new text in a piece, and whether the piece repeats the earlier text.

        Halves of surrogate pairs at either end of the piece are not compared.
        """
        whole = _whole(text)
        again = self.repeated_by(whole)
        new = whole[self.length :] if again else whole
        self.add(new)
        if not again:
            return text, False
        return (new + text[-1] if text.endswith(_HIGH) else new), True


@dataclass(slots=True, frozen=True)
class Details:
    """The content of `reasoning_details`: its text, its signature and encrypted content, and the JSON of the list."""

    text: str
    signature: str | None
    encrypted: str | None
    raw: str


@dataclass(slots=True, frozen=True)
class Block:
    """An entry of `thinking_blocks`, in which LiteLLM sends the content blocks of Anthropic. An entry is a whole block
    or a piece of a block.
    """

    text: str
    signature: str | None = None
    encrypted: str | None = None  # the data of a redacted block

    @property
    def proof(self) -> str | None:
        """The signature or encrypted content, which the client must send back and which ends the block."""
        return self.signature or self.encrypted


@dataclass(slots=True, frozen=True)
class Thought:
    """The reasoning in one delta or message."""

    text: str  # the text to emit
    # The fields that contain the text. The tuple is empty if only `reasoning_details` or `thinking_blocks` contains the
    # text.
    fields: tuple[str, ...]
    details: Details | None
    repeated: bool  # the same text was sent twice and used only once
    # The signature, from a field whose value is an object or a list, or from a Gemini part in `thinking_blocks`.
    signature: str | None
    doubt: Literal["", "appended", "repeated"] = ""  # how an ambiguous text was read (AM13); reported once
    again: bool = False  # the details begin with the text of earlier details
    blocks: tuple[Block, ...] = ()  # the entries of `thinking_blocks`


class SplitPairs:
    """Joins surrogate pairs that are split between two entries of `reasoning_details`."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""  # the high surrogate at the end of the last text

    def joined(self, details: Details) -> tuple[str, bool]:
        """Return the JSON of the entries with joined pairs, and whether the entries still contain text. The second
        value is True if the entries are unchanged.

        A joined character is written into the entry that contains its second half. Lone halves are replaced.
        """
        if not self._half and not has_lone_surrogate(details.text):
            return details.raw, True
        entries: list[object] = json.loads(details.raw)
        has_text = False
        for entry in entries:
            if is_object(entry):
                for name in ("text", "summary"):
                    text = _word(entry, name)
                    if text:
                        entry[name] = self._join(text)
                        has_text = has_text or bool(entry[name])
        return json.dumps(entries, ensure_ascii=False, separators=(",", ":")), has_text

    def _join(self, text: str) -> str:
        text, self._half = self._half + text, ""
        if text.endswith(_HIGH):
            text, self._half = text[:-1], text[-1]
        pairs = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return replace_lone_surrogates(pairs)


class ReasoningReader:
    """Reads the reasoning fields of one choice."""

    __slots__ = ("_doubted", "_so_far")

    def __init__(self) -> None:
        self._so_far = SoFar()
        self._doubted = False

    def read(self, payload: Payload, delta: Mapping[str, Any], path: Path, extra: Raw, notes: Anomalies) -> Thought:
        """Return the new reasoning in a delta. Fields whose text differs from the used text are added to `extra`."""
        text, fields, signature = _plain_field(payload, delta, path, extra, notes)
        repeated = len(fields) > 1
        details = _details(payload, delta, path, notes)
        doubt: Literal["", "repeated", "appended"] = ""
        again = False
        if details is not None and details.text:
            if text:
                repeated = True
            else:
                doubts = not self._doubted and self._so_far.may_be_repeated_by(_whole(details.text))
                text, again = self._so_far.new_in(details.text)
                repeated |= again
                if not self._doubted and (doubts or again):
                    self._doubted = True
                    doubt = "repeated" if again else "appended"
        blocks, of_part = _blocks(delta, path, notes)
        return Thought(text, fields, details, repeated, of_part or signature, doubt, again, blocks)


class ThinkingBlocks:
    """Divides the reasoning of one choice into the blocks of `thinking_blocks`, so that each block keeps its
    signature.
    """

    __slots__ = ("_proofs",)

    def __init__(self) -> None:
        self._proofs: set[str] = set()  # the signatures and encrypted contents of the blocks that have ended

    def divide(self, thought: Thought, shown: Callable[[], str]) -> tuple[list[Block], str, bool]:
        """Return the blocks that end in this delta, each with its new text. Also return the new text after these
        blocks, and whether any text was repeated.

        `shown`: a function that returns the text of the open reasoning part. LiteLLM sends the text of a block in
        pieces. LiteLLM then sends either the signature without text, or the whole block.
        """
        ended: list[Block] = []
        pieces: list[str] = []  # the texts of the block that has not ended
        repeated = False
        for block in thought.blocks:
            new, proof = block.text, block.proof
            if proof is None:
                pieces.append(new)
                continue
            if proof in self._proofs:
                repeated = repeated or bool(new)
                continue
            self._proofs.add(proof)
            before = ("" if ended or not new else shown()) + _whole(_paired(pieces))
            whole = _whole(new)
            if before and whole.startswith(before):
                new = whole[len(before) :] + (new[-1] if new.endswith(_HIGH) else "")
                repeated = True
            ended.append(replace(block, text=_paired((*pieces, new))))
            pieces = []
        text, plain = _paired(pieces), thought.text
        if plain:
            sent = _paired((*[block.text for block in ended], text))
            repeated = repeated or bool(sent)
            if sent != plain:  # the text of the plain reasoning field has precedence
                ended = [replace(block, text="" if n else plain) for n, block in enumerate(ended)]
                text = "" if ended else plain
        return ended, text, repeated


def _paired(texts: Iterable[str]) -> str:
    """Join the texts, including surrogate pairs that are split between two texts."""
    return "".join(texts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _whole(text: str) -> str:
    """Return the text without surrogate halves at its ends. Lone halves inside the text are replaced."""
    return replace_lone_surrogates(between_halves(text))


def whole_reasoning(payload: Payload, message: Mapping[str, Any], path: Path, extra: Raw, notes: Anomalies) -> Thought:
    """Return the reasoning of a complete message, without comparing it to streamed reasoning."""
    text, fields, signature = _plain_field(payload, message, path, extra, notes)
    details = _details(payload, message, path, notes)
    text = text or (details.text if details is not None else "")
    blocks, of_part = _blocks(message, path, notes)
    return Thought(text, fields, details, len(fields) > 1, of_part or signature, blocks=blocks)


def _plain_field(
    payload: Payload, delta: Mapping[str, Any], path: Path, extra: Raw, notes: Anomalies
) -> tuple[str, tuple[str, ...], str | None]:
    """Return the text of the first non-empty field, the names of all fields with this text, and a signature.

    The signature is None unless the value of a field is an object or a list that contains a signature.
    """
    chosen = ""
    fields: list[str] = []
    signature: str | None = None
    for field in FIELDS:
        value = delta.get(field)
        structured = None if value is None or isinstance(value, str) else read_reasoning(value)
        if structured is None:
            text = notes.a_text(delta, path, field)
        else:
            text = structured[0]
            signature = notes.clean(structured[1]) or signature
        if not text:
            continue
        if chosen in ("", text):
            chosen = text
            fields.append(field)
        else:
            extra[field] = payload.raw(*path, field) or "null"
    return chosen, tuple(fields), signature


def _details(payload: Payload, delta: Mapping[str, Any], path: Path, notes: Anomalies) -> Details | None:
    entries: object = delta.get("reasoning_details")
    if not is_array(entries):
        if entries is not None:
            notes.shape((*path, "reasoning_details"))
        return None
    if not entries:
        return None
    text: list[str] = []
    signature: str | None = None
    encrypted: str | None = None
    for entry in entries:
        if is_object(entry):
            text += [_word(entry, "text"), _word(entry, "summary")]
            signature = notes.clean(_word(entry, "signature")) or signature
            if entry.get("type") == "reasoning.encrypted":
                encrypted = notes.clean(_word(entry, "data")) or encrypted
    return Details("".join(text), signature, encrypted, payload.raw(*path, "reasoning_details") or "[]")


def _blocks(delta: Mapping[str, Any], path: Path, notes: Anomalies) -> tuple[tuple[Block, ...], str | None]:
    """Return the entries of `thinking_blocks`, and the signature of a Gemini part among them."""
    entries: object = delta.get(_BLOCKS)
    if not is_array(entries):
        if entries is not None:
            notes.shape((*path, _BLOCKS))
        return (), None
    found: list[Block] = []
    of_part: str | None = None
    for entry in entries:
        if not is_object(entry):
            continue
        text = encrypted = signature = None
        if entry.get("type") == "redacted_thinking":
            encrypted = notes.clean(_word(entry, "data")) or None
        else:
            text, signature = _word(entry, "thinking"), notes.clean(_word(entry, "signature")) or None
        if signature and text and text.startswith(_PARTS):
            of_part = signature
        elif text or signature or encrypted:
            found.append(Block(text or "", signature, encrypted))
    return tuple(found), of_part


def _word(entry: Mapping[str, Any], key: str) -> str:
    word: object = entry.get(key)
    return word if isinstance(word, str) else ""
