"""Reads which MCP servers there are: the user's `<home>/mcp.json` and the `.mcp.json` of the project.

Both have Claude Code's format. A server of a project counts only if the user trusts the file as it is (0024). A mistake
concerns one server, is one sentence, and never ends a session.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, cast

from reverie.errors import UserError
from reverie.paths import Places
from reverie.paths.places import user_home
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.settings.claude_files import JsonFile
from reverie.settings.reach import Risk
from reverie.settings.trust import SERVERS, ActingPart, TrustBook, make_check, mark_parts
from reverie.text.patterns import late

PROJECT_FILE = ".mcp.json"
PROJECT = "REVERIE_PROJECT_DIR"
"""The variable that an entry can name for the folder of the session."""
USER_FILE = "mcp.json"
ServerKind = Literal["stdio", "http", "sse"]

_VARIABLE = late(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KINDS: Mapping[str, ServerKind] = {"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse"}
_LONGEST_NAME = 200
_SHORTEST_SECRET = 6
_MOST_SERVERS = 50
EMPTY: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server as a file describes it, with `${VAR}` filled in. `problem`: why it cannot be started."""

    name: str
    source: Path
    folder: Path
    """Where it runs."""
    kind: ServerKind = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    written: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """The entry as it is in the file, without values of variables."""
    filled: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The variables that it names, with their values."""
    problem: str = ""
    is_project: bool = False

    @property
    def id(self) -> str:
        """Says whether it is still the same server: a digest of its name and of what is started or asked."""
        said = {key: value for key, value in self.written.items() if key not in ("env", "headers")}
        made = json.dumps([self.name, str(self.folder) if self.is_project else "", said], sort_keys=True, default=str)
        return hashlib.sha256(made.encode("utf-8", "replace")).hexdigest()[:24]

    def hide(self, text: str) -> str:
        """Returns a text about this server with the names of variables in place of their values: these may be keys."""
        for name, value in sorted(self.filled.items(), key=lambda one: -len(one[1])):
            text = text.replace(value, f"${{{name}}}") if len(value) >= _SHORTEST_SECRET else text
        return text

    @property
    def shown(self) -> str:
        """What is started or asked, in one line, as it is written."""
        entry = self.written
        words = [entry.get("command"), *cast("list[object]", entry.get("args") or ())]
        return str(entry.get("url")) if self.kind != "stdio" else " ".join(map(str, filter(None, words)))


@dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers that may start, those that wait for trust, and what is wrong with the files."""

    servers: tuple[ServerConfig, ...] = ()
    waiting: tuple[ServerConfig, ...] = ()
    parts: tuple[ActingPart, ...] = ()
    problems: tuple[str, ...] = ()


def find_servers(places: Places, settings: Settings, given: Mapping[str, object] = EMPTY) -> FoundServers:
    """Returns the servers of this folder. The user's own servers win over those of a project with the same name.

    `given`: servers that the user's editor names, in the form of the files. They are the user's own. The user's own
    servers run in the home folder: `npx` or `python -m` take code from the folder in which they start, and whoever
    wrote that of the project is a stranger.
    """
    problems, outside = list[str](), user_home(settings.env)
    own = list(_parse(given, places.cwd, outside, places, settings, problems)) if given else []
    known = {one.name for one in own}
    users = _read(places.home / USER_FILE, outside, places, settings, problems)
    own += [one for one in users if one.name not in known]
    known = {one.name for one in own}
    waiting, parts = list[ServerConfig](), list[ActingPart]()
    if settings.mcp.project:
        file, checkout = places.checkout / PROJECT_FILE, places.checkout
        of_project = list(_read(file, checkout, places, settings, problems, is_project=True))
        parts = _mark(of_project, places)
        for one, part in zip(of_project, parts, strict=True):
            if one.name in known:
                problems.append(f"{one.source}: your own server is also named {one.name!r}, so this one is not used.")
            elif part.ignored:
                waiting.append(one)
            else:
                own.append(one)
    off = set(settings.mcp.off)
    used = [one for one in own if one.name not in off and not _is_ourselves(one)]
    if waiting:
        names = ", ".join(one.name for one in waiting)
        problems.append(
            f"{places.checkout / PROJECT_FILE}: MCP servers that do not start: {names}; {parts[0].ignored}, and "
            "`reverie trust` shows what would run and asks."
        )
    return FoundServers(
        tuple(sorted(used, key=lambda one: one.name)), tuple(waiting), tuple(parts), tuple(dict.fromkeys(problems))
    )


def _is_ourselves(one: ServerConfig) -> bool:
    """Whether it is `reverie mcp`, which `reverie connect` writes for other agents: ours has its memory already."""
    is_ours = Path(one.command).name == "reverie" or ("-m" in one.args and "reverie" in one.args)
    return is_ours and "mcp" in one.args


def trusted_parts(places: Places, settings: Settings) -> tuple[ActingPart, ...]:
    """Returns what `reverie trust` shows: one part per server of the project."""
    return find_servers(places, settings).parts


def _mark(found: list[ServerConfig], places: Places) -> list[ActingPart]:
    if not found:
        return []
    file = JsonFile.read(places.checkout / PROJECT_FILE)
    parts = [
        ActingPart(
            places.checkout,
            PROJECT_FILE,
            file.line(("mcpServers", one.name)) if file is not None else 1,
            f"{SERVERS}{one.name}",
            dict(one.written),
            Risk.RUN if one.kind == "stdio" else Risk.SEND,
            make_check(f"{SERVERS}{one.name}", dict(one.written), places.checkout),
        )
        for one in found
    ]
    return mark_parts(parts, TrustBook.read(places.home), places.checkout, places.root)


def _read(
    path: Path, folder: Path, places: Places, settings: Settings, problems: list[str], *, is_project: bool = False
) -> Iterator[ServerConfig]:
    file = JsonFile.read(path)
    if file is None:
        return
    if file.problem:
        problems.append(file.problem)
        return
    entries = file.data.get("mcpServers", {})
    if not isinstance(entries, dict):
        problems.append(f"{path}: `mcpServers` is not an object, so it has no effect.")
        return
    listed = cast("dict[str, object]", entries)
    yield from _parse(listed, path, folder, places, settings, problems, is_project=is_project)


def _parse(
    entries: Mapping[str, object],
    path: Path,
    folder: Path,
    places: Places,
    settings: Settings,
    problems: list[str],
    *,
    is_project: bool = False,
) -> Iterator[ServerConfig]:
    listed, env = list(entries.items()), {**settings.env, PROJECT: str(places.cwd)}
    if len(listed) > _MOST_SERVERS:
        problems.append(f"{path}: has {len(listed)} servers; only the first {_MOST_SERVERS} are used.")
    for name, entry in listed[:_MOST_SERVERS]:
        is_name = name.strip() and len(name) <= _LONGEST_NAME and name.isprintable()  # it is shown where you decide
        if not is_name or not isinstance(entry, dict):
            problems.append(f"{path}: the server {name[:40]!r} has no usable name or is not an object.")
            continue
        written = cast("dict[str, Any]", entry)
        blank = ServerConfig(name, path, folder, written=written, is_project=is_project)
        try:
            yield parse_server(blank, env)
        except UserError as error:
            yield replace(blank, problem=str(error), kind=_KINDS.get(str(written.get("type")), "stdio"))


def parse_server(blank: ServerConfig, env: Mapping[str, str]) -> ServerConfig:
    """Returns the server with everything that its entry says; raises UserError for a mistake in it."""
    entry, name = blank.written, blank.name
    blank = replace(blank, filled=_values(entry, env))
    given = entry.get("type") or entry.get("transport")
    kind = _KINDS.get(str(given)) if given else "http" if "url" in entry else "stdio"
    if kind is None:
        raise UserError(f"{name}: `type` is {given!r}, but must be stdio, http or sse.")

    def text(key: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise UserError(f"{name}: `{key}` is missing or not text; a server of the type {kind} needs it.")
        return fill_variables(value, env, name)

    def table(key: str) -> dict[str, str]:
        value: object = entry.get(key) or {}
        if not isinstance(value, dict):
            raise UserError(f"{name}: `{key}` must be an object of texts.")
        pairs = cast("dict[str, object]", value)
        if not all(isinstance(one, str) and "\0" not in one and "\n" not in one for one in pairs.values()):
            raise UserError(f"{name}: every value in `{key}` must be text in one line.")
        return {each: fill_variables(str(one), env, name) for each, one in pairs.items()}

    if kind != "stdio":
        url = text("url")
        if not url.startswith(("http://", "https://")):
            raise UserError(f"{name}: `url` must begin with http:// or https://.")
        return replace(blank, kind=kind, url=url, headers=table("headers"))
    args: object = entry.get("args") or []
    if not isinstance(args, list) or not all(
        isinstance(one, str) and "\0" not in one for one in cast("list[object]", args)
    ):
        raise UserError(f"{name}: `args` must be a list of texts.")
    filled = tuple(fill_variables(one, env, name) for one in cast("list[str]", args))
    return replace(blank, kind=kind, command=text("command"), args=filled, env=table("env"))


def _values(entry: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    named = (found[1] for found in _VARIABLE.finditer(json.dumps(entry, default=str)))
    return {name: value for name in named if name != PROJECT and (value := env.get(name))}


def fill_variables(text: str, env: Mapping[str, str], name: str) -> str:
    """Fills in `${VAR}` and `${VAR:-default}`; raises UserError for a variable that is not set and has no default."""

    def value(found: Any) -> str:
        variable, default = found[1], found[2]
        given = env.get(variable) or default
        if given is None:
            raise UserError(f"{name}: the variable {variable} is not set; set it, or write ${{{variable}:-default}}.")
        return given

    return _VARIABLE.sub(value, text)
