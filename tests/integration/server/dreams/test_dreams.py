"""The dream resource of the anthropic SDK, unchanged, with real workers and the embedded mind."""

from __future__ import annotations

import anthropic
import pytest

from tests.integration.server.conftest import Served, client
from tests.integration.server.dreams.setup import (
    StartWorker,
    call,
    contents,
    fill,
    inputs,
    numbers,
    query,
    said,
    update,
    upload,
    wait,
)

pytestmark = pytest.mark.integration


def test_a_dream_lands_in_a_new_store(served: Served, start_worker: StartWorker) -> None:
    dreams = client(served, served.anna).beta.dreams
    store, sessions = fill(served, served.anna)
    before = contents(served, served.anna, store)
    made = dreams.create(inputs=inputs(store, sessions), model={"id": "embedded"}, instructions="Keep numbers.")
    assert made.id.startswith("drm_") and (made.status, made.outputs) == ("pending", [])
    assert (made.model.id, made.output_behavior.type, made.instructions) == ("embedded", "create_new", "Keep numbers.")
    start_worker()
    done = wait(served, served.anna, made.id)
    assert (done.status, done.error, len(done.outputs)) == ("completed", None, 1), done
    result = contents(served, served.anna, done.outputs[0].memory_store_id)
    assert contents(served, served.anna, store) == before and result != before and done.ended_at is not None
    found = call(served, served.anna, "GET", f"/v1/reverie/dreams/{made.id}/changes")["data"]
    assert found and all(one["state"] == "landed" and one["diff"] for one in found)
    assert numbers(served.dsn, done.outputs[0].memory_store_id) == list(range(1, len(result) + 1))


def test_a_dream_updates_its_store_and_can_be_undone(served: Served, start_worker: StartWorker) -> None:
    dreams = client(served, served.anna).beta.dreams
    store, sessions = fill(served, served.anna, scope="project:shop")
    before = contents(served, served.anna, store)
    made = dreams.create(inputs=inputs(store, sessions), model="embedded", output_behavior=update(store))
    with pytest.raises(anthropic.ConflictError):
        dreams.create(inputs=inputs(store, sessions), model="embedded", output_behavior=update(store))
    start_worker()
    done = wait(served, served.ben, made.id)  # a member of the project sees it too
    assert done.status == "completed" and done.outputs[0].memory_store_id == store, done
    after = contents(served, served.anna, store)
    assert after != before
    versions = list(client(served, served.anna).beta.memory_stores.memory_versions.list(store))
    dreamt = [one for one in versions if one.reason == f"dream {made.id}"]
    assert dreamt and all(one.created_by.type == "session_actor" for one in dreamt)
    undone = call(served, served.anna, "POST", f"/v1/reverie/dreams/{made.id}/undo", {})
    assert (undone["review"], undone["left"]) == ("undone", []) and contents(served, served.anna, store) == before
    assert numbers(served.dsn, store) == list(range(1, len(versions) + len(dreamt) + 1))
    with pytest.raises(OSError, match="400"):
        call(served, served.anna, "POST", f"/v1/reverie/dreams/{made.id}/undo", {})


def test_a_memory_that_changed_meanwhile_is_left_alone(served: Served, start_worker: StartWorker) -> None:
    api = client(served, served.anna).beta
    store, sessions = fill(served, served.anna)
    before = contents(served, served.anna, store)
    made = api.dreams.create(
        inputs=inputs(store, sessions), model="embedded", output_behavior=update(store), extra_body={"review": True}
    )
    start_worker()
    done = wait(served, served.anna, made.id)
    proposal = done.outputs[0].memory_store_id
    assert (done.review, proposal == store) == ("pending", False) and contents(served, served.anna, store) == before
    changes = call(served, served.anna, "GET", f"/v1/reverie/dreams/{made.id}/changes")["data"]
    touched = next(one["path"] for one in changes if one["operation"] == "modified" and "MEMORY" not in one["path"])
    mine = next(one for one in api.memory_stores.memories.list(store) if one.path == touched)
    api.memory_stores.memories.update(mine.id, memory_store_id=store, content="---\nname: mine\n---\n\nMine now.\n")
    landed = call(served, served.anna, "POST", f"/v1/reverie/dreams/{made.id}/land", {})
    assert landed["review"] == "landed" and landed["outputs"][0]["memory_store_id"] == store
    assert touched in [one["path"] for one in landed["left"]]
    now, wanted = contents(served, served.anna, store), contents(served, served.anna, proposal)
    assert now[touched].endswith("Mine now.\n")
    others = [one["path"] for one in changes if one["path"] not in [left["path"] for left in landed["left"]]]
    assert all(now.get(path) == wanted.get(path) for path in others if "MEMORY" not in path)
    assert numbers(served.dsn, store) == list(range(1, len(numbers(served.dsn, store)) + 1))


def test_a_proposal_can_be_discarded(served: Served, start_worker: StartWorker) -> None:
    dreams = client(served, served.anna).beta.dreams
    store, sessions = fill(served, served.anna)
    before = contents(served, served.anna, store)
    call(served, served.anna, "POST", f"/v1/reverie/memory_stores/{store}/dreaming", {"review": True})
    made = dreams.create(inputs=inputs(store, sessions), model="embedded", output_behavior=update(store))
    start_worker()
    proposal = wait(served, served.anna, made.id).outputs[0].memory_store_id
    dropped = call(served, served.anna, "POST", f"/v1/reverie/dreams/{made.id}/discard", {})
    assert (dropped["review"], dropped["outputs"]) == ("discarded", [])
    assert contents(served, served.anna, store) == before
    with pytest.raises(anthropic.NotFoundError):
        client(served, served.anna).beta.memory_stores.retrieve(proposal)
    with pytest.raises(OSError, match="400"):
        call(served, served.anna, "POST", f"/v1/reverie/dreams/{made.id}/land", {})


def test_dreams_are_listed_archived_and_canceled(served: Served) -> None:
    dreams = client(served, served.anna).beta.dreams
    store = client(served, served.anna).beta.memory_stores.create(name="s").id
    session = upload(served, served.anna, said("Tea at four."))
    made = [dreams.create(inputs=inputs(store, [session]), model="claude-sonnet-5-5") for _ in range(4)]
    assert [one.id for one in dreams.list(limit=3)] == [one.id for one in made[::-1]]
    assert [one.id for one in dreams.list(created_at_gt=made[1].created_at)] == [made[3].id, made[2].id]
    assert [one.id for one in dreams.list(created_at_lt=made[1].created_at)] == [made[0].id]
    with pytest.raises(anthropic.BadRequestError, match="cancel it first"):
        dreams.archive(made[0].id)
    stopped = dreams.cancel(made[0].id)
    assert stopped.status == "canceled" and stopped.ended_at and dreams.cancel(made[0].id).ended_at == stopped.ended_at
    assert [one.id for one in dreams.list(statuses=["canceled"])] == [made[0].id]
    assert len(list(dreams.list(statuses=["canceled", "pending"]))) == 4
    archived = dreams.archive(made[0].id)
    assert archived.archived_at and dreams.archive(made[0].id).archived_at == archived.archived_at
    assert len(list(dreams.list())) == 3 and len(list(dreams.list(include_archived=True))) == 4
    assert dreams.retrieve(made[0].id).status == "canceled"
    for token in (served.ben, served.eve):
        others = client(served, token).beta.dreams
        assert list(others.list()) == []
        for act in (others.retrieve, others.archive, others.cancel):
            with pytest.raises(anthropic.NotFoundError):
                act(made[1].id)
    assert query(served.dsn, "select count(*) from dreams d join procrastinate_jobs j on j.id = d.job_id")[0] == (4,)


def test_a_wrong_dream_is_refused(served: Served) -> None:
    dreams = client(served, served.anna).beta.dreams
    store = client(served, served.anna).beta.memory_stores.create(name="s").id
    foreign = client(served, served.ben).beta.memory_stores.create(name="b").id
    session, theirs = upload(served, served.anna, said("Tea.")), upload(served, served.ben, said("Coffee."))
    good = inputs(store, [session])
    for wrong in (
        {"inputs": good[:1]},
        {"inputs": [*good, good[0]]},
        {"inputs": inputs(store, [])},
        {"inputs": inputs(store, [session, session])},
        {"inputs": inputs(store, [f"sesn_{number}" for number in range(101)])},
        {"instructions": "x" * 4_097},
        {"instructions": ""},
        {"model": "no-such-model"},
        {"model": "command:/bin/sh"},
        {"model": "scripted:/etc/passwd"},
        {"model": {"id": "embedded", "speed": "fast"}},
        {"output_behavior": update(foreign)},
        {"output_behavior": {"type": "elsewhere"}},
        {"extra_body": {"review": True}},
    ):
        given = {"inputs": good, "model": "embedded", **wrong}
        with pytest.raises(anthropic.BadRequestError):
            dreams.create(**given)
    for missing in (inputs(foreign, [session]), inputs(store, [theirs])):
        with pytest.raises(anthropic.NotFoundError):
            dreams.create(inputs=missing, model="embedded")
    client(served, served.anna).beta.memory_stores.archive(store)
    with pytest.raises(anthropic.BadRequestError, match="archived"):
        dreams.create(inputs=good, model="embedded")
    assert query(served.dsn, "select count(*) from procrastinate_jobs")[0] == (0,)


def test_requests_cannot_reach_the_queue(served: Served) -> None:
    import psycopg

    with psycopg.connect(served.dsn, options="-c search_path=reverie,procrastinate", autocommit=True) as connection:
        connection.execute("set role reverie_app")
        for sql in ("select queue_dream('x', 'y', null, null)", "select * from procrastinate.procrastinate_jobs"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(sql.encode())
