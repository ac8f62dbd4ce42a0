"""The dream of the demo: two older memories are put beside what was learnt, a dream tidies up, and is taken back."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from reverie.cli.output import one_line, plural
from reverie.errors import ReverieError

if TYPE_CHECKING:
    from reverie.cli.demo.view import DemoView
    from reverie.session.session import Session

_WRITTEN = datetime(2026, 2, 20, 8, 0, tzinfo=UTC).timestamp()
_OLDER = {
    "feedback_clock.md": """---
name: Times in the 24-hour clock
description: always use the 24-hour clock, never am and pm
type: feedback
---

Always use the 24-hour clock. Never write times with am and pm.
""",
    "project_overhaul.md": """---
name: Winter overhaul
description: the winter overhaul in the dry dock begins next Monday
type: project
---

The winter overhaul in the dry dock begins next Monday.
""",
}
_LINES = """- [Times in the 24-hour clock](feedback_clock.md) — always use the 24-hour clock
- [Winter overhaul](project_overhaul.md) — the winter overhaul in the dry dock begins next Monday
- [The old timetable](project_old_timetable.md) — where the printed timetable of last year is
"""


async def dream_and_undo(view: DemoView, session: Session) -> None:
    """Shows what a dream changes, why, and that undoing it brings back every byte."""
    assert session.memory is not None and session.dreaming is not None
    directory = session.memory.directory
    root = directory.root
    for name, text in _OLDER.items():
        (root / name).write_text(text)
        os.utime(root / name, (_WRITTEN, _WRITTEN))
    index = root / "MEMORY.md"
    index.write_text((index.read_text() if index.exists() else "") + _LINES)
    view.line(("  Older memories are there too: ", "dim"), (", ".join(_OLDER), ""), (", a dead pointer", "dim"))
    view.line(("$ ", "accent"), ("reverie dream --now", "bold"), typed=True)
    before = _bytes(session)
    task = session.dreaming.start()
    info = await task.wait()
    if task.result is None:
        raise ReverieError(info.error or "The dream came to nothing.")
    dreamt = task.result
    after = _bytes(session)
    count = f"{plural(len(before), 'file')} → {plural(len(after), 'file')}"
    view.layer(6, "dreaming", (f"{dreamt.outcome} as one version: {count}", "bold"))
    for change in dreamt.proposal.changes if dreamt.proposal is not None else ():
        view.line((" " * 21, ""), (f"{change.verb} {change.name}", ""))
        view.line((" " * 23, ""), (one_line(change.reason, 64), "dim"))
    view.line((" " * 21, ""), (f"it cost ${dreamt.cost_usd:.3f} and read {dreamt.hit_rate:.0%} from the cache", "dim"))
    view.gap(0.8)
    view.line(("$ ", "accent"), ("reverie dream undo", "bold"), typed=True)
    landed = dreamt.landed
    if landed is None or landed.version is None:
        raise ReverieError("The dream changed nothing, so there is nothing to undo.")
    _undo(session, landed.version.id)
    same = _bytes(session) == before
    told = "every byte is back" if same else "something is different"
    view.layer(6, "undone", (told, "good" if same else "bad"), (f": {plural(len(before), 'file')} as before", ""))
    view.gap(0.8)


def _bytes(session: Session) -> dict[str, bytes]:
    assert session.memory is not None
    root = session.memory.directory.root
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.md"))}


def _undo(session: Session, version: str) -> None:
    from reverie.memory.changes import WriteInfo, Writer

    assert session.memory is not None
    session.memory.directory.undo(version, WriteInfo(Writer.USER, "Undone in the demo."))
