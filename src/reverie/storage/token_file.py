"""A secret of this user in a file that only this user can read: made at the first use, the same from then on."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from reverie.errors import UserError
from reverie.regular_files import read_regular
from reverie.storage.atomic import create_exclusive, make_private_dir, storage_error

_LEAST_TOKEN: Final = 32
_MOST_TOKEN: Final = 200


def load_secret(path: Path) -> str:
    """The secret in a file; made at the first use. A file that others can read is refused."""
    try:
        if not path.exists():
            make_private_dir(path.parent)
            create_exclusive(path, f"{secrets.token_urlsafe(32)}\n".encode())  # if another server is first, its counts
        if path.stat().st_mode & 0o077:
            raise UserError(f"{path}: others can read it, so it is not a secret; delete it and start again.")
        token = read_regular(path, _MOST_TOKEN).decode("ascii", "replace").strip()
    except OSError as error:
        raise storage_error(error, path, "use the token in") from error
    if len(token) < _LEAST_TOKEN:
        raise UserError(f"{path}: is not a token; delete it and start again.")
    return token
