"""`codex:MODEL`: Codex without its tools, hooks, plug-ins and memories, with the login that the user has.

Its user configuration is not read, but its login is. docs/decisions/0043 says what the options leave in.
"""

from __future__ import annotations

import json

from reverie.errors import ModelError
from reverie.models.base import Request
from reverie.models.forced import read_object
from reverie.models.openai_wire import is_strict
from reverie.models.programs.failures import program_error
from reverie.models.programs.frame import Frame
from reverie.models.programs.model import ProgramAnswer, ProgramModel
from reverie.models.programs.running import Program, Scratch
from reverie.models.wire import as_object
from reverie.types import JsonObject, Usage

MISSING = (
    "Install Codex (`npm install -g @openai/codex`) and log in once with `codex login`, or set model.codex_program."
)
_LOGIN = "Run `codex login` in a terminal."
_FEATURES = (
    *("hooks", "plugins", "remote_plugin", "apps", "memories", "goals", "skill_search", "tool_suggest", "multi_agent"),
    *("shell_tool", "shell_snapshot", "unified_exec", "view_image", "image_generation", "browser_use", "computer_use"),
    *("sleep_tool", "unbounded_connection_retries"),
)
_CONFIGURATION = (
    *(f"features.{name}=false" for name in _FEATURES),
    *("project_doc_max_bytes=0", 'web_search="disabled"', "notify=[]", 'approval_policy="never"'),
    *(
        "include_environment_context=false",
        "include_permissions_instructions=false",
        "skills.include_instructions=false",
    ),
)
_CLEAN = (
    *("exec", "--json", "--ephemeral", "--skip-git-repo-check", "--sandbox", "read-only", "--color", "never"),
    *("--ignore-user-config", "--ignore-rules", *(word for each in _CONFIGURATION for word in ("-c", each))),
)
_EFFORTS = ("low", "medium", "high")


class CodexModel(ProgramModel):
    """One model of Codex; an empty name is its default."""

    input_form = "text"

    def __init__(self, model: str, program: Program) -> None:
        super().__init__(f"codex:{model}", program)
        self._model = model

    async def ask(self, framed: Frame, request: Request, scratch: Scratch) -> ProgramAnswer:
        system = scratch.write("system.md", framed.system)
        options = [*_CLEAN, "-c", f"model_instructions_file={json.dumps(system)}"]
        options += [f"--model={self._model}"] if self._model else []
        if request.effort in _EFFORTS:
            options += ["-c", f'model_reasoning_effort="{request.effort}"']
        if framed.schema is not None and is_strict(framed.schema):
            options += ["--output-schema", scratch.write("schema.json", json.dumps(framed.schema))]
        ran = await self._program.run([*options, "-"], framed.prompt, scratch)
        events = [one for line in ran.stdout.splitlines() if (one := read_object(line)) is not None]
        said = [item.get("text") for item in map(_item, events) if item.get("type") == "agent_message"]
        done = next((as_object(one.get("usage")) for one in events if one.get("type") == "turn.completed"), None)
        if done is None:
            failed = _complaint(events)
            if not failed and ran.exit_code == 0:
                raise ModelError(f"{self._program.shown} printed no result: {ran.complaint}.")
            raise program_error(
                self._program.shown, failed or f"exit code {ran.exit_code}: {ran.complaint}", login=_LOGIN
            )
        rest = {key: value for key, value in done.items() if key not in ("input_tokens", "output_tokens")}
        return ProgramAnswer(str(said[-1]) if said else "", self._model, _usage(done), rest)


def _item(event: JsonObject) -> JsonObject:
    return as_object(event.get("item")) if event.get("type") == "item.completed" else {}


def _complaint(events: list[JsonObject]) -> str:
    """The last failure that the events report; a server's own error may be inside, as JSON."""
    for event in reversed(events):
        if event.get("type") in ("turn.failed", "error"):
            said = str(as_object(event.get("error")).get("message") or event.get("message") or "")
            inner = as_object((read_object(said) or {}).get("error"))
            return str(inner.get("message") or said)
    return ""


def _usage(given: JsonObject) -> Usage | None:
    """Codex counts what was read from the cache as input."""
    counts = {key: value for key, value in given.items() if isinstance(value, int) and value >= 0}
    sent, cached = counts.get("input_tokens", 0), counts.get("cached_input_tokens", 0)
    written = counts.get("output_tokens", 0)
    return Usage(max(0, sent - cached), written, cached) if sent or written else None
