"""Turns what a program says about its failure into one of `reverie.errors`.

Programs report failures of their servers in sentences of their own. The known ones are here.
"""

from __future__ import annotations

import re
import time

from reverie.errors import AuthenticationFailed, BadRequest, ModelError, Overloaded, PromptTooLong, Unreachable
from reverie.models.server_errors import ServerRefusal, model_error

_NO_LOGIN = re.compile(
    r"not logged in|/login|log ?in again|invalid api key|invalid x-api-key|no api key|oauth token|unauthorized"
    r"|authentication(?:_error| failed)|sign in",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(r"prompt is too long|context window|maximum context length|input is too long", re.IGNORECASE)
_SIZES = re.compile(r"(\d{4,}) tokens[^\d]{1,20}(\d{4,})")
_USED_UP = re.compile(
    r"(?:usage|session|weekly|daily|hour) limit|(?:hit|reached) your .{0,30}limit|out of .{0,20}usage", re.I
)
_RESET_AT = re.compile(r"\|(\d{10})\b")
_NO_CONNECTION = re.compile(
    r"connection (?:failed|refused|error)|unable to connect|network|ECONNREFUSED|ENOTFOUND", re.I
)
_BUSY = re.compile(r"overloaded|high demand|too many requests|rate.?limit|try again", re.IGNORECASE)
_STATUS = re.compile(r"(?:status:?|API Error:?) (\d{3})\b")
_LATER_S = 3_600.0
"""Until a limit of use ends, if the program does not say when."""


def program_error(shown: str, said: str, *, login: str, status: int | None = None, kind: str = "") -> ModelError:
    """The error for a failure that a program reports. `login`: how to log in."""
    said = " ".join(said.split())[:500].rstrip(".") or "it gave no reason"
    named = _STATUS.search(said)
    status = status or (int(named[1]) if named else None)
    if _USED_UP.search(said):
        reset = _RESET_AT.search(said)
        wait = max(1.0, int(reset[1]) - time.time()) if reset else _LATER_S
        return Overloaded(f"The limit of use of {shown} is reached: {said}.", status=status, retry_after=wait)
    if status in (401, 403) or (status is None and _NO_LOGIN.search(said)):
        return AuthenticationFailed(f"{shown} is not logged in: {said}. {login}", status=status)
    if _TOO_LONG.search(said):
        sizes = _SIZES.search(said)
        actual, limit = (int(sizes[1]), int(sizes[2])) if sizes else (None, None)
        return PromptTooLong(f"The prompt is too long for {shown}: {said}.", actual=actual, limit=limit)
    if status is not None:
        return model_error(ServerRefusal(status, kind, f"{shown}: {said}", {}, {}))
    if _NO_CONNECTION.search(said):
        return Unreachable(f"{shown} has no connection: {said}.")
    if _BUSY.search(said):
        return Overloaded(f"{shown} cannot answer now: {said}.")
    return BadRequest(f"{shown} failed: {said}.")
