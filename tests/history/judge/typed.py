"""Validates JSON data strictly against the TypedDicts of a vendor's package: required members, no other members, exact
literals.

pydantic ignores unknown members of a TypedDict, but a server rejects them, so this module does not use pydantic.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Required, get_args, get_origin

import pydantic
from typing_extensions import is_typeddict

__all__ = ["faults"]


def faults(hint: Any, value: Any, path: str = "", allow: frozenset[str] = frozenset()) -> list[str]:
    """Return why the value does not match the type. `allow`: members that are accepted although they are not in the
    type.
    """
    origin = get_origin(hint)
    if hint is Any or hint is object or isinstance(hint, typing.TypeVar):
        return []
    if origin in (Required, NotRequired, typing.Annotated):
        return faults(get_args(hint)[0], value, path, allow)
    if isinstance(hint, typing.TypeAliasType) if hasattr(typing, "TypeAliasType") else False:
        return faults(hint.__value__, value, path, allow)
    if origin in (typing.Union, UnionType):
        return _union(get_args(hint), value, path, allow)
    if origin is Literal:
        return (
            [] if value in get_args(hint) and type(value) in map(type, get_args(hint)) else [f"{path}: {value!r:.60}"]
        )
    if is_typeddict(hint):
        return _typed_dict(hint, value, path, allow)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            return [f"{path}: not an object"]
        return [
            fault
            for name, member in value.items()
            for fault in faults(get_args(hint)[1], member, f"{path}/{name}", allow)
        ]
    if _is_sequence(origin):
        if not isinstance(value, list | tuple):
            return [f"{path}: not a list"]
        inner = get_args(hint)[0] if get_args(hint) else Any
        return [fault for n, item in enumerate(value) for fault in faults(inner, item, f"{path}/{n}", allow)]
    return _plain(hint, value, path)


def _is_sequence(origin: Any) -> bool:
    if origin is not None and getattr(origin, "__name__", "") == "SequenceNotStr":
        return True
    return isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, str | bytes)


def _plain(hint: Any, value: Any, path: str) -> list[str]:
    if hint is NoneType or hint is None:
        return [] if value is None else [f"{path}: not null"]
    if hint is bool:
        fits = isinstance(value, bool)
    elif hint is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif hint is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    elif isinstance(hint, type) and issubclass(hint, pydantic.BaseModel):
        fits = False  # requests use the parameter types, not the response types
    elif isinstance(hint, type):
        fits = isinstance(value, hint)
    else:
        fits = True
    return [] if fits else [f"{path}: {type(value).__name__}, not {getattr(hint, '__name__', hint)}"]


def _union(hints: Sequence[Any], value: Any, path: str, allow: frozenset[str]) -> list[str]:
    best: list[str] | None = None
    payload_of: list[str] | None = None  # faults of the alternative that matches the value's `type` or `role`
    for hint in hints:
        found = faults(hint, value, path, allow)
        if not found:
            return []
        if is_typeddict(hint) and _names(hint, value):
            payload_of = found if payload_of is None or len(found) < len(payload_of) else payload_of
        if best is None or len(found) < len(best):
            best = found
    return payload_of or best or [f"{path}: nothing fits"]


def _names(hint: Any, value: Any) -> bool:
    """Return True if the `type` or `role` of the value is that of this TypedDict."""
    if not isinstance(value, Mapping):
        return False
    hints = _hints(hint)
    marks = [name for name in ("type", "role") if name in hints and name in value]
    return bool(marks) and all(not faults(hints[name], value[name]) for name in marks)


@cache
def _hints(hint: Any) -> dict[str, Any]:
    return typing.get_type_hints(hint, include_extras=True)


@cache
def _required(hint: Any) -> tuple[str, ...]:
    """Return the required members. `__required_keys__` cannot be used, because the packages write annotations as text,
    which hides `Required`.
    """
    bases = [base for base in getattr(hint, "__orig_bases__", ()) if is_typeddict(base)]
    found = {name for base in bases for name in _required(base)}
    inherited = {name for base in bases for name in _hints(base)}
    for name, inner in _hints(hint).items():
        origin = get_origin(inner)
        if origin is Required or (hint.__total__ and name not in inherited and origin is not NotRequired):
            found.add(name)
    return tuple(sorted(found))


def _typed_dict(hint: Any, value: Any, path: str, allow: frozenset[str]) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path}: not an object"]
    hints = _hints(hint)
    out = [f"{path}: lacks {name}" for name in _required(hint) if name not in value]
    for name, member in value.items():
        if name in hints:
            out += faults(hints[name], member, f"{path}/{name}", allow)
        elif name not in allow:
            out.append(f"{path}: has {name}")
    return out
