"""Reads one typed object of an AI SDK stream: its ids, text, flags, and `providerMetadata`.

Provider-level parts and UI message chunks are different protocols, but both consist of objects with a `type`, and both
contain `providerMetadata`. `providerMetadata` has one member per provider, in that provider's format.
`_spec/dialects.json` lists the known members of each type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamweld._pure.dialect.unread_arguments import may_hold_arguments
from streamweld._pure.json.kinds import is_object
from streamweld._pure.json.members import as_object, compact, leftovers
from streamweld._pure.json.scanner import BigInteger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamweld._pure.dialect.anomalies import Anomalies
    from streamweld._pure.json.members import Raw
    from streamweld._pure.json.scanner import Payload

__all__ = ["Provider", "Schema", "TypedPart", "data_url"]

_COMMON = ("type", "providerMetadata")
_EMPTY_VALUES = frozenset({"[]", "{}"})


class Schema:
    """The AI SDK data of one dialect in `_spec/dialects.json`.

    The data lists the known members of each part type, and the members in which providers store data that a later turn
    needs.
    """

    __slots__ = ("_modelled", "_nothing", "provider_members", "read")

    def __init__(self, spec: Mapping[str, Any]) -> None:
        fields: Mapping[str, Sequence[str]] = spec["fields"]
        self._nothing = frozenset(_COMMON)
        self._modelled = {kind: frozenset((*_COMMON, *names)) for kind, names in fields.items()}
        self.read = frozenset(_COMMON).union(*self._modelled.values())  # keys whose duplicates are reported
        self.provider_members: Mapping[str, Sequence[str]] = spec["provider_metadata"]

    def has_type(self, kind: str) -> bool:
        return kind in self._modelled

    def modelled(self, kind: str) -> frozenset[str]:
        return self._modelled.get(kind, self._nothing)


@dataclass(slots=True, frozen=True)
class Provider:
    """The metadata of a part."""

    metadata: str | None = None  # members of `providerMetadata` and unknown members, as one JSON object
    item_id: str | None = None  # id of the output item in the provider's own API
    signature: str | None = None
    encrypted_content: str | None = None
    redacted: bool = False


_NOTHING = Provider()


@dataclass(slots=True)
class TypedPart:
    """One payload: an object with a type."""

    payload: Payload
    value: Mapping[str, Any]
    kind: str
    event: str | None  # name of the event that contains the payload
    notes: Anomalies
    schema: Schema

    @property
    def raw(self) -> bytes:
        """The complete payload."""
        return self.payload.text.encode()

    def identity(self, *keys: str) -> str | None:
        """Return the first id among the members in `keys`, as text.

        An id is a non-blank string or a number. A number is returned with the digits that the payload contains.
        """
        for key in keys:
            sent = self.value.get(key)
            if isinstance(sent, str):
                if sent.strip():
                    return self.notes.clean(sent)
            elif isinstance(sent, int | float | BigInteger) and not isinstance(sent, bool):
                return self.payload.raw(key)
            elif sent is not None:
                self.notes.shape((key,))
        return None

    def descriptive_string(self, key: str) -> str | None:
        """Return a descriptive string (a name, a title, a URL), or None if it is absent or blank."""
        sent = self.value.get(key)
        if isinstance(sent, str):
            return self.notes.clean(sent) if sent.strip() else None
        if sent is not None:
            self.notes.shape((key,))
        return None

    def text(self, *keys: str) -> str:
        """Return the text of the first member in `keys` that is present, or an empty string.

        The text may begin or end with half of a surrogate pair.
        """
        for key in keys:
            if self.value.get(key) is not None:
                return self.notes.a_text(self.value, (), key)
        return ""

    def flag(self, key: str) -> bool:
        sent = self.value.get(key)
        if sent is not None and not isinstance(sent, bool):
            self.notes.shape((key,))
        return sent is True

    def json(self, *keys: str) -> str | None:
        """Return the JSON of the first member in `keys` that is neither absent nor null."""
        for key in keys:
            if self.value.get(key) is not None:
                return self.payload.raw(key)
        return None

    def document(self, *keys: str) -> str | None:
        """Return the call's arguments from the first member in `keys` that is present.

        If the value is a string, return its text, which should be JSON; otherwise, return the JSON of the value.
        Providers send a string; `streamText` and the UI protocol forward a parsed value.
        """
        sent = next((self.value[key] for key in keys if self.value.get(key) is not None), None)
        return sent if isinstance(sent, str) else self.json(*keys)

    def misses_arguments(self, *keys: str) -> bool:
        """Return whether no member in `keys` is present but an unknown member may contain the arguments."""
        has_arguments = any(self.value.get(key) is not None for key in keys)
        return not has_arguments and may_hold_arguments(self.value, self.schema.modelled(self.kind))

    def provider(self) -> Provider:
        """Return the metadata of the part: its `providerMetadata` and its unknown members."""
        sent = self.value.get("providerMetadata")
        if sent is None and self.schema.modelled(self.kind).issuperset(self.value):
            return _NOTHING
        left = self._left()
        if not is_object(sent):
            if sent is not None:
                self.notes.shape(("providerMetadata",))
            return Provider(as_object(left))
        members = {key: raw for key, raw in self.payload.members("providerMetadata").items() if raw != "null"}
        redacted = self._first(sent, "redacted_content")
        return Provider(
            as_object(members | left),
            self._first(sent, "item_id"),
            self._first(sent, "signature"),
            self._first(sent, "encrypted_content") or redacted,
            redacted is not None,
        )

    def metadata(self, *more: tuple[str, str | None]) -> str | None:
        """Return the metadata as one JSON object with additional members, or None if there is none."""
        known = self.provider().metadata
        added = {key: raw for key, raw in more if raw is not None}
        if not added:
            return known
        own = as_object(added) or ""
        return own if known is None else f"{known[:-1]},{own[1:]}"

    def worth_keeping(self) -> str | None:
        """Return the metadata of a part that contains no content, such as `start-step`.

        If the part has no `providerMetadata`, empty lists and objects are omitted.
        """
        if not is_object(self.value.get("providerMetadata")):
            return as_object({key: raw for key, raw in self._left().items() if compact(raw) not in _EMPTY_VALUES})
        return self.provider().metadata

    def _left(self) -> Raw:
        return leftovers(self.payload, (), self.value, self.schema.modelled(self.kind))

    def _first(self, sent: Mapping[str, Any], what: str) -> str | None:
        """Return the first non-empty text that any provider sent under one of the keys for `what`.

        A stream comes from one provider, but relays add their own members to `providerMetadata`.
        """
        for members in sent.values():
            if is_object(members):
                for key in self.schema.provider_members[what]:
                    found = members.get(key)
                    if isinstance(found, str) and found:
                        return self.notes.clean(found)
        return None


def data_url(url: str) -> tuple[str, str] | None:
    """Return the media type and the base64 text of a data URL, or None for any other URL."""
    if not url.startswith("data:"):
        return None
    kind, comma, data = url[len("data:") :].partition(",")
    if not comma or not kind.endswith(";base64"):
        return None
    return kind[: -len(";base64")], data
