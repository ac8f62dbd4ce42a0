"""A transcript for a memory server: compressed, and without secrets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from reverie.memory.secrets.scan import redact
from reverie.memory.sharing.store.client import StoreClient
from reverie.parsing import Unparsable, load_json
from reverie.regular_files import read_regular
from reverie.storage.atomic import storage_error

MOST_BYTES: Final = 64_000_000


def upload_transcript(client: StoreClient, path: Path, name: str) -> dict[str, Any]:
    """Sends it to the private scope of the caller, and returns what the server says about it."""
    text = "".join(f"{line}\n" for line in _masked(path))
    return client.send("/v1/reverie/sessions", gzip.compress(text.encode("utf-8", "replace"), mtime=0), name=name)


def _masked(path: Path) -> Iterator[str]:
    """The records, without secrets; half a line at the end is left out."""
    try:
        data = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise storage_error(error, path, "read") from error
    for line in data.split(b"\n"):
        try:
            yield json.dumps(_mask(load_json(line)), ensure_ascii=False)
        except Unparsable:
            continue


def _mask(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_mask(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _mask(one) for key, one in cast("dict[str, Any]", value).items()}
    return value
