"""Runs `reverie team` as a real process for tests: scripts in, events out."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from tests import warm
from tests.waiting import LIMIT_S

Event = dict[str, Any]

REPORTER = """
when /asks you to end/
  say Good bye.
end
when /from="lead"/
  call Glob {"pattern": "*.txt"}
  ---
  call SendMessage {"to": "lead", "message": "My part is done: {result}", "summary": "part done"}
  ---
  say I have reported.
end
"""


@dataclass
class Run:
    """A team that runs, or ran."""

    process: warm.Process
    output: TextIO
    events: list[Event] = field(default_factory=list[Event])
    pids: dict[str, int] = field(default_factory=dict[str, int])

    def until(self, wanted: Callable[[Event], bool]) -> Event:
        """Reads on to the first such event."""
        for event in self:
            if wanted(event):
                return event
        raise AssertionError(f"it never came; the last were {self.events[-5:]}")

    def finish(self) -> int:
        """Reads to the end; the exit code."""
        for _ in self:
            pass
        return self.process.wait(LIMIT_S)

    def __iter__(self) -> Iterator[Event]:
        for line in self.output:
            event = json.loads(line)
            self.events.append(event)
            if event.get("what") == "started":
                self.pids[event["member"]] = event["pid"]
            yield event

    def of(self, member: str, kind: str) -> list[Event]:
        return [event for event in self.events if event.get("member") == member and event["type"] == kind]

    def answers(self, member: str) -> list[str]:
        return [str(event["text"]) for event in self.of(member, "turn_ended")]

    def ends(self) -> dict[str, str]:
        """How each member ended."""
        return {e["member"]: e["what"] for e in self.events if e["type"] == "team" and e["what"] in ("ended", "failed")}

    def alive(self) -> list[str]:
        return [name for name, pid in self.pids.items() if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@contextmanager
def team(folder: Path, file: str, **scripts: str) -> Iterator[Run]:
    """Starts the team of this file in `folder`; `scripts` become `<name>.script`. Nothing of it is left behind."""
    for name, text in scripts.items():
        (folder / f"{name}.script").write_text(text)
    (folder / "team.toml").write_text(file)
    output, theirs = os.pipe()
    process = warm.start("team", "team.toml", "--json", cwd=folder, stdout=theirs)
    os.close(theirs)
    with os.fdopen(output, encoding="utf-8") as lines:
        run = Run(process, lines)
        try:
            yield run
        finally:
            process.kill()
            process.wait()
            for pid in run.pids.values():
                if _is_alive(pid):
                    os.killpg(pid, signal.SIGKILL)


def members(*names: str, **more: str) -> str:
    """`[[teammates]]` for these names, each playing the script of its name unless `model` says otherwise."""
    lines = list[str]()
    for name in names:
        lines += ["[[teammates]]", f'name = "{name}"', more.get(name, f'model = "scripted:{name}.script"')]
    return "\n".join(lines)
