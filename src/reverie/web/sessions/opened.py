"""One session, opened for a page: its transcript as far as it is read, its agents, its costs and its head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reverie.context.ledger import Ledger, Totals
from reverie.errors import ReverieError
from reverie.models.catalogue import Catalogue
from reverie.models.wire import model_id
from reverie.moments import to_datetime
from reverie.origins import strip_tags
from reverie.paths import find_repo, slug
from reverie.paths.places import check_name
from reverie.quick import dataclass
from reverie.regular_files import read_head
from reverie.storage.lease import Lease
from reverie.storage.transcript.file import parse_line
from reverie.storage.transcript.sessions import SessionInfo
from reverie.types import Purpose
from reverie.web.sessions.items import Transcript, anchor, build, read_items, sidechain_threads
from reverie.web.sessions.parts import Reader
from reverie.web.sessions.reading import LONG_PATIENCE_S, PATIENCE_S, Snapshot, TranscriptReader, reader_of
from reverie.web.sessions.table import SOURCES, table_of
from reverie.web.site import Site, is_folder
from reverie.web.visit import Data, NotFound, Visit

_HEAD_BYTES = 65_536
_FRESH_S = 10.0


@dataclass(frozen=True, slots=True)
class Opened:
    """A session, and which of its conversations a visit asks for: its own, an agent's, or a branch that was left."""

    site: Site
    info: SessionInfo
    reader: TranscriptReader
    snapshot: Snapshot
    main: Transcript
    """The session's own conversation."""
    transcript: Transcript
    """The one that is shown."""
    agent: str = ""
    branch: str = ""
    shown: Snapshot | None = None
    """How far the one that is shown is read, if it is an agent's."""

    @classmethod
    def of(cls, visit: Visit) -> Opened:
        site = visit.site
        info = site.session(visit.path["session"])
        catalogue = Catalogue.load(site.settings.catalogue.files)
        reader = reader_of(site, info.path, lambda own, whole: _warm(own, whole, catalogue))
        named = {*visit.path, *visit.query} & {"message", "call", "image", "at", "agent", "branch"}
        snapshot = reader.look(LONG_PATIENCE_S if named else PATIENCE_S)
        main = read_items(reader, snapshot)
        agent, branch = visit.query.get("agent", ""), visit.query.get("branch", "")
        if agent:
            shown, transcript = _agent_transcript(site, info, reader, snapshot, agent)
            return cls(site, info, reader, snapshot, main, transcript, agent=agent, shown=shown)
        if branch:
            position = main.at(branch)
            if position is None:
                raise NotFound(f"This conversation has no branch {branch[:80]!r}.")
            return cls(site, info, reader, snapshot, main, build(main.items[position].records), branch=branch)
        return cls(site, info, reader, snapshot, main, main)

    def describer(self, *, whole: bool = False) -> Reader:
        """Makes data of items."""
        folder = Path(self.info.cwd) if self.info.cwd else None
        return Reader(
            self.info.id, self.agent, self.transcript, self.info.folder, folder, self.memory_project(folder), whole
        )

    def memory_project(self, folder: Path | None) -> str:
        """The project whose memory a session in this folder uses."""
        if folder is not None and is_folder(folder) and slug(folder) == self.info.path.parent.name:
            return slug(find_repo(folder).root)
        return self.info.path.parent.name

    def ledger(self) -> Ledger:
        """The costs; of a large file only when all of it is read, and in a live session at most ten seconds old."""
        catalogue = Catalogue.load(self.site.settings.catalogue.files)
        return _ledger(self.reader, self.snapshot, catalogue) if self.snapshot.is_whole else Ledger(catalogue)

    def reading(self) -> Data | None:
        """How far a large file is read; None when all of it is."""
        found = self.shown or self.snapshot
        return None if found.is_whole else {"read": found.read, "size": found.size, "share": round(found.share, 3)}

    # -- agents and forks

    def agents(self) -> list[Data]:
        """Agents with a transcript: in files of their own, or in the same file."""
        found = dict[str, Data]()
        for id, title in _agent_files(self.info):
            found[id] = {"id": id, "title": title}
        for id, records in self.reader.derive(
            "threads", self.snapshot, lambda given: sidechain_threads(given.records)
        ).items():
            text = next((one.message.text for one in records if one.message is not None), "")
            found.setdefault(id, {"id": id, "title": strip_tags(text)[:200]})
        costs = self._by_thread()
        for id, one in found.items():
            call = self.main.agents.get(id)
            position = self.main.calls.get(call, -1) if call is not None else -1
            spent = costs.get(id)
            one["address"] = f"/sessions/{self.info.id}?agent={id}"
            one["at"] = self.main.items[position].id if position >= 0 else ""
            one["cost_usd"] = round(spent.cost, 6) if spent is not None else None
            one["requests"] = spent.requests if spent is not None else None
        return list(found.values())

    def forks(self) -> list[Data]:
        """Requests beside the conversation that left no transcript of their own: notes, recall, dreams, forks."""
        found = dict[tuple[str, str], Totals]()
        known = {one["id"] for one in self.agents()}
        for one in self.ledger().entries:
            if one.purpose != Purpose.MAIN and one.thread.removeprefix("agent-") not in known:
                key = (one.purpose, one.thread)
                found[key] = found.get(key, Totals()).plus(one)
        return [
            {
                "purpose": purpose,
                "thread": thread,
                "requests": sums.requests,
                "tokens": sums.usage.total,
                "cost_usd": round(sums.cost, 6),
            }
            for (purpose, thread), sums in found.items()
        ]

    def _by_thread(self) -> dict[str, Totals]:
        found = dict[str, Totals]()
        for one in self.ledger().entries:
            if one.thread:
                key = one.thread.removeprefix("agent-")
                found[key] = found.get(key, Totals()).plus(one)
        return found

    # -- the head of all pages about this session

    def head(self) -> Data:
        """What the top of every page about this session shows."""
        row = table_of(self.site).row(self.info)
        figures, main = row.figures, self.main
        model = main.header.model if main.header is not None else main.model
        return {
            "id": self.info.id,
            "title": self.info.title,
            "project": self.info.path.parent.name,
            "folder": self.info.cwd,
            "branch": self.info.git_branch,
            "source": figures.source if figures is not None else "",
            "source_label": SOURCES.get(figures.source, figures.source) if figures is not None else "",
            "model": model_id(model),
            "first": main.first,
            "last": main.last if self.snapshot.is_whole else to_datetime(self.info.said).isoformat(),
            "size": self.info.size,
            "rounds": figures.rounds if figures is not None else None,
            "tokens": figures.tokens if figures is not None else None,
            "cost_usd": round(figures.cost, 6) if figures is not None else None,
            "has_price": figures is None or figures.unpriced < max(1, figures.requests),
            "open_in": holder(self.info),
            "path": str(self.info.path),
        }


def _ledger(reader: TranscriptReader, snapshot: Snapshot, catalogue: Catalogue) -> Ledger:
    return reader.derive("ledger", snapshot, lambda given: Ledger.of_session(given.records, catalogue), for_s=_FRESH_S)


def _warm(reader: TranscriptReader, snapshot: Snapshot, catalogue: Catalogue) -> None:
    read_items(reader, snapshot)
    _ledger(reader, snapshot, catalogue)


def holder(info: SessionInfo) -> int | None:
    """The PID of the process that has the session open; None if there is none."""
    try:
        found = Lease.holder(info.lease)
    except ReverieError:
        return None
    return None if found is None else int(found.get("pid") or 0)


def _agent_transcript(
    site: Site, info: SessionInfo, reader: TranscriptReader, snapshot: Snapshot, agent: str
) -> tuple[Snapshot | None, Transcript]:
    for id, _ in _agent_files(info):
        if id == agent:
            own = reader_of(site, info.folder / "subagents" / f"agent-{check_name(id, 'agent id')}.jsonl")
            shown = own.look()
            return shown, read_items(own, shown, sidechains=True)
    threads = reader.derive("threads", snapshot, lambda given: sidechain_threads(given.records))
    if agent in threads:
        return None, build(threads[agent], sidechains=True)
    raise NotFound(f"This session has no transcript of an agent {agent[:80]!r}.")


def _agent_files(info: SessionInfo) -> Iterator[tuple[str, str]]:
    """The ids of agents with files of their own, and what each was asked."""
    folder = info.folder / "subagents"
    if folder.is_symlink() or info.folder.is_symlink():
        return
    for path in sorted(folder.glob("agent-*.jsonl")):
        id = path.stem.removeprefix("agent-")
        if path.is_symlink() or not path.is_file() or anchor(id) != id:
            continue
        yield id, _first_words(path)


def _first_words(path: Path) -> str:
    try:
        for line in read_head(path, _HEAD_BYTES, follow=False).split(b"\n"):
            for record in parse_line(line) if line.strip() else ():
                if record.message is not None and (text := strip_tags(record.message.text).strip()):
                    return text[:200]
    except (OSError, ValueError):
        pass
    return ""
