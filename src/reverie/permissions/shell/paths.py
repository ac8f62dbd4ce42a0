"""Checks which words may be opened for reading, and where a glob may be.

Reading a device or a process file system may hang, leak another process or act, so they are refused by name, in every
spelling. Never looks at the disk: the time and output limits of the runner cover links that lead to a device.
"""

from __future__ import annotations

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.words import Word
from reverie.quick import dataclass
from reverie.text.patterns import late

_KERNEL_FOLDERS = ("dev", "proc", "sys")
_DEVICE_NAMES = (
    *("zero", "null", "full", "random", "urandom", "hwrng", "mem", "kmem", "port", "kmsg", "oldmem", "console", "ptmx"),
    *("pts", "tty", "fd", "stdin", "stdout", "stderr", "tcp", "udp", "sda", "vda", "hda", "xvda", "nvme0", "nvme0n1"),
    *("loop0", "sr0", "st0", "nst0", "dm-0", "mapper", "disk", "block", "char", "input", "snd", "dri", "bus", "rtc"),
    *("watchdog", "fuse", "kvm", "net", "vcs", "hidraw0", "video0", "log", "initctl", "mqueue"),
)
_DEVICE = late(
    r"tty.*|(sd|vd|hd|xvd)[a-z]\d*|nvme.*|mmcblk.*|n?st\d+|sr\d+|loop.*|dm-\d+|rtc\d*|watchdog\d*|vcs.*|hidraw\d+|video\d+"
)
_PROCESS_NAMES = ("self", "thread-self", "1", "kcore", "kmsg", "kallsyms", "sysrq-trigger")
_PROCESS = late(r"\d+|kpage.*")
# Reading these changes nothing, but a background agent does not need them.
_KEY_FOLDERS = (".ssh", ".gnupg", ".aws", ".kube")
_KEY_FILES = (".netrc", ".pgpass", ".git-credentials", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa")
_PASSWORDS = ("shadow", "gshadow", "shadow-", "gshadow-")
_SUFFIX_GLOB = late(r"\*[A-Za-z0-9_.-]*\.[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class _PathPart:
    """One path component: its text, and for a glob its fixed beginning and end."""

    text: str
    glob: bool
    before: str
    after: str

    def may_be(self, name: str) -> bool:
        if not self.glob:
            return self.text.lower() == name  # on some file systems case does not matter
        if name.startswith(".") and not self.before:
            return False  # a glob matches a leading dot only if the dot is written
        return name.startswith(self.before.lower()) and name.endswith(self.after.lower())

    def may_be_any(self, names: tuple[str, ...]) -> bool:
        return any(self.may_be(name) for name in names)


def check_glob(word: Word) -> None:
    """Refuses a glob that may expand to a word with a leading dash, which would become an option."""
    if not word.globs:
        return
    if word.text.startswith("-"):
        raise NotReadOnly(f"{clip(word.raw)} is a glob in option position")
    if 0 in word.globs and not (word.globs == frozenset({0}) and _SUFFIX_GLOB.fullmatch(word.text)):
        raise NotReadOnly(f"{clip(word.raw)} is a glob without a literal prefix (write ./ before it, or quote it)")


def check_contents(word: Word, *, recursive: bool = False) -> None:
    """Refuses a path whose content must not be read: devices, process file systems, keys."""
    parts = _parts(word)
    shown = clip(word.raw)
    climbed = False
    rooted = word.text.startswith("/") and not _is_in_memory(parts)
    for index, part in enumerate(parts):
        if part.text == "..":
            climbed = True
        first = index == 0 and rooted
        # After `..` nothing is certain: with a link in the path, /var/run/../dev is /dev.
        if (first or climbed) and part.may_be_any(_KERNEL_FOLDERS):
            raise NotReadOnly(f"{shown} may lead to a device or to a process's memory")
        following = parts[index + 1] if index + 1 < len(parts) else None
        if following and _is_kernel_file(part, following):
            raise NotReadOnly(f"{shown} may lead to a device or to a process's memory")
        shadowed = following is not None and part.may_be("etc") and following.may_be_any(_PASSWORDS)
        if shadowed or part.may_be_any(_KEY_FOLDERS) or (not part.glob and part.text in _KEY_FILES):
            raise NotReadOnly(f"{shown} may hold keys or passwords")
    if recursive:
        _check_recursive_root(word, parts)


def _is_in_memory(parts: list[_PathPart]) -> bool:
    """Whether this is inside a folder of /dev/shm: a file like all others. What processes share is not in a folder."""
    depth = 0
    for part in parts[2:]:
        depth += -1 if part.may_be("..") else 1
        if depth < 1 or (part.glob and part.may_be("..")):
            return False
    return depth > 1 and [part.text for part in parts[:2]] == ["dev", "shm"]


def _is_kernel_file(folder: _PathPart, name: _PathPart) -> bool:
    """`dev/zero`, `proc/self/…` at any depth: the working folder may be the root, a mount may hold another system."""
    for known, names, pattern in (("dev", _DEVICE_NAMES, _DEVICE), ("proc", _PROCESS_NAMES, _PROCESS)):
        if folder.may_be(known):
            return name.may_be_any(names) or (not name.glob and pattern.fullmatch(name.text) is not None)
    return False


def _check_recursive_root(word: Word, parts: list[_PathPart]) -> None:
    climbs = [part.text for part in parts].count("..")
    whole = word.text.startswith("/") and (not parts or climbs > 0)
    if whole or climbs > 2 or (word.text.startswith("~") and climbs):
        raise NotReadOnly(f"searching below {clip(word.raw)} may read devices and processes (name a smaller folder)")


def _parts(word: Word) -> list[_PathPart]:
    parts: list[_PathPart] = []
    position = 0
    for text in word.text.split("/"):
        live = [index - position for index in word.globs if position <= index < position + len(text)]
        position += len(text) + 1
        if text in ("", "."):
            continue
        if not live:
            parts.append(_PathPart(text, False, text, text))
            continue
        last = max(live)
        # The text after a bracket may still belong to it, so it is not a fixed end.
        after = "" if any(text[index] == "[" for index in live) else text[last + 1 :]
        parts.append(_PathPart(text, True, text[: min(live)], after))
    return parts
