"""Who may do what: which paths are inside the memory directory, and which shell commands only read.

Decisions, each with a sentence that says why not. Nothing here writes or runs anything; the parser is loaded on first
use only.
"""

from __future__ import annotations

from reverie.permissions.inside import (
    PermissionRefused,
    RefusedRoot,
    check_memory_root,
    inside_for_write,
    is_inside,
)
from reverie.permissions.shell.read_only import is_read_only_shell, why_not_read_only

__all__ = [
    "PermissionRefused",
    "RefusedRoot",
    "check_memory_root",
    "inside_for_write",
    "is_inside",
    "is_read_only_shell",
    "why_not_read_only",
]
