"""Ids of rows: a prefix that says what it is, then time and chance. Later ones are larger, and nobody can guess one."""

from __future__ import annotations

import secrets
import time
from typing import Final

_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_LENGTH: Final = 9
_RANDOM_LENGTH: Final = 17  # 85 bits


def new_id(prefix: str) -> str:
    """A new id such as `mem_01k…`."""
    return (
        f"{prefix}_{_encode(time.time_ns() // 1_000_000, _TIME_LENGTH)}{_encode(secrets.randbits(85), _RANDOM_LENGTH)}"
    )


def _encode(number: int, length: int) -> str:
    return "".join(_LETTERS[(number >> (5 * place)) & 31] for place in reversed(range(length)))
