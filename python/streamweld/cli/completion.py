"""`streamweld completion`: print the script that completes commands, options and codes in a shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]

SHELLS: Final = ("bash", "zsh", "fish")


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, files and codes in SHELL.

    \b
    bash: add to ~/.bashrc    eval "$(streamweld completion bash)"
    zsh:  add to ~/.zshrc     eval "$(streamweld completion zsh)"
    fish: streamweld completion fish > ~/.config/fish/completions/streamweld.fish
    """
    made = get_completion_class(shell)
    if made is None:  # this release of click does not support the shell
        raise click.ClickException(f"this release of click has no completion for {shell}")
    click.echo(made(context.find_root().command, {}, "streamweld", "_STREAMWELD_COMPLETE").source())
