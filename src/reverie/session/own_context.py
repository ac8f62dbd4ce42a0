"""A context of its own for an agent of a session: log, header, tools, conversation, layers 1 and 4.

Built anew for every sub-agent and worker, beside the session's and never of it: no notes, no recall, no extraction.
Layer 4 compacts this very conversation; its transcript lies beside the session's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from reverie import __version__
from reverie.agents.definition import AgentDefinition
from reverie.agents.fork import ForkPoint
from reverie.agents.house import Fresh
from reverie.context.conversation import Around, Conversation
from reverie.context.engine import Engine
from reverie.context.pipeline import Pipeline
from reverie.context.prefix import effort_of, reminder, system_prompt, thinking_of
from reverie.context.request import ImageCount
from reverie.errors import ReverieError
from reverie.events import Event, Notice
from reverie.instructions import load_instructions
from reverie.layers.base import Break, BreakCause, Companion
from reverie.layers.l4_compaction.stage import AutoCompact, Compaction, Reactive
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.registry import doubt_about, model_access, open_model, split_name
from reverie.models.window import limits_of
from reverie.paths import Places
from reverie.paths.repo import current_branch, find_repo
from reverie.session.agent_remembering import AgentRemembering, KindMemory
from reverie.session.parts import SessionParts
from reverie.session.remembering import evidence_of
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import Clock, SessionLog
from reverie.tools.base import Caller, Keeper, ReadCache, Tool, ToolContext
from reverie.tools.registry import tool_schemas
from reverie.types import Message, Origin, Purpose, TextBlock

KeeperOf: TypeAlias = Callable[[Path], Keeper | None]
ANNOUNCED = Break(BreakCause.APART, "an agent with a context of its own")
_ALIASES = ("opus", "sonnet", "haiku")


def _unheard(_event: Event) -> None:
    pass


def _as_it_was(header: SessionHeader) -> SessionHeader:
    return header


class OwnContexts:
    """Makes the contexts of one session's agents. `listed` is what is told of the kinds there are, or nothing."""

    def __init__(
        self,
        parts: SessionParts,
        engine: Engine,
        context: ToolContext,
        remembering: AgentRemembering,
        listed: Callable[[], str],
        hooks: Companion,
        *,
        emit: Callable[[Event], None],
        clock: Clock,
    ) -> None:
        self._parts = parts
        self._engine = engine
        self._main_context = context
        self._remembering = remembering
        self._listed = listed
        self._hooks = hooks
        self._emit = emit
        self._clock = clock
        self._opened: dict[str, Model] = {}
        self._told = set[str]()

    def fresh(self, wanted: Fresh) -> ForkPoint:
        """A conversation of its own for an agent, with a transcript beside the session's."""
        parent = wanted.parent
        model, facts = self._model(wanted, parent.conversation.model)
        tools = tools_for(wanted.kind, parent.thread.tools)
        log = self._log(wanted)
        log.append(self._header(wanted, model, facts, tools))
        kinds = self._kinds_for(wanted, tools)
        if kinds:
            log.append_message(Message("user", tuple(kinds)), isMeta=True)
        cap = min(self._parts.settings.model.max_output, facts.max_output)
        raised = max(cap, min(self._parts.settings.model.raised_output, facts.max_output))
        return ForkPoint(
            self._conversation(wanted, log, model, facts, kinds), tools, self._context(wanted, log), cap, raised
        )

    def _kinds_for(self, wanted: Fresh, tools: Mapping[str, Tool]) -> list[TextBlock]:
        text = self._listed() if wanted.kind is not None and "Agent" in tools else ""
        return [TextBlock(text, Origin.CODE)] if text else []

    async def close(self, point: ForkPoint) -> None:
        """The agent is over: its transcript ends, and a model of its own is closed."""
        point.conversation.log.close()
        model = self._opened.pop(point.conversation.thread, None)
        if model is not None:
            await model.close()

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
            clock=self._clock,
            on_storage_error=lambda error: self._emit(Notice(str(error), "warning", "agents")),
        )

    def _header(self, wanted: Fresh, model: Model, facts: ModelFacts, tools: dict[str, Tool]) -> SessionHeader:
        parts = self._parts
        today = self._clock().astimezone().date()
        if wanted.kind is None:  # a worker: the coordinator's prompt and tools, as they are
            header = wanted.parent.view.header
            assert header is not None, "who starts an agent has sent a request"
            return replace(header, model=model.name)
        here = parts.places if wanted.cwd == parts.places.cwd else Places.of(wanted.cwd, parts.settings)
        found = load_instructions(here, parts.settings, window=parts.limits.window)
        memory = self._remembering.of(wanted.kind)
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

    def _conversation(
        self, wanted: Fresh, log: SessionLog, model: Model, facts: ModelFacts, kinds: list[TextBlock]
    ) -> Conversation:
        main, parent = self._engine.conversation, wanted.parent.conversation
        parts = self._parts
        return replace(
            main,
            log=log,
            model=model,
            thresholds=limits_of(model.name, facts, parts.settings, parts.flags),
            emit=_unheard,
            pipeline=self._pipeline(wanted, kinds),
            purpose=Purpose.AGENT,
            thread=wanted.id,
            reused=True,
            around=Around((self._hooks,), main.around.keep, main.around.carry_out),
            announced=(ANNOUNCED,),
            account=parent.account.afresh() if parent.account is not None else None,
            sent=None,
            sent_messages=(),
            own_from=None,
            images=ImageCount(),
            images_left_out=0,
            just_compacted=False,
        )

    def _pipeline(self, wanted: Fresh, kinds: list[TextBlock]) -> Pipeline:
        """Layer 1 as in the session, and layer 4 for this very conversation."""
        parts, main = self._parts, self._engine.conversation.pipeline
        folder = parts.places.session(parts.log.session_id) / "subagents" / wanted.id.removeprefix("agent-")
        ground = replace(
            self._engine.compaction.ground,
            cwd=wanted.cwd,
            transcript=parts.places.agent_transcript(parts.log.session_id, wanted.id.removeprefix("agent-")),
            requests=folder / "requests",
            notes=folder / "summary.md",  # nobody keeps notes for it
            render_header=_as_it_was,
            attachments=lambda: kinds,
        )
        own = Compaction(ground)
        stages = {name: stage for name, stage in main.stages.items() if name == "tool_result_budget"}
        return Pipeline(
            {**stages, "autocompact": AutoCompact(own), "reactive": Reactive(own)}, main.is_on, main.on_failure
        )

    def _context(self, wanted: Fresh, log: SessionLog) -> ToolContext:
        main, memory = self._main_context, self._remembering.of(wanted.kind)
        return replace(
            main,
            cwd=wanted.cwd,
            caller=Caller(Purpose.AGENT, wanted.id),
            read_cache=ReadCache(),
            keeper=keeper_for(memory, log, main.keeper),
        )

    def named(self, wanted: str, kind: AgentDefinition | None, inherited: str) -> str:
        """The name of the model an agent gets; empty: its parent's.

        A project's file, which strangers may have written, chooses among the models of the provider in use.
        """
        catalogue = Catalogue.load(self._parts.settings.catalogue.files)
        name = model_named(wanted, inherited, catalogue)
        source = kind.source if kind is not None and kind.model == wanted else None
        is_projects = source is not None and source.parent != self._parts.places.home / "agents"
        if name and is_projects and _provider(name, catalogue) != _provider(inherited, catalogue):
            self._tell(f"{source}: `model: {wanted}` is not of the provider in use; the parent's model is used.")
            return ""
        return name

    def _model(self, wanted: Fresh, inherited: Model) -> tuple[Model, ModelFacts]:
        """The model asked for, else the parent's. One that a file names and nobody can open is told and passed over."""
        settings = self._parts.settings
        catalogue = Catalogue.load(settings.catalogue.files)
        name = self.named(wanted.model, wanted.kind, inherited.name)
        facts = catalogue.facts(split_name(inherited.name, catalogue)[1])
        if not name or name == inherited.name:
            return inherited, facts
        try:
            model = self._opened[wanted.id] = open_model(name, model_access(settings), catalogue)
            if (doubt := doubt_about(name, model_access(settings), catalogue)) is not None:
                source = wanted.kind.source if wanted.kind is not None and wanted.kind.model == wanted.model else None
                self._tell(f"{source}: {doubt}" if source is not None else doubt)
            return model, catalogue.facts(split_name(name, catalogue)[1])
        except ReverieError as error:
            if wanted.kind is None or wanted.kind.model != wanted.model:
                raise
            self._tell(f"{wanted.kind.source}: {error} The parent's model is used.")
            return inherited, facts

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._emit(Notice(text, "warning", "agents"))


def model_named(given: str, inherited: str, catalogue: Catalogue) -> str:
    """The model a name means; short names that other agents use mean one of the same provider, or the parent's."""
    if given.lower() not in _ALIASES:
        return given
    provider = _provider(inherited, catalogue)
    for name in catalogue.names:
        if catalogue.facts(name).provider == provider and f"-{given.lower()}-" in f"-{name}-":
            return f"{provider}:{name}"
    return ""


def _provider(name: str, catalogue: Catalogue) -> str:
    """Whose model it is; empty for a name that is none."""
    with suppress(ReverieError):
        return split_name(name, catalogue)[0]
    return ""


def prompt_of(kind: AgentDefinition, memory: KindMemory | None) -> str:
    """What a kind is told: its own text, and what there is to know of its memory."""
    return "\n\n".join((kind.prompt, *((memory.section(),) if memory is not None else ())))


def tools_for(
    kind: AgentDefinition | None, tools: Mapping[str, Tool], *, always: tuple[str, ...] = ()
) -> dict[str, Tool]:
    """The tools of an agent: its parent's, or those of them that its kind names."""
    if kind is None or kind.tools is None:
        return dict(tools)
    return {name: tool for name, tool in tools.items() if name in (*kind.tools, *always)}


def keeper_for(memory: KindMemory | None, log: SessionLog, other: KeeperOf) -> KeeperOf:
    """Who keeps a file: the memory of the agent's kind, else whoever keeps it in the session."""
    if memory is None:
        return other
    return lambda path: memory.keeper(path, lambda: evidence_of(log.view)) or other(path)
