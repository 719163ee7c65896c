"""Options that can also be set with environment variables or in a TOML file."""

from __future__ import annotations

import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from streamweld._show import printable
from streamweld.cli.console import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONFIG", "option"]

_PREFIX: Final = "STREAMWELD_PROXY_"


def option(flag: str, *names: str, **settings: Any) -> Callable[[Any], Any]:
    """Declare an option for `streamweld proxy`, with an environment variable for each of its names.

    Multiple values for an option are separated by spaces in the environment, and are an array in the file.
    """
    flags = [flag, *[name for name in names if name.startswith("--")]]
    variables = [_PREFIX + one.removeprefix("--").replace("-", "_").upper() for one in flags]
    return click.option(flag, *names, envvar=variables, show_envvar=True, **settings)


def _read(context: click.Context, parameter: click.Parameter, path: str | None) -> None:
    """Use the settings in the file as defaults for the options, and warn about unknown environment variables."""
    _check_environment(context)
    if path is None:
        return
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        click.echo(f"streamweld: {path}: {error.strerror or error}", err=True)
        context.exit(UNREADABLE)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is not valid TOML: {error}", context, parameter) from None
    known = {
        name.removeprefix("--"): each
        for each in context.command.params
        if isinstance(each, click.Option) and each is not parameter
        for name in each.opts
        if name.startswith("--")
    }
    names = dict.fromkeys(each.opts[0].removeprefix("--") for each in known.values())
    defaults: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            shown = printable(name, 100)
            meant = get_close_matches(name.replace("_", "-"), names, 1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            raise click.BadParameter(
                f"{path}: {shown!r} is not an option. Options: {', '.join(names)}{hint}", context, parameter
            )
        wanted = _wanted(known[name], value)
        if wanted is not None:
            raise click.BadParameter(f"{path}: {name} must be {wanted}", context, parameter)
        defaults[str(known[name].name)] = value
    context.default_map = defaults


def _check_environment(context: click.Context) -> None:
    """Warn about variables with the proxy's prefix that no option reads.

    Unknown variables are not rejected, because Kubernetes sets variables with this prefix for a service that is named
    `streamweld-proxy`.
    """
    known = [
        name
        for each in context.command.params
        if isinstance(each, click.Option) and isinstance(each.envvar, list)
        for name in each.envvar
    ]
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in known:
            meant = get_close_matches(name, known, 1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            click.echo(f"streamweld: the environment variable {printable(name, 100)} is ignored{hint}", err=True)


def _wanted(given: click.Option, value: object) -> str | None:
    """Return the name of the type that the value should have, or None if the value already has that type."""
    if given.multiple:
        fits = isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))
        return None if fits else "an array of strings"
    if given.is_flag:
        return None if isinstance(value, bool) else "true or false"
    if isinstance(given.type, click.types.IntParamType | click.types.FloatParamType):
        whole = isinstance(given.type, click.types.IntParamType)
        fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        return None if fits else f"a {'whole ' if whole else ''}number"
    return None if isinstance(value, str) else "a string"


CONFIG: Final = option(
    "--config",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_read,
    help="A TOML file with options by their long names, as in `idle-timeout = 60`.",
)
