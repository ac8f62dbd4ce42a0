"""`reverie lab replay` and `overhead`: on sessions written here, where the bill is known, and on recorded ones."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie.cli.lab import command
from reverie.errors import UserError
from reverie.lab.replay.bound import lower_bound
from reverie.lab.replay.policies import POLICIES, choose_policies
from reverie.lab.replay.recorded import check_room, load, load_session
from reverie.lab.replay.run import Replay, replay
from reverie.lab.replay.uses import names, needs_of
from reverie.models import wire
from reverie.models.base import Request
from tests.counts import count
from tests.shared_data import sources

START = datetime(2026, 4, 1, 8, tzinfo=UTC)


class Recording:
    """Writes a session as Claude Code would."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.time = START
        self.answers = 0

    def record(self, kind: str, **more: Any) -> None:
        number = len(self.lines)
        parent = f"u{number - 1}" if number else None
        stamp = self.time.isoformat().replace("+00:00", "Z")
        base = {"type": kind, "uuid": f"u{number}", "parentUuid": parent, "timestamp": stamp, "isSidechain": False}
        self.lines.append({**base, **more})

    def say(self, text: str = "Please look into it.") -> None:
        self.record("user", message={"role": "user", "content": text})

    def call(
        self, tool: str, given: dict[str, Any], result: str, *, text: str = "Looking.", seconds: float = 10
    ) -> None:
        self.answers += 1
        self.time += timedelta(seconds=seconds)
        for block in (
            {"type": "text", "text": text},
            {"type": "tool_use", "id": f"t{self.answers}", "name": tool, "input": given},
        ):  # one response, split over records that share its id
            message = {"role": "assistant", "id": f"m{self.answers}", "model": "claude-opus-4-5", "content": [block]}
            self.record("assistant", message=message)
        block = {"type": "tool_result", "tool_use_id": f"t{self.answers}", "content": result}
        self.record("user", message={"role": "user", "content": [block]})

    def answer(self, text: str = "Done.") -> None:
        self.answers += 1
        self.time += timedelta(seconds=10)
        message = {"role": "assistant", "id": f"m{self.answers}", "model": "claude-opus-4-5", "content": text}
        self.record("assistant", message={**message, "content": [{"type": "text", "text": text}]})

    def write(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        return path


def long_session(rounds: int = 60) -> Recording:
    recording = Recording()
    recording.say()
    for i in range(rounds):
        recording.call("Bash", {"command": f"run {i}"}, f"line {i}\n" + "all work and no play\n" * 200)
    recording.answer()
    return recording


def test_a_recorded_session_is_its_rounds_and_nothing_of_its_compactions(tmp_path: Path) -> None:
    recording = long_session(3)
    recording.record("system", subtype="compact_boundary", logicalParentUuid=recording.lines[-1]["uuid"])
    recording.record("user", isCompactSummary=True, message={"role": "user", "content": "A summary of it all."})
    recording.answer("Going on.")
    recording.record("assistant", isApiErrorMessage=True, message={"role": "assistant", "content": "API Error"})
    session = load_session(recording.write(tmp_path / "a.jsonl"))
    assert len(session.rounds) == 5 and session.model == "claude-opus-4-5"
    assert [len(each.response.tool_uses) for each in session.rounds] == [1, 1, 1, 0, 0]
    assert session.rounds[4].entered[0].text == "Go on.", "where the summary stood"
    assert session.rounds[1].at == START.timestamp() + 10, "asked when the last result was there"


def test_cached_pays_what_the_rules_say(tmp_path: Path) -> None:
    session = load_session(long_session(20).write(tmp_path / "a.jsonl"))
    none = [() for _ in session.rounds]
    cached = replay(session, none, POLICIES["cached"])
    assert cached.unannounced_breaks == cached.announced_breaks == cached.cleared == 0
    usage = cached.usage
    expected = 0.1 * usage.cache_read_input_tokens + 1.25 * usage.cache_creation_input_tokens + 5 * usage.output_tokens
    assert cached.cost == pytest.approx(expected + usage.input_tokens)
    resend = replay(session, none, POLICIES["resend"])
    assert resend.usage.prompt == usage.prompt == resend.usage.input_tokens and resend.cost > 3 * cached.cost


def test_clearing_pays_in_a_long_session_and_is_announced(tmp_path: Path) -> None:
    session = load_session(long_session().write(tmp_path / "a.jsonl"))
    needs = needs_of(session)
    cached, ours = (replay(session, needs, POLICIES[name]) for name in ("cached", "reverie"))
    assert ours.cost < 0.7 * cached.cost and ours.unannounced_breaks == 0 and ours.announced_breaks > 0
    assert ours.regret == 0 and ours.read_back == 0
    assert lower_bound(session, needs) < ours.cost
    assert len(ours.by_round) == len(session.rounds) and ours.by_round[-1] == ours.cost


def used_late(how: str) -> Recording:
    recording = Recording()
    recording.say()
    content = "def compute_total(rows):\n    return sum(rows)\n" + "# nothing to see here at all\n" * 300
    numbered = "".join(f"{i:>6}\t{line}\n" for i, line in enumerate(content.splitlines(), 1))
    recording.call("Read", {"file_path": "/p/a.py"}, numbered)
    for i in range(60):
        recording.call("Bash", {"command": f"run {i}"}, "all work and no play\n" * 200)
    if how == "edit":
        old = "(rows):\n    return sum(rows)"
        recording.call("Edit", {"file_path": "/p/a.py", "old_string": old, "new_string": "(r): ..."}, "ok")
    elif how == "cite":
        recording.answer("The function compute_total is the slow one.")
    recording.answer("Nothing else.")
    return recording


@pytest.mark.parametrize(("how", "missed"), [("edit", 1), ("cite", 1), ("neither", 0)])
def test_what_was_cleared_and_used_afterwards_is_paid_for_once_more(tmp_path: Path, how: str, missed: int) -> None:
    session = load_session(used_late(how).write(tmp_path / "a.jsonl"))
    needs = needs_of(session)
    assert sum(map(bool, needs)) == missed
    ours = replay(session, needs, POLICIES["reverie"])
    without = replay(session, [() for _ in session.rounds], POLICIES["reverie"])
    assert ours.read_back == missed and (ours.regret > 0) == bool(missed)
    assert ours.requests == without.requests + missed, "one more round"
    if missed:
        assert ours.cost - without.cost > 2_000, "the content is written again and the context read once more"
    assert replay(session, needs, POLICIES["cached"]).read_back == 0, "nothing was taken away"


def test_a_use_is_what_only_a_result_could_have_told(tmp_path: Path) -> None:
    recording = Recording()
    recording.say("What does open_file do?")
    recording.call("Grep", {"pattern": "open_file"}, "a.py: open_file = reader_one\nb.py: readerTwo")
    recording.call("Bash", {"command": "cat b.py"}, "readerTwo and plain words")
    recording.answer("It uses reader_one and readerTwo; open_file itself you named; newIdea is mine.")
    needs = needs_of(load_session(recording.write(tmp_path / "a.jsonl")))
    assert {need.text: need.sources for need in needs[2]} == {"reader_one": ("t1",), "readerTwo": ("t1", "t2")}
    assert names("plain words stay, so does ALLCAPS; a/b/file.py and camelCase and x1y2z3 do not") == {
        "a/b/file.py",
        "camelCase",
        "x1y2z3",
    }


def test_langchain_is_the_real_one_and_edits_only_beyond_its_trigger(tmp_path: Path) -> None:
    pytest.importorskip("langchain")
    recording = Recording()
    recording.say()
    for i in range(12):
        recording.call("mcp__x__y", {"page": i}, "all work and no play\n" * 2_000)
    recording.answer()
    session = load_session(recording.write(tmp_path / "a.jsonl"))
    found = replay(session, [() for _ in session.rounds], POLICIES["langchain"])
    assert found.cleared >= 8 and found.unannounced_breaks > 0
    short = load_session(long_session(10).write(tmp_path / "b.jsonl"))
    none = [() for _ in short.rounds]
    assert replay(short, none, POLICIES["langchain"]).cost == replay(short, none, POLICIES["cached"]).cost


def test_summarise_and_server_act_at_their_thresholds(tmp_path: Path) -> None:
    recording = Recording()
    recording.say()
    for i in range(20):
        recording.call("Bash", {"command": f"run {i}"}, "all work and no play\n" * 2_000)
    recording.answer()
    session = load_session(recording.write(tmp_path / "a.jsonl"))
    none = [() for _ in session.rounds]
    cached = replay(session, none, POLICIES["cached"])
    summarised = replay(session, none, POLICIES["summarise"])
    assert summarised.requests == cached.requests + 1, "the summary was asked for and paid"
    assert summarised.usage.prompt < cached.usage.prompt
    server = replay(session, none, POLICIES["server"])
    assert server.cleared > 10 and server.usage.prompt < cached.usage.prompt and server.unannounced_breaks == 0


def full_session(rounds: int = 60, text: str = "I look at it.") -> Recording:
    """Fills a window of 32,000 several times, in small rounds."""
    recording = Recording()
    recording.say("Please look into it, and never touch generated_file.py.")
    for i in range(rounds):
        recording.call("Read", {"file_path": f"/p/f{i % 9}.py"}, f"x_{i} = 1\n" * 300, text=text)
    recording.answer()
    return recording


def test_a_full_window_is_compacted_from_notes_that_were_paid_for_or_by_a_model(tmp_path: Path) -> None:
    session = load_session(full_session().write(tmp_path / "a.jsonl"))
    none = [() for _ in session.rounds]
    notes, summary, ours, plain = (
        replay(session, none, POLICIES[name], window=32_000) for name in ("notes", "summary", "reverie", "summarise")
    )
    assert notes.compactions >= 2 and notes.without_model == notes.compactions and notes.notes_updates > 5
    assert notes.notes_cost > 1_000 * notes.notes_updates, "each reads the conversation and writes its edits"
    assert summary.compactions >= 2 and summary.without_model == summary.notes_updates == 0
    assert summary.requests == len(session.rounds) + summary.compactions, "each summary was asked for"
    assert plain.compactions >= 2 and plain.without_model == 0
    for outcome in (notes, summary, ours, plain):
        assert outcome.over_window == 0 and outcome.unannounced_breaks == 0
    assert notes.requests == len(session.rounds), "notes are paid beside the conversation"
    cached = replay(session, none, POLICIES["cached"], window=32_000)
    assert cached.over_window > 20 and cached.compactions == 0
    roomy = replay(session, none, POLICIES["notes"])
    assert roomy.compactions == 0 and 0 < roomy.notes_updates < notes.notes_updates, "the numbers go by the window"


def test_a_result_without_its_call_and_other_oddities_are_replayed(tmp_path: Path) -> None:
    recording = long_session(12)
    orphan = {"type": "tool_result", "tool_use_id": "gone", "content": "def lost_and_found(): ..."}
    recording.record("user", message={"role": "user", "content": [orphan]})
    recording.answer("The function lost_and_found is the one.")
    recording.record("user", message={"role": "user", "content": [orphan, {"type": "text", "text": "and now?"}]})
    recording.record("user", message={"role": "user", "content": []})
    recording.answer("Again lost_and_found.")
    session = load_session(recording.write(tmp_path / "a.jsonl"))
    needs = needs_of(session)
    for name in ("cached", "reverie", "summarise"):
        assert replay(session, needs, POLICIES[name]).requests >= len(session.rounds)


def test_a_session_that_no_server_accepts_is_left_out_and_named(tmp_path: Path) -> None:
    long_session(3).write(tmp_path / "good.jsonl")
    odd = long_session(3)
    odd.call(None, {}, "x")  # type: ignore[arg-type]
    odd.answer()
    odd.write(tmp_path / "odd.jsonl")
    done = CliRunner().invoke(command, ["replay", str(tmp_path), "--policy", "reverie", "--json"])
    assert done.exit_code == 0 and "odd is left out" in done.stderr
    assert [row["session"] for row in json.loads(done.stdout)["sessions"]] == ["good"]


def test_every_read_again_costs_a_request_of_its_own(tmp_path: Path) -> None:
    recording = full_session(30)
    for at in (0, 1):
        old = f"x_{at} = 1\nx_{at} = 1"
        recording.call("Edit", {"file_path": f"/p/f{at}.py", "old_string": old, "new_string": "y"}, "ok")
    session = load_session(recording.write(tmp_path / "a.jsonl"))
    needs = needs_of(session)
    both = [*needs[:-2], (*needs[-2], *needs[-1]), ()]  # one answer needs two results
    ours = replay(session, both, POLICIES["summarise"], window=32_000)
    assert ours.read_back == 2 and ours.requests == len(session.rounds) + ours.compactions + 2


def test_without_langchain_the_other_policies_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    names = [policy.name for policy in choose_policies(())]
    assert "langchain" not in names and {"cached", "reverie", "reverie-1m"} <= set(names)
    with pytest.raises(UserError, match="pip install"):
        choose_policies(("langchain",))


def test_what_a_compaction_holds_is_in_view_and_what_it_lost_is_read_again(tmp_path: Path) -> None:
    recording = full_session(30)
    recording.call("Read", {"file_path": "/p/late.py"}, "def late_and_whole(a):\n    return a\n")
    for i in range(2):
        recording.call("Bash", {"command": f"run {i}"}, "all work and no play, " * 1_200)
    edit = {"file_path": "/p/late.py", "old_string": "late_and_whole(a):\n    return a", "new_string": "b"}
    recording.call("Edit", edit, "ok")
    recording.call("Edit", {"file_path": "/p/f0.py", "old_string": "x_0 = 1\nx_0 = 1", "new_string": "y"}, "ok")
    session = load_session(recording.write(tmp_path / "a.jsonl"))
    needs = needs_of(session)
    ours = replay(session, needs, POLICIES["summary"], window=32_000)
    assert ours.compactions >= 1
    assert ours.read_back == 1, "the file read last came back from disk; the first one had to be read again"


def test_in_a_small_window_read_shows_less_whatever_the_policy(tmp_path: Path) -> None:
    recording = Recording()
    recording.say()
    lines = "".join(f"line_number_{i} = {i}\n" for i in range(1_500))
    recording.call("Read", {"file_path": "/p/long.py"}, lines)
    recording.answer("It ends with line_number_1499, and begins with line_number_1.")
    session = load_session(recording.write(tmp_path / "a.jsonl"))
    needs = needs_of(session)
    small, large = (replay(session, needs, POLICIES["cached"], window=window) for window in (32_000, 200_000))
    assert small.read_back == 1 and large.read_back == 0, "what was below the cut is read in a round of its own"


def test_the_command_prints_what_programs_and_people_read(tmp_path: Path) -> None:
    long_session(40).write(tmp_path / "one.jsonl")
    used_late("edit").write(tmp_path / "two.jsonl")
    names_ = ["--policy", "reverie", "--policy", "time"]
    done = CliRunner().invoke(command, ["replay", str(tmp_path), *names_, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert set(found["policies"]) == {"cached", "time", "reverie"} and len(found["sessions"]) == 2
    ours = found["policies"]["reverie"]
    assert {"cost", "ratio_to_cached", "cache_read_share", "unannounced_breaks", "regret"} <= set(ours)
    assert found["policies"]["cached"]["ratio_to_cached"] == 1 and ours["ratio_to_cached"] < 0.8
    assert found["all_knowing"]["lower_bound"] < ours["cost"]
    assert {"compactions", "compactions_without_model", "notes_cost", "over_window"} <= set(ours)
    assert ours["ratio_to_cached_with_notes"] >= ours["ratio_to_cached"] and "cheapest_share_with_notes" in found
    assert found["setting"]["window"] == 200_000 and "replayed 2 of 2" in done.stderr
    done = CliRunner().invoke(command, ["replay", str(tmp_path), "--policy", "reverie", "--window", "32000"])
    assert done.exit_code == 0 and "reverie costs no more than cached on" in done.stdout
    picture = tmp_path / "out.png"
    pytest.importorskip("matplotlib")
    done = CliRunner().invoke(command, ["replay", str(tmp_path / "one.jsonl"), *names_, "--plot", str(picture)])
    assert done.exit_code == 0 and picture.read_bytes().startswith(b"\x89PNG")
    assert "No policy can pay less than" in done.stdout and "reverie" in done.stdout


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"There is no policy 'best'; there are resend"):
        choose_policies(["best"])
    with pytest.raises(UserError, match="does not exist"):
        load([tmp_path / "gone.jsonl"])
    with pytest.raises(UserError, match="A prefix of 20,000 tokens leaves too little of a window of 32,000"):
        check_room(20_000, 32_000)
    (tmp_path / "empty.jsonl").write_text('{"type": "user", "message": {"role": "user", "content": "hello"}}\n{"torn')
    with pytest.raises(UserError, match="no recorded answer"):
        load([tmp_path])


@pytest.mark.soak
@pytest.mark.parametrize("folder", sources("transcripts", long=True))
def test_no_prefix_of_any_recorded_session_breaks_unannounced(folder: Path) -> None:
    """Every request of ours, compared block by block with the one before it."""
    files = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_size)
    for path in files[:: max(1, len(files) // count(4, len(files)))]:
        session = load_session(path)
        run = Replay(session, POLICIES["reverie"], 8_000)
        bill, last = run._bill, list[str]()  # pyright: ignore[reportPrivateUsage]

        def watched(request: Request, output: int, bill: Any = bill, last: list[str] = last, path: Path = path) -> Any:
            parts = wire.prefix_parts(request)
            assert parts[: len(last)] == last or request.announced_break, path.name
            last[:] = parts
            return bill(request, output)

        run._bill = watched  # pyright: ignore[reportPrivateUsage]
        found = asyncio.run(run.run(needs_of(session)))
        assert found.unannounced_breaks == 0
