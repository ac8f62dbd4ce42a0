"""Uploaded sessions, and memories that the server takes from them."""

from __future__ import annotations

import gzip
import json
import time

import anthropic
import pytest

from tests.integration.server.conftest import Served, client
from tests.integration.server.dreams.setup import CASES, StartWorker, call, contents, query, said, upload

pytestmark = pytest.mark.integration
AT = "/v1/reverie/sessions"


def test_a_session_is_uploaded_shown_and_deleted(served: Served) -> None:
    ours = upload(served, served.anna, next((CASES / "kitchen-copies" / "transcripts").glob("*.jsonl")), packed=False)
    theirs = upload(served, served.anna, said("The build runs on Fridays."))
    shown = call(served, served.anna, "GET", f"{AT}/{theirs}")
    assert (shown["format"], shown["records"], shown["scope"]) == ("claude_code", 2, f"user:{served.ids['anna']}")
    assert "content" not in json.dumps(shown) and "Fridays" not in json.dumps(shown)
    assert [one["id"] for one in call(served, served.anna, "GET", AT)["data"]] == [theirs, ours]
    for token in (served.ben, served.eve):
        for method in ("GET", "DELETE"):
            with pytest.raises(OSError, match="404"):
                call(served, token, method, f"{AT}/{ours}")
    assert call(served, served.anna, "DELETE", f"{AT}/{ours}") == {"type": "session_deleted", "id": ours}
    with pytest.raises(OSError, match="404"):
        call(served, served.anna, "GET", f"{AT}/{ours}")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", "400"),
        (b"hello", "400"),
        (b"[1]\n[2]", "400"),
        (b'{"type": "summary"}', "400"),
        (b'{"type": "user"}\nbroken\n{"type": "user"}', "400"),
        (gzip.compress(b"{}")[:-9], "400"),
        (b"\x1f\x8bno", "400"),
        (gzip.compress(b" " * 65_000_000), "413"),
        (b"\xff\xfe{", "400"),
    ],
)
def test_a_wrong_upload_is_refused(served: Served, sent: bytes, status: str) -> None:
    with pytest.raises(OSError, match=status):
        call(served, served.anna, "POST", AT, raw=sent)


def test_parts_that_gzip_joined_are_one_session(served: Served) -> None:
    """`cat one.gz two.gz` is what `gzip` unpacks to both."""
    lines = [gzip.compress(json.dumps(line).encode() + b"\n") for line in said("Tea.")]
    done = call(served, served.anna, "POST", AT, raw=b"".join(lines))
    assert (done["records"], done["size_bytes"]) == (2, len(gzip.decompress(b"".join(lines))))
    with pytest.raises(OSError, match="400"):
        call(served, served.anna, "POST", AT, raw=lines[0] + lines[1][:-9])
    with pytest.raises(OSError, match="413"):
        call(served, served.anna, "POST", AT, raw=lines[0] + gzip.compress(b" " * 8_000_000) * 9)


def test_the_end_of_a_session_may_be_missing(served: Served) -> None:
    data = "\n".join(map(json.dumps, said("Tea."))).encode() + b'\n{"type": "us'
    assert call(served, served.anna, "POST", AT, raw=data)["records"] == 2


def test_memories_are_extracted_on_the_server(served: Served, start_worker: StartWorker) -> None:
    store = client(served, served.anna).beta.memory_stores.create(name="s").id
    talk = said("Please remember: the staging server is restarted on Mondays by Ann.")
    session = upload(served, served.anna, talk)
    made = call(served, served.anna, "POST", f"{AT}/{session}/extract", {"store": store})
    at = f"/v1/reverie/extractions/{made['id']}"
    assert (made["type"], made["status"]) == ("extraction", "pending")
    start_worker()
    until = time.monotonic() + 60
    while (done := call(served, served.anna, "GET", at))["status"] in ("pending", "running"):
        assert time.monotonic() < until
        time.sleep(0.2)
    found = contents(served, served.anna, store)
    assert done["status"] == "completed" and any("Mondays" in text for text in found.values()), (done, found)
    versions = list(client(served, served.anna).beta.memory_stores.memory_versions.list(store))
    assert {(one.created_by.type, one.created_by.session_id) for one in versions} == {("session_actor", session)}
    assert query(served.dsn, "select distinct trust from memories where path not like '%%MEMORY.md'") == [("inferred",)]
    assert list(client(served, served.anna).beta.dreams.list()) == []
    with pytest.raises(anthropic.NotFoundError):
        client(served, served.anna).beta.dreams.retrieve(made["id"])
    assert call(served, served.anna, "POST", f"{at}/undo", {})["left"] == []
    assert contents(served, served.anna, store) == {}
