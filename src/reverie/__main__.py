"""The `reverie` command. `--version` is answered here, before anything is imported: it must start in a blink."""

from __future__ import annotations

import sys
from contextlib import suppress


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"]):
        from reverie import __version__

        with suppress(OSError):  # the command below tells why it cannot be written
            print(f"reverie {__version__}", flush=True)
            return
    from reverie.cli.app import app

    app()


if __name__ == "__main__":
    main()
