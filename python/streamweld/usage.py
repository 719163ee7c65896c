"""Token counts normalized across APIs: the result of `Usage.normalized()`.

    usage = response.usage.normalized()
    cost = (usage.input - (usage.cached_read or 0)) * price_in + usage.output * price_out

`Response.usage` keeps the gateway's own counts, whose meaning differs between APIs. For example, OpenAI's
`prompt_tokens` includes the cached tokens, but Anthropic's `input_tokens` does not. Gemini and xAI count reasoning
separately from the rest of the output. `_spec/usage.json` describes what the counts of each API mean. All functions are
pure.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (JSON from callers: the types inside its containers are unknown)

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld._spec import load_usage
from streamweld.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld import Usage

__all__ = ["NormalizedUsage", "normalized"]

# Maps a count to the count that normally includes it. Some APIs report the two counts separately.
_INCLUDED_IN: Final = {
    "reasoning": "output",
    "cached_read": "input",
    "cache_write": "input",
    "input_audio": "input",
    "output_audio": "output",
    "input_images": "input",
    "output_images": "output",
}
# Maps fields of `Usage` to counts, for an event that has no `raw`.
_FIELDS: Final = {
    "input_tokens": "input",
    "output_tokens": "output",
    "total_tokens": "total",
    "cached_input_tokens": "cached_read",
    "cache_write_tokens": "cache_write",
    "reasoning_tokens": "reasoning",
}
_LARGEST: Final = 2**63 - 1  # clients do not parse a larger count as an integer
_Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class NormalizedUsage:
    """The token counts of one response.

    None means that the gateway did not report the count; 0 means that it reported zero. A 0 that only fills a required
    member, such as the `input_tokens` of a `message_start` that no later event corrects, is None.

    Attributes:
        input: all tokens in the request, including those read from and written to the cache. If Anthropic compacted
            the conversation, all counts include those of the compaction, which is billed like the response.
        cached_read: input tokens that were read from the cache.
        cache_write: input tokens that were written to the cache.
        output: all generated tokens, including reasoning.
        reasoning: output tokens that are reasoning.
        total: input and output. The gateway's own total is used only if it is larger, because it then includes tokens
            that the gateway does not itemize.
        audio: audio tokens in the input and output.
        images: image tokens in the input and output.
    """

    input: int | None = None
    cached_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    audio: int | None = None
    images: int | None = None

    def to_dict(self) -> dict[str, int | None]:
        """Return the counts, keyed by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How to interpret one API's usage object; see `about` in `_spec/usage.json`."""

    paths: Mapping[str, Sequence[str | Sequence[str]]]
    modalities: Mapping[str, Sequence[Sequence[str]]]
    iterations: tuple[str, str] | None
    adds: Mapping[str, Sequence[str]]
    total_decides: bool
    placeholder: str | None

    def read(self, raw: Mapping[str, Any]) -> _Counts:
        """Return the counts in a usage object as sent, plus those of the iterations that it does not include."""
        every = [self._read_one(one) for one in (raw, *self._excluded_iterations(raw))]
        sums = {name: _sum([counts.get(name) for counts in every]) for name in (*self.paths, *self.modalities)}
        return {name: count for name, count in sums.items() if count is not None}

    def _excluded_iterations(self, raw: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        if self.iterations is None:
            return []
        member, kind = self.iterations
        return [entry for entry in _objects(raw.get(member)) if entry.get("type") == kind]

    def _read_one(self, raw: Mapping[str, Any]) -> Mapping[str, int | None]:
        found: dict[str, int | None] = {}
        for name, paths in self.paths.items():
            found[name] = next((count for path in paths if (count := _count(raw, path)) is not None), None)
        for name, lists in self.modalities.items():
            found[name] = _sum([_of_modality(raw.get(member), modality) for member, modality in lists])
        return found


def normalized(usage: Usage | Mapping[str, Any], dialect: str | None = None) -> NormalizedUsage:
    """Normalize a gateway's token counts across APIs.

    Args:
        usage: `Response.usage`, or a gateway's usage object as a mapping.
        dialect: the API that defines the counts. By default, the API is inferred from the members of the object. For
            example, `prompt_tokens` indicates Chat Completions, and `cache_read_input_tokens` Anthropic Messages.

    Returns:
        The counts. Nothing is estimated: a count is None if the gateway does not report it and the total does not imply
        it.

    Raises:
        UsageError: if the dialect is unknown.

    >>> counts = normalized({"input_tokens": 2, "cache_read_input_tokens": 100, "output_tokens": 5})
    >>> counts.input, counts.cached_read, counts.cache_write, counts.total
    (102, 100, None, 107)
    """
    raw = usage if isinstance(usage, Mapping) else usage.raw
    shape = _shape_of(raw or {}, dialect)
    counts: _Counts = {}
    if raw:
        counts = shape.read(raw)
    if not counts and not isinstance(usage, Mapping):
        fields = {name: _integer(getattr(usage, field)) for field, name in _FIELDS.items()}
        counts = {name: count for name, count in fields.items() if count is not None}
    beside = _beside(counts, shape)
    whole = {name: _sum([counts.get(name), *[counts[part] for part in beside[name]]]) for name in beside}
    tokens_in, tokens_out = whole["input"], whole["output"]
    if tokens_in == 0 and (shape.placeholder == "both" or (shape.placeholder == "input" and tokens_out)):
        # A required member with the value 0 is not a count, because every request has input.
        tokens_in, tokens_out = None, tokens_out or None
        if counts.get("total") == 0:
            del counts["total"]
    return _made(counts, tokens_in, tokens_out)


def _made(counts: _Counts, tokens_in: int | None, tokens_out: int | None) -> NormalizedUsage:
    total = counts.get("total")
    if total is not None and (tokens_in is None) != (tokens_out is None):
        rest = total - ((tokens_in if tokens_out is None else tokens_out) or 0)
        if rest > 0:  # otherwise, the missing count may be zero or may follow later
            tokens_in, tokens_out = (rest, tokens_out) if tokens_in is None else (tokens_in, rest)
    known = None if tokens_in is None or tokens_out is None else min(tokens_in + tokens_out, _LARGEST)
    if known is not None:
        total = known if total is None else max(total, known)
    return NormalizedUsage(
        input=tokens_in,
        cached_read=counts.get("cached_read"),
        cache_write=counts.get("cache_write"),
        output=tokens_out,
        reasoning=counts.get("reasoning"),
        total=total,
        audio=_sum([counts.get("input_audio"), counts.get("output_audio")]),
        images=_sum([counts.get("input_images"), counts.get("output_images")]),
    )


def _beside(counts: _Counts, shape: _Shape) -> dict[str, list[str]]:
    """Return the counts that the gateway reports separately from the input and output.

    The API's documentation determines these counts, unless the numbers contradict it. A count that is larger than the
    input or output cannot be included in it (Azure's Grok reports 373 cached tokens for a prompt of 235). If the total
    exceeds input plus output by exactly one other count, that count is separate (xAI's reasoning, Mistral's audio).
    """
    beside = {name: [part for part in shape.adds.get(name, ()) if part in counts] for name in ("input", "output")}
    if not any(beside.values()):
        _larger_parts(counts, beside)
    total, tokens_in, tokens_out = (counts.get(name) for name in ("total", "input", "output"))
    if not shape.total_decides or total is None or tokens_in is None or tokens_out is None:
        return beside
    documented = [part for parts in beside.values() for part in parts]
    rest = total - tokens_in - tokens_out
    if rest == sum(counts[part] for part in documented):
        return beside
    if rest == 0 and all(counts[part] <= counts[_INCLUDED_IN[part]] for part in documented):
        return {"input": [], "output": []}
    parts = [part for part in _INCLUDED_IN if counts.get(part)]
    for size in range(1, len(parts) + 1):
        for some in combinations(parts, size):
            if sum(counts[part] for part in some) == rest:
                return {name: [part for part in some if _INCLUDED_IN[part] == name] for name in beside}
    return beside


def _larger_parts(counts: _Counts, beside: dict[str, list[str]]) -> None:
    if max(counts.get("cached_read", 0), counts.get("cache_write", 0)) > counts.get("input", 0) > 0:
        beside["input"] = [part for part in ("cached_read", "cache_write") if part in counts]
    if counts.get("reasoning", 0) > counts.get("output", 0) > 0:
        beside["output"] = ["reasoning"]


@cache
def _shapes() -> Mapping[str, _Shape]:
    nothing: Mapping[str, Any] = {}
    return {
        name: _Shape(
            row["paths"],
            row.get("modalities", nothing),
            cast("tuple[str, str]", tuple(row["iterations"])) if "iterations" in row else None,
            row.get("adds", nothing),
            row["total_decides"],
            row.get("placeholder"),
        )
        for name, row in load_usage()["shapes"].items()
    }


def _shape_of(raw: Mapping[str, Any], dialect: str | None) -> _Shape:
    if dialect is not None:
        name = load_usage()["dialects"].get(dialect)
        if name is None:
            raise UsageError(f"dialect={dialect!r}: it must be one of {', '.join(load_usage()['dialects'])}")
        return _shapes()[name]
    for name, row in load_usage()["shapes"].items():
        if any(raw.get(mark) is not None for mark in row["marks"]):
            return _shapes()[name]
    return _shapes()["chat"]


def _integer(value: object) -> int | None:
    """Return a count as an int, or None if the value is not a non-negative whole number within 64 bits."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else None


def _count(raw: Mapping[str, Any], path: str | Sequence[str]) -> int | None:
    if not isinstance(path, str):
        return _sum([_count(raw, one) for one in path])
    value: object = raw
    for name in path.split("."):
        value = cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None
    return _integer(value)


def _of_modality(listed: object, modality: str) -> int | None:
    return _sum([_integer(entry.get("tokenCount")) for entry in _objects(listed) if entry.get("modality") == modality])


def _objects(listed: object) -> list[Mapping[str, Any]]:
    if not isinstance(listed, list | tuple):
        return []
    return [cast("Mapping[str, Any]", entry) for entry in listed if isinstance(entry, Mapping)]


def _sum(counts: Sequence[int | None]) -> int | None:
    """Return the sum of the counts that are not None, at most `_LARGEST`, or None if there are none."""
    known = [count for count in counts if count is not None]
    return min(sum(known), _LARGEST) if known else None
