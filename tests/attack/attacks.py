"""All attacks by name, in the order in which a round runs them."""

from __future__ import annotations

from collections.abc import Callable

from tests.attack import (
    files,
    listeners,
    messages,
    orders,
    parsers,
    purge,
    sandbox,
    secrets,
    shell,
    simulator,
    storage,
    terminal,
    trust,
    users,
)
from tests.attack.arena import Arena

ATTACKS: dict[str, Callable[[Arena], None]] = {
    module.__name__.rpartition(".")[2]: module.attack
    for module in (
        *(orders, trust, shell, sandbox, parsers, files, terminal),
        *(simulator, secrets, storage, purge, messages, users, listeners),
    )
}
