"""When an inferred memory was last used. Use is cheap to tell: the file was written or imported (its ctime), or recall
showed it (one small file beside the marks, at most one entry per file and day). An inferred memory that nobody used for
90 days is not recalled. A record that cannot be read or written counts as none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import StorageError
from reverie.memory.age import DAY_S
from reverie.memory.gate.marks import FOLDER
from reverie.parsing import load_json
from reverie.regular_files import read_regular_text
from reverie.storage.atomic import make_private_dir, write_atomic

UNUSED_DAYS: Final = 90


class LastUse:
    """The last uses in one memory directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / FOLDER / "used.json"

    def is_unused(self, name: str, now: float) -> bool:
        """Whether nobody wrote or recalled a file for 90 days."""
        try:
            last = (self._root / name).stat().st_ctime
        except OSError:
            return False
        return now - max(last, self._read().get(name, 0.0)) > UNUSED_DAYS * DAY_S

    def note(self, names: Iterable[str], now: float) -> None:
        """Records that recall showed these files."""
        stored = self._read()
        new = {name: now for name in names if now - stored.get(name, 0.0) > DAY_S}
        if not new:
            return
        kept = {name: at for name, at in (stored | new).items() if (self._root / name).exists()}
        with suppress(OSError, StorageError):
            make_private_dir(self._path.parent)
            write_atomic(self._path, (json.dumps(kept, ensure_ascii=False) + "\n").encode(errors="replace"))

    def _read(self) -> dict[str, float]:
        try:
            raw: Any = load_json(read_regular_text(self._path, errors="replace"))
        except (OSError, ValueError):
            return {}
        if not isinstance(raw, dict):
            return {}
        found = cast("dict[str, Any]", raw)
        return {name: float(at) for name, at in found.items() if isinstance(at, int | float)}
