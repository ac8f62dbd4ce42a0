"""Agents in a session: what they are built from, what they may do, and where the spawner plugs into the main thread.

One a session. An agent with a context of its own gets a transcript beside the session's, layers 1 and 4, the user's
hooks and a share of the session's books; never the session's notes, recall or extraction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from reverie import __version__
from reverie.agents.definition import AgentDefinition, Definitions, coordinating, listing, load_definitions
from reverie.agents.fork import ForkPoint
from reverie.agents.roster import Member
from reverie.agents.side_question import ask_aside
from reverie.agents.spawn import AgentNumbers, Fresh, Spawner
from reverie.agents.worktree import Worktree
from reverie.context.conversation import Around, Conversation
from reverie.context.limits import limits_of
from reverie.context.pipeline import Pipeline
from reverie.context.prefix import effort_of, thinking_of
from reverie.context.reminder import reminder
from reverie.context.request import ImageCount
from reverie.context.system_prompt import system_prompt
from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice
from reverie.instructions import load_instructions
from reverie.layers.l4_compaction.stage import AutoCompact, Compaction, Reactive
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.registry import open_model, split_name
from reverie.paths import Places
from reverie.paths.places import slug
from reverie.paths.repo import current_branch, find_repo
from reverie.permissions.rules import Decision, Deny, ToolCall
from reverie.session.agent_remembering import AgentRemembering, KindMemory
from reverie.session.gate import OnBehalf
from reverie.session.parts import model_access
from reverie.session.remembering import evidence_of
from reverie.session.teammate_here import SharedModel, TeammateHere
from reverie.session.watching import Watcher
from reverie.storage.records import SessionHeader
from reverie.storage.session_log import SessionLog
from reverie.storage.view import View
from reverie.tasks import TaskHandle, TaskInfo
from reverie.tools.base import Caller, Keeper, PermissionFunction, ReadCache, Tool, ToolContext, ToolOutput
from reverie.tools.order import AgentOrder
from reverie.tools.registry import tool_schemas
from reverie.types import Block, Message, Origin, Purpose, TextBlock, ToolUseBlock

if TYPE_CHECKING:
    from reverie.session.session import Session
    from reverie.session.wiring import Wiring

KeeperOf: TypeAlias = Callable[[Path], Keeper | None]
OWN_CONTEXT = "an agent with a context of its own"
_ALIASES = ("opus", "sonnet", "haiku")
_HANDS_OVER = (
    "You coordinate: what changes something is a worker's to do. Start one with Agent, and say all it must know."
)


def _unheard(_event: Event) -> None:
    pass


def _as_it_was(header: SessionHeader) -> SessionHeader:
    return header


class Spawning:
    """The agents of one session. `spawner` keeps the tree of them."""

    def __init__(self, session: Session, wiring: Wiring, *, interactive: bool) -> None:
        self._session = session
        self._parts = session.parts
        self._wiring = wiring
        self._interactive = interactive
        self._told = set[str]()
        self._watcher = Watcher(session.parts, self.numbers_of, session.accounts.may_spend)
        self.remembering = AgentRemembering(session.parts, session.emit)
        self.spawner = Spawner(self, session.tasks, session.letters.roster, waits=not interactive)
        self._plug_in()

    def _plug_in(self) -> None:
        """Gives the main thread its nest. Letters themselves are drained by the session's correspondence."""
        wiring, nest = self._wiring, self.spawner.main
        nest.sit(wiring.thread, wiring.conversation)
        around, context = wiring.conversation.around, wiring.thread.context
        gate = context.permission

        async def after_response() -> None:
            await around.after_response()
            await nest.after_response()

        async def may_stop(answer: str) -> str | Sequence[Block] | None:
            await nest.settle()
            return self._session.letters.drain() or await around.may_stop(answer)

        async def permission(call: ToolCall) -> Decision:
            header = nest.view.header
            if (
                header is not None
                and header.flags.get("coordinator")
                and not call.read_only
                and call.tool != "SendMessage"
            ):
                return Deny(_HANDS_OVER)
            return await gate(call)

        wiring.attached = lambda: self._listed(nest.view)
        wiring.conversation.around = replace(around, after_response=after_response, may_stop=may_stop)
        context.spawn, context.permission = nest.spawn, permission

    # -- what the session asks ------------------------------------------------------------------------------------

    def told_beside(self, view: View) -> list[TextBlock]:
        """What the model must know of agents and does not see yet: goes beside the next message."""
        told = self._listed(view)
        if not told:
            return []
        seen = {
            block.text
            for entry in view.entries
            for block in entry.message.content
            if isinstance(block, TextBlock) and block.origin is Origin.INJECTED
        }
        return [block for block in told if block.text not in seen]

    def _listed(self, view: View) -> list[TextBlock]:
        coordinates = view.header is not None and view.header.flags.get("coordinator")
        texts = (listing(self.kinds()), coordinating() if coordinates else "")
        return [TextBlock(text, Origin.INJECTED) for text in texts if text]

    def become(self, kind: AgentDefinition) -> None:
        """Makes the main agent one of this kind, before its first turn: its prompt and its memory, and it only reads if
        the kind does. For members of a team, which have a process of their own."""
        memory, context = self.remembering.of(kind), self._wiring.thread.context
        self._parts.prompt = _prompt_of(kind, memory)
        context.permission = self.permission(self.spawner.main.member, kind, background=False)
        context.keeper = self._keeper(memory, self._parts.log, context.keeper)

    async def ask_aside(self, question: str) -> str:
        """Answers a side question from the conversation as it stands."""
        if not question.strip():
            raise UserError("there is nothing to answer: write the question after /btw")
        self._session.ensure_header()
        return await ask_aside(self._wiring.fork_point(), question)

    def task_over(self, info: TaskInfo) -> None:
        self.spawner.task_over(info)

    async def wind_up(self) -> None:
        """Ends those that only wait for letters."""
        await self.spawner.close()

    async def close(self) -> None:
        await self._watcher.close()

    # -- what the spawner asks ------------------------------------------------------------------------------------

    def kinds(self) -> Definitions:
        """The kinds there are now; what is wrong with a file is told once."""
        found = load_definitions(self._parts.places, bare=self._parts.settings.session.bare)
        for problem in found.problems:
            if problem not in self._told:
                self._told.add(problem)
                self._session.emit(Notice(problem, "warning", "agents"))
        return found

    def numbers_of(self, key: str) -> float:
        return self._parts.flags.number(f"agents.{key}", getattr(self._parts.settings.agents, key))

    def numbers(self) -> AgentNumbers:
        given, number = self._parts.settings.agents, self._parts.flags.number
        return AgentNumbers(
            **{f.name: number(f"agents.{f.name}", getattr(given, f.name)) for f in fields(AgentNumbers)}
        )

    def is_on(self, flag: str) -> bool:
        return self._parts.flags.on(flag)

    def permission(self, member: Member, kind: AgentDefinition | None, *, background: bool) -> PermissionFunction:
        """The session's gate on an agent's behalf."""
        memory = self.remembering.of(kind)
        whose = OnBehalf(
            member.name,
            wait_s=self.numbers_of("ask_s") if background else None,
            is_free=memory.may_write if memory is not None else lambda _call: False,
        )

        async def decide(call: ToolCall) -> Decision:
            if kind is not None and kind.reads_only and not call.read_only:
                return Deny(f"{call.tool} may change something, and an agent of the kind {kind.name} only reads.")
            return await self._session.gate.judge(call, whose)

        return decide

    async def keep(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        return await self._wiring.conversation.keep(call, output)

    async def worktree(self, name: str, cwd: Path) -> Worktree:
        places, settings = self._parts.places, self._parts.settings
        return await Worktree.make(name, cwd, places.home / "worktrees" / slug(places.root), settings.env)

    def arrived(self, to: Member, sender: str) -> None:
        """Whoever sits before an idle session is told that somebody wrote."""
        if to is self.spawner.main.member and not self._session.busy:
            self._session.emit(Notice(f"{sender} has reported (read with your next message)", source="agents"))

    async def look(self, member: Member, log: SessionLog, tell: Callable[[str], None]) -> None:
        await self._watcher.watch(member, log, tell)

    async def teammate(
        self, member: Member, order: AgentOrder, kind: AgentDefinition, cwd: Path, handle: TaskHandle
    ) -> str:
        """A session of its own in this process; what it needs of this one is handed in."""
        memory = self.remembering.of(kind)
        mate = TeammateHere(
            self._session,
            member,
            permission=self.permission(member, kind, background=True),
            memory=memory,
            progress=handle.progress,
        )
        inherited = self._parts.model
        wanted = _named(order.model or kind.model, inherited.name, Catalogue.load(self._parts.settings.catalogue.files))
        return await mate.run(order, _prompt_of(kind, memory), wanted or SharedModel(inherited), cwd)

    # -- a context of its own -------------------------------------------------------------------------------------

    def fresh(self, wanted: Fresh) -> ForkPoint:
        """A conversation of its own for an agent, with a transcript beside the session's."""
        parent = wanted.parent
        model, facts = self._model(wanted, parent.conversation.model)
        tools = _tools_for(wanted.kind, parent.thread.tools)
        log = self._log(wanted)
        log.append(self._header(wanted, model, facts, tools))
        if wanted.kind is not None and "Agent" in tools and (kinds := listing(self.kinds())):
            log.append_message(Message("user", (TextBlock(kinds, Origin.INJECTED),)), isMeta=True)
        cap = min(self._parts.settings.model.max_output, facts.max_output)
        raised = max(cap, min(self._parts.settings.model.raised_output, facts.max_output))
        return ForkPoint(self._conversation(wanted, log, model, facts), tools, self._context(wanted, log), cap, raised)

    async def closed(self, point: ForkPoint) -> None:
        point.conversation.log.close()
        if point.conversation.model is not self._parts.model:
            await point.conversation.model.close()

    def _log(self, wanted: Fresh) -> SessionLog:
        parts = self._parts
        session = parts.log.session_id
        path = parts.places.agent_transcript(session, wanted.id.removeprefix("agent-"))
        return SessionLog(
            path if parts.lease is not None else None,
            session,
            cwd=wanted.cwd,
            version=__version__,
            git_branch=current_branch(find_repo(wanted.cwd)),
            agent_id=wanted.id,
            fsync=parts.settings.transcript.fsync,
            clock=self._wiring.clock,
            on_storage_error=lambda error: self._session.emit(Notice(str(error), "warning", "agents")),
        )

    def _header(self, wanted: Fresh, model: Model, facts: ModelFacts, tools: dict[str, Tool]) -> SessionHeader:
        parts = self._parts
        today = self._wiring.clock().astimezone().date()
        if wanted.kind is None:  # a worker: the coordinator's prompt and tools, as they are
            header = wanted.parent.view.header
            assert header is not None, "who starts an agent has sent a request"
            return replace(header, model=model.name)
        here = parts.places if wanted.cwd == parts.places.cwd else Places.of(wanted.cwd, parts.settings)
        found = load_instructions(here, parts.settings, window=parts.limits.window)
        memory = self.remembering.of(wanted.kind)
        own = (wanted.kind.prompt, *((memory.section(),) if memory is not None else ()))
        place = system_prompt(wanted.cwd, current_branch(find_repo(wanted.cwd)), today)[-1]
        return SessionHeader(
            model=model.name,
            system=(*own, place),
            tools=tool_schemas(tools.values()),
            reminder=reminder(found.files, ()),
            date=today.isoformat(),
            thinking=thinking_of(parts.settings.model, facts.max_output),
            effort=effort_of(parts.settings.model),
        )

    def _conversation(self, wanted: Fresh, log: SessionLog, model: Model, facts: ModelFacts) -> Conversation:
        main, parent = self._wiring.conversation, wanted.parent.conversation
        parts = self._parts
        return replace(
            main,
            log=log,
            model=model,
            thresholds=limits_of(model.name, facts, parts.settings, parts.flags),
            emit=_unheard,
            pipeline=self._pipeline(wanted),
            purpose=Purpose.AGENT,
            thread=wanted.id,
            reused=True,
            around=Around(
                keep=main.around.keep, carry_out=main.around.carry_out, after_result=self._wiring.points.after_result
            ),
            announce=OWN_CONTEXT,
            account=parent.account.afresh() if parent.account is not None else None,
            sent=None,
            sent_messages=(),
            own_from=None,
            images=ImageCount(),
            images_left_out=0,
            just_compacted=False,
        )

    def _pipeline(self, wanted: Fresh) -> Pipeline:
        """Layer 1 as in the session, and layer 4 for this very conversation."""
        parts, main = self._parts, self._wiring.conversation.pipeline
        folder = parts.places.session(parts.log.session_id) / "subagents" / wanted.id.removeprefix("agent-")
        ground = replace(
            self._wiring.compaction.ground,
            cwd=wanted.cwd,
            transcript=parts.places.agent_transcript(parts.log.session_id, wanted.id.removeprefix("agent-")),
            requests=folder / "requests",
            notes=folder / "summary.md",  # nobody keeps notes for it
            render_header=_as_it_was,
        )
        own = Compaction(ground)
        stages = {name: stage for name, stage in main.stages.items() if name == "tool_result_budget"}
        return Pipeline(
            {**stages, "autocompact": AutoCompact(own), "reactive": Reactive(own)}, main.is_on, main.on_failure
        )

    def _context(self, wanted: Fresh, log: SessionLog) -> ToolContext:
        main, memory = self._wiring.thread.context, self.remembering.of(wanted.kind)
        return replace(
            main,
            cwd=wanted.cwd,
            caller=Caller(Purpose.AGENT, wanted.id),
            read_cache=ReadCache(),
            keeper=self._keeper(memory, log, main.keeper),
        )

    def _keeper(self, memory: KindMemory | None, log: SessionLog, other: KeeperOf) -> KeeperOf:
        """Who keeps a file: the memory of the agent's kind, else whoever keeps it in the session."""
        if memory is None:
            return other
        return lambda path: memory.keeper(path, lambda: evidence_of(log.view)) or other(path)

    def _model(self, wanted: Fresh, inherited: Model) -> tuple[Model, ModelFacts]:
        """The model asked for, else the parent's. One that a file names and nobody can open is told and passed over."""
        settings = self._parts.settings
        catalogue = Catalogue.load(settings.catalogue.files)
        name = _named(wanted.model, inherited.name, catalogue)
        facts = catalogue.facts(split_name(inherited.name, catalogue)[1])
        if not name or name == inherited.name:
            return inherited, facts
        try:
            model = open_model(name, model_access(settings), catalogue)
            return model, catalogue.facts(split_name(name, catalogue)[1])
        except ReverieError as error:
            if wanted.kind is None or wanted.kind.model != wanted.model:
                raise
            self._session.emit(
                Notice(f"{wanted.kind.source}: {error} The parent's model is used.", "warning", "agents")
            )
            return inherited, facts


def _named(given: str, inherited: str, catalogue: Catalogue) -> str:
    """The model a name means; short names that other agents use mean one of the same provider, or the parent's."""
    if given.lower() not in _ALIASES:
        return given
    provider = ""
    with suppress(ReverieError):
        provider = split_name(inherited, catalogue)[0]
    for name in catalogue.names:
        if catalogue.facts(name).provider == provider and f"-{given.lower()}-" in f"-{name}-":
            return f"{provider}:{name}"
    return ""


def _prompt_of(kind: AgentDefinition, memory: KindMemory | None) -> str:
    return "\n\n".join((kind.prompt, *((memory.section(),) if memory is not None else ())))


def _tools_for(kind: AgentDefinition | None, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools of an agent: its parent's, or those of them that its kind names."""
    return {name: tool for name, tool in tools.items() if kind is None or kind.tools is None or name in kind.tools}
