"""`reverie doctor`: is everything there that Reverie needs, and if not, what to do."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from reverie.cli.options import examples, here
from reverie.cli.output import answer, hanging, pad, painted


@click.command(
    "doctor", epilog=examples("reverie doctor", "reverie doctor --json | jq '.checks[] | select(.state != \"ok\")'")
)
@here
def command(as_json: bool, cwd: Path) -> int:
    """Check that everything Reverie needs is there.

    Which settings hold, which model would answer and why, where memory lives and which rule decided it, what failed in
    the background. A check mark is fine, `!` worth a look, a cross broken, with what to do about it.

    Exit codes: 0, or 1 if something is broken.
    """
    from reverie.cli.doctor.checks import examine

    checks, paint = list(examine(cwd)), painted()
    healthy = all(check.state != "broken" for check in checks)
    marks = {"ok": paint.good("✓"), "warning": paint.warning("!"), "broken": paint.bad("✗")}
    wide = max(len(check.name) for check in checks) + 2
    lines = list[str]()
    for check in checks:
        head = f"{marks[check.state]} {paint.bold(pad(check.name, wide))}"
        lines.append(hanging(check.found, head, wide + 2, breaks=False))
        if check.todo:
            lines.append(" " * (wide + 2) + paint.accent("→ ") + check.todo)
    answer(as_json, {"healthy": healthy, "checks": [asdict(check) for check in checks]}, *lines)
    return 0 if healthy else 1
