"""Routes of memories and their versions, as the published API has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reverie.server import audit, memories, stores, versions
from reverie.server.clearing import Clearing
from reverie.server.wire import ApiError, read_body, take_choice

if TYPE_CHECKING:
    from starlette.routing import Route

    from reverie.server.app import Call, Site

_STORE = "/v1/memory_stores/{store}"


def memory_routes(site: Site) -> list[Route]:
    at, version = f"{_STORE}/memories", f"{_STORE}/memory_versions"
    one, one_version = f"{at}/{{memory}}", f"{version}/{{version}}"
    clearing = Clearing(lambda: site.database)

    async def create(call: Call) -> Any:
        body = await read_body(call.request, memories.FIELDS)
        path, content = memories.read_path(body), memories.read_content(body)
        for name, value in (("path", path), ("content", content)):
            if value is None:
                raise ApiError(400, f"{name}: is missing.")
        made = await memories.create(call.connection, call.id("store"), call.author, path or "", content or "")
        return memories.show(made, full=_is_full(call))

    async def retrieve(call: Call) -> Any:
        return memories.show(
            await memories.find(call.connection, call.id("store"), call.id("memory")), full=_is_full(call, "full")
        )

    async def update(call: Call) -> Any:
        body = await read_body(call.request, memories.UPDATE_FIELDS)
        changed = await memories.update(
            call.connection,
            call.id("store"),
            call.id("memory"),
            call.author,
            path=memories.read_path(body),
            content=memories.read_content(body),
            expected=memories.read_precondition(body),
        )
        return memories.show(changed, full=_is_full(call))

    async def page(call: Call) -> Any:
        return await memories.page(call.connection, call.id("store"), call.query)

    async def delete(call: Call) -> Any:
        given = call.query.get("expected_content_sha256")
        expected = None if given is None else memories.read_hash("expected_content_sha256", given)
        await memories.delete(call.connection, call.id("store"), call.id("memory"), call.author, expected=expected)
        return {"type": "memory_deleted", "id": call.id("memory")}

    async def list_versions(call: Call) -> Any:
        return await versions.page(call.connection, call.id("store"), call.query)

    async def retrieve_version(call: Call) -> Any:
        await stores.find(call.connection, call.id("store"))
        row = await versions.find(call.connection, call.id("store"), call.id("version"))
        return versions.show(row if _is_full(call, "full") else row | {"content": None})

    async def redact(call: Call) -> Any:
        await read_body(call.request, ())
        done = await versions.redact(call.connection, call.id("store"), call.id("version"), call.author)
        await audit.record(call.connection, call.who, "redact version", call.id("version"))
        clearing.soon()
        return done

    return [
        site.route("POST", at, create, writes=True),
        site.route("GET", at, page),
        site.route("GET", one, retrieve),
        site.route("POST", one, update, writes=True),
        site.route("DELETE", one, delete, writes=True),
        site.route("GET", version, list_versions),
        site.route("GET", one_version, retrieve_version),
        site.route("POST", f"{one_version}/redact", redact, writes=True),
    ]


def _is_full(call: Call, default: str = "basic") -> bool:
    return take_choice(call.query, "view", versions.VIEWS, default) == "full"
