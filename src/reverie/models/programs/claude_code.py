"""`claude-code:MODEL`: Claude Code without its tools, hooks, plug-ins and memory, with the login that the user has.

`--bare` and another configuration folder would lose the login of a subscription; docs/decisions/0043 says what the
options leave in. The conversation goes in as one block per message with a cache marker, which Claude Code passes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from reverie.errors import BadRequest, ModelError
from reverie.models.base import Request
from reverie.models.forced import read_object
from reverie.models.programs.failures import program_error
from reverie.models.programs.frame import Frame
from reverie.models.programs.model import ProgramAnswer, ProgramModel
from reverie.models.programs.running import Printed, Program, Scratch
from reverie.models.wire import as_object
from reverie.types import Json, JsonObject, Usage

MISSING = (
    "Install Claude Code (https://claude.com/claude-code) and log in once with `claude`,"
    " or set model.claude_code_program."
)
_LOGIN = "Start `claude` in a terminal and enter /login."
_CLEAN = (
    *("--print", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"),
    *("--safe-mode", "--setting-sources", "user", "--strict-mcp-config", "--disable-slash-commands", "--tools", ""),
    *("--settings", json.dumps({"disableAllHooks": True, "autoMemoryEnabled": False}), "--no-session-persistence"),
)
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",  # `sending` retries
    "FORCE_PROMPT_CACHING_5M": "1",  # a marker of an hour after our own would be refused
}


class ClaudeCodeModel(ProgramModel):
    """One model of Claude Code; an empty name is its default."""

    def __init__(self, model: str, program: Program) -> None:
        super().__init__(f"claude-code:{model}", program)
        self._model = model
        self._marks = True

    async def ask(self, framed: Frame, request: Request, scratch: Scratch) -> ProgramAnswer:
        try:
            return await self._ask(framed, request, scratch)
        except BadRequest as error:
            if not self._marks or "cache_control" not in str(error):
                raise
            self._marks = False  # this version sets markers of its own that ours does not fit
            return await self._ask(framed, request, scratch)

    async def _ask(self, framed: Frame, request: Request, scratch: Scratch) -> ProgramAnswer:
        options = [*_CLEAN, "--system-prompt-file", scratch.write("system.md", framed.system)]
        options += [f"--model={self._model}"] if self._model else []
        options += ["--effort", request.effort] if request.effort else []
        options += ["--json-schema", json.dumps(framed.schema)] if framed.schema is not None else []
        ran = await self._program.run(options, _message(framed, marked=self._marks), scratch, _QUIET)
        result = next((one for one in reversed(list(_objects(ran.stdout))) if one.get("type") == "result"), None)
        if result is None:
            raise self._no_result(ran)
        if result.get("is_error") or ran.exit_code != 0:
            raise self._failure(result)
        usage = as_object(result.get("usage"))
        text = str(result.get("result") or "")
        # Without the forced form, the text may be a quotation: calls in it are not made.
        said = as_object(result.get("structured_output")) or ({"text": text} if framed.calls else text)
        return ProgramAnswer(
            said=said,
            model=_main_model(as_object(result.get("modelUsage"))),
            usage=Usage.parse(usage) if usage else None,
            raw_usage={**usage, "total_cost_usd": result.get("total_cost_usd")},
            stop_reason=_stop_reason(result.get("stop_reason")),
        )

    def _no_result(self, ran: Printed) -> ModelError:
        said = ran.complaint
        if ran.exit_code == 0:
            return ModelError(f"{self._program.shown} printed no result: {said}.")
        hint = " (update it: Reverie needs version 2.1.300 or later)" if "unknown option" in said else ""
        return program_error(self._program.shown, f"exit code {ran.exit_code}: {said}{hint}", login=_LOGIN)

    def _failure(self, result: JsonObject) -> ModelError:
        errors: Json = result.get("errors")
        said = str(result.get("result") or errors or result.get("subtype") or "")
        status: Json = result.get("api_error_status")
        kind = str(result.get("api_error_type") or "")
        return program_error(
            self._program.shown, said, login=_LOGIN, status=status if isinstance(status, int) else None, kind=kind
        )


def _message(framed: Frame, *, marked: bool) -> str:
    """The prompt as one message. The marker is on the last line of the conversation; the next request extends it."""
    blocks: list[JsonObject] = [{"type": "text", "text": line} for line in framed.lines]
    if blocks and marked:
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
    blocks.append({"type": "text", "text": framed.now})
    return json.dumps({"type": "user", "message": {"role": "user", "content": blocks}}) + "\n"


def _objects(text: str) -> Iterator[JsonObject]:
    for line in text.splitlines():
        found = read_object(line)
        if found is not None:
            yield found


def _main_model(usage: JsonObject) -> str:
    """The model that wrote the most; a program may use a small one beside it."""
    written = {name: as_object(one).get("outputTokens") or 0 for name, one in usage.items()}
    return max(written, key=lambda name: written[name]) if written else ""


def _stop_reason(given: Json) -> str:
    return given if given in ("max_tokens", "refusal") else "end_turn"
