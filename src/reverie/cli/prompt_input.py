"""The prompt of `reverie run`: the argument, standard input, or both joined.

Bytes that are not UTF-8 are replaced and counted, never an error; an input that does not end is waited for, and after
a while the user is told so.
"""

from __future__ import annotations

import sys
import threading

from reverie.errors import UserError

_PATIENCE_S = 3.0


def read_prompt(argument: str | None) -> tuple[str, list[str]]:
    """The prompt and what there is to say about it. UserError if there is none."""
    typed = "" if argument in (None, "-") else _sound(argument or "")
    if sys.stdin.isatty():
        if argument == "-" or not typed.strip():
            raise UserError("There is no prompt: give it as an argument or on standard input.")
        return typed, []
    piped, replaced = _read_all()
    told = [f"standard input is not UTF-8; {replaced} bytes of it were replaced"] if replaced else []
    parts = [part for part in (typed, piped) if part.strip()]
    if not parts:
        raise UserError("There is no prompt: the argument and standard input are both empty.")
    return "\n\n".join(parts), told


def _read_all() -> tuple[str, int]:
    def told() -> None:
        print("reverie: waiting for standard input to end (</dev/null if there is none)…", file=sys.stderr, flush=True)

    waiting = threading.Timer(_PATIENCE_S, told)
    waiting.daemon = True
    waiting.start()
    try:
        raw = sys.stdin.buffer.read()
    finally:
        waiting.cancel()
    text = raw.decode("utf-8", "replace")
    return text.removeprefix("\ufeff"), text.count("\ufffd") - raw.count("\ufffd".encode())


def _sound(text: str) -> str:
    """An argument whose bytes were not UTF-8 arrives with half characters in it, which no server takes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
