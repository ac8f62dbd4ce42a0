"""The tokens for memory servers, one private file per host in the home. A token of the environment wins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from reverie.errors import UserError
from reverie.memory.sharing.store.client import StoreAddress
from reverie.regular_files import read_regular_text
from reverie.settings import Settings
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic

_LONGEST: Final = 4_096


def find_token(settings: Settings, home: Path, address: StoreAddress) -> str:
    """The token for this server. `UserError` if there is none."""
    if settings.memory.store_token:
        return check_token(settings.memory.store_token)
    path = _path(home, address)
    try:
        return check_token(read_regular_text(path, errors="replace"))
    except FileNotFoundError:
        raise UserError(
            f"There is no token for {address.url}: give it to `reverie memory login {address.url}`."
        ) from None
    except OSError as error:
        raise storage_error(error, path, "read") from error


def save_token(home: Path, address: StoreAddress, token: str) -> Path:
    """Stores it for this user only, and returns where."""
    path = _path(home, address)
    make_private_dir(path.parent)
    write_atomic(path, f"{check_token(token)}\n".encode(), mode=0o600)
    return path


def remove_token(home: Path, address: StoreAddress) -> bool:
    """False if there was none."""
    path = _path(home, address)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error, path, "remove") from error
    return True


def check_token(given: str) -> str:
    """A token as a header may have it."""
    token = given.strip()
    if not token or len(token) > _LONGEST or not re.fullmatch(r"[\x21-\x7e]+", token):
        raise UserError("This is not a token: it has to be one line without spaces.")
    return token


def _path(home: Path, address: StoreAddress) -> Path:
    name = re.sub(r"[^A-Za-z0-9.-]", "_", address.host.lower())
    return home / "store-tokens" / name
