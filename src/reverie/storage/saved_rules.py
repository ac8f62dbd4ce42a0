"""Saves the permission rules that the user chose to always allow: in the local settings file of the project.

The file keeps its comments and order. The user's own change does not end the trust in the folder, but only if nothing
else in its files has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from reverie.errors import UserError
from reverie.parsing import load_toml
from reverie.paths import find_repo
from reverie.permissions.patterns import parse_rule
from reverie.quick import dataclass
from reverie.settings import Settings, load_settings
from reverie.settings.toml_file import TomlFile
from reverie.settings.toml_lists import add_to_list, remove_from_list
from reverie.settings.trust import LOCAL, ActingPart
from reverie.storage.atomic import create_exclusive, make_private_dir, storage_error, write_atomic
from reverie.storage.locks import exclusive
from reverie.storage.trust_file import trust

_WAIT_S = 10.0
_KEY = "permissions.allow"
_IGNORED = b".gitignore\nsettings.local.toml\n"


def find_local_file(cwd: Path) -> Path:
    """Returns the local settings file of the checkout around a folder."""
    return find_repo(cwd).checkout / LOCAL


@dataclass(frozen=True, slots=True)
class LocalRules:
    """The rules in the local settings of the project around `cwd`."""

    cwd: Path
    home: Path

    @property
    def path(self) -> Path:
        return find_local_file(self.cwd)

    def save(self, rules: tuple[str, ...]) -> None:
        save_rules(self.cwd, self.home, rules)


def save_rules(cwd: Path, home: Path, rules: Iterable[str]) -> Path:
    """Adds allow rules to the local settings and returns the file. Raises UserError in a folder that is not trusted."""
    wanted = [str(parse_rule(rule)) for rule in rules]

    def change(text: str) -> str:
        for rule in wanted:
            text = add_to_list(text, "permissions", "allow", rule)
        return text

    if waiting := [part for part in load_settings(cwd, home=home).parts if part.can_be_trusted and part.ignored]:
        raise UserError(f"The rule is not saved: {waiting[0].ignored}; `reverie trust` shows what is there and asks.")
    return _change_file(cwd, home, change)


def remove_rule(cwd: Path, home: Path, rule: str) -> Path:
    """Removes an allow rule from the local settings and returns the file; raises UserError if it is not there."""
    path = find_local_file(cwd)
    if not any(one.rule == rule and one.file == path for one in list_rules(load_settings(cwd, home=home))):
        raise UserError(f"There is no saved rule {rule} in {path}; `reverie permissions list` shows all rules.")
    return _change_file(cwd, home, lambda text: remove_from_list(text, "permissions", "allow", rule))


def _change_file(cwd: Path, home: Path, change: Callable[[str], str]) -> Path:
    path = find_local_file(cwd)
    checkout = path.parent.parent
    make_private_dir(home)
    with exclusive(home / ".saved-rules.lock", timeout_s=_WAIT_S, what="The list of saved rules"):
        before = load_settings(cwd, home=home)  # also checks that the file can be read
        if not Path(os.path.realpath(path)).is_relative_to(checkout):
            raise UserError(f"{path} leads out of the project, so it is not changed.")
        file = TomlFile.read(path)
        text = change(file.text if file is not None else "")
        try:
            path.parent.mkdir(exist_ok=True)
            create_exclusive(path.parent / ".gitignore", _IGNORED)  # rules are of this machine, and not committed
        except OSError as error:
            raise storage_error(error, path.parent, "make") from error
        write_atomic(Path(os.path.realpath(path)), text.encode())
        after = load_settings(cwd, home=home)
        was_trusted = not any(part.ignored for part in before.parts if part.can_be_trusted)
        as_wanted = _is_as_written(before.parts, checkout, file.data if file is not None else {}) and _is_as_written(
            after.parts, checkout, load_toml(text)
        )
        others = [_list_others(one.parts, checkout) for one in (before, after)]
        if was_trusted and as_wanted and others[0] == others[1]:
            trust(home, after.parts, checkout)
    return path


def _is_own(part: ActingPart, checkout: Path) -> bool:
    """Whether it is the list that we change."""
    return (part.folder, part.file, part.key) == (checkout, LOCAL, _KEY)


def _is_as_written(parts: Iterable[ActingPart], checkout: Path, data: Mapping[str, Any]) -> bool:
    """Whether the list that was loaded is the one in the file that we read or wrote."""
    loaded = [part.value for part in parts if _is_own(part, checkout)]
    written = data.get("permissions", {}).get("allow")
    return loaded == ([] if written is None else [written])


def _list_others(parts: Iterable[ActingPart], checkout: Path) -> list[tuple[str, str, str, str]]:
    """Everything else that can act."""
    kept = [part for part in parts if part.can_be_trusted and not _is_own(part, checkout)]
    return sorted((str(part.folder), part.file, part.key, part.digest) for part in kept)


@dataclass(frozen=True, slots=True)
class RuleOrigin:
    """One rule of the settings: `kind` is deny, ask or allow; `file` is None for a rule of the command line."""

    kind: str
    rule: str
    file: Path | None
    where: str
    ignored: str = ""


def list_rules(settings: Settings) -> list[RuleOrigin]:
    """Returns every rule with its origin, also the ones that are ignored because the folder is not trusted."""
    listed: list[RuleOrigin] = []
    for kind in ("deny", "ask", "allow"):
        key = f"permissions.{kind}"
        found: dict[str, RuleOrigin] = {}
        for source in settings.sources.get(key, ()):
            file = source.file
            if file is None:
                continue
            for index, rule in enumerate(_texts(file.data["permissions"][kind])):
                where = f"{file.path}:{file.line((*source.path, index))}"
                found.setdefault(rule, RuleOrigin(kind, rule, file.path, where))
        counted = cast("tuple[str, ...]", getattr(settings.permissions, kind))
        listed += [found.get(rule, RuleOrigin(kind, rule, None, "command line")) for rule in counted]
        for part in settings.parts:
            if part.key == key and part.ignored:
                path = part.folder / part.file
                listed += [RuleOrigin(kind, rule, path, part.where, part.ignored) for rule in _texts(part.value)]
    return listed


def _texts(value: object) -> list[str]:
    return [str(one) for one in cast("list[object]", value)] if isinstance(value, list) else []
