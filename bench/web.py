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
from http.client import HTTPConnection
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.web_home import write_home
from reverie.errors import UserError
from reverie.paths import slug
from reverie.quick import dataclass
from reverie.text.columns import table

BASELINE = "/money"
"""The empty page: this one in the empty home."""
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
_PATIENCE_S = 120.0
_READING = b"<progress"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Medians in milliseconds of one page, and of the empty page, which was visited in turn with it."""

    path: str
    server_ms: float
    empty_server_ms: float
    paint_ms: float | None
    empty_paint_ms: float | None
    first_paint_ms: float | None
    """Of the first visit, when nothing was read yet."""
    ready_ms: float
    """Until a page that reads long files shows them, the first time."""
    bytes: int

    @property
    def server_ratio(self) -> float:
        return round(self.server_ms / self.empty_server_ms, 2)

    def paint_ratio(self, paint: float | None) -> float | None:
        return round(paint / self.empty_paint_ms, 2) if paint is not None and self.empty_paint_ms else None


@dataclass(frozen=True, slots=True)
class WebTimes:
    """All pages of the large home."""

    memories: int
    sessions: int
    rounds: int
    pages: tuple[PageTimes, ...]
    left_out: tuple[str, ...]

    def summary(self) -> dict[str, Any]:
        """The figures for programs."""
        ratios = [ratio for page in self.pages if (ratio := page.paint_ratio(page.paint_ms)) is not None]
        first = [ratio for page in self.pages if (ratio := page.paint_ratio(page.first_paint_ms)) is not None]
        return {
            "memories": self.memories,
            "sessions": self.sessions,
            "rounds": self.rounds,
            "empty_page": BASELINE,
            "pages": {page.path: _figures(page) for page in self.pages},
            "worst_paint_ratio": max(ratios, default=None),
            "worst_first_visit_paint_ratio": max(first, default=None),
            "left_out": list(self.left_out),
        }

    def table(self) -> str:
        """The figures for people."""
        heads = ("page", "first byte", "empty", "first paint", "empty", "×", "first visit", "×", "ready", "size")
        rows = list[tuple[str, ...]]([heads])
        for page in self.pages:
            paint, empty, first = (_ms(time) for time in (page.paint_ms, page.empty_paint_ms, page.first_paint_ms))
            ratios = (_or_dash(page.paint_ratio(page.paint_ms)), _or_dash(page.paint_ratio(page.first_paint_ms)))
            times = (_ms(page.server_ms), _ms(page.empty_server_ms), paint, empty, ratios[0], first, ratios[1])
            rows.append((page.path, *times, _ms(page.ready_ms), f"{page.bytes // 1000} kB"))
        lines = table(rows, right=range(1, len(heads)))
        rest = [f"Left out: {', '.join(self.left_out)}."] if self.left_out else []
        made = f"{self.memories:,} memories, {self.sessions:,} sessions, one of {self.rounds:,} rounds; times in ms"
        return "\n".join((made, *lines, *rest))


def _figures(page: PageTimes) -> dict[str, Any]:
    return {
        "server_ms": round(page.server_ms, 1),
        "empty_server_ms": round(page.empty_server_ms, 1),
        "server_ratio": page.server_ratio,
        "paint_ms": page.paint_ms,
        "empty_paint_ms": page.empty_paint_ms,
        "paint_ratio": page.paint_ratio(page.paint_ms),
        "first_visit_paint_ms": page.first_paint_ms,
        "first_visit_paint_ratio": page.paint_ratio(page.first_paint_ms),
        "ready_ms": round(page.ready_ms, 1),
        "bytes": page.bytes,
    }


def _ms(time: float | None) -> str:
    return "–" if time is None else f"{time:.0f}" if time >= 10 else f"{time:.1f}"


def _or_dash(ratio: float | None) -> str:
    return "–" if ratio is None else str(ratio)


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
        empty = open_.enter_context(_server(folder / "empty", work))
        large = open_.enter_context(_server(folder / "large", work))
        browser = open_.enter_context(_chromium())
        paths, left_out = _paths(session, slug(work), folder / "large")
        for server in (empty, large):  # the start of the servers and of the browser is not counted
            server.ask("/about")
            _paint(browser, server, "/about")
        pages = list[PageTimes]()
        for path in paths:
            tell(path)
            pages.append(_measure(large, empty, path, runs, browser))
        return WebTimes(memories, sessions, rounds, tuple(pages), tuple(left_out))


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


def _measure(large: _Server, empty: _Server, path: str, runs: int, browser: Any) -> PageTimes:
    begun = time.perf_counter()
    first_paint = _paint(browser, large, path)
    _, text = large.ask(path)
    while _READING in text:
        if time.perf_counter() - begun > _PATIENCE_S:
            raise UserError(f"{path} is not ready after {_PATIENCE_S:.0f} s.")
        time.sleep(0.02)
        _, text = large.ask(path)
    ready = (time.perf_counter() - begun) * 1_000
    empty.ask(BASELINE)
    times = [(large.ask(path)[0], empty.ask(BASELINE)[0]) for _ in range(runs)]
    paints = [(_paint(browser, large, path), _paint(browser, empty, BASELINE)) for _ in range(runs)]
    served, base = (median(column) for column in zip(*times, strict=True))
    shown, base_shown = (
        median(found) if (found := [one for one in column if one is not None]) else None
        for column in zip(*paints, strict=True)
    )
    return PageTimes(path, served, base, shown, base_shown, first_paint, ready, len(text))


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
        playwright: Any = import_module("playwright.sync_api")  # not in every environment
    except ImportError:
        playwright = None
    if program is None or playwright is None:
        yield None
        return
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
