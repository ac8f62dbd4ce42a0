"""What changes between the request for a dream and its run: people leave, and stores get names that no disk has."""

from __future__ import annotations

import json

import pytest

from tests.integration.server.conftest import Served
from tests.integration.server.dreams.setup import StartWorker, call, contents, fill, inputs, query, said, update, wait

pytestmark = pytest.mark.integration


def test_a_dream_reads_only_what_its_owner_still_sees(served: Served, start_worker: StartWorker) -> None:
    data = "\n".join(map(json.dumps, said("The launch is on Friday."))).encode()
    team = call(served, served.anna, "POST", "/v1/reverie/sessions?scope=team:core", raw=data)["id"]
    first, own = fill(served, served.anna)
    body = {"inputs": inputs(first, [team]), "model": "embedded", "output_behavior": update(first)}
    refused = call(served, served.anna, "POST", "/v1/dreams", body)["id"]
    query(served.dsn, "delete from team_members where person_id = %s", served.ids["anna"])

    second, own = fill(served, served.anna)
    long = f"/{'x' * 300}.md"
    made = {"path": long, "content": "A name of 303 bytes."}
    call(served, served.anna, "POST", f"/v1/memory_stores/{second}/memories", made)
    body = {"inputs": inputs(second, own), "model": "embedded", "output_behavior": update(second)}
    fine = call(served, served.anna, "POST", "/v1/dreams", body)["id"]

    start_worker()
    ended = wait(served, served.anna, refused)
    assert (ended.status, ended.error.type) == ("failed", "session_unavailable")
    assert wait(served, served.anna, fine).status == "completed"
    assert contents(served, served.anna, second)[long] == made["content"]
