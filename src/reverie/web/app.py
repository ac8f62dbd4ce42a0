"""The web view as an ASGI application: makes routes of pages, actions and streams, and checks who asks.

Every page also exists under `/api`, as JSON. Errors are pages too: one sentence, no traceback.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from reverie.errors import ReverieError
from reverie.parsing import Unparsable, load_json
from reverie.runtime.loopback import App, LoopbackOnly, is_other_user
from reverie.web.access import Access, SafeHeaders, cookie_name
from reverie.web.pages import ACTIONS, PAGES, RAWS, SECTIONS, STREAMS
from reverie.web.rendering import STATIC, render, to_json
from reverie.web.site import Site
from reverie.web.visit import Action, Data, Done, Event, NotFound, Page, Raw, Stream, TryAgain, Visit

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_MOST_FORM_BYTES = 4_000_000
_MOST_FIELDS = 20_000
"""A dream may change many files, and each has a field."""
_MOST_SAID = 200
_STATUS: dict[type[ReverieError], int] = {NotFound: 404, TryAgain: 409}
_NO_TOKEN = "Open the address that `reverie web` printed: it has the token. `reverie web --link` prints it again."


def create_app(site: Site, access: Access, port: int) -> Starlette:
    """The application for one home. `port` is the one it listens on."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    server = _Server(site, access, port)
    routes: list[Any] = [Mount("/static", StaticFiles(directory=STATIC), name="static")]
    for page in PAGES:
        routes.append(Route(f"/api{page.path.rstrip('/')}" if page.path != "/" else "/api/overview", server.api(page)))
    routes.append(Route("/api/ticket", server.ticket, methods=["POST"]))
    for stream in STREAMS:
        routes.append(Route(stream.path, server.stream(stream)))
    routes += [Route(raw.path, server.raw(raw)) for raw in RAWS]
    if not site.read_only:
        for action in ACTIONS:
            routes.append(Route(f"/api{action.path}", server.act(action, as_json=True), methods=["POST"]))
            routes.append(Route(action.path, server.act(action, as_json=False), methods=["POST"]))
    routes += [Route(page.path, server.page(page)) for page in PAGES]
    return Starlette(
        routes=routes,
        middleware=[Middleware(SafeHeaders), Middleware(LoopbackOnly, refuse=server.refuse)],
        exception_handlers={HTTPException: server.not_found, Exception: server.broken},
    )


class _Refused(ReverieError):
    """The visitor has no token, or a form comes from elsewhere."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _Server:
    def __init__(self, site: Site, access: Access, port: int) -> None:
        self._site = site
        self._access = access
        self._cookie = cookie_name(port)
        self._said = dict[str, Done]()

    def _keep(self, done: Done) -> str:
        """Keeps what an action did for the page after it. The address has only a number: nobody can forge a message."""
        name = secrets.token_hex(6)
        self._said[name] = done
        while len(self._said) > _MOST_SAID:
            self._said.pop(next(iter(self._said)))
        return name

    def page(self, page: Page) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            if request.query_params.get("token"):
                return await self._guarded(request, lambda: self._enter(request), is_entry=True)
            return await self._guarded(request, lambda: self._show(request, page))

        return answer

    def api(self, page: Page) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            async def read() -> Response:
                return _json(await asyncio.to_thread(page.read, self._visit(request)))

            return await self._guarded(request, read)

        return answer

    def stream(self, stream: Stream) -> Callable[[Request], Any]:
        from starlette.responses import StreamingResponse

        async def answer(request: Request) -> Response:
            async def start() -> Response:
                visit = self._visit(request)
                if last := request.headers.get("last-event-id"):
                    visit = replace(visit, query={**visit.query, "last": last})
                events = stream.events(visit)
                first = await anext(events, None)  # an error needs a status, so it must come before the stream

                async def lines() -> AsyncIterator[str]:
                    if first is not None:
                        yield _event(first)
                        async for event in events:
                            yield _event(event)

                return StreamingResponse(lines(), media_type="text/event-stream")

            return await self._guarded(request, start)

        return answer

    def raw(self, raw: Raw) -> Callable[[Request], Any]:
        from starlette.responses import Response as Answer

        async def answer(request: Request) -> Response:
            async def read() -> Response:
                content, kind = await asyncio.to_thread(raw.read, self._visit(request))
                return Answer(content, media_type=kind)

            return await self._guarded(request, read)

        return answer

    def act(self, action: Action, *, as_json: bool) -> Callable[[Request], Any]:
        from starlette.responses import RedirectResponse

        async def answer(request: Request) -> Response:
            async def run() -> Response:
                form = await _read_form(request)
                self._check_form(request, form)
                try:
                    done: Done = await asyncio.to_thread(action.act, self._visit(request, form))
                except TryAgain as error:
                    if as_json:
                        raise
                    done = Done(str(error), error.location, is_problem=True)
                if as_json:
                    undo = done.undo and {"path": f"/api{done.undo.path}", "form": dict(done.undo.form)}
                    return _json({"message": done.message, "location": done.location, "undo": undo, **done.data})
                path, _, query = done.location.partition("?")
                kept = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != "done"]
                return RedirectResponse(
                    f"{path}?{urlencode([*kept, ('done', self._keep(done))], errors='replace')}", 303
                )

            return await self._guarded(request, run)

        return answer

    async def _show(self, request: Request, page: Page) -> Response:
        data = await asyncio.to_thread(page.read, self._visit(request))
        return await asyncio.to_thread(self._html, request, page.name, data, page.title, page.section)

    def _html(self, request: Request, name: str, data: Data, title: str, section: str) -> Response:
        part = request.query_params.get("part", "")
        text = render(name, {**self._frame(request, title, section), **data}, part)
        if text is None:
            return self._error(request, NotFound(f"This page has no part {part[:40]!r}."))
        return _page(text)

    def _frame(self, request: Request, title: str, section: str = "", *, is_known: bool = True) -> Data:
        """What every template needs. A visitor without a token sees no navigation."""
        path = request.url.path
        return {
            "title": title,
            "section": section,
            "sections": SECTIONS if is_known else (),
            "read_only": self._site.read_only,
            "csrf": self._access.csrf_of(self._cookie_of(request)) if is_known else "",
            "done": self._said.get(request.query_params.get("done", "")),
            "here": path,
            "query": dict(request.query_params),
            "api": "" if not section else "/api/overview" if path == "/" else f"/api{path}",
        }

    def _visit(self, request: Request, form: dict[str, str] | None = None) -> Visit:
        path = {key: str(value) for key, value in request.path_params.items()}
        return Visit(self._site, path, dict(request.query_params), form or {})

    # Who asks.

    def _cookie_of(self, request: Request) -> str:
        return request.cookies.get(self._cookie, "")

    def _bearer(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self._access.is_token(given.strip())

    async def _enter(self, request: Request) -> Response:
        """Changes the token in the address into a cookie, and removes it from the address."""
        from starlette.responses import RedirectResponse

        is_new = self._access.may_enter(request.query_params["token"])
        if not is_new and not self._access.is_cookie(self._cookie_of(request)):
            raise _Refused("This token is not valid any more. " + _NO_TOKEN, 401)
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != "token"]
        location = request.url.path + (f"?{urlencode(rest)}" if rest else "")
        answer = RedirectResponse("/" + location.lstrip("/"), 303)
        if is_new:
            answer.set_cookie(self._cookie, self._access.new_cookie(), httponly=True, samesite="strict", path="/")
        return answer

    async def ticket(self, request: Request) -> Response:
        """An address for a browser that starts now."""

        async def make() -> Response:
            if not self._bearer(request):
                raise _Refused(_NO_TOKEN, 401)
            return _json({"ticket": self._access.new_ticket()})

        return await self._guarded(request, make)

    async def _guarded(self, request: Request, answer: Callable[[], Any], *, is_entry: bool = False) -> Response:
        try:
            if is_other_user(request.scope.get("client"), request.scope.get("server")):
                raise _Refused(
                    "This web view is only for its user, and the system does not say that you are this user.", 403
                )
            if not is_entry and not (self._bearer(request) or self._access.is_cookie(self._cookie_of(request))):
                raise _Refused(_NO_TOKEN, 401)
            if (
                request.headers.get("sec-fetch-site") == "same-site"
                and request.headers.get("sec-fetch-mode") != "navigate"
            ):
                raise _Refused("Pages of another server on this machine may not use this one.", 403)
            return await answer()
        except ReverieError as error:
            return self._error(request, error)

    def _check_form(self, request: Request, form: dict[str, str]) -> None:
        if self._bearer(request):
            return
        origin = urlsplit(request.headers.get("origin", ""))
        if origin.netloc != request.headers.get("host") or origin.scheme != "http":
            raise _Refused("This form does not come from a page of this server.", 403)
        given = form.get("csrf", "") or request.headers.get("x-csrf-token", "")
        expected = self._access.csrf_of(self._cookie_of(request))
        if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
            raise _Refused("This form is too old. Load the page again.", 403)

    # What goes wrong.

    def _error(self, request: Request, error: ReverieError) -> Response:
        status = error.status if isinstance(error, _Refused) else _STATUS.get(type(error), 400)
        if request.url.path.startswith("/api/"):
            return _json({"error": str(error)}, status)
        frame = self._frame(request, "Not possible", is_known=not isinstance(error, _Refused))
        return _page(render("error", {**frame, "message": str(error), "status": status}) or "", status)

    async def not_found(self, request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 404)
        sentence = "There is no such page." if status == 404 else "This address does not accept this method."
        return self._error(request, NotFound(sentence) if status == 404 else _Refused(sentence, status))

    async def broken(self, request: Request, error: Exception) -> Response:
        sentence = "This page failed. It is a mistake in Reverie; the terminal of `reverie web` has the details."
        return self._error(request, _Refused(sentence, 500))

    def refuse(self, path: str, reason: str) -> App:
        from starlette.responses import PlainTextResponse

        return PlainTextResponse(reason, 403)


async def _read_form(request: Request) -> dict[str, str]:
    """A form, or a JSON object of texts."""
    raw = bytearray()
    async for part in request.stream():
        raw += part
        if len(raw) > _MOST_FORM_BYTES:
            raise _Refused(f"The form is larger than {_MOST_FORM_BYTES:,} bytes.", 413)
    if request.headers.get("content-type", "").partition(";")[0].strip() == "application/json":
        with contextlib.suppress(Unparsable):
            found: Any = load_json(bytes(raw) or b"{}")
            if isinstance(found, dict):
                return {str(key): str(value) for key, value in found.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        raise _Refused("The body must be a JSON object.", 400)
    try:
        return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise _Refused(f"The form has more than {_MOST_FIELDS:,} fields.", 413) from None


def _page(text: str, status: int = 200) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(text.encode("utf-8", "replace"), status)


def _json(data: Data, status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(to_json(data), status, media_type="application/json")


def _event(event: str | Event) -> str:
    given = event if isinstance(event, Event) else Event(event)
    head = [f"{key}: {value}\n" for key, value in (("event", given.name), ("id", given.id)) if value]
    return "".join([*head, *(f"data: {line}\n" for line in given.data.split("\n")), "\n"])
