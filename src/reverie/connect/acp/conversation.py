"""One session in the editor: runs its turns, sends what happens as updates, and asks for permissions.

Updates go through one queue, so they arrive in order, also those of background work between turns. One prompt runs at a
time; a cancel stops whatever runs and leaves a consistent transcript.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from acp import RequestError, schema
from acp.interfaces import Client

from reverie import events
from reverie.connect.acp.buffers import EditorBuffers
from reverie.connect.acp.host import Host, OfferedCommand
from reverie.connect.acp.options import list_models, list_modes, list_options
from reverie.connect.acp.prompt import PromptBlock, read_prompt
from reverie.connect.acp.updates import Shower, Update, note, progress, usage
from reverie.errors import ReverieError, UserError
from reverie.permissions.answers import AnswerKind, PermissionAnswer
from reverie.permissions.policy import PolicyMode
from reverie.permissions.rules import Profile
from reverie.session.session import Session

_INTERNAL = -32603
_STOPS: dict[str, schema.StopReason] = {
    "answered": "end_turn",
    "cut_off": "max_tokens",
    "max_rounds": "max_turn_requests",
    "cancelled": "cancelled",
}
_LONGEST_NAME = 60


class Conversation:
    """One open session. `begin` starts the updates; `close` ends everything."""

    def __init__(
        self,
        session: Session,
        client: Client,
        host: Host,
        capabilities: schema.ClientCapabilities | None = None,
        mcp_servers: Mapping[str, object] | None = None,
    ) -> None:
        self.id = session.id
        self._mcp_servers = mcp_servers
        self._client = client
        self._capabilities = capabilities
        self.session: Session = self._with_buffers(session)
        self._host = host
        self._shower = Shower(host, session.places.cwd)
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        self._sending = asyncio.create_task(self._send())
        self._work: asyncio.Task[schema.PromptResponse] | None = None
        self._changing = False
        self._stopped = False
        """The user cancelled the prompt that runs."""
        self._calls = set[str]()
        """The tool calls that run."""
        self._offered: list[OfferedCommand] | None = None
        self._questions = dict[str, asyncio.Task[None]]()

    # -- opening and closing ----------------------------------------------------------------------------------------

    def _with_buffers(self, session: Session) -> Session:
        """Lets the tools of the session see what the editor shows."""
        session.tool_context.editor = EditorBuffers.of(self._client, self._capabilities, session.id, session.places.cwd)
        return session

    def begin(self) -> None:
        """Offers the commands, and shows what happened while the session was opened."""
        self.session.listen(self._show)
        self._offer_commands()

    def _offer_commands(self) -> None:
        """Sends the list of commands, if it has changed."""
        found = self._host.commands(self.session)
        if found == self._offered:
            return
        self._offered = found
        offered = [
            schema.AvailableCommand(
                name=one.name,
                description=self._host.printable(one.about),
                input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=one.hint))
                if one.hint
                else None,
            )
            for one in found
        ]
        self._put(
            schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=offered)
        )

    async def replay(self) -> None:
        """Sends the whole conversation as updates."""
        for update in self._shower.replay(self.session.view.history):
            self._put(update)
        await self._updates.join()

    def tell(self, sentence: str) -> None:
        """Shows a sentence of Reverie."""
        self._put(note(sentence, "warning"))

    async def close(self) -> None:
        """Stops what runs, finishes background work as far as that is possible, and gives the session free."""
        self.cancel()
        self.session.gate.close("The user has closed the session, so nobody can be asked.")
        if self._work is not None:
            await asyncio.wait([self._work])
        await self.session.close()
        for task in (*self._questions.values(), self._sending):
            task.cancel()

    # -- turns ------------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._work is not None or self._changing

    async def prompt(self, given: Sequence[PromptBlock]) -> schema.PromptResponse:
        """Runs one prompt. Raises UserError if another one runs, and RequestError if the model could not answer."""
        self._refuse_if_busy()
        self._stopped = False
        work = self._work = asyncio.create_task(self._run(given))
        try:
            await asyncio.wait([work])
        finally:
            work.cancel()
            await asyncio.wait([work])
            self._work = None
        await self._updates.join()
        if self._stopped or work.cancelled():
            if not work.cancelled():
                work.exception()  # fetched, so that asyncio does not report it
            return schema.PromptResponse(stop_reason="cancelled")
        return work.result()

    def cancel(self) -> None:
        """Stops the running prompt, and drops its questions."""
        if self._work is None:
            return
        self._stopped = True
        if not self.session.cancel():
            self._work.cancel()

    async def _run(self, given: Sequence[PromptBlock]) -> schema.PromptResponse:
        prompt = await asyncio.to_thread(read_prompt, given, self.session.places.cwd)
        if not prompt.images and await self._host.run_command(self.session, prompt.blocks, self._say):
            self._offer_commands()
            return schema.PromptResponse(stop_reason="end_turn")
        if not self.session.view.entries:
            self._put(self._shower.titled(prompt.blocks))
        ended: events.TurnEnded | None = None
        async with aclosing(self.session.send(prompt.blocks, images=prompt.images)) as happened:
            async for event in happened:
                self._show(event)
                ended = event if isinstance(event, events.TurnEnded) else ended
        assert ended is not None
        return self._answer(ended)

    def _answer(self, ended: events.TurnEnded) -> schema.PromptResponse:
        used = ended.usage
        counted = schema.Usage(
            total_tokens=used.total,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_read_tokens=used.cache_read_input_tokens,
            cached_write_tokens=used.cache_creation_input_tokens,
        )
        if ended.reason == "refused":
            self._put(note(self._host.printable(ended.error or "The model refused to answer.")))
            return schema.PromptResponse(stop_reason="refusal" if ended.error else "end_turn", usage=counted)
        if ended.reason not in _STOPS:
            raise RequestError(_INTERNAL, self._host.printable(ended.error or "The turn ended without an answer."))
        return schema.PromptResponse(stop_reason=_STOPS[ended.reason], usage=counted)

    def _refuse_if_busy(self) -> None:
        if self.is_busy:
            raise UserError("A turn is running in this session: wait for it, or cancel it.")

    # -- options ----------------------------------------------------------------------------------------------------

    def change_mode(self, name: str) -> None:
        """Changes how permissions are handled, from the next tool call on."""
        known = {mode.value: mode for mode in PolicyMode}
        if name not in known:
            raise UserError(f"There is no mode {name!r}; there are {', '.join(known)}.")
        self.session.gate.mode = known[name]
        self._put(schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=name))
        self._put_options()

    async def change_model(self, name: str) -> None:
        """Continues the conversation with another model. Raises if it cannot be used; then nothing has changed."""
        self._refuse_if_busy()
        if name == self.session.model_name:
            return
        if name not in (offered := list_models(self.session)):
            raise UserError(f"There is no model {name[:80]!r} to choose; there are {', '.join(offered)}.")
        old, mode = self.session, self.session.gate.mode
        which: dict[str, Any] = {"resume": self.id} if old.view.entries else {"session_id": self.id}
        which["mcp_servers"] = self._mcp_servers
        self._changing = True
        try:
            await old.close()
            try:
                self.session = self._with_buffers(await self._host.open(old.places.cwd, model=name, **which))
            except ReverieError:
                again = await self._host.open(old.places.cwd, model=old.model_name, **which)
                self.session = self._with_buffers(again)
                raise
        finally:
            self._changing = False
            self.session.gate.mode = mode
            self.session.listen(self._show)
        self._put_options()

    def state(self) -> dict[str, Any]:
        """The modes and options for an answer that names them."""
        return {"modes": list_modes(self.session), "config_options": list_options(self.session)}

    def _put_options(self) -> None:
        options = list_options(self.session)
        self._put(schema.ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    # -- updates ----------------------------------------------------------------------------------------------------

    def _put(self, update: Update) -> None:
        self._updates.put_nowait(update)

    def _say(self, text: str) -> None:
        self._put(self._shower.text(text))

    async def _send(self) -> None:
        while True:
            update = await self._updates.get()
            try:
                with suppress(ConnectionError):  # the editor has gone: we end soon
                    await self._client.session_update(self.id, update)
            finally:
                self._updates.task_done()

    def _show(self, event: events.Event) -> None:
        shower = self._shower
        match event:
            case events.TextStreamed():
                self._put(shower.text(event.text))
            case events.ThinkingStreamed():
                self._put(shower.thought(event.text))
            case events.ToolStarted():
                self._calls.add(event.id)
                self._put(shower.started(event))
            case events.ToolFinished():
                self._calls.discard(event.id)
                self._put(shower.finished(event))
            case events.TurnEnded():
                self._end_turn()
            case events.PermissionAsked():
                task = self._questions[event.id] = asyncio.create_task(self._ask(event))
                task.add_done_callback(lambda _done: self._questions.pop(event.id, None))
            case events.RoundFinished():
                paid = [one.cost for one in self.session.accounts.ledger.now().entries if one.priced]
                self._put(usage(event, sum(paid) if paid else None))
            case events.Notice():
                self._put(shower.notice(event))
            case events.AnswerRestarted():
                self._put(note(f"The answer starts again: {self._host.printable(event.reason)}"))
            case events.Retrying():
                again = f"{event.reason} Trying again in {event.seconds:.0f} s (attempt {event.attempt}).\n"
                self._put(shower.thought(again))
            case events.TaskChanged() if event.state == "failed":
                self._put(note(f"Background task failed: {event.title or event.purpose}; `reverie log` says more."))
            case _:
                pass

    def _end_turn(self) -> None:
        """Ends the calls that were interrupted, and drops the questions that nobody waits for any more."""
        for id in sorted(self._calls):
            self._put(progress(id, "failed"))
        self._calls.clear()
        for id, task in self._questions.items():
            if not self.session.gate.is_open(id):
                task.cancel()

    # -- permissions ------------------------------------------------------------------------------------------------

    async def _ask(self, event: events.PermissionAsked) -> None:
        """Asks the editor, and settles the question with its answer."""
        await self._updates.join()
        gate = self.session.gate
        question = next((one for one in gate.questions() if one.id == event.id), None)
        if question is None:
            return
        cwd = Path(event.cwd or self.session.places.cwd)
        call = self._shower.asked(question.call.id, event.tool, event.input, cwd, _explain(event))
        try:
            response = await self._client.request_permission(self.id, call, _offers(event))
        except (RequestError, ConnectionError, ValueError) as error:
            gate.settle(event.id, PermissionAnswer.deny(f"The editor could not ask the user: {error}"))
            return
        verdict = _verdict(response, event)
        if verdict is None:
            gate.settle(event.id, PermissionAnswer.deny())
            self.cancel()
            return
        is_settled = gate.settle(event.id, verdict)
        is_allowed = is_settled and verdict.kind is not AnswerKind.DENY
        if question.call.id not in self._calls:  # a call of another agent, whose end is not reported
            self._put(progress(question.call.id, "completed" if is_allowed else "failed"))
        elif is_allowed:
            self._put(progress(question.call.id, "in_progress"))


def _explain(event: events.PermissionAsked) -> str:
    if not event.rules:
        return event.reason
    how = f"for this session, or always (saved in {event.saves_to})" if event.saves_to else "for this session"
    how = f"outside of the sandbox {how}" if event.choices else how
    return f"{event.reason}\n\nRules {how}: {', '.join(event.rules)}"


def _offers(event: events.PermissionAsked) -> list[schema.PermissionOption]:
    """Our answers; those that last only where the question offers rules."""
    rules = ", ".join(event.rules)
    what = f": {rules}" if len(rules) <= _LONGEST_NAME else ""
    once = {AnswerKind.ONCE.value: "Allow once"}
    if event.choices:
        names = {Profile.FREE: "Run it again outside of the sandbox"}
        once = {choice: names.get(Profile(choice), "Run it again in the project") for choice in event.choices}
    offers = [schema.PermissionOption(option_id=id, name=name, kind="allow_once") for id, name in once.items()]
    if event.rules:
        name = f"Allow in this session{what}"
        offers.append(schema.PermissionOption(option_id=AnswerKind.SESSION.value, name=name, kind="allow_always"))
    if event.rules and event.saves_to:
        name = f"Always allow{what}"
        offers.append(schema.PermissionOption(option_id=AnswerKind.ALWAYS.value, name=name, kind="allow_always"))
    offers.append(schema.PermissionOption(option_id=AnswerKind.DENY.value, name="Deny", kind="reject_once"))
    return offers


def _verdict(response: schema.RequestPermissionResponse, event: events.PermissionAsked) -> PermissionAnswer | None:
    """The answer; None if the user stopped the turn. An answer that was not offered counts as a no."""
    outcome = response.outcome
    if not isinstance(outcome, schema.AllowedOutcome):
        return None
    offered = {one.option_id for one in _offers(event)}
    if outcome.option_id not in offered:
        return PermissionAnswer.deny(f"The editor gave an answer that was not offered ({outcome.option_id[:40]!r}).")
    if outcome.option_id in event.choices:
        return PermissionAnswer.once(Profile(outcome.option_id))
    kind = AnswerKind(outcome.option_id)
    if kind is not AnswerKind.DENY:
        return PermissionAnswer(kind)
    reason = (outcome.field_meta or {}).get("reason") or (response.field_meta or {}).get("reason")
    given = reason.strip() if isinstance(reason, str) else ""
    return PermissionAnswer.deny(f"The user refused: {given}" if given else "")
