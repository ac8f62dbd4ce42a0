"""`reverie completion`: the script that teaches a shell to complete our commands, options and session ids."""

from __future__ import annotations

import click

from reverie.cli.options import examples

_HOW = {
    "bash": "reverie completion bash > ~/.local/share/bash-completion/completions/reverie",
    "zsh": "reverie completion zsh > ~/.zfunc/_reverie   (with `fpath+=~/.zfunc` before compinit in ~/.zshrc)",
    "fish": "reverie completion fish > ~/.config/fish/completions/reverie.fish",
}


@click.command(
    "completion",
    epilog=examples(
        "reverie completion bash > ~/.local/share/bash-completion/completions/reverie",
        "source <(reverie completion bash)",
        "reverie completion zsh > ~/.zfunc/_reverie",
        "reverie completion fish > ~/.config/fish/completions/reverie.fish",
    ),
)
@click.argument("shell", type=click.Choice(list(_HOW)))
def command(shell: str) -> None:
    """Print a completion script for your shell.

    It completes commands, options and session ids. How to install it stands in its first lines.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from reverie.cli.app import commands

    found = get_completion_class(shell)
    assert found is not None
    # The base class's: a shell's own also asks the shell for its version, which may be on another machine.
    script = ShellComplete.source(found(commands, {}, "reverie", "_REVERIE_COMPLETE"))
    first, _, rest = script.partition("\n")
    lines = [f"# Completion of reverie for {shell}. To install it:", f"#   {_HOW[shell]}"]
    if first.startswith("#"):  # zsh wants its tag on the first line
        click.echo("\n".join([first, *lines, rest]))
    else:
        click.echo("\n".join([*lines, script]))
