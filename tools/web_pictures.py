"""Takes the pictures of the web view for the docs: the demo is played, then Chromium visits its home.

`make pictures` runs it. Needs Chromium and playwright; without them it says so and leaves the pictures as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.web_home import LONG, write_long_session

ROUNDS = 420
WIDE, PHONE = {"width": 1180, "height": 860}, {"width": 360, "height": 720}
PICTURES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("web-overview", "/", {}),
    ("web-sessions", "/sessions", {}),
    ("web-session", "/sessions/monday", {}),
    ("web-window", f"/sessions/{LONG}/window?request=300", {}),
    ("web-window-dark", f"/sessions/{LONG}/window?request=300", {"color_scheme": "dark"}),
    ("web-window-phone", f"/sessions/{LONG}/window?request=300", {"viewport": PHONE}),
    ("web-money", f"/sessions/{LONG}/money?row=241", {}),
    ("web-money-total", "/money", {}),
    ("web-memory", "/memory", {}),
    ("web-dreams", "/dreams", {}),
)
"""File, address, and what is different from a wide, light window."""
RENAME = """([from, to]) => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll(from, to);
}"""
"""The demo plays in a folder with a random name; the pictures show a fixed one."""


def main(folder: Path) -> int:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        print("The pictures of the web view need Chromium and playwright; they stay as they are.")
        return 0
    with tempfile.TemporaryDirectory(prefix="reverie-") as scratch, sync_playwright() as playwright:
        env = {key: value for key, value in os.environ.items() if not key.startswith("REVERIE_")}
        env |= {"HOME": scratch, "TMPDIR": scratch}
        work, home = _play(env)
        project = next((home / "projects").iterdir())
        write_long_session(project, work, ROUNDS)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        with _serve(work, {**env, "REVERIE_HOME": str(home)}) as link:
            for name, address, options in PICTURES:
                page = browser.new_context(**{"viewport": WIDE, **options}).new_page()
                page.goto(link)
                page.goto(f"{urlsplit(link)._replace(path='', query='').geturl()}{address}")
                while page.locator("progress").count():  # it loads itself again when it is ready
                    page.wait_for_timeout(300)
                page.evaluate(RENAME, [str(work.parent), "/home/you"])
                page.screenshot(path=str(folder / f"{name}.png"))
                print(f"{name}.png")
        browser.close()
    return 0


def _play(env: dict[str, str]) -> tuple[Path, Path]:
    """Plays the demo; returns its working folder and its home."""
    command = [sys.executable, "-m", "reverie", "demo", "--keep", "--no-chat", "--fast"]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    found = re.search(r"REVERIE_HOME=(\S+) reverie sessions list --cwd (\S+)", told)
    if found is None:
        raise SystemExit(f"The demo did not say where it is:\n{told}")
    return Path(found[2]), Path(found[1])


@contextmanager
def _serve(work: Path, env: dict[str, str]) -> Iterator[str]:
    command = [sys.executable, "-m", "reverie", "web", "--no-open"]
    with subprocess.Popen(command, cwd=work, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
