"""How `reverie connect` shows a change before it is made, and asks for it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import click

from reverie.cli.output import can_ask, diff_line, exact, get_paint, say
from reverie.connect.files import Change
from reverie.errors import UserError


def confirm_changes() -> bool:
    """Asks the user. Raises `UserError` if nobody can be asked."""
    if not can_ask():
        raise UserError("Nothing was changed: there is no terminal to ask. Look at `--dry-run`, then add `--yes`.")
    if click.confirm("Make these changes?", default=False):
        return True
    say("Nothing was changed.")
    return False


def diff_lines(change: Change) -> Iterator[str]:
    """A change as a difference; nothing if there is none."""
    if not change.is_needed:
        return
    before = (change.file.data or b"").decode("utf-8", "replace").splitlines()
    after = (change.after or b"").decode("utf-8", "replace").splitlines()
    old, new = ("(no file)" if data is None else str(change.file.path) for data in (change.file.data, change.after))
    for line in difflib.unified_diff(before, after, old, new, n=1, lineterm=""):
        yield diff_line(exact(line), get_paint())
