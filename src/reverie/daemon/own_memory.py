"""Whether Claude Code loads the index of a memory by itself: then a hook does not repeat it. Reads only.

Tried with Claude Code 2.1: it loads MEMORY.md of `<configuration>/projects/<project>/memory`, unless the variable
CLAUDE_CODE_DISABLE_AUTO_MEMORY is true, or (if that is not set) `autoMemoryEnabled` is false, or `autoMemoryDirectory`
names another folder. With `--bare` and CLAUDE_CODE_SIMPLE it loads nothing, and runs no hooks either.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from reverie.daemon.hook_call import HookCall
from reverie.parsing import load_json
from reverie.paths import Places, same
from reverie.paths.memory import claude_slug
from reverie.regular_files import read_regular
from reverie.types import JsonObject

_MANAGED: Final = Path("/etc/claude-code/managed-settings.json")
_TRUE: Final = ("1", "true", "yes", "on")


def loads_index(call: HookCall, places: Places, memory: Path) -> bool:
    """Returns whether the agent itself loads the index of this memory directory. Codex never does."""
    if call.agent != "claude-code" or call.files is None:
        return False
    disabled = call.environment.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "").strip().lower()
    settings = list(_settings(call, places))
    if disabled in _TRUE or (not disabled and _first(settings, "autoMemoryEnabled") is False):
        return False
    chosen = _first(settings, "autoMemoryDirectory")
    if isinstance(chosen, str) and chosen:
        return same(Path(chosen).expanduser(), memory)
    projects = call.files.parent.parent
    return any(same(projects / name / "memory", memory) for name in (call.files.parent.name, claude_slug(places.root)))


def _settings(call: HookCall, places: Places) -> Iterator[JsonObject]:
    """Yields the settings of Claude Code, the strongest first."""
    assert call.files is not None
    own = places.checkout / ".claude"
    configuration = call.files.parent.parent.parent
    for path in (_MANAGED, own / "settings.local.json", own / "settings.json", configuration / "settings.json"):
        try:
            found: Any = load_json(read_regular(path))
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            yield cast(JsonObject, found)


def _first(settings: list[JsonObject], key: str) -> object:
    return next((one[key] for one in settings if key in one), None)
