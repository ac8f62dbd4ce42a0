"""Decides whether memory is on and where it is, and by which rule.

A folder that the caller's `check` refuses is an error, never a silent move to another place.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from reverie.errors import SettingsError, UserError
from reverie.parsing import Unparsable, load_json
from reverie.paths.places import SLUG_LENGTH, Places, replace_signs
from reverie.quick import dataclass
from reverie.regular_files import read_regular

if TYPE_CHECKING:
    from reverie.settings import Settings


@dataclass(frozen=True, slots=True)
class MemorySwitch:
    """Whether memory is on, and the rule that decided it."""

    on: bool
    rule: str


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Where memory is, and the rule that decided it."""

    directory: Path
    rule: str


class RootCheck(Protocol):
    """Checks a folder that a user named: returns it normalised, or raises a `ReverieError`."""

    def __call__(self, path: str, *, home: Path, expand_tilde: bool = False) -> Path: ...


def memory_switch(settings: Settings) -> MemorySwitch:
    """Returns on or off, by the first rule that applies."""
    memory, remote = settings.memory, settings.remote
    if memory.disable is not None:
        return MemorySwitch(not memory.disable, f"REVERIE_DISABLE_MEMORY is {'1' if memory.disable else '0'}")
    if settings.session.bare:
        return MemorySwitch(False, f"bare ({_source(settings, 'session.bare')})")
    if remote.enabled and remote.memory_directory is None:
        return MemorySwitch(False, "REVERIE_REMOTE is set and REVERIE_REMOTE_MEMORY_DIR is not")
    if "memory.enabled" in settings.sources:
        return MemorySwitch(memory.enabled, f"setting memory.enabled ({_source(settings, 'memory.enabled')})")
    return MemorySwitch(memory.enabled, "default")


def memory_place(places: Places, settings: Settings, check: RootCheck) -> MemoryPlace:
    """Returns the memory directory, by the first rule that applies. If `check` refuses it, raises a `SettingsError`."""
    home = settings.places.user_home
    if settings.memory.path:
        is_given = "memory.path" not in settings.sources  # by a program, with `Memory.open`
        who = "given by the program" if is_given else "environment REVERIE_MEMORY_PATH"
        directory = _check(check, settings.memory.path, home, False, who)
        return MemoryPlace(directory, who.removeprefix("environment "))
    if settings.memory.directory:
        source = _source(settings, "memory.directory")
        directory = _check(check, settings.memory.directory, home, True, f"{source}: `memory.directory`")
        return MemoryPlace(directory, f"setting memory.directory ({source})")
    if places.remote_memory is not None:
        return MemoryPlace(places.default_memory, "REVERIE_REMOTE_MEMORY_DIR")
    if settings.memory.shared_with:
        return _place_of_claude(places, settings, check)
    return MemoryPlace(places.default_memory, "default; one per repository")


def claude_home(settings: Settings) -> Path:
    """Returns the folder where Claude Code keeps its settings, sessions and memory."""
    return settings.places.claude or settings.places.user_home / ".claude"


def _place_of_claude(places: Places, settings: Settings, check: RootCheck) -> MemoryPlace:
    """Returns the folder that Claude Code uses in this project: by its setting for all projects, or by the root."""
    claude, rule = claude_home(settings), f"shared with Claude Code, {_source(settings, 'memory.shared_with')}"
    if given := claude_memory_setting(claude):
        who = f"{claude / 'settings.json'}: `autoMemoryDirectory`"
        return MemoryPlace(_check(check, given, settings.places.user_home, True, who), f"{rule}; {who}")
    return MemoryPlace(claude / "projects" / claude_slug(places.root) / "memory", rule)


def claude_slug(path: Path) -> str:
    """Returns the folder name that Claude Code gives a project: as ours, but long names end in another hash."""
    text = str(path)
    if len(name := replace_signs(path)) <= SLUG_LENGTH:
        return name
    units, number = text.encode("utf-16-le", "surrogatepass"), 0
    for index in range(0, len(units), 2):
        number = (number * 31 + units[index] + 256 * units[index + 1]) & 0xFFFF_FFFF
    number = abs(number - 2**32 if number >= 2**31 else number)
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:SLUG_LENGTH]}-{digits or '0'}"


def claude_memory_setting(claude: Path) -> str:
    """Returns the one folder that Claude Code uses for all projects, if the user's settings name one; else empty."""
    try:
        found = load_json(read_regular(claude / "settings.json").decode("utf-8-sig"))
    except (OSError, Unparsable, UnicodeDecodeError):
        return ""
    given = cast("dict[str, object]", found).get("autoMemoryDirectory") if isinstance(found, dict) else None
    return given if isinstance(given, str) else ""


def _check(check: RootCheck, path: str, home: Path, expand_tilde: bool, who: str) -> Path:
    try:
        return check(path, home=home, expand_tilde=expand_tilde)
    except UserError as error:
        raise SettingsError(f"{who}: {error}") from error


def _source(settings: Settings, key: str) -> str:
    return ", ".join(map(str, settings.sources.get(key, ("default",))))
