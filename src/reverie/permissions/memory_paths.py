"""Checks whether a path is inside the memory directory, and whether a path may be a memory directory.

A path is checked as text (hidden or encoded `..`, control and invisible characters), component by component on disk
(links that lead nowhere, in a circle or out), and by what is at its end. Never creates or changes anything.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from pathlib import Path
from urllib.parse import unquote_to_bytes

from reverie.errors import ReverieError, UserError
from reverie.permissions.rules import clip
from reverie.quick import dataclass

_MAX_COMPONENT_BYTES = 255
_MAX_PATH_BYTES = 4_095  # PATH_MAX counts the closing NUL
_MAX_DECODINGS = 8
_SEPARATOR_TWINS = frozenset("\u2044\u2215\u2216\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c")
_ENCODED = re.compile(r"%u[0-9A-Fa-f]{4}")
_STRUCTURE = re.compile(r"[./\\]")


class PermissionRefused(ReverieError):
    """A path or an action is not allowed; `str(error)` names it and the reason."""


class RefusedRoot(UserError):
    """This path cannot be a memory directory; `str(error)` gives the reason and says what to use instead."""


class _Unsafe(Exception):
    """The reason why a path cannot be verified, as the end of a sentence."""


def check_memory_root(path: str, *, home: Path, expand_tilde: bool = False) -> Path:
    """Returns the normalised path of a memory directory, which may not exist yet; raises `RefusedRoot` if it is unfit.

    `~/` means `home` only with `expand_tilde`.
    """
    try:
        return _find_root(path, home, expand_tilde)
    except _Unsafe as problem:
        raise RefusedRoot(
            f"The memory directory {clip(path)!r} is refused because {problem}; "
            "give an absolute path to a separate folder."
        ) from None


def check_memory_write(path: str, root: Path) -> Path:
    """Returns the real path to write, if `path` is an `.md` file inside `root`; else raises `PermissionRefused`.

    Write to the returned path, not to `path`: its links are resolved and its new names are in NFC.
    """
    # Somebody who can change the directory may put a link there between the check and the write. So the result holds
    # no links, files are replaced by rename and never opened for writing, and the directory is private (0700).
    try:
        place = _locate(path, root)
        if path.endswith(("/", "/.")):
            raise _Unsafe("it names a folder")
        _check_writable(place)
    except _Unsafe as problem:
        raise PermissionRefused(
            f"Writing to {clip(path)!r} is refused because {problem}; "
            "write to an .md file inside the memory directory, by its absolute path."
        ) from None
    return place.real


def is_inside(path: str, root: Path) -> bool:
    """Whether an absolute path is `root` or verifiably inside it, for reading; any file name is fine."""
    try:
        _locate(path, root)
    except _Unsafe:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a path leads: its names below the root as written, its real path, and the real root."""

    spelled: tuple[str, ...]
    real: Path
    root: Path


def _find_root(path: str, home: Path, expand_tilde: bool) -> Path:
    text = path
    if expand_tilde and (path == "~" or path.startswith("~/")):
        text = f"{home}/{path[2:]}"
    _check_text(text)
    components = [unicodedata.normalize("NFC", component) for component in _components(text)]
    normal = Path("/", *components)
    if len(str(normal)) <= 3:
        raise _Unsafe("it is the file system's root or too near to it")
    real, real_home = _resolve(normal), _resolve(Path(home))
    for candidate, base in ((normal, Path(home)), (real, real_home)):
        if candidate == base or candidate in base.parents:
            raise _Unsafe("it is the home directory or holds it")
    if real.exists() and not real.is_dir():
        raise _Unsafe("there is something that is not a folder")
    return normal


def _check_text(path: str) -> None:
    for char in path:
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            raise _Unsafe(f"it holds the control or invisible character U+{ord(char):04X}")
    for is_wrong, why in (
        (not path, "it is empty"),
        ("\\" in path, "it holds a backslash"),
        (not path.startswith("/"), "it is not absolute"),
        (path.startswith("//"), "it begins with two slashes, as a network path does"),
        (len(path.encode()) > _MAX_PATH_BYTES, f"it is longer than {_MAX_PATH_BYTES:,} bytes"),
        (not _SEPARATOR_TWINS.isdisjoint(path), "it holds a look-alike of a slash"),
    ):
        if is_wrong:
            raise _Unsafe(why)
    for component in path.split("/"):
        if component == "..":
            raise _Unsafe("it climbs with ..")
        if len(component.encode()) > _MAX_COMPONENT_BYTES:
            raise _Unsafe(f"a name in it is longer than {_MAX_COMPONENT_BYTES} bytes")
        _check_look_alikes(component)
    _check_encoding(path)


def _check_look_alikes(component: str) -> None:
    folded = unicodedata.normalize("NFKC", component)
    if "/" in folded or "\\" in folded or (folded.startswith(".") and not component.startswith(".")):
        raise _Unsafe("it hides a dot or a slash in another character")
    if folded != component and folded in (".", ".."):
        raise _Unsafe("it hides a dot or a slash in another character")


def _check_encoding(path: str) -> None:
    """Refuses percent-encoding, even repeated, of a character that changes the structure of the path."""
    if _ENCODED.search(path):
        raise _Unsafe("it holds encoded characters")
    text = path
    for _ in range(_MAX_DECODINGS):
        try:
            decoded = unquote_to_bytes(text).decode()
        except UnicodeDecodeError:
            raise _Unsafe("it holds encoded bytes that are not text") from None
        if decoded == text:
            return
        folded, before = (unicodedata.normalize("NFKC", form) for form in (decoded, text))
        if len(_STRUCTURE.findall(folded)) > len(_STRUCTURE.findall(before)):
            raise _Unsafe("it holds an encoded dot, slash or backslash")
        if any(unicodedata.category(char) in ("Cc", "Cf") for char in decoded):
            raise _Unsafe("it holds an encoded control character")
        text = decoded
    raise _Unsafe("it is encoded too many times")


def _components(path: str) -> list[str]:
    return [component for component in path.split("/") if component not in ("", ".")]


def _locate(path: str, root: Path) -> _Place:
    """Walks the path on disk; once it is inside the root, it may not leave again."""
    _check_text(path)
    real_root = _resolve(root)
    real = Path("/")
    entered: int | None = None
    missing = False
    components = _components(path)
    for index, component in enumerate(components):
        if _within(real, real_root):
            entered = index if entered is None else entered
        elif entered is not None:
            raise _Unsafe("a link on the way leads out of the memory directory")
        real, missing = _step(real, component, missing)
    if not _within(real, real_root):
        raise _Unsafe("it is not inside the memory directory")
    spelled = components[-1:] if entered is None else components[entered:]
    return _Place(tuple(spelled), real, real_root)


def _within(real: Path, root: Path) -> bool:
    # Compared with a trailing separator: memory-evil begins with memory.
    return f"{real}/".startswith(f"{root}/")


def _resolve(path: Path) -> Path:
    if not path.is_absolute() or ".." in path.parts:
        raise _Unsafe("the memory directory itself is not a plain absolute path")
    real, missing = Path("/"), False
    for component in path.parts[1:]:
        real, missing = _step(real, component, missing)
    return real


def _step(folder: Path, component: str, missing: bool) -> tuple[Path, bool]:
    """Goes one component down from a real folder; returns the path and whether it is missing on disk."""
    composed = unicodedata.normalize("NFC", component)
    if missing:
        return folder / composed, True
    # An existing name keeps its spelling on disk; only a new name is composed.
    for name in dict.fromkeys((component, composed)):
        entry = folder / name
        try:
            mode = entry.lstat().st_mode
            if not stat.S_ISLNK(mode):
                return entry, False
            if entry.parts[1] == "proc":
                raise _Unsafe("it goes through a process's own links, which lead elsewhere in another process")
            return Path(os.path.realpath(entry, strict=True)), False
        except FileNotFoundError:
            if entry.is_symlink():
                raise _Unsafe("a link on the way leads to nothing") from None
        except OSError as problem:
            raise _Unsafe(_explain(problem)) from None
    return folder / composed, True


def _explain(problem: OSError) -> str:
    known = {
        errno.ELOOP: "its links lead in a circle",
        errno.ENOTDIR: "a file is where a folder is needed",
        errno.ENAMETOOLONG: "it is too long for this file system",
    }
    return known.get(problem.errno or 0, f"it cannot be checked ({os.strerror(problem.errno or 0)})")


def _check_writable(place: _Place) -> None:
    real_names = place.real.relative_to(place.root).parts
    if not real_names:
        raise _Unsafe("it is the memory directory itself")
    for name in (*place.spelled, *real_names):
        if name.startswith("."):
            raise _Unsafe("a name in it begins with a dot")
        # A user, a shell or another system may misread such names.
        if name.endswith(".") or name[0].isspace() or name[-1].isspace():
            raise _Unsafe("a name in it begins or ends with a blank or ends with a dot")
        if name.startswith("~") or any(char in name for char in "*?["):
            raise _Unsafe("a name in it holds a tilde or a glob character, which is not expanded here")
    for last in (place.spelled[-1], real_names[-1]):
        if not last.endswith(".md"):
            raise _Unsafe("it does not end in .md")
    try:
        found = place.real.lstat()
    except FileNotFoundError:
        return
    except OSError as problem:
        raise _Unsafe(_explain(problem)) from None
    if not stat.S_ISREG(found.st_mode):
        raise _Unsafe("there is something that is not a regular file")
    if found.st_nlink > 1:  # the other name of the same bytes may be anywhere
        raise _Unsafe("the file has a second name (a hard link)")
