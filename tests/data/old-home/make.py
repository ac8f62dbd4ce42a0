"""Makes home.tar.gz: a small home as the version that runs this leaves it behind.

Run it from the root of a checkout of that version: `.venv/bin/python tests/data/old-home/make.py`. It works through
public surfaces only (commands, `Session`, scripts) in /tmp/reverie-old-home, which it removes first and last.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from datetime import timedelta
from pathlib import Path

from reverie.models.request_log import MAIN, LoggedRequest, read_log

ROOT = Path("/tmp/reverie-old-home")
HOME, WORK, SHARED, PLAYS = ROOT / "home", ROOT / "project", ROOT / "shared", ROOT / "plays"
MEMORY = HOME / "projects" / "-tmp-reverie-old-home-project" / "memory"
HERE = Path(__file__).resolve().parent
ENV = {
    **{key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "LC_ALL")},
    "HOME": str(ROOT),
    "REVERIE_HOME": str(HOME),
    "REVERIE_REQUEST_LOG": str(ROOT / "requests.jsonl"),
}

SETTINGS = f"""\
[window]
context_window = 48_000

[notes]
first_tokens = 2_000
growth_tokens = 2_000
growth_calls = 1

[messages]
poll_ms = 50

[team]
sharing = "folder"
folder = "{SHARED}"
"""
FLAGS = "team_memory = true\n[tool_results.limits]\nBash = 8_000\n"
LOCAL = '[permissions]\nallow = ["Bash(make lamps:*)"]\n'
STATE = "_What is being worked on right now, what is half done, and what comes next._"

LAMPS = f"""\
repeat forever
  call Read {{"file_path": "f{{turn}}.txt"}}
  ---
  say I have read file {{turn}}.
end

when /the long log/
  call Bash {{"command": "cat lamps.log"}}
  ---
  say The log is long; lamp 7 is out.
end
when /two parts/
  call Agent {{"description": "part one", "prompt": "Do part one."}}
  call Agent {{"description": "part two", "prompt": "Do part two."}}
  ---
  say Both parts are done.
end

[agent]
say My part is done.

[notes]
call Edit {{"file_path": "{HOME}/projects/-tmp-reverie-old-home-project/lamps/session-memory/summary.md", \
"old_string": "{STATE}", "new_string": "{STATE}\\n\\nLamp 7 is out; the files are being read."}}
---
say The notes are up to date.

[compaction]
say <analysis>a draft</analysis><summary>## What is wanted, and why
| The harbour lamps are looked after. Lamp 7 is out.</summary>
"""


def topic(name: str, kind: str, text: str, trust: str = "") -> str:
    mark = f"trust: {trust}\n" if trust else ""
    return f"---\nname: {name}\ndescription: {text}\ntype: {kind}\n{mark}---\n\n{text}.\n"


def reverie(*args: str, stdin: str = "", env: dict[str, str] | None = None, cwd: Path = WORK) -> str:
    """One command in the project; its output."""
    done = subprocess.run(
        [sys.executable, "-m", "reverie", *args],
        cwd=cwd,
        env={**ENV, **(env or {})},
        input=stdin,
        text=True,
        capture_output=True,
        timeout=120,
    )
    print(f"$ reverie {' '.join(args)[:100]}\n{done.stdout}{done.stderr}", flush=True)
    assert done.returncode == 0, f"exit code {done.returncode}"
    return done.stdout


def play(name: str, text: str) -> str:
    (PLAYS / f"{name}.script").write_text(text)
    return f"scripted:{PLAYS / name}.script"


def lay_out() -> None:
    shutil.rmtree(ROOT, ignore_errors=True)
    for folder in (HOME, WORK / ".reverie" / "agents", SHARED, PLAYS):
        folder.mkdir(parents=True)
    HOME.chmod(0o700)
    (HOME / "settings.toml").write_text(SETTINGS)
    (HOME / "flags.toml").write_text(FLAGS)
    (WORK / ".reverie" / "settings.local.toml").write_text(LOCAL)
    (WORK / "AGENTS.md").write_text("The harbour lamps are numbered from the pier.\n")
    (WORK / "lamps.log").write_text("".join(f"{n:04} lamp {n % 9} burns all night\n" for n in range(400)))
    for number in range(1, 31):
        (WORK / f"f{number}.txt").write_text(f"file {number}: lamp {number} of the harbour burns all night long\n" * 25)
    (WORK / ".reverie" / "agents" / "reviewer.md").write_text(
        "---\nname: reviewer\ndescription: reviews Makefiles\nmemory: user\n---\nYou review.\n"
    )
    (SHARED / "project_freeze.md").write_text(
        topic("Freeze", "project", "Releases stop on 2026-12-01 for the audit of the harbour")
    )


def memories() -> None:
    """Every type, several versions, one of them taken back."""
    reverie("remember", "Integration tests use a real database, because a mock hid a broken migration")
    reverie("remember", "I am Mara and I look after the harbour lamps", "--type", "user")
    reverie("remember", "The staging port is 8080", "--type", "project")
    reverie("remember", "The staging port is 8081", "--type", "project")
    reverie("remember", "The lamp dashboard is at https://lamps.example.org/board")
    reverie("remember", "The kiln is fired on Mondays")
    reverie("memory", "undo", "latest")
    reverie("memory", "sync")


async def lamps() -> None:
    """The long session: results on disk and cleared, notes, forks, recalled memories, compactions, an undo, a pin."""
    from reverie.storage.session_log import utc_now

    from reverie.session import Session
    from reverie.types import Purpose

    model = play("lamps", LAMPS)

    async def turns(session: Session, *texts: str) -> None:
        for text in texts:
            async for _ in session.send(text):
                pass
            await session.tasks.settle(Purpose.NOTES, 30)

    early = lambda: utc_now() - timedelta(hours=3)  # noqa: E731
    async with await Session.open(cwd=WORK, model=model, session_id="lamps", clock=early) as session:
        await turns(session, "Look at the long log of the lamps.", "Which port does staging use?")
        await turns(session, *(f"Read file number {number}, please." for number in range(3, 11)))
    async with await Session.open(cwd=WORK, model=model, resume="lamps") as session:
        await turns(session, "Read one more file, please.", "Do the two parts side by side.", "And another file.")
    reverie("pin", "Lamp 7 is never switched off.", "-s", "lamps")
    reverie("compact", "--up-to", "-2", "-s", "lamps")
    reverie("compact", "undo", "-s", "lamps")
    reverie("compact", "-s", "lamps")
    reverie("run", "--resume", "lamps", "-q", "Read the next file, please.")


def others() -> None:
    """A rewind, a turn stopped in the middle, a turn whose process was killed, an imported session, one by rules."""
    short = play("short", "say One.\n---\nsay Two.\n---\nsay Three.\n---\nsay Four.\n")
    for number, text in enumerate(("First question here.", "Second question here.", "Third question here.")):
        reverie("run", "-q", "-m", short, *(["--continue"] if number else []), text)
    reverie("rewind", "-1")
    reverie("run", "-q", "--continue", "Another third question.")
    slow = play("slow", 'call Bash {"command": "sleep 60"}\n---\nsay Slept.\n')
    for number in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen(
            [sys.executable, "-m", "reverie", "run", "--json", "-m", slow, "--permission-mode", "accept_all", "Sleep."],
            cwd=WORK,
            env=ENV,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "tool_started":
                break
        time.sleep(0.3)
        os.kill(process.pid, number)
        process.stdout.read()
        process.wait(30)
    foreign = ROOT / "foreign.jsonl"
    foreign.write_text("".join(json.dumps(record) + "\n" for record in claude_code()))
    reverie("sessions", "import", str(foreign))
    reverie("run", "-q", "-m", "embedded", "Which port does staging use?")


def claude_code() -> list[dict[str, object]]:
    """A conversation in the form another agent writes."""
    session, where = "5d1c6a52-0c2e-4f0e-9f5e-2a4a3c1b7d11", str(WORK)
    base = {"sessionId": session, "cwd": where, "version": "2.0.0", "gitBranch": "main", "isSidechain": False}
    contents: list[tuple[str, object]] = [
        ("user", "Which lamp stands at the end of the pier?"),
        (
            "assistant",
            [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_01", "name": "Read", "input": {"file_path": f"{where}/f1.txt"}},
            ],
        ),
        ("user", [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "file 1: lamp 1 of the harbour"}]),
        ("assistant", [{"type": "text", "text": "Lamp 1 stands there."}]),
    ]
    records: list[dict[str, object]] = []
    for number, (role, content) in enumerate(contents):
        message: dict[str, object] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{number}", "type": "message", "model": "claude-sonnet-4-5", "stop_reason": None}
            message["usage"] = {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 900 * number}
        records.append(
            {
                **base,
                "type": role,
                "uuid": f"00000000-0000-4000-8000-00000000000{number}",
                "parentUuid": f"00000000-0000-4000-8000-00000000000{number - 1}" if number else None,
                "timestamp": f"2026-10-0{number + 1}T09:00:00.000Z",
                "message": message,
            }
        )
    return records


def learning() -> None:
    """What an agent wrote by itself: inferred, held in the inbox, in the log of the day, in an agent's own memory."""
    guess = topic(
        "Commits", "feedback", "Write commit messages in the imperative, Mara reads them at night", "inferred"
    )
    page = topic("Kiln", "project", "Ivo loads the kiln on Thursdays")
    (WORK / "kiln.txt").write_text("Ivo loads the kiln on Thursdays.\n")
    writes = [
        ("feedback_commits.md", guess),
        ("project_kiln.md", page),
    ]
    lines = "".join(
        f"call Write {json.dumps({'file_path': str(MEMORY / name), 'content': text})}\n" for name, text in writes
    )
    model = play("learning", f'call Read {{"file_path": "kiln.txt"}}\n---\n{lines}---\nsay Noted.\n')
    reverie("run", "-q", "-m", model, "I am Mara. Write commit messages in the imperative; I read them at night.")

    day = time.strftime("%Y-%m-%d", time.gmtime())
    log = MEMORY / "logs" / day[:4] / day[5:7] / f"{day}.md"
    entry = json.dumps({"file_path": str(log), "content": "The lamps were cleaned today.\n"})
    reverie(
        "run",
        "-q",
        "-m",
        play("day", f"call Write {entry}\n---\nsay Logged.\n"),
        "The lamps were cleaned today.",
        env={"REVERIE_FLAG_DAILY_LOG": "1"},
    )

    own = HOME / "agent-memory" / "reviewer"
    tabs = json.dumps(
        {"file_path": str(own / "feedback_tabs.md"), "content": topic("Tabs", "feedback", "Use tabs in Makefiles")}
    )
    index = json.dumps({"file_path": str(own / "MEMORY.md"), "content": "- [Tabs](feedback_tabs.md) — tabs\n"})
    review = (
        'call Agent {"description": "review", "prompt": "Review the Makefile.", "subagent_type": "reviewer"}\n'
        f"---\nsay Reviewed.\n\n[agent]\ncall Write {tabs}\ncall Write {index}\n---\nsay Reviewed.\n"
    )
    reverie("run", "-q", "-m", play("review", review), "Use tabs in Makefiles. Have the Makefile reviewed.")


def dreaming() -> None:
    """Two memories that say the same are joined by a dream: one version, and the lock's date."""
    reverie("remember", "The foghorn is tested at noon", "--new", "--name", "Foghorn")
    reverie("remember", "The foghorn is tested at noon and it is loud", "--new", "--name", "Foghorn again")
    first, second = sorted(path.name for path in MEMORY.glob("*foghorn*.md"))
    joined = (MEMORY / second).read_text() if "loud" in (MEMORY / second).read_text() else ""
    joined = joined or (MEMORY / first).read_text()
    calls = "".join(f"call Read {json.dumps({'file_path': str(MEMORY / name)})}\n" for name in (first, second))
    writes = "".join(
        f"call Write {json.dumps({'file_path': str(MEMORY / name), 'content': text})}\n"
        for name, text in ((first, joined), (second, ""))
    )
    answer = f"say - {first}: joined with its copy\n| - {second}: joined into {first}\n"
    mind = play("dream", f"say Good morning.\n[dream]\n{calls}---\n{writes}---\n{answer}")
    reverie("dream", "--now", "-m", mind)


def team() -> None:
    """A team of processes, and a letter that nobody has read."""
    for file in (HERE.parents[2] / "examples" / "team").iterdir():
        shutil.copy(file, PLAYS / file.name)
    reverie("team", "run", "team.toml", cwd=PLAYS)
    from reverie.agents.letters import new_letter

    from reverie.agents.team import Team
    from reverie.paths import Places
    from reverie.settings import load_settings

    mailbox = Team(Places.of(PLAYS, load_settings(PLAYS)), "example").mailbox("writer")
    mailbox.put(new_letter("lead", "writer", "One more thing: lamp 7.", summary="lamp 7"))


def _line(request: LoggedRequest) -> dict[str, object]:
    whole = dataclasses.asdict(request)
    parts = whole.pop("parts")
    return {**whole, "prefix": {"same": 0, "parts": parts}}


def pack() -> None:
    """Into one archive; of the requests sent, only the last of each conversation."""
    for name in ("indexes", "run"):
        shutil.rmtree(HOME / name, ignore_errors=True)  # derived, and sockets
    for path in HOME.rglob("session.lock"):  # what a killed process left names the machine
        path.write_text(path.read_text().replace(platform.node(), "old-machine"))

    log = ROOT / "requests.jsonl"
    last = {request.conversation: request for request in read_log(log) if request.thread == MAIN}
    log.write_text("".join(json.dumps(_line(request)) + "\n" for request in last.values()))

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry if entry.isfile() or entry.isdir() else None

    target = HERE / "home.tar.gz"
    with (
        target.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for path in sorted(ROOT.iterdir()):
            archive.add(path, path.name, filter=plain)
    print(f"{target.stat().st_size:,} bytes")


def main() -> None:
    os.environ.clear()
    os.environ.update(ENV)
    os.environ["TZ"] = "UTC"
    time.tzset()
    lay_out()
    memories()
    asyncio.run(lamps())
    others()
    learning()
    dreaming()
    team()
    pack()
    shutil.rmtree(ROOT)


if __name__ == "__main__":
    main()
