"""What Reverie answers to `initialize`. Plain data without the SDK, so that the answer is there before it is loaded."""

from __future__ import annotations

from typing import cast

from reverie import __version__
from reverie.types import Json, JsonObject

PROTOCOL_VERSION = 1

ANSWER: JsonObject = {
    "protocolVersion": PROTOCOL_VERSION,
    "agentInfo": {"name": "reverie", "title": "Reverie", "version": __version__},
    "authMethods": [],
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {"list": {}, "fork": {}, "resume": {}, "close": {}},
    },
}


def read_initialize(message: JsonObject) -> JsonObject | None:
    """Returns the parameters of a plain `initialize` request; None for any other message."""
    params: Json = message.get("params")
    if message.get("method") != "initialize" or message.get("id") is None or not isinstance(params, dict):
        return None
    found = cast(JsonObject, params)
    version = found.get("protocolVersion")
    return found if isinstance(version, int) and not isinstance(version, bool) else None
