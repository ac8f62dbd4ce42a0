"""What every adapter does with a failure of ours: it is logged, and the agent goes on without the layer."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from reverie.errors import BlockingLimit, ReverieError
from reverie.plugins import guarded

_log = logging.getLogger("reverie.adapters")


@contextmanager
def logged(what: str) -> Generator[None]:
    """Logs any failure but `BlockingLimit`: a request that cannot fit the window must not be sent."""
    try:
        with guarded("Reverie"):
            yield
    except BlockingLimit:
        raise
    except ReverieError as error:
        _log.warning("%s: %s", what, error)
