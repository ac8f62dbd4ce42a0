"""The little project that `reverie demo` writes and talks about: a ferry's timetable server."""

from __future__ import annotations

from pathlib import Path

_FILES = {
    "README.md": """# Ferry times

A small server for the timetable of one ferry. `python -m ferry` starts it.
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
    "data/winter-closures.csv": """day,reason
2026-12-24,holiday
2026-12-25,holiday
2027-01-09,dry dock
""",
}


def write_project(folder: Path) -> None:
    """Writes the project's files into `folder`."""
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
