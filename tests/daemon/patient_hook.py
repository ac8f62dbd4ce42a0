"""The hook, with a deadline that no busy machine misses: for tests that are not about the deadline."""

import _signal
import runpy
import sys

_set = _signal.setitimer
_signal.setitimer = lambda which, _seconds: _set(which, 1_000.0)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
