"""Completion at the prompt of the chat: commands after a slash, files after an @."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from reverie.cli.output import one_line

_MOST_PATHS = 200
_AT = re.compile(r"(?:^|\s)@(\S*)$")

SlashCompletion = Callable[[str], Iterable[tuple[str, int, str]]]
"""Completes a line that begins with a slash: the text, how far back it begins, its description."""


def is_completed(text: str) -> bool:
    """Whether completions appear while this text is typed."""
    return text.startswith("/") or _AT.search(text) is not None


class ChatCompleter(Completer):
    """Commands after a slash, files after an @."""

    def __init__(self, cwd: Path, slash: SlashCompletion) -> None:
        self._cwd = cwd
        self._slash = slash

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            for word, back, about in self._slash(text):
                yield Completion(word, start_position=-back, display=one_line(word), display_meta=one_line(about))
        elif found := _AT.search(text):
            yield from self._paths(found[1])

    def _paths(self, typed: str) -> Iterator[Completion]:
        folder, _, name = typed.rpartition("/")
        where = self._cwd / Path(f"{folder}/" if typed.startswith("/") else folder or ".").expanduser()
        try:
            entries = sorted(os.scandir(where), key=lambda entry: entry.name)
        except (OSError, ValueError):
            return
        for entry in entries[: _MOST_PATHS * 10]:
            if entry.name.lower().startswith(name.lower()) and (name.startswith(".") or not entry.name.startswith(".")):
                end = "/" if entry.is_dir() else ""
                yield Completion(entry.name + end, start_position=-len(name), display=one_line(entry.name + end))
