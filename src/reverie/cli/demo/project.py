"""The small project of `reverie demo`: the timetable of a ferry, its data and its logs, and what the user pastes."""

from __future__ import annotations

from pathlib import Path

_FILES = {
    "AGENTS.md": "# For whoever works here\n\n- The harbour office wants every change of the timetable a week ahead.\n",
    "ferry/settings.py": '''"""What can be set, and its defaults."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    port: int = 8410
    pier: int = 7
''',
    "ferry/times.py": '"""The timetable, by the clock at the pier."""\n\nHOURS = (6, 9, 12, 15, 18, 21)\n',
}
NEWS = {
    1: ("fog", "fog bank over the sound, all departures held for forty minutes"),
    2: ("the bow thruster", "bow thruster vibrates above 70 percent, reported to the yard"),
    3: ("the gangway", "gangway two replaced, the old one is kept for spares"),
    4: ("ice", "ice on the slipway, passengers boarded by the side door"),
}
"""The one event in the log of each day: how a question calls it, and what the log says."""

OLDER_MEMORIES = {
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
OLDER_LINES = """- [Times in the 24-hour clock](feedback_clock.md) — always use the 24-hour clock
- [Winter overhaul](project_overhaul.md) — the winter overhaul in the dry dock begins next Monday
- [The old timetable](project_old_timetable.md) — where the printed timetable of last year is
"""
"""Memories from before the story; the file of the last line does not exist."""


def write_project(folder: Path) -> Path:
    """Writes the project into `folder` and returns its own folder."""
    logs = {f"logs/day-{day}.log": _log(day, event) for day, (_, event) in NEWS.items()}
    for name, text in {**_FILES, "data/departures.csv": _departures(), **logs}.items():
        path = folder / "ferry-times" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "ferry-times"


def _departures() -> str:
    rows = [
        f"2026-{n // 168 + 1:02}-{n // 6 % 28 + 1:02},{6 + n % 6 * 3:02}:00,{n * 7 % 90},{'no' if n % 2 else 'yes'}"
        for n in range(2_016)
    ]
    return "\n".join(["day,hour,booked,cars", *rows]) + "\n"


def _log(day: int, event: str) -> str:
    """Two hundred lines of routine, and one event."""
    lines = [
        f"{6 + n // 13:02}:{n % 13 * 4 + 2:02} wind {n * day % 9 + 2} m/s, sea {n % 4}, speed {8 + n % 5} kn, all well"
        for n in range(190)
    ]
    return "\n".join([*lines[:97], f"13:{day + 20} NOTE {event}", *lines[97:]]) + "\n"


def diary(half: int) -> str:
    """The mate's diary for one half of February: long enough to fill a window, with nothing to remember."""
    skies = ("calm", "grey", "rough", "bright")
    days = [
        f"On the {day}th the sound was {skies[day % 4]} and we made {day % 5 + 2} crossings with {day * 13 % 70 + 9} "
        f"souls aboard. The tide stood at {day * 7 % 40 + 110} cm, the engine ran at {day * 11 % 30 + 60} percent, and "
        f"lamp {day % 6 + 1} on the breakwater was {'lit' if day % 3 else 'dark'}."
        for day in range(4 + 10 * half, 14 + 10 * half)
    ]
    return "\n".join(f"{watch} watch. {text}" for watch in ("First", "Second", "Third") for text in days * 6)
