"""`reverie completion`: prints the script that lets a shell complete our commands, options and session ids."""

from __future__ import annotations

import click

from reverie.cli.options import examples

_HOW = {
    "bash": "reverie completion bash > ~/.local/share/bash-completion/completions/reverie",
    "zsh": "reverie completion zsh > ~/.zfunc/_reverie   (with `fpath+=~/.zfunc` before compinit in ~/.zshrc)",
    "fish": "reverie completion fish > ~/.config/fish/completions/reverie.fish",
}


@examples(
    "reverie completion bash > ~/.local/share/bash-completion/completions/reverie",
    "source <(reverie completion bash)",
    "reverie completion zsh > ~/.zfunc/_reverie",
    "reverie completion fish > ~/.config/fish/completions/reverie.fish",
)
@click.command("completion")
@click.argument("shell", type=click.Choice(list(_HOW)))
def command(shell: str) -> None:
    """Print a completion script for your shell.

    It completes commands, options and session ids. Its first lines say how to install it.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from reverie.cli.app import commands

    found = get_completion_class(shell)
    assert found is not None
    # The method of the base class: the one of a shell's class runs the shell to learn its version.
    script = ShellComplete.source(found(commands, {}, "reverie", "_REVERIE_COMPLETE"))
    first, _, rest = script.partition("\n")
    lines = [f"# Completion of reverie for {shell}. To install it:", f"#   {_HOW[shell]}"]
    is_tag = first.startswith("#")  # zsh wants its tag on the first line
    click.echo("\n".join([first, *lines, rest] if is_tag else [*lines, script]))
