"""Break conformant streams as gateways do, with operators that can be combined in chains.

    stream = build("chat", [Text("Let me look."), Call("get_weather", '{"city":"Oslo"}')])
    broken = OPERATORS["index_is_a_string"](stream)
    broken = chain(stream, ["index_is_a_string", "success_envelope", "comments"])

An operator returns a new stream together with the contents that a correct reader finds in it, or None if the operator
does not apply to the stream.
"""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING

from streamweld.testing.mutate import anthropic, chat, chat_calls, framing, others, responses
from streamweld.testing.mutate.registry import ASPECTS, OPERATORS, Aspect, Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streamweld.testing.stream import Dialect, Expected, Stream

__all__ = [
    "ASPECTS",
    "OPERATORS",
    "Aspect",
    "Operator",
    "chain",
    "every_operator",
    "operators_for",
    "random_chain",
]

_MODULES = (chat_calls, chat, responses, anthropic, others, framing)  # importing a module registers its operators


@cache
def operators_for(dialect: Dialect) -> tuple[Operator, ...]:
    """Return the operators for a dialect."""
    return tuple(operator for operator in OPERATORS.values() if dialect in operator.dialects)


def chain(stream: Stream, names: Iterable[str], seed: int = 0) -> Stream | None:
    """Apply several operators, in the order of their aspects in `ASPECTS`. Each aspect can be changed only once.

    Returns:
        The new stream, or None if one of the operators does not apply.

    Raises:
        KeyError: if a name is not in `OPERATORS`.
        TypeError: if `names` is a single name.
        ValueError: if two operators change the same aspect.
    """
    if isinstance(names, str):
        raise TypeError(f"names must be a list of names, not a single one: pass [{names!r}]")
    chosen = sorted((OPERATORS[name] for name in names), key=lambda each: ASPECTS.index(each.aspect))
    if len({each.aspect for each in chosen}) < len(chosen):
        raise ValueError("two operators of one chain change the same aspect of the stream")
    made: Stream | None = stream
    for each in chosen:
        made = None if made is None else each(made, seed)
    return made


def random_chain(dialect: Dialect, seed: int, most: int = 3) -> tuple[str, ...]:
    """Return the names of one to `most` operators that can be combined."""
    rng = random.Random(f"chain {dialect} {seed}")  # noqa: S311 (not for secrets)
    pool = operators_for(dialect)
    chosen: dict[str, Operator] = {}
    for _ in range(rng.randint(1, most)):
        each = rng.choice(pool)
        chosen.setdefault(each.aspect, each)
    return tuple(each.name for each in chosen.values())


def every_operator(*streams: Stream, seed: int = 0, keep_calls: bool = False) -> Iterator[Stream]:
    """Yield one broken stream for each operator, created from the first given stream to which the operator applies.

    Args:
        *streams: conformant streams of one dialect.
        seed: the seed for the operators' random choices.
        keep_calls: skip operators that replace names or arguments, or that add calls of other tools. An agent that
            reads the results runs only calls that are in the given streams, or fewer if a stream is truncated.
    """
    for operator in operators_for(streams[0].dialect):
        for stream in streams:
            made = operator(stream, seed)
            if made is not None and (not keep_calls or _contents(made.expected) <= _contents(stream.expected)):
                yield made
                break


def _contents(expected: Expected) -> set[tuple[str, str]]:
    return {(call.name, call.arguments) for call in expected.calls}
