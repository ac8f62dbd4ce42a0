"""Completion at the prompt of the chat: commands after a slash, files after an @."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from reverie.cli.chat.project_files import ProjectFiles
from reverie.cli.output import one_line

_MOST_PATHS = 2_000
_AT = re.compile(r"(?:^|\s)@(\S*)$")

SlashCompletion = Callable[[str], Iterable[tuple[str, int, str]]]
"""Completes a line that begins with a slash: the text, how far back it begins, its description."""


def is_completed(text: str) -> bool:
    """Whether completions appear while this text is typed."""
    return text.startswith("/") or _AT.search(text) is not None


class ChatCompleter(Completer):
    """Commands after a slash, files of the project after an @, and those of other folders by their path."""

    def __init__(self, cwd: Path, slash: SlashCompletion) -> None:
        self._cwd = cwd
        self._slash = slash
        self._files = ProjectFiles(cwd)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            for word, back, about in self._slash(text):
                yield Completion(word, start_position=-back, display=one_line(word), display_meta=one_line(about))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for one in self.get_completions(document, complete_event):
            yield one
        found = _AT.search(document.text_before_cursor)
        if found is None or document.text_before_cursor.startswith("/"):
            return
        typed = found[1]
        if typed.startswith(("/", "~", "..")):
            for one in self._paths(typed):
                yield one
            return
        for name in await self._files.find(typed):
            word = f'"{name}"' if " " in name and '"' not in name else name
            yield Completion(word, start_position=-len(typed), display=one_line(name))

    def _paths(self, typed: str) -> Iterator[Completion]:
        folder, _, name = typed.rpartition("/")
        where = self._cwd / Path(f"{folder}/" if typed.startswith("/") else folder or ".").expanduser()
        try:
            entries = sorted(os.scandir(where), key=lambda entry: entry.name)
        except (OSError, ValueError, RuntimeError):
            return
        for entry in entries[:_MOST_PATHS]:
            if entry.name.lower().startswith(name.lower()) and (name.startswith(".") or not entry.name.startswith(".")):
                end = "/" if entry.is_dir() else ""
                yield Completion(entry.name + end, start_position=-len(name), display=one_line(entry.name + end))
