"""`reverie doctor`: is everything there that Reverie needs, and if not, what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reverie.cli.options import cwd_option, json_option
from reverie.cli.screen import json_text


@click.command("doctor")
@json_option
@cwd_option
def command(as_json: bool, cwd: Path) -> int:
    """Check that everything Reverie needs is there.

    Which settings hold, which model would answer and why, where memory lives and which rule decided it, what failed in
    the background. A check mark is fine, `!` worth a look, a cross broken, with what to do about it.

    \b
    Examples:
      reverie doctor
      reverie doctor --json | jq '.checks[] | select(.state != "ok")'

    Exit codes: 0, or 1 if something is broken.
    """
    from reverie.cli.doctor.checks import examine
    from reverie.cli.output import columns, one_line, pad, paint_for

    checks = list(examine(cwd))
    healthy = all(check.state != "broken" for check in checks)
    if as_json:
        found = {"healthy": healthy, "checks": [check.to_json() for check in checks]}
        click.echo(json_text(found, indent=2))
        return 0 if healthy else 1
    import textwrap

    paint = paint_for(sys.stdout)
    marks = {"ok": paint.good("✓"), "warning": paint.warning("!"), "broken": paint.bad("✗")}
    wide = max(len(check.name) for check in checks) + 2
    for check in checks:
        room = max(30, columns() - wide - 2)
        first, *rest = textwrap.wrap(one_line(check.found), room, break_on_hyphens=False, break_long_words=False) or [
            ""
        ]
        click.echo(f"{marks[check.state]} {paint.bold(pad(check.name, wide))}{first}", color=paint.on)
        for line in rest:
            click.echo(" " * (wide + 2) + line)
        if check.todo:
            click.echo(" " * (wide + 2) + paint.accent("→ ") + check.todo, color=paint.on)
    return 0 if healthy else 1
