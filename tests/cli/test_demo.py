"""`reverie demo` and `reverie completion`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import Terminal


def test_the_demo_holds_a_real_conversation_and_leaves_nothing(reverie: Command, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    reverie.extra["TMPDIR"] = str(folder)
    began = time.monotonic()
    shown = reverie("demo").stdout
    assert time.monotonic() - began < 15
    for tool in ("Grep", "Glob", "Read", "Bash"):
        assert f"✓ {tool}" in shown
    assert "pier: int = 7" in shown
    assert "winter-closures.csv" in shown
    assert "you said: By the way, my ferry is called Halcyon." in shown, "the resumed session remembers"
    assert re.search(r"4 turns, \d+ rounds", shown)
    assert list(folder.iterdir()) == []
    assert not reverie.home.exists()
    assert list(reverie.work.iterdir()) == []


def test_the_demo_does_not_read_the_users_settings(reverie: Command) -> None:
    reverie.home.mkdir()
    (reverie.home / "settings.toml").write_text("this is no TOML")
    reverie.extra["REVERIE_MODEL"] = "nonsense"
    assert "Halcyon" in reverie("demo").stdout


def test_the_demo_can_be_kept(reverie: Command, tmp_path: Path) -> None:
    reverie.extra["TMPDIR"] = str(tmp_path)
    shown = reverie("demo", "--keep").stdout
    found = re.search(r"/\S+\.jsonl", shown)
    assert found is not None
    transcript = Path(found[0])
    assert transcript.is_file()
    reverie.home, reverie.work = transcript.parents[2], next(transcript.parents[3].glob("ferry-times"))
    assert "Halcyon" in reverie("sessions", "show", "last").stdout


def test_the_demo_on_a_terminal_can_be_stopped(reverie: Command, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    with Terminal("demo", cwd=reverie.work, env={**reverie.env, "TMPDIR": str(folder)}) as terminal:
        terminal.until("Which pier")
        terminal.press("\x03")
        assert terminal.ended() == 130
        assert "Traceback" not in terminal.shown
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("shell", "mark"), [("bash", "complete "), ("zsh", "#compdef reverie"), ("fish", "complete ")])
def test_completion_scripts_are_printed_with_how_to_install_them(reverie: Command, shell: str, mark: str) -> None:
    script = reverie("completion", shell).stdout
    assert mark in script
    assert "To install it" in script
    assert f"reverie completion {shell} >" in script
    if shell == "zsh":
        assert script.startswith("#compdef")
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def _completed(reverie: Command, words: str) -> list[str]:
    env = {
        **reverie.env,
        "_REVERIE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "reverie"], env=env, cwd=reverie.work, capture_output=True, text=True, check=True
    )
    return [line.split(",", 1)[1] for line in done.stdout.splitlines()]


def test_commands_options_and_sessions_are_completed(reverie: Command) -> None:
    session = reverie.events("hello")[0]["session_id"]
    assert _completed(reverie, "reverie se") == ["sessions", "settings"]
    assert "--max-rounds" in _completed(reverie, "reverie run --max")
    assert _completed(reverie, "reverie sessions show ") == [session]
    assert _completed(reverie, f"reverie run --resume {session[:3]}") == [session]
