"""Mailboxes: every message exactly once, in the order of its sender, whoever is killed and whatever is in the file."""

from __future__ import annotations

import json
import os
import random
import time
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.agents.messages.inbox_file import InboxClosed, InboxFile, InboxFull, InboxReader
from reverie.agents.messages.message import AgentMessage, message_blocks, new_message
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, TextBlock
from tests import warm
from tests.counts import count
from tests.waiting import FOREVER_S


@pytest.fixture
def box(tmp_path: Path) -> InboxFile:
    return InboxFile(tmp_path / "inboxes" / "reader.json")


def texts(messages: tuple[AgentMessage, ...]) -> list[str]:
    return [message.text for message in messages]


def open_log(path: Path) -> SessionLog:
    log = SessionLog(path, "s", cwd=path.parent, version="test")
    if path.exists():
        log.load(path)
    return log


def show(log: SessionLog, messages: tuple[AgentMessage, ...]) -> None:
    log.append_message(Message("user", tuple(message_blocks(messages))), isMeta=True)


def test_the_file_is_the_array_others_know(box: InboxFile) -> None:
    box.put(new_message("ann", "reader", "Done.", summary="done", color="blue"))
    box.put(new_message("ben", "reader", "Zwölf „Dinge“\n]"))
    entries = json.loads(box.path.read_text())
    assert [(entry["from"], entry["text"], entry["read"]) for entry in entries] == [
        ("ann", "Done.", False),
        ("ben", "Zwölf „Dinge“\n]", False),
    ]
    assert entries[0]["summary"] == "done" and entries[0]["color"] == "blue" and "summary" not in entries[1]
    assert entries[0]["timestamp"].endswith("Z")
    assert box.path.stat().st_mode & 0o077 == 0


def test_a_letter_stays_until_the_transcript_shows_it(box: InboxFile, tmp_path: Path) -> None:
    box.put(new_message("ann", "reader", "one"))
    log = open_log(tmp_path / "t.jsonl")
    reader = InboxReader(box, log)
    messages = reader.look_now().messages
    assert texts(messages) == ["one"]
    assert reader.look_now().messages == (), "handed out once"
    assert not box.is_empty, "but not yet given up"
    show(log, messages)
    reader.look_now()
    assert box.is_empty
    (archived,) = [json.loads(line) for line in box.archive.read_text().splitlines() if line]
    assert archived["text"] == "one" and archived["read"] is True
    assert box.archive.stat().st_mode & 0o077 == 0


def test_a_process_killed_before_recording_gets_it_again_and_one_killed_after_does_not(
    box: InboxFile, tmp_path: Path
) -> None:
    box.put(new_message("ann", "reader", "one"))
    log = open_log(tmp_path / "t.jsonl")
    messages = InboxReader(box, log).look_now().messages
    # Killed here: nothing is recorded.
    assert texts(InboxReader(box, open_log(tmp_path / "t.jsonl")).look_now().messages) == ["one"]
    show(log, messages)
    # Killed here: recorded, and still in the mailbox.
    assert not box.is_empty
    again = InboxReader(box, open_log(tmp_path / "t.jsonl"))
    assert again.look_now().messages == ()
    assert box.is_empty


def test_a_kill_between_archive_and_mailbox_repeats_nothing(box: InboxFile, tmp_path: Path) -> None:
    box.put(new_message("ann", "reader", "one"))
    log = open_log(tmp_path / "t.jsonl")
    reader = InboxReader(box, log)
    show(log, reader.look_now().messages)
    before = box.path.read_bytes()
    reader.look_now()
    box.path.write_bytes(before)  # the archive was written, the mailbox was not
    assert InboxReader(box, log).look_now().messages == ()
    assert box.is_empty
    ids = [json.loads(line)["id"] for line in box.archive.read_text().splitlines() if line]
    assert len(ids) == 2 and len(set(ids)) == 1


def test_a_letter_that_the_disk_did_not_take_stays_in_the_mailbox(box: InboxFile, tmp_path: Path) -> None:
    box.put(new_message("ann", "reader", "one"))
    folder = tmp_path / "gone"
    log = SessionLog(folder / "file" / "t.jsonl", "s", cwd=tmp_path, version="test")
    folder.write_text("a file where a folder should be")
    reader = InboxReader(box, log)
    show(log, reader.look_now().messages)
    assert log.unsaved
    assert reader.look_now().messages == () and not box.is_empty
    folder.unlink()
    log.append_message(Message("user", (TextBlock("next"),)))
    assert not log.unsaved
    reader.look_now()
    assert box.is_empty


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b"[{]",
        b"nonsense\n]",
        b'{"from": "a"}',
        b"[1, 2]",
        b'["x", {"from": 1, "text": "t"}]',
        b"\xff\xfe[",
        b"[" * 5_000 + b"]" * 5_000,
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_what_cannot_be_read_is_put_aside_and_writers_go_on(box: InboxFile, broken: bytes) -> None:
    box.put(new_message("ann", "reader", "before"))
    lines = box.path.read_bytes().strip().removesuffix(b"]")
    box.path.write_bytes(lines + b",\n" + broken)
    box.put(new_message("ben", "reader", "after"))
    mail = box.collect()
    assert texts(mail.messages) == ["before", "after"]
    aside = list(box.path.parent.glob("reader.unreadable-*"))
    assert aside and any(broken[:2] in path.read_bytes() for path in aside)
    assert box.collect().aside is None, "told once"
    assert isinstance(json.loads(box.path.read_text()), list)


def test_letters_of_other_programs_get_an_id_that_lasts(box: InboxFile) -> None:
    box.path.parent.mkdir(parents=True)
    entry = {"from": "ann", "text": "same", "timestamp": "2026-01-02T03:04:05.000Z", "read": False}
    box.path.write_text(json.dumps([entry, entry, {**entry, "text": "old", "read": True}], indent=2))
    first = box.collect().messages
    assert texts(first) == ["same", "same"] and first[0].id != first[1].id
    assert box.collect().messages == first
    box.put(new_message("ben", "reader", "new"))
    assert texts(box.collect().messages) == ["same", "same", "new"]


def test_a_letter_put_twice_by_a_writer_that_was_not_sure_is_one(box: InboxFile) -> None:
    message = new_message("ann", "reader", "once")
    box.put(message)
    box.put(message)
    assert texts(box.collect().messages) == ["once"]


def test_ten_megabytes_are_a_letter_like_any_other_and_the_mailbox_is_bounded(box: InboxFile) -> None:
    box.put(new_message("ann", "reader", "x" * 10_000_000))
    assert len(box.collect().messages[0].text) == 10_000_000
    small = InboxFile(box.path, largest=10_100_000)
    with pytest.raises(InboxFull, match="nobody has read"):
        small.put(new_message("ann", "reader", "y" * 200_000))
    small.put(new_message("ann", "reader", "short"))
    assert len(box.collect().messages) == 2


def test_a_lock_file_left_behind_holds_nobody_up(box: InboxFile) -> None:
    box.path.parent.mkdir(parents=True)
    box.path.with_suffix(".lock").write_text("4194303\n")
    waiting_long = InboxFile(box.path, lock_wait_s=FOREVER_S)
    waiting_long.put(new_message("ann", "reader", "one"))
    assert texts(waiting_long.collect().messages) == ["one"]


def test_who_has_left_gets_no_letter_and_what_was_not_read_comes_back(box: InboxFile) -> None:
    there = [True]
    box.put(new_message("ann", "reader", "unread"), is_open=lambda: there[0])

    def leave() -> None:
        there[0] = False

    returned = box.close(leave)
    assert [(message.sender, message.text) for message in returned] == [("ann", "unread")]
    with pytest.raises(InboxClosed, match="reader has ended"):
        box.put(new_message("ann", "reader", "too late"), is_open=lambda: there[0])
    assert box.is_empty


@given(st.lists(st.sampled_from("wlrk"), max_size=40))
def test_any_mixture_of_writing_looking_recording_and_killing_loses_and_repeats_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("mix")
    box, path = InboxFile(folder / "reader.json"), folder / "t.jsonl"
    log = open_log(path)
    reader, seen, written = InboxReader(box, log), (), 0
    for step in [*steps, "k", "l", "r", "l"]:
        if step == "w":
            box.put(new_message("ann", "reader", str(written)))
            written += 1
        elif step == "l":
            seen = (*seen, *reader.look_now().messages)
        elif step == "r" and seen:
            show(log, seen)
            seen = ()
        elif step == "k":
            log.close()
            log, seen = open_log(path), ()
            reader = InboxReader(box, log)
    shown = [block.text.splitlines()[2] for record in log.records if record.message for block in text_blocks(record)]
    assert shown == [str(number) for number in range(written)]
    assert box.is_empty


def text_blocks(record: object) -> list[TextBlock]:
    message = getattr(record, "message", None)
    return [block for block in message.content if isinstance(block, TextBlock)] if message is not None else []


def write_read_and_kill(folder: Path, writers: int, messages: int, least_kills: int, dice: random.Random) -> int:
    """So many writers of so many messages each; readers are killed meanwhile. All messages arrive once; the kills."""
    box, transcript = folder / "inboxes" / "reader.json", folder / "reader.jsonl"

    def start(*words: object, stdout: int = 1) -> warm.Process:
        return warm.start(*map(str, words), module="tests.agents.mail_driver", stdout=stdout)

    def read(seed: int) -> warm.Process:
        """A reader that has begun: one killed while it is still starting would show nothing."""
        ours, theirs = os.pipe()
        reader = start("read", box, transcript, seed, stdout=theirs)
        os.close(theirs)
        with open(ours, "rb") as told:  # noqa: PTH123
            assert told.readline() == b"reading\n"
        return reader

    writing = [start("write", box, f"w{number}", messages) for number in range(writers)]
    kills = 0
    reading = read(0)
    until = time.monotonic() + 1_700
    try:
        while time.monotonic() < until:
            time.sleep(dice.uniform(0, 0.8))
            if all(writer.poll() is not None for writer in writing) and kills >= least_kills:
                break
            reading.kill()
            reading.wait()
            kills += 1
            reading = read(kills)
        while time.monotonic() < until and not InboxFile(box).is_empty:
            time.sleep(0.1)
    finally:
        for process in (reading, *writing):
            process.kill()
            process.wait()
    assert [writer.returncode for writer in writing] == [0] * writers
    got = defaultdict[str, list[int]](list)
    for record in read_records(transcript).records:
        for block in text_blocks(record):
            sender, number = block.text.splitlines()[2].split()
            got[sender].append(int(number))
    assert dict(got) == {f"w{number}": list(range(messages)) for number in range(writers)}
    return kills


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_many_writers_and_readers_killed_at_random(tmp_path: Path) -> None:
    assert write_read_and_kill(tmp_path, count(6, 32), count(40, 1_000), count(3, 40), random.Random(8)) >= 3
