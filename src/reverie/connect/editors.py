"""Editors that start Reverie themselves: as an MCP server (`reverie mcp`), as an agent (`reverie acp`), or both.

Each has one settings file, in which we add one entry per protocol. Their files may have comments, which stay. An entry
with our name that is not ours is left alone, with one sentence. Also the same entry for Claude Code and Codex.
"""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from reverie.connect.files import UserFile
from reverie.connect.json_text import Route, get_value, remove_value, set_value, without_comments
from reverie.errors import UserError
from reverie.parsing import Unparsable, load_json, load_toml
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.types import Json, JsonObject

Protocol: TypeAlias = Literal["mcp", "acp"]

NAME: Final = "reverie"
_TITLE: Final = "Reverie"
_MAC: Final = sys.platform == "darwin"
_CODE: Final = "Library/Application Support/Code/User" if _MAC else ".config/Code/User"
CODEX_KIND: Final = "codex mcp"
_CODEX: Final = ("# The MCP server of Reverie, written by `reverie connect codex --mcp`", "# End of it")


@dataclass(frozen=True, slots=True)
class Editor:
    """One editor: where its settings are, and under which keys our entries go."""

    name: str
    title: str
    user: str
    """Its settings file, below the home of the user; empty: it has none that we write."""
    project: str = ""
    """The same for one project, below its root; empty: there is none."""
    mcp: Route = ()
    acp: Route = ()
    types: tuple[tuple[Protocol, str], ...] = ()
    """The `type` that its entries must have."""

    @property
    def kind(self) -> str:
        return f"{self.name} settings"

    @property
    def protocols(self) -> list[Protocol]:
        found: dict[Protocol, Route] = {"mcp": self.mcp, "acp": self.acp}
        return [one for one, route in found.items() if route]

    def route(self, protocol: Protocol) -> Route:
        return self.mcp if protocol == "mcp" else self.acp

    def entry(self, protocol: Protocol, start: JsonObject) -> JsonObject:
        kind = dict(self.types).get(protocol)
        return {"type": kind, **start} if kind else start


EDITORS: Final = {
    one.name: one
    for one in (
        Editor("cursor", "Cursor", ".cursor/mcp.json", ".cursor/mcp.json", mcp=("mcpServers", NAME)),
        Editor(
            "vscode",
            "VS Code",
            f"{_CODE}/mcp.json",
            ".vscode/mcp.json",
            mcp=("servers", NAME),
            types=(("mcp", "stdio"),),
        ),
        Editor(
            "zed",
            "Zed",
            ".config/zed/settings.json",
            ".zed/settings.json",
            mcp=("context_servers", NAME),
            acp=("agent_servers", _TITLE),
            types=(("acp", "custom"),),
        ),
        Editor("jetbrains", "JetBrains", ".jetbrains/acp.json", acp=("agent_servers", _TITLE)),
        Editor("toad", "Toad", "", acp=("agent",)),
    )
}


def start_entry(protocol: str, home: Path, user_home: Path) -> JsonObject:
    """How a program starts us: by a full path, because an editor may have another search path than a terminal."""
    script = Path(sys.executable).with_name("reverie")
    command: JsonObject
    if script.is_file():
        command = {"command": str(script), "args": [protocol]}
    else:
        command = {"command": sys.executable, "args": ["-P", "-m", "reverie", protocol]}
    return command if home == user_home / ".reverie" else {**command, "env": {"REVERIE_HOME": str(home)}}


def start_line(protocol: str, home: Path, user_home: Path) -> str:
    """The same as a line for a shell."""
    entry = start_entry(protocol, home, user_home)
    variables = cast("dict[str, str]", entry.get("env", {}))
    words = [*(f"{name}={value}" for name, value in variables.items())]
    return shlex.join([*(["env", *words] if words else []), str(entry["command"]), *cast("list[str]", entry["args"])])


def is_ours(entry: Json) -> bool:
    """Whether an entry starts Reverie, perhaps of another version or home."""
    args, command = get_value(entry, ("args",)), get_value(entry, ("command",))
    if not isinstance(args, list) or not isinstance(command, str):
        return False
    given = list(map(str, cast("list[Json]", args)))
    by_module = given[-3:-1] == ["-m", "reverie"]
    return given[-1:] in (["mcp"], ["acp"]) and (by_module or Path(command).name == "reverie")


def command_of(entry: Json) -> str:
    """The program that an entry starts."""
    return str(get_value(entry, ("command",)) or "")


def add_entries(file: UserFile, editor: Editor, protocols: list[Protocol], home: Path, user_home: Path) -> str:
    """The text of the settings with our entries. Raises `UserError` if the file cannot be used."""
    data, text = parse_settings(file), file.text if file.text.strip() else "{}\n"
    for protocol in protocols:
        route = editor.route(protocol)
        if not isinstance(data.get(route[0], {}), dict):
            raise UserError(f"{file.path}: `{route[0]}` is not an object; nothing was changed. Correct it first.")
        entry, there = editor.entry(protocol, start_entry(protocol, home, user_home)), get_value(data, route)
        if there is not None and not is_ours(there):
            raise UserError(f"{file.path}: there is another entry with the name {route[-1]!r}; remove it first.")
        if there != entry:
            text = set_value(text, route, entry)
    return text


def strip_entries(text: str, before: str, editor: Editor) -> str:
    """The settings without our entries, and without objects that only they needed."""
    old: Json = _load(before) if before.strip() else {}
    for route in filter(None, (editor.mcp, editor.acp)):
        if is_ours(get_value(_load(text), route)):
            text = remove_value(text, route)
        if get_value(old, route[:1]) is None and get_value(_load(text), route[:1]) == {}:
            text = remove_value(text, route[:1])
    return text


STRIPS: Final = {one.kind: partial(strip_entries, editor=one) for one in EDITORS.values()}


def parse_settings(file: UserFile) -> JsonObject:
    """The object in a settings file that may have comments. Raises `UserError` if it cannot be read."""
    try:
        found: Json = _load(file.text) if file.text.strip() else {}
    except Unparsable as error:
        where = f"{file.path}:{error.line}" if error.line is not None else str(file.path)
        raise UserError(f"{where}: is not valid JSON ({error}); nothing was changed. Correct it first.") from error
    if not isinstance(found, dict):
        raise UserError(f"{file.path}: is not a JSON object; nothing was changed. Correct it first.")
    return cast("JsonObject", found)


def _load(text: str) -> Json:
    return load_json(without_comments(text))


def find_entries(path: Path, editor: Editor) -> dict[Protocol, Json]:
    """Our entries in a settings file; none if it cannot be read."""
    try:
        data = _load(read_regular(path).decode("utf-8-sig"))
    except (OSError, Unparsable, UnicodeDecodeError):
        return {}
    found: dict[Protocol, Json] = {one: get_value(data, editor.route(one)) for one in editor.protocols}
    return {one: found[one] for one in editor.protocols if is_ours(found[one])}


def add_to_codex(file: UserFile, home: Path, user_home: Path) -> str:
    """The text of Codex's `config.toml` with our server, between two comments."""
    text = strip_from_codex(file.text, "")
    try:
        data = load_toml(text)
    except Unparsable as error:
        raise UserError(f"{file.path}: is not valid TOML ({error}); nothing was changed. Correct it first.") from error
    if get_value(data, ("mcp_servers", NAME)) is not None:
        raise UserError(f"{file.path}: there is another server with the name {NAME!r}; remove it first.")
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    changed = f"{text}{gap}{_CODEX[0]}\n{codex_table(home, user_home)}{_CODEX[1]}\n"
    try:
        load_toml(changed)
    except Unparsable as error:
        raise UserError(f"{file.path}: the server cannot be added to it ({error}); nothing was changed.") from error
    return changed


def codex_table(home: Path, user_home: Path) -> str:
    """The server in the form of Codex. A JSON text or list is TOML too."""
    entry = start_entry("mcp", home, user_home)
    lines = [f"{key} = {json.dumps(entry[key])}" for key in ("command", "args")]
    for name, value in cast("dict[str, str]", entry.get("env", {})).items():
        lines.append(f"env = {{ {name} = {json.dumps(value)} }}")
    return "\n".join([f"[mcp_servers.{NAME}]", *lines, ""])


def strip_from_codex(text: str, _before: str) -> str:
    """`config.toml` without our server."""
    start, end = text.find(_CODEX[0]), text.find(f"{_CODEX[1]}\n")
    if start < 0 or end < start:
        return text
    head = text[:start]
    return (head[:-1] if head.endswith("\n\n") else head) + text[end + len(_CODEX[1]) + 1 :]


def is_in_codex(path: Path) -> bool:
    """Whether Codex starts our server."""
    try:
        return is_ours(get_value(load_toml(read_regular(path).decode("utf-8-sig")), ("mcp_servers", NAME)))
    except (OSError, Unparsable, UnicodeDecodeError):
        return False
