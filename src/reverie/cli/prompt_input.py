"""The prompt of `reverie run`: the argument is the request, standard input is material for it.

Bytes that are not UTF-8 are replaced and counted, never an error; an input that does not end is waited for, and after
a while the user is told so.
"""

from __future__ import annotations

import sys
import threading

from reverie.errors import UserError
from reverie.origins import NO_REQUEST, fence, split_material
from reverie.types import Origin, TextBlock

_PATIENCE_S = 3.0


def read_prompt(argument: str | None) -> tuple[list[TextBlock], list[str]]:
    """The prompt with the origin of each part, and what there is to say about it. UserError if there is none."""
    given = "" if argument in (None, "-") else _sound(argument or "")
    request = split_material(given, Origin.TYPED if on_a_terminal() else Origin.ENTERED) if given.strip() else []
    if sys.stdin.isatty():
        if argument == "-" or not request:
            raise UserError("There is no prompt: give it as an argument or on standard input.")
        return request, []
    piped, replaced = _read_all()
    told = [f"standard input is not UTF-8; {replaced} bytes of it were replaced"] if replaced else []
    if not piped.strip():
        if not request:
            raise UserError("There is no prompt: the argument and standard input are both empty.")
        return request, told
    if argument == "-":
        return split_material(piped, Origin.ENTERED), told
    if not request:
        told.append("standard input is material, not a request; `reverie run -` takes it as the prompt")
    return [*request, fence(Origin.PIPED, piped.strip("\n"), note="" if request else NO_REQUEST)], told


def on_a_terminal() -> bool:
    """Whether somebody sits at a terminal: one of the standard streams is one, whatever the others are."""
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


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
