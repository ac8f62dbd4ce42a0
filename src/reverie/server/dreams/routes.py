"""Routes of dreams (published, and ours for review and undo), of uploaded sessions, and of how stores dream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reverie.server import audit, membership, stores
from reverie.server.dreams import deciding, rows, sessions
from reverie.server.dreams.checking import check_transcript
from reverie.server.gate import Author
from reverie.server.wire import ApiError, read_body

if TYPE_CHECKING:
    from starlette.routing import Route

    from reverie.server.app import Call, Site

_OWN: Final = "/v1/reverie"


def dream_routes(site: Site) -> list[Route]:
    at, one, own = "/v1/dreams", "/v1/dreams/{dream}", f"{_OWN}/dreams/{{dream}}"

    async def create(call: Call) -> Any:
        wanted = rows.WantedDream.read(await read_body(call.request, rows.FIELDS))
        made = await rows.create(call.connection, call.who, wanted)
        await audit.record(call.connection, call.who, "dream.create", made["id"])
        return rows.show(made)

    async def page(call: Call) -> Any:
        given = [
            one
            for name, values in call.request.query_params.multi_items()
            if name in ("statuses", "statuses[]")
            for one in values.split(",")
        ]
        return await rows.page(call.connection, call.query, given)

    async def retrieve(call: Call) -> Any:
        return rows.show(await rows.find(call.connection, call.id("dream")))

    async def archive(call: Call) -> Any:
        return rows.show(await rows.archive(call.connection, call.id("dream")))

    async def cancel(call: Call) -> Any:
        return rows.show(await rows.cancel(call.connection, call.id("dream")))

    async def changes(call: Call) -> Any:
        return await deciding.show_changes(call.connection, call.id("dream"))

    async def land(call: Call) -> Any:
        landed = await deciding.land(call.connection, call.who, call.id("dream"))
        await audit.record(call.connection, call.who, "dream.land", landed["id"])
        return rows.show(landed)

    async def discard(call: Call) -> Any:
        dropped = await deciding.discard(call.connection, call.id("dream"))
        await audit.record(call.connection, call.who, "dream.discard", dropped["id"])
        return rows.show(dropped)

    async def undo(call: Call) -> Any:
        id = call.id("dream")
        undone = await deciding.undo(call.connection, id, Author.of(call.who, reason=f"undo of dream {id}"))
        await audit.record(call.connection, call.who, "dream.undo", id)
        return undone

    return [
        site.route("POST", at, create, writes=True),
        site.route("GET", at, page),
        site.route("GET", one, retrieve),
        site.route("POST", f"{one}/archive", archive, writes=True),
        site.route("POST", f"{one}/cancel", cancel, writes=True),
        site.route("GET", f"{own}/changes", changes),
        site.route("POST", f"{own}/land", land, writes=True),
        site.route("POST", f"{own}/discard", discard, writes=True),
        site.route("POST", f"{own}/undo", undo, writes=True),
        *_session_routes(site),
        *_extraction_routes(site),
        *_setting_routes(site),
    ]


def _session_routes(site: Site) -> list[Route]:
    at, one = f"{_OWN}/sessions", f"{_OWN}/sessions/{{session}}"

    async def upload(call: Call) -> Any:
        scope = await membership.read_scope(call.connection, call.who, call.query.get("scope", "user"))
        name = call.query.get("name", "")
        made = await sessions.create(call.connection, call.who, call.prepared, scope=scope, name=name)
        await audit.record(call.connection, call.who, "session.upload", made["id"])
        return sessions.show(made)

    async def page(call: Call) -> Any:
        return await sessions.page(call.connection, call.query)

    async def retrieve(call: Call) -> Any:
        return sessions.show(await sessions.find(call.connection, call.id("session")))

    async def delete(call: Call) -> Any:
        await sessions.delete(call.connection, call.id("session"))
        await audit.record(call.connection, call.who, "session.delete", call.id("session"))
        return {"type": "session_deleted", "id": call.id("session")}

    async def extract(call: Call) -> Any:
        body = await read_body(call.request, ("store", "model"))
        return rows.show(await sessions.extract(call.connection, call.who, call.id("session"), body))

    return [
        site.route("POST", at, upload, writes=True, most_body=sessions.MOST_SENT, prepare=check_transcript),
        site.route("GET", at, page),
        site.route("GET", one, retrieve),
        site.route("DELETE", one, delete, writes=True),
        site.route("POST", f"{one}/extract", extract, writes=True),
    ]


def _extraction_routes(site: Site) -> list[Route]:
    one, kind = f"{_OWN}/extractions/{{extraction}}", "extraction"

    async def retrieve(call: Call) -> Any:
        return rows.show(await rows.find(call.connection, call.id(kind), kind=kind))

    async def cancel(call: Call) -> Any:
        return rows.show(await rows.cancel(call.connection, call.id(kind), kind=kind))

    async def changes(call: Call) -> Any:
        return await deciding.show_changes(call.connection, call.id(kind), kind=kind)

    async def undo(call: Call) -> Any:
        id = call.id(kind)
        author = Author.of(call.who, reason=f"undo of extraction {id}")
        return await deciding.undo(call.connection, id, author, kind=kind)

    return [
        site.route("GET", one, retrieve),
        site.route("POST", f"{one}/cancel", cancel, writes=True),
        site.route("GET", f"{one}/changes", changes),
        site.route("POST", f"{one}/undo", undo, writes=True),
    ]


def _setting_routes(site: Site) -> list[Route]:
    whole, one = f"{_OWN}/dreaming", f"{_OWN}/memory_stores/{{store}}/dreaming"

    async def show(call: Call) -> Any:
        store = await stores.find(call.connection, call.id("store"))
        return rows.show_settings(await rows.find_settings(call.connection, store))

    async def change(call: Call) -> Any:
        body = await read_body(call.request, rows.SETTINGS)
        store = await stores.find(call.connection, call.id("store"), may_be_archived=False)
        now = await rows.find_settings(call.connection, store)
        changed = await rows.change_settings(call.connection, store["id"], now, store["scope"], body)
        return rows.show_settings(changed)

    def of_organisation(call: Call) -> dict[str, Any]:
        return {"id": call.who.organisation_id, "organisation_id": call.who.organisation_id}

    async def show_whole(call: Call) -> Any:
        return rows.show_settings(await rows.find_settings(call.connection, of_organisation(call)))

    async def change_whole(call: Call) -> Any:
        if not call.who.is_admin:
            raise ApiError(403, "Only an administrator changes how all stores dream.")
        body = await read_body(call.request, rows.SETTINGS)
        id = call.who.organisation_id
        now = await rows.find_settings(call.connection, of_organisation(call))
        await audit.record(call.connection, call.who, "dreaming.change", id)
        changed = await rows.change_settings(call.connection, id, now, f"organisation:{id}", body)
        return rows.show_settings(changed)

    return [
        site.route("GET", one, show),
        site.route("POST", one, change, writes=True),
        site.route("GET", whole, show_whole),
        site.route("POST", whole, change_whole, writes=True),
    ]
