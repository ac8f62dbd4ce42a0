"""Reads the `settings.json` files of Claude Code: their hooks and permissions become settings of ours.

Plug-ins and everything else in them are not read. A part that has no meaning here is left out with a sentence, and a
file with a mistake never ends a session. Folder trust applies as it does to our own files.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, cast

from reverie import paths
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_head
from reverie.settings.claude_rules import MODES, RuleReader
from reverie.settings.fields import list_section_settings
from reverie.settings.kinds import Frame
from reverie.settings.loading import CheckedValue, GivenValue, Place, SettingSource, check_value
from reverie.settings.sections import HookSettings
from reverie.settings.toml_file import KeyPath

_MOST_BYTES = 1_000_000
_TIMEOUTS_S = {"UserPromptSubmit": 30.0}
_TIMEOUT_S = 600.0
_PROJECT = re.compile(r"\$\{CLAUDE_PROJECT_DIR\}|\$CLAUDE_PROJECT_DIR\b")
_PLAIN_MATCHER = re.compile(r"[\w|, -]*")
_OUR_CLIENT = re.compile(r"reverie[\w./-]*/daemon/hook\.py|\breverie\.daemon\b")


@dataclass(frozen=True, slots=True)
class JsonFile:
    """One file as read; as the source of a setting, `data` is what it means here. `problem`: why it cannot be used."""

    path: Path
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    problem: str = ""

    @classmethod
    def read(cls, path: Path) -> JsonFile | None:
        """Returns the file, or None if there is none."""
        try:
            raw = read_head(path, _MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return cls(path, problem=f"{path}: cannot be read ({error.strerror or error}), so it has no effect.")
        if len(raw) > _MOST_BYTES:
            return cls(path, problem=f"{path}: has more than {_MOST_BYTES:,} bytes, so it has no effect.")
        try:
            text = raw.decode("utf-8-sig")
            data: object = load_json(text) if text.strip() else {}
        except ValueError as error:
            why = str(error).split("\n")[0][:120]
            return cls(path, problem=f"{path}: not valid JSON ({why}), so it has no effect.")
        if not isinstance(data, dict):
            return cls(path, problem=f"{path}: not a JSON object, so it has no effect.")
        return cls(path, text, cast("dict[str, Any]", data))

    def line(self, path: KeyPath) -> int:
        """Returns the line of the last of these keys; each is searched after the one before it."""
        at = 0
        for key in path:
            if not isinstance(key, str):
                break
            found = self.text.find(json.dumps(key), at)
            at = found if found >= 0 else at
        return self.text.count("\n", 0, at) + 1


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value for `section.key` in our own form, and where it is written."""

    key: str
    value: object
    at: KeyPath


@dataclass(slots=True)
class ClaudeSettingsFile:
    """The settings of one file. `project` is the folder that a path with one `/` at its beginning starts at."""

    file: JsonFile
    project: Path
    hooks: bool
    permissions: bool
    warnings: list[str] = field(default_factory=list[str], init=False)

    def values(self) -> Iterator[FoundValue]:
        """Yields the values; `warnings` is complete after the last one."""
        if self.file.problem:
            self.warnings.append(self.file.problem)
            return
        if self.hooks and not self.has_no_hooks:
            yield from self._hooks(self.file.data.get("hooks"))
        if self.permissions:
            yield from self._permissions(self.file.data.get("permissions"))

    @property
    def has_no_hooks(self) -> bool:
        """Whether the file switches hooks off. In a folder this counts for the folder only."""
        return self.file.data.get("disableAllHooks") is True

    # -- hooks ----------------------------------------------------------------------------------------------------

    def _hooks(self, given: object) -> Iterator[FoundValue]:
        if given is None:
            return
        if not isinstance(given, dict):
            self._tell("`hooks` is not an object and has no effect")
            return
        known = list_section_settings(HookSettings)
        table = cast("dict[str, object]", given)
        if unknown := [event for event in table if event not in known]:
            self._tell(f"hooks of {_join(unknown)} do not run here: Reverie has no such event")
        odd = dict[str, list[str]]()
        for event in known:
            commands = list(self._commands(event, table.get(event), odd)) if event in table else []
            if commands:
                yield FoundValue(f"hooks.{event}", commands, ("hooks", event))
        for what, events in odd.items():
            self._tell(f"a hook of {_join(events)} {what}")

    def _commands(self, event: str, given: object, odd: dict[str, list[str]]) -> Iterator[dict[str, object]]:
        def tell(what: str) -> None:
            odd.setdefault(what, []).append(event)

        for group in _objects(given, tell):
            matcher = _read_matcher(group.get("matcher"))
            if matcher is None:
                tell("has a matcher that is not a regular expression and does not run")
                continue
            for handler in _objects(group.get("hooks"), tell):
                kind = handler.get("type", "command")
                command = _read_command(handler)
                if kind != "command":
                    tell(f"is of the type {str(kind)[:20]!r} and does not run: only commands do")
                elif command is None:
                    tell("has no usable command and does not run")
                elif handler.get("shell") not in (None, "bash", "sh"):
                    tell("wants another shell and does not run")
                elif not _OUR_CLIENT.search(command):  # what `reverie connect` installs is for other agents
                    if "if" in handler:
                        tell("has `if`, which is not known: it runs whenever its matcher matches")
                    yield {
                        "command": command,
                        "matcher": matcher,
                        "timeout_s": _read_seconds(handler.get("timeout"), _TIMEOUTS_S.get(event, _TIMEOUT_S)),
                        **({"wait": False} if handler.get("async") is True else {}),
                    }

    # -- permissions ----------------------------------------------------------------------------------------------

    def _permissions(self, given: object) -> Iterator[FoundValue]:
        if given is None:
            return
        if not isinstance(given, dict):
            self._tell("`permissions` is not an object and has no effect")
            return
        table = cast("dict[str, object]", given)
        reader = RuleReader(self.project)
        for name in ("allow", "ask", "deny"):
            listed = table.get(name, [])
            for text in cast("list[object]", listed) if isinstance(listed, list) else [listed]:
                reader.read(name, text)
        for name, rules in reader.rules.items():
            if rules:
                yield FoundValue(f"permissions.{name}", list(dict.fromkeys(rules)), ("permissions", name))
        self.warnings += [f"{self.file.path}: {problem}." for problem in reader.problems()]
        mode = table.get("defaultMode")
        if isinstance(mode, str) and mode in MODES:
            yield FoundValue("permissions.mode", MODES[mode], ("permissions", "defaultMode"))
        elif mode is not None:
            self._tell(f"`defaultMode: {_show(mode)}` is not taken over; set `permissions.mode` yourself")

    def _tell(self, what: str) -> None:
        self.warnings.append(f"{self.file.path}: {what}.")


def _objects(given: object, tell: Any) -> Iterator[dict[str, Any]]:
    for one in cast("list[object]", given) if isinstance(given, list) else [given]:
        if isinstance(one, dict):
            yield cast("dict[str, Any]", one)
        else:
            tell("is not an object and does not run")


def _read_matcher(given: object) -> str | None:
    """A name, or a pattern that may be found anywhere in the name: ours must match the whole name."""
    if given is None or given in ("", "*"):
        return "*"
    if not isinstance(given, str) or "\0" in given:
        return None
    if _PLAIN_MATCHER.fullmatch(given):
        return "|".join(filter(None, re.split(r"[|,\s]+", given))) or "*"
    try:
        re.compile(given)
    except re.error:
        return None
    return f".*(?:{given}).*"


def _read_command(handler: Mapping[str, object]) -> str | None:
    """The command as a line of the shell. With `args` it is a program and its arguments, word by word."""
    command, args = handler.get("command"), handler.get("args")
    if not isinstance(command, str) or not command.strip():
        return None
    words = [command, *cast("list[object]", args)] if isinstance(args, list) else []
    if not all(isinstance(word, str) for word in words):
        return None
    line = " ".join(_quote(cast("str", word)) for word in words) if words else command
    return None if re.search("[\0\ud800-\udfff]", line) else line


def _quote(word: str) -> str:
    """Quotes a word, except for the folder of the project in it."""
    pieces = [shlex.quote(piece) if piece else "" for piece in _PROJECT.split(word)]
    return '"${CLAUDE_PROJECT_DIR}"'.join(pieces) or "''"


def _read_seconds(given: object, otherwise: float) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < 1e9
    return float(cast("float", given)) if is_number else otherwise


def _show(text: object) -> str:
    return "".join(char for char in str(text)[:40] if char.isprintable())


def _join(names: list[str]) -> str:
    shown = ", ".join(f"`{_show(name)}`" for name in dict.fromkeys(names[:8]))
    return shown + (" and more" if len(names) > 8 else "")


def read_claude_files(
    listed: Iterable[tuple[Place, Path, Path]],
    home: Path,
    switches: Mapping[str, object],
    frame_of: Callable[[Path], Frame],
    warnings: list[str],
) -> tuple[list[CheckedValue], list[tuple[Path, list[CheckedValue]]]]:
    """Returns the values of the user's own file, below `home`, and those of each file in the folder."""
    hooks, permissions = (switches.get(f"claude.{key}") is not False for key in ("hooks", "permissions"))
    own: list[CheckedValue] = []
    theirs: list[tuple[Path, list[CheckedValue]]] = []
    for place, folder, path in listed:
        if place != "user" and paths.same(path.parent, home):
            continue  # in the user's home folder, the project's file is the user's file
        file = JsonFile.read(path)
        if file is None or not (hooks or permissions):
            continue
        reader = ClaudeSettingsFile(file, folder, hooks, permissions)
        values = list(reader.values())
        meant = dict[str, dict[str, object]]()
        for one in values:
            section, key = one.key.split(".", 1)
            meant.setdefault(section, {})[key] = one.value
        file = replace(file, data=meant)
        found = [
            GivenValue(one.key, one.value, SettingSource(place, file, one.at), frame_of(path.parent)) for one in values
        ]
        warnings.extend(reader.warnings)
        checked = [(one, check_value(one)) for one in found]
        if place == "user":
            own, hooks = checked, hooks and not reader.has_no_hooks
        else:
            theirs.append((folder, checked))
    return own, theirs
