"""Runs the tests outside of the agent that started them, if one did: below an agent, what a test types is a model's.

The agent is known by our ancestors and their variables. So pytest starts again in a process without them, and this one
waits for its result. The mark of our own agents stays: run the tests with `!` there, or in a terminal.
"""

from __future__ import annotations

import atexit
import os
import sys

from reverie.runtime import agent_above

_RESULT = "TEST_OUTSIDE"


def leave_agent() -> None:
    """Returns at once if no agent has started the tests, else in the process outside of it."""
    if os.environ.get(_RESULT) or not agent_above.agent_above():
        return
    left = (*agent_above._VARIABLES, "AGENT")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    if os.fork():
        os.close(writing)
        with os.fdopen(reading) as result:
            os._exit(int(result.read() or 3))  # nothing: they were killed
    if os.fork():
        os._exit(0)
    env = {name: value for name, value in os.environ.items() if name not in left}
    os.execve(sys.executable, sys.orig_argv, env | {_RESULT: f"{os.getpid()}:{writing}"})


def tell(code: int) -> None:
    """Tells the process that waits how the tests ended, after the last output."""
    pid, _, end = os.environ.get(_RESULT, "").partition(":")
    if pid == str(os.getpid()):
        atexit.register(lambda: (sys.stdout.flush(), os.write(int(end), str(code).encode())))
