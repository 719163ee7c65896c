"""Option names: documented names and accepted aliases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from streamweld._messages import choice_message
from streamweld.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AliasedOption", "DialectChoice", "files_argument"]


class AliasedOption(click.Option):
    """An option that also accepts `aliases`, which the help and the reference do not list."""

    def __init__(self, declarations: list[str], *, aliases: tuple[str, ...], **settings: Any) -> None:
        super().__init__([*declarations, *aliases], **settings)
        self._aliases = frozenset(aliases)

    def get_error_hint(self, ctx: click.Context | None) -> str:  # noqa: ARG002
        return f"'{self.opts[0]}'"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        accepted = self.opts
        setattr(self, "opts", [name for name in accepted if name not in self._aliases])  # noqa: B010 (declared by click)
        try:
            return super().get_help_record(ctx)
        finally:
            setattr(self, "opts", accepted)  # noqa: B010


class DialectChoice(click.Choice[str]):
    """A choice of dialects that suggests the closest name if the given name does not exist."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:  # noqa: ARG002
        return f"{value!r}: {choice_message('dialect', value, self.choices).partition(': ')[2]}"


def _once(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    if files.count("-") > 1:
        raise UsageError("- is standard input, which can be read only once: name it once")
    return files


files_argument: Final[Callable[[Callable[..., Any]], Callable[..., Any]]] = click.argument(
    "files", nargs=-1, required=True, metavar="FILE…|-", callback=_once
)
