# Written by `python -m reverie.library.reference --sync`: the types of what sync.py makes at run time.

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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
from reverie.memory.opening import OpenedMemory
from reverie.models.base import Model
from reverie.settings import Settings

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
    def recall(self, text: str, k: int = 5) -> list[Recalled]:
        """The memories that fit a message, best first, at most `k`. Empty if nothing fits, or for a single word."""
    def reminder(self, text: str, k: int = 5) -> str:
        """The memories that fit a message as one text for a prompt; empty if nothing fits."""
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
        said: str | Sequence[str] = (),
    ) -> Saved:
        """Saves a text as a memory, or corrects the memory that says much the same."""
    def forget(self, name_or_words: str) -> Forgotten:
        """Removes the memory of this name or title, or the only one that clearly says these words."""
    def history(self, name: str | None = None, limit: int = 50) -> list[MemoryVersion]:
        """The versions of the directory or of one memory, newest first. Changes by hand become a version first."""
    def undo(self, version: str | None = None) -> MemoryVersion | None:
        """Reverses one version, the newest without a name, and keeps later changes of other lines."""
    def inbox(self, *, inferred: bool = False) -> list[Waiting]:
        """What waits for the user: held statements and proposed dreams; with `inferred` also what nobody confirmed."""
    def confirm(self, item: Waiting | Saved | Dreamt | str) -> Decided:
        """Says yes for the user, who must have seen it."""
    def reject(self, item: Waiting | Saved | Dreamt | str) -> Decided:
        """Says no for the user: what waits is dropped, an inferred statement is removed from its memory."""
    def extract(self, messages: Sequence[dict[str, Any]], *, origin: str | None = None) -> Extracted:
        """Learns from a conversation, turn by turn, as a session does after each turn."""
    def dream(self, *, review: bool = False) -> Dreamt:
        """Tidies memory now: joins duplicates, dates relative days, corrects the index. The result is one version."""
    def close(self) -> None:
        """Waits for running calls and closes the index. A closed memory raises `UserError`; closing twice is fine."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
