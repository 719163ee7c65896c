"""The table of operators, and helpers that all operators share."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from streamweld.errors import UsageError
from streamweld.testing.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.testing.stream import Dialect, Frame

    Run: TypeAlias = Callable[[random.Random, Stream], Stream | None]

__all__ = ["ASPECTS", "OPERATORS", "Aspect", "Operator", "changed", "clone", "inserted", "operator"]

Aspect: TypeAlias = Literal["calls", "items", "texts", "usage", "finish", "envelope", "ending", "framing"]
ASPECTS: tuple[Aspect, ...] = ("calls", "items", "texts", "usage", "finish", "envelope", "ending", "framing")
"""The aspects of a stream that operators change, in the order in which a chain applies them. A chain has at most one
operator for each aspect."""

ALL: tuple[Dialect, ...] = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")


@dataclass(frozen=True, slots=True)
class Operator:
    """One way in which gateways break streams.

    Attributes:
        name: a stable name.
        about: a one-sentence description.
        dialects: the dialects that the operator applies to.
        aspect: the aspect of the stream that the operator changes.
        effect: what the operator changes in the contents that a correct reader finds: `nothing`, `calls`, `ids`,
            `truncated`, …
        opaque: True if the contents that remain after a truncation cannot be derived from the frames.
        certain: False if the bytes do not determine the correct result. A reader may then return another result if it
            reports the ambiguity.
    """

    name: str
    about: str
    dialects: tuple[Dialect, ...]
    aspect: Aspect
    effect: str
    certain: bool
    opaque: bool
    run: Run

    def __call__(self, stream: Stream, seed: int = 0) -> Stream | None:
        """Apply the operator.

        Args:
            stream: a stream that `build` or another operator returned.
            seed: selects the place of the change, if there are several.

        Raises:
            UsageError: if `stream` is anything else, such as a recording, whose correct result is not known.

        Returns:
            The new stream, or None if the operator does not apply because the stream has another dialect or does not
            contain what the operator changes.
        """
        if not isinstance(cast("object", stream), Stream):
            raise UsageError(f"an operator changes a stream of `build`, whose calls and text are known, not {stream!r}")
        if stream.dialect not in self.dialects or not stream.frames:
            return None
        if stream.opaque and self.effect in {"truncated", "error"}:
            return None
        made = self.run(random.Random(f"{self.name} {seed}"), stream)  # noqa: S311 (not for secrets)
        if made is None or (stream.options and made.options != stream.options):
            return None  # a stream can have only one policy
        return replace(made, operators=(*stream.operators, self.name), opaque=stream.opaque or self.opaque)


class _Operators(dict[str, Operator]):
    """The operators by name. The KeyError for an unknown name suggests a similar one."""

    def __missing__(self, name: str) -> Operator:
        close = get_close_matches(str(name), self, 1)
        hint = f"did you mean {close[0]!r}?" if close else "docs/reference/operators.md lists all operators"
        raise KeyError(f"unknown operator {name!r}; {hint}")


OPERATORS: dict[str, Operator] = _Operators()
"""All operators by name."""


def operator(
    *dialects: Dialect,
    aspect: Aspect,
    effect: str = "nothing",
    certain: bool = True,
    opaque: bool = False,
    name: str = "",
    about: str = "",
) -> Callable[[Run], Run]:
    """Register a function as an operator.

    The name of the function and the first line of its docstring describe the operator.
    """

    def register(run: Run) -> Run:
        known = name or run.__name__
        text = about or (run.__doc__ or "").strip().split("\n")[0]
        if known in OPERATORS or not text:
            raise ValueError(f"operator {known!r} already exists, or has no description")
        OPERATORS[known] = Operator(known, text, dialects or ALL, aspect, effect, certain, opaque, run)
        return run

    return register


def clone(value: Any) -> Any:
    """Copy a JSON value."""
    if isinstance(value, dict):
        return {key: clone(member) for key, member in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        members = cast("list[object]", value)
        return [clone(member) for member in members]
    return value


def changed(stream: Stream, change: Callable[[Any, Frame], Any]) -> list[Frame]:
    """Return the frames with modified JSON.

    `change` receives a copy, and either modifies it or returns another object.
    """
    out: list[Frame] = []
    for frame in stream.frames:
        if isinstance(frame.data, str):
            out.append(frame)
            continue
        data = clone(frame.data)
        made = change(data, frame)
        out.append(replace(frame, data=made if isinstance(made, dict) else data))
    return out


def inserted(stream: Stream, at: int, *frames: Frame) -> list[Frame]:
    """Return the frames, with other frames inserted before the frame at index `at`."""
    out = list(stream.frames)
    out[at:at] = frames
    return out
