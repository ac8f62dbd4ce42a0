"""Every route with ids of somebody else, in the path and in the body: the answer is the one for ids that do not exist,
word by word, and nothing changes. The routes are those of the application, so a new one is tried, too."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from reverie.server.app import create_app
from reverie.server.ids import new_id
from tests.integration.server.asking import ask
from tests.integration.server.conftest import Served
from tests.integration.server.dreams.setup import call, inputs, query, said, update, upload

pytestmark = pytest.mark.integration
TABLES = ("stores", "memories", "versions", "sessions", "dreams", "dream_settings", "project_members", "projects")
BODIES: dict[str, dict[str, Any]] = {
    "/v1/memory_stores/{store}": {"name": "mine now"},
    "/v1/memory_stores/{store}/memories": {"path": "/x.md", "content": "x"},
    "/v1/memory_stores/{store}/memories/{memory}": {"content": "x"},
    "/v1/reverie/projects/{project}/members": {"person": "eve"},
    "/v1/reverie/memory_stores/{store}/dreaming": {"review": True},
}


def own(served: Served, token: str) -> dict[str, str]:
    """One of everything, private."""
    store = call(served, token, "POST", "/v1/memory_stores", {"name": "private"})["id"]
    at = f"/v1/memory_stores/{store}"
    memory = call(served, token, "POST", f"{at}/memories", {"path": "/kiwi.md", "content": "kiwi"})
    session = upload(served, token, said("Kiwi."))
    dream = call(served, token, "POST", "/v1/dreams", {"inputs": inputs(store, [session]), "model": "embedded"})
    extraction = call(served, token, "POST", f"/v1/reverie/sessions/{session}/extract", {"store": store})
    project = call(served, token, "POST", "/v1/reverie/projects", {"name": new_id("kiwi")})
    return {
        "store": store,
        "memory": memory["id"],
        "version": memory["memory_version_id"],
        "session": session,
        "dream": dream["id"],
        "extraction": extraction["id"],
        "project": project["id"],
    }


def forge(id: str) -> str:
    return new_id(id.partition("_")[0])


def state(served: Served) -> list[Any]:
    return [
        query(served.dsn, f"select md5(string_agg(t::text, ',' order by t::text)) from {name} t") for name in TABLES
    ]


def test_foreign_ids_are_like_ids_that_do_not_exist(served: Served) -> None:
    query(served.dsn, "update people set is_admin = true where name = 'eve'")
    theirs, routes = own(served, served.anna), create_app("").routes
    for token, person in ((served.ben, "ben"), (served.eve, "eve")):
        mine = own(served, token)
        before, tried = state(served), 0

        def same(method: str, path: str, body: Any, ids: dict[str, str], token: str = token) -> None:
            """Asks with the ids, and with forged ones."""
            said = list[Any]()
            for real in (True, False):
                used = {name: id if real else forge(id) for name, id in ids.items()}
                filled, sent = path, json.dumps(body)
                for name, id in used.items():
                    filled, sent = filled.replace(f"{{{name}}}", id), sent.replace(f"{{{name}}}", id)
                status, answer = ask(served, token, method, filled, None if body is None else json.loads(sent))
                text = json.dumps(answer.get("error", answer))
                for id in used.values():
                    text = text.replace(id, "ID")
                said.append((status, text))
            assert said[0] == said[1], (method, path, said)
            assert said[0][0] in (400, 403, 404) or said[0][1] == '{"data": [], "by_meaning": false}', (path, said)

        for route in routes:
            path, methods = getattr(route, "path", ""), getattr(route, "methods", None) or ()
            names = [one for one in re.findall(r"{(\w+)}", path) if one != "person"]
            for method in sorted(methods - {"HEAD"}) if names else ():
                body = BODIES.get(path, {}) if method == "POST" else None
                if path.endswith("/share"):
                    body = {"store": mine["store"], "path": "/stolen.md"}
                elif path.endswith("/extract"):
                    body = {"store": mine["store"]}
                same(method, path.replace("{person}", person), body, {name: theirs[name] for name in names})
                tried += 1
                if names[0] == "store" and len(names) > 1:  # what is in another store, through a store of one's own
                    inner = {name: theirs[name] for name in names[1:]}
                    same(method, path.replace("{store}", mine["store"]).replace("{person}", person), body, inner)
        assert tried > 25
        new = {"model": "embedded"}
        for wanted in (
            {"inputs": inputs("{store}", [mine["session"]]), **new},
            {"inputs": inputs(mine["store"], ["{session}"]), **new},
            {"inputs": inputs(mine["store"], [mine["session"]]), "output_behavior": update("{store}"), **new},
        ):
            same("POST", "/v1/dreams", wanted, theirs)
        share = f"/v1/reverie/memory_stores/{mine['store']}/memories/{mine['memory']}/share"
        same("POST", share, {"store": "{store}", "path": "/planted.md"}, theirs)
        same("POST", f"/v1/reverie/sessions/{mine['session']}/extract", {"store": "{store}"}, theirs)
        same("POST", "/v1/reverie/recall", {"query": "kiwi", "memory_store_ids": ["{store}"]}, theirs)
        for scope in (f"user:{served.ids['anna']}", f"organisation:{served.ids['other organisation']}x"):
            same("POST", "/v1/reverie/memory_stores", {"name": "x", "scope": scope, "if_missing": True}, {})
            same("GET", f"/v1/reverie/memory_stores?scope={scope}", None, {})
            same("POST", f"/v1/reverie/sessions?scope={scope}", {}, {})
        assert state(served) == before
