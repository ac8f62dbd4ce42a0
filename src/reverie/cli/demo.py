"""`reverie demo`: a real conversation on the embedded model, in a folder of its own, with no key and no network.

Nothing is acted: the tools run, the transcript is written, the second session reads it. To tell more of the story,
add a scene to `SCENES`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reverie.cli.chat_view import ChatView
    from reverie.cli.running import Signals
    from reverie.session.session import Session
    from reverie.settings import Settings
    from reverie.types import Usage

_KEY_S = 0.008


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the folder with the project and the transcript, and say where it is.")
def command(keep: bool) -> int:
    """Play a short conversation, without a key or a network.

    Writes a little project into a temporary folder, asks the embedded model about it with real tool calls, closes the
    session, opens it again and asks what was said before. Your own files and sessions are not touched.

    \b
    Examples:
      reverie demo
      reverie demo --keep
    """
    import shutil
    import tempfile

    from reverie.cli.running import run_async

    folder = Path(tempfile.mkdtemp(prefix="reverie-demo-")).resolve()
    try:
        code = run_async(lambda signals: _play(signals, folder, keep))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return code


@dataclass(slots=True)
class Stage:
    """What the scenes share: where they play, what is shown, and what it all added up to."""

    folder: Path
    settings: Settings
    view: ChatView
    signals: Signals
    session_id: str = ""
    transcript: Path | None = None
    rounds: int = 0
    calls: list[str] = field(default_factory=list[str])
    usage: list[Usage] = field(default_factory=list["Usage"])

    @property
    def project(self) -> Path:
        return self.folder / "ferry-times"

    async def open(self, resume: str | None = None) -> Session:
        from reverie.session.session import Session

        session = await Session.open(cwd=self.project, model="embedded", resume=resume, settings=self.settings)
        self.signals.cancel = session.cancel
        self.session_id, self.transcript = session.id, session.parts.places.transcript(session.id)
        return session

    async def say(self, session: Session, text: str) -> None:
        """One turn, shown as the chat would show it."""
        from reverie.errors import Cancelled, ReverieError
        from reverie.events import ToolStarted, TurnEnded

        _type(self.view, text)
        self.view.begin()
        async with aclosing(session.send(text)) as events:
            async for event in events:
                self.view.show(event)
                if isinstance(event, ToolStarted):
                    self.calls.append(event.name)
                elif isinstance(event, TurnEnded):
                    self.rounds += event.rounds
                    self.usage.append(event.usage)
                    if event.reason != "answered":
                        kind = Cancelled if event.reason == "cancelled" else ReverieError
                        raise kind(event.error or f"The demo's turn ended without an answer ({event.reason}).")


Scene = Callable[[Stage], Awaitable[None]]


async def _first_talk(stage: Stage) -> None:
    """Three turns: searching, finding by name, running a command that only reads."""
    async with await stage.open() as session:
        await stage.say(session, "Which pier does it leave from?")
        await stage.say(session, "Is anything known about closures?")
        await stage.say(session, "By the way, my ferry is called Halcyon. Please run `wc -l ferry/*.py`.")


async def _next_day(stage: Stage) -> None:
    """Another process could be doing this: everything comes from the transcript."""
    before = stage.session_id
    stage.view.say(
        stage.view.paint.dim(f"── the session is closed; `reverie chat --resume {before[:8]}` opens it again ──")
    )
    stage.view.say()
    async with await stage.open(resume=before) as session:
        await stage.say(session, "What is my ferry called?")


SCENES: tuple[Scene, ...] = (_first_talk, _next_day)


async def _play(signals: Signals, folder: Path, keep: bool) -> int:
    from reverie.cli.chat_view import ChatView
    from reverie.cli.demo_project import write_project
    from reverie.cli.output import paint_for
    from reverie.settings import load_settings

    began = time.monotonic()
    project = folder / "ferry-times"
    project.mkdir()
    write_project(project)
    # Nobody's settings, keys or flags: the demo is the same for everyone.
    env = {"HOME": str(folder), "REVERIE_HOME": str(folder / "home")}
    settings = load_settings(project, env=env, managed_dir=folder / "managed")
    view = ChatView(project, paint_for(sys.stdout))
    stage = Stage(folder, settings, view, signals)
    view.say(f"{view.paint.bold('Reverie')} on its embedded model: no key, no network. A ferry's timetable.")
    view.say()
    for scene in SCENES:
        await scene(stage)
    _totals(stage, time.monotonic() - began, keep)
    return 0


def _type(view: ChatView, text: str) -> None:
    """As if somebody typed it, on a terminal; at once elsewhere."""
    sys.stdout.write(view.paint.bold(view.paint.accent("›")) + " ")
    for char in text:
        sys.stdout.write(char)
        if sys.stdout.isatty():
            sys.stdout.flush()
            time.sleep(_KEY_S)
    sys.stdout.write("\n")
    sys.stdout.flush()


def _totals(stage: Stage, took: float, keep: bool) -> None:
    from collections import Counter

    from reverie.cli.output import plural, seconds, size, tokens

    say, dim = stage.view.say, stage.view.paint.dim
    used = ", ".join(f"{name} {count}×" for name, count in Counter(stage.calls).items())
    prompt, output = sum(one.prompt for one in stage.usage), sum(one.output_tokens for one in stage.usage)
    assert stage.transcript is not None
    lines = stage.transcript.read_bytes().count(b"\n")
    say(dim(f"── {plural(len(stage.usage), 'turn')}, {plural(stage.rounds, 'round')}, {seconds(took)} ──"))
    say(f"  tools       {used}")
    say(f"  tokens      {tokens(prompt)} in, {tokens(output)} out, at no cost")
    say(f"  transcript  {plural(lines, 'record')}, {size(stage.transcript.stat().st_size)}")
    say(f"              {stage.transcript}")
    if keep:
        say(f"  kept        {stage.folder}")
    else:
        say(dim("              (a temporary folder, removed now; --keep keeps it)"))
    say()
    say("Your turn: `reverie chat` in a project of yours.")
