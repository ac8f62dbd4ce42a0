"""`Memory`: one memory directory for programs, with the gate, the trust and the versions that the commands have.

Opening is cheap: everything else is imported and read at the first call. Conversations are the work of `Engine`.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from reverie.library.asking import Ask
    from reverie.library.results import (
        Decided,
        Dreamt,
        Extracted,
        Forgotten,
        MemoryVersion,
        Recalled,
        Remembered,
        Saved,
        Waiting,
    )
    from reverie.library.stores import Store
    from reverie.memory.changes import Evidence
    from reverie.memory.opening import OpenedMemory
    from reverie.memory.recall.ranker import Ranker
    from reverie.models.base import Model
    from reverie.settings import Settings

T = TypeVar("T")


class Memory:
    """One memory directory: topic files, their index, marks of trust, an inbox and all versions.

    Make one with `Memory.open`. Every method is a coroutine; `reverie.sync.Memory` has the same methods without async.
    Work on the disk runs in one thread of this object, one call after the other. Several objects and processes may use
    the same directory. Every error is a `ReverieError` with one sentence. Use it with `async with`, or call `close`.
    """

    def __init__(
        self,
        path: Path | None,
        cwd: Path,
        home: Path | None,
        model: str,
        ask: Ask,
        settings: Settings | Mapping[str, object] | None,
        store: Store | None = None,
    ) -> None:
        self._path = path
        self._cwd = cwd
        self._home = home
        self._model = model
        self._ask = ask
        self._given = settings
        self._others_store = store
        self._thread: tuple[int, ThreadPoolExecutor] | None = None
        self._ranker: Ranker | None = None
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        model: str | None = None,
        ask: Ask = None,
        settings: Settings | Mapping[str, object] | None = None,
    ) -> Memory:
        """Opens the memory directory at `path`, or without one the memory of the project in `cwd`.

        `path`: a folder; `~` is expanded; the first write makes it. `scheme://…` is for stores of other packages.
        `cwd`: the working folder, for project settings, instruction files and the transcripts that a dream reads.
        Default: `path`, so that each memory has its own conversations; without a path, that of the process.
        `home`: Reverie's home, for indexes, logs and transcripts. Default: `REVERIE_HOME` or `~/.reverie`.
        `ask`: the model for `extract` and `dream`: a name, or an async function that gets the body of a Messages
        request and returns a response or a text. Without one, code does this work. `model` names the model behind it.
        `settings`: values such as `{"dream.mode": "ask"}`, or a whole `Settings`.

        Raises `UserError` if `path` cannot be a memory directory. It does not read or make files.
        """
        from pathlib import Path

        start = Path(cwd or ".").absolute()
        own_home = Path(home).expanduser() if home is not None else None
        root, store = None, None
        if path is not None:
            from reverie.library.stores import check_root, open_store

            store = open_store(os.fspath(path), own_home) if "://" in os.fspath(path) else None
            root = check_root(path if store is None else store.folder, start)
        folder = root if root is not None and cwd is None else start
        return cls(root, folder, own_home, model or "", ask if ask is not None else model, settings, store)

    # -- for the engine ----------------------------------------------------------------------------------------------

    @cached_property
    def settings(self) -> Settings:
        """The settings, read at the first use."""
        from reverie.settings import Settings, load_settings
        from reverie.settings.schema import with_values

        given = self._given
        found = (
            given if isinstance(given, Settings) else load_settings(self._cwd, overrides=given or {}, home=self._home)
        )
        return with_values(found, {"memory.path": str(self._path)}) if self._path is not None else found

    @cached_property
    def opened(self) -> OpenedMemory:
        """The directory, its gate and its places, opened at the first use."""
        from reverie.memory.opening import log_refusals, open_memory
        from reverie.paths import Places

        places = Places.of(self._cwd, self.settings)
        return open_memory(self.settings, places, report=log_refusals(places))

    @cached_property
    def _store(self) -> Store | None:
        """What keeps the directory in step with another place: the store of a package, or a memory server."""
        from reverie.library.stores import open_server

        return self._others_store or open_server(self.opened)

    @property
    def path(self) -> Path:
        """The memory directory."""
        return self.opened.directory.root

    def open_model(self) -> Model:
        """The model for work beside a conversation, as `ask` says."""
        from reverie.library.asking import open_ask

        return open_ask(self._ask, self.settings, model=self._model)

    # -- finding -----------------------------------------------------------------------------------------------------

    async def recall(self, text: str, k: int = 5, *, without: Collection[str] = ()) -> list[Recalled]:
        """The memories that fit a message, best first, at most `k`. Empty if nothing fits, or for a single word.

        `without` names memories to leave out, for example those that the conversation has already.
        Ranks on this machine, without a model. At most two inferred memories come while others fit as well.
        """
        from reverie.library.finding import recall

        return await self._run(lambda: recall(self.opened, self._rank, _text(text), k, without))

    async def reminder(self, text: str, k: int = 5, *, without: Collection[str] = ()) -> str:
        """The memories that fit a message as one text for a prompt; empty if nothing fits.

        Every line of a memory is quoted and cannot imitate a heading or a tag. Age, trust and evidence are beside it.
        Put it next to the user's message, not into the system prompt: so the prefix stays the same.
        """
        from reverie.library.finding import remind

        return await self._run(lambda: remind(self.opened, self._rank, _text(text), k, without))

    async def reminder_within(
        self, characters: int, text: str, k: int = 5, *, without: Collection[str] = ()
    ) -> tuple[str, tuple[str, ...]]:
        """The same for as many memories as fit into `characters`, without the tags around it, and their names.

        For agents that add their own tags. Give the names back with `without`, and each memory comes once.
        """
        from reverie.library.finding import remind_within

        return await self._run(lambda: remind_within(self.opened, self._rank, _text(text), k, without, characters))

    async def read(self, name: str) -> Remembered:
        """One memory by its name, its title or a clear part of its name. Raises `UserError` if there is none."""
        from reverie.library.finding import read

        return await self._run(lambda: read(self.opened, _text(name)))

    async def list(self) -> list[Remembered]:
        """All memories, newest first."""
        from reverie.library.finding import list_all

        return await self._run(lambda: list_all(self.opened))

    # -- writing -----------------------------------------------------------------------------------------------------

    async def remember(
        self,
        text: str,
        *,
        type: str | None = None,
        title: str | None = None,
        origin: str = "entered",
        said: str | Sequence[str | Evidence] = (),
        notes: bool = False,
        by: str = "",
    ) -> Saved:
        """Saves a text as a memory of its own, unless one has exactly this text.

        `type` is `user`, `feedback`, `project` or `reference`. Without it and `title`, they are found in the text.
        `origin` says whose text it is. `typed`: the user's own words, confirmed. `entered`, `pasted`, `piped`: given by
        the user, inferred. `model`, `tool`, `page` and others: an agent's text. Of such a text only what follows from
        the user's words in `said` is stored; the rest waits in the inbox (`Saved.held`). With `notes` the rest is
        stored too, as the agent's note, unless it has an address or is against what the user confirmed.
        `by` names the agent in the history. Secrets are refused with a `ReverieError`.
        """
        from reverie.library.writing import remember

        words = [said] if isinstance(said, str) else said
        return await self._run(
            lambda: remember(self.opened, _text(text), type, _text(title or ""), origin, words, notes=notes, by=by),
            writes=True,
        )

    async def forget(
        self, name_or_words: str, *, origin: str = "entered", said: Sequence[str | Evidence] = (), by: str = ""
    ) -> Forgotten:
        """Removes the memory of this name or title, or the only one that clearly says these words.

        Raises `UserError` with the candidates if none or more than one matches. `undo` brings it back.
        If an agent asks (`origin`), what the user confirmed stays until the user decides, unless words in `said` order
        it.
        """
        from reverie.library.writing import forget

        return await self._run(lambda: forget(self.opened, _text(name_or_words), origin, said, by), writes=True)

    async def tool(self, command: Mapping[str, Any], *, said: Sequence[str | Evidence] = ()) -> str:
        """Carries out a command of the API's memory tool, and returns the text for the model.

        The commands are `view`, `create`, `str_replace`, `insert`, `delete` and `rename`, with paths below `/memories`.
        A `ReverieError` has the text of an error. What an agent writes is judged by `said`, the user's
        words: what does not follow from them waits in the inbox.
        """
        from reverie.library.memory_tool import run_command

        return await self._run(lambda: run_command(self.opened, command, said), writes=True)

    async def history(self, name: str | None = None, limit: int = 50) -> list[MemoryVersion]:
        """The versions of the directory or of one memory, newest first. Changes by hand become a version first."""
        from reverie.library.writing import history

        return await self._run(lambda: history(self.opened, name, limit))

    async def undo(self, version: str | None = None) -> MemoryVersion | None:
        """Reverses one version, the newest without a name, and keeps later changes of other lines.

        Returns the version that this made; None if memory is already as before.
        """
        from reverie.library.writing import undo

        return await self._run(lambda: undo(self.opened, version), writes=True)

    # -- deciding ----------------------------------------------------------------------------------------------------

    async def inbox(self, *, inferred: bool = False) -> list[Waiting]:
        """What waits for the user: held statements and proposed dreams; with `inferred` also what nobody confirmed."""
        from reverie.library.decisions import list_waiting

        return await self._run(lambda: list_waiting(self.opened, inferred=inferred))

    async def confirm(self, item: Waiting | Saved | Dreamt | str) -> Decided:
        """Confirms it for the user, who must have seen it.

        A held statement becomes a memory, an inferred one is confirmed, and a proposed dream is written.

        `item` is what `inbox`, `remember` or `dream` returned, an id or its beginning, or the name of a memory, for all
        inferred statements in it.
        """
        from reverie.library.decisions import decide

        return await self._run(lambda: decide(self.opened, item, yes=True), writes=True)

    async def reject(self, item: Waiting | Saved | Dreamt | str) -> Decided:
        """Rejects it for the user: what waits is dropped, an inferred statement is removed from its memory."""
        from reverie.library.decisions import decide

        return await self._run(lambda: decide(self.opened, item, yes=False), writes=True)

    # -- learning ----------------------------------------------------------------------------------------------------

    async def extract(self, messages: Sequence[dict[str, Any]], *, origin: str | None = None) -> Extracted:
        """Learns from a conversation, turn by turn, as a session does after each turn.

        `messages` are dictionaries in the shape of the Messages API. Give the whole conversation each time: turns that
        were read before are skipped. `origin` says whose the text of user messages is (default `entered`);
        `reverie_origin` on a text block says it for this block. If the model of `ask` fails, code does the work, and
        `Extracted.problems` has the reason.
        """
        from reverie.library.learning import extract

        return await self._written(extract(await self._ready(), self.open_model, messages, origin))

    async def dream(self, *, review: bool = False, guidance: str = "") -> Dreamt:
        """Tidies memory now: joins duplicates, dates relative days, corrects the index. The result is one version.

        With `review` the result waits for `confirm` or `reject`. `guidance` tells a model what to pay attention to; the
        embedded one does not read it. Raises `ReverieError` if the dream fails; memory does
        not change then.
        """
        from reverie.library.learning import dream

        return await self._written(dream(await self._ready(), self.open_model, review=review, guidance=_text(guidance)))

    # -- closing -----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Waits for running calls and closes the index. A closed memory raises `UserError`; closing twice is fine."""
        if self._closed:
            return
        try:
            if self._thread is not None:
                await self._run(self._end, pulls=False)
            store = self._others_store or self.__dict__.get("_store")
            if store is not None:
                await self._run(store.close, pulls=False)
        finally:
            self._closed = True
            if self._thread is not None:
                self._thread[1].shutdown(wait=False)

    async def __aenter__(self) -> Memory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Memory({str(self._path) if self._path is not None else f'of the project in {self._cwd}'!r})"

    def _end(self) -> None:
        ranker, self._ranker = self._ranker, None
        if ranker is not None:
            ranker.close()

    def _rank(self) -> Ranker:
        if self._ranker is None:
            from reverie.memory.recall.ranker import Ranker

            opened = self.opened
            root, places, name = opened.directory.root, opened.places, self.settings.memory.encoder
            self._ranker = Ranker.open(root, places.search_index(root), models_dir=places.models, encoder=name)
        return self._ranker

    async def _ready(self) -> OpenedMemory:
        return await self._run(lambda: self.opened)

    async def _written(self, work: Any) -> Any:
        try:
            return await work
        finally:
            await self._run(lambda: None, writes=True, pulls=False)

    async def _run(self, work: Callable[[], T], *, writes: bool = False, pulls: bool = True) -> T:
        """Runs work on the disk in the thread of this object, with what its store has to do before and after it."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        if self._closed:
            raise UserError("This memory is closed; open it again with `Memory.open`.")
        if self._thread is None or self._thread[0] != os.getpid():  # threads do not live on in a fork
            self._thread = (os.getpid(), ThreadPoolExecutor(1, thread_name_prefix="reverie-memory"))
            self._ranker = None

        def run() -> T:
            store = self._store if pulls or writes else None
            if store is not None and pulls:
                store.pull()
            done = work()
            if store is not None and writes:
                store.push()
            return done

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread[1], run)
        except OSError as error:
            from reverie.storage.atomic import storage_error

            raise storage_error(error, self._path or self._cwd, "use the memory of") from error


def _text(given: object) -> str:
    if not isinstance(given, str):
        raise UserError(f"Give a text, not {type(given).__name__}.")
    return given
