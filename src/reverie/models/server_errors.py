"""Turns the status and message of a server's error into one of `reverie.errors`.

Vendors and local servers use different words for the same errors. The known ones are here, with the tokens they name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from reverie import errors
from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.types import Json

_STATUS_OF_KIND = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of an error in the middle of a stream, when the HTTP status was already sent."""

_TOO_LONG_KINDS = ("context_length_exceeded", "exceed_context_size_error", "request_too_large")
_TOO_LONG = late(
    r"prompt is too long|exceed context limit|maximum context length|exceeds the (?:available )?context"
    r"|context (?:window|length|size) (?:of|exceeded)|exceed context window|input is too long"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)
_N = r"(\d[\d,]*)"
_ACTUAL_LIMIT = (
    re.compile(rf"prompt is too long: {_N} tokens > {_N}"),
    re.compile(rf"request \({_N} tokens\) exceeds the available context size \({_N} tokens\)"),
    re.compile(rf"Requested tokens \({_N}\) exceed context window of {_N}"),
)
_INPUT_OUTPUT_LIMIT = late(rf"exceed context limit: {_N} \+ {_N} > {_N}")
_LIMIT_INPUT_OUTPUT = late(
    rf"maximum context length is {_N} tokens.*?\({_N} (?:in the messages|in the prompt|of text input).*?{_N} in the",
    re.DOTALL,
)
_LIMIT_ACTUAL = late(
    rf"maximum context length is {_N} tokens.*?(?:resulted in|requested(?: about)?|contains at least|has) {_N}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """A server's error: the status (200 in the middle of a stream), kind or code, message, headers, body."""

    status: int | None
    kind: str
    message: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @staticmethod
    def read(status: int | None, body: object, headers: Mapping[str, str], fallback: str) -> ServerRefusal:
        """Finds kind and message in `{"error": {...}}`, in the error alone, or in plain text."""
        outer = as_object(body)
        inner: Json = outer.get("error", outer)
        error = as_object(inner)
        code = error.get("code")
        if isinstance(code, int) and status in (None, 200):
            status = code
        kind = code if isinstance(code, str) and code else error.get("type")
        message = error.get("message") or (inner if isinstance(inner, str) else None) or fallback
        return ServerRefusal(status, str(kind or ""), " ".join(str(message).split())[:500], headers, error)


def model_error(refusal: ServerRefusal) -> errors.ModelError:
    """The error to raise for a refusal."""
    status = refusal.status
    if status is None or status < 400:
        status = _STATUS_OF_KIND.get(refusal.kind, 500)
    said = refusal.message.rstrip(".")
    if _is_too_long(status, refusal):
        actual, limit = _sizes(refusal)
        return errors.PromptTooLong(f"The prompt is too long: {said}.", actual=actual, limit=limit, status=status)
    if status in (401, 403):
        return errors.AuthenticationFailed(
            f"The server refused the key ({status}): {said}. Check the key and what it may be used for.", status=status
        )
    if status == 429 and refusal.kind in ("insufficient_quota", "billing_hard_limit_reached"):
        return errors.BadRequest(f"The account has no quota left: {said}.", status=status)
    if status in (408, 504):
        return errors.Unreachable(f"The server took too long ({status}): {said}.", status=status)
    if status in (409, 429) or status >= 500:
        what = "The server limits our rate" if status == 429 else f"The server cannot answer now ({status})"
        return errors.Overloaded(f"{what}: {said}.", status=status, retry_after=retry_after(refusal.headers))
    if status == 404:
        return errors.BadRequest(
            f"The server does not know this model or address (404): {said}. Check the name, or choose another model "
            "with /model or --model.",
            status=status,
        )
    return errors.BadRequest(f"The server refused the request ({status}): {said}.", status=status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from the headers; None if they do not say."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if not value:
            continue
        try:
            return max(0.0, float(value) * factor)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except ValueError:
            pass
    return None


def _is_too_long(status: int, refusal: ServerRefusal) -> bool:
    if status == 413 or refusal.kind in _TOO_LONG_KINDS:
        return True
    return status in (400, 422, 500) and bool(_TOO_LONG.search(refusal.message))


def _sizes(refusal: ServerRefusal) -> tuple[int | None, int | None]:
    actual, limit = refusal.body.get("n_prompt_tokens"), refusal.body.get("n_ctx")
    if isinstance(actual, int) and isinstance(limit, int):
        return actual, limit
    for pattern in _ACTUAL_LIMIT:
        if found := pattern.search(refusal.message):
            return _tokens(found[1]), _tokens(found[2])
    if found := _INPUT_OUTPUT_LIMIT.search(refusal.message):
        return _prompt_limit(_tokens(found[1]), _tokens(found[2]), _tokens(found[3]))
    if found := _LIMIT_INPUT_OUTPUT.search(refusal.message):
        return _prompt_limit(_tokens(found[2]), _tokens(found[3]), _tokens(found[1]))
    if found := _LIMIT_ACTUAL.search(refusal.message):
        return _tokens(found[2]), _tokens(found[1])
    return None, None


def _prompt_limit(prompt: int, output: int, window: int) -> tuple[int, int]:
    """The prompt and the room that the output leaves; if it leaves none, both together and the window."""
    return (prompt, window - output) if output < window else (prompt + output, window)


def _tokens(digits: str) -> int:
    return int(digits.replace(",", ""))
