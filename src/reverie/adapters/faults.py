"""What adapters do with a failure of ours: it is logged, and the agent goes on without the layer."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from reverie.errors import BlockingLimit, ReverieError, UserError
from reverie.library.engine import Engine
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


def check_wire(engine: Engine, wanted: str) -> Engine:
    """Returns the engine. Raises `UserError` if it was opened for messages of another shape."""
    if engine.wire != wanted:
        raise UserError(f'This adapter needs an engine that was opened with wire="{wanted}", not "{engine.wire}".')
    return engine
