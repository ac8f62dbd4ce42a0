"""Which words may be opened for their contents, and where a glob may stand.

Devices and the process file systems can hang a reader, leak another process or act when read, so they are refused by
name, however the name is spelled. This looks at spelling alone: a link on disk that leads to a device is for the runner
to bound (time and output). Never touches the file system.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.words import Word

_KERNEL_FOLDERS = ("dev", "proc", "sys")
_DEVICE_NAMES = (
    *("zero", "null", "full", "random", "urandom", "hwrng", "mem", "kmem", "port", "kmsg", "oldmem", "console", "ptmx"),
    *("pts", "tty", "fd", "stdin", "stdout", "stderr", "tcp", "udp", "sda", "vda", "hda", "xvda", "nvme0", "nvme0n1"),
    *("loop0", "sr0", "st0", "nst0", "dm-0", "mapper", "disk", "block", "char", "input", "snd", "dri", "bus", "rtc"),
    *("watchdog", "fuse", "kvm", "net", "vcs", "hidraw0", "video0", "log", "initctl", "mqueue"),
)
_DEVICE = re.compile(
    r"(zero|null|full|u?random|hwrng|k?mem|oldmem|port|kmsg|console|ptmx|pts|tty.*|fd|std(in|out|err)|tcp|udp"
    r"|(sd|vd|hd|xvd)[a-z]\d*|nvme.*|mmcblk.*|n?st\d+|sr\d+|loop.*|dm-\d+|mapper|disk|block|char|input|snd|dri|bus"
    r"|rtc\d*|watchdog\d*|fuse|kvm|net|vcs.*|hidraw\d+|video\d+|log|initctl|mqueue)"
)
_PROCESS_NAMES = ("self", "thread-self", "1", "kcore", "kmsg", "kallsyms", "sysrq-trigger")
_PROCESS = re.compile(r"(self|thread-self|\d+|kcore|kmsg|kallsyms|kpage.*|sysrq-trigger)")
# A background agent has no business with these, though reading them changes nothing.
_KEY_FOLDERS = (".ssh", ".gnupg", ".aws", ".kube")
_KEY_FILES = (".netrc", ".pgpass", ".git-credentials", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa")
_PASSWORDS = ("shadow", "gshadow", "shadow-", "gshadow-")
_SUFFIX_GLOB = re.compile(r"\*[A-Za-z0-9_.-]*\.[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class _Part:
    """One path component: its text, and for a glob what it must begin and end with."""

    text: str
    glob: bool
    before: str
    after: str

    def may_be(self, name: str) -> bool:
        if not self.glob:
            return self.text.lower() == name  # lower: some file systems do not tell case apart
        if name.startswith(".") and not self.before:
            return False  # a glob matches a leading dot only where it is written out
        return name.startswith(self.before.lower()) and name.endswith(self.after.lower())

    def may_be_any(self, names: tuple[str, ...]) -> bool:
        return any(self.may_be(name) for name in names)


def check_glob(word: Word) -> None:
    """Refuse a glob that might expand to something that starts with a dash (and so be taken for an option)."""
    if not word.globs:
        return
    if word.text.startswith("-"):
        raise NotReadOnly(f"{clip(word.raw)} is a glob in option position")
    if 0 in word.globs and not (word.globs == frozenset({0}) and _SUFFIX_GLOB.fullmatch(word.text)):
        raise NotReadOnly(f"{clip(word.raw)} is a glob with no literal prefix (write ./ before it, or quote it)")


def check_contents(word: Word, *, recursive: bool = False) -> None:
    """Refuse a path whose contents must not be read: devices, process file systems, keys."""
    parts = _parts(word)
    shown = clip(word.raw)
    climbed = False
    for index, part in enumerate(parts):
        if part.text == "..":
            climbed = True
        first = index == 0 and word.text.startswith("/")
        # Behind `..` nothing is sure: with links on the way, /var/run/../dev is /dev.
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


def _is_kernel_file(folder: _Part, name: _Part) -> bool:
    """`dev/zero`, `proc/self/…` at any depth: the working folder may be the root, a mount may hold another system."""
    if folder.may_be("dev"):
        return name.may_be_any(_DEVICE_NAMES) if name.glob else bool(_DEVICE.fullmatch(name.text))
    if folder.may_be("proc"):
        return name.may_be_any(_PROCESS_NAMES) if name.glob else bool(_PROCESS.fullmatch(name.text))
    return False


def _check_recursive_root(word: Word, parts: list[_Part]) -> None:
    climbs = [part.text for part in parts].count("..")
    whole = word.text.startswith("/") and (not parts or climbs > 0)
    if whole or climbs > 2 or (word.text.startswith("~") and climbs):
        raise NotReadOnly(
            f"searching below {clip(word.raw)} may walk through devices and processes (name a narrower folder)"
        )


def _parts(word: Word) -> list[_Part]:
    parts: list[_Part] = []
    position = 0
    for text in word.text.split("/"):
        live = [index - position for index in word.globs if position <= index < position + len(text)]
        position += len(text) + 1
        if text in ("", "."):
            continue
        if not live:
            parts.append(_Part(text, False, text, text))
            continue
        last = max(live)
        # What stands behind a bracket may still belong to it, so it pins nothing.
        after = "" if any(text[index] == "[" for index in live) else text[last + 1 :]
        parts.append(_Part(text, True, text[: min(live)], after))
    return parts
