"""Starts and watches the processes of a team. It does not run a model.

If a teammate dies, the lead gets a message, and unread messages return to their senders. When the lead has ended, the
others are ended too: SIGTERM, then SIGKILL. The commands of a killed member are killed as well.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from reverie.agents.messages.message import new_message
from reverie.agents.messages.structured import IdleNotification, IdleState, render
from reverie.agents.team.members import COLORS, MembershipState, Team, TeamMember
from reverie.agents.team.team_file import MemberPlan, TeamPlan
from reverie.cli.app import PIPE_CLOSED
from reverie.cli.event_loop import CANCELLED, CommandSignals
from reverie.cli.options import load_places
from reverie.cli.team.view import TeamView, TextTeamView
from reverie.errors import ReverieError
from reverie.flags import Flags
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.settings import Settings
from reverie.storage.atomic import make_private_dir
from reverie.storage.lease import Lease
from reverie.types import JsonObject

_LONGEST_LINE = 64 * 1_048_576
_LAST_WORDS = 300
_LAST_WORDS_S = 2.0
_LOOK_S = 0.05
_MARK = "_REVERIE_TEAM_MEMBER"


@dataclass(slots=True)
class _MemberProcess:
    plan: MemberPlan
    process: asyncio.subprocess.Process
    log: Path
    mark: str
    """An environment variable of this process and of all processes below it."""
    code: int | None = None


async def run_team(
    signals: CommandSignals, plan: TeamPlan, file: Path, cwd: Path, model: str | None, *, as_json: bool
) -> int:
    """Runs a team to its end and returns the exit code of the lead."""
    settings, places = load_places(cwd)
    team = Team(places, plan.team)
    on_terminal = sys.stdin.isatty() and sys.stderr.isatty() and not as_json
    view = TeamView() if as_json else TextTeamView(plan, cwd)
    make_private_dir(team.folder)
    with Lease.take(team.lock, info={"session": f"of the team {plan.team}", "file": str(file)}):
        about = {one.name: one.about or " ".join(one.prompt.split())[:120] for one in plan.members}
        members = [
            TeamMember(one.name, about[one.name], COLORS[number % len(COLORS)])
            for number, one in enumerate(plan.members)
        ]
        await asyncio.to_thread(team.create, plan.lead.name, members)
        supervisor = Supervisor(plan, file, cwd, model, team, settings, Flags.open(places, settings), view)
        signals.cancel = supervisor.stop
        with view:
            return await supervisor.run(ask=on_terminal)


@dataclass(slots=True)
class Supervisor:
    """The processes of one team."""

    _plan: TeamPlan
    _file: Path
    _cwd: Path
    _model: str | None
    _team: Team
    _settings: Settings
    _flags: Flags
    _view: TeamView
    _members: dict[str, _MemberProcess] = field(default_factory=dict[str, _MemberProcess])
    _stops: int = 0
    _unheard: bool = False

    def stop(self) -> bool:
        """Ctrl-C: the lead ends the team. Second time: SIGTERM to all members. Third time: SIGKILL."""
        self._stops += 1
        match self._stops:
            case 1:
                self._say("ending the team; Ctrl-C again ends it at once")
                self._signal([self._plan.lead.name], signal.SIGTERM)
            case 2:
                self._signal(self._members, signal.SIGTERM)
            case _:
                self._signal(self._members, signal.SIGKILL)
        return True

    async def run(self, *, ask: bool) -> int:
        """Runs until the lead and then all others have ended."""
        watching = list[asyncio.Task[None]]()
        try:
            for member in self._plan.members:
                if not self._stops:
                    await self._start(member, ask=ask and member.name == self._plan.lead.name)
            lead = self._members.get(self._plan.lead.name)
            if lead is None:
                return CANCELLED
            watching = [asyncio.create_task(self._watch(one)) for one in self._members.values()]
            if ask:
                self._view.answer_with(lambda name, allow, always: self._permit(name, allow, always))
            if self._plan.minutes is not None:
                asyncio.get_running_loop().call_later(self._plan.minutes * 60, self._time_is_over)
            await watching[0]
            return self._code(lead)
        finally:
            await asyncio.shield(asyncio.ensure_future(self._end_all(watching)))

    def _time_is_over(self) -> None:
        if not self._stops:
            self._say(f"{self._plan.minutes:g} minutes are over")
            self.stop()

    def _say(self, text: str) -> None:
        with suppress(BrokenPipeError):
            self._view.say(text)

    def _show_end(self, name: str, why: str) -> None:
        with suppress(BrokenPipeError):
            self._view.show_end(name, why)

    def _code(self, lead: _MemberProcess) -> int:
        if self._unheard:
            return PIPE_CLOSED
        if self._stops:
            return CANCELLED
        code = lead.code or 0
        return 1 if code < 0 else code

    # -- one member -----------------------------------------------------------------------------------------------

    async def _start(self, member: MemberPlan, *, ask: bool) -> None:
        words = ["team", "member", str(self._file), member.name, "--cwd", str(self._cwd)]
        words += ["--model", self._model] if self._model else []
        words += ["--ask"] if ask else []
        log = self._team.folder / "logs" / f"{member.name}.log"
        mark = secrets.token_hex(16)
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "reverie",
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C reaches only this process
                limit=_LONGEST_LINE,
                env={**self._settings.env, _MARK: mark},
            )
        self._members[member.name] = _MemberProcess(member, process, log, mark)
        self._view.show_start(member.name, process.pid)

    async def _watch(self, one: _MemberProcess) -> None:
        """Passes on the events of a member until it ends, then records its end."""
        hearing = asyncio.create_task(self._read_events(one))
        # Not `wait()`: it also waits for other processes that inherited the pipe.
        while (code := one.process.returncode) is None:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        one.code = code
        await asyncio.wait([hearing], timeout=_LAST_WORDS_S)
        hearing.cancel()
        if code < 0:
            await asyncio.to_thread(_end_what_it_left, one.mark)
        await asyncio.to_thread(self._record_end, one)

    async def _read_events(self, one: _MemberProcess) -> None:
        assert one.process.stdout is not None
        while True:
            try:
                line = await one.process.stdout.readline()
            except ValueError:  # longer than any line of ours
                continue
            if not line:
                break
            self._pass_on(one.plan.name, line)

    def _pass_on(self, name: str, line: bytes) -> None:
        try:
            event: Any = load_json(line)
        except ValueError:
            return
        if isinstance(event, dict) and not self._unheard:
            try:
                self._view.show_event(name, cast(JsonObject, event))
            except BrokenPipeError:  # nobody reads our output any more
                self._unheard = True
                self.stop()

    def _record_end(self, one: _MemberProcess) -> None:
        """Records that a member ended. A member that did not say goodbye has failed, and the lead gets a message."""
        name, lead = one.plan.name, self._plan.lead.name
        place = next((member.place for member in self._team.read()[1] if member.name == name), MembershipState.EXPECTED)
        if place is MembershipState.ENDED:  # if it was killed after its goodbye, only its background work is lost
            self._show_end(name, _end_reason(one) if (one.code or 0) < 0 else "")
            return
        why = _end_reason(one)
        self._show_end(name, why)
        with suppress(ReverieError):  # the lead may have ended too
            if name != lead:
                notice = render(IdleNotification(IdleState.FAILED, why))
                message = new_message(name, lead, notice, summary=f"{name} has failed")
                self._team.inbox(lead).put(message, is_open=lambda: self._team.is_reachable(lead))
        with suppress(ReverieError):
            self._team.depart(name, MembershipState.FAILED, why)

    async def _permit(self, id: str, allow: bool, always: bool) -> None:
        from reverie.runtime.live_client import ask_live

        there = await asyncio.to_thread(self._team.presence, self._plan.lead.name)
        if there is not None and there.socket:
            request: JsonObject = {"do": "permit", "id": id, "allow": allow, "always": always}
            try:
                said = await asyncio.to_thread(ask_live, Path(there.socket), request)
                if said.get("settled") is not True:
                    self._say("too late: that question is no longer open")
            except ReverieError as error:
                self._say(str(error))

    # -- the end --------------------------------------------------------------------------------------------------

    async def _end_all(self, watching: list[asyncio.Task[None]]) -> None:
        """Ends all running members: SIGTERM (unless they said goodbye), then SIGKILL."""
        left = self._still_running()
        if left:
            places = {member.name: member.place for member in self._team.read()[1]}
            staying = [name for name in left if places.get(name) is not MembershipState.ENDED]
            if staying:
                self._say(f"ending {', '.join(staying)}")
                self._signal(staying, signal.SIGTERM)
            loop = asyncio.get_running_loop()
            until = loop.time() + self._flags.number("messages.kill_s", self._settings.messages.kill_s)
            while self._still_running() and loop.time() < until:  # noqa: ASYNC110 (as above)
                await asyncio.sleep(_LOOK_S)
            self._signal(self._still_running(), signal.SIGKILL)
        await asyncio.gather(*watching, return_exceptions=True)

    def _still_running(self) -> list[str]:
        return [name for name, one in self._members.items() if one.process.returncode is None]

    def _signal(self, names: Iterable[str], number: signal.Signals) -> None:
        for name in names:
            one = self._members.get(name)
            if one is None or one.process.returncode is not None:
                continue
            with suppress(ProcessLookupError):
                one.process.send_signal(number)


def _end_what_it_left(mark: str) -> None:
    """Kills the commands of a killed member, where there is /proc."""
    wanted = f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # a process of another user, or one that is gone
            if wanted in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def _end_reason(one: _MemberProcess) -> str:
    code = one.code or 0
    how = (
        f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with code {code}"
    )
    try:
        said = read_regular_text(one.log, errors="replace").strip().splitlines()
    except OSError:
        said = []
    return f"{how}: {said[-1][:_LAST_WORDS]}" if said else how
