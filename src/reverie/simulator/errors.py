"""Errors of the Messages API: a status, a type and a message.

The texts are those of the public API, because clients match on them.
"""

from __future__ import annotations

from typing import Any

from reverie.errors import ModelError

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_MESSAGES = {
    401: "invalid x-api-key",
    413: "Request exceeds the maximum size",
    429: "This request would exceed your account's rate limit. Please try again later.",
    500: "Internal server error",
    529: "Overloaded",
}
_LONGEST = 2_000
DEFAULT_RETRY_AFTER_S = 1.0
"""The default wait of a rate limit, in seconds."""


class ApiError(ModelError):
    """An error of the server. `kind` is the API's error type; `error_code` tells a client more."""

    def __init__(
        self, status: int, message: str = "", *, kind: str = "", retry_after: float | None = None, code: str = ""
    ) -> None:
        wait = DEFAULT_RETRY_AFTER_S if status == 429 and retry_after is None else retry_after
        super().__init__(message or _MESSAGES.get(status, "Error"), status=status, retry_after=wait)
        self.code = status
        self.error_code = code
        self.kind = kind or _TYPES.get(status, "api_error")
        self.retryable = status in (408, 429, 500, 529)

    def wire(self, request_id: str | None = None) -> dict[str, Any]:
        """The error as a body of the Messages API."""
        error: dict[str, Any] = {"type": self.kind, "message": str(self)}
        if self.error_code:
            error["details"] = {"error_code": self.error_code}
        return {"type": "error", "error": error, "request_id": request_id}

    def openai_wire(self) -> dict[str, Any]:
        """The error as a body of the chat-completions API."""
        code = self.error_code or ("context_length_exceeded" if "maximum context length" in str(self) else None)
        return {"error": {"message": str(self), "type": self.kind, "param": None, "code": code}}

    def headers(self) -> dict[str, str]:
        """The header `retry-after`, if the server asks to wait."""
        return {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}


def invalid(message: str) -> ApiError:
    """A 400 with this text; a long text is cut, because it can quote the client."""
    return ApiError(400, message if len(message) <= _LONGEST else message[:_LONGEST] + "…")
