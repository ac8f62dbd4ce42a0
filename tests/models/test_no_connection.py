"""An address at which nobody answers is an error within seconds, which names the address and what to do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from reverie import errors
from reverie.models.base import Capabilities, Finished, ModelEvent, Request
from reverie.models.catalogue import Catalogue
from reverie.models.registry import ModelAccess, open_model
from reverie.models.sdk import format_url
from reverie.models.sending import Retry, RetryPolicy, send
from tests.models.requests import collect, person, request

NAMES = ("anthropic:claude-sonnet-5-5", "openai:gpt-5.5")


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def tried(name: str, url: str) -> tuple[errors.ModelError, float]:
    """The error, and how long the program waited between its attempts."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def run() -> errors.ModelError:
        access = ModelAccess(anthropic_key="sk-1", openai_key="sk-1", anthropic_base_url=url, openai_base_url=url)
        model = open_model(name, access, Catalogue.load())
        policy = RetryPolicy(random=lambda: 1.0, sleep=sleep)
        with pytest.raises(errors.ModelError) as caught:
            await collect(send(model, request(person("hi"), model=name), policy=policy))
        await model.close()
        return caught.value

    return asyncio.run(run()), sum(slept)


@pytest.mark.parametrize("name", NAMES)
def test_a_refused_connection_names_the_address_within_seconds(name: str) -> None:
    port = closed_port()
    error, waited = tried(name, f"http://me:secret@127.0.0.1:{port}")
    assert isinstance(error, errors.NoConnection) and waited <= 2
    assert f"http://127.0.0.1:{port}" in str(error) and "secret" not in str(error)
    assert f"{name.split(':')[0].upper()}_BASE_URL" in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_host_is_told_as_soon(name: str) -> None:
    error, waited = tried(name, "http://no-such-host.invalid:8080")
    assert isinstance(error, errors.NoConnection) and waited <= 2
    assert "http://no-such-host.invalid:8080" in str(error)


def test_what_is_shown_of_an_address_holds_no_secret() -> None:
    assert format_url("https://me:pw@host.example:8443/v1/?key=abc#x") == "https://host.example:8443/v1"
    assert format_url("http://[::1]:8787") == "http://[::1]:8787"
    assert "pw" not in format_url("http://me:pw@host:99999999/")


class Flaky:
    """Answers once with an error of a server, and then cannot be reached any more."""

    name = "flaky"
    capabilities = Capabilities()

    def __init__(self, *failures: errors.ModelError) -> None:
        self._failures = list(failures)

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        raise self._failures.pop(0)
        yield  # pyright: ignore[reportUnreachable]

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("first", [errors.Overloaded("busy"), errors.Unreachable("broke in the middle")])
def test_a_server_that_answered_is_waited_for_as_ever(first: errors.ModelError) -> None:
    slept: list[float] = []
    told: list[Retry] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def run() -> None:
        model = Flaky(first, *(errors.NoConnection("gone") for _ in range(8)))
        policy = RetryPolicy(random=lambda: 1.0, sleep=sleep)
        async for event in send(model, request(), policy=policy, on_retry=told.append):
            assert isinstance(event, Finished)

    with pytest.raises(errors.NoConnection):
        asyncio.run(run())
    assert slept == [1, 2, 4, 8, 16, 32, 60, 60]
