"""`/dream` in the chat, on a terminal: begun, watched, judged, taken back and killed with what a person types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import PROMPT, Terminal
from tests.layers.dreams import BAKERY, GOOD, JOINED, House, house, writes


@pytest.fixture
def place(reverie: Command, tmp_path: Path) -> House:
    folder = tmp_path / "bakery"
    folder.mkdir()
    reverie.extra |= {"REVERIE_MEMORY_PATH": str(folder / "memory"), "REVERIE_DISABLE_MEMORY": "0"}
    reverie.extra |= {"REVERIE_FLAG_EXTRACTION": "0"}
    return house(folder)


def chat(reverie: Command, model: str) -> Terminal:
    terminal = Terminal("chat", "--model", model, cwd=reverie.work, env=reverie.env, columns=160)
    terminal.until(PROMPT)
    return terminal


def say(terminal: Terminal, text: str, answer: str) -> str:
    terminal.press(f"{text}\r")
    shown = terminal.until(answer)
    return shown + terminal.until(PROMPT)


def mode(reverie: Command, name: str) -> None:
    reverie.home.mkdir(parents=True, exist_ok=True)
    (reverie.home / "settings.toml").write_text(f'[dream]\nmode = "{name}"\n')


def test_a_dream_is_begun_told_looked_at_and_taken_back(reverie: Command, place: House) -> None:
    with chat(reverie, place.script(GOOD)) as terminal:
        say(terminal, "/dream status", "not yet (transcripts)")
        terminal.press("/dream\r")
        terminal.until("Dreaming in the background (dream-")
        terminal.until("a dream put memory in order: project_oven.md, project_oven_copy.md")
        assert place.files["project_oven.md"] == JOINED
        shown = say(terminal, "/dream review", "joined with its copy")
        assert "+It needs a 63 A fuse." in terminal.shown and "← project_oven_copy.md" in terminal.shown, shown
        say(terminal, "/dream status", "landed")
        say(terminal, "/dream undo", "Undone:")
        assert place.files == dict(BAKERY)
        say(terminal, "/dream undo", "taken back already")
        say(terminal, "/dream dance", "Write /dream, or /dream with one of status, review")


def test_what_waits_is_told_at_the_start_and_rejected_or_accepted(reverie: Command, place: House) -> None:
    mode(reverie, "ask")
    with chat(reverie, place.script(GOOD)) as terminal:
        say(terminal, "/dream accept", "No dream waits for you")
        terminal.press("/dream now\r")
        terminal.until("a dream waits for you, it would change: project_oven.md, project_oven_copy.md")
        assert place.files == dict(BAKERY)
        say(terminal, "/dream review", "/dream accept applies it, /dream reject drops it.")
        assert "none of 9 statements is lost" in terminal.shown
        say(terminal, "/dream reject", "Dropped dream")
        say(terminal, "/dream review", "No dream waits for you, and none changed memory.")
        terminal.press("/dream\r")
        terminal.until("a dream waits for you")
    with chat(reverie, place.script(GOOD)) as terminal:
        assert "1 dream waits for you: /dream review" in terminal.shown
        say(terminal, "/dream accept", "Changed: project_oven.md, project_oven_copy.md.")
        assert place.files["project_oven.md"] == JOINED


def test_a_dry_run_shows_what_it_would_change_and_changes_nothing(reverie: Command, place: House) -> None:
    with chat(reverie, place.script(GOOD)) as terminal:
        terminal.press("/dream dry-run\r")
        terminal.until("a dream would change: project_oven.md, project_oven_copy.md")
        say(terminal, "/dream review", "This was a dry run")
        assert "+It needs a 63 A fuse." in terminal.shown
        say(terminal, "/dream accept", "No dream waits for you")
    assert place.files == dict(BAKERY)


def test_one_that_finds_nothing_or_fails_says_so_to_who_began_it(reverie: Command, place: House) -> None:
    with chat(reverie, place.script("say Nothing had to be changed.\n")) as terminal:
        terminal.press("/dream\r")
        terminal.until("a dream found everything in order")
    with chat(reverie, place.script(writes(dict.fromkeys(BAKERY, ""), "- MEMORY.md: reset"))) as terminal:
        terminal.press("/dream\r")
        terminal.until("the dream came to nothing: The dream would lose")
        say(terminal, "hello", "Good morning.")
    assert place.files == dict(BAKERY)


def test_a_running_one_is_watched_and_killed(reverie: Command, place: House) -> None:
    mind = writes({"project_oven.md": JOINED}, "x").rpartition("say")[0] + "wait 1000\nsay late\n"
    with chat(reverie, place.script(mind)) as terminal:
        terminal.press("/dream\r")
        terminal.until("Dreaming in the background")
        terminal.until("1 task: ")
        for _ in range(50):
            if "updating: 2 tool calls; project_oven.md" in say(terminal, "/dream status", "mode"):
                break
        else:
            pytest.fail(terminal.shown[-2_000:])
        say(terminal, "/dream", "a dream is under way already")
        say(terminal, "/dream kill", ": killed")
        say(terminal, "/dream kill", "No dream is running in this session.")
    assert place.files == dict(BAKERY) and not (place.memory / ".consolidate-lock").exists()


def test_without_memory_nothing_is_dreamt(reverie: Command) -> None:
    done = reverie("chat", "--model", reverie.script("say hi\n"), stdin="/dream\n")
    assert "Memory is off, so there are no dreams." in done.stdout + done.stderr
