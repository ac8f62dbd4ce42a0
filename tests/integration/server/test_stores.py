"""The memory-store resource of the anthropic SDK, unchanged, over a real server."""

from __future__ import annotations

import anthropic
import pytest

from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration


def test_a_store_lives_from_creation_to_deletion(served: Served) -> None:
    stores = client(served, served.anna).beta.memory_stores
    made = stores.create(name="Shop", description="What we know", metadata={"a": "1", "b": "2"})
    assert made.id.startswith("memstore_") and made.archived_at is None and made.description == "What we know"
    changed = stores.update(made.id, name="Shop 2", metadata={"a": None, "c": "3"})
    assert (changed.name, changed.metadata, changed.description) == ("Shop 2", {"b": "2", "c": "3"}, "What we know")
    assert changed.updated_at > made.updated_at and stores.retrieve(made.id).name == "Shop 2"
    assert stores.archive(made.id).archived_at is not None
    with pytest.raises(anthropic.BadRequestError, match="archived"):
        stores.update(made.id, name="no")
    assert [one.id for one in stores.list()] == []
    assert [one.id for one in stores.list(include_archived=True)] == [made.id]
    assert stores.delete(made.id).type == "memory_store_deleted"
    with pytest.raises(anthropic.NotFoundError):
        stores.retrieve(made.id)


def test_lists_have_pages_newest_first(served: Served) -> None:
    stores = client(served, served.anna).beta.memory_stores
    made = [stores.create(name=f"s{number}").id for number in range(7)]
    assert [one.id for one in stores.list(limit=3)] == made[::-1]


def test_others_do_not_see_a_private_store(served: Served) -> None:
    made = client(served, served.anna).beta.memory_stores.create(name="mine")
    for token in (served.ben, served.eve):
        stores = client(served, token).beta.memory_stores
        assert list(stores.list()) == []
        for act in (stores.retrieve, stores.archive, stores.delete):
            with pytest.raises(anthropic.NotFoundError):
                act(made.id)


@pytest.mark.parametrize("token", ["rvt_wrong", "x" * 10_000])
def test_a_wrong_token_is_refused(served: Served, token: str) -> None:
    with pytest.raises(anthropic.AuthenticationError):
        client(served, token).beta.memory_stores.list()
