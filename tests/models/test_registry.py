"""From names to models: what is understood, and what is said about what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reverie import errors
from reverie.models.catalogue import Catalogue
from reverie.models.registry import (
    DEFAULT_ANTHROPIC,
    DEFAULT_OPENAI,
    ModelAccess,
    default_model_name,
    open_model,
    split_name,
)
from reverie.models.window import ONE_MILLION_BETA
from tests.models.canned import Canned, chunks, message, serve, text
from tests.models.requests import ask, request
from tests.waiting import LIMIT_S

KEYS = ModelAccess(anthropic_key="a", openai_key="o")
CATALOGUE = Catalogue.load()


@pytest.mark.parametrize(
    ("given", "provider", "model"),
    [
        ("anthropic:claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5"),
        ("claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5"),
        (" claude-opus-4-5-20251101 ", "anthropic", "claude-opus-4-5-20251101"),
        ("claude-tomorrow-9[1m]", "anthropic", "claude-tomorrow-9[1m]"),
        ("gpt-5.5", "openai", "gpt-5.5"),
        ("openai:llama3:8b", "openai", "llama3:8b"),
        ("scripted:/tmp/a b:c.script", "scripted", "/tmp/a b:c.script"),
        ("embedded", "embedded", "embedded"),
    ],
)
def test_names_are_split(given: str, provider: str, model: str) -> None:
    assert split_name(given, CATALOGUE) == (provider, model)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("claud-sonnet-5-5", "claude-sonnet-5-5"),
        ("antropic:claude-sonnet-5-5", "anthropic:<model>"),
        ("embeded", "embedded"),
        ("llama3:8b", "openai:<model>"),
        ("anthropic:", "anthropic:<model>"),
        ("", "embedded"),
    ],
)
def test_unknown_names_come_with_the_nearest(given: str, hint: str) -> None:
    with pytest.raises(errors.UnknownModel) as caught:
        open_model(given, KEYS, CATALOGUE)
    assert hint in str(caught.value) and repr(given) in str(caught.value)


def test_the_default_needs_no_key() -> None:
    assert default_model_name(ModelAccess()) == "embedded"
    assert default_model_name(ModelAccess(openai_key="o")) == DEFAULT_OPENAI
    assert default_model_name(KEYS) == default_model_name(ModelAccess(anthropic_token="t")) == DEFAULT_ANTHROPIC
    for name in (DEFAULT_ANTHROPIC, DEFAULT_OPENAI):
        assert CATALOGUE.facts(split_name(name, CATALOGUE)[1]).known
    assert open_model("embedded", ModelAccess(), CATALOGUE).name == "embedded"


@pytest.mark.parametrize(("name", "variable"), [("claude-opus-5", "ANTHROPIC_API_KEY"), ("gpt-5", "OPENAI_API_KEY")])
def test_a_missing_key_is_one_sentence(name: str, variable: str) -> None:
    with pytest.raises(errors.AuthenticationFailed, match=variable):
        open_model(name, ModelAccess(), CATALOGUE)


def test_keys_are_not_shown_by_accident() -> None:
    assert "secret" not in repr(ModelAccess(anthropic_key="secret", anthropic_token="secret", openai_key="secret"))


def test_what_the_catalogue_knows_becomes_capabilities() -> None:
    claude = open_model("claude-sonnet-5-5", KEYS, CATALOGUE).capabilities
    assert claude.cache_markers and claude.ttls == ("5m", "1h") and claude.context_edits and not claude.cache_edits
    local = ModelAccess(anthropic_base_url="http://127.0.0.1:1", cache_edits=True)
    other = open_model("anthropic:smollm", local, CATALOGUE).capabilities
    assert other.cache_markers and other.ttls == ("5m", "1h") and other.cache_edits
    assert not open_model("gpt-5", KEYS, CATALOGUE).capabilities.cache_markers


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_base_urls_are_taken_as_people_paste_them(suffix: str) -> None:
    with serve(Canned(message(text("ok")))) as server:
        access = ModelAccess(anthropic_base_url=server.url + suffix)
        ask(open_model("anthropic:any", access, CATALOGUE), request(model="any"))
    assert server.paths == ["/v1/messages"]
    with serve(Canned(chunks({"content": "ok"}))) as server:
        access = ModelAccess(openai_base_url=server.url + suffix)
        ask(open_model("openai:any", access, CATALOGUE), request(model="any"))
    assert server.paths == ["/v1/chat/completions"]


def test_a_token_and_the_long_window_travel_in_headers() -> None:
    with serve(Canned(message(text("ok")))) as server:
        access = ModelAccess(anthropic_token="tok", anthropic_base_url=server.url)
        long = next(name for name in CATALOGUE.names if CATALOGUE.facts(name).window_1m == "beta")
        ask(open_model(f"{long}[1m]", access, CATALOGUE), request(model=f"{long}[1m]"))
    assert server.headers[0]["authorization"] == "Bearer tok" and "x-api-key" not in server.headers[0]
    assert ONE_MILLION_BETA in server.headers[0]["anthropic-beta"]
    assert server.bodies[0]["model"] == long


def test_a_script_is_opened_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a.script"
    with pytest.raises(errors.UserError, match="cannot be read"):
        open_model(f"scripted:{path}", ModelAccess(), CATALOGUE)
    path.write_text("say hello")
    opened = open_model(f"scripted:{path}", ModelAccess(), CATALOGUE)
    assert opened.name == f"scripted:{path}"
    assert ask(opened, request())[1].content[0].wire()["text"] == "hello"


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, timeout=LIMIT_S)


@pytest.mark.parametrize(("name", "sdk"), [("claude-opus-5", "anthropic"), ("gpt-5", "openai")])
def test_a_missing_sdk_names_the_extra(name: str, sdk: str) -> None:
    done = run_python(
        "import importlib.util as u; found = u.find_spec\n"
        f"u.find_spec = lambda name, *more: None if name == '{sdk}' else found(name, *more)\n"
        "from reverie.models.registry import *; from reverie.models.catalogue import Catalogue\n"
        f"try: open_model('{name}', ModelAccess('a', openai_key='o'), Catalogue.load())\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    assert done.stdout.startswith("MissingExtra") and f"[{sdk}]" in done.stdout, done.stderr


def test_opening_a_model_does_not_wait_for_its_sdk() -> None:
    done = run_python(
        "import os, sys, threading\n"
        "from reverie.models.registry import *; from reverie.models.catalogue import Catalogue\n"
        "begun = threading.Event()\n"
        "class Gate:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'anthropic' and threading.current_thread() is not threading.main_thread():\n"
        "            begun.set(); threading.Event().wait()\n"
        "sys.meta_path.insert(0, Gate())\n"
        "open_model('claude-opus-5', ModelAccess('a'), Catalogue.load()); assert 'anthropic' not in sys.modules\n"
        "assert begun.wait(60); print('open', flush=True); os._exit(0)"
    )
    assert done.stdout == "open\n", "the import has begun, never ends, and nobody waits for it: " + done.stderr


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:99999", "http://127.0.0.1:abc", "http://local host:80", "http://", "ftp://x", "localhost:80"],
)
def test_an_address_that_leads_nowhere_is_refused_at_once_by_its_name(provider: str, url: str) -> None:
    access = ModelAccess(anthropic_base_url=url, openai_base_url=url)
    with pytest.raises(errors.UserError) as raised:
        open_model(f"{provider}:some-model", access, Catalogue.load(()))
    assert repr(url) in str(raised.value)


def test_a_password_in_a_bad_address_is_not_shown() -> None:
    access = ModelAccess(openai_base_url="http://me:hunter2@127.0.0.1:99999/v1?key=abc")
    with pytest.raises(errors.UserError) as raised:
        open_model("openai:x", access, Catalogue.load(()))
    assert "127.0.0.1:99999" in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert "abc" not in str(raised.value)
