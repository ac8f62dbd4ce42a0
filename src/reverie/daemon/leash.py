"""How a worker starts: `python -m reverie.daemon.leash FD SECONDS MARK MODULE HOME` runs MODULE as the main program.

It ends with its process group, and with all processes that have the variable MARK, if the service dies (FD is the
reading end of a pipe that only the service holds open). At the time limit it ends even without a service.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from contextlib import suppress

from reverie.runtime.process_family import end_marked

_NICENESS = 15
GRACE_SECONDS = 4.0
"""How long a worker has to finish after Ctrl-C, before its whole group is killed."""


def main() -> None:
    fd, seconds, mark, module = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3].encode(), sys.argv[4]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the service was started
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)  # without a handler, the kernel ends the process
    with suppress(OSError):
        os.nice(_NICENESS)
    lost = threading.Event()
    threading.Thread(target=_watch, args=(fd, lost, mark), name="leash", daemon=True).start()
    sys.argv = [module, *sys.argv[5:]]  # the home, for those who look at the list of processes
    try:
        if module.endswith(".py"):
            runpy.run_path(module, run_name="__main__")
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        if lost.is_set():
            _kill_group(mark)


def _watch(fd: int, lost: threading.Event, mark: bytes) -> None:
    while os.read(fd, 1):
        pass
    lost.set()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    _kill_group(mark)


def _kill_group(mark: bytes) -> None:
    end_marked(mark)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
