"""Where everything is: the home, sessions by working directory, memory by repository, sockets, logs.

It only resolves paths. `permissions` decides what may be written where.
"""

from __future__ import annotations

from reverie.paths.memory import MemoryPlace, MemorySwitch, claude_home, memory_place, memory_switch
from reverie.paths.places import (
    Places,
    check_session_id,
    daemon_lock,
    daemon_socket,
    make_private,
    reverie_home,
    slug,
    user_home,
)
from reverie.paths.repo import Repo, find_repo, same

__all__ = [
    "MemoryPlace",
    "MemorySwitch",
    "Places",
    "Repo",
    "check_session_id",
    "claude_home",
    "daemon_lock",
    "daemon_socket",
    "find_repo",
    "make_private",
    "memory_place",
    "memory_switch",
    "reverie_home",
    "same",
    "slug",
    "user_home",
]
