"""The projects that the service knows: settings, memory and a warm ranker per folder, opened again on changes.

Bounded: the folder that nobody used for longest is closed. Rankers are used in one thread; settings in any.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from threading import Lock
from typing import Final

from reverie.daemon.hook_call import environment_for
from reverie.errors import UserError
from reverie.flags import Flags
from reverie.library.finding import find_to_show
from reverie.memory.opening import OpenedMemory, log_refusals, open_memory
from reverie.memory.recall.ranker import Ranker
from reverie.memory.recall.reminder import MAX_FILES, RecalledMemory
from reverie.paths import Places
from reverie.quick import dataclass
from reverie.settings import Settings, load_settings
from reverie.settings.loading import settings_files

_MOST: Final = 24
_QUERY: Final = (6_000, 2_000)
"""What recall looks at of a long prompt: characters of its beginning and of its end, where the question is."""
_WARM_S: Final = 0.5
"""How long a new project may encode memories; the rest is done with the prompts."""


@dataclass(eq=False, slots=True)
class Project:
    """One working folder."""

    settings: Settings
    places: Places
    memory: OpenedMemory
    stamp: tuple[object, ...]
    _ranker: Ranker | None = field(default=None, init=False)
    _flags: Flags | None = field(default=None, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    @property
    def flags(self) -> Flags:
        """The flags, opened at the first use."""
        with self._lock:
            if self._flags is None:
                self._flags = Flags.open(self.places, self.settings)
            return self._flags

    @property
    def recalls(self) -> bool:
        """Whether memories are added here."""
        return self.settings.connect.recall and self.memory.switch.on and self.memory.directory.root.is_dir()

    def recall(self, prompt: str, without: Sequence[str]) -> list[RecalledMemory]:
        """The memories that fit a prompt, best first. For one thread only."""
        first, last = _QUERY
        query = prompt if len(prompt) <= first + last else f"{prompt[:first]}\n{prompt[-last:]}"
        return find_to_show(self.memory, self._rank, query, MAX_FILES, without, gone=lambda _text: ())

    def warm(self) -> None:
        """Opens the ranker before the first prompt needs it. For the same thread."""
        if self.recalls:
            self._rank().prepare(_WARM_S)

    def _rank(self) -> Ranker:
        if self._ranker is None:
            root, name = self.memory.directory.root, self.settings.memory.encoder
            index = self.places.search_index(root)
            self._ranker = Ranker.open(root, index, models_dir=self.places.models, encoder=name)
        return self._ranker

    def close(self) -> None:
        """Closes the ranker, in its thread."""
        ranker, self._ranker = self._ranker, None
        if ranker is not None:
            ranker.close()
        flags, self._flags = self._flags, None
        if flags is not None:
            flags.close()


class Projects:
    """The projects in use."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._known = OrderedDict[tuple[Path, tuple[tuple[str, str], ...]], Project]()
        self._closing = list[Project]()
        self._lock = Lock()

    def of(self, cwd: Path, variables: Mapping[str, str]) -> Project:
        """Returns the project of a folder, as its settings are now, for a session with these variables.

        Raises `UserError` if the folder is not there.
        """
        if not cwd.is_absolute() or not cwd.is_dir():
            raise UserError(f"{str(cwd)[:200]!r} is not a folder.")
        with self._lock:
            key = (cwd, tuple(sorted(variables.items())))
            known = self._known.get(key)
            stamp = tuple(map(_stamp, settings_files(cwd, self._home)))
            if known is None or known.stamp != stamp:
                if known is not None:
                    self._closing.append(known)
                known = self._known[key] = self._open(cwd, variables, stamp)
            self._known.move_to_end(key)
            while len(self._known) > _MOST:
                self._closing.append(self._known.popitem(last=False)[1])
            return known

    def close_unused(self) -> None:
        """Closes projects that were replaced or are too many. Call it in the thread of the rankers."""
        while self._closing:
            self._closing.pop().close()

    def close(self) -> None:
        """Closes all of them, in the thread of the rankers."""
        with self._lock:
            self._closing += self._known.values()
            self._known.clear()
        self.close_unused()

    def _open(self, cwd: Path, variables: Mapping[str, str], stamp: tuple[object, ...]) -> Project:
        settings = load_settings(cwd, env=environment_for(variables), home=self._home)
        places = Places.of(cwd, settings)
        memory = open_memory(settings, places, report=log_refusals(places))
        return Project(settings, places, memory, stamp)


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return found.st_mtime_ns, found.st_size, found.st_ino
