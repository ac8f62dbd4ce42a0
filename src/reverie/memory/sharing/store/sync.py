"""The memory directory and a memory server: own files and the private store of the project, `team/` and the store of
the project, and the stores of teams and of the organisation, which are read here and get only what was promoted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from reverie.errors import ReverieError, UserError
from reverie.memory.changes import Decision, Gate, Mark, ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.lines import lead_of
from reverie.memory.opening import OpenedMemory
from reverie.memory.sharing.merging import Merge
from reverie.memory.sharing.questions import drop_settled
from reverie.memory.sharing.rounds import TRIES, Part, Round, SyncReport, in_folder
from reverie.memory.sharing.store.client import StoreAddress, StoreClient, StoreRefused, StoreUnreachable
from reverie.memory.sharing.store.naming import ProjectName, name_project
from reverie.memory.sharing.store.side import StoreSide
from reverie.memory.sharing.store.state import StoreState
from reverie.memory.sharing.store.status import note_failure, note_success
from reverie.memory.sharing.store.tokens import find_token
from reverie.memory.taxonomy import TEAM, Trust, is_topic
from reverie.memory.topic_file import TopicFile
from reverie.permissions.memory_paths import check_memory_write
from reverie.quick import dataclass
from reverie.storage.atomic import make_private_dir
from reverie.storage.locks import exclusive

ORGANISATION: Final = f"{TEAM}/organisation/"
TEAMS: Final = f"{TEAM}/teams/"
_LOCK_S: Final = 30.0
_MOST_TEAMS: Final = 50
_TIMEOUT_S: Final = 20.0
_REASON_VERSIONS: Final = 200
_MACHINE: Final = WriteInfo(Writer.IMPORT, "from your private store: saved on another machine")
_PROJECT: Final = WriteInfo(Writer.IMPORT, "shared by the project")


@dataclass(frozen=True, slots=True)
class Shelf:
    """A store and the part of the memory directory that it belongs to."""

    key: str
    """Names the file with the state."""
    label: str
    """For people: whose it is."""
    scope: str
    purpose: str
    part: Part
    is_private: bool = False
    only_promoted: bool = False
    """Only what the user promoted by a command is sent."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the token belongs to."""

    name: str
    organisation: str
    scopes: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    """`team:ID` → (kind, name)."""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Caller:
        scopes = {str(one["scope"]): (str(one["kind"]), str(one["name"])) for one in raw["scopes"]}
        return cls(str(raw["person"]["name"]), str(raw["organisation"]["name"]), scopes)

    def scope_of(self, kind: str, name: str) -> str:
        """The scope of a team or project that the caller is in; empty if there is none."""
        return next((scope for scope, one in self.scopes.items() if one == (kind, name)), "")


def uses_store(memory: OpenedMemory) -> bool:
    return bool(memory.settings.memory.store) and memory.switch.on


def store_folder(memory: OpenedMemory) -> Path:
    """Where the state of the syncs is."""
    return memory.places.team_sync(memory.directory.root) / "store"


def sync_store(memory: OpenedMemory, *, dry_run: bool = False, within_s: float | None = None) -> SyncReport:
    """Brings the memory directory and the stores to the same state. Blocks: run it in a thread. Raises a
    `ReverieError` if it fails; then nothing is lost, and the next sync continues. `within_s` bounds its requests."""
    if not uses_store(memory):
        return SyncReport()
    folder = store_folder(memory)
    make_private_dir(folder)
    with exclusive(folder / "lock", timeout_s=min(_LOCK_S, within_s or _LOCK_S), what="the copy of the memory server"):
        try:
            with open_client(memory, within_s=within_s) as client:
                caller = Caller.read(client.me())
                report = _sync_all(memory, client, caller, folder, dry_run)
        except ReverieError as error:
            note_failure(folder, str(error))
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:  # an answer is wrong
            note_failure(folder, said := f"{memory.settings.memory.store} does not answer as a memory server does.")
            raise StoreRefused(said, 0) from error
        if not dry_run:
            note_success(folder, f"{caller.name} of {caller.organisation}", report.held_back)
    return report


def open_client(memory: OpenedMemory, *, within_s: float | None = None) -> StoreClient:
    """A connection to the server of the settings. `UserError` without a usable address or a token."""
    address = StoreAddress.parse(memory.settings.memory.store)
    token = find_token(memory.settings, memory.places.home, address)
    return StoreClient(address, token, timeout_s=_TIMEOUT_S, within_s=within_s)


def shelves(memory: OpenedMemory, caller: Caller, project: ProjectName) -> Iterator[Shelf]:
    """The stores that this memory directory is kept in step with."""
    private = Part("", _MACHINE, without=(f"{TEAM}/",), has_index=False)
    yield Shelf("private", "your private store", "user", project.name, private, is_private=True)
    if project.is_shared and memory.settings.team.sharing == "none":
        inner = tuple(one.removeprefix(f"{TEAM}/") for one in (ORGANISATION, TEAMS))
        part = Part(f"{TEAM}/", _PROJECT, without=inner, has_index=False)
        scope = caller.scope_of("project", project.name)
        yield Shelf("project", f"the project {project.name}", scope, "", part)
    whose = f"everybody in {caller.organisation}"
    info = WriteInfo(Writer.IMPORT, f"shared with {whose}")
    yield Shelf(
        "organisation", whose, "organisation", "", Part(ORGANISATION, info, has_index=False), only_promoted=True
    )
    teams = sorted((name, scope) for scope, (kind, name) in caller.scopes.items() if kind == "team")
    for name, scope in teams[:_MOST_TEAMS]:
        info = WriteInfo(Writer.IMPORT, f"shared with the team {name}")
        part = Part(f"{TEAMS}{folder_name(name)}/", info, has_index=False)
        yield Shelf(f"team-{folder_name(name)}", f"the team {name}", scope, "", part, only_promoted=True)


def folder_name(team: str) -> str:
    """The folder of a team. A name that cannot be one gets other signs and a hash, so that two never share a folder."""
    safe = "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in team)[:60]
    return safe if safe == team else f"{safe.strip('_') or 'team'}-{sha256(team.encode()).hexdigest()[:8]}"


def _sync_all(memory: OpenedMemory, client: StoreClient, caller: Caller, folder: Path, dry_run: bool) -> SyncReport:
    report, project = SyncReport(), name_project(memory)
    for shelf in shelves(memory, caller, project):
        state = StoreState.load(folder / f"{shelf.key}.json")
        if state.store:
            try:
                report += _sync_shelf(memory, client, shelf, state, dry_run)
                continue
            except StoreRefused as error:
                if error.status != 404:  # the store is gone, or belongs to somebody else: find ours
                    raise
        found = _find_store(memory, client, shelf, project, state, makes=not dry_run)
        if isinstance(found, str):
            report += SyncReport(held_back=(found,) if found else ())
            continue
        state.start_again(str(found["id"]))
        report += _sync_shelf(memory, client, shelf, state, dry_run)
    if not dry_run and report.received:
        drop_settled(memory.directory)
    return report


def _sync_shelf(
    memory: OpenedMemory, client: StoreClient, shelf: Shelf, state: StoreState, dry_run: bool
) -> SyncReport:
    root = memory.directory.root
    side = StoreSide(
        client,
        state,
        shelf.part,
        lambda name: check_memory_write(f"{root}/{name}", root),
        lambda names: _reasons(memory.directory, names),
    )
    gate: Gate = _OwnMachines(memory.gate, side) if shelf.is_private else memory.gate
    directory = MemoryDirectory.open(root, gate=gate) if shelf.is_private else memory.directory
    total = SyncReport()
    for _ in range(TRIES):
        side.fetch()
        side.refused.clear()
        one = _StoreRound(directory, shelf, side, state, memory)
        report = one.run(dry_run=dry_run)
        refused = tuple(side.refused)
        total = replace(total, held_back=()) + report + SyncReport(held_back=refused)
        if dry_run:
            break
        if one.is_complete:
            state.promoted.clear()
        one.remember()
        if one.is_complete or refused:
            break
    else:
        raise StoreUnreachable(f"{shelf.label} changes faster than it can be synced; the next sync tries again.")
    return in_folder(total, shelf.part.prefix)


def _reasons(directory: MemoryDirectory, names: Collection[str]) -> dict[str, str]:
    """Why each file was changed last, by the newest versions."""
    directory.absorb()
    found = dict[str, str]()
    for version in directory.log(limit=_REASON_VERSIONS):
        told = version.info
        found = {**{one.name: told.reasons.get(one.name, told.why) for one in version.files}, **found}
        if found.keys() >= set(names):
            break
    return found


class _StoreRound(Round):
    """A round with a store: some parts get only what was promoted."""

    def __init__(
        self, directory: MemoryDirectory, shelf: Shelf, side: StoreSide, state: StoreState, memory: OpenedMemory
    ) -> None:
        super().__init__(directory, shelf.part, side, state, memory.gate, memory.places.purged_record)
        self._shelf = shelf
        self._promoted = state.promoted

    def _ask(self, merge: Merge) -> None:
        super()._ask(merge)
        # Two people promoted the same name: both versions are shared.
        self._promoted += [copy for name, copy in merge.kept_both.items() if name in self._promoted]

    def is_asked_for(self, name: str) -> bool:
        return name in self._promoted or self._is_undone(name)

    def _is_undone(self, name: str) -> bool:
        """Whether the last change of a file took back one of the user's, such as sharing it."""
        last = next(self._memory.log(f"{self._shelf.part.prefix}{name}", limit=1), None)
        if last is None or not last.info.reverses:
            return False
        return self._memory.history.find(last.info.reverses).info.writer == Writer.USER

    def why_not_sent(self, name: str, data: bytes | None) -> str | None:
        if self._shelf.only_promoted and not self.is_asked_for(name):
            if data is None:
                return ""  # forgotten here only
            full = f"{self._shelf.part.prefix}{name}"
            return f"it was changed here, and is shared only on request: `reverie memory share {full}`"
        try:
            (data or b"").decode()
        except UnicodeDecodeError:
            return "it is not UTF-8 text"
        return None


class _OwnMachines:
    """The write gate for files from the user's own machines: what was confirmed there is confirmed here. That is the
    first statement of a memory, which its trust is about; the others count as inferred."""

    def __init__(self, gate: Gate, side: StoreSide) -> None:
        self._gate = gate
        self._side = side

    def __call__(self, write: ProposedWrite) -> Decision | None:
        decided = self._gate(write)
        if decided is None or write.text is None or not is_topic(write.name):
            return decided
        lead = lead_of(TopicFile.parse(write.text))
        if not lead or self._side.trust_of(write.name) != Trust.CONFIRMED.value:
            return decided
        mark = Mark(Trust.CONFIRMED, "key", source="another machine of yours")
        return replace(decided, marks={**decided.marks, lead: mark})


def _find_store(
    memory: OpenedMemory, client: StoreClient, shelf: Shelf, project: ProjectName, state: StoreState, *, makes: bool
) -> Mapping[str, Any] | str:
    """The store of a shelf. A text instead: there is none, and why, if the user should know."""
    prefix = shelf.part.prefix
    names = (name.removeprefix(prefix) for name in memory.directory.names() if name.startswith(prefix))
    has_files = any(map(shelf.part.holds, names))
    scope = shelf.scope
    if not scope:  # a project that the user is not in, or that nobody has named yet
        if not has_files or not makes:
            return ""
        try:
            scope = f"project:{client.post('/v1/reverie/projects', {'name': project.name})['id']}"
        except StoreRefused as error:
            return f"{prefix} was not sent: {error}"
    wants = shelf.is_private or (has_files and (not shelf.only_promoted or bool(state.promoted)))
    if wants and makes:
        name = f"{project.name} (private)" if shelf.is_private else shelf.label
        body = {"name": name[:255], "scope": scope, "purpose": shelf.purpose, "if_missing": True}
        return client.post("/v1/reverie/memory_stores", body)
    listed = client.get("/v1/reverie/memory_stores", scope=scope, purpose=shelf.purpose)["data"]
    return next((one for one in listed if one["purpose"] == shelf.purpose), "")


def require_store(memory: OpenedMemory) -> None:
    """Raises `UserError` if no memory server is set."""
    if not memory.settings.memory.store:
        raise UserError("There is no memory server: `reverie memory login URL` uses one.")
