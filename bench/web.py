"""How fast the pages of the web view are in a large home, compared with an empty one: first byte, and first paint.

Two servers run as real processes, one per home, and are asked in turn, so that a busy moment hits both alike. First
paint is what Chromium reports; it is left out if Chromium or playwright is not installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.scratch import clean_env, count_option
from bench.web_home import write_home
from reverie.cli.output import show_progress
from reverie.errors import UserError
from reverie.lab.measurement import Column, Result, Table, measurement, named, whole
from reverie.paths import slug
from reverie.quick import dataclass

BASELINE = "/money"
"""The empty page: this one in the empty home."""
_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
_PATIENCE_S = 120.0
_RATIOS = ("paint_ratio", "first_visit_paint_ratio")
_SHOWN = ("server_ms", "empty_server_ms", "paint_ms", "empty_paint_ms", *_RATIOS, "ready_ms")
_READING = b"<progress"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Medians in milliseconds of one page, and of the empty page, which was visited in turn with it."""

    server_ms: float
    empty_server_ms: float
    paint_ms: float | None
    empty_paint_ms: float | None
    first_paint_ms: float | None
    """Of the first visit, when nothing was read yet."""
    ready_ms: float
    """Until a page that reads long files shows them, the first time."""
    bytes: int

    def figures(self) -> dict[str, Any]:
        def to_empty(paint: float | None) -> float | None:
            return round(paint / self.empty_paint_ms, 2) if paint is not None and self.empty_paint_ms else None

        return {
            "server_ms": self.server_ms,
            "empty_server_ms": self.empty_server_ms,
            "server_ratio": round(self.server_ms / self.empty_server_ms, 2),
            "paint_ms": self.paint_ms,
            "empty_paint_ms": self.empty_paint_ms,
            "paint_ratio": to_empty(self.paint_ms),
            "first_visit_paint_ms": self.first_paint_ms,
            "first_visit_paint_ratio": to_empty(self.first_paint_ms),
            "ready_ms": self.ready_ms,
            "bytes": self.bytes,
        }


@measurement("reverie lab web", "reverie lab web --memories 1000 --sessions 100 --rounds 200 --json")
@count_option("--memories", 100_000, 1, "Memories to write.")
@count_option("--sessions", 5_000, 1, "Sessions to write.")
@count_option("--rounds", 5_000, 1, "Rounds of the long one.")
@count_option("--runs", 9, 1, "Visits per page.")
def web(memories: int, sessions: int, rounds: int, runs: int) -> Result:
    """Measure how fast the pages of the web view are in a large home, compared with an empty one.

    Writes a home with many memories, many sessions and a very long one to a scratch folder, and starts two web views.
    Measures the time to the first byte, and with Chromium and playwright the time to the first paint: of the first
    visit, when nothing was read yet, and of later ones.
    """
    with TemporaryDirectory(prefix="reverie-web-") as name, ExitStack() as open_:
        folder = Path(name).resolve()
        work = folder / "work"
        work.mkdir()
        show_progress("writing the home")
        session = write_home(folder / "large", work, memories=memories, sessions=sessions, rounds=rounds)
        empty = open_.enter_context(_server(folder / "empty", work))
        large = open_.enter_context(_server(folder / "large", work))
        browser = open_.enter_context(_chromium())
        paths, left_out = _paths(session, slug(work), folder / "large")
        for server in (empty, large):  # the start of the servers and of the browser is not counted
            server.ask("/about")
            _paint(browser, server, "/about")
        pages = dict[str, dict[str, Any]]()
        for path in paths:
            show_progress(path)
            pages[path] = _measure(large, empty, path, runs, browser).figures()
        show_progress("done", ends_line=True)
    worst, first = ([one[key] for one in pages.values() if one[key] is not None] for key in _RATIOS)
    figures = {
        "memories": memories,
        "sessions": sessions,
        "rounds": rounds,
        "empty_page": BASELINE,
        "pages": pages,
        "worst_paint_ratio": max(worst, default=None),
        "worst_first_visit_paint_ratio": max(first, default=None),
        "left_out": left_out,
    }
    made = f"{memories:,} memories, {sessions:,} sessions, one of {rounds:,} rounds; times in ms"
    rest = [f"Left out: {', '.join(left_out)}."] if left_out else []
    return Result(figures, (made, Table(named(pages, "page"), ("page", *map(Column, _SHOWN), whole("bytes"))), *rest))


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
    return PageTimes(served, base, shown, base_shown, first_paint, ready, len(text))


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
    env = clean_env(REVERIE_HOME=home, HOME=home.parent)
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
