"""The user's hook commands: they run at the moments of a session, get JSON, and answer what should happen.

All matching hooks run at once, and their answers are merged in order. A hook that fails costs only a notice.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from reverie.errors import UserError
from reverie.events import Notice
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.runtime.hook_process import KEPT_BYTES, CommandResult, run_command
from reverie.types import Json, JsonObject

if TYPE_CHECKING:
    from reverie.settings.sections import HookSettings

Permission: TypeAlias = Literal["allow", "deny", "ask"]

DEFAULT_TIMEOUT_S = 60.0
CONTEXT_CHARACTERS = 10_000
_LAST_WAIT_S = 3.0
_NOTICE_CHARACTERS = 500
_SHOWN_COMMAND = 60


class HookEvent(StrEnum):
    """When hooks run. Users of Claude Code know these names."""

    SESSION_START = "SessionStart"
    INSTRUCTIONS_LOADED = "InstructionsLoaded"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    USER_PROMPT_EXPANSION = "UserPromptExpansion"
    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    POST_TOOL_BATCH = "PostToolBatch"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    STOP = "Stop"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    SESSION_END = "SessionEnd"


# Plain text printed at these moments is for the model (at PreCompact: instructions for the summary).
_TEXT_IS_CONTEXT = frozenset(
    {
        HookEvent.SESSION_START,
        HookEvent.USER_PROMPT_SUBMIT,
        HookEvent.USER_PROMPT_EXPANSION,
        HookEvent.SUBAGENT_START,
        HookEvent.PRE_COMPACT,
    }
)
# These have happened already, so nothing can be refused.
_CANNOT_BLOCK = frozenset(
    {
        HookEvent.SESSION_START,
        HookEvent.INSTRUCTIONS_LOADED,
        HookEvent.POST_COMPACT,
        HookEvent.SUBAGENT_START,
        HookEvent.SESSION_END,
    }
)


@dataclass(frozen=True, slots=True)
class HookRule:
    """One configured command. `matcher`: empty or `*` for all, else a regular expression for the whole name."""

    command: str
    matcher: str = "*"
    timeout_s: float = DEFAULT_TIMEOUT_S
    folder: Path | None = None  # where it runs, and its project folder; None for those of the session
    wait: bool = True  # False: it runs beside the session, and its answer does not count

    def __post_init__(self) -> None:
        if not self.command.strip():
            raise UserError("A hook has no command to run; give it one or remove it.")
        if re.search("[\0\ud800-\udfff]", self.command):
            raise UserError(f"The command of hook {_hook_name(self)} contains a character that no command can contain.")
        if not 0 < self.timeout_s < float("inf"):
            raise UserError(f"The time limit of hook {_hook_name(self)} is {self.timeout_s}; give seconds above 0.")
        if self.matcher not in ("", "*"):
            try:
                re.compile(self.matcher)
            except re.error as error:
                raise UserError(
                    f"The matcher {self.matcher!r} of hook {_hook_name(self)} is not a regular expression: {error}."
                ) from error

    def matches(self, name: str | None) -> bool:
        """Whether this rule applies to `name`; without a name, every rule applies."""
        if name is None or self.matcher in ("", "*", name):
            return True
        return re.fullmatch(self.matcher, name) is not None


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The merged answers of the hooks.

    `blocked` with `reason`: do not do this one thing (at PostToolUse and Stop: give the model the reason).
    `stop` with `stop_reason`: end the turn. `updated_input` replaces a tool's input and must be checked again,
    `updated_output` what the model sees of its result. `first_message` begins the session, in the hook's name.
    """

    blocked: bool = False
    reason: str = ""
    context: tuple[str, ...] = ()
    permission: Permission | None = None
    updated_input: JsonObject | None = None
    updated_output: Json = None
    first_message: str = ""
    notices: tuple[Notice, ...] = ()
    stop: bool = False
    stop_reason: str = ""


NOTHING = HookOutcome()


def hook_rules(settings: HookSettings) -> dict[HookEvent, tuple[HookRule, ...]]:
    """Returns the rules of the `[hooks]` section; raises UserError if one is not valid."""
    return {
        event: tuple(
            HookRule(given.command, given.matcher, given.timeout_s, given.folder, given.wait)
            for given in settings.of(event.value)
        )
        for event in HookEvent
    }


class Hooks:
    """The hooks of one session."""

    def __init__(
        self,
        rules: Mapping[HookEvent, Sequence[HookRule]],
        cwd: Path,
        session_id: str,
        transcript_path: Path,
        *,
        project_dir: Path | None = None,
    ) -> None:
        self._rules = {event: tuple(given) for event, given in rules.items()}
        self._cwd = cwd
        self._common: JsonObject = {
            "session_id": session_id,
            "transcript_path": str(transcript_path),
            "cwd": str(cwd),
        }
        self._project = project_dir or cwd
        self._beside = set[asyncio.Task[_Answer]]()
        self.now: Callable[[], JsonObject] = dict
        """More fields for every event, as they are at this moment."""

    def listens_to(self, event: HookEvent) -> bool:
        """Whether a command is configured for this moment; else callers can skip the payload."""
        return bool(self._rules.get(event))

    async def fire(self, event: HookEvent, payload: JsonObject, *, match_on: str | None = None) -> HookOutcome:
        """Runs every matching command and merges the answers. Raises only on cancellation, which kills them all."""
        matching = [rule for rule in self._rules.get(event, ()) if rule.matches(match_on)]
        rules: dict[tuple[str, Path | None], HookRule] = {}
        for rule in matching:
            rules.setdefault((rule.command, rule.folder), rule)  # the same command under two matchers runs once
        if not rules:
            return NOTHING
        told = {**self._common, **self.now(), "hook_event_name": event.value, **payload}
        stdin = json.dumps(told, default=str).encode() + b"\n"
        async with asyncio.TaskGroup() as group:
            running = list[asyncio.Task[_Answer]]()
            for rule in rules.values():
                if rule.wait or event is HookEvent.SESSION_END:  # nobody is left to run beside
                    running.append(group.create_task(self._answer(event, rule, stdin)))
                else:
                    beside = asyncio.create_task(self._answer(event, rule, stdin))
                    self._beside.add(beside)
                    beside.add_done_callback(self._beside.discard)
        return _merge([task.result() for task in running])

    async def close(self) -> None:
        """Ends the hooks that run beside the session; they get a little time to finish."""
        running = set(self._beside)
        if running:
            await asyncio.wait(running, timeout=_LAST_WAIT_S)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _answer(self, event: HookEvent, rule: HookRule, stdin: bytes) -> _Answer:
        project, cwd = str(rule.folder or self._project), rule.folder or self._cwd
        # REVERIE_INSIDE: our own hooks for other agents do nothing in ours.
        env = {**os.environ, "REVERIE_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project, "REVERIE_INSIDE": "1"}
        try:
            ran = await run_command(rule.command, stdin=stdin, cwd=cwd, env=env, timeout_s=rule.timeout_s)
        except OSError as error:
            return _Answer(notices=(_warning(event, rule, f"could not be started: {error.strerror or error}."),))
        return _read(event, rule, ran)


@dataclass(slots=True)
class _Answer:
    """The answer of one command."""

    block: str | None = None
    permission: Permission | None = None
    permission_reason: str = ""
    context: tuple[str, ...] = ()
    updated_input: JsonObject | None = None
    updated_output: Json = None
    first_message: str = ""
    stop: str | None = None
    notices: tuple[Notice, ...] = field(default=())


def _read(event: HookEvent, rule: HookRule, ran: CommandResult) -> _Answer:
    if ran.exit_code is None:
        return _Answer(notices=(_warning(event, rule, f"ran longer than {rule.timeout_s:g} s and was ended."),))
    stderr = _clean(ran.stderr.decode("utf-8", "replace")).strip()
    if ran.exit_code == 2:
        return _refusal(event, rule, stderr)
    if ran.exit_code != 0:
        how = f"ended by signal {-ran.exit_code}" if ran.exit_code < 0 else f"failed with exit code {ran.exit_code}"
        return _Answer(notices=(_warning(event, rule, f"{how}{': ' + stderr if stderr else '.'}"),))
    stdout = ran.stdout.decode("utf-8", "replace").strip()
    said = _json_object(stdout)
    if said is not None:
        answer = _Reader(event, rule).read(said)
    elif event in _TEXT_IS_CONTEXT and stdout:
        answer = _Answer(context=(stdout,))
    else:
        answer = _Answer()
    if ran.cut:
        kept = f"printed more than {KEPT_BYTES:,} bytes; the rest was ignored."
        answer.notices = (*answer.notices, _warning(event, rule, kept))
    return _limit_context(event, rule, answer)


def _refusal(event: HookEvent, rule: HookRule, stderr: str) -> _Answer:
    reason = _cut(stderr, CONTEXT_CHARACTERS) or f"Hook {_hook_name(rule)} refused without saying why."
    if event in _CANNOT_BLOCK:
        return _Answer(notices=(_warning(event, rule, f"refused, but nothing can be refused now: {reason}"),))
    return _Answer(block=reason, permission="deny" if event is HookEvent.PRE_TOOL_USE else None)


class _Reader:
    """Reads a JSON answer; parts with another shape cost a notice and are ignored."""

    def __init__(self, event: HookEvent, rule: HookRule) -> None:
        self._event = event
        self._rule = rule
        self._answer = _Answer()

    def read(self, said: JsonObject) -> _Answer:
        answer = self._answer
        if self._get(said, "continue", bool) is False:
            answer.stop = _clean(self._get(said, "stopReason", str) or "")
        message = self._get(said, "systemMessage", str)
        if message:
            answer.notices += (Notice(_cut(_clean(message), _NOTICE_CHARACTERS), "info", "hook"),)
        reason = _clean(self._get(said, "reason", str) or "")
        match self._get(said, "decision", str):
            case "block":
                refused = _refusal(self._event, self._rule, reason)
                answer.block, answer.permission = refused.block, refused.permission
                answer.notices += refused.notices
            case "approve" if self._event is HookEvent.PRE_TOOL_USE:
                answer.permission, answer.permission_reason = "allow", reason
            case None | "approve":
                pass
            case other:
                self._odd(f'"decision" is {other!r}; it can be "block" or "approve"')
        specific = self._get(said, "hookSpecificOutput", dict)
        if specific is not None:
            self._specific(cast(JsonObject, specific))
        return answer

    def _specific(self, said: JsonObject) -> None:
        answer = self._answer
        meant = self._get(said, "hookEventName", str)
        if meant is not None and meant != self._event.value:
            self._odd(f'"hookSpecificOutput" is for {meant!r}')
            return
        context = self._get(said, "additionalContext", str)
        if context and context.strip():
            answer.context += (context.strip(),)
        if self._event is HookEvent.SESSION_START:
            answer.first_message = _cut(_clean(self._get(said, "initialUserMessage", str) or ""), CONTEXT_CHARACTERS)
        elif self._event is HookEvent.POST_TOOL_USE:
            given: Json = said.get("updatedToolOutput")
            answer.updated_output = given if given is not None else said.get("updatedMCPToolOutput")
        if self._event is not HookEvent.PRE_TOOL_USE:
            return
        reason = _clean(self._get(said, "permissionDecisionReason", str) or "")
        match self._get(said, "permissionDecision", str):
            case "deny":
                refused = _refusal(self._event, self._rule, reason)
                answer.block, answer.permission = refused.block, refused.permission
            case "allow" | "ask" as permission if answer.block is None:
                answer.permission, answer.permission_reason = permission, reason
            case None | "allow" | "ask" | "defer":
                pass
            case other:
                self._odd(f'"permissionDecision" is {other!r}; it can be "allow", "deny" or "ask"')
        answer.updated_input = cast(JsonObject | None, self._get(said, "updatedInput", dict))

    def _get(self, said: JsonObject, key: str, kind: type[Any]) -> Any:
        value: Json = said.get(key)
        if value is None or isinstance(value, kind):
            return value
        expected = {bool: "true or false", str: "text", dict: "an object"}[kind]
        self._odd(f'"{key}" is not {expected}')
        return None

    def _odd(self, what: str) -> None:
        self._answer.notices += (_warning(self._event, self._rule, f"gave an answer that is ignored: {what}."),)


def _merge(answers: Sequence[_Answer]) -> HookOutcome:
    """Merges the answers: the strictest permission wins, and all texts are kept in order."""
    blocks = [answer.block for answer in answers if answer.block is not None]
    permission = None
    for answer in answers:
        permission = max(permission, answer.permission, key=_strength)
    reasons = blocks or [answer.permission_reason for answer in answers if answer.permission == permission]
    stops = [answer.stop for answer in answers if answer.stop is not None]
    notices = [notice for answer in answers for notice in answer.notices]
    inputs = [answer.updated_input for answer in answers if answer.updated_input is not None]
    outputs = [answer.updated_output for answer in answers if answer.updated_output is not None]
    for what, changed in (("input", inputs), ("output", outputs)):
        if len(changed) > 1:
            text = f"Several hooks changed the {what} of one tool call; the last one counts."
            notices.append(Notice(text, "warning", "hook"))
    return HookOutcome(
        blocked=bool(blocks),
        reason="\n".join(filter(None, reasons)),
        context=tuple(text for answer in answers for text in answer.context),
        permission=permission,
        updated_input=inputs[-1] if inputs and not blocks else None,
        updated_output=outputs[-1] if outputs else None,
        first_message="\n\n".join(answer.first_message for answer in answers if answer.first_message.strip()),
        notices=tuple(notices),
        stop=bool(stops),
        stop_reason="\n".join(filter(None, stops)),
    )


def _strength(permission: Permission | None) -> int:
    return (None, "allow", "ask", "deny").index(permission)


def _json_object(text: str) -> JsonObject | None:
    """Returns the object that a command printed; None if it printed something else. Half a surrogate becomes `?`."""
    if not text.startswith("{"):
        return None
    try:
        whole = json.dumps(load_json(text), ensure_ascii=False).encode("utf-8", "replace")
        found: Json = load_json(whole)
    except ValueError:  # not JSON, or nested too deep
        return None
    return cast(JsonObject, found) if isinstance(found, dict) else None


def _limit_context(event: HookEvent, rule: HookRule, answer: _Answer) -> _Answer:
    too_long = any(len(text) > CONTEXT_CHARACTERS for text in answer.context)
    answer.context = tuple(_cut(_clean(text), CONTEXT_CHARACTERS) for text in answer.context)
    if too_long:
        kept = f"gave more context than {CONTEXT_CHARACTERS:,} characters; the rest was left out."
        answer.notices = (*answer.notices, _warning(event, rule, kept))
    return answer


def _clean(text: str) -> str:
    """Removes control characters, so that output of a hook cannot control the terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "", text.replace("\r\n", "\n"))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _hook_name(rule: HookRule) -> str:
    return f"`{_cut(' '.join(_clean(rule.command).split()), _SHOWN_COMMAND)}`"


def _warning(event: HookEvent, rule: HookRule, what: str) -> Notice:
    return Notice(f"The {event.value} hook {_hook_name(rule)} {_cut(what, _NOTICE_CHARACTERS)}", "warning", "hook")
