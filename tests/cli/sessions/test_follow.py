"""`sessions follow` and `extract --new`: recorded sessions are copied and learnt from, each in its own project."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from pathlib import Path

import pytest

from reverie.paths import Places
from reverie.session.learning_followed import learn_from_session
from reverie.settings import load_settings
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.session_files import read_session
from reverie.storage.transcript.view import View
from reverie.types import TextBlock
from tests.cli.conftest import Command
from tests.cli.sessions.test_imported import SAMPLE, Run, run
from tests.counts import count
from tests.shared_data import data, sample
from tests.storage.following.recorded import ID, said, session_file
from tests.waiting import LIMIT_S

__all__ = ["run"]  # the fixture

HOOKS = SAMPLE.with_name("claude-code-hooks.jsonl")
GREEN, PIPE = "Please remember: the pilot boat is painted green.", "Please remember: the pipe organ needs new bellows."


def memories(folder: str) -> str:
    settings = load_settings(Path(folder))
    root = Places.of(Path(folder), settings).default_memory
    return "\n".join(path.read_text() for path in sorted(root.glob("*_*.md")))


def test_sources_are_remembered_updated_and_forgotten(run: Run, tmp_path: Path) -> None:
    assert "Nothing is followed yet" in run("sessions", "follow", code=2)
    source = tmp_path / "sessions"
    file = session_file(source, "How deep is the quay?")
    (source / "bad.jsonl").touch()
    shown = run("sessions", "follow", str(source))
    assert "1 new, 0 grew, 0 unchanged, 0 left alone, 1 failed." in shown
    assert "2 messages  /harbour/pilot" in shown and "it is empty." in shown
    (source / "bad.jsonl").unlink()
    assert "0 new, 0 grew, 1 unchanged, 0 left alone, 0 failed." in run("sessions", "follow")
    file.write_text(file.read_text() + said(1, "And the east quay?", cwd="/harbour/pilot"))
    found = json.loads(run("sessions", "follow", "--json"))
    assert (found["grew"], found["sessions"][0]["session"], found["sessions"][0]["messages"]) == (1, ID, 2)
    assert "is not followed" in run("sessions", "follow", "--stop", "/nowhere", code=2)
    run("sessions", "follow", "--stop", str(source))
    assert "Nothing is followed yet" in run("sessions", "follow", code=2)
    assert "own home" in run("sessions", "follow", str(tmp_path / "home" / "projects"), code=2)
    assert "is not there" in run("sessions", "follow", str(tmp_path / "none"), code=2)
    assert "How deep is the quay?" in run("sessions", "show", ID[:8])


def test_import_takes_folders_and_what_is_new(run: Run, tmp_path: Path) -> None:
    file = session_file(tmp_path / "deep" / "er", "one")
    assert "2 messages" in run("sessions", "import", str(tmp_path / "deep"))
    file.write_text(file.read_text() + said(1, "two", cwd="/harbour/pilot"))
    assert "2 messages" in run("sessions", "import", str(file))
    assert "one" in run("sessions", "list"), "an import goes to this folder"


def test_each_session_is_learnt_once_and_into_its_own_project(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "sessions"
    one = session_file(source, GREEN, cwd="/harbour/pilot")
    session_file(source, PIPE, cwd="/church", session=ID.replace("5e55", "5e56"))
    run("sessions", "follow", str(source))
    planned = run("extract", "--new", "--dry-run")
    assert "painted green" in planned and not memories("/harbour/pilot")
    assert "2 turns of 2 transcripts read" in run("extract", "--new")
    assert "painted green" in memories("/harbour/pilot") and "organ" not in memories("/harbour/pilot")
    assert "bellows" in memories("/church") and "boat" not in memories("/church")
    assert "0 turns of 0 transcripts read" in run("extract", "--new")
    assert "0 turns of 1 transcript read" in run("extract", str(one), "-C", "/harbour/pilot")
    one.write_text(one.read_text() + said(1, "Please remember: ropes are blue.", cwd="/harbour/pilot"))
    assert "1 turn of 1 transcript read" in run("extract", str(one), "-C", "/harbour/pilot")
    (shorter,) = (copy for copy in tmp_path.glob("home/projects/*/*.jsonl") if copy.stem == ID)
    assert "0 turns of 1 transcript read" in run("extract", str(shorter), "-C", "/harbour/pilot"), "not yet grown"
    run("sessions", "follow")
    assert "0 turns of 1 transcript read" in run("extract", "--new"), "the same turn, by the other path"
    assert "--new" in run("extract", code=2) and "--again" in run("extract", "--new", "--again", code=2)


def test_a_key_in_the_environment_is_no_reason_to_spend(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-never-used")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    session_file(tmp_path / "sessions", GREEN, PIPE)
    run("sessions", "follow", str(tmp_path / "sessions"))
    assert json.loads(run("extract", "--new", "--dry-run", "--json"))["model"] == "embedded"
    asked = run("extract", "--new", "--dry-run", "-m", "anthropic:claude-haiku-4-5", code=2)
    assert "2 turns of 1 session would go to anthropic:claude-haiku-4-5" in asked and "--yes" in asked
    assert "cannot be reached" in run("extract", "--new", "-m", "anthropic:claude-haiku-4-5", "--yes")
    (tmp_path / "home" / "settings.toml").write_text('[connect]\nmodel = "anthropic:claude-haiku-4-5"\n')
    assert "would go to anthropic:claude-haiku-4-5" in run("extract", "--new", code=2)
    assert "2 turns of 1 transcript read" in run("extract", "--new", "-m", "embedded")
    assert "0 turns of 0 transcripts read" in run("extract", "--new"), "nothing is left to ask about"


def test_in_the_background_the_budget_of_the_day_counts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("[budget]\nbackground_tokens_per_day = 1\n")
    session_file(tmp_path / "s", GREEN, PIPE)
    run("sessions", "follow", str(tmp_path / "s"))
    (copy,) = tmp_path.glob("home/projects/*/*.jsonl")

    def learn() -> tuple[int, str]:
        report = asyncio.run(learn_from_session(copy, Path("/harbour/pilot"), in_background=True))
        return report.turns, report.stopped

    assert learn() == (2, learn()[1]) and "tokens it may use a day" in learn()[1], "the first turn used it up"
    (book,) = tmp_path.glob("home/ledger/*.jsonl")
    booked = [json.loads(line) for line in book.read_text().splitlines()]
    assert {line["purpose"] for line in booked} == {"extraction"}
    assert len(booked) <= 2, "nothing is sent once the budget is spent"
    shown = run("cost", "-C", "/harbour/pilot")
    assert "Learning in the background, beside the table: " in shown
    assert "`main` of 1 followed session is what Claude Code or Codex has spent" in shown
    assert json.loads(run("cost", "-a", "--json"))["service"]["tokens"] > 0
    assert "Learning in the background" not in run("cost", ID), "of one session, only its own"
    book.unlink()  # another day
    assert learn() == (1, "") and "bellows" in memories("/harbour/pilot")
    assert learn() == (0, "")


@pytest.mark.parametrize("file", [HOOKS, next(sample("codex-sessions").glob("*.jsonl"))], ids=["claude-code", "codex"])
def test_what_a_hook_adds_is_not_the_users(run: Run, tmp_path: Path, file: Path) -> None:
    run("sessions", "follow", str(file))
    (copy,) = tmp_path.glob("home/projects/*/*.jsonl")
    for path in (file, copy):
        history = View.of(conversation(read_session(path).records)).history
        blocks = [block for entry in history for block in entry.message.content if isinstance(block, TextBlock)]
        theirs = "\n".join(block.text for block in blocks if block.origin.is_users)
        assert "boat is painted green" in theirs or "west quay" in theirs
        assert "harbour master" not in theirs and "keeper" not in theirs
    run("extract", "--new")
    assert "master" not in memories("/harbour/pilot") and "keeper" not in memories("/harbour/pilot")
    assert "green" in memories("/harbour/pilot") or file != HOOKS


def test_a_dream_sees_only_its_own_project(run: Run, tmp_path: Path, prefix_watch: Path) -> None:
    for number in range(6):
        session_file(tmp_path / "s", GREEN, cwd="/harbour/pilot", session=ID.replace("0001", f"{number:04}"))
        session_file(tmp_path / "s", PIPE, cwd="/church", session=ID.replace("0001", f"1{number:03}"))
    run("sessions", "follow", str(tmp_path / "s"))
    run("extract", "--new")
    before = prefix_watch.stat().st_size
    run("dream", "--now", "-C", "/harbour/pilot")
    asked = prefix_watch.read_text()[before:]
    assert "-harbour-pilot" in asked and "-church" not in asked and "bellows" not in asked
    assert "organ" not in memories("/harbour/pilot") and "boat" not in memories("/church")


@pytest.mark.soak
def test_every_command_works_on_the_recorded_sessions(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "sessions"
    source.mkdir()
    files = sorted(data("transcripts").glob("*.jsonl"), key=lambda file: file.stat().st_size)[: count(2, 32)]
    for file in files:
        shutil.copy(file, source)
    run("sessions", "follow", str(source))
    listed = json.loads(run("sessions", "list", "--all", "--json"))["sessions"]
    assert len(listed) == len(files)
    for one in listed:
        name, cwd = one["id"], one["cwd"]
        for words in ("sessions show", "sessions path", "cost", "context", "health", "notes", "notes --update"):
            assert run(*words.split(), name).strip()
        run("log", "-s", name)
        run("tasks", "-s", name, code=2)
        for words in (
            "compact --preview",
            "rewind",
            "pin",
            "pin fog",
            "btw What?",
            "rewind -1",
            "compact undo",
            "compact",
        ):
            assert run(*words.split(), "-s", name).strip()
        run("recall", "What about the build?", "-C", cwd)
        run("extract", one["path"], "--dry-run")
        run("run", "-q", "-C", cwd, "--resume", name, "Thanks")
    assert f"{len(files)} unchanged" in run("sessions", "follow")


def test_watching_copies_what_comes_until_ctrl_c(reverie: Command, tmp_path: Path) -> None:
    file = session_file(tmp_path / "s", "one")
    watching = reverie.start("sessions", "follow", str(tmp_path / "s"), "--watch")
    assert watching.stdout is not None
    assert b"new" in watching.stdout.readline() and b"1 new" in watching.stdout.readline()
    file.write_text(file.read_text() + said(1, "two", cwd="/harbour/pilot"))
    assert b"grew" in watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    assert watching.wait(LIMIT_S) == 0
