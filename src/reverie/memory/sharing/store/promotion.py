"""Sharing a memory on request: a private file moves to the folder of a project, a team or the organisation, or back.
The move is one version that can be undone; the next sync carries it to the others."""

from __future__ import annotations

from reverie.errors import StorageError, UserError
from reverie.memory.changes import ABSENT, Change, WriteInfo, Writer
from reverie.memory.opening import OpenedMemory
from reverie.memory.sharing.store.naming import name_project
from reverie.memory.sharing.store.state import StoreState
from reverie.memory.sharing.store.sync import (
    ORGANISATION,
    TEAMS,
    Caller,
    folder_name,
    open_client,
    require_store,
    store_folder,
)
from reverie.memory.taxonomy import TEAM, MemoryType
from reverie.memory.topic_file import TopicFile
from reverie.quick import dataclass
from reverie.storage.history.versions import Version
from reverie.storage.locks import exclusive

WITH_PROJECT = "project"
WITH_ORGANISATION = "organisation"
_TEAM = "team:"
_ASK_S = 5.0


@dataclass(frozen=True, slots=True)
class Promotion:
    """A memory on its way: which file becomes which, and who sees it afterwards, or no longer."""

    source: str
    target: str
    whom: str
    text: str
    digest: str
    key: str
    """The state of the store that it needs the user's word for; empty: the folder is synced both ways."""

    @property
    def is_sharing(self) -> bool:
        return self.target.startswith(f"{TEAM}/")

    @property
    def warning(self) -> str:
        """What the user should see before it is shared."""
        about_user = TopicFile.parse(self.text).type is MemoryType.USER
        return "It is a memory about you." if self.is_sharing and about_user else ""


def plan_share(memory: OpenedMemory, name: str, scope: str = "") -> Promotion:
    """Plans to share a file with a `scope`: `project`, `team:NAME` or `organisation`. A file that is shared already is
    sent again as it is here. Raises `UserError` if that is not possible."""
    require_store(memory)
    if name.startswith(f"{TEAM}/") and not scope:
        return _plan(memory, name, name)
    own = _bare(name)
    if scope in ("", WITH_PROJECT):
        if not name_project(memory).is_shared:
            raise UserError(
                "This folder has no git remote, so nobody else can have its project; set `memory.store_project`, or "
                "share with `team:NAME` or `organisation`."
            )
        return _plan(memory, name, f"{TEAM}/{own}")
    if scope == WITH_ORGANISATION:
        return _plan(memory, name, f"{ORGANISATION}{own}")
    team = scope.removeprefix(_TEAM).strip()
    if not scope.startswith(_TEAM) or not team:
        raise UserError(f"{scope[:60]!r} is not somebody to share with: give project, team:NAME or organisation.")
    _check_member(memory, team)
    return _plan(memory, name, f"{TEAMS}{folder_name(team)}/{own}")


def plan_unshare(memory: OpenedMemory, name: str) -> Promotion:
    """Plans to make a shared file private again."""
    require_store(memory)
    if not name.startswith(f"{TEAM}/"):
        raise UserError(f"{name} is private already.")
    return _plan(memory, name, _bare(name))


def carry_out(memory: OpenedMemory, promotion: Promotion, why: str) -> Version | None:
    """Moves the file. The others have it after the next sync."""
    memory.require_on("nothing is shared")
    version = None
    if promotion.source != promotion.target:
        if memory.directory.exists(promotion.target):
            raise UserError(f"There is another {promotion.target}; rename one of the two first.")
        changes = [
            Change(promotion.target, promotion.text, ABSENT),
            Change(promotion.source, None, promotion.digest),
        ]
        version = memory.directory.transaction(changes, WriteInfo(Writer.USER, why)).version
    for name in (promotion.source, promotion.target):
        _allow(memory, name)
    return version


def _check_member(memory: OpenedMemory, team: str) -> None:
    """Raises `UserError` for a team that the user is not in; without the server, nobody knows."""
    try:
        with open_client(memory, within_s=_ASK_S) as client:
            teams = sorted(name for kind, name in Caller.read(client.me()).scopes.values() if kind == "team")
    except StorageError:
        return
    if team not in teams:
        raise UserError(f"You are not in a team {team[:60]!r}; your teams: {', '.join(teams) or 'none'}.")


def _allow(memory: OpenedMemory, name: str) -> None:
    """Lets a change in a folder that is only read leave this machine, once."""
    shelf = _shelf_of(name)
    if shelf is None:
        return
    key, own = shelf
    folder = store_folder(memory)
    with exclusive(folder / "lock", timeout_s=30.0, what="the copy of the memory server"):
        state = StoreState.load(folder / f"{key}.json")
        if own not in state.promoted:
            state.promoted.append(own)
            state.save()


def _plan(memory: OpenedMemory, source: str, target: str) -> Promotion:
    document = memory.directory.read(source)
    shared = target if target.startswith(f"{TEAM}/") else source
    shelf = _shelf_of(shared)
    return Promotion(source, target, _whom(memory, shared), document.text, document.digest, shelf[0] if shelf else "")


def _whom(memory: OpenedMemory, name: str) -> str:
    if name.startswith(ORGANISATION):
        return "everybody in your organisation"
    if name.startswith(TEAMS):
        return f"everybody in the team {name.removeprefix(TEAMS).partition('/')[0]}"
    return f"everybody in the project {name_project(memory).name}"


def _shelf_of(name: str) -> tuple[str, str] | None:
    """The state and the name in it of a file that is shared only on request; None for all others."""
    if name.startswith(ORGANISATION):
        return "organisation", name.removeprefix(ORGANISATION)
    if name.startswith(TEAMS):
        team, _, own = name.removeprefix(TEAMS).partition("/")
        return (f"team-{team}", own) if own else None
    return None


def _bare(name: str) -> str:
    """The name of a file without the folder of those it is shared with."""
    if shelf := _shelf_of(name):
        return shelf[1]
    return name.removeprefix(f"{TEAM}/")
