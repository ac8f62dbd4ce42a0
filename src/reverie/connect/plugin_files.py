"""Writes the plug-in for Claude Code and the hook script for Codex below Reverie's home.

Everything comes from the files in `plugin/` and from this version: the interpreter, the home and the socket are written
into the scripts, because a hook may run with any environment. A second call with the same version changes nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from reverie import __version__
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.types import JsonObject

_SOURCE = Path(__file__).with_name("plugin")
_COMMAND = "reverie.sh"
MCP_FILE = "reverie/.mcp.json"
"""The file of the plug-in that starts the MCP server."""
_RETIRED = b"#!/bin/sh\n# Does nothing: Reverie is disconnected. Programs that still run may call it.\n"
_HOOK_OF_NOBODY = _RETIRED + b"exec cat >/dev/null\n"
_COMMAND_OF_NOBODY = _RETIRED + b'echo "Reverie is disconnected; restart Claude Code."\n'
_RETIRED_S = 86_400.0
_HOOK = Path(__file__).parents[1] / "daemon" / "hook.py"
_DESCRIPTION = "A memory for Claude Code that stays on this machine"
_SECONDS: Mapping[str, int] = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "PostToolUse": 5,
    "PreCompact": 5,
    "PostCompact": 5,
    "Stop": 5,
    "SessionEnd": 3,
}
"""The events, and when the agent stops a hook that hangs. The hook's own limits are shorter. None is `async`: Claude
Code ends such hooks when it ends, and then waits longer for them than they take."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A plug-in or script that was written: its version, and the Python that it starts."""

    version: str
    python: str

    @property
    def works(self) -> bool:
        return os.access(self.python, os.X_OK)


def plugin_files(home: Path, socket: Path, mcp: JsonObject | None = None) -> dict[str, bytes]:
    """The marketplace for Claude Code: the content of each file, by its path below the folder. `mcp` says how to start
    the MCP server, if the plug-in has one."""
    owner = {"name": "Reverie"}
    plugin = {
        "name": "reverie",
        "version": __version__,
        "description": _DESCRIPTION,
        "author": owner,
        "license": "Apache-2.0",
        "keywords": ["memory", "context", "compaction"],
    }
    entry = {"name": "reverie", "source": "./reverie", "description": _DESCRIPTION}
    marketplace = {"name": "reverie", "owner": owner, "description": _DESCRIPTION, "plugins": [entry]}
    hooks = {event: [{"hooks": [hook_entry('"${CLAUDE_PLUGIN_ROOT}/hooks/hook.sh"', event)]}] for event in _SECONDS}
    written: dict[str, object] = {
        ".claude-plugin/marketplace.json": marketplace,
        "reverie/.claude-plugin/plugin.json": plugin,
        "reverie/hooks/hooks.json": {"description": "Passes events to Reverie's service", "hooks": hooks},
    }
    if mcp is not None:
        written[MCP_FILE] = {"mcpServers": {"reverie": mcp}}
    files = {name: json.dumps(value, indent=2).encode() + b"\n" for name, value in written.items()}
    for path in sorted(_SOURCE.rglob("*")):
        if path.is_file():
            files[f"reverie/{path.relative_to(_SOURCE)}"] = read_regular(path)
    files["reverie/hooks/hook.sh"] = hook_script("claude-code", home, socket)
    files[f"reverie/{_COMMAND}"] = _command_script(home)
    return files


def hook_entry(script: str, event: str) -> dict[str, object]:
    """One hook, as both agents write it. `sh` ends with 2 if the script is gone, and that would stop the prompt."""
    command = f"sh {script} {event} || cat >/dev/null"
    return {"type": "command", "command": command, "timeout": _SECONDS[event]}


def hook_script(agent: str, home: Path, socket: Path) -> bytes:
    """The script that a hook runs. Without its Python, for example in a deleted environment, it does nothing."""
    python, hook = shlex.quote(sys.executable), shlex.quote(str(_HOOK))
    return (
        "#!/bin/sh\n"
        f"# Passes one event to the service of Reverie {__version__}. Written by `reverie connect`.\n"
        f"python={python}\n"
        f'if test -n "$REVERIE_INSIDE" || ! test -x "$python" || ! test -r {hook}; then\n'
        "  exec cat >/dev/null\n"  # the agent must not get an error while it writes
        "fi\n"
        f'"$python" -I -S {hook} {agent} "$1" {shlex.quote(str(home))} {shlex.quote(str(socket))} 2>/dev/null\n'
        "exit 0\n"  # an interpreter that cannot start ends with 2, and that would stop the prompt
    ).encode()


def _command_script(home: Path) -> bytes:
    """The script of the commands. Their text comes on standard input, and the session from the environment: Claude
    Code runs no command with a variable without a question. As an argument, the text
    counts as entered by the user."""
    return (
        "#!/bin/sh\n"
        f"# Runs a command of Reverie {__version__}. Written by `reverie connect`.\n"
        f"python={shlex.quote(sys.executable)}\n"
        'test -x "$python" || { echo "$python is gone; run: reverie connect claude-code"; exit; }\n'
        f"export REVERIE_HOME={shlex.quote(str(home))}\n"
        'case "$1" in\n'
        'pin) set -- pin --new -s "$CLAUDE_CODE_SESSION_ID" -- "$(cat)" ;;\n'
        'remember) set -- remember -- "$(cat)" ;;\n'
        "esac\n"
        '"$python" -P -m reverie "$@" 2>&1 || true\n'
    ).encode()


def write_files(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Makes the content of a folder exactly this; returns whether something changed."""
    changed = False
    for name, data in files.items():
        path = folder / name
        if _content(path) == data:
            continue
        make_private_dir(path.parent)
        write_atomic(path, data, mode=0o755 if name.endswith(".sh") else 0o644)
        changed = True
    for path in sorted(folder.rglob("*"), reverse=True):
        relative = path.relative_to(folder)
        if path.is_file() and str(relative) not in files:
            path.unlink(missing_ok=True)
            changed = True
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    return changed


def is_current(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the folder has these files, and no MCP server that is not among them."""
    is_extra = bool(files) and MCP_FILE not in files and (folder / MCP_FILE).exists()
    return not is_extra and all(_content(folder / name) == data for name, data in files.items())


def remove_files(folder: Path) -> None:
    """Removes a folder that `write_files` made."""
    shutil.rmtree(folder, ignore_errors=True)


def retire_files(folder: Path) -> None:
    """Replaces the scripts in a folder by ones that do nothing, and removes the rest; after a day, removes all.

    An agent that runs still calls them: without them, it would report an error with every prompt.
    """
    scripts = {str(path.relative_to(folder)): path for path in folder.rglob("*.sh")}
    if is_active(folder):
        write_files(
            folder,
            {name: _COMMAND_OF_NOBODY if path.name == _COMMAND else _HOOK_OF_NOBODY for name, path in scripts.items()},
        )
    elif not any(time.time() - path.stat().st_mtime < _RETIRED_S for path in scripts.values()):
        remove_files(folder)


def is_active(folder: Path) -> bool:
    """Whether a folder has scripts that do something."""
    return any(find_installed(path) for path in folder.rglob("*.sh"))


def find_installed(script: Path) -> Installed | None:
    """What a hook script starts; None if it is not our script, or not there."""
    text = (_content(script) or b"").decode("utf-8", "replace")
    versions = [line.partition("of Reverie ")[2].partition(". Written")[0] for line in text.splitlines()[1:2]]
    pythons = [line.removeprefix("python=") for line in text.splitlines() if line.startswith("python=")]
    if not versions or not pythons:
        return None
    return Installed(versions[0], next(iter(shlex.split(pythons[0])), ""))


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None
