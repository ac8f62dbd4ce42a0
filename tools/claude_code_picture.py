"""Draws docs/images/claude-code.svg from a real run: a second day in Claude Code, and what was learnt on the first.

Needs tmux and the Claude Code of `make integration`; without them it says so and leaves the picture as it is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from terminal_picture import draw, has_tmux, read_lines, tmux

from reverie.models.script import Script
from reverie.simulator import ScriptResponder, Simulator
from reverie.simulator.http import running
from reverie.text.columns import cut

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "images" / "claude-code.svg"
COLUMNS = 96
KEY = "sk-simulated"
FIRST = "No. From now on always use pnpm instead of npm in this project."
SECOND = "Install the carousel package with npm, please."
SCRIPT = """
when /carousel/
  say I use pnpm for it, because you said that this project always uses pnpm instead of npm.
end
repeat forever
  say Understood: pnpm from now on.
end
"""


def main() -> int:
    """Draws the picture. The exit code is 0 also if a program is missing."""
    programs = sorted(
        (ROOT / ".venv-clients").glob("claude/lib/python*/site-packages/claude_agent_sdk/_bundled/claude")
    )
    if not programs or not has_tmux():
        print("docs/images/claude-code.svg stays as it is: tmux, or the Claude Code of `make integration`, is missing")
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="reverie-") as folder,
        running(Simulator(ScriptResponder(Script.parse(SCRIPT)))) as url,
    ):
        screen = _two_days(programs[0], Path(folder), url)
    TARGET.write_text(draw(screen, "the second day in Claude Code", COLUMNS), encoding="utf-8")
    print(TARGET.relative_to(ROOT))
    return 0


def _two_days(claude: Path, folder: Path, url: str) -> str:
    home, shop = folder, folder / "shop"
    shop.mkdir()
    trusted = {str(shop): {"hasTrustDialogAccepted": True}}
    known = {"hasCompletedOnboarding": True, "theme": "dark", "projects": trusted}
    (home / ".claude.json").write_text(json.dumps({**known, "customApiKeyResponses": {"approved": [KEY]}}))
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(arguments, cwd=shop, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    def reverie(*arguments: str) -> str:
        return run(sys.executable, "-m", "reverie", *arguments)

    def ask(prompt: str) -> str:
        with tmux() as terminal:
            command = (str(claude), "--permission-mode", "default")
            terminal("new-session", "-d", "-x", str(COLUMNS), "-y", "30", *command, cwd=shop, env=environment)
            time.sleep(5)
            terminal("send-keys", prompt)
            time.sleep(1)
            terminal("send-keys", "Enter")
            time.sleep(6)
            screen = terminal("capture-pane", "-e", "-p")
            terminal("send-keys", "C-c", "C-c")
            time.sleep(3)  # Claude Code ends
        return "\n".join(line for line in screen.splitlines() if _is_conversation(line))

    reverie("connect", "claude-code", "--yes")
    ask(FIRST)
    while not json.loads(reverie("memory", "list", "--json"))["memories"]:
        time.sleep(0.5)
    second = ask(SECOND)
    learnt = _short(reverie("memory", "list"), home).rstrip()
    status = _short(reverie("connect", "--status"), home).rstrip()
    reverie("daemon", "stop")
    prompt, rule = "\x1b[1;32m$ \x1b[0m", f"\x1b[0;2m{'─' * COLUMNS}\x1b[0m"
    printed = f"{prompt}reverie memory list\n{learnt}\n\n{prompt}reverie connect --status\n{status}"
    return "\n".join(
        [second, rule, *(cut(line, COLUMNS) if "\x1b" not in line else line for line in printed.split("\n"))]
    )


def _short(text: str, home: Path) -> str:
    """The text as a user would see it, with a home of a usual length, and the same number of the process each time."""
    shown = text.replace(str(home), "~").replace(str(home).replace("/", "-"), "-home-me")
    return re.sub(r"\bPID \d+", "PID 4321", shown)


def _is_conversation(line: str) -> bool:
    bare = "".join(text for pieces in read_lines(line) for text, _ in pieces).strip()
    return bool(bare) and not bare.startswith(("tmux ", "▎", "⏸"))


if __name__ == "__main__":
    sys.exit(main())
