"""The command-line interface (extra `cli`).

The command line uses only the public API of the package, and is imported only by the entry point.
"""

from __future__ import annotations

import os
import signal
import sys
from io import TextIOWrapper
from typing import Any

import click

import streamweld
from streamweld._extension import extension
from streamweld.cli.bench import bench
from streamweld.cli.check import check
from streamweld.cli.completion import completion
from streamweld.cli.console import UNREADABLE, USAGE, ClosedPipeError, UnwritableError
from streamweld.cli.convert import convert
from streamweld.cli.demo import demo
from streamweld.cli.explain import explain
from streamweld.cli.history import history
from streamweld.cli.inspect import inspect
from streamweld.cli.proxy import proxy
from streamweld.cli.report import report
from streamweld.cli.requests import requests
from streamweld.cli.scan import scan
from streamweld.errors import UsageError

__all__ = ["main", "run"]


def _version() -> str:
    module = extension()
    built = "pure Python" if module is None else module.BUILD_INFO
    return f"streamweld {streamweld.__version__} ({built}, backend {streamweld.backend})"


class _Commands(click.Group):
    """The commands. `repair` is not a command, so the error for it names the command that repairs a stream."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] == "repair":
            ctx.fail("No such command 'repair'. `convert --to same` repairs a stream; `inspect` shows what it repairs.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        Raises:
            ClosedPipeError: if the output was written to a closed pipe. Without this exception, click would exit with
                1, the code for findings.
        """
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except (BrokenPipeError, UnwritableError) as error:
            is_pipe = isinstance(error, BrokenPipeError) or isinstance(error.__cause__, BrokenPipeError)
            if not is_pipe or ctx.invoked_subcommand == "proxy" or sys.platform == "win32":
                raise
            raise ClosedPipeError from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(message=_version())
def main() -> None:
    """Parse, repair, check and convert LLM streams, and explain what had to be repaired.

    Exit codes: 0 success, 1 findings (a diagnostic or a broken rule with severity warning or error), 2 usage error, 3 a
    file could not be read or the output could not be written.
    """


main.add_command(demo)
main.add_command(inspect)
main.add_command(convert)
main.add_command(check)
main.add_command(explain)
main.add_command(history)
main.add_command(requests)
main.add_command(proxy)
main.add_command(scan)
main.add_command(report)
main.add_command(bench)
main.add_command(completion)


def run() -> None:
    """Run `main`, and exit with the code that matches how it ended."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Escape characters that the terminal's encoding does not support, instead of raising an exception.
            stream.reconfigure(errors="backslashreplace")
    try:
        main(prog_name="streamweld")
    except UsageError as error:
        click.echo(f"streamweld: {error}", err=True)
        sys.exit(USAGE)
    except ClosedPipeError:
        # End the process with SIGPIPE, as other Unix tools do. The shell reports this as exit code 141.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    except (OSError, UnwritableError) as error:
        # The commands handle the errors of input files, so this error comes from writing the output. Discard the
        # buffered output, because Python would otherwise try to flush it at exit and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"streamweld: the output cannot be written: {getattr(error, 'strerror', None) or error}", err=True)
        sys.exit(UNREADABLE)
