"""The proxy and the memory server between strangers: targets, credentials, answers, paths and uploads, made of seeds.

Never: a request reaches another server or leaves the path of the upstream; a byte that one client sent comes in a
request of another one; an answer takes memory out of proportion, or arrives changed; a file is written that a program
obeys; what was refused is stored, or what was acknowledged is not.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import posixpath
import random
import re
import socket
import unicodedata
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from reverie.server.dreams.checking import check_transcript
from reverie.server.gate import check_path
from reverie.server.wire import ApiError
from tests.attack.arena import Arena, in_child
from tests.proxy.proxied import Recorder, get, memory_kb, post, proxy, started
from tests.proxy.reader import OURS, PATHS
from tests.proxy.wild import chunked, wild

_STEPS = ("/", "//", "\\", "%2F", "%5c", "..", ".", "%2e", "%252e", "@", "%40", ":", ":80", "#", "?", ";", "%09", "%00")
_WORDS = ("v1", "messages", "x", "token", "reverie", "anthropic", "http:", "HTTPS:", "user", "localhost", "{}", "{}")
_NAMES = ("x-api-key", "authorization", "api-key", "cookie", "x-goog-api-key", "x-auth-token", "proxy-authorization")
_DOTS = (".", "．", "․", "…", "‥", "。", "%2e", "\u200b.", "\u00ad.", "\ufeff.", " .", "\u3000.", "\u0307.", "\u3164.")
_OBEYED = ("git/config", "GIT/hooks/pre-commit", "claude/settings.json", "env", "./x", "AGENTS.md", "Makefile", "x.md")
_GROWN_KB = 200_000
_MOST_CPU_S = 10.0
"""For one answer of any size; a tenth of a second is usual."""
_ANSWER = {"id": "m", "model": "m", "content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 5}}
Who = tuple[str, dict[str, str]]
"""The query and the headers of a client."""


def attack(arena: Arena) -> None:
    seed, sizes = arena.seed, {"targets": (60, 4_000), "owners": (3, 60), "answers": (3, 60), "paths": (300, 40_000)}
    works = {"targets": _targets, "owners": _owners, "answers": _answers, "paths": _paths, "uploads": _uploads}
    for name, work in works.items():
        count, folder = arena.count(*sizes.get(name, (3, 30))), arena.folder / name
        folder.mkdir()

        def run(name: str = name, work: Any = work, count: int = count, folder: Path = folder) -> None:
            os.environ.update({"HOME": str(folder), "REVERIE_HOME": str(folder)})
            for wrong in work(random.Random(f"{name} {seed}"), folder, count):
                print("WRONG", wrong)
            print("all judged")

        done = in_child(run, limit_s=300)
        arena.cases += count * done.out.endswith("all judged\n")
        for line in done.out.splitlines():
            if line.startswith("WRONG "):
                arena.judge(f"{name}: {line[6:900]}")
        arena.judge_ended(done, name)


def resolved(target: bytes) -> bytes:
    """The path of a target as the loosest of all servers reads it."""
    path, before = target.partition(b"?")[0], b""
    while path != before:
        path, before = unquote_to_bytes(path), path
    return posixpath.normpath(re.sub(rb";[^/]*", b"", path.replace(b"\\", b"/"))) + b"/"


def _targets(chance: random.Random, folder: Path, count: int) -> list[str]:
    upstream, other = list[list[bytes]](), list[list[bytes]]()
    reply, wrong = chunked(b"{}", kind="application/json"), list[str]()
    with (
        wild(reply, upstream) as to,
        wild(reply, other) as elsewhere,
        proxy(folder, f"http://user:hunter2@127.0.0.1:{urlsplit(to).port}/base", layers=()) as url,
    ):
        for _ in range(count):
            parts = chance.choices((*_STEPS, *_STEPS, *_WORDS), k=chance.randint(1, 9))
            start = chance.choice(("", "/", "/", "/", "http://"))
            target = (start + "".join(parts)).format(*[urlsplit(elsewhere).netloc] * parts.count("{}"))
            _send_line(url, f"{chance.choice(('GET', 'POST', 'OPTIONS', 'CONNECT'))} {target}", chance)
            wrong += [f"{target!r} reached another server"] * len(other)
            for head in upstream:
                if not resolved(head[0].split()[1]).startswith(b"/base/"):
                    wrong.append(f"{target!r} left the path of the upstream: {head[0]!r}")
            upstream.clear()
            other.clear()
        if get(url, "/reverie/stats")[0] != 200:
            wrong.append("the proxy does not answer at the end")
    return wrong


def _send_line(url: str, line: str, chance: random.Random) -> None:
    version = chance.choice(("1.1", "1.1", "1.0"))
    head = f"{line} HTTP/{version}\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=30) as connection:
        connection.sendall(head.encode())
        while connection.recv(65_536):
            pass


def _owners(chance: random.Random, folder: Path, count: int) -> list[str]:
    """Clients that say the same words and get the same answers; the model asks for ids and paths of everybody."""
    recorder, wrong = Recorder(), list[str]()
    with recorder.running() as to:
        for number in range(count):
            pair = [_credentials(chance, f"{number} a"), _credentials(chance, f"{number} b")]
            secrets = [f"only client {number} {who} knows this. " for who in "ab"]
            histories: list[list[Any]] = [[{"role": "user", "content": "Which port?"}] for _ in pair]
            with proxy(folder, to, layers=("1", "2", "4")) as url:  # a restart, every time
                for step in range(chance.randint(4, 9)):
                    who = chance.randrange(2) if step > 1 else step
                    before = len(recorder.bodies)
                    recorder.answers = _wants(chance, folder, len(histories[who]))
                    asked = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Long. " * 4_000}
                    tool = {"name": "look_up", "input_schema": {"type": "object"}}
                    came = post(
                        url,
                        PATHS["messages"] + pair[who][0],
                        {**asked, "tools": [tool], "messages": histories[who]},
                        **pair[who][1],
                    )
                    sent = b"".join([*recorder.bodies[before:], came[1]])
                    if secrets[1 - who].encode() in sent:
                        wrong.append(f"{pair[who]} got what {pair[1 - who]} said")
                    call = {"type": "tool_use", "id": f"toolu_{len(histories[who])}", "name": "look_up", "input": {}}
                    result = {"type": "tool_result", "tool_use_id": call["id"], "content": secrets[who] * 2_000}
                    histories[who] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
                if secrets[0].encode() in _kept_by_the_server(url, recorder, *pair, secrets[0]):
                    wrong.append(f"{pair[1]} got what the server keeps for {pair[0]}")
                if (clients := len(json.loads(get(url, "/reverie/stats")[1])["clients"])) != 2 * (number + 1):
                    wrong.append(f"{pair} and those before are {clients} clients")
    return wrong


def _kept_by_the_server(url: str, recorder: Recorder, alice: Who, bob: Who, secret: str) -> bytes:
    """What is sent and answered when one client goes on with the response of another one, and the model reads."""
    name = "look_up"

    def called(number: int, name: str, **given: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(given)}

    def answer(*item: Any, **given: str) -> bytes:
        usage = {"input_tokens": 5, "output_tokens": 5}
        output = [called(*item, **given)]
        return json.dumps({"id": f"r {secret}", "status": "completed", "output": output, "usage": usage}).encode()

    tool = {"type": "function", "name": name, "parameters": {"type": "object"}}
    items: list[Any] = [{"role": "user", "content": "Hi."}]
    body = {"model": "gpt-5", "instructions": "Long. " * 4_000, "tools": [tool], "input": items}
    recorder.answers = [answer(0, name), answer(1, name), answer(2, OURS, id="call_0.txt"), answer(3, name)]
    for number in range(2):
        post(url, PATHS["responses"] + alice[0], body, **alice[1])
        result = {"type": "function_call_output", "call_id": f"call_{number}", "output": secret * 2_000}
        items += [called(number, name), result]
    before = len(recorder.bodies)
    goes_on = {"previous_response_id": f"r {secret}", "input": "Go on."}
    came = post(url, PATHS["responses"] + bob[0], {**body, **goes_on}, **bob[1])[1]
    sent = [text.replace(f"r {secret}".encode(), b"") for text in (*recorder.bodies[before:], came)]
    return b"".join(sent)


def _credentials(chance: random.Random, value: str) -> Who:
    """The query and the headers of a client; every client has others."""
    if chance.random() < 0.2:
        name = chance.choice(("key", "api_key", "api%5Fkey", "access_token", "a=1;key"))
        return f"?{name}={value.replace(' ', '')}", {"x-api-key": "same"}
    names = chance.sample(_NAMES, chance.randint(1, 3))
    return "", {"x-api-key": "", **dict.fromkeys(names, "same"), names[0]: value}


def _wants(chance: random.Random, folder: Path, length: int) -> list[bytes]:
    """The answers of a model that first reads something that may be anybody's."""
    files = [path for path in folder.rglob("tool-results/*") if path.is_file()]
    call = {"type": "tool_use", "id": f"toolu_{length}", "name": "look_up", "input": {}}
    last = json.dumps({**_ANSWER, "content": [call], "stop_reason": "tool_use"}).encode()
    if not files or length < 3 or chance.random() < 0.5:
        return [last]
    file = chance.choice(files)
    forms = (
        file.name,
        str(file),
        f"../{file.parents[1].name}/tool-results/{file.name}",
        file.name + "/",
        f"./{file.name}",
    )
    reads = {"type": "tool_use", "id": "toolu_r", "name": OURS, "input": {"id": chance.choice(forms)}}
    return [json.dumps({**_ANSWER, "content": [reads], "stop_reason": "tool_use"}).encode(), last]


def _answers(chance: random.Random, folder: Path, count: int) -> list[str]:
    """Answers of a few kilobytes and a few hundred megabytes, plain, compressed and broken."""
    replies, wrong = list[Any](), list[str]()
    with wild(lambda line: replies.pop(0)(line)) as to, started(folder, to, 1) as (url, process):
        get(url, "/reverie/stats")
        for number in range(count):
            api = chance.choice(("messages", "messages", "chat", "responses"))
            kind, raw = _filling(chance)
            packed = chance.choice(
                (raw, gzip.compress(raw, 1), zlib.compress(raw, 1), gzip.compress(b"") + gzip.compress(raw, 1))
            )
            form = {b"\x1f\x8b": "gzip", b"\x78\x01": "deflate"}.get(packed[:2], "identity")
            form = chance.choice((form, form, form, form, "br"))
            parts = [packed[at : at + 60_000] for at in range(0, len(packed), 60_000)]
            replies.append(chunked(*parts, kind=kind, content_encoding=form))
            body = {"model": "m", "input": "hi", "messages": [{"role": "user", "content": f"hi {number}"}]}
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")
            before, began = memory_kb(process.pid, "VmHWM"), _cpu_s(process.pid)
            came = post(url, PATHS[api], body)
            grown = memory_kb(process.pid, "VmHWM") - before
            get(url, "/reverie/stats")
            if (used := _cpu_s(process.pid) - began) > _MOST_CPU_S:
                wrong.append(f"case {number}: {used:.0f} s for {len(packed):,} bytes ({raw[:60]!r}, {kind})")
            if came != (200, packed):
                wrong.append(f"case {number}: {len(packed)} bytes as {form} came as {came[0]}, {len(came[1])} bytes")
            if grown > _GROWN_KB:
                wrong.append(f"case {number}: {grown:,} KB more for {len(packed):,} bytes ({raw[:60]!r}, {kind})")
    return wrong


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _filling(chance: random.Random) -> tuple[str, bytes]:
    """A type and a body: of about the size that is read, often whole."""
    if chance.random() < 0.3:
        delta = {"type": "text_delta", "text": "x" * chance.choice((1, 100, 500, 1_000))}
        event = {"type": "content_block_delta", "index": chance.choice((0, 1, None, [0])), "delta": delta}
        line = b"data: " + json.dumps(event).encode() + b"\n\n"
        return "text/event-stream", line * (7_500_000 // len(line))
    kind, start, end = chance.choice(
        (
            ("application/json", b'{"id":"m","content":[', b"{}]}"),
            ("text/event-stream", b'data: {"type":"x","item":[', b"{}]}\n\n"),
            (chance.choice(("application/json", "text/event-stream")), chance.choice((b"", b"data: ")), b""),
        )
    )
    unit = chance.choice((b"{},", b"[],", b'{"a":{}},', b"1,", b'"a",', b" ", b"\n", b"x", b"[", b'{"a":'))
    return kind, start + unit * (chance.choice((100_000, 7_500_000, 7_500_000, 30_000_000)) // len(unit)) + end


def _paths(chance: random.Random, folder: Path, count: int) -> list[str]:
    """Every path that the gate accepts is written as a file: no name on this disk or another one is hidden."""
    wrong = list[str]()
    for _ in range(count):
        parts = chance.choices(
            (*_DOTS, *_DOTS, "a", "/", "\\", "~1", " ", "İ", "ﬁ", ":", *_OBEYED), k=chance.randint(1, 6)
        )
        path = "/" + "".join(parts)
        try:
            check_path(path)
        except ApiError:
            continue
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            for name in re.split(r"[/\\]", unicodedata.normalize(form, path)):
                seen = "".join(one for one in name if unicodedata.category(one)[0] not in "CZM")
                if seen.startswith("."):
                    wrong.append(f"{path!r} is accepted, and is {name!r} in {form}")
    return wrong


def _uploads(chance: random.Random, folder: Path, count: int) -> list[str]:
    """A transcript in any packing is the same transcript, or refused."""
    wrong = list[str]()
    for _ in range(count):
        said = [{"type": "user", "message": {"role": "user", "content": f"{n}"}} for n in range(chance.randint(1, 9))]
        lines = [json.dumps(line).encode() + b"\n" for line in said]
        cut = chance.randint(0, len(lines))
        parts = [gzip.compress(b"".join(lines[:cut])), gzip.compress(b"".join(lines[cut:]))]
        sent, expected = b"".join(parts), len(lines)
        match chance.randrange(4):
            case 0:
                sent, expected = sent[: -chance.randint(1, 12)], 0
            case 1:
                sent, expected = sent + bytes(chance.choices(range(1, 256), k=3)), 0
            case 2:
                sent, expected = gzip.compress(chance.choice((b"\n", b"[],", b"x", b"{}\n")) * 22_000_000, 1), 0
            case _:
                pass
        try:
            found = asyncio.run(check_transcript(_file(folder, sent))).records
        except ApiError:
            found = 0
        if found != expected:
            wrong.append(f"{expected} records came as {found} ({len(sent):,} bytes)")
    return wrong


def _file(folder: Path, data: bytes) -> io.BufferedReader:
    path = folder / "upload"
    path.write_bytes(data)
    return path.open("rb")
