"""Routes that the published API does not have: who I am, stores by scope and purpose, projects, the change feed, and
sharing a memory with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reverie.server import audit, membership, memories, stores, versions
from reverie.server.gate import check_words
from reverie.server.wire import ApiError, plain_id, read_body, take_text

if TYPE_CHECKING:
    from starlette.routing import Route

    from reverie.server.app import Call, Site

_AT = "/v1/reverie"
_MOST_PURPOSE = 512
_MOST_ID = 600


def own_routes(site: Site) -> list[Route]:
    store = f"{_AT}/memory_stores/{{store}}"
    members = f"{_AT}/projects/{{project}}/members"

    async def me(call: Call) -> Any:
        return await membership.show_caller(call.connection, call.who)

    async def create_store(call: Call) -> Any:
        body = await read_body(call.request, (*stores.FIELDS, "scope", "purpose", "if_missing"))
        given = take_text(body, "scope", least=1, most=_MOST_ID, default="user")
        scope = await membership.read_scope(call.connection, call.who, given)
        purpose = take_text(body, "purpose", most=_MOST_PURPOSE, default="")
        check_words("purpose", purpose)
        if_missing = body.get("if_missing", False)
        if not isinstance(if_missing, bool):
            raise ApiError(400, "if_missing: must be true or false.")
        made = await stores.create(call.connection, call.who, body, scope=scope, purpose=purpose, if_missing=if_missing)
        return stores.show(made)

    async def list_stores(call: Call) -> Any:
        given = call.query.get("scope")
        scope = None if given is None else await membership.read_scope(call.connection, call.who, given)
        return await stores.page(call.connection, call.query, scope=scope)

    async def create_project(call: Call) -> Any:
        body = await read_body(call.request, ("name",))
        name = take_text(body, "name", least=1, most=_MOST_PURPOSE)
        return await membership.found_project(call.connection, call.who, name)

    async def add_member(call: Call) -> Any:
        body = await read_body(call.request, ("person",))
        person = take_text(body, "person", least=1, most=_MOST_ID)
        return await membership.change_member(call.connection, call.who, call.id("project"), person, joins=True)

    async def remove_member(call: Call) -> Any:
        project, person = call.id("project"), call.id("person")
        return await membership.change_member(call.connection, call.who, project, person, joins=False)

    async def changes(call: Call) -> Any:
        return await versions.changes(call.connection, call.id("store"), call.query)

    async def share(call: Call) -> Any:
        body = await read_body(call.request, ("store", "path"))
        target = plain_id(take_text(body, "store", least=1, most=_MOST_ID))
        source, memory, path = call.id("store"), call.id("memory"), memories.read_path(body)
        made = await memories.share(call.connection, source, memory, target, path or "", call.author)
        await audit.record(call.connection, call.who, "share memory", f"{memory} {target}")
        return memories.show(made, full=False)

    return [
        site.route("GET", f"{_AT}/me", me),
        site.route("POST", f"{_AT}/memory_stores", create_store, writes=True),
        site.route("GET", f"{_AT}/memory_stores", list_stores),
        site.route("GET", f"{store}/changes", changes),
        site.route("POST", f"{store}/memories/{{memory}}/share", share, writes=True),
        site.route("POST", f"{_AT}/projects", create_project, writes=True),
        site.route("POST", members, add_member, writes=True),
        site.route("DELETE", f"{members}/{{person}}", remove_member, writes=True),
    ]
