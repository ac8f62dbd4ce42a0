"""Writes docs/cli.md: the help of every command at 100 columns, and the exit codes. A test checks it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from reverie.cli.app import EXIT_CODES, commands

_COLUMNS = 100
_HEAD = """# The command line

`python -m tools.cli_reference > docs/cli.md` writes this page from the help of the commands.

- A session is one conversation. `-s ID` says which session a command uses. If a command has no other argument, you can
  write the ID without `-s`. The first characters of the ID are enough. `last` is the last used session of the folder.
- A live session is a session that is open in another process.
- With `-C DIR`, the command works as if you had started it in that folder.
- With `--json`, standard output holds only JSON.
- If a command fails, it prints one line, `reverie: …`, to standard error, and ends with one of the exit codes below.
  With `--json`, this line is plain text too.
- On a terminal, the output has colours. `NO_COLOR` switches them off, and `FORCE_COLOR` switches them on.
- Without an API key, the offline mind answers: built-in rules instead of a model.
- Reverie's home is the folder with everything that Reverie keeps: `~/.reverie`, or the folder in `REVERIE_HOME`.

## Exit codes

| code | meaning |
|---|---|
"""


def reference_page() -> str:
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())
    sections = "".join(_section(name, text) for name, text in _helps(commands, None, "reverie"))
    return f"{_HEAD}{codes}{sections}"


def _section(name: str, text: str) -> str:
    depth = "#" * (2 + name.count(" ") - (name.count(" ") > 0))
    return f"\n{depth} {name}\n\n```\n{text.rstrip()}\n```\n"


def _helps(command: click.Command, parent: click.Context | None, name: str) -> Iterator[tuple[str, str]]:
    with click.Context(
        command,
        parent=parent,
        info_name=name,
        terminal_width=_COLUMNS,
        max_content_width=_COLUMNS,
        help_option_names=["-h", "--help"],
    ) as context:
        path = context.command_path
        yield path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        if isinstance(command, click.Group):
            for sub in command.list_commands(context):
                found = command.get_command(context, sub)
                if found is not None and not found.hidden:
                    yield from _helps(found, context, sub)


if __name__ == "__main__":
    click.echo(reference_page(), nl=False)
