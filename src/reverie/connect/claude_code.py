"""Claude Code: its settings file, the two keys that load our plug-in, and the rules of an administrator.

Claude Code loads a plug-in from a folder if its settings name the folder as a marketplace and enable the plug-in. It
then writes lists of its own; `forget_plugin` takes our entries out of them. Settings with comments are not JSON, and
Claude Code does not read them either.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

from reverie.connect.files import UserFile, read_user_file, replace_file
from reverie.connect.json_text import Route, get_items, get_value, remove_value, set_value
from reverie.errors import ReverieError, UserError
from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.types import Json, JsonObject

AGENT = "claude-code"
KIND = "claude-code settings"
NAME = "reverie"
PLUGIN = f"{NAME}@{NAME}"
"""The plug-in and its marketplace."""
MARKETPLACE: Route = ("extraKnownMarketplaces", NAME)
ENABLED: Route = ("enabledPlugins", PLUGIN)
_MANAGED = Path("/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code")
_LISTS: tuple[tuple[str, Route], ...] = (
    ("known_marketplaces.json", (NAME,)),
    ("installed_plugins.json", ("plugins", PLUGIN)),
)
_PLACES = ("", "data", "marketplaces", "cache", *(name for name, _ in _LISTS))
"""What Claude Code makes below its folder `plugins` when it loads a plug-in."""


def settings_path(claude: Path, project: Path | None) -> Path:
    """The file that `connect` edits. For one project it is the local one, because it names paths of this machine."""
    return claude / "settings.json" if project is None else project / ".claude" / "settings.local.json"


def find_missing(claude: Path) -> tuple[str, ...]:
    """What Claude Code will make because of our plug-in and is not there now."""
    return tuple(str(path) for name in _PLACES if not (path := claude / "plugins" / name).exists())


def add_plugin(file: UserFile, marketplace: Path) -> str:
    """The text of the settings with our two keys. Raises `UserError` if the user has decided otherwise."""
    data, text = file.parse(), file.text
    for route in (MARKETPLACE, ENABLED):
        if not isinstance(data.get(route[0], {}), dict):
            raise UserError(f"{file.path}: `{route[0]}` is not an object; nothing was changed. Correct it first.")
    if get_value(data, ENABLED) is False:
        raise UserError(
            f"{file.path}: you have switched {PLUGIN} off, so nothing was changed; remove that line to use it again."
        )
    source: JsonObject = {"source": {"source": "directory", "path": str(marketplace)}}
    there = get_value(data, MARKETPLACE)
    if there is not None and not _is_ours(there):
        raise UserError(f"{file.path}: there is another marketplace with the name {NAME!r}; remove it first.")
    if there is not None and get_value(there, ("source", "path")) != str(marketplace):
        other = get_value(there, ("source", "path"))
        if (Path(str(other)) / ".claude-plugin").is_dir():
            raise UserError(f"{file.path}: is connected to another home of Reverie ({other}); disconnect that first.")
    for other, state in cast("JsonObject", data.get("enabledPlugins") or {}).items():
        if other.startswith(f"{NAME}@") and other != PLUGIN and state:
            raise UserError(
                f"{file.path}: the plug-in {other} has the same name and is enabled; disable it first, "
                "else everything would happen twice."
            )
    text = text if text.strip() else "{}\n"
    if get_value(there, ("source",)) != source["source"]:
        text = set_value(text, MARKETPLACE, source)
    return text if get_value(data, ENABLED) is True else set_value(text, ENABLED, True)


def _is_ours(source: Json) -> bool:
    """Whether a marketplace is one that `connect` writes, perhaps of another home."""
    path = str(get_value(source, ("source", "path")) or "")
    return get_value(source, ("source", "source")) == "directory" and path.endswith(f"/connect/{AGENT}")


def strip_plugin(text: str, before: str) -> str:
    """The settings without our keys, and without objects that only they needed."""
    old: Json = load_json(before) if before.strip() else {}
    marketplace = get_value(load_json(text), MARKETPLACE)
    for route in (MARKETPLACE, ENABLED):
        if route == ENABLED or (marketplace is not None and _is_ours(marketplace)):
            text = remove_value(text, route)
        if get_value(old, route[:1]) is None and get_value(load_json(text), route[:1]) == {}:
            text = remove_value(text, route[:1])
    return text


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule of an administrator that stops us: the file and the key."""

    file: Path
    key: str

    def __str__(self) -> str:
        return f"{self.file}: `{self.key}`"


def find_policy(marketplace: Path, managed: Path = _MANAGED) -> Policy | None:
    """The rule of an administrator that keeps our plug-in or its hooks from running; None if there is none."""
    for file in (managed / "managed-settings.json", *sorted(managed.glob("managed-settings.d/*.json"))):
        rules = read_object(file)
        for key in ("disableAllHooks", "allowManagedHooksOnly"):
            if rules.get(key) is True:
                return Policy(file, key)
        if get_value(rules, ENABLED) is False:
            return Policy(file, "enabledPlugins")
        allowed, blocked = ("strictKnownMarketplaces",), ("blockedMarketplaces",)
        if allowed[0] in rules and not any(_matches(one, marketplace) for one in get_items(rules, allowed)):
            return Policy(file, allowed[0])
        if any(_matches(one, marketplace) for one in get_items(rules, blocked)):
            return Policy(file, blocked[0])
    return None


def _matches(rule: Json, marketplace: Path) -> bool:
    if get_value(rule, ("path",)) == str(marketplace):
        return True
    try:
        return re.search(str(get_value(rule, ("pathPattern",)) or r"\A\Z"), str(marketplace)) is not None
    except re.error:
        return False


def read_object(file: Path) -> JsonObject:
    """The JSON object in a file; empty if there is none that can be read."""
    try:
        found = load_json(read_regular(file).decode("utf-8-sig"))
    except (OSError, Unparsable, UnicodeDecodeError):
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Loading:
    """Whether Claude Code loads the plug-in from one settings file, and whether the user keeps hooks from running."""

    path: Path
    marketplace: str
    enabled: bool | None
    hooks_off: bool


def find_loading(path: Path) -> Loading:
    """What a settings file says about the plug-in."""
    data = read_object(path)
    enabled, marketplace = get_value(data, ENABLED), get_value(data, (*MARKETPLACE, "source", "path"))
    return Loading(
        path,
        marketplace if isinstance(marketplace, str) else "",
        enabled if isinstance(enabled, bool) else None,
        data.get("disableAllHooks") is True,
    )


def trusts_folder(claude: Path, user_home: Path, project: Path) -> bool:
    """Whether the user has trusted a project in Claude Code. Until then, it does not load plug-ins of its settings."""
    state = read_object((user_home if claude == user_home / ".claude" else claude) / ".claude.json")
    folders = map(str, (project, *project.parents))
    return any(get_value(state, ("projects", one, "hasTrustDialogAccepted")) is True for one in folders)


def find_other_installs(claude: Path) -> list[str]:
    """Plug-ins with our name that Claude Code has installed from another marketplace."""
    plugins = read_object(claude / "plugins" / "installed_plugins.json").get("plugins")
    names = cast("JsonObject", plugins) if isinstance(plugins, dict) else {}
    return [name for name in names if name.startswith(f"{NAME}@") and name != PLUGIN]


def forget_plugin(claude: Path, made: Collection[str]) -> list[Path]:
    """Removes what Claude Code wrote down about our plug-in, and returns each place. Other entries keep their bytes.

    `made`: what was not there before our plug-in; it goes too if it is empty now.
    """
    changed = list(_remove_entries(claude / "plugins"))
    for path in (claude / "plugins" / name for name in reversed(_PLACES) if str(claude / "plugins" / name) in made):
        with suppress(OSError):  # somebody else keeps something there
            if path.is_dir():
                path.rmdir()
            elif _is_empty(path):
                path.unlink()
    return changed


def _is_empty(path: Path) -> bool:
    """Whether a list of Claude Code names nothing."""
    found = read_object(path)
    empty = read_regular(path).split() in ([b"{}"], [b"{", b"}"])
    return empty or (bool(found) and all(value == {} for key, value in found.items() if key != "version"))


def _remove_entries(plugins: Path) -> Iterator[Path]:
    for name, route in _LISTS:
        try:
            file = read_user_file(plugins / name)
            if get_value(file.parse(), route) is None:
                continue
            replace_file(file, file.encode(remove_value(file.text, route)))
        except ReverieError:  # a list that cannot be read does not keep the plug-in alive
            continue
        yield file.path
    for folder in (plugins / "cache" / NAME, plugins / "data" / f"{NAME}-{NAME}"):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
            yield folder
