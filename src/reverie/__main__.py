"""The `reverie` command. It answers `--version` before it imports anything, so that this starts fast."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress

_COLLECTED_FROM = 20_000
"""New objects before Python looks for garbage. A start makes as many, and almost all of them stay."""


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from reverie import __version__

        with suppress(OSError):  # the command below reports why it cannot write
            print(f"reverie {__version__}", flush=True)
            return
    gc.set_threshold(_COLLECTED_FROM)
    from reverie.cli.app import app

    app()


if __name__ == "__main__":
    main()
