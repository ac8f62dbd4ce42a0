"""Running dreams: canceled, over budget, by themselves after writes; a simulated vendor answers, or never does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anthropic
import pytest

from tests.integration.server.conftest import Served, client
from tests.integration.server.dreams.setup import (
    StartWorker,
    call,
    contents,
    fill,
    inputs,
    query,
    update,
    wait,
)

pytestmark = pytest.mark.integration
MODEL = "anthropic:claude-sonnet-5-5"


class SilentVendor:
    """A server that takes requests and never answers; it knows when the client has hung up."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.asked, self.hung_up = threading.Event(), threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def env(self) -> dict[str, str]:
        port = self.listener.getsockname()[1]
        return {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "k"}

    def _serve(self) -> None:
        connection, _ = self.listener.accept()
        with connection:
            data = connection.recv(65_536)
            self.asked.set()
            while data:
                data = connection.recv(65_536)
            self.hung_up.set()


@pytest.fixture
def vendor(tmp_path: Path) -> Iterator[dict[str, str]]:
    """`reverie simulate` with a dream of three requests: what a worker needs to use it."""
    script = tmp_path / "dream.script"
    script.write_text(
        '[*]\ncall Glob {"pattern": "*.md"}\n---\ncall Glob {"pattern": "*.md"}\n---\nsay All is in order.\n'
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "reverie", "simulate", "--port", str(port), "--script", str(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(tmp_path), "REVERIE_HOME": str(tmp_path / "simulated")},
    )
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.1)
    yield {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "simulated"}
    process.kill()
    process.wait()


def test_a_running_dream_is_canceled_with_its_request(served: Served, start_worker: StartWorker) -> None:
    dreams, vendor = client(served, served.anna).beta.dreams, SilentVendor()
    store, sessions = fill(served, served.anna)
    before = contents(served, served.anna, store)
    made = dreams.create(inputs=inputs(store, sessions), model=MODEL, output_behavior=update(store))
    start_worker(env=vendor.env)
    assert vendor.asked.wait(60) and dreams.retrieve(made.id).status == "running"
    assert dreams.cancel(made.id).status == "canceled"
    assert vendor.hung_up.wait(20) and contents(served, served.anna, store) == before
    again = None
    until = time.monotonic() + 20
    while again is None:  # 409 until it has fully stopped
        with suppress(anthropic.ConflictError):
            again = dreams.create(inputs=inputs(store, sessions), model="embedded", output_behavior=update(store))
        assert time.monotonic() < until
    assert wait(served, served.anna, again.id).status == "completed"
    with pytest.raises(anthropic.BadRequestError, match="completed already"):
        dreams.cancel(again.id)


@pytest.mark.parametrize(
    ("scope", "payers", "another"),
    [
        ("team:core", "teams", "user"),
        ("user", "people", "organisation"),
        ("organisation", "organisations", "user"),
        ("project:shop", "organisations", "user"),
    ],
)
def test_a_dream_stays_in_the_budget_of_who_pays(
    served: Served, start_worker: StartWorker, vendor: dict[str, str], scope: str, payers: str, another: str
) -> None:
    dreams = client(served, served.anna).beta.dreams
    store, sessions = fill(served, served.anna, scope=scope)
    limits = query(served.dsn, "select distinct dream_budget from people union select dream_budget from organisations")
    assert sorted(map(float, (row[0] for row in limits))) == [10, 100], "nobody begins without one"
    query(served.dsn, "update teams set dream_budget = 100")
    start_worker(env=vendor)
    paid = wait(served, served.anna, dreams.create(inputs=inputs(store, sessions), model=MODEL).id)
    assert paid.usage.output_tokens > 0 and paid.cost_usd > 0
    for rest, is_asked in ((0.0002, True), (0, False)):  # used up in between, then from the beginning
        sql = f"update {payers} set dream_budget = (select floor(sum(cost) * 1e4) from dreams) / 1e4 + %s"
        query(served.dsn, sql, rest)
        stopped = wait(served, served.anna, dreams.create(inputs=inputs(store, sessions), model=MODEL).id)
        assert (stopped.status, stopped.error.type) == ("failed", "budget_exceeded"), (paid.usage, stopped)
        assert (stopped.usage.output_tokens > 0, stopped.attempt) == (is_asked, 1)
        assert stopped.usage.output_tokens < paid.usage.output_tokens
    other, _ = fill(served, served.anna, scope=another)  # somebody else pays
    own = wait(served, served.anna, dreams.create(inputs=inputs(other, sessions), model="embedded").id)
    assert own.status == "completed"


def test_a_model_without_a_key_is_an_error_at_once(served: Served, start_worker: StartWorker) -> None:
    dreams = client(served, served.anna).beta.dreams
    store, sessions = fill(served, served.anna)
    start_worker(env={"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_BASE_URL": ""})
    failed = wait(served, served.anna, dreams.create(inputs=inputs(store, sessions), model=MODEL).id)
    assert (failed.status, failed.error.type, failed.attempt) == ("failed", "model_error", 1), failed.error
    late = dreams.create(inputs=inputs(store, sessions), model="embedded")
    client(served, served.anna).beta.memory_stores.archive(store)
    assert wait(served, served.anna, late.id).error.type == "memory_store_unavailable"


def test_a_store_dreams_by_itself_once_after_many_writes(served: Served, start_worker: StartWorker) -> None:
    dreams = client(served, served.anna).beta.dreams
    store, _ = fill(served, served.anna)
    before = contents(served, served.anna, store)
    start_worker()
    at = f"/v1/reverie/memory_stores/{store}/dreaming"
    assert call(served, served.anna, "GET", at)["automatic"] is False
    wanted = {"automatic": True, "quiet_seconds": 2, "least_changes": 3}
    assert call(served, served.anna, "POST", at, wanted)["quiet_seconds"] == 2
    until = time.monotonic() + 60
    while not (found := list(dreams.list())):
        assert time.monotonic() < until
        time.sleep(0.3)
    assert wait(served, served.anna, found[0].id).status == "completed" and found[0].is_automatic
    assert contents(served, served.anna, store) != before
    time.sleep(5)  # its own changes are no reason for another one
    assert [one.id for one in dreams.list()] == [found[0].id]


def test_only_administrators_set_how_all_stores_dream(served: Served) -> None:
    changed = call(served, served.anna, "POST", "/v1/reverie/dreaming", {"review": True})
    assert changed["review"] is True and call(served, served.ben, "GET", "/v1/reverie/dreaming") == changed
    assert call(served, served.eve, "GET", "/v1/reverie/dreaming")["review"] is False
    with pytest.raises(OSError, match="403"):
        call(served, served.ben, "POST", "/v1/reverie/dreaming", {"review": False})
    for wrong in ({"quiet_seconds": -1}, {"automatic": "yes"}, {"model": "command:x"}, {"nothing": 1}):
        with pytest.raises(OSError, match="400"):
            call(served, served.anna, "POST", "/v1/reverie/dreaming", wrong)
