"""Builds the data about tool calls in text that both backends read: the families that a policy enables.

The table is `_spec/text_calls.json`. Callers may select families by name, and may describe families of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._spec import load_text_calls
from streamweld.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["resolve_families", "settings_text"]

SHAPES: Final = ("json", "xml", "key_value", "named_json", "python", "braces", "harmony")
TIERS: Final = ("token", "tag", "markerless")
_TEXTS: Final = frozenset(
    {"name", "close", "maybe_close", "prefix", "quote", "call_id", "maybe", "trim", "typed", "form"}
)
_LISTS: Final = frozenset(
    {"arguments", "values", "lead", "before", "after", "key", "value", "string", "json", "object"}
)
_OTHER: Final = frozenset(
    {"family", "tier", "shape", "open", "unread", "chosen", "spellings", "call", "parameter", "counter", "unwrap"}
    | {"several", "entities"}
)

# Lists of the table with the marks that quote: pairs of an opener and a closer, and single marks.
_PAIRS: Final = ("sections", "quotation_marks", "parentheses")
_MARKS: Final = ("apostrophes", "emphasis", "brackets", "list_marks", "table_marks")


def resolve_families(chosen: Iterable[str | Mapping[str, Any]] | None, *, markerless: bool) -> list[dict[str, Any]]:
    """Return the enabled families. A family with several spellings has one element for each spelling.

    Raises:
        UsageError: if a family is not in the table or lacks a member that its shape needs.
    """
    table: Mapping[str, Mapping[str, Any]] = load_text_calls()["families"]
    if chosen is None:
        named = [
            {"family": name, **entry}
            for name, entry in table.items()
            if not entry.get("chosen") and (markerless or entry["tier"] != "markerless")
        ]
    else:
        named = [_chosen(one, table) for one in chosen]
        silent = [one["family"] for one in named if one["tier"] == "markerless"]
        if silent and not markerless:
            raise UsageError(f"text_call_families: {silent[0]!r} has no marker; it needs text_call_markerless=True")
    return [_plain(one) for family in named for one in _spelled(family)]


def settings_text(
    mode: str, families: Iterable[str | Mapping[str, Any]] | None, *, markerless: bool, reasoning: bool, after: str
) -> str:
    """Return the policy settings that the text-call stage needs, as JSON for both backends."""
    table = load_text_calls()
    return json.dumps(
        {
            "mode": mode,
            "reasoning": reasoning,
            "after": after,
            "families": resolve_families(families, markerless=markerless),
            "end_of_turn": list(table["end_of_turn"]),
            "next_turn": list(table["next_turn"]),
            "messages": [list(message) for message in table["messages"]],
            "reasoning_tags": [list(pair) for pair in table["reasoning"]],
            "quoting": list(table["quoting"]),
            **{name: [list(pair) for pair in table[name]] for name in _PAIRS},
            **{name: list(table[name]) for name in _MARKS},
        },
        ensure_ascii=False,
    )


def _chosen(one: object, table: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if isinstance(one, str):
        if one not in table:
            meant = _meant(one, table)
            hint = f"; did you mean {' or '.join(map(repr, meant))}?" if meant else f"; families: {', '.join(table)}"
            raise UsageError(f"text_call_families: unknown family {one!r}{hint}")
        return {"family": one, **table[one]}
    if isinstance(one, Mapping):
        return _checked(dict(cast("Mapping[str, Any]", one)))
    raise UsageError(f"text_call_families contains {one!r}: it must be a name or a mapping that describes a family")


def _meant(word: str, table: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the families to suggest for an unknown name.

    If the name is that of a model (`qwen`, `Qwen/Qwen3-8B`), return the families of this model. If not, return the
    family with the most similar name.
    """
    plain = "".join([char for char in word.rpartition("/")[2].lower() if char.isalnum()])
    of_model = [name for name, family in table.items() if any(plain.startswith(model) for model in family["models"])]
    marked = [name for name in of_model if table[name]["tier"] != "markerless"]
    return marked or of_model or get_close_matches(word.lower(), list(table), n=1)


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in cast("list[object]", value))


def _checked(family: dict[str, Any]) -> dict[str, Any]:
    """Check a family that the caller defined, and return it."""
    name = family.get("family")
    if not isinstance(name, str) or not name:
        raise UsageError('text_call_families: a family must have a name, for example {"family": "mine", ...}')
    for key, words in (("shape", SHAPES), ("tier", TIERS)):
        if family.get(key) not in words:
            raise UsageError(f"family {name!r}: {key} must be one of {', '.join(words)}")
    openers = family.get("open")
    if isinstance(openers, str):
        openers = family["open"] = [openers]
    if not (_is_texts(openers) and openers and all(openers)):
        raise UsageError(f"family {name!r}: open must be the marker, or a list of markers")
    for key, value in family.items():
        if key in _TEXTS and not isinstance(value, str):
            raise UsageError(f"family {name!r}: {key} must be a string")
        if key in _LISTS and not _is_texts(value):
            raise UsageError(f"family {name!r}: {key} must be a list of strings")
        if key not in _TEXTS | _LISTS | _OTHER:
            raise UsageError(f"family {name!r}: there is no key {key!r}")
    needs = {"json": ("values",), "xml": ("call", "parameter"), "key_value": ("key", "value"), "braces": ("quote",)}
    for key in needs.get(family["shape"], ()):
        if key not in family:
            raise UsageError(f"family {name!r}: the shape {family['shape']!r} needs {key!r}")
    if family["shape"] == "key_value" and not family.keys() & {"close", "call"}:
        raise UsageError(f"family {name!r}: the shape 'key_value' needs 'close' or 'call'")
    return family


def _spelled(family: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the family and a copy of it for each known misspelling of its markers."""
    own = {key: value for key, value in family.items() if key not in ("spellings", "chosen", "models")}
    wrong = family.get("spellings")
    if wrong is None:
        return [own]
    right, others = wrong
    return [own, *[_respelled(own, right, other) for other in others]]


def _respelled(value: Any, right: str, other: str) -> Any:
    if isinstance(value, str):
        return value.replace(right, other)
    if isinstance(value, Mapping):
        return {key: _respelled(one, right, other) for key, one in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_respelled(one, right, other) for one in cast("list[Any]", value)]
    return value


def _plain(value: Any) -> Any:
    """Return a copy that consists of plain dicts and lists, because the table itself is read-only."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value
