"""One small tree of exceptions. Each has one sentence for the user: what is wrong, where, and what to do.

Errors of vendors are mapped once, at the model boundary. Nothing here knows how an error is shown.
"""

from __future__ import annotations


class ReverieError(Exception):
    """Any error that Reverie raises on purpose; `str(error)` is a sentence that can be shown."""

    exit_code = 1


class UserError(ReverieError):
    """The caller's input is wrong (an unknown key, a missing file, a bad value)."""

    exit_code = 2


class SettingsError(UserError):
    """A settings file or variable cannot be used; names the file, the line and the nearest valid key."""


class MissingExtra(UserError):
    """An optional library is not installed; names the extra to install."""


class UnknownModel(UserError):
    """No provider or catalogue entry has this model name."""


class NoAnswer(ReverieError):
    """A turn ended without a complete answer; `text` is the part that there is."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


class StoppedByHook(ReverieError):
    """A hook of the user ended the turn; the sentence is its own."""


class SessionBusy(ReverieError):
    """The session is open in another process; `pid` says which."""

    exit_code = 3

    def __init__(self, message: str, pid: int) -> None:
        super().__init__(message)
        self.pid = pid


class NobodyListening(UserError):
    """No live session answers at this socket: it has ended, or never listened."""


class SessionRefused(ReverieError):
    """A live session refused a request; the sentence is its own."""


class StorageError(ReverieError):
    """The disk refused (full, read-only, missing); the conversation is still in memory."""

    exit_code = 4


class ModelError(ReverieError):
    """The model could not answer. `retryable`: the same request may succeed later."""

    exit_code = 5
    retryable = False

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class AuthenticationFailed(ModelError):
    """The key is missing or was refused."""


class BadRequest(ModelError):
    """The server refused the request; sending it again would not help."""


class PromptTooLong(ModelError):
    """The prompt does not fit. `actual` and `limit` are tokens, if the server named them."""

    def __init__(self, message: str, *, actual: int | None = None, limit: int | None = None, status: int = 400) -> None:
        super().__init__(message, status=status)
        self.actual = actual
        self.limit = limit


class Overloaded(ModelError):
    """The server is overloaded or rate-limits us."""

    retryable = True


class BudgetSpent(ModelError):
    """Background work has reached its cap for the day."""


class Unreachable(ModelError):
    """There is no connection, or it broke before or during the answer."""

    retryable = True


class NoConnection(Unreachable):
    """There was no connection: nothing listens at the address, or its host is unknown. Waiting rarely helps."""


class BlockingLimit(ReverieError):
    """The context is so full that the request is not sent; the user has to compact it."""

    exit_code = 6


class Cancelled(ReverieError):
    """The user stopped the turn."""

    exit_code = 130
