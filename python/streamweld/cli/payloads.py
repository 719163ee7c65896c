"""Code shared by `history` and `requests`: options, input and output of payloads, violations, edits and losses."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from streamweld._messages import HEAD_BYTES, input_hint
from streamweld._show import printable
from streamweld.cli.console import FINDINGS, FINE, UNREADABLE, console, emit, read_each, table
from streamweld.cli.findings import fails
from streamweld.cli.names import AliasedOption, DialectChoice
from streamweld.errors import HistoryError, UsageError
from streamweld.history import HistoryPolicy, profiles

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from typing import BinaryIO, NoReturn

    from rich.console import Console

    from streamweld._spec import Severity
    from streamweld.history import Conversion, Edit, HistoryViolation, Loss, Profile

__all__ = [
    "POLICY_NAMES",
    "file_argument",
    "finish_check",
    "finish_convert",
    "gateway_of",
    "gateway_options",
    "json_option",
    "load",
    "output_option",
    "policy_option",
    "policy_words",
    "provider_option",
    "refusals",
    "show_edits",
    "source_option",
    "target_option",
    "write",
]

_SHOWN: Final = 160  # maximum number of characters of removed content to show
_NAMES: Final = (*profiles.TARGETS, "chat", "ai-sdk-parts")
POLICY_NAMES: Final = tuple(HistoryPolicy.__dataclass_fields__)

file_argument: Final[Callable[[Any], Any]] = click.argument("file", metavar="FILE|-")
output_option: Final[Callable[[Any], Any]] = click.option(
    "-o", "--output", metavar="FILE|-", help="Write the payload to FILE, and the edits to standard output."
)
policy_option: Final[Callable[[Any], Any]] = click.option(
    "--policy", "words", multiple=True, metavar="NAME=WORD", help="How to fix faults, such as orphan_call=drop."
)


def target_option(what: str) -> Callable[[Any], Any]:
    """Return the option `--to`; `what` is the help text."""
    return click.option(
        "--to",
        "target",
        cls=AliasedOption,
        aliases=("--target",),
        type=DialectChoice(_NAMES),
        required=True,
        help=what,
    )


def source_option(what: str) -> Callable[[Any], Any]:
    """Return the option `--from`; `what` is the help text."""
    return click.option(
        "--from",
        "source",
        cls=AliasedOption,
        aliases=("--source",),
        type=DialectChoice(["auto", *_NAMES]),
        default="auto",
        show_default=True,
        help=f"{what}; auto detects it.",
    )


def provider_option(kind: str) -> Callable[[Any], Any]:
    """Return the option `--provider`; `kind` is `history` or `request`."""
    return click.option(
        "--provider", help=f"The vendor or gateway that generated the assistant turns, if the {kind} does not show it."
    )


def json_option(members: str) -> Callable[[Any], Any]:
    """Return the option `--json`; `members` describes the object."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object{members}.")


def gateway_options(kind: str) -> Callable[[Any], Any]:
    """Return the options `--gateway` and `--profile`; `kind` is `history` or `request`."""
    names = ", ".join(dict.fromkeys([name.partition("@")[0] for name in profiles.names()]))
    text = (
        f"The gateway that gets the {kind}: {names}. The newest profile is used; NAME@DATE selects another, and "
        "`history profiles` lists all of them."
    )

    def add(command: Any) -> Any:
        command = click.option("--profile", metavar="FILE", help="Your own gateway profile, as a JSON file.")(command)
        return click.option("--gateway", metavar="NAME", help=text)(command)

    return add


def gateway_of(name: str | None, profile: str | None) -> str | Mapping[str, Any] | None:
    """Return the gateway that the two options select."""
    if profile is None:
        return name
    if name is not None:
        raise UsageError("use either --gateway or --profile: a profile can extend a gateway with its member `like`")
    loaded = load(profile)
    if not isinstance(loaded, dict):
        raise UsageError("--profile: it must be a JSON object")
    return cast("dict[str, Any]", loaded)


def policy_words(words: Iterable[str], names: Iterable[str] = POLICY_NAMES) -> dict[str, Any]:
    """Return the values of `--policy`, by name."""
    names = tuple(names)
    switches: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in names:
            raise UsageError(f"--policy {word}: it must be NAME=WORD, where NAME is one of {', '.join(names)}")
        switches[name] = value
    return switches


def load(file: str) -> Any:
    """Return the JSON value in the file, or end the process if it cannot be read."""
    unreadable: list[str] = []
    texts = list(read_each([file], _bytes, unreadable))
    if unreadable:
        sys.exit(UNREADABLE)
    try:
        return json.loads(texts[0])
    except (ValueError, RecursionError) as error:
        is_stream = texts[0].lstrip().startswith((b"data:", b"event:", b"id:", b":"))
        hint = input_hint(texts[0][:HEAD_BYTES])
        if is_stream:
            hint = "this is an event stream; `inspect`, `check` and `convert` read streams"
        click.echo(f"streamweld: {printable(file)}: not JSON: {hint or error}", err=True)
        sys.exit(UNREADABLE)


def _bytes(_: str, source: BinaryIO) -> bytes:
    return source.read()


@contextmanager
def refusals(file: str) -> Generator[None]:
    """Print a `HistoryError` with its violations, and exit with code 1."""
    try:
        yield
    except HistoryError as error:
        click.echo(f"streamweld: {printable(file)}: {error}", err=True)
        if error.violations:
            _show_violations(console(stderr=True), error.violations)
        sys.exit(FINDINGS)


def finish_check(
    file: str, found: list[HistoryViolation], profile: Profile, fail_on: Severity, *, as_json: bool
) -> NoReturn:
    """Print the violations, and exit with 1 if the severity of one of them is at least `fail_on`, otherwise with 0."""
    if as_json:
        name = f"{profile.name}@{profile.date}" if profile.date else profile.name
        rows = [violation.to_dict() for violation in found]
        emit({"file": file, "target": profile.target, "gateway": name, "violations": rows})
    else:
        _show_violations(console(), found)
    sys.exit(FINDINGS if fails((violation.severity for violation in found), fail_on) else FINE)


def finish_convert(
    made: Conversion, output: str | None, *, as_json: bool, tool_names: Mapping[str, str] | None = None
) -> None:
    """Write the payload, and print the edits, losses, and new ids and names.

    Args:
        made: the conversion.
        output: the file to write to; None or `-` for standard output.
        as_json: whether to print one JSON object instead.
        tool_names: the tools that were renamed; None if the conversion does not rename tools.
    """
    if as_json:
        edits, losses = [edit.to_dict() for edit in made.edits], [loss.to_dict() for loss in made.losses]
        shown = {"payload": made.payload, "edits": edits, "ids": [list(pair) for pair in made.ids], "losses": losses}
        emit(shown if tool_names is None else {**shown, "tool_names": dict(tool_names)})
        return
    out = write(made.payload, output)
    show_edits(out, made.edits)
    _show_losses(out, made.losses)
    renamed = [("id", *pair) for pair in made.ids] + [("tool", *pair) for pair in (tool_names or {}).items()]
    for kind, old, new in renamed:
        out.print(printable(f"{kind} {old} -> {new}"), soft_wrap=True)


def _base64(value: Any) -> str:
    """Encode bytes as base64. boto3 accepts bytes for media, but requests to the API contain base64."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} is not JSON")


def write(value: Any, output: str | None) -> Console:
    """Write the result to the output, and return the console to use for all other messages."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=_base64) + "\n"
    if output is None or output == "-":
        click.echo(text.encode("utf-8", "backslashreplace"), nl=False)
        return console(stderr=True)
    Path(output).write_text(text, encoding="utf-8", errors="backslashreplace")
    return console()


def _show_violations(out: Console, found: Iterable[HistoryViolation]) -> None:
    shown = table("severity", "where", "what", "source")
    for violation in found:
        what = f"{violation.rule}: {violation.message}"
        shown.add_row(violation.severity, printable(violation.path) or "/", what, violation.source)
    out.print(shown if shown.row_count else "clean: no violation")


def show_edits(out: Console, edits: Iterable[Edit]) -> None:
    """Write each edit with its place and rule, the removed content (-), the replacement (+), and the reason."""
    edits = list(edits)
    for edit in edits:
        out.print(printable(f"@@ {edit.path or '/'} {edit.rule}"), style="cyan", soft_wrap=True)
        if edit.removed is not None:
            out.print(f"- {_short(edit.removed)}", style="red", soft_wrap=True)
        out.print(f"+ {printable(edit.what)}", style="green", soft_wrap=True)
        out.print(f"  {printable(edit.why)}", style="dim", soft_wrap=True)
    out.print(f"{len(edits)} {'edit' if len(edits) == 1 else 'edits'}")


def _show_losses(out: Console, losses: Iterable[Loss]) -> None:
    for loss in losses:
        out.print(printable(f"lost {loss.path or '/'} {loss.feature}: {loss.why}"), style="yellow", soft_wrap=True)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text, _SHOWN)
