"""Finds out which layers of the sandbox work on this machine, by running a command in it that must fail to write.

A container, an old kernel or a setting can take any of them away, so no list of machines would be right.
"""

from __future__ import annotations

import os
import select
import sys
import tempfile
from contextlib import suppress
from functools import cache

from reverie.permissions.sandbox import kernel
from reverie.permissions.sandbox.client import SandboxFailed, SandboxHelper
from reverie.permissions.sandbox.order import SandboxOrder, SandboxReport, SandboxView
from reverie.quick import dataclass

_SECONDS = 10
_WORDS = ("/bin/sh", "-c", 'echo "$0" > "$1"; exit 0')


@dataclass(frozen=True, slots=True)
class SandboxLayers:
    """What works here. `why_not` says why a layer does not; empty if all do."""

    namespaces: bool
    landlock: int
    why_not: str = ""

    @property
    def can_read(self) -> bool:
        """Whether commands can run without being able to write."""
        return self.landlock > 0

    @property
    def can_work(self) -> bool:
        """Whether commands can run that write in the project alone."""
        return self.namespaces and self.landlock > 0


_helpers: dict[bool, SandboxHelper] = {}


def helper_for(layers: SandboxLayers) -> SandboxHelper:
    """Returns the helper process of this program for commands with these layers."""
    return _helpers.setdefault(layers.namespaces, SandboxHelper(namespaces=layers.namespaces))


def close_helpers() -> None:
    """Ends the helper processes of this program."""
    while _helpers:
        _helpers.popitem()[1].close()


@cache
def find_layers() -> SandboxLayers:
    """Tries the layers, the strongest first. The answer holds for this process."""
    if not sys.platform.startswith("linux") or not (kernel.IS_X86 or kernel.IS_ARM):
        return SandboxLayers(False, 0, "commands can be kept in a sandbox on Linux only (x86-64 and ARM64)")
    landlock = kernel.landlock_abi()
    if not landlock:  # pipes of other programs are written to in spite of read-only mounts
        return SandboxLayers(False, 0, "this kernel has no Landlock")
    missing = list[str]()
    for namespaces in (True, False):
        layers = SandboxLayers(namespaces, landlock)
        why_not = _try(layers)
        if why_not is None:
            return SandboxLayers(namespaces, landlock, "; ".join(missing))
        missing.append(f"{'namespaces do' if namespaces else 'Landlock does'} not work here ({why_not})")
    return SandboxLayers(False, 0, "; ".join(missing))


def _try(layers: SandboxLayers) -> str | None:
    """Runs the command that must fail to write; returns what is wrong, or None."""
    try:
        # Not where TMPDIR says: in a folder in memory a command may write, into its own.
        folder = "/var/tmp" if os.path.isdir("/var/tmp") else "/tmp"
        target, path = tempfile.mkstemp(prefix="reverie-probe-", dir=folder)
    except OSError as error:
        return str(error)
    reading, writing = os.pipe()
    try:
        words = (*_WORDS, "written", path)
        order = SandboxOrder(words, "/", {"PATH": "/usr/bin:/bin"}, SandboxView(layers.landlock))
        report = _run(helper_for(layers), order, writing)
        if report.status != 0:
            return report.error or f"the test command ended with {report.status}"
        return None if os.fstat(target).st_size == 0 else "the test command could write"
    except (OSError, SandboxFailed) as error:
        return str(error)
    finally:
        os.unlink(path)
        for descriptor in (target, reading, writing):
            with suppress(OSError):
                os.close(descriptor)


def _run(helper: SandboxHelper, order: SandboxOrder, output: int) -> SandboxReport:
    """Runs a command without an event loop."""
    control = helper.send(order, output)
    with control:
        if not select.select([control], [], [], _SECONDS)[0]:
            return SandboxReport(None, error=f"the test command did not end within {_SECONDS} s")
        data = control.recv(200_000)
    return SandboxReport.decode(data) if data else SandboxReport(None, error="its keeper was ended")
