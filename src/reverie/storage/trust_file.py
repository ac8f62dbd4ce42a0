"""Stores which folders the user trusts: `<home>/trust.json`, private, written as a whole.

Two commands that write at the same time lose nothing. The user decides about trust: nothing here asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from reverie.errors import StorageError
from reverie.settings.trust import FILE, SETTINGS_FILES, ActingPart, TrustBook, digest_parts
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.locks import exclusive

_WAIT_S = 10.0
_Entries: TypeAlias = dict[str, dict[str, str]]


def trust(home: Path, parts: Iterable[ActingPart], checkout: Path) -> None:
    """Trusts these parts of the settings of this checkout from now on. Decisions about other files stay."""

    def change(trusted: _Entries, declined: _Entries) -> None:
        for folder, files in digest_parts(parts).items():
            kept = trusted.get(folder, {})
            if folder == str(checkout):
                kept = {name: one for name, one in kept.items() if name not in SETTINGS_FILES}
            trusted[folder] = {**kept, **files}
            declined.pop(folder, None)

    _change(home, change)


def decline(home: Path, parts: Iterable[ActingPart]) -> None:
    """Remembers a no, so that the question comes again only when the parts change."""
    _change(home, lambda _, declined: declined.update(digest_parts(parts)))


def revoke(home: Path, folder: Path) -> bool:
    """Removes the trust; False if the folder was not trusted."""
    had: list[bool] = []

    def change(trusted: _Entries, declined: _Entries) -> None:
        had.append(trusted.pop(str(folder), None) is not None)
        declined.pop(str(folder), None)

    if str(folder) in TrustBook.read(home).trusted:
        _change(home, change)
    return any(had)


def _change(home: Path, change: Callable[[_Entries, _Entries], None]) -> None:
    make_private_dir(home)
    with exclusive(home / f".{FILE}.lock", timeout_s=_WAIT_S, what="The list of trusted folders"):
        book = TrustBook.read(home)
        if book.problem:
            raise StorageError(book.problem)
        trusted = {folder: dict(files) for folder, files in book.trusted.items()}
        declined = {folder: dict(files) for folder, files in book.declined.items()}
        change(trusted, declined)
        write_atomic(home / FILE, TrustBook(trusted, declined).to_json())
