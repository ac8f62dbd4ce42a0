"""Models through a vendor's SDK: loads it in the background, streams a request, and converts its errors.

An SDK takes seconds to import. The import starts in a thread when a model is opened; the first request waits for it.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import re
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, ClassVar, Protocol, cast
from urllib.parse import urlsplit, urlunsplit

from reverie import errors
from reverie.errors import MissingExtra
from reverie.models.base import PURPOSE_HEADER, Capabilities, Finished, ModelEvent, Request, Response
from reverie.models.server_errors import ServerRefusal, model_error
from reverie.paths.installed import pip_install
from reverie.types import JsonObject

_LIST_S = 3.0
_WINDOW_KEYS = ("max_model_len", "n_ctx", "loaded_context_length", "context_length", "context_window", "n_ctx_train")
"""What servers call the window in their list of models, the most exact first."""

_HTTP_LIBRARIES = ("httpx2", "httpx")
"""What the SDKs use, the newer one first."""


class StreamedAnswer(Protocol):
    """Builds a response from the events of a stream."""

    request_id: str | None

    @property
    def ended(self) -> bool: ...

    def take(self, event: JsonObject) -> Iterable[ModelEvent]: ...

    def response(self) -> Response: ...


class SdkModel:
    """One model at one endpoint, through a vendor's SDK. It does not read the environment."""

    vendor: ClassVar[str]
    """The name of the module, and the prefix of the model's name."""
    setting: ClassVar[str]
    """The setting with the address."""
    id_header: ClassVar[str]

    def __init__(
        self, model: str, url: str, client: str, keys: JsonObject, timeout_s: float, capabilities: Capabilities
    ) -> None:
        """Starts the import of the SDK. Raises `MissingExtra` if it is not installed.

        `client` is the SDK's class. `keys` are always passed, or the SDK would look for some itself.
        """
        vendor = self.vendor
        if importlib.util.find_spec(vendor) is None:
            raise MissingExtra(f"The {vendor} SDK is not installed; install it with: {pip_install(vendor)}")
        self.name = f"{vendor}:{model}"
        self.capabilities = capabilities
        self._model, self._url = model, url
        self._client_class, self._keys, self._timeout_s = client, keys, timeout_s
        self._module: Future[Any] = Future()
        self._module.set_running_or_notify_cancel()  # a request that is cancelled must not cancel the import
        self._client: tuple[asyncio.AbstractEventLoop, Any] | None = None
        threading.Thread(target=self._load, name=f"import {vendor}", daemon=True).start()

    def _load(self) -> None:
        name = self.vendor
        try:
            self._module.set_result(importlib.import_module(name))
        except ImportError as error:
            self._module.set_exception(
                MissingExtra(f"The {name} SDK cannot be loaded ({error}); reinstall it: {pip_install(name)}")
            )

    async def loaded(self) -> Any:
        """The SDK, when it is imported. A time limit for an answer begins after that."""
        return await asyncio.wrap_future(self._module)

    async def _connect(self) -> tuple[Any, Any]:
        """The module and a client of the running loop: a client belongs to one event loop."""
        module = await self.loaded()
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            timeout = module.Timeout(self._timeout_s, connect=min(30.0, self._timeout_s))
            http = module.DefaultAsyncHttpxClient(base_url=self._url, timeout=timeout, verify=_certificates())
            make = getattr(module, self._client_class)
            client = make(**self._keys, base_url=self._url, timeout=timeout, max_retries=0, http_client=http)
            self._client = (loop, client)
        return module, self._client[1]

    async def listed(self) -> bool | None:
        """Whether the server's list of models has this one; None if there is no list within seconds."""
        module, client = await self._connect()
        try:
            async with asyncio.timeout(_LIST_S):
                return any([each.id == self._model async for each in client.models.list()])
        except (module.APIError, *_transport_errors(), TimeoutError, ValueError):
            return None

    async def window(self) -> int | None:
        """The window that the server's list of models names for this one; None if it names none within seconds.

        A server with one model (llama.cpp) answers every name with it. Raises `NoConnection` if there is no server.
        """
        module, client = await self._connect()
        try:
            async with asyncio.timeout(_LIST_S):
                listed = [each.to_dict() async for each in client.models.list()]
        except module.APIConnectionError as error:
            raise errors.NoConnection(f"The server at {strip_secrets(self._url)} cannot be reached.") from error
        except (module.APIError, *_transport_errors(), TimeoutError, ValueError):
            return None
        meant = [one for one in listed if one.get("id") == self._model] or (listed if len(listed) == 1 else [])
        about = {key: value for one in meant for key, value in (*one.items(), *dict(one.get("meta") or {}).items())}
        return next((about[key] for key in _WINDOW_KEYS if isinstance(about.get(key), int) and about[key] > 0), None)

    async def close(self) -> None:
        """Closes the client of the running loop."""
        held, self._client = self._client, None
        if held and held[0] is asyncio.get_running_loop():
            await held[1].close()

    async def _stream(
        self, request: Request, create: Callable[[Any], Callable[..., Any]], body: JsonObject, answer: StreamedAnswer
    ) -> AsyncGenerator[ModelEvent, None]:
        """Sends a body by the method that `create` takes from the client, and yields the events of `answer`."""
        module, client = await self._connect()
        with map_errors(module, self._url, self.setting):
            send = partial(create(client), extra_headers=own_headers(self._url, request))
            opened = await open_stream(send, body)
            answer.request_id = opened.response.headers.get(self.id_header)
            async with opened as events:
                async for event in events:
                    for made in answer.take(cast(JsonObject, event.to_dict(warnings=False))):
                        yield made
        if not answer.ended:
            raise errors.Unreachable("The connection broke before the answer was complete.")
        yield Finished(answer.response())


@cache
def _certificates() -> Any:
    """What every client of this process trusts. A client that has to read the certificates itself takes 25 ms more."""
    library = next(sys.modules[name] for name in _HTTP_LIBRARIES if name in sys.modules)
    return library.create_ssl_context()


def own_headers(url: str, request: Request) -> dict[str, str]:
    """The headers with our purpose of a request, for servers on this machine only."""
    here = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    return {PURPOSE_HEADER: request.purpose.value} if here else {}


async def open_stream(create: Callable[..., Awaitable[Any]], body: JsonObject) -> Any:
    """Sends a body unchanged, without the SDK's typed parameters, which would rebuild every message.

    Text that is not Unicode (half a surrogate pair) cannot be sent; it becomes `?`.
    """
    try:
        return await create(stream=True, extra_body=body)
    except UnicodeEncodeError:
        return await create(
            stream=True, extra_body=json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
        )


def format_url(url: str) -> str:
    """An address to show: without a user, a password or a query, which can hold keys."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return strip_secrets(url)
    return urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), "", ""))


def strip_secrets(url: str) -> str:
    """An address that cannot be parsed, without parts that may be a password or a key."""
    return re.sub(r"^(\w+://)?.*@", r"\1", re.sub(r"[?#].*", "", url, flags=re.DOTALL), flags=re.DOTALL)


@contextmanager
def map_errors(module: Any, url: str, setting: str) -> Generator[None, None, None]:
    """Turns errors of the SDK and the connection into ours. Both SDKs use the same names for their errors.

    `setting`: the setting with the address, for the advice in the message.
    """
    where = format_url(url)
    try:
        yield
    except module.APIStatusError as error:
        refusal = ServerRefusal.read(error.status_code, error.body, error.response.headers, str(error))
        raise model_error(refusal) from error
    except module.APITimeoutError as error:
        if _is_transport(error.__cause__, "ConnectTimeout"):
            raise errors.NoConnection(
                f"The server at {where} cannot be reached (no connection in time). {_do(setting)}"
            ) from error
        raise errors.Unreachable(f"The server at {where} did not answer in time.") from error
    except (module.APIConnectionError, *_transport_errors()) as error:
        cause = error.__cause__ or error
        why = _why(cause)
        if _is_transport(cause, "UnsupportedProtocol"):
            raise errors.BadRequest(f"{where} is not an http:// or https:// address. {_do(setting)}") from error
        if _is_transport(cause, "ConnectError"):
            raise errors.NoConnection(f"The server at {where} cannot be reached ({why}). {_do(setting)}") from error
        raise errors.Unreachable(f"The connection to {where} broke: {why}.") from error
    except module.APIError as error:
        raise model_error(ServerRefusal.read(None, error.body, {}, str(error))) from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise errors.Unreachable(f"The server's answer cannot be read: {error}.") from error


def _why(error: BaseException) -> str:
    """The innermost cause with a message, such as `Connection refused`."""
    why, inner = str(error).rstrip(".") or type(error).__name__, error.__cause__ or error.__context__
    for _ in range(8):
        if isinstance(inner, BaseExceptionGroup):
            inner = cast("BaseExceptionGroup[BaseException]", inner).exceptions[0]
        if inner is None:
            break
        if isinstance(inner, OSError) and inner.strerror:
            why = os.strerror(inner.errno) if inner.errno and inner.errno > 0 else inner.strerror
        inner = inner.__cause__ or inner.__context__
    return why


def _do(setting: str) -> str:
    return f"Check the network, that the server runs, and that {setting} is its address."


def _transport_errors(name: str = "HTTPError") -> tuple[type[Exception], ...]:
    """The errors of this name in the HTTP libraries that the SDKs use; by default the class of all their errors."""
    return tuple(getattr(sys.modules[library], name) for library in _HTTP_LIBRARIES if library in sys.modules)


def _is_transport(error: BaseException | None, name: str) -> bool:
    return isinstance(error, _transport_errors(name))
