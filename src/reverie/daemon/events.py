"""What the hooks of Claude Code and Codex say and do, one method per event.

Answers come from memory and small files; nothing waits for a model. Work goes to `Jobs`. What cannot be answered is
answered with nothing: a hook must never stop somebody else's agent. Text that is not ours is quoted.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any, Final

from reverie.daemon.edits import Edits
from reverie.daemon.hook_call import AGENTS, HookCall
from reverie.daemon.jobs import Job, Jobs
from reverie.daemon.layer1 import keep_large
from reverie.daemon.projects import Project, Projects
from reverie.daemon.restore import Restorer, after_start, index_text
from reverie.daemon.told import Told, ToldBook, room_for_memories
from reverie.errors import ReverieError
from reverie.memory.recall.reminder import reminder_within
from reverie.models.tokens import PROSE_BYTES
from reverie.paths.places import hooks_folder
from reverie.plugins import guarded
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.types import JsonObject

MOST_CHARACTERS: Final = 9_500
"""Of one answer: both programs cut what is longer than 10,000."""
_MOST_SESSIONS: Final = 1_000
_MOST_ERRORS: Final = 5
_NOTHING: Final[JsonObject] = {}
_NO_ANSWER_S: Final = 0.6
_SLOW_EVENTS: Final = ("PreCompact", "PostCompact", "PostToolUse")
"""These may read a transcript or write a large file."""


@dataclass(slots=True)
class _AgentFigures:
    last_event: str = ""
    last_time: str = ""
    events: int = 0


class HookEvents:
    """Answers the hooks of all sessions of one home. `close` it at the end."""

    def __init__(self, home: Path, jobs: Jobs) -> None:
        self._jobs = jobs
        self._projects = Projects(home)
        self._told = ToldBook(hooks_folder(home))
        self._restorer = Restorer(home)
        self._log = BackgroundLog(home / "logs" / "background.jsonl")
        # The first is the thread of the rankers. Nothing slow may run there.
        self._quick = ThreadPoolExecutor(1, thread_name_prefix="reverie-hooks")
        self._slow = ThreadPoolExecutor(2, thread_name_prefix="reverie-hooks-slow")
        self._figures = {agent: _AgentFigures() for agent in AGENTS}
        self._sessions = OrderedDict[str, None]()
        self._errors = list[JsonObject]()
        self._edits = Edits()
        self._handlers: Mapping[str, Callable[[HookCall], JsonObject]] = {
            "SessionStart": self._session_start,
            "UserPromptSubmit": self._prompt,
            "PostToolUse": self._tool_result,
            "PreCompact": self._before_compaction,
            "PostCompact": self._after_compaction,
            "Stop": self._work,
            "SessionEnd": self._work,
        }

    async def handle(self, agent: str, event: str, payload: JsonObject, environment: Mapping[str, str]) -> JsonObject:
        """Returns what is added to `{"ok": true}`; nothing if something is wrong, which `status` then shows."""
        handler = self._handlers.get(event)
        if handler is None:
            return _NOTHING
        try:
            with guarded("a hook"):
                call = HookCall.read(agent, event, payload, environment)
                self._note(call)
                slow = event in _SLOW_EVENTS or (event == "SessionStart" and call.text("source") == "compact")
                pool = self._slow if slow else self._quick
                self._slow.submit(self._keep_edits, call)
                work = asyncio.get_running_loop().run_in_executor(pool, _safely, handler, call)
                if event == "PostCompact":  # has no answer: nobody waits for a large transcript
                    await asyncio.wait({work}, timeout=_NO_ANSWER_S)
                    return work.result() if work.done() else _NOTHING
                return await work
        except ReverieError as error:
            self._failed(agent, event, error)
            return _NOTHING

    async def close(self) -> None:
        """Waits for what is being answered and closes everything."""
        loop = asyncio.get_running_loop()
        self._restorer.digests.close()
        await loop.run_in_executor(None, self._slow.shutdown)
        await loop.run_in_executor(self._quick, self._projects.close)
        self._quick.shutdown()

    def status(self) -> JsonObject:
        """Returns the figures for `reverie connect --status`."""
        return {
            "agents": {
                agent: {"last_event": one.last_event, "last_time": one.last_time, "events": one.events}
                for agent, one in self._figures.items()
                if one.events
            },
            "sessions": len(self._sessions),
            "tokens_today": self._told.today(),
            "compactions": list(self._restorer.figures),
            "errors": list(self._errors),
        }

    # -- events ------------------------------------------------------------------------------------------------------

    def _session_start(self, call: HookCall) -> JsonObject:
        if call.is_subagent:
            return _NOTHING
        project = self._project(call)
        source = call.text("source")
        goes_on = source in ("resume", "fork")
        known = self._told.look(call.session) if goes_on else Told()
        parts = after_start(call, project, known, self._restorer)
        with self._told.changing(call.session) as (told, today):
            if not goes_on:
                told.empty_context()
            before = told.tokens
            whole = told.add("\n\n".join(parts.texts), project.settings.connect.day_tokens - today)
            told.pins += parts.pins if whole else ()
            today += told.tokens - before
            text = self._index(call, project, told, today, MOST_CHARACTERS - len(whole) - 2)
            whole = "\n\n".join(filter(None, (whole, text)))
            if source == "compact":
                told.restored = whole
        self._quick.submit(project.warm)
        if project.settings.memory.store and project.memory.switch.on:  # a job without a transcript only syncs
            self._jobs.ask(Job(call.agent, f"{call.session}-start", "", str(call.cwd), False, call.variables))
        return _context(call, whole)

    def _prompt(self, call: HookCall) -> JsonObject:
        prompt = call.prompt
        if not prompt:
            return _NOTHING
        project = self._project(call)
        limits = project.settings.connect
        known = self._told.look(call.session)
        found = project.recall(prompt, known.memories) if project.recalls else []
        if not found and not known.pending:
            return _NOTHING
        with self._told.changing(call.session) as (told, today):
            before = told.tokens
            pending = told.add(told.pending, limits.day_tokens - today)
            told.pending = ""
            room = room_for_memories(told, today + told.tokens - before, limits)
            fresh = [one for one in found if one.name not in told.memories]
            most = min(limits.prompt_characters, MOST_CHARACTERS - len(pending))
            text, shown = reminder_within(fresh, time(), most, room * PROSE_BYTES)
            told.memories += [one.name for one in shown]
            whole = "\n\n".join(filter(None, (pending, told.add(text, room))))
        return _context(call, whole)

    def _tool_result(self, call: HookCall) -> JsonObject:
        project = self._projects.of(call.cwd, call.variables)
        fields = keep_large(call, project)
        if not call.is_subagent and self._told.look(call.session).pending:
            with self._told.changing(call.session) as (told, today):
                if text := told.add(told.pending, project.settings.connect.day_tokens - today):
                    fields["additionalContext"] = text
                told.pending = ""
        return _output(call, fields) if fields else _NOTHING

    def _before_compaction(self, call: HookCall) -> JsonObject:
        project = self._projects.of(call.cwd, call.variables)
        if self._told.today() >= project.settings.connect.day_tokens:
            return _NOTHING
        text = self._restorer.before(call, project, MOST_CHARACTERS)
        return {"text": text} if text else _NOTHING

    def _after_compaction(self, call: HookCall) -> JsonObject:
        project = self._projects.of(call.cwd, call.variables)
        given = self._told.look(call.session).restored
        lost = self._restorer.after(call, project, given, MOST_CHARACTERS // 2)
        if lost:
            with self._told.changing(call.session) as (told, _today):
                told.pending = lost
        return _NOTHING

    def _work(self, call: HookCall) -> JsonObject:
        if not call.is_subagent:
            ended = call.event == "SessionEnd"
            transcript = str(call.transcript or "")
            self._jobs.ask(Job(call.agent, call.session, transcript, str(call.cwd), ended, call.variables))
        return _NOTHING

    # -- inside ------------------------------------------------------------------------------------------------------

    def _project(self, call: HookCall) -> Project:
        """Opens the project in the thread of the rankers, where others are closed."""
        if call.event != "SessionStart":
            self._projects.close_unused()
        return self._projects.of(call.cwd, call.variables)

    def _index(self, call: HookCall, project: Project, told: Told, today: int, room: int) -> str:
        if told.index or not project.recalls:
            return ""
        left = room_for_memories(told, today, project.settings.connect)
        sizes = (min(room, left * PROSE_BYTES), left)  # a character may have four bytes
        shown = (told.add(index_text(call, project, size), left) for size in sizes)
        text = next(filter(None, shown), "")
        told.index = bool(text)
        return text

    def _keep_edits(self, call: HookCall) -> None:
        """Keeps what others wrote into the memory as versions. What fails here is done by the next writer."""
        with suppress(ReverieError), guarded("keeping edits"):
            memory = self._projects.of(call.cwd, call.variables).memory
            if memory.switch.on:
                self._edits.look(call, memory.directory)

    def _note(self, call: HookCall) -> None:
        figures = self._figures[call.agent]
        figures.last_event, figures.events = call.event, figures.events + 1
        figures.last_time = datetime.now(UTC).isoformat(timespec="seconds")
        self._sessions[call.session] = None
        self._sessions.move_to_end(call.session)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    def _failed(self, agent: str, event: str, error: ReverieError) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        said = str(error)[:300]
        is_news = all(one["error"] != said for one in self._errors)  # a broken settings file fails with every event
        self._errors = [one for one in self._errors if one["error"] != said][1 - _MOST_ERRORS :]
        self._errors.append({"time": now, "event": event[:40], "error": said})
        if is_news:
            self._log.write("hook_failed", agent=agent[:40], event=event[:40], error=said)


def _safely(handler: Callable[[HookCall], JsonObject], call: HookCall) -> JsonObject:
    with guarded("a hook"):
        return handler(call)


def _context(call: HookCall, text: str) -> JsonObject:
    return _output(call, {"additionalContext": text}) if text else _NOTHING


def _output(call: HookCall, fields: Mapping[str, Any]) -> JsonObject:
    return {"hookSpecificOutput": {"hookEventName": call.event, **fields}}
