"""Translate the plain options of a request (limits, sampling, stop, metadata, …) according to `_spec/requests.json`."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from streamweld.history.payload import STORED
from streamweld.requests.tables import MODEL, at, is_list, object_of, options, put, remove, spec, steps, words_of

if TYPE_CHECKING:
    from streamweld.requests.context import RequestContext
    from streamweld.requests.tables import Option

__all__ = ["translate", "unfit"]


def translate(context: RequestContext, made: dict[str, Any], *, tools: bool) -> None:
    """Write every plain option of the request into `made`. `tools`: whether the request for the target has tools."""
    for option in options():
        found = _found(option, context, made)
        if found is None or option.word in context.done:
            continue
        path, value = found
        target_path = _path_in(option, context, path, made)
        if unfit(option, value):
            context.lose(option.word, steps(path), "the value has the wrong type for this option", value)
            _remove(context, made, path)
            continue
        value_sent = not value if context.source in option.negated else value
        alone = context.target in option.needs_tools and not tools
        default = context.target in option.negated and value_sent in option.implied and not context.same
        if target_path is None or alone or default or _excluded(option, context, made):
            why = "the request has no tools" if alone and target_path is not None else option.why
            _left_out(option, context, path, value, value_sent, why)
            _remove(context, made, path)
            continue
        new = _fitted(option, context, path, _worded(option, context, path, value_sent))
        _remove(context, made, path, keep=None if new is None else target_path)
        written = not new if context.target in option.negated else new
        if new is not None and not (context.same and at(made, target_path) == written):
            put(made, target_path, written)
            context.written[target_path] = steps(path)


def _path_in(option: Option, context: RequestContext, path: str, made: dict[str, Any]) -> str | None:
    """Return the path at which the option is written.

    If source and target are the same API, the option keeps its name, even if that is an alternative name.
    """
    if option.word in STORED and context.profile.constraints.get("stored_responses") is False:
        return None
    if context.same and path in option.models.get(context.target, ()):
        return path
    target_path = option.path_in(context.target, context.facts, made.get(MODEL.get(context.target, "model")))
    if context.same and target_path is not None and path in option.paths.get(context.target, ()):
        return target_path if option.word in context.facts.get("renamed", ()) else path
    return target_path


def _excluded(option: Option, context: RequestContext, made: dict[str, Any]) -> bool:
    """Return whether the option for parallel calls must be omitted.

    Anthropic's option is a member of the tool choice, and its tool choice `none` rejects the option. If there is no
    tool choice, this function adds `auto`.
    """
    if option.word != "parallel" or context.target != "anthropic" or context.same:
        return False
    choice = object_of(made.get("tool_choice"))
    if not choice:
        made["tool_choice"] = {"type": "auto"}
    return choice.get("type") == "none"


def unfit(option: Option, value: Any) -> bool:
    """Return whether the value has the wrong type for the option."""
    match option.kind:
        case "integer":
            return isinstance(value, bool) or not (isinstance(value, int) or _is_whole(value))
        case "number":
            return isinstance(value, bool) or not isinstance(value, int | float)
        case "boolean":
            return not isinstance(value, bool)
        case "text":
            return not isinstance(value, str)
        case "texts":
            listed = cast("Sequence[Any]", value) if is_list(value) else [value]
            return not all(isinstance(item, str) for item in listed)
        case "object":
            return not hasattr(value, "items")
        case _:
            return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _found(option: Option, context: RequestContext, made: dict[str, Any]) -> tuple[str, Any] | None:
    """Return the path and value of the option in the request, or None if the request does not have the option.

    If the request has several names of the option, the first name is used.
    """
    known = option.paths.get(context.source, ())
    if not context.same:
        known = (*known, *option.also.get(context.source, ()))
    paths = [path for path in known if at(context.request, path) is not None]
    if context.same and (own := option.path_in(context.target, context.facts)) and at(context.request, own) is not None:
        paths = [own, *[path for path in paths if path != own]]
    context.used.update(steps(path) for path in known)
    if not paths:
        return None
    first = at(context.request, paths[0])
    for path in paths[1:]:
        other = at(context.request, path)
        if (
            context.same
            and not option.alone
            and option.word not in (*context.facts.get("lacks", ()), *_renamed(context))
        ):  # both members exist in the API, so both are kept
            if isinstance(other, str) and (new := _formed(option, context, path, other)) != other:
                put(made, path, new)
            continue
        _remove(context, made, path)
        if context.same or other != first:
            context.lose(
                path.rpartition(".")[2],
                steps(path),
                f"{paths[0]} sets the same option and takes precedence",
                other,
            )
    return paths[0], first


def _renamed(context: RequestContext) -> Mapping[str, str]:
    """Return the options for which the gateway has its own member, with the name of each member."""
    found: Mapping[str, str] = context.facts.get("renamed", {})
    return found


def _left_out(option: Option, context: RequestContext, path: str, value: Any, value_sent: Any, why: str) -> None:
    if value_sent in option.implied:
        what = option.why or "dropped, because it is the default of the target"
        context.edit("option_implied", steps(path), what, value)
    else:
        gateway = "" if not context.facts else f" (gateway {context.profile.name})"
        context.lose(
            option.word,
            steps(path),
            why or f"{context.target}{gateway} does not have this option",
            value,
            vital=option.vital,
        )


def _worded(option: Option, context: RequestContext, path: str, value: Any) -> Any:
    """Return the target's name for the value, or None if the target has no such value."""
    if option.kind == "texts" and isinstance(value, str):
        if context.same:
            return value
        value = [value]
    words = spec("words").get(option.word)
    if words is None or not isinstance(value, str):
        return value
    word = words_of(option.word, context.target, context.facts).get(value)
    if context.same and (word == value or not any(value in own for own in words.values())):
        return value  # a value that is in no table may be new
    if word is None:
        context.lose(option.word, steps(path), f"{context.target} does not have this value", value)
    elif context.same:
        context.edit("option_approximated", steps(path), f"changed {value} to {word}", value)
    return word


def _fitted(option: Option, context: RequestContext, path: str, value: Any) -> Any:
    """Return the value, reduced to what the target accepts, or None if no value remains."""
    if option.kind in ("integer", "number") and value is not None:
        return _bounded(option, context, path, value)
    if option.kind == "text" and isinstance(value, str):
        return _formed(option, context, path, value)
    if option.entries and value is not None:
        value = _entries(option, context, path, value)
    most = option.max_items.get(context.target)
    if most is not None and isinstance(value, (Mapping, Sequence)) and not isinstance(value, str) and len(value) > most:
        all_ = cast("Mapping[str, Any] | Sequence[Any]", value)
        rest: Any = dict([*all_.items()][most:]) if isinstance(all_, Mapping) else list(all_[most:])
        context.lose(option.word, steps(path), f"{context.target} accepts at most {most}", rest, vital=option.vital)
        value = dict([*all_.items()][:most]) if isinstance(all_, Mapping) else list(all_[:most])
    if option.word == "stop" and context.target == "anthropic" and is_list(value):
        return _not_blank(option, context, path, value)
    return value


def _formed(option: Option, context: RequestContext, path: str, value: str) -> str:
    """Return the text, or its hash if its length or characters do not fit. The same text has the same hash."""
    if option.fits(value, context.target, context.facts):
        return value
    what = f"replaced {option.word} with its SHA-256, because the target does not accept its length or characters"
    context.edit("option_form", steps(path), what, value)
    return sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _bounded(option: Option, context: RequestContext, path: str, value: Any) -> Any:
    low, high = option.limits(context.target, context.facts)
    new = value
    if low is not None and new < low:
        new = low
    if high is not None and new > high:
        new = high
    if option.kind == "integer":
        new = int(new)
    if new != value:
        context.edit("option_bounds", steps(path), f"changed {option.word} from {value} to {new}", value)
    return value if new == value and not _is_whole(value) else new


def _not_blank(option: Option, context: RequestContext, path: str, value: Any) -> Any:
    """Return the stop sequences that are not blank, or None if there are none.

    Anthropic rejects blank stop sequences.
    """
    kept = [text for text in value if text.strip()]
    if len(kept) == len(value):
        return value
    blank = [text for text in value if not text.strip()]
    context.lose(
        option.word, steps(path), "anthropic rejects stop sequences that are only white space", blank, vital=True
    )
    return kept or None


def _entries(option: Option, context: RequestContext, path: str, value: Any) -> Any:
    """Return the entries that the target accepts, or None if there are none."""
    kept = {name: text for name, text in object_of(value).items() if option.fits_entry(name, text, context.target)}
    if len(kept) == len(value):
        return value
    rest = {name: other for name, other in value.items() if name not in kept}
    why = f"{context.target} does not accept the type, length or characters of these entries"
    context.lose(option.word, steps(path), why, rest)
    return kept or None


def _remove(context: RequestContext, made: dict[str, Any], path: str, keep: str | None = None) -> None:
    """Remove an option from `made` unless its path is `keep`.

    The function has an effect only if source and target are the same API.
    """
    if not context.same or path == keep:
        return
    remove(made, path)
