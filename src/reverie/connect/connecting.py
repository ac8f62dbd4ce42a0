"""`connect` and `disconnect`: plans what changes, changes it, and takes it back.

A plan is complete before the first byte is written, so the user sees all of it, and a file that cannot be used stops
everything. First the plug-in is written below our home, then the journal, then the files of the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from reverie.connect import claude_code, codex, editors, own_settings
from reverie.connect.files import Change, Strip, apply_changes, plan_change, plan_removal, read_user_file, revert
from reverie.connect.journal import UNKNOWN, Edit, Journal
from reverie.connect.plugin_files import (
    MCP_FILE,
    hook_script,
    is_active,
    is_current,
    plugin_files,
    remove_files,
    retire_files,
    write_files,
)
from reverie.daemon.skipped import forget_attempt
from reverie.errors import ReverieError, UserError
from reverie.memory.scan import scan
from reverie.paths import Places, claude_home, daemon_socket
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.storage.atomic import storage_error

AGENTS = (claude_code.AGENT, codex.AGENT)
_STRIPS: Mapping[str, Strip] = {
    claude_code.KIND: claude_code.strip_plugin,
    own_settings.KIND: own_settings.strip_sharing,
    codex.HOOKS_KIND: codex.strip_hooks,
    codex.TRUST_KIND: codex.strip_trust,
    editors.CODEX_KIND: editors.strip_from_codex,
    **editors.STRIPS,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a `connect` does: files below our home, changes of files of others, and what to tell the user."""

    agent: str
    folder: Path
    files: Mapping[str, bytes]
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether everything is as it should be already."""
        return is_current(self.folder, self.files) and not any(change.is_needed for change in self.changes)


def agent_folder(home: Path, agent: str) -> Path:
    """Where the plug-in or the hook script of an agent is."""
    return home / "connect" / agent


def codex_home(settings: Settings) -> Path:
    return settings.places.codex or settings.places.user_home / ".codex"


def _check_home(home: Path) -> None:
    """Raises `UserError` if the settings of the agents, which are UTF-8 text, cannot name files below this folder."""
    try:
        str(home).encode()
    except UnicodeEncodeError:
        raise UserError(f"{home}: this name is not UTF-8 text; set REVERIE_HOME to another folder.") from None


def plan_claude_code(
    settings: Settings, places: Places, *, project: bool, own_memory: bool | None, mcp: bool | None = None
) -> Plan:
    """Plans the plug-in for Claude Code, for the user or for one project.

    `own_memory`: whether Reverie keeps its own folders; None: as it was chosen before, and at first it does not.
    `mcp`: whether the plug-in also starts the MCP server; None: as before, and at first not.
    """
    home, claude = places.home, claude_home(settings)
    _check_home(home)
    folder, journal = agent_folder(home, claude_code.AGENT), Journal(home)
    if policy := claude_code.find_policy(folder):
        raise UserError(f"{policy} of your administrator does not allow this plug-in; nothing was changed.")
    scope = str(places.root) if project else ""
    file = read_user_file(claude_code.settings_path(claude, places.root if project else None))
    add = partial(claude_code.add_plugin, marketplace=folder)
    change = plan_change(journal, claude_code.KIND, claude_code.AGENT, scope, file, add, claude_code.strip_plugin)
    edits = [edit for edit in journal.edits if edit.agent == claude_code.AGENT]
    made = (*claude_code.find_missing(claude), *(one for edit in edits for one in edit.made))
    changes = [replace(change, made=made)]
    notes = [
        f"The plug-in {other} has the same name; if it is enabled, disable it."
        for other in claude_code.find_other_installs(claude)
    ]
    if file.parse().get("disableAllHooks") is True:
        notes.append(f"{file.path}: `disableAllHooks` is true, so no hook runs until you change it.")
    if own_memory is None:
        own_memory = bool(edits) and not any(edit.kind == own_settings.KIND for edit in edits)
        changes += [] if own_memory else [_plan_sharing(journal, home / "settings.toml")]
    else:
        plan = _plan_own_memory if own_memory else _plan_sharing
        changes.append(plan(journal, home / "settings.toml"))
    if project and not own_memory and changes[-1].is_needed:
        notes.append("The shared memory applies to all your projects; --own-memory leaves that setting out.")
    serves = (folder / MCP_FILE).is_file() if mcp is None else mcp
    entry = editors.start_entry("mcp", home, settings.places.user_home) if serves else None
    files = plugin_files(home, daemon_socket(home), entry)
    return Plan(claude_code.AGENT, folder, files, tuple(changes), tuple(notes))


def _plan_sharing(journal: Journal, path: Path) -> Change:
    add, strip = own_settings.add_sharing, own_settings.strip_sharing
    return plan_change(journal, own_settings.KIND, claude_code.AGENT, "", read_user_file(path), add, strip)


def _plan_own_memory(journal: Journal, path: Path) -> Change:
    """Plans to take the line out of the settings, whoever wrote it."""
    edit = journal.find(own_settings.KIND, path)
    known = edit or Edit(own_settings.KIND, claude_code.AGENT, "", str(path), UNKNOWN, UNKNOWN)
    change = plan_removal(journal, known, own_settings.strip_sharing)
    if own_settings.is_shared(change.after):
        raise UserError(f"{path}: sets `memory.shared_with` in its own way; remove it there to use --own-memory.")
    return change


def plan_codex(settings: Settings, places: Places, *, mcp: bool | None = None) -> Plan:
    """Plans the hooks for Codex, and with `mcp` the MCP server too (False: without it; None: as before)."""
    home, user_home = places.home, settings.places.user_home
    _check_home(home)
    folder = agent_folder(home, codex.AGENT)
    script = {"hook.sh": hook_script(codex.AGENT, home, daemon_socket(home))}
    file = read_user_file(codex_home(settings) / "hooks.json")
    add = partial(codex.add_hooks, script=folder / "hook.sh")
    journal = Journal(home)
    changes = [plan_change(journal, codex.HOOKS_KIND, codex.AGENT, "", file, add, codex.strip_hooks)]
    path = codex_home(settings) / "config.toml"
    known = journal.find(editors.CODEX_KIND, path)
    if mcp or (mcp is None and known is not None):
        put, strip = partial(editors.add_to_codex, home=home, user_home=user_home), editors.strip_from_codex
        changes.append(plan_change(journal, editors.CODEX_KIND, codex.AGENT, "", read_user_file(path), put, strip))
    elif known is not None:
        changes.append(plan_removal(journal, known, editors.strip_from_codex))
    return Plan(codex.AGENT, folder, script, tuple(changes))


def plan_editor(
    settings: Settings, places: Places, editor: editors.Editor, protocols: list[editors.Protocol], *, project: bool
) -> Plan:
    """Plans our entries in the settings of an editor, for the user or for one project."""
    home, user_home = places.home, settings.places.user_home
    _check_home(home)
    path = places.root / editor.project if project else user_home / editor.user
    add = partial(editors.add_entries, editor=editor, protocols=protocols, home=home, user_home=user_home)
    scope = str(places.root) if project else ""
    strip = editors.STRIPS[editor.kind]
    change = plan_change(Journal(home), editor.kind, editor.name, scope, read_user_file(path), add, strip)
    return Plan(editor.name, agent_folder(home, editor.name), {}, (change,))


def plan_trust(settings: Settings, places: Places, program: str) -> Plan:
    """Plans to record that the user trusts our hooks. The hooks must be in place, because Codex is asked about them."""
    home, folder = codex_home(settings), agent_folder(places.home, codex.AGENT)
    hooks = codex.ask_hooks(program, home, places.cwd, home / "hooks.json")
    file = read_user_file(home / "config.toml")
    add = partial(codex.add_trust, hooks=hooks)
    change = plan_change(Journal(places.home), codex.TRUST_KIND, codex.AGENT, "", file, add, codex.strip_trust)
    return Plan(codex.AGENT, folder, {}, (change,))


def carry_out(home: Path, plan: Plan) -> None:
    """Makes the changes of a plan: all of them, or none."""
    journal = Journal(home)
    with journal.locked():
        was_there = plan.folder.exists()
        try:
            if plan.files:
                write_files(plan.folder, plan.files)
            apply_changes(journal, plan.changes, _STRIPS.__getitem__)
            forget_attempt(home)
        except ReverieError:
            if not was_there:
                remove_files(plan.folder)
            raise
        except OSError as error:
            raise storage_error(error, plan.folder, "write the plug-in to") from error
        finally:
            _retire_unused(home, journal)


def _retire_unused(home: Path, journal: Journal) -> None:
    """Removes our files of agents that are not connected, except those that a running program may still call."""
    used = {edit.agent for edit in journal.edits}
    for agent in AGENTS:
        if agent not in used and (folder := agent_folder(home, agent)).is_dir():
            retire_files(folder)


@dataclass(slots=True)
class Removal:
    """What a `disconnect` did. `restored`: files with their old bytes; `cleaned`: files that lost only our part."""

    restored: list[str] = field(default_factory=list[str])
    removed: list[str] = field(default_factory=list[str])
    """Files and folders that were not there before."""
    cleaned: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    left: list[Edit] = field(default_factory=list[Edit])
    """The edits that are still in place."""


def choose_edits(settings: Settings, home: Path, agent: str | None, scope: str | None) -> list[Edit]:
    """The edits of an agent (None: of all), of the user (empty `scope`), of one project, or (None) of all."""
    edits = [*Journal(home).edits, *_find_unrecorded(settings, home)]
    chosen = [
        edit
        for edit in edits
        if agent in (None, edit.agent) and (edit.kind == own_settings.KIND or scope in (None, edit.scope))
    ]
    if any(edit not in chosen and edit.kind == claude_code.KIND for edit in edits):
        chosen = [edit for edit in chosen if edit.kind != own_settings.KIND]  # another scope still needs it
    return chosen if any(edit.kind != own_settings.KIND for edit in chosen) or scope is None else []


def _find_unrecorded(settings: Settings, home: Path) -> Iterator[Edit]:
    """Our part in the user's files that the journal does not know, for example because it was deleted."""
    journal, claude, hooks = Journal(home), claude_home(settings) / "settings.json", codex_home(settings) / "hooks.json"
    folder = str(agent_folder(home, claude_code.AGENT))
    if not journal.find(claude_code.KIND, claude) and claude_code.find_loading(claude).marketplace == folder:
        yield Edit(claude_code.KIND, claude_code.AGENT, "", str(claude), UNKNOWN, UNKNOWN)
    if not journal.find(codex.HOOKS_KIND, hooks) and codex.count_trusted(codex_home(settings))[0]:
        yield Edit(codex.HOOKS_KIND, codex.AGENT, "", str(hooks), UNKNOWN, UNKNOWN)


def take_back(home: Path, edits: Sequence[Edit], claude: Path) -> Removal:
    """Takes edits back. One file that cannot be changed does not stop the others."""
    journal, done = Journal(home), Removal()
    if not edits and not any(agent_folder(home, agent).exists() for agent in AGENTS):
        return done
    with journal.locked():
        for edit in reversed(edits):  # the last edit of a file first: each finds what it left
            try:
                exact = revert(journal, edit, _STRIPS[edit.kind])
            except ReverieError as error:
                done.problems.append(str(error))
            else:
                there = Path(edit.path).exists()
                (done.cleaned if not exact else done.restored if there else done.removed).append(edit.path)
        done.left = journal.edits
        ours = [edit for edit in edits if edit.agent == claude_code.AGENT]
        active = is_active(agent_folder(home, claude_code.AGENT))
        if (ours or active) and not any(edit.agent == claude_code.AGENT for edit in done.left):
            made = {one for edit in ours for one in edit.made}
            for path in claude_code.forget_plugin(claude, made):
                (done.cleaned if path.exists() else done.removed).append(str(path))
        _retire_unused(home, journal)
    return done


def count_memories(folder: Path) -> int:
    """How many memories are in a folder."""
    return scan(folder, newest=0).total if folder.is_dir() else 0
