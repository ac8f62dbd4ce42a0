"""Conversations that the server keeps, so that a client sends only what is new.

Threads of the Messages API (`thread`) and responses that others continue (`previous_response_id`). Kept in memory, at
most so many and so large; the oldest are forgotten.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, cast

from reverie.quick import dataclass
from reverie.simulator.errors import ApiError, invalid

THREADS_BETA = "message-threads-2026-08-12"
LIFETIME_S = 300.0
"""How long a thread can be continued after its last request, in seconds."""
_MOST = 1_000
_MOST_TOKENS = 20_000_000
_FIXED = ("system", "tools")
Body = Mapping[str, Any]


@dataclass(slots=True)
class Kept:
    """One conversation up to an answer."""

    workspace: str
    body: Body
    tokens: int
    expires: float
    state: str = field(default="open")
    """`open`, `busy` while a request continues it, or `continued`."""


class KeptConversations:
    """Conversations by the id of their last answer."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}
        self._tokens = 0

    def put(self, name: str, kept: Kept) -> None:
        self._kept[name] = kept
        self._tokens += kept.tokens
        while len(self._kept) > _MOST or (self._tokens > _MOST_TOKENS and len(self._kept) > 1):
            self._tokens -= self._kept.pop(next(iter(self._kept))).tokens

    def get(self, name: object, workspace: str, now: float) -> Kept | None:
        found = self._kept.get(name) if isinstance(name, str) else None
        return found if found is not None and found.workspace == workspace and now <= found.expires else None


def keep(body: Body, content: Sequence[Mapping[str, Any]], workspace: str, tokens: int, expires: float) -> Kept:
    """A conversation with the answer to it, without its cache markers: they are for one request."""
    messages = [_unmarked(message) for message in cast("Sequence[Body]", body["messages"])]
    fixed = {name: body.get(name) for name in _FIXED}
    return Kept(
        workspace, fixed | {"messages": [*messages, {"role": "assistant", "content": list(content)}]}, tokens, expires
    )


class Threads:
    """The threads of the Messages API. If not `enabled`, it refuses them, so that clients do without."""

    def __init__(self, *, enabled: bool = False) -> None:
        self._enabled = enabled
        self._kept = KeptConversations()

    def resolve(
        self, body: Body, workspace: str, betas: tuple[str, ...] | None, now: float, *, counting: bool = False
    ) -> tuple[Body, Kept | None]:
        """The request with all of its messages, and the conversation that it continues.

        `counting`: the conversation may have been continued already.
        """
        thread = body.get("thread")
        if thread is None:
            return body, None
        if not self._enabled:
            said = "thread: this server does not keep threads. Send the whole conversation, without `thread`."
            raise ApiError(400, said, code="thread_unsupported_request")
        if betas is not None and THREADS_BETA not in betas:
            raise invalid("thread: Extra inputs are not permitted")
        if not isinstance(thread, Mapping):
            raise invalid("thread: Input should be an object")
        match cast("Body", thread).get("type"):
            case "create":
                return body, None
            case "continue":
                kept = self._find(cast("Body", thread).get("previous_message_id"), workspace, now)
                if not counting:
                    _refuse_second(kept)
                return self._joined(body, kept), kept
            case other:
                raise invalid(
                    f"thread: Input tag '{other}' found using 'type' does not match any of the expected tags: "
                    "'create', 'continue'"
                )

    def _find(self, name: object, workspace: str, now: float) -> Kept:
        if not isinstance(name, str):
            raise invalid("thread.continue.previous_message_id: Field required")
        kept = self._kept.get(name, workspace, now)
        if kept is None:
            raise ApiError(404, f"No thread state was found for message {name[:80]}.", code="thread_not_found")
        return kept

    def _joined(self, body: Body, kept: Kept) -> Body:
        for name in _FIXED:
            if body.get(name) and body[name] != kept.body[name]:
                said = f"thread: `{name}` differs from the request that created the thread; leave it out."
                raise ApiError(400, said, code="thread_fingerprint_mismatch")
        new = body.get("messages")
        if not isinstance(new, list):
            raise invalid("messages: Field required")
        given = {name: value for name, value in kept.body.items() if value}
        return {**body, **given, "messages": [*kept.body["messages"], *cast("list[Any]", new)]}

    def add(self, name: str, kept: Kept, continued: Kept | None) -> None:
        """Keeps a conversation under the id of its last answer, in place of the one that it continued."""
        self._kept.put(name, kept)
        if continued is not None:
            continued.state = "continued"


@contextmanager
def continuing(kept: Kept | None) -> Generator[None]:
    """Keeps others from continuing a conversation while a request does."""
    if kept is not None:
        kept.state = "busy"
    try:
        yield
    finally:
        if kept is not None and kept.state == "busy":
            kept.state = "open"


def _refuse_second(kept: Kept) -> None:
    if kept.state == "busy":
        raise ApiError(400, "thread: another request is continuing this message.", code="thread_continue_in_flight")
    if kept.state == "continued":
        raise ApiError(400, "thread: this message was already continued.", code="thread_already_continued")


def _unmarked(message: Body) -> Body:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_bare(block) for block in cast("list[Body]", content)]}


def _bare(block: Body) -> Body:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    inner = bare.get("content")
    if isinstance(inner, list):
        bare["content"] = [_bare(part) for part in cast("list[Body]", inner)]
    return bare
