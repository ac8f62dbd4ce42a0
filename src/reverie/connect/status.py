"""What is connected and whether it works: for `reverie connect --status` and `reverie doctor`. It only reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reverie import __version__
from reverie.connect import claude_code, codex
from reverie.connect.connecting import AGENTS, agent_folder, codex_home
from reverie.connect.editors import EDITORS, Editor, command_of, find_entries, is_in_codex
from reverie.connect.journal import Edit, Journal
from reverie.connect.plugin_files import MCP_FILE, Installed, find_installed
from reverie.daemon.client import daemon_status
from reverie.daemon.model_state import find_model_trouble
from reverie.errors import ReverieError
from reverie.moments import parse_time
from reverie.paths import Places, claude_home, daemon_lock, memory_place
from reverie.permissions.memory_paths import check_memory_root
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.settings import Settings
from reverie.types import JsonObject

_STARTING_S = 10.0


class Finding(NamedTuple):
    """One thing that does not work, and what to do about it."""

    what: str
    todo: str


@dataclass(frozen=True, slots=True)
class AgentState:
    """One agent in this folder: the files that name us, what they start, and what is wrong. Not connected: no files."""

    agent: str
    files: tuple[str, ...] = ()
    installed: Installed | None = None
    hooks: str = ""
    findings: tuple[Finding, ...] = ()
    elsewhere: tuple[str, ...] = ()
    """The files of other projects that name us."""
    serves: tuple[str, ...] = ()
    """The protocols by which the agent starts us: `mcp`, `acp`."""

    @property
    def version(self) -> str:
        return self.installed.version if self.installed is not None else ""


def find_agents(settings: Settings, places: Places) -> Iterator[AgentState]:
    """The state of each agent in this folder."""
    for agent, find in zip(AGENTS, (_find_claude_code, _find_codex), strict=True):
        yield find(settings, places, agent)
    for editor in filter(lambda one: one.user, EDITORS.values()):
        yield _find_editor(settings, places, editor)


def _find_editor(settings: Settings, places: Places, editor: Editor) -> AgentState:
    edits = _edits(places.home, editor.kind)
    here = {str(settings.places.user_home / editor.user), str(places.root / editor.project)}
    found, serves = list[Finding](), dict[str, None]()
    for edit in edits:
        entries = find_entries(Path(edit.path), editor)
        again = f"reverie connect {editor.name}{' --project' if edit.scope else ''}"
        if not entries:
            todo = f"to connect again: `{again}`; else: `reverie disconnect {editor.name}`"
            found.append(Finding(f"{edit.path} was changed and no longer names Reverie", todo))
        for protocol, entry in entries.items():
            serves[protocol] = None
            if not os.access(command_of(entry), os.X_OK):
                found.append(Finding(f"{edit.path} starts {command_of(entry)}, which is gone", again))
    files = tuple(edit.path for edit in edits if edit.path in here)
    elsewhere = tuple(edit.path for edit in edits if edit.path not in here)
    return AgentState(editor.name, files, findings=tuple(found), elsewhere=elsewhere, serves=tuple(serves))


def _find_claude_code(settings: Settings, places: Places, agent: str) -> AgentState:
    claude, folder = claude_home(settings), agent_folder(places.home, agent)
    user, local = (claude_code.settings_path(claude, project) for project in (None, places.root))
    loadings = [claude_code.find_loading(path) for path in (user, local.with_name("settings.json"), local)]
    ours = [one for one in loadings if one.marketplace == str(folder)]
    files = tuple(str(one.path) for one in ours)
    others = [edit for edit in _edits(places.home, claude_code.KIND) if edit.path not in (str(user), str(local))]
    loaded = [one for edit in others if (one := claude_code.find_loading(Path(edit.path))).marketplace == str(folder)]
    elsewhere = tuple(str(one.path) for one in loaded)
    found: list[Finding] = []
    for edit in _edits(places.home, claude_code.KIND):
        if edit.path in (str(user), str(local)) and edit.path not in files:
            found.append(_lost(edit.path, "the plug-in", f"{agent} --project" if edit.scope else agent))
    if not files:
        return AgentState(agent, findings=tuple(found), elsewhere=elsewhere)
    hooks = "enabled"
    policy = claude_code.find_policy(folder)
    if policy is not None:
        hooks = "blocked"
        found.append(Finding(f"an administrator does not allow the hooks ({policy})", "ask your administrator"))
    for one in loadings:
        if one.hooks_off:
            hooks = "switched off"
            found.append(Finding(f"{one.path} switches all hooks off", "remove `disableAllHooks` there"))
    enabled = [one.enabled for one in loadings if one.enabled is not None]  # the last one counts, as in Claude Code
    if not enabled:
        hooks = "switched off"
        found.append(
            _lost(files[-1], "the plug-in as enabled", agent if user == ours[-1].path else f"{agent} --project")
        )
    elif not enabled[-1]:
        hooks = "switched off"
        found.append(Finding("the plug-in is switched off", f"claude plugin enable {claude_code.PLUGIN}"))
    if user not in (one.path for one in ours) and not claude_code.trusts_folder(
        claude, settings.places.user_home, places.root
    ):
        hooks = "not trusted"
        found.append(
            Finding("Claude Code loads the plug-in only in a trusted folder", "start `claude` here and say yes")
        )
    installed = find_installed(folder / "reverie" / "hooks" / "hook.sh")
    serves = ("mcp",) if (folder / MCP_FILE).is_file() else ()
    return AgentState(agent, files, installed, hooks, (*found, *_find_stale(installed, agent)), elsewhere, serves)


def _lost(path: str, what: str, again: str) -> Finding:
    """Somebody took our part out of a file, for example with an older copy of it."""
    todo = f"to connect again: `reverie connect {again}`; else: `reverie disconnect`"
    return Finding(f"{path} was changed and no longer names {what}, so no hook runs", todo)


def _find_codex(settings: Settings, places: Places, agent: str) -> AgentState:
    home = codex_home(settings)
    count, trusted = codex.count_trusted(home)
    if not count:
        lost = [_lost(edit.path, "the hooks", agent) for edit in _edits(places.home, codex.HOOKS_KIND)]
        return AgentState(agent, findings=tuple(lost))
    found: list[Finding] = []
    if count < len(codex.EVENTS):
        found.append(
            Finding(f"{len(codex.EVENTS) - count} of {len(codex.EVENTS)} hooks are gone", f"reverie connect {agent}")
        )
    if trusted < count:
        todo = "type /hooks in Codex and trust them, or run: reverie connect codex --trust-hooks"
        found.append(
            Finding(f"Codex skips {count - trusted} of {count} hooks, because you have not trusted them", todo)
        )
    installed = find_installed(agent_folder(places.home, agent) / "hook.sh")
    hooks = f"{trusted} of {count} trusted"
    found += _find_stale(installed, agent)
    serves = ("mcp",) if is_in_codex(home / "config.toml") else ()
    return AgentState(agent, (str(home / "hooks.json"),), installed, hooks, tuple(found), serves=serves)


def _find_stale(installed: Installed | None, agent: str) -> Iterator[Finding]:
    again = f"reverie connect {agent}"
    if installed is None:
        yield Finding("the files that the hooks run are gone", again)
    elif not installed.works:
        yield Finding(f"the hooks start {installed.python}, which is gone, so they do nothing", again)
    elif installed.version != __version__:
        yield Finding(f"the plug-in is of Reverie {installed.version}, and this is {__version__}", again)


def _edits(home: Path, kind: str) -> list[Edit]:
    return [edit for edit in Journal(home).edits if edit.kind == kind]


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The service behind the hooks. `said` is None if it does not run, which is normal when nothing happens."""

    said: JsonObject | None
    findings: tuple[Finding, ...]


def find_service(places: Places) -> ServiceState:
    """Whether the service runs, and whether hooks were skipped because it could not start."""
    said = daemon_status(places.home)
    if said is not None:
        silent = Finding(f"the service (PID {said.get('pid')}) does not answer", "wait a moment, or end that process")
        return ServiceState(said, () if said["answers"] else (silent,))
    why = _problem_of_home(places.home)
    if why:
        what = f"hooks are skipped: {places.home} {why}, so the service does not start"
        return ServiceState(
            None, (Finding(what, "check who owns it and its mode, or set REVERIE_HOME and connect again"),)
        )
    last = next(iter(BackgroundLog(places.background_log).read(1, kind="hook_service")), None)
    tried = _modified(daemon_lock(places.home).with_name("daemon.started"))
    why = str(last.fields.get("error", "")) if last is not None and last.fields.get("event") == "failed" else ""
    if why or tried > (last.time.timestamp() if last is not None else 0.0) + _STARTING_S:
        what = f"hooks were skipped: the service could not start at the last attempt{f' ({why})' if why else ''}"
        return ServiceState(None, (Finding(what, "reverie log --kind hook_service"),))
    return ServiceState(None, ())


def _problem_of_home(home: Path) -> str:
    try:
        if home.stat().st_uid != os.geteuid():
            return "belongs to another user"
    except OSError:
        return ""  # there is none yet
    return "" if os.access(home, os.W_OK | os.X_OK) else "cannot be written"


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find_model(settings: Settings, places: Places) -> tuple[Finding, ...]:
    """Whether the model of the background work could be used the last time."""
    trouble = find_model_trouble(settings, places)
    at = parse_time(trouble.at) if trouble is not None else None
    when = f" ({at.astimezone():%Y-%m-%d %H:%M})" if at is not None else ""
    todo = "correct it or `connect.model`; `reverie log --kind hook_work` has more"
    return (Finding(f"{trouble}{when}", todo),) if trouble is not None else ()


def find_memory(settings: Settings, places: Places) -> tuple[str, tuple[Finding, ...]]:
    """Where the memory of this project is and why, and whether Claude Code looks elsewhere."""
    try:
        place = memory_place(places, settings, check_memory_root)
    except ReverieError as error:
        return "", (Finding(str(error), "correct it"),)
    local = claude_code.read_object(places.root / ".claude" / "settings.local.json").get("autoMemoryDirectory")
    found: tuple[Finding, ...] = ()
    if settings.memory.shared_with and isinstance(local, str):
        what = f"Claude Code uses {local} in this project (`autoMemoryDirectory` in .claude/settings.local.json)"
        found = (Finding(what, "remove it there, so that there is one memory"),)
    return f"{place.directory} ({place.rule})", found
