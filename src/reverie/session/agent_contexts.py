"""Builds a separate context for an agent of a session: log, header, tools, conversation, layers 1 and 4.

Every sub-agent and worker gets a new one, without notes, recall and extraction, and with its own transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TypeAlias

from reverie import __version__
from reverie.agents.definition import AgentDefinition
from reverie.agents.fork import ForkPoint
from reverie.agents.host import ContextOrder
from reverie.context.conversation import Around, Conversation
from reverie.context.engine import LayerEngine
from reverie.context.pipeline import Pipeline
from reverie.context.prefix import effort_of, reminder, system_prompt, thinking_of
from reverie.context.request import ImageCount
from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.instructions import load_instructions
from reverie.layers.base import Break, BreakCause, Companion
from reverie.layers.l4_compaction.stage import AutoCompact, Compaction, Reactive
from reverie.memory.evidence import gather_evidence
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.registry import doubt_about, facts_of, model_access, open_model, split_name
from reverie.models.window import limits_of, output_caps
from reverie.paths import Places
from reverie.paths.repo import current_branch, find_repo
from reverie.quick import dataclass
from reverie.session.agent_memories import AgentMemories, KindMemory
from reverie.session.parts import SessionParts
from reverie.settings.reach import names_program
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import Clock, SessionLog
from reverie.tools.base import CALL_TOOL, Caller, Keeper, ReadCache, Tool, ToolContext
from reverie.tools.registry import list_schemas
from reverie.types import JsonObject, Message, Origin, Purpose, TextBlock

KeeperOf: TypeAlias = Callable[[Path], Keeper | None]
ANNOUNCED = Break(BreakCause.APART, "an agent with its own context")
_ALIASES = ("opus", "sonnet", "haiku")


def _ignore(_event: Event) -> None:
    pass


def _unchanged(header: SessionHeader) -> SessionHeader:
    return header


@dataclass(slots=True, eq=False)
class AgentContexts:
    """Builds the contexts of one session's agents. `listed` returns the list of kinds that the model sees."""

    parts: SessionParts
    engine: LayerEngine
    context: ToolContext
    remembering: AgentMemories
    listed: Callable[[], str]
    hooks: Callable[[JsonObject], Companion]
    emit: Callable[[Event], None]
    clock: Clock
    listed_tools: Callable[[], Sequence[TextBlock]] = tuple
    _opened: dict[str, Model] = field(default_factory=dict[str, Model], init=False)
    _reported: set[str] = field(default_factory=set[str], init=False)

    def create(self, wanted: ContextOrder) -> ForkPoint:
        """Builds a separate conversation for an agent, with its own transcript."""
        parent = wanted.parent
        model, facts = self._model(wanted, parent.conversation.model)
        tools = tools_for(wanted.kind, parent.thread.tools)
        log = self._log(wanted)
        log.append(self._header(wanted, model, facts, tools))
        kinds = self._kinds_for(wanted, tools)
        if kinds:
            log.append_message(Message("user", tuple(kinds)), isMeta=True)
        talk = self._conversation(wanted, log, model, facts, kinds)
        caps = output_caps(self.parts.settings, facts, talk.thresholds.window)
        return ForkPoint(talk, tools, self._context(wanted, log), *caps)

    def _kinds_for(self, wanted: ContextOrder, tools: Mapping[str, Tool]) -> list[TextBlock]:
        text = self.listed() if wanted.kind is not None and "Agent" in tools else ""
        behind = self.listed_tools() if CALL_TOOL in tools else ()
        return [*([TextBlock(text, Origin.CODE)] if text else []), *behind]

    async def close(self, point: ForkPoint) -> None:
        """Closes the transcript of an agent that has ended, and its own model."""
        point.conversation.log.close()
        model = self._opened.pop(point.conversation.thread, None)
        if model is not None:
            await model.close()

    def _log(self, wanted: ContextOrder) -> SessionLog:
        parts = self.parts
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
            clock=self.clock,
            on_storage_error=lambda error: self.emit(Notice(str(error), "warning", "agents")),
        )

    def _header(self, wanted: ContextOrder, model: Model, facts: ModelFacts, tools: dict[str, Tool]) -> SessionHeader:
        parts = self.parts
        today = self.clock().astimezone().date()
        if wanted.kind is None:  # a worker has the coordinator's prompt and tools
            header = wanted.parent.view.header
            assert header is not None, "an agent that starts another one has sent a request"
            return replace(header, model=model.name)
        here = parts.places if wanted.cwd == parts.places.cwd else Places.of(wanted.cwd, parts.settings)
        found = load_instructions(here, parts.settings, window=parts.limits.window)
        memory = self.remembering.of(wanted.kind)
        own = (wanted.kind.prompt, *((memory.section(),) if memory is not None else ()))
        place = system_prompt(wanted.cwd, current_branch(find_repo(wanted.cwd)), today)[-1]
        return SessionHeader(
            model=model.name,
            system=(*own, place),
            tools=list_schemas(tools.values()),
            reminder=reminder(found.files, ()),
            date=today.isoformat(),
            thinking=thinking_of(parts.settings.model, facts.max_output),
            effort=effort_of(parts.settings.model),
        )

    def _conversation(
        self, wanted: ContextOrder, log: SessionLog, model: Model, facts: ModelFacts, kinds: list[TextBlock]
    ) -> Conversation:
        main, parent = self.engine.conversation, wanted.parent.conversation
        parts = self.parts
        return replace(
            main,
            log=log,
            model=model,
            thresholds=limits_of(model.name, facts, parts.settings, parts.flags),
            emit=_ignore,
            pipeline=self._pipeline(wanted, kinds),
            purpose=Purpose.AGENT,
            thread=wanted.id,
            reused=True,
            around=Around((self._hooks_for(wanted),), main.around.keep, main.around.carry_out),
            announced=(ANNOUNCED,),
            account=parent.account.afresh() if parent.account is not None else None,
            sent=None,
            sent_messages=(),
            own_from=None,
            images=ImageCount(),
            images_left_out=0,
            just_compacted=False,
        )

    def _hooks_for(self, wanted: ContextOrder) -> Companion:
        kind = wanted.kind.name if wanted.kind is not None else wanted.mode.value
        return self.hooks({"agent_id": wanted.id, "agent_type": kind})

    def _pipeline(self, wanted: ContextOrder, kinds: list[TextBlock]) -> Pipeline:
        parts, main = self.parts, self.engine.conversation.pipeline
        folder = parts.places.session(parts.log.session_id) / "subagents" / wanted.id.removeprefix("agent-")
        ground = replace(
            self.engine.compaction.ground,
            cwd=wanted.cwd,
            transcript=parts.places.agent_transcript(parts.log.session_id, wanted.id.removeprefix("agent-")),
            requests=folder / "requests",
            notes=folder / "summary.md",  # nobody keeps notes for it
            render_header=_unchanged,
            attachments=lambda: kinds,
            discovered=tuple,
        )
        own = Compaction(ground)
        stages = {name: stage for name, stage in main.stages.items() if name == "tool_result_budget"}
        return Pipeline(
            {**stages, "autocompact": AutoCompact(own), "reactive": Reactive(own)},
            main.is_on,
            main.on_failure,
            main.on_report,
        )

    def _context(self, wanted: ContextOrder, log: SessionLog) -> ToolContext:
        main, memory = self.context, self.remembering.of(wanted.kind)
        return replace(
            main,
            cwd=wanted.cwd,
            caller=Caller(Purpose.AGENT, wanted.id),
            read_cache=ReadCache(),
            keeper=keeper_for(memory, log, main.keeper),
        )

    def model_name(self, wanted: str, kind: AgentDefinition | None, inherited: str) -> str:
        """Returns the model for an agent, or empty. A project's file can only choose models of the current provider."""
        catalogue = Catalogue.load(self.parts.settings.catalogue.files)
        name = resolve_model_name(wanted, inherited, catalogue)
        source = kind.source if kind is not None and kind.model == wanted else None
        is_projects = source is not None and source.parent != self.parts.places.home / "agents"
        if source is None and names_program(name) and name not in (inherited, self.parts.settings.model.name):
            self._tell(f"Only you may name a program to run ({name}); the parent's model is used.")
            return ""
        if name and is_projects and _provider(name, catalogue) != _provider(inherited, catalogue):
            self._tell(f"{source}: `model: {wanted}` is not from the current provider; the parent's model is used.")
            return ""
        return name

    def _model(self, wanted: ContextOrder, inherited: Model) -> tuple[Model, ModelFacts]:
        settings = self.parts.settings
        catalogue = Catalogue.load(settings.catalogue.files)
        name = self.model_name(wanted.model, wanted.kind, inherited.name)
        facts = facts_of(inherited.name, catalogue)
        if not name or name == inherited.name:
            return inherited, facts
        try:
            model = self._opened[wanted.id] = open_model(name, model_access(settings), catalogue)
            if (doubt := doubt_about(name, model_access(settings), catalogue)) is not None:
                source = wanted.kind.source if wanted.kind is not None and wanted.kind.model == wanted.model else None
                self._tell(f"{source}: {doubt}" if source is not None else doubt)
            return model, facts_of(name, catalogue)
        except ReverieError as error:
            if wanted.kind is None or wanted.kind.model != wanted.model:
                raise
            self._tell(f"{wanted.kind.source}: {error} The parent's model is used.")
            return inherited, facts

    def _tell(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            self.emit(Notice(text, "warning", "agents"))


def resolve_model_name(given: str, inherited: str, catalogue: Catalogue) -> str:
    """Resolves a model name. Short names of other agents become a model of the same provider, or the parent's."""
    if given.lower() not in _ALIASES:
        return given
    provider = _provider(inherited, catalogue)
    for name in catalogue.names:
        if catalogue.facts(name).provider == provider and f"-{given.lower()}-" in f"-{name}-":
            return f"{provider}:{name}"
    return ""


def _provider(name: str, catalogue: Catalogue) -> str:
    with suppress(ReverieError):
        return split_name(name, catalogue)[0]
    return ""


def prompt_of(kind: AgentDefinition, memory: KindMemory | None) -> str:
    """Returns the prompt of a kind: its own text, and the section about its memory."""
    return "\n\n".join((kind.prompt, *((memory.section(),) if memory is not None else ())))


def tools_for(
    kind: AgentDefinition | None, tools: Mapping[str, Tool], *, always: tuple[str, ...] = ()
) -> dict[str, Tool]:
    """Returns the tools of an agent: those of its parent, limited to the ones that its kind names."""
    if kind is None or kind.tools is None:
        return dict(tools)
    return {name: tool for name, tool in tools.items() if name in (*kind.tools, *always)}


def keeper_for(memory: KindMemory | None, log: SessionLog, other: KeeperOf) -> KeeperOf:
    """Returns the writer of a file: the memory of the agent's kind, else that of the session."""
    if memory is None:
        return other
    return lambda path: memory.keeper(path, lambda: gather_evidence(log.view.history)) or other(path)
