"""Decides which settings in a folder's files count: all of them if the user trusts it, else those that only restrict.

Values are compared with the managed and user settings, so that the result does not depend on other files of the folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from reverie.paths import Repo
from reverie.quick import dataclass
from reverie.settings import trust
from reverie.settings.reach import FolderRule, find_reach, needs_trust
from reverie.settings.schema import Settings, get_value, list_settings
from reverie.settings.trust import ActingPart, TrustBook

if TYPE_CHECKING:
    from reverie.settings.loading import GivenValue
    from reverie.settings.sections import HookCommand

_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The values that count, the parts that can act, and one sentence per reason why values are ignored."""

    counted: list[tuple[GivenValue, object]]
    parts: tuple[ActingPart, ...]
    warnings: list[str]


def judge_folder(
    found: Sequence[tuple[Path, list[tuple[GivenValue, object]]]], base: Mapping[str, object], home: Path, repo: Repo
) -> FolderSettings:
    """Judges the values of each file of a folder (`found`); `base` has the settings without this folder."""
    defaults = Settings()
    pairs = [
        (given, value, _find_acting_part(folder, given, value, base, defaults))
        for folder, values in found
        for given, value in values
    ]
    acting = [part for _, _, part in pairs if part is not None]
    book = TrustBook.read(home) if any(part.can_be_trusted for part in acting) else TrustBook()
    states = _find_states(acting, book, repo)
    counted: list[tuple[GivenValue, object]] = []
    parts: list[ActingPart] = []
    for given, value, part in pairs:
        if part is not None and part.can_be_trusted:
            part = replace(part, ignored=states[part.folder])
        if part is not None:
            parts.append(part)
        if part is None or not part.ignored:
            counted.append((given, _set_hook_folder(value, part)))
    warnings = [book.problem] if book.problem else []
    return FolderSettings(counted, tuple(parts), [*warnings, *list_ignored(parts)])


def _find_acting_part(
    folder: Path, given: GivenValue, value: object, base: Mapping[str, object], defaults: Settings
) -> ActingPart | None:
    """Returns a part for a value that can act; None if the value only restricts."""
    setting = list_settings()[given.key]
    now = base.get(given.key, get_value(defaults, given.key))
    limit = base.get("tool_results.default_limit", defaults.tool_results.default_limit)
    if not needs_trust(given.key, value, now, limit):
        return None
    committed = given.source.place == "project"
    reach = find_reach(given.key, value)
    file = given.source.file
    assert file is not None, "the values of a folder come from files"
    return ActingPart(
        folder=folder,
        file=file.path.relative_to(folder).as_posix(),
        line=file.line(given.source.path),
        key=given.key,
        value=None if setting.secret else given.value,
        risk=reach.risk,
        look=trust.make_check(given.key, given.value, folder),
        ignored=trust.COMMITTED_NEVER if committed and reach.rule is FolderRule.USER else "",
    )


def _set_hook_folder(value: object, part: ActingPart | None) -> object:
    """Sets where the hooks of a folder run: in that folder, not in the folder of the session."""
    if part is None or not part.key.startswith("hooks."):
        return value
    return tuple(hook.at(part.folder) for hook in cast("tuple[HookCommand, ...]", value))


def _find_states(acting: Sequence[ActingPart], book: TrustBook, repo: Repo) -> dict[Path, str]:
    """Returns the reason why each folder is not trusted; empty for a trusted folder."""
    folders = dict.fromkeys(part.folder for part in acting)
    if not book.knows(*folders, repo.root):
        return dict.fromkeys(folders, trust.NOT_TRUSTED)
    found = trust.digest_parts(acting)
    states: dict[Path, str] = {}
    for folder in folders:
        # A worktree uses only the local files of its repository, so only those count.
        files = trust.SETTINGS_FILES if folder == repo.checkout else trust.LOCAL_FILES
        here = found.get(str(folder), {})
        states[folder] = book.state(folder, {name: here.get(name, "") for name in files}, repo.root)
    return states


def list_ignored(parts: Sequence[ActingPart]) -> list[str]:
    """Returns one sentence per folder and reason."""
    by_reason: dict[tuple[Path, str], list[str]] = {}
    for part in parts:
        if part.ignored:
            by_reason.setdefault((part.folder, part.ignored), []).append(part.key)
    return [_sentence(folder, why, list(dict.fromkeys(keys))) for (folder, why), keys in by_reason.items()]


def _sentence(folder: Path, why: str, keys: list[str]) -> str:
    shown = ", ".join(f"`{key}`" for key in keys[:_MOST_NAMED])
    more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
    todo = "set it in your own settings" if why == trust.COMMITTED_NEVER else "`reverie trust` shows it and asks"
    return f"{folder}: {shown}{more} {'is' if len(keys) == 1 else 'are'} ignored: {why}; {todo}."
