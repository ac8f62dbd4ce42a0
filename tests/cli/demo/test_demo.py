"""`reverie demo` and `reverie completion`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import PROMPT, Terminal

LAYERS = ("1 tool results", "3 session notes", "4 compaction", "5 extraction", "6 dreaming", "6 undone", "7 agents")


def test_the_demo_tells_three_days_from_real_sessions_and_the_same_every_time(reverie: Command, tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    reverie.extra["TMPDIR"] = str(folder)
    (folder / "reverie-demo-picture").mkdir()
    shown = reverie("demo").stdout
    for layer in LAYERS:
        assert f"▸ {layer}" in shown
    assert "ferry/settings.py:9: pier: int = 7" in shown
    assert re.search(r"4 compaction +\S+k → \S+k tokens from the notes, without a request", shown)
    learnt = re.search(r"5 extraction +(feedback_\w+\.md)", shown)
    assert learnt is not None
    tuesday = shown[shown.index("Tuesday") :]
    assert f"From memory, {learnt[1]}" in tuesday, "the next session knows"
    assert "every byte is restored" in tuesday
    assert [path.name for path in folder.iterdir()] == ["reverie-demo-picture"], "only what is somebody else's is left"
    assert not reverie.home.exists()
    assert list(reverie.work.iterdir()) == []
    again = _figures_are_those_of_the_ledger(reverie, tmp_path / "again")
    stories = [text.partition("Played in")[0] for text in (shown, again)]
    # The last digits of figures, and how long their bars are, depend on random ids.
    assert len({re.sub(r"[\d.█·┊]+", "0", story) for story in stories}) == 1


def _figures_are_those_of_the_ledger(reverie: Command, temporary: Path) -> str:
    """Plays the demo again, and keeps it; the settings of the user are not read."""
    (temporary / "reverie-demo-picture").mkdir(parents=True)
    reverie.extra["TMPDIR"] = str(temporary)
    reverie.home.mkdir()
    (reverie.home / "settings.toml").write_text("this is no TOML")
    reverie.extra["REVERIE_MODEL"] = "nonsense"
    shown = reverie("demo", "--keep").stdout
    assert "every byte is restored" in shown
    del reverie.extra["REVERIE_MODEL"]
    (folder,) = (path for path in temporary.glob("reverie-demo-*") if path.name != "reverie-demo-picture")
    reverie.home, reverie.work = folder / "home", folder / "ferry-times"
    (reverie.home / "settings.toml").write_text(f'[catalogue]\nfiles = ["{folder / "catalogue.toml"}"]\n')
    booked = json.loads(reverie("cost", "--all", "--json").stdout)["total"]
    cost = re.search(r"cost +\$(\S+) with the cache, \$(\S+) without it", shown)
    assert cost is not None
    assert abs(float(cost[1]) - booked["cost_usd"]) < 0.002 and abs(float(cost[2]) - booked["uncached_usd"]) < 0.002
    assert f"{booked['hit_rate']:.0%} read from the cache" in shown
    assert {"monday", "tuesday"} <= set(reverie("sessions", "list").stdout.split())
    return shown


def test_the_demo_on_a_terminal_goes_on_in_a_chat_that_knows_what_was_learnt(reverie: Command, tmp_path: Path) -> None:
    with Terminal("demo", "--fast", cwd=reverie.work, env={**reverie.env, "TMPDIR": str(tmp_path)}) as terminal:
        terminal.until("Enter opens a chat", seconds=60)
        assert "Which pier" in terminal.raw, "each line comes at once"
        terminal.press("\r")
        terminal.until("embedded", seconds=20)
        terminal.say("May I write times with am and pm?")
        terminal.until("From memory, feedback_", seconds=20)
        terminal.until(PROMPT)
        terminal.press("\x04")
        assert terminal.ended() == 0


def test_the_demo_on_a_terminal_can_be_stopped(reverie: Command, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    with Terminal("demo", cwd=reverie.work, env={**reverie.env, "TMPDIR": str(folder)}) as terminal:
        terminal.until("Which pier")
        assert "Which pier" not in terminal.raw, "it is typed letter by letter"
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
    assert _completed(reverie, "reverie se") == ["sessions", "settings", "serve"]
    assert "--max-rounds" in _completed(reverie, "reverie run --max")
    assert _completed(reverie, "reverie sessions show ") == [session]
    assert _completed(reverie, f"reverie run --resume {session[:3]}") == [session]
