"""The moments of a turn when the user's hooks run, and what their answers mean.

Every notice of a hook is shown. Text that a hook adds for the model becomes blocks with the origin HOOK.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from reverie.agents.messages.roster import Member
from reverie.errors import StoppedByHook
from reverie.events import Event, Notice
from reverie.instructions import InstructionFile
from reverie.layers.base import Companion, EffectResult, RunHook
from reverie.origins import fence
from reverie.quick import dataclass
from reverie.runtime.hooks import NOTHING, HookEvent, HookOutcome, Hooks
from reverie.session.hook_results import read_replacement, show_response
from reverie.tools.base import ToolOutput
from reverie.types import Block, JsonObject, Origin, TextBlock, ToolUseBlock

MAX_STOP_REFUSALS = 5
AskStop: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Given the answer, returns why the agent may not end yet; None if it may."""


@dataclass(eq=False)
class ToolHooks(Companion):
    """The hooks around the tool calls of one agent. `agent` says which one; it is empty for the main agent."""

    fire: Callable[..., Awaitable[HookOutcome]]
    listens_to: Callable[[HookEvent], bool]
    agent: JsonObject = field(default_factory=dict[str, object])
    _beside: dict[str, list[TextBlock]] = field(default_factory=dict[str, list[TextBlock]], init=False)
    _calls: list[JsonObject] = field(default_factory=list[JsonObject], init=False)
    _stopped: str = field(default="", init=False)

    async def replace_result(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        """Runs the hooks after a tool that ran. They may replace what the model sees of its result."""
        event = HookEvent.POST_TOOL_USE_FAILURE if output.is_error else HookEvent.POST_TOOL_USE
        told = (event, HookEvent.POST_TOOL_BATCH)
        if not output.ran or not any(map(self.listens_to, told)):
            return output
        about: JsonObject = {"tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id}
        response = show_response(call, output)
        self._calls.append({**about, "tool_response": response})
        result: JsonObject = {"tool_response": response}
        if output.is_error:
            result = {"error": response if isinstance(response, str) else str(response), "is_interrupt": False}
        payload = {**self.agent, **about, **result, "duration_ms": round(output.seconds * 1_000)}
        outcome = await self.fire(event, payload, match_on=call.name)
        self._note_stop(outcome)
        texts = (outcome.reason, *outcome.context) if outcome.blocked else outcome.context
        self._beside[call.id] = make_blocks(texts)
        changed = read_replacement(outcome.updated_output)
        return output if changed is None else replace(output, content=changed, structured=None, kept_in=None)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """Returns what the hooks say next to a result."""
        del output
        return self._beside.pop(call.id, ())

    async def between_rounds(self) -> Sequence[Block]:
        """Runs the hooks after all calls of a response. A hook that wants the turn to end does so here."""
        calls, self._calls = self._calls, []
        outcome = NOTHING
        if calls and self.listens_to(HookEvent.POST_TOOL_BATCH):
            outcome = await self.fire(HookEvent.POST_TOOL_BATCH, {**self.agent, "tool_calls": calls})
            self._note_stop(outcome)
            if outcome.blocked:
                self._stopped = self._stopped or outcome.reason
        if self._stopped:
            reason, self._stopped = self._stopped, ""
            raise StoppedByHook(reason)
        return make_blocks(outcome.context)

    def _note_stop(self, outcome: HookOutcome) -> None:
        if outcome.stop:
            self._stopped = outcome.stop_reason or "a hook ended the turn"


class HookPoints(Companion):
    """The hook points of one session."""

    def __init__(
        self, hooks: Hooks, emit: Callable[[Event], None], tasks: Callable[[], Sequence[JsonObject]] = tuple
    ) -> None:
        self._hooks = hooks
        self._emit = emit
        self._tasks = tasks
        self._for_next_message: list[TextBlock] = []
        self._first: list[TextBlock] = []
        self._stop_refusals = 0
        main = self.tool_hooks({})
        self.replace_result, self.after_result = main.replace_result, main.after_result
        self.between_rounds = main.between_rounds

    def tool_hooks(self, agent: JsonObject) -> ToolHooks:
        """Returns the hooks around the tool calls of an agent."""
        return ToolHooks(self._fire, self._hooks.listens_to, agent)

    @property
    def has_first_message(self) -> bool:
        """Whether a hook wants the session to begin without a message of the user."""
        return bool(self._first)

    async def session_started(self, source: str, facts: JsonObject | None = None) -> None:
        """Runs the hooks of a start (`startup`, `resume`, `clear`, `compact`); their text joins the next message."""
        outcome = await self._fire(HookEvent.SESSION_START, {"source": source, **(facts or {})}, match_on=source)
        self._for_next_message += make_blocks(outcome.context)
        self._first = make_blocks([outcome.first_message])

    async def instructions_loaded(self, files: Sequence[InstructionFile]) -> None:
        """Tells the hooks which instruction files the model got."""
        for file in files:
            payload = {"file_path": str(file.path), "memory_type": file.scope.value.capitalize()}
            reason = "session_start"
            await self._fire(HookEvent.INSTRUCTIONS_LOADED, {**payload, "load_reason": reason}, match_on=reason)

    async def check_prompt(self, text: str | None) -> tuple[str | None, list[Block]]:
        """Asks the hooks about a message of the user. Returns why it is refused, or None and the added blocks.

        None: the user has said nothing.
        """
        if text is None and not self._first:
            return None, []
        outcome = NOTHING if text is None else await self._fire(HookEvent.USER_PROMPT_SUBMIT, {"prompt": text})
        if outcome.blocked or outcome.stop:
            return outcome.reason or outcome.stop_reason or "a UserPromptSubmit hook refused this message", []
        added: list[Block] = [*self._for_next_message, *self._first, *make_blocks(outcome.context)]
        self._for_next_message, self._first = [], []
        self._stop_refusals = 0
        return None, added

    async def check_expansion(
        self, name: str, args: str, source: str, prompt: str
    ) -> tuple[str | None, list[TextBlock]]:
        """Asks the hooks about a command of a file that the user named. Returns the same."""
        payload: JsonObject = {
            "expansion_type": "slash_command",
            "command_name": name,
            "command_args": args,
            "command_source": source,
            "prompt": prompt,
        }
        outcome = await self._fire(HookEvent.USER_PROMPT_EXPANSION, payload, match_on=name)
        if outcome.blocked or outcome.stop:
            return outcome.reason or outcome.stop_reason or "a UserPromptExpansion hook refused this command", []
        return None, make_blocks(outcome.context)

    async def may_stop(self, answer: str) -> str | None:
        """Asks the hooks when the model is done; a reason means that it goes on. Too many refusals are ignored."""
        payload: JsonObject = {"last_assistant_message": answer, "background_tasks": [*self._tasks()]}
        reason = await self._refuses(HookEvent.STOP, self._stop_refusals, payload)
        self._stop_refusals += reason is not None
        return reason

    async def agent_started(self, member: Member) -> Sequence[TextBlock]:
        """Runs the hooks of an agent that this session started. Returns what they say to it."""
        outcome = await self._fire(HookEvent.SUBAGENT_START, describe_agent(member), match_on=member.kind)
        return make_blocks(outcome.context)

    def agent_stop(self, member: Member, transcript: str) -> AskStop:
        """Returns the check of `may_stop` for an agent that this session started."""
        refusals = 0

        async def may_stop(answer: str) -> str | None:
            nonlocal refusals
            about = {**describe_agent(member), "agent_name": member.name, "agent_transcript_path": transcript}
            payload: JsonObject = {**about, "last_assistant_message": answer, "background_tasks": [*self._tasks()]}
            reason = await self._refuses(HookEvent.SUBAGENT_STOP, refusals, payload, member.kind)
            refusals += reason is not None
            return reason

        return may_stop

    async def _refuses(
        self, event: HookEvent, refusals: int, payload: JsonObject, match_on: str | None = None
    ) -> str | None:
        if not self._hooks.listens_to(event):
            return None
        outcome = await self._fire(event, {"stop_hook_active": refusals > 0, **payload}, match_on=match_on)
        if outcome.stop or not (outcome.blocked or outcome.context):
            return None
        if refusals >= MAX_STOP_REFUSALS:
            text = f"a {event.value} hook refused {MAX_STOP_REFUSALS} times in a row; the turn ends"
            self._emit(Notice(text, "warning"))
            return None
        said = "\n".join(filter(None, (outcome.reason, *outcome.context)))
        return said or f"a {event.value} hook wants you to go on"

    async def run(self, effect: RunHook) -> EffectResult:
        """Runs a hook for a layer."""
        outcome = await self._fire(HookEvent(effect.event), effect.payload, match_on=effect.match_on)
        return EffectResult(ok=not outcome.blocked, text=outcome.reason or "\n".join(outcome.context))

    async def session_ended(self, reason: str) -> None:
        await self._fire(HookEvent.SESSION_END, {"reason": reason}, match_on=reason)
        await self._hooks.close()

    async def _fire(self, event: HookEvent, payload: JsonObject, *, match_on: str | None = None) -> HookOutcome:
        outcome = await self._hooks.fire(event, payload, match_on=match_on)
        for notice in outcome.notices:
            self._emit(notice)
        return outcome


def describe_agent(member: Member) -> JsonObject:
    """Returns the fields of an event that say which agent it is about."""
    return {"agent_id": member.id, "agent_type": member.kind}


def make_blocks(texts: Sequence[str]) -> list[TextBlock]:
    """Returns what hooks say as blocks of their own origin."""
    return [fence(Origin.HOOK, text) for text in texts if text.strip()]
