"""The small project of `reverie demo`: a timetable server of a ferry, its data and its logs."""

from __future__ import annotations

from pathlib import Path

_FILES = {
    "README.md": """# Ferry times

A small server for the timetable of one ferry. `python -m ferry` starts it.
""",
    "AGENTS.md": """# For whoever works here

- The harbour office wants every change of the timetable a week ahead.
""",
    "ferry/__main__.py": """from ferry.server import serve
from ferry.settings import load

serve(load("settings.toml"))
""",
    "ferry/server.py": '''"""Answers one question: when does the next ferry leave?"""

from http.server import ThreadingHTTPServer

from ferry.settings import Settings
from ferry.times import Handler


def serve(settings: Settings) -> None:
    """Listens on the port of the settings until it is stopped."""
    ThreadingHTTPServer(("127.0.0.1", settings.port), Handler).serve_forever()
''',
    "ferry/settings.py": '''"""What can be set, and its defaults."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    port: int = 8410
    pier: int = 7


def load(path: str) -> Settings:
    return Settings()
''',
    "ferry/times.py": '''"""The timetable, by the clock at the pier."""

from http.server import BaseHTTPRequestHandler

HOURS = (6, 9, 12, 15, 18, 21)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(repr(HOURS).encode())
''',
}
_EVENTS = {
    1: "fog bank over the sound, all departures held for forty minutes",
    2: "bow thruster vibrates above 70 percent, reported to the yard",
    3: "gangway two replaced, the old one is kept for spares",
    4: "ice on the slipway, passengers boarded by the side door",
    5: "radio channel changed to 14 until the mast is mended",
    6: "dry dock booked at Lindholm for the winter overhaul",
}
"""The one event in the log of each day."""


NEWS = {1: "fog", 2: "the bow thruster", 3: "the gangway", 4: "ice", 5: "the radio", 6: "dry dock"}
"""How the question about each event calls it."""

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


def write_project(folder: Path) -> None:
    """Writes the project's files into `folder`."""
    files = {**_FILES, "data/departures.csv": _departures(), **{f"logs/day-{day}.log": _log(day) for day in _EVENTS}}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _departures() -> str:
    rows = [
        f"2026-{month:02}-{day:02},{hour:02}:00,{(month * 31 + day * 7 + hour) % 90},{'no' if hour % 6 else 'yes'}"
        for month in range(1, 13)
        for day in range(1, 29)
        for hour in (6, 9, 12, 15, 18, 21)
    ]
    return "\n".join(["day,hour,booked,cars", *rows]) + "\n"


def _log(day: int) -> str:
    """Two hundred lines of routine, and one event."""
    lines = [
        f"{6 + n // 13:02}:{n % 13 * 4 + 2:02} wind {n * day % 9 + 2} m/s, sea {n % 4}, speed {8 + n % 5} kn, all well"
        for n in range(190)
    ]
    lines.insert(97, f"13:{day + 20} NOTE {_EVENTS[day]}")
    return "\n".join(lines) + "\n"


def diary(half: int) -> str:
    """The mate's diary for one half of February: long enough to fill a window, with nothing to remember."""
    skies = ("calm", "grey", "rough", "bright")
    days = [
        f"On the {day}th the sound was {skies[day % 4]} and we made {day % 5 + 2} crossings with {day * 13 % 70 + 9} "
        f"souls aboard. The tide stood at {day * 7 % 40 + 110} cm, the engine ran at {day * 11 % 30 + 60} percent, and "
        f"lamp {day % 6 + 1} on the breakwater was {'lit' if day % 3 else 'dark'}."
        for day in range(4 + 10 * half, 14 + 10 * half)
    ]
    watches = ("First", "Second", "Third", "Fourth", "Fifth")
    return "\n".join(f"{watch} watch. {text}" for watch in watches for text in days * 4)
