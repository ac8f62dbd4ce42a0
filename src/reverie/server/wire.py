"""The form of requests and answers: errors as the published API has them, times, pages, and values that are checked as
they are read."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from reverie.errors import ReverieError
from reverie.moments import parse_time
from reverie.parsing import Unparsable, load_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import JSONResponse

    from reverie.server.database import Row

_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}
_BEARER: Final = "bearer "
MOST_BODY: Final = 1_000_000
"""A memory of 102,400 bytes with every letter escaped has 614,400."""
_IN_A_THREAD: Final = 64_000
PAGE_SIZE: Final = 20
MOST_PER_PAGE: Final = 100
MOST_FULL_PER_PAGE: Final = 20
_MOST_DIGITS: Final = 20


class ApiError(ReverieError):
    """An answer that is an error: `status`, one sentence, and a `type` where the published API has one of its own."""

    def __init__(self, status: int, message: str, *, type: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.type = type or _TYPES.get(status, "api_error")
        self.headers = dict(headers or {})


def error_response(error: ApiError, request_id: str = "") -> JSONResponse:
    from starlette.responses import JSONResponse

    said = {"type": error.type, "message": str(error)}
    body = {"type": "error", "error": said, "request_id": request_id}
    return JSONResponse(body, error.status, headers=error.headers)


def not_found(what: str, id: str) -> ApiError:
    """Also what the caller may not see: that something exists elsewhere is nobody's business."""
    return ApiError(404, f"There is no {what} {id[:80]!r}.")


def format_time(moment: datetime | None) -> str | None:
    """RFC 3339 with microseconds, in UTC."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_token(request: Request) -> str:
    """The token of a request. Raises 401."""
    given = request.headers.get("x-api-key", "")
    bearer = request.headers.get("authorization", "")
    if not given and bearer[: len(_BEARER)].lower() == _BEARER:
        given = bearer[len(_BEARER) :].strip()
    if not given:
        raise ApiError(401, "There is no token: send it as `x-api-key` or as a bearer token.")
    return given


async def read_body(request: Request, known: Collection[str]) -> dict[str, Any]:
    """The JSON object of a request. Unknown fields are refused, so that a misspelt one is not lost."""
    data = await request.body()  # received before, with its limits
    try:
        if len(data) > _IN_A_THREAD:  # it may be 300,000 values, which are looked through one after the other
            body: Any = await asyncio.to_thread(load_json, data)
        else:
            body = load_json(data) if data else {}
    except Unparsable as error:
        raise ApiError(400, f"The body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ApiError(400, "The body must be a JSON object.")
    found = cast("dict[str, Any]", body)
    strange = sorted(set(found) - set(known))
    if strange:
        raise ApiError(400, f"{strange[0][:80]}: there is no such field.")
    return found


def take_text(body: Mapping[str, Any], name: str, *, least: int = 0, most: int, default: str | None = None) -> str:
    """A text of the body; required without a `default`. Lengths are in characters."""
    value = body.get(name, default)
    if value is None:
        raise ApiError(400, f"{name}: is missing.")
    if not isinstance(value, str):
        raise ApiError(400, f"{name}: must be a string.")
    if not least <= len(value) <= most:
        raise ApiError(400, f"{name}: must have {least} to {most:,} characters; it has {len(value):,}.")
    if "\x00" in value or any("\ud800" <= one <= "\udfff" for one in value):
        raise ApiError(400, f"{name}: contains a character that cannot be stored (NUL, or half of a pair).")
    return value


def take_moment(query: Mapping[str, str], name: str) -> datetime | None:
    """A time of the query, such as `created_at[gte]`."""
    given = query.get(name)
    if given is None:
        return None
    moment = parse_time(given)
    if moment is None:
        raise ApiError(400, f"{name}: is not an RFC 3339 time.")
    return moment


def take_choice(query: Mapping[str, str], name: str, choices: Collection[str], default: str) -> str:
    given = query.get(name, default)
    if given not in choices:
        raise ApiError(400, f"{name}: must be one of {', '.join(sorted(choices))}.")
    return given


def take_flag(query: Mapping[str, str], name: str) -> bool:
    return take_choice(query, name, ("true", "false"), "false") == "true"


def take_word(query: Mapping[str, str], name: str) -> str | None:
    """A value of the query that is compared with stored text; None if it is not given."""
    given = query.get(name)
    if given is not None and "\x00" in given:
        raise ApiError(400, f"{name}: contains NUL.")
    return given


def take_number(query: Mapping[str, str], name: str, *, most: int) -> int:
    """A whole number of the query; 0 if it is not given."""
    given = query.get(name, "0")
    number = _read_digits(given)
    if number is None or number > most:
        raise ApiError(400, f"{name}: must be a whole number of 0 to {most:,}.")
    return number


def take_limit(query: Mapping[str, str], *, full: bool = False) -> int:
    """The size of a page; with contents at most 20."""
    number = _read_digits(query.get("limit", str(PAGE_SIZE)))
    if number is None or not 1 <= number <= MOST_PER_PAGE:
        raise ApiError(400, f"limit: must be 1 to {MOST_PER_PAGE}.")
    return min(number, MOST_FULL_PER_PAGE) if full else number


def _read_digits(given: str) -> int | None:
    """None if it is not a number, or longer than any that is allowed."""
    return int(given) if given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS else None


async def take_row(found: Any, what: str, id: str) -> Row:
    """The row of a statement, or 404."""
    row: Row | None = await found.fetchone()
    if row is None:
        raise not_found(what, id)
    return row


def plain_id(id: str) -> str:
    """An id as PostgreSQL takes it; one that it cannot store does not exist."""
    if "\x00" in id or not id.isascii():
        raise not_found("object", id)
    return id


def make_cursor(*parts: str) -> str:
    """`next_page`: where the next page begins."""
    return base64.urlsafe_b64encode("\x1f".join(parts).encode()).decode().rstrip("=")


def read_cursor(query: Mapping[str, str], parts: int) -> list[str] | None:
    """The parts of `page`; None for the first page."""
    given = query.get("page")
    if given is None:
        return None
    try:
        found = base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)).decode().split("\x1f")
    except (ValueError, binascii.Error):
        found = []
    if len(found) != parts or any("\x00" in one for one in found):
        raise ApiError(400, "page: is not a `next_page` of this list.")
    return found


def read_time_cursor(query: Mapping[str, str]) -> tuple[datetime | None, str | None]:
    """Time and id of the last row of the page before; None for the first page of a list by time."""
    cursor = read_cursor(query, 2)
    return (take_moment({"page": cursor[0]}, "page"), cursor[1]) if cursor else (None, None)


def make_time_page(rows: Sequence[Row], limit: int, show: Callable[[Row], dict[str, Any]]) -> dict[str, Any]:
    """A page of a list by time: `rows` has one more than `limit` if another page follows."""
    last = rows[limit - 1] if len(rows) > limit else None
    following = make_cursor(format_time(last["created_at"]) or "", last["id"]) if last else None
    return {"data": [show(row) for row in rows[:limit]], "next_page": following}
