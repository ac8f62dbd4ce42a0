"""What the published API lacks: who I am, stores by scope and purpose, projects, the change feed, sharing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.server.asking import ask
from tests.integration.server.conftest import Served

pytestmark = pytest.mark.integration
STORES = "/v1/reverie/memory_stores"


@pytest.fixture
def served(shared: Served) -> Served:
    return shared


def made(served: Served, token: str, path: str, body: Any, **headers: str) -> Any:
    status, answer = ask(served, token, "POST", path, body, **headers)
    assert status == 200, answer
    return answer


def test_me(served: Served) -> None:
    ids = served.ids
    answer = ask(served, served.anna, "GET", "/v1/reverie/me")[1]
    assert answer["person"] == {"id": ids["anna"], "name": "anna", "kind": "person", "is_admin": True}
    assert answer["organisation"] == {"id": ids["organisation"], "name": "ours"}
    assert {"scope": f"team:{ids['team']}", "kind": "team", "id": ids["team"], "name": "core"} in answer["scopes"]
    kinds = [one["kind"] for one in ask(served, served.eve, "GET", "/v1/reverie/me")[1]["scopes"]]
    assert kinds == ["user", "organisation"]


def test_one_store_per_scope_and_purpose(served: Served) -> None:
    body = {"name": "Shop", "scope": "project:shop", "purpose": "p", "if_missing": True}
    with ThreadPoolExecutor(8) as pool:
        tokens = [served.anna, served.ben] * 4
        found = list(pool.map(lambda token: made(served, token, STORES, body)["id"], tokens))
    assert len(set(found)) == 1
    assert ask(served, served.anna, "POST", STORES, body | {"if_missing": False})[0] == 409
    assert ask(served, served.eve, "POST", STORES, body)[0] == 404  # no project of her organisation
    listed = ask(served, served.ben, "GET", f"{STORES}?scope=project:{served.ids['project']}&purpose=p")[1]["data"]
    assert [one["id"] for one in listed] == found[:1] and listed[0]["scope"] == f"project:{served.ids['project']}"
    team = made(served, served.anna, STORES, {"name": "T", "scope": "team:core"})
    assert ask(served, served.ben, "POST", STORES, {"name": "T", "scope": "team:core"})[0] == 403
    assert ask(served, served.ben, "GET", f"/v1/memory_stores/{team['id']}")[0] == 404
    ours = made(served, served.anna, STORES, {"name": "All", "scope": "organisation"})
    assert ask(served, served.ben, "GET", f"/v1/memory_stores/{ours['id']}")[0] == 200
    assert ask(served, served.eve, "GET", f"/v1/memory_stores/{ours['id']}")[0] == 404
    mine = made(served, served.anna, STORES, {"name": "Mine", "purpose": "shop"})
    assert mine["scope"] == f"user:{served.ids['anna']}" and mine["purpose"] == "shop"
    foreign = (f"user:{served.ids['ben']}", f"organisation:{served.ids['other organisation']}", "planet:earth", "team:")
    for scope in foreign:
        assert ask(served, served.anna, "POST", STORES, {"name": "x", "scope": scope})[0] == 400, scope
    ask(served, served.anna, "POST", f"/v1/memory_stores/{mine['id']}/archive")
    again = made(served, served.anna, STORES, {"name": "Mine", "purpose": "shop", "if_missing": True})
    assert again["id"] != mine["id"]


def test_projects_are_founded_and_joined(served: Served) -> None:
    at, name = "/v1/reverie/projects", "github.com/ours/web"
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda token: ask(served, token, "POST", at, {"name": name}), [served.ben] * 4))
    assert {status for status, _ in answers} == {200} and len({one["id"] for _, one in answers}) == 1
    assert [one["is_new"] for _, one in answers].count(True) == 1
    project = answers[0][1]
    assert ask(served, served.anna, "POST", at, {"name": name})[0] == 403
    theirs = made(served, served.eve, at, {"name": name})
    assert theirs["id"] != project["id"] and theirs["is_new"]
    members = f"{at}/{project['id']}/members"
    assert ask(served, served.eve, "POST", members, {"person": "eve"})[0] == 404
    assert ask(served, served.ben, "POST", members, {"person": "eve"})[0] == 404
    assert ask(served, served.ben, "POST", members, {"person": served.ids["eve"]})[0] == 404
    store = made(served, served.ben, STORES, {"name": "web", "scope": f"project:{name}"})["id"]
    assert ask(served, served.anna, "GET", f"/v1/memory_stores/{store}")[0] == 404
    assert made(served, served.ben, members, {"person": "anna"})["person"]["id"] == served.ids["anna"]
    assert ask(served, served.anna, "GET", f"/v1/memory_stores/{store}")[0] == 200
    assert ask(served, served.ben, "DELETE", f"{members}/anna")[0] == 200
    assert ask(served, served.anna, "GET", f"/v1/memory_stores/{store}")[0] == 404
    assert made(served, served.anna, members, {"person": "anna"})  # she is an administrator
    actions = audit_of(served)
    assert ("add member", f"{project['id']} {served.ids['anna']}", served.ids["ben"]) in actions
    assert ("remove member", f"{project['id']} {served.ids['anna']}", served.ids["ben"]) in actions
    for wrong in ({"name": ""}, {"name": "a\nb"}, {"name": 7}, {}, {"name": "x" * 256}):
        assert ask(served, served.anna, "POST", at, wrong)[0] == 400, wrong


def test_the_change_feed_tells_everything_once(served: Served) -> None:
    store = made(served, served.anna, STORES, {"name": "feed", "purpose": "feed"})["id"]
    at, feed = f"/v1/memory_stores/{store}/memories", f"{STORES}/{store}/changes"
    assert ask(served, served.anna, "GET", feed)[1] == {"data": [], "last": 0, "has_more": False}
    one = made(served, served.anna, at, {"path": "/a", "content": "1"})["id"]
    two = made(served, served.anna, at, {"path": "/b", "content": "2"}, reason="because", session="sesn_9")["id"]
    made(served, served.anna, f"{at}/{one}", {"content": "3", "path": "/c"})
    ask(served, served.anna, "DELETE", f"{at}/{two}")
    answer = ask(served, served.anna, "GET", feed)[1]
    assert [(x["number"], x["operation"], x["path"], x["content"]) for x in answer["data"]] == [
        (1, "created", "/a", None),  # not what the memory shows any more
        (2, "created", "/b", None),
        (3, "modified", "/c", "3"),
        (4, "deleted", "/b", None),
    ]
    assert answer["last"] == 4 and answer["data"][1]["reason"] == "because" and not answer["has_more"]
    page = ask(served, served.anna, "GET", f"{feed}?after=1&limit=1")[1]
    assert [x["number"] for x in page["data"]] == [2] and page["last"] == 2 and page["has_more"]
    assert ask(served, served.anna, "GET", f"{feed}?after=4")[1] == {"data": [], "last": 4, "has_more": False}
    assert ask(served, served.anna, "GET", f"{feed}?after=900")[1]["last"] == 4
    assert ask(served, served.ben, "GET", feed)[0] == 404
    for wrong in ("after=-1", "after=x", f"after={2**63}", "limit=0"):
        assert ask(served, served.anna, "GET", f"{feed}?{wrong}")[0] == 400, wrong
    for number in range(44):
        made(served, served.anna, at, {"path": f"/large/{number}", "content": "word\n" * 20_000})
    seen, after = list[int](), 0
    while True:
        answer = ask(served, served.anna, "GET", f"{feed}?after={after}&limit=100")[1]
        seen += [x["number"] for x in answer["data"]]
        assert sum(len(x["content"] or "") for x in answer["data"]) < 4_200_000
        after = answer["last"]
        if not answer["has_more"]:
            break
    assert seen == list(range(1, 49))


def test_sharing_copies_and_says_from_where(served: Served) -> None:
    private = made(served, served.anna, STORES, {"name": "p", "purpose": "share"})["id"]
    shared = made(served, served.anna, STORES, {"name": "s", "scope": "project:shop", "purpose": "share"})["id"]
    at, there = f"/v1/memory_stores/{private}/memories", f"/v1/memory_stores/{shared}/memories"
    one = made(served, served.anna, at, {"path": "/a.md", "content": "1"})
    share = f"{STORES}/{private}/memories/{one['id']}/share"
    copy = made(served, served.anna, share, {"store": shared})
    assert (copy["path"], copy["memory_store_id"], copy["content_sha256"]) == ("/a.md", shared, one["content_sha256"])
    path = f"/v1/memory_stores/{shared}/memory_versions/{copy['memory_version_id']}"
    assert ask(served, served.ben, "GET", path)[1]["copied_from"] == {"scope": "user"}  # he does not see the source
    version = ask(served, served.anna, "GET", path)
    assert version[1]["copied_from"] == {
        "scope": "user",
        "memory_store_id": private,
        "memory_id": one["id"],
        "memory_version_id": one["memory_version_id"],
    }
    assert version[1]["created_by"] == {"type": "user_actor", "user_id": served.ids["anna"]}
    assert made(served, served.anna, share, {"store": shared}) == copy  # once more changes nothing
    made(served, served.anna, f"{at}/{one['id']}", {"content": "2"})
    assert made(served, served.anna, share, {"store": shared})["id"] == copy["id"]  # nobody changed the copy
    made(served, served.ben, f"{there}/{copy['id']}", {"content": "Ben's words"})
    made(served, served.anna, f"{at}/{one['id']}", {"content": "3"})
    assert ask(served, served.anna, "POST", share, {"store": shared})[0] == 409
    assert made(served, served.anna, share, {"store": shared, "path": "/b.md"})["path"] == "/b.md"
    by_session = made(served, served.anna, share, {"store": shared, "path": "/c.md"}, session="sesn_1")
    assert by_session["trust"] == "inferred"
    assert ask(served, served.ben, "POST", share, {"store": shared})[0] == 404
    bens = made(served, served.ben, STORES, {"name": "b", "purpose": "share"})["id"]
    for target in (bens, "memstore_x", "\x00"):
        assert ask(served, served.anna, "POST", share, {"store": target})[0] in (400, 404)
    assert ("share memory", f"{one['id']} {shared}", served.ids["anna"]) in audit_of(served)


def test_deleting_a_store_is_in_the_audit(served: Served) -> None:
    store = made(served, served.ben, STORES, {"name": "x", "purpose": "gone"})["id"]
    made(served, served.ben, f"/v1/memory_stores/{store}/memories", {"path": "/a", "content": "1"})
    assert ask(served, served.ben, "DELETE", f"/v1/memory_stores/{store}")[0] == 200
    assert ("delete store", store, served.ids["ben"]) in audit_of(served)


def audit_of(served: Served) -> list[tuple[str, str, str]]:
    import psycopg

    with psycopg.connect(served.dsn) as connection:
        return connection.execute("select action, object, person_id from reverie.audit").fetchall()
