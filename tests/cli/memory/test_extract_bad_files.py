"""One bad transcript, line or record never stops the others: it is named, and the rest is learnt."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.storage.following.recorded import said

GOOD, OTHER = "Please remember: the pilot boat is painted green.", "Please remember: the fog horn needs new bellows."


def record(**fields: Any) -> str:
    base = {"type": "user", "uuid": "x1", "parentUuid": None, "timestamp": "2026-03-02T09:00:00.000Z"}
    return json.dumps({**base, "message": {"role": "user", "content": "hello"}, **fields}) + "\n"


DEEP = '{"type":"user","uuid":"d","message":' + "[" * 90_000 + "]" * 90_000 + "}\n"
FIELDS = [
    "uuid",
    "parentUuid",
    "timestamp",
    "sessionId",
    "cwd",
    "message",
    "origins",
    "isSidechain",
    "toolUseResult",
    "type",
    "usage",
]
VALUES: list[Any] = [5, 10**30, -1.5, True, [], ["x"], {}, {"a": 1}, "", "\ud800", None]
BLOCKS: list[Any] = [
    *(5, None, [], {}, {"type": 5}, {"type": "text"}, {"type": "text", "text": 5}, {"type": "tool_use"}),
    *({"type": "tool_use", "id": 5, "name": [], "input": 5}, {"type": "tool_result"}),
    {"type": "tool_result", "tool_use_id": [], "content": [5]},
]
CONTENTS: list[Any] = [*([block] for block in BLOCKS), 5, None, {}, "\ud800"]
TIMES = ["2026-99-99T99:99:99Z", "0000-00-00", "99999-01-01T00:00:00Z", "9999-12-31T23:59:59.9-23:59", 1e300]
USAGE = {"role": "assistant", "content": [], "usage": {"input_tokens": "x"}}
CODEX = [
    {"type": "session_meta", "payload": {"id": 5, "source": 5, "git": 5}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": 5}},
]
PI = [{"type": "session", "id": [], "cwd": 5}, {"type": "message", "message": {"role": "user", "content": 5}}, 5]
COUNTED = record(count=1)
BAD: dict[str, str | bytes] = {
    "latin-1": b'{"type":"user","uuid":"b","message":{"role":"user","content":"caf\xe9"}}\n',
    "timestamp": b'{"type":"user","timestamp":"2026-\xff\xfe","message":{"role":"user","content":"x"}}\n',
    "deep": DEEP,
    "huge-number": COUNTED.replace('"count": 1', f'"count": {"9" * 50_000}'),
    "huge-float": COUNTED.replace('"count": 1', '"count": 1e999999'),
    "nan": COUNTED.replace('"count": 1', '"count": NaN'),
    "surrogate": record(uuid="\ud800", sessionId="\udfff", message={"role": "user", "content": "a \ud83d b"}),
    "not-json": b"\x00\x01 hello\n{]\n",
    "list": "[1, 2]\n",
    "types": "".join(record(**{field: value}) for field in FIELDS for value in VALUES),
    "content": "".join(
        record(message={"role": role, "content": one}) for role in ("user", "assistant", 5) for one in CONTENTS
    ),
    "times": "".join(record(timestamp=one) for one in TIMES),
    "usage": record(type="assistant", message=USAGE),
    "codex": "".join(f"{json.dumps(one)}\n" for one in CODEX),
    "pi": "".join(f"{json.dumps(one)}\n" for one in PI) + "not json\n",
    "empty": "",
}


def bad_bytes(kind: str) -> bytes:
    found = BAD[kind]
    return found.encode() if isinstance(found, str) else found


@pytest.fixture(autouse=True)
def with_memory(reverie: Command) -> None:
    reverie.extra.pop("REVERIE_DISABLE_MEMORY", None)


def talk(text: str, session: str) -> bytes:
    return said(0, text, cwd="/harbour", session=session).encode()


def memories(reverie: Command) -> str:
    return "\n".join(path.read_text() for path in reverie.home.rglob("memory/*.md"))


@pytest.mark.parametrize("where", ["alone", "before", "behind"])
@pytest.mark.parametrize("kind", sorted(BAD))
def test_bad_lines_do_not_stop_the_other_files(reverie: Command, kind: str, where: str) -> None:
    folder = reverie.work / "sessions"
    folder.mkdir()
    ids = [f"5e550000-0000-4000-8000-00000000000{number}" for number in range(3)]
    (folder / f"{ids[0]}.jsonl").write_bytes(talk(GOOD, ids[0]))
    own = talk("Please remember: the quay is closed in May.", ids[1])
    bad = bad_bytes(kind)
    bad = {"alone": bad, "before": bad + own, "behind": own + bad}[where]
    (folder / f"{ids[1]}.jsonl").write_bytes(bad)
    (folder / f"{ids[2]}.jsonl").write_bytes(talk(OTHER, ids[2]))
    done = reverie("extract", str(folder), "--model", "embedded", code=None)
    assert "Traceback" not in done.stderr and "unexpected" not in done.stderr.lower(), done.stderr
    assert "painted green" in memories(reverie) and "new bellows" in memories(reverie), done.stderr


def test_what_is_no_readable_file_does_not_stop_the_others(reverie: Command) -> None:
    folder = reverie.work / "sessions"
    folder.mkdir()
    ids = [f"5e550000-0000-4000-8000-00000000000{number}" for number in range(7)]
    (folder / f"{ids[0]}.jsonl").write_bytes(talk(GOOD, ids[0]))
    (folder / f"{ids[1]}.jsonl").mkdir()
    os.mkfifo(folder / f"{ids[2]}.jsonl")
    (folder / f"{ids[3]}.jsonl").symlink_to(folder / "nowhere")
    (folder / f"{ids[4]}.jsonl").symlink_to("/dev/zero")
    (folder / f"{ids[5]}.jsonl").symlink_to(f"{ids[5]}.jsonl")
    (folder / f"{ids[6]}.jsonl").write_bytes(talk(OTHER, ids[6]))
    done = reverie(
        "extract",
        str(folder),
        *(str(folder / f"{name}.jsonl") for name in (ids[1], ids[2])),
        "--model",
        "embedded",
        code=None,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "painted green" in memories(reverie) and "new bellows" in memories(reverie), done.stderr


@pytest.mark.parametrize("kind", [*sorted(BAD), "folder", "fifo", "gone", "state"])
def test_a_bad_copy_does_not_stop_the_other_followed_sessions(reverie: Command, kind: str) -> None:
    folder = reverie.work / "sessions"
    folder.mkdir()
    ids = [f"5e550000-0000-4000-8000-00000000000{number}" for number in range(3)]
    for name, text in zip(ids, (GOOD, "Please remember: the quay is closed in May.", OTHER), strict=True):
        (folder / f"{name}.jsonl").write_bytes(talk(text, name))
    reverie("sessions", "follow", str(folder))
    (copy,) = reverie.home.rglob(f"{ids[1]}.jsonl")
    change: dict[str, Callable[[], object]] = {
        "folder": lambda: (copy.unlink(), copy.mkdir()),
        "fifo": lambda: (copy.unlink(), os.mkfifo(copy)),
        "gone": copy.unlink,
        "state": lambda: copy.write_bytes(b""),
    }
    change.get(kind, lambda: copy.write_bytes(bad_bytes(kind)))()
    done = reverie("extract", "--new", "--model", "embedded", "-y", code=None)
    assert "Traceback" not in done.stderr and "unexpected" not in done.stderr.lower(), done.stderr
    assert "painted green" in memories(reverie) and "new bellows" in memories(reverie), done.stderr
