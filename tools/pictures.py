"""Draws docs/images/demo.svg and chat.svg from real runs: the demo, and a chat that continues.

`make pictures` runs it with a home of its own. The chat needs tmux; without it, its picture stays as it is.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from terminal_picture import animate, draw, has_tmux, tmux

_FOLDER = Path(tempfile.gettempdir()) / "reverie-demo"  # is in the picture, so it has a fixed name
_COLUMNS, _ROWS = 88, 42
_SERVER = '"""The server."""\n\nPORT = 8080\nWORKERS = 4\n'
_TURNS = (
    ("Which port is used?", "say The server listens on port `8080`.\n"),
    ("And how many workers?", "say There are **4** workers.\n"),
    (
        "Let the server listen on port 9090.",
        'say I look at the server first.\ncall Grep {"pattern": "PORT", "output_mode": "content"}\n'
        'call Read {"file_path": "server.py"}\n---\n'
        'call Edit {"file_path": "server.py", "old_string": "PORT = 8080", "new_string": "PORT = 9090"}\n---\n'
        "say The server listens on **9090** now.\n|\n| | setting | before | now |\n| |---|---|---|\n"
        "| | `PORT` | 8080 | 9090 |\n| | `WORKERS` | 4 | 4 |\n",
    ),
    ("Run the tests.", 'call Bash {"command": "echo ok"}\n---\nsay All tests pass.\n'),
)
_OPTIONS = ("--model", "scripted:../demo", "--permission-mode", "accept_edits")


def main(folder: Path) -> int:
    """Draws both pictures."""
    (folder / "demo.svg").write_text(animate(_demo(), "reverie demo", _COLUMNS), encoding="utf-8")
    print("demo.svg")
    if not has_tmux():
        print("chat.svg stays as it is: tmux is missing")
        return 0
    try:
        screen = _chat(_FOLDER / "app")
    finally:
        shutil.rmtree(_FOLDER, ignore_errors=True)
    (folder / "chat.svg").write_text(draw(screen, "reverie chat --continue", _COLUMNS), encoding="utf-8")
    print("chat.svg")
    return 0


def _demo() -> str:
    """What the demo writes on a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "reverie", "demo", "--fast", "--no-chat"]
    env = {**os.environ, "COLUMNS": str(_COLUMNS)}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        written = b""
        while True:
            try:
                written += os.read(ours, 65_536)
            except OSError:  # the program has ended
                break
    os.close(ours)
    return written.decode().partition("Played in")[0]


def _chat(work: Path) -> str:
    """The screen of a chat that continues after four turns."""
    work.mkdir(parents=True)
    (work / "server.py").write_text(_SERVER)
    (work.parent / "demo").write_text("---\n".join(script for _, script in _TURNS))
    chat = [sys.executable, "-m", "reverie", "chat", *_OPTIONS]
    lines = "".join(f"{message}\n" for message, _ in _TURNS)
    subprocess.run(chat, cwd=work, input=lines, text=True, capture_output=True, check=True)
    with tmux() as run:
        run("new-session", "-d", "-x", str(_COLUMNS), "-y", str(_ROWS), "-c", str(work), *chat, "--continue")
        screen = ""
        while "/help\n" not in screen:  # the status line below the prompt
            time.sleep(0.2)
            screen = run("capture-pane", "-p")
        session = re.search(r"Continuing (\w+)", screen)
        assert session is not None
        return run("capture-pane", "-e", "-p").replace(session[1], "3f2a9c1e")  # the same in every run


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
