"""The helper process: one keeper of it always waits for the next command. It has one thread, so that it can fork.

It is started once and pays for the interpreter once. It ends when the program that started it closes its socket.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import tempfile
from contextlib import suppress

from reverie.permissions.sandbox.keeper import Keeper


def main(descriptor: int, namespaces: bool) -> None:
    """Serves orders from this socket. The keeper that waits has entered its namespaces already: that takes longest."""
    requests = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that asked; it says what ends
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a keeper ended
    gc.freeze()
    base = tempfile.mkdtemp(prefix="reverie-sandbox-")
    hung_up = select.poll()
    hung_up.register(requests, 0)
    while not hung_up.poll(0):
        taken, taking = os.pipe()
        if os.fork() == 0:
            os.close(taken)
            _keep(requests, taking, Keeper(namespaces, base))
        os.close(taking)
        os.read(taken, 1)  # the keeper has its order, or has ended
        os.close(taken)
    with suppress(OSError):
        os.rmdir(base)


def _keep(requests: socket.socket, taking: int, keeper: Keeper) -> None:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with suppress(OSError):
            keeper.serve(requests, taking)
    finally:
        os._exit(0)
