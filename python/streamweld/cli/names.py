"""Names of options: those that are documented, and those that are accepted as well."""

from __future__ import annotations

from typing import Any

import click

from streamweld.errors import UsageError

__all__ = ["AliasedOption", "files_argument"]


class AliasedOption(click.Option):
    """An option that accepts `aliases`, which help and reference do not show."""

    def __init__(self, declarations: list[str], *, aliases: tuple[str, ...], **settings: Any) -> None:
        super().__init__([*declarations, *aliases], **settings)
        self._aliases = frozenset(aliases)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        accepted = self.opts
        self.opts = [name for name in accepted if name not in self._aliases]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = accepted


def _once(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
    if files.count("-") > 1:
        raise UsageError("- is standard input, which can be read only once: name it once")
    return files


files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE…|-", callback=_once)
