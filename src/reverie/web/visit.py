"""What a page and an action of the web view are. Each page module lists its own; `app.py` makes routes of them.

A page reads and returns what JSON can hold; its template and its twin under `/api` get the same. It changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from reverie.errors import UserError
from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.web.site import Site

Data: TypeAlias = dict[str, Any]
"""What a page shows, ready for JSON."""


class NotFound(UserError):
    """What the address names does not exist (404)."""


class TryAgain(UserError):
    """An action could not be done (409). A browser is sent to `location`, which shows what the user typed."""

    def __init__(self, message: str, location: str) -> None:
        super().__init__(message)
        self.location = location


@dataclass(frozen=True, slots=True)
class Visit:
    """One request: the site, and what the address and the form say."""

    site: Site
    path: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parameters in the path, e.g. `session`."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    """Only for actions."""

    def number(self, name: str, default: int, *, least: int = 0, most: int = 10**9) -> int:
        """A whole number from the query, moved into its limits. Text that is not a number is a `UserError`."""
        given = self.query.get(name, "")
        if not given:
            return default
        try:
            return min(most, max(least, int(given[:20])))
        except ValueError:
            raise UserError(f"{name} must be a whole number, not {given[:40]!r}.") from None


@dataclass(frozen=True, slots=True)
class Page:
    """A page. `name` is the name of its template (without `.html`) and of its route."""

    path: str
    name: str
    title: str
    """For the browser's tab; the data may have a `title` of its own."""
    read: Callable[[Visit], Data]
    """Runs in a worker thread."""
    section: str = ""
    """Which entry of the navigation is marked."""
    about: str = ""
    """One sentence for the page that documents the API."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """Its parameters after `?`, with a short explanation each."""


@dataclass(frozen=True, slots=True)
class Undo:
    """How to take an action back: the action to post to, and its form."""

    path: str
    form: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """What an action did: one sentence, and which page shows it. `undo` becomes a button beside the sentence."""

    message: str
    location: str
    undo: Undo | None = None
    is_problem: bool = field(default=False, kw_only=True)
    """The sentence says why nothing was done."""
    data: Data = field(default_factory=dict[str, Any])
    """More for programs."""


@dataclass(frozen=True, slots=True)
class Action:
    """A form that changes something. It runs in a worker thread and exists only if the site is not read-only."""

    path: str
    name: str
    act: Callable[[Visit], Done]
    about: str = ""
    form: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event with a name, or with an id that a browser sends back when it connects again."""

    data: str
    name: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """Server-sent events. Each item is the HTML (or JSON) of one event. A browser's last id is `last` in the query."""

    path: str
    name: str
    events: Callable[[Visit], AsyncIterator[str | Event]]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes with a type, such as a picture. `read` runs in a worker thread and returns both."""

    path: str
    name: str
    read: Callable[[Visit], tuple[bytes, str]]
    about: str = ""
