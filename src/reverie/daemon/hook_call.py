"""One call of a hook as the service understands it. Every field may be missing or wrong: then it counts as empty."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reverie.errors import UserError
from reverie.paths import check_session_id
from reverie.quick import dataclass
from reverie.types import JsonObject

_SESSIONS: Final = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
    "codex": ("CODEX_HOME", ".codex", "sessions"),
}
"""Where each agent keeps its sessions: the variable for its folder, its usual folder, and the place in it."""
AGENTS: Final = tuple(_SESSIONS)
_PLACES: Final = ("HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")
"""The variables that say where a program keeps its files. Each session may have others."""
RESULTS: Final = "tool-results"
"""The folder of large outputs among the files of a session of Claude Code."""
_COMMAND: Final = re.compile(r"\s*/[\w:.-]+(?=\s|\Z)")
"""A command such as /compact; not a path such as /etc/hosts."""


@dataclass(frozen=True, slots=True)
class HookCall:
    """What a hook was called with."""

    agent: str
    event: str
    session: str
    cwd: Path
    transcript: Path | None
    """The file that the agent writes; None if the payload names one where this agent keeps none."""
    payload: JsonObject
    environment: Mapping[str, str]

    @classmethod
    def read(cls, agent: str, event: str, payload: JsonObject, environment: Mapping[str, str]) -> HookCall:
        """Checks what every event has. Raises `UserError` if there is no session or no folder."""
        if agent not in AGENTS:
            raise UserError(f"{agent[:40]!r} is not an agent that is known here.")
        session = check_session_id(_text(payload, "session_id"))
        # A shell of Claude Code may change its folder in the middle of a session; the project stays.
        given = environment.get("CLAUDE_PROJECT_DIR", "") if agent == "claude-code" else ""
        cwd = _path(given) or _path(_text(payload, "cwd"))
        if cwd is None:
            raise UserError("the hook names no working folder.")
        transcript = _own_transcript(agent, _path(_text(payload, "transcript_path")), environment)
        return cls(agent, event, session, cwd, transcript, payload, environment)

    def text(self, name: str) -> str:
        """Returns a text of the payload; empty if it is missing or of another type."""
        return _text(self.payload, name)

    @property
    def variables(self) -> dict[str, str]:
        """Where the program of this session keeps its files."""
        return {name: value for name, value in self.environment.items() if name in _PLACES}

    @property
    def is_subagent(self) -> bool:
        """Whether a sub-agent called it."""
        return bool(self.payload.get("agent_id"))

    @property
    def prompt(self) -> str:
        """What the user said; empty for a command and for a sub-agent."""
        said = self.text("prompt")
        return "" if self.is_subagent or _COMMAND.match(said) else said.strip()

    @property
    def files(self) -> Path | None:
        """The folder where Claude Code keeps the files of this session, which it may read without asking."""
        if self.transcript is None or self.transcript.name != f"{self.session}.jsonl":
            return None
        folder = self.transcript.with_suffix("")
        real = Path(os.path.realpath(folder.parent), folder.name, RESULTS)
        return folder if folder.parent.is_dir() and os.path.realpath(folder / RESULTS) == str(real) else None


def _own_transcript(agent: str, path: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The path, if it leads to where this agent keeps its sessions: only there anything is read and written."""
    places = environment_for(environment)
    variable, usual, inside = _SESSIONS[agent]
    kept = places.get(variable) or os.path.join(places.get("HOME", "/nowhere"), usual)  # noqa: PTH118
    root = os.path.realpath(os.path.join(kept, inside))  # noqa: PTH118
    return path if path is not None and Path(os.path.realpath(path)).is_relative_to(root) else None


def environment_for(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment for work on a session: ours, without what the session that started us had set for itself."""
    kept = {name: value for name, value in {**os.environ}.items() if name == "HOME" or name not in _PLACES}
    return kept | {name: value for name, value in variables.items() if name in _PLACES}


def _text(payload: JsonObject, name: str) -> str:
    found = payload.get(name)
    return found if isinstance(found, str) else ""


def _path(given: str) -> Path | None:
    return Path(given) if given.startswith("/") and "\0" not in given else None
