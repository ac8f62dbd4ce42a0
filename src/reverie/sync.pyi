# Written by `python -m reverie.library.reference --sync`: the types of what sync.py makes at run time.

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from reverie.events import Event
from reverie.library.asking import Ask
from reverie.library.prepared import CompactedMessages, Cost, KeptResult, PreparedRequest
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
from reverie.memory.changes import Evidence
from reverie.memory.opening import OpenedMemory
from reverie.models.base import Model
from reverie.settings import Settings
from reverie.storage.transcript.session_log import Clock, utc_now

class Engine:
    """The layers around one conversation. Create it with `Engine.open`; one engine serves many requests."""

    @classmethod
    def open(
        cls,
        conversation_id: str,
        *,
        model: str,
        memory: Memory | None = None,
        ask: Ask | None = None,
        wire: Literal["messages", "chat", "responses"] | None = None,
        window: int | None = None,
        cwd: Path | str | None = None,
        home: Path | str | None = None,
        settings: Mapping[str, object] | None = None,
        flags: Mapping[str, bool] | None = None,
        on_event: Callable[[Event], None] | None = None,
        clock: Clock = utc_now,
    ) -> Engine:
        """Opens a conversation, new or known. It sends nothing and reads nothing yet."""
    def prepare(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        system: str | Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        max_tokens: int | None = None,
        origin: str = "entered",
        whole: bool | None = None,
        seen: int = 0,
        allowance: float | None = None,
        recalls: bool = True,
        reported: int = 0,
        **fields: Any,
    ) -> PreparedRequest:
        """Returns the request to send: old results cleared, the history compacted if it must be, memories that fit the
        newest user message added, cache markers set."""
    def observe(self, response: object) -> None:
        """Takes in the response to the last prepared request: an object of an SDK or a dictionary. Its usage makes the
        count exact and is booked."""
    def keep(self, tool_use_id: str, tool_name: str, output: object) -> KeptResult:
        """Returns the tool result to put into your messages: `output`, or its beginning and the path of the whole if it
        is large. `output` is a text, a list of content blocks, or anything that JSON can hold."""
    def end_turn(self, *, answered: bool = True) -> None:
        """Call when the user has the answer: lessons are written to memory, and a dream begins if its gates are open.
        Both run in the background; `close` waits for them."""
    def knows(self, messages: Sequence[Mapping[str, Any]], *, model: str | None = None) -> bool:
        """Whether a request belongs to this conversation, for programs that also ask other things: `model`, if it is
        given, is the engine's; and nothing was answered yet, or the messages begin as the conversation does, or they
        have a tool call or a long answer of it."""
    def recover(self, error: object = "") -> bool:
        """Call when the server says that the prompt is too long: makes the context shorter. Returns whether it did;
        then prepare the request again."""
    def evidence(self) -> tuple[Evidence, ...]:
        """Returns what was said in the conversation, with its origins: `said` for `Memory.tool`."""
    def compact(
        self,
        messages: Sequence[Mapping[str, Any]] = (),
        *,
        instructions: str = "",
        origin: str = "entered",
    ) -> CompactedMessages:
        """Compacts now and returns the messages that replace the history. Later requests continue from there, and you
        may go on passing the whole history, or begin again with these messages."""
    @property
    def wire(self) -> str:
        """The shape of your messages: "messages", "chat" or "responses"."""
    @property
    def read_tool(self) -> dict[str, Any]:
        """The definition of a tool that reads kept results back, for agents without a file tool. Answer its calls with
        `read`."""
    def read(self, path: str, offset: int = 0) -> str:
        """Returns a part of a kept result of this conversation that fits the window, and says how to read on. The files
        that a summary names can be read too. Raises `UserError` for any other path."""
    def cost(self) -> Cost:
        """Returns what the conversation has cost so far, with the work beside it."""
    def folder(self) -> Path:
        """Returns the folder of this conversation below the home, for files that belong to it."""
    def settle(self) -> None:
        """Waits until the background work is done."""
    def close(self) -> None:
        """Waits for background work and closes the transcript."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

class Memory:
    """One memory directory: topic files, their index, marks of trust, an inbox and all versions."""

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
        """Opens the memory directory at `path`, or without one the memory of the project in `cwd`."""
    @property
    def settings(self) -> Settings:
        """The settings, read at the first use."""
    @property
    def opened(self) -> OpenedMemory:
        """The directory, its gate and its places, opened at the first use."""
    @property
    def path(self) -> Path:
        """The memory directory."""
    def open_model(self) -> Model:
        """The model for work beside a conversation, as `ask` says."""
    def recall(self, text: str, k: int = 5, *, without: Collection[str] = ()) -> list[Recalled]:
        """The memories that fit a message, best first, at most `k`. Empty if nothing fits, or for a single word."""
    def reminder(self, text: str, k: int = 5, *, without: Collection[str] = ()) -> str:
        """The memories that fit a message as one text for a prompt; empty if nothing fits."""
    def reminder_within(
        self,
        characters: int,
        text: str,
        k: int = 5,
        *,
        without: Collection[str] = (),
    ) -> tuple[str, tuple[str, ...]]:
        """The same for as many memories as fit into `characters`, without the tags around it, and their names."""
    def read(self, name: str) -> Remembered:
        """One memory by its name, its title or a clear part of its name. Raises `UserError` if there is none."""
    def list(self) -> list[Remembered]:
        """All memories, newest first."""
    def remember(
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
        """Saves a text as a memory, or corrects the memory that says much the same."""
    def forget(
        self,
        name_or_words: str,
        *,
        origin: str = "entered",
        said: Sequence[str | Evidence] = (),
        by: str = "",
    ) -> Forgotten:
        """Removes the memory of this name or title, or the only one that clearly says these words."""
    def tool(self, command: Mapping[str, Any], *, said: Sequence[str | Evidence] = ()) -> str:
        """Carries out a command of the API's memory tool, and returns the text for the model."""
    def history(self, name: str | None = None, limit: int = 50) -> list[MemoryVersion]:
        """The versions of the directory or of one memory, newest first. Changes by hand become a version first."""
    def undo(self, version: str | None = None) -> MemoryVersion | None:
        """Reverses one version, the newest without a name, and keeps later changes of other lines."""
    def inbox(self, *, inferred: bool = False) -> list[Waiting]:
        """What waits for the user: held statements and proposed dreams; with `inferred` also what nobody confirmed."""
    def confirm(self, item: Waiting | Saved | Dreamt | str) -> Decided:
        """Confirms it for the user, who must have seen it."""
    def reject(self, item: Waiting | Saved | Dreamt | str) -> Decided:
        """Rejects it for the user: what waits is dropped, an inferred statement is removed from its memory."""
    def extract(self, messages: Sequence[dict[str, Any]], *, origin: str | None = None) -> Extracted:
        """Learns from a conversation, turn by turn, as a session does after each turn."""
    def dream(self, *, review: bool = False, guidance: str = "") -> Dreamt:
        """Tidies memory now: joins duplicates, dates relative days, corrects the index. The result is one version."""
    def close(self) -> None:
        """Waits for running calls and closes the index. A closed memory raises `UserError`; closing twice is fine."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
