"""The library `mcp`: loading it, and what its errors mean."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError


def load_library() -> None:
    """Loads it, which takes about a second: call it in a thread. Its log messages must not reach the terminal."""
    import_module("mcp.client.client")
    for name in ("mcp", "httpx2"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def is_timeout(error: MCPError) -> bool:
    from mcp_types import REQUEST_TIMEOUT

    return error.code == REQUEST_TIMEOUT


def lost_session(error: MCPError) -> bool:
    """Whether a server behind an address may have forgotten us, for example because it was started again."""
    from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

    return error.code in (CONNECTION_CLOSED, INTERNAL_ERROR) or "session" in str(error).lower()


def say(error: BaseException | None) -> str:
    """Returns an error in one line. A message with a wrong form is named by its first mistake."""
    if (list_errors := getattr(error, "errors", None)) is not None and callable(list_errors):
        first = cast("list[dict[str, Any]]", list_errors())[0]
        where = ".".join(map(str, first.get("loc", ())))
        return f"it does not follow the protocol: {where}: {first.get('msg', '')}"
    return " ".join(str(error or "").split())
