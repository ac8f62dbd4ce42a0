"""How fast the pages of the web view are in a large home, compared with an empty one: first byte, and first paint.

Two servers run as real processes, one per home, and are asked in turn, so that a busy moment hits both alike. First
paint is what Chromium reports; it is left out if Chromium or playwright is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

from reverie.errors import UserError
from reverie.lab.web_home import write_home
from reverie.paths import slug
from reverie.text.columns import table

BASELINE = "/money"
"""The empty page: this one in the empty home."""
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
_PATIENCE_S = 120.0
_READING = b"<progress"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Medians in milliseconds; `ready_ms` is the time until a page that reads long files shows them, the first time."""

    path: str
    first_visit_ms: float
    ready_ms: float
    server_ms: float
    paint_ms: float | None
    first_paint_ms: float | None
    """Of the first visit, when nothing was read yet."""
    bytes: int


@dataclass(frozen=True, slots=True)
class WebTimes:
    """All pages of the large home, and the empty page."""

    memories: int
    sessions: int
    rounds: int
    empty: PageTimes
    pages: tuple[PageTimes, ...]
    left_out: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """The figures for programs."""
        return {
            "memories": self.memories,
            "sessions": self.sessions,
            "rounds": self.rounds,
            "empty": self._figures(self.empty),
            "pages": {page.path: self._figures(page) for page in self.pages},
            "worst_paint_ratio": max((r for p in self.pages if (r := self._ratio(p, "paint_ms"))), default=None),
            "worst_server_ratio": max((r for p in self.pages if (r := self._ratio(p, "server_ms"))), default=None),
            "left_out": list(self.left_out),
        }

    def _figures(self, page: PageTimes) -> dict[str, Any]:
        return {
            "server_ms": round(page.server_ms, 1),
            "server_ratio": self._ratio(page, "server_ms"),
            "paint_ms": None if page.paint_ms is None else round(page.paint_ms, 1),
            "paint_ratio": self._ratio(page, "paint_ms"),
            "first_visit_ms": round(page.first_visit_ms, 1),
            "first_visit_paint_ms": None if page.first_paint_ms is None else round(page.first_paint_ms, 1),
            "first_visit_paint_ratio": self._ratio(page, "first_paint_ms", "paint_ms"),
            "ready_ms": round(page.ready_ms, 1),
            "bytes": page.bytes,
        }

    def _ratio(self, page: PageTimes, name: str, base: str = "") -> float | None:
        mine, other = getattr(page, name), getattr(self.empty, base or name)
        return round(mine / other, 2) if mine is not None and other else None

    def table(self) -> str:
        """The figures for people."""
        heads = ("page", "first byte", "× empty", "first paint", "× empty", "first visit", "× empty", "ready", "size")
        rows = list[tuple[str, ...]]([heads])
        for page in (self.empty, *self.pages):
            f = self._figures(page)
            name = f"{page.path} (empty home)" if page is self.empty else page.path
            paint = (
                ("–", "–", "–")
                if f["paint_ms"] is None
                else (f"{f['paint_ms']} ms", str(f["paint_ratio"]), f"{f['first_visit_paint_ms']} ms")
            )
            times = (f"{f['server_ms']} ms", str(f["server_ratio"]), *paint, str(f["first_visit_paint_ratio"] or "–"))
            rows.append((name, *times, f"{f['ready_ms']:.0f} ms", f"{page.bytes // 1000} kB"))
        lines = table(rows, right=range(1, len(heads)))
        rest = [f"Left out: {', '.join(self.left_out)}."] if self.left_out else []
        made = f"{self.memories:,} memories, {self.sessions:,} sessions, one of {self.rounds:,} rounds"
        return "\n".join((made, *lines, *rest))


def measure_web(
    memories: int, sessions: int, rounds: int, runs: int, tell: Callable[[str], None] = lambda _text: None
) -> WebTimes:
    """Builds both homes in a scratch folder, starts a server for each, and measures every page."""
    with TemporaryDirectory(prefix="reverie-web-") as name, ExitStack() as open_:
        folder = Path(name).resolve()
        work = folder / "work"
        work.mkdir()
        tell("writing the home")
        session = write_home(folder / "large", work, memories=memories, sessions=sessions, rounds=rounds)
        small = open_.enter_context(_server(folder / "empty", work))
        large = open_.enter_context(_server(folder / "large", work))
        browser = open_.enter_context(_chromium())
        paths, left_out = _paths(session, slug(work), folder / "large")
        tell(f"{BASELINE} in the empty home")
        empty = _measure(small, BASELINE, runs, browser)
        pages = list[PageTimes]()
        for path in paths:
            tell(path)
            pages.append(_measure(large, path, runs, browser))
        return WebTimes(memories, sessions, rounds, empty, tuple(pages), tuple(left_out))


def _paths(session: str, project: str, home: Path) -> tuple[list[str], list[str]]:
    """Every page with the names of this home in it, and the pages that need something else."""
    from reverie.web.pages import PAGES

    file = next((path.name for path in (home / "projects" / project / "memory").glob("*_*.md")), "MEMORY.md")
    known = {"{session}": session, "{project}": project, "{file:path}": file}
    found, left_out = list[str](), list[str]()
    for page in PAGES:
        path = page.path
        for name, value in known.items():
            path = path.replace(name, value)
        (left_out if "{" in path else found).append(path)
    return [*found, f"/sessions/{session}/window?request=2500"], left_out


@dataclass(frozen=True, slots=True)
class _Server:
    port: int
    token: str

    def ask(self, path: str) -> tuple[float, bytes]:
        """Milliseconds until the first byte, and the page."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        try:
            begun = time.perf_counter()
            connection.request("GET", path, headers={"authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            first = answer.read(1)
            taken = (time.perf_counter() - begun) * 1_000
            text = first + answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise UserError(f"{path} answers {answer.status}: {text[:300].decode('utf-8', 'replace')}")
        return taken, text


def _measure(server: _Server, path: str, runs: int, browser: Any) -> PageTimes:
    begun = time.perf_counter()
    first_paint = _paint(browser, server, path)
    first, text = server.ask(path)
    while _READING in text:
        if time.perf_counter() - begun > _PATIENCE_S:
            raise UserError(f"{path} is not ready after {_PATIENCE_S:.0f} s.")
        time.sleep(0.02)
        _, text = server.ask(path)
    ready = (time.perf_counter() - begun) * 1_000
    server.ask(path)
    times = [server.ask(path)[0] for _ in range(runs)]
    paints = [shown for _ in range(runs) if (shown := _paint(browser, server, path)) is not None]
    return PageTimes(path, first, ready, median(times), median(paints) if paints else None, first_paint, len(text))


def _paint(browser: Any, server: _Server, path: str) -> float | None:
    """When Chromium first showed something of the page, in milliseconds from the start of the request."""
    if browser is None:
        return None
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.port}/about?token={server.token}")  # gets the cookie
        page.goto(f"http://127.0.0.1:{server.port}{path}")
        ends = time.monotonic() + 10
        while not (shown := float(page.evaluate(_PAINT))) and time.monotonic() < ends:
            time.sleep(0.01)
        return shown
    finally:
        context.close()


@contextmanager
def _server(home: Path, work: Path) -> Generator[_Server]:
    env = {key: value for key, value in {**os.environ}.items() if not key.startswith("REVERIE_")}
    env |= {"REVERIE_HOME": str(home), "HOME": str(home.parent)}
    command = [sys.executable, "-m", "reverie", "web", "--no-open"]
    process = subprocess.Popen(command, cwd=work, env=env, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline() if process.stdout is not None else ""
        address = urlsplit(line.strip())
        token = parse_qs(address.query).get("token", [""])[0]
        if address.port is None or not token:
            raise UserError("The web view did not start.")
        yield _Server(address.port, token)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _chromium() -> Generator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright  # pyright: ignore
    except ImportError:
        program = None
    if program is None:
        yield None
        return
    with sync_playwright() as started:  # pyright: ignore
        browser: Any = started.chromium.launch(executable_path=program, args=list(_ARGUMENTS))  # pyright: ignore
        try:
            yield browser
        finally:
            browser.close()
