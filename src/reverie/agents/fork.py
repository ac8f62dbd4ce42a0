"""The fork: a background agent whose request starts with the same bytes as the conversation it comes from.

It shares the parent's system prompt, tools, model and messages, and so its cache. It works on copies of the view and of
the read cache. It adds only records of its cost to the parent, and it has no transcript. A side question is a fork of
one round without tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from reverie.agents.messages.structured import mark_cut_off
from reverie.context.conversation import Conversation
from reverie.errors import ReverieError
from reverie.events import Event
from reverie.layers.base import Break, BreakCause, ForkResult
from reverie.loop import Thread, run
from reverie.models.base import Model
from reverie.origins import task
from reverie.permissions.rules import Allow, Decision, Deny, ToolCall
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import Entry, View
from reverie.tools.base import Caller, Keeper, PathMapping, PermissionFunction, SeenFile, Tool, ToolContext
from reverie.tools.registry import list_schemas
from reverie.types import Message, Origin, Purpose, TextBlock, ToolUseBlock

AFRESH = Break(BreakCause.APART, "a conversation with its own system prompt")
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The conversation, tools and context that a fork starts from. Implements `layers.base.Fork`."""

    conversation: Conversation
    tools: Mapping[str, Tool]
    context: ToolContext
    output_cap: int
    output_cap_raised: int

    @classmethod
    def of(cls, thread: Thread, conversation: Conversation) -> ForkPoint:
        return cls(conversation, thread.tools, thread.context, thread.output_cap, thread.output_cap_raised)

    @property
    def view(self) -> View:
        return self.conversation.log.view

    @property
    def learnable(self) -> Sequence[Entry]:
        """The messages that extraction may look at: those in view, because it continues the same prefix."""
        return self.view.entries

    def starting(self, purpose: Purpose) -> ForkPoint:
        """Returns where a fork of this purpose starts: here."""
        del purpose
        return self

    def by(self, model: Model, why: Break) -> ForkPoint:
        """Returns the same start for another model. It has no account: it costs nothing and has no cache."""
        return replace(self, conversation=replace(self.conversation, model=model, account=None, announced=(why,)))

    def kept(self) -> ForkPoint:
        """Returns a copy of the current state, for a fork that runs later."""
        account = self.conversation.account
        kept = replace(
            self.conversation,
            log=self.conversation.log.fork("kept"),
            account=account.forked() if account is not None else None,  # it finds what is in the cache now
        )
        context = replace(self.context, read_cache=self.context.read_cache.copy())
        return replace(self, conversation=kept, context=context)

    def afresh(self, system: str, tools: Sequence[str], *, model: str = "") -> ForkPoint:
        """Returns the start of a separate conversation with this system prompt and only these tools."""
        chosen = {name: tool for name, tool in self.tools.items() if name in tools}
        parent = self.conversation
        log = SessionLog(None, parent.log.session_id, cwd=self.context.cwd, version="", clock=parent.clock)
        schemas = list_schemas(list(chosen.values()))
        log.append(SessionHeader(model=model or parent.model.name, system=(system,), tools=schemas))
        account = parent.account.afresh() if parent.account is not None else None
        conversation = replace(
            parent,
            log=log,
            announced=(AFRESH,),
            account=account,
            sent=None,
            sent_messages=(),
            own_from=None,
            images_left_out=0,
        )
        return replace(self, conversation=conversation, tools=chosen)

    async def run(
        self,
        directive: str,
        *,
        purpose: Purpose,
        permission: Callable[[ToolCall], Awaitable[Decision]],
        max_rounds: int,
        max_tokens: int | None = None,
        tools: Mapping[str, Tool] | None = None,
        map_path: PathMapping | None = None,
        keeper: Callable[[Path], Keeper | None] | None = None,
        seen: Mapping[Path, SeenFile] | None = None,
        progress: Callable[[str], None] = lambda _text: None,
        emit: Callable[[Event], None] = lambda _event: None,
        kind: str = "",
        question: str = "",
        enough: Callable[[Sequence[ToolUseBlock]], bool] | None = None,
    ) -> ForkResult:
        """Runs one fork to its end, as `layers.base.Fork` describes. `kind` is part of its name in the ledger."""
        name = f"{purpose.value}-{kind}-{next(_numbers)}" if kind else f"{purpose.value}-{next(_numbers)}"
        parent = self.starting(purpose).conversation
        log = parent.log.fork(name)
        read_cache = self.context.read_cache.copy()
        for path, known in (seen or {}).items():
            read_cache.note(path, known)
        denied = list[str]()
        thread = Thread(
            log=log,
            surroundings=parent.forked(log, purpose=purpose, thread=name, reused=max_rounds > 1 and enough is None),
            tools=tools or self.tools,
            context=replace(
                self.context,
                caller=Caller(purpose, name),
                permission=recording_denials(permission, denied, progress),
                read_cache=read_cache,
                map_path=map_path or self.context.map_path,
                keeper=keeper or self.context.keeper,
                progress=progress,
            ),
            emit=emit,
            max_rounds=max_rounds,
            output_cap=max_tokens or self.output_cap,
            output_cap_raised=max_tokens or self.output_cap_raised,
            purpose=purpose,
            name=name,
            enough=enough or (lambda _calls: False),
        )
        asked = (TextBlock(question, Origin.ENTERED),) if question else ()
        log.append_message(Message("user", (task(directive), *asked)), isMeta=True)
        outcome = await run(thread)
        answered = (entry.message.fields.get("model") for entry in reversed(log.view.entries))
        model = str(next(filter(None, answered), ""))
        return ForkResult(outcome.reason, outcome.text, thread.usage, thread.rounds, tuple(denied), model)


def recording_denials(
    permission: PermissionFunction, denied: list[str], progress: Callable[[str], None] = lambda _tool: None
) -> PermissionFunction:
    """Wraps a permission for an agent that cannot ask anybody: a question becomes a no, and `denied` lists each no."""

    async def decide(call: ToolCall) -> Decision:
        decision = await permission(call)
        if not isinstance(decision, Allow):
            denied.append(f"{call.tool}: {decision.reason}")
            return Deny(decision.reason)
        progress(call.tool)
        return decision

    return decide


DENIED = "A side question is answered from what is known, without tools."


async def ask_aside(point: ForkPoint, question: str) -> str:
    """Returns the answer. Raises the errors of the model, and ReverieError if there is no answer."""

    async def deny(_call: ToolCall) -> Decision:
        return Deny(DENIED)

    directive, asked = render("reverie.agents", "side_question.md"), question.strip()
    result = await point.run(directive, purpose=Purpose.SIDE_QUESTION, permission=deny, max_rounds=1, question=asked)
    if result.text.strip():
        return mark_cut_off(result.text) if result.reason == "cut_off" else result.text
    if result.denied:
        raise ReverieError("The answer needs tools, and a side question has none: ask it as a message.")
    raise ReverieError("There was no answer to the side question.")
