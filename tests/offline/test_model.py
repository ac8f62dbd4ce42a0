"""The embedded model in conversations over real files: it looks, reads, quotes, and says when it found nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.models.base import Finished, Request, Response, TextDelta, ToolCallStarted
from reverie.models.forced import smallest
from reverie.offline.model import EmbeddedModel
from reverie.offline.talk.lookups import MOST_CALLS
from reverie.offline.talk.wording import ABOUT
from reverie.offline.terms import fit, read_question
from reverie.types import Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock
from tests.counts import count
from tests.models.requests import answered, ask, collect, person, request


def tool(name: str, *properties: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {} for key in properties}}
    return {"name": name, "description": name, "input_schema": schema}


GREP = tool("Grep", "pattern", "path", "glob", "output_mode", "-i", "head_limit")
READ = tool("Read", "file_path", "offset", "limit")
GLOB = tool("Glob", "pattern", "path")
TOOLS = (GREP, READ, GLOB, tool("Bash", "command"))


def run_tool(root: Path, call: ToolUseBlock) -> ToolResultBlock:
    """What the tools of a session would answer, over real files."""
    given = call.input
    if call.name == "Grep":
        wanted = re.compile(given["pattern"], re.IGNORECASE if given.get("-i") else 0)
        hits = [
            f"{path.relative_to(root)}:{number}:{line}"
            for path in sorted(root.rglob("*.*"))
            for number, line in enumerate(path.read_text().splitlines(), start=1)
            if wanted.search(line)
        ]
        return ToolResultBlock(call.id, "\n".join(hits) or "No matches.")
    if call.name == "Glob":
        found = sorted(str(path.relative_to(root)) for path in root.glob(given["pattern"]))
        return ToolResultBlock(call.id, "\n".join(found) or "No files match.")
    path = root / given["file_path"]
    if not path.is_file():
        return ToolResultBlock(call.id, f"There is no file {path}.", is_error=True)
    first = int(given.get("offset", 1))
    lines = path.read_text().splitlines()[first - 1 :][: given.get("limit", 2000)]
    return ToolResultBlock(call.id, "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start=first)))


def converse(root: Path, asked: Request) -> tuple[list[str], str, Request]:
    """Plays a turn to its end: the tools used, the answer, and the conversation after it."""

    async def run() -> tuple[list[str], str, Request]:
        used: list[str] = []
        now = asked
        for _ in range(MOST_CALLS + 1):
            last = (await collect(EmbeddedModel().stream(now)))[-1]
            assert isinstance(last, Finished)
            answer = Message("assistant", last.response.content)
            if not answer.tool_uses:
                return used, answer.text, request(*now.messages, answer, tools=asked.tools)
            used += [call.name for call in answer.tool_uses]
            results = Message("user", tuple(run_tool(root, call) for call in answer.tool_uses))
            now = request(*now.messages, answer, results, tools=asked.tools)
        raise AssertionError("it never answered")

    return asyncio.run(run())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "server.py").write_text(
        'import os\n\n\nDEFAULT_PORT = 8417\n\n\ndef start_server(port=DEFAULT_PORT):\n    """Starts it."""\n'
    )
    (tmp_path / "README.md").write_text("# Lighthouse\n\nA server for ships.\n")
    (tmp_path / "src" / "timetable.py").write_text("rows = []\n")
    return tmp_path


def test_finds_reads_and_quotes_with_file_and_line(root: Path) -> None:
    used, answer, _ = converse(root, request(person("Which default port does the server use?"), tools=TOOLS))
    assert used == ["Grep", "Read"]
    assert "src/server.py:4: DEFAULT_PORT = 8417" in answer


def test_a_file_that_is_named_is_read_and_a_missing_one_looked_for(root: Path) -> None:
    used, answer, _ = converse(root, request(person("What does README.md say about ships?"), tools=TOOLS))
    assert used == ["Read"] and "README.md:3: A server for ships." in answer
    used, answer, _ = converse(root, request(person("What is in timetable.py?"), tools=TOOLS))
    assert used == ["Read", "Glob", "Read"] and "src/timetable.py:1: rows = []" in answer


def test_says_plainly_that_it_found_nothing_and_what_to_do(root: Path) -> None:
    used, answer, _ = converse(root, request(person("Where is the zeppelin moored?"), tools=TOOLS))
    assert used == ["Grep", "Glob"]
    assert "found nothing" in answer and "zeppelin" in answer and "ANTHROPIC_API_KEY" in answer


def test_answers_about_the_conversation_from_the_conversation(root: Path) -> None:
    first = request(person("My name is Ada and my boat is the Meridian."), tools=TOOLS)
    _, _, after = converse(root, first)
    used, answer, _ = converse(root, request(*after.messages, person("What is the name of my boat?"), tools=TOOLS))
    assert used == [] and "Meridian" in answer and "you said" in answer


def recalled(*memories: tuple[str, str, str]) -> Message:
    """What a session puts beside the question: file, age, body."""
    parts = [
        f"## /m/{file} (saved {age})\n---\nname: x\ndescription: {body}\n---\n\n{body}" for file, age, body in memories
    ]
    text = "<system-reminder>\nMemories.\n\n" + "\n\n".join(parts) + "\n</system-reminder>"
    return Message("user", (TextBlock(text, Origin.RECALLED),))


def test_a_recalled_memory_that_fits_is_quoted_with_its_file(root: Path) -> None:
    beside = recalled(
        ("project_boat.md", "3 days ago", "The boat is moored at the Meridian pier."),
        ("reference_crane.md", "today", "The crane is documented in the harbour wiki."),
    )
    used, answer, _ = converse(root, request(person("Where is the crane documented?"), beside, tools=TOOLS))
    assert used == []
    assert answer == "From memory, reference_crane.md (saved today): The crane is documented in the harbour wiki."


def test_a_recalled_memory_does_not_stand_in_for_looking(root: Path) -> None:
    beside = recalled(("project_boat.md", "today", "The boat is moored at the Meridian pier."))
    used, answer, _ = converse(root, request(person("Which default port does the server use?"), beside, tools=TOOLS))
    assert "Grep" in used and "8417" in answer and "Meridian" not in answer
    used, answer, _ = converse(root, request(person("Which zeppelin was it?"), beside, tools=TOOLS))
    assert "Meridian" not in answer and "found nothing" in answer, "what does not fit is no answer"


def test_calls_only_what_is_offered(root: Path) -> None:
    question = person("Which default port does the server use?")
    assert converse(root, request(question, tools=()))[0] == []
    assert converse(root, request(question, tools=(READ,)))[0] == []
    assert converse(root, request(question, tools=TOOLS, tool_choice={"type": "none"}))[0] == []
    assert set(converse(root, request(question, tools=(GLOB, READ)))[0]) == {"Glob"}
    used, answer, _ = converse(root, request(question, tools=(GREP,)))
    assert used == ["Grep"] and "src/server.py:4" in answer
    _, response = ask(EmbeddedModel(), request(question, tools=(tool("Grep", "pattern"),)))
    assert isinstance(response.content[-1], ToolUseBlock) and set(response.content[-1].input) == {"pattern"}


def test_refused_calls_end_in_an_answer() -> None:
    now = request(person("Which default port does the server use?"), tools=TOOLS)
    for _ in range(MOST_CALLS + 1):
        _, response = ask(EmbeddedModel(), now)
        answer = Message("assistant", response.content)
        if not answer.tool_uses:
            break
        refusals = tuple(ToolResultBlock(call.id, "Not allowed.", is_error=True) for call in answer.tool_uses)
        now = request(*now.messages, answer, Message("user", refusals), tools=TOOLS)
    assert "Not allowed" in answer.text


def test_a_greeting_is_answered_with_what_it_is() -> None:
    _, response = ask(EmbeddedModel(), request(person("Hello!"), tools=TOOLS))
    assert response.content == (TextBlock(f"Hello. {ABOUT}", Origin.MODEL),)


def test_injected_text_is_not_a_question(root: Path) -> None:
    reminder = TextBlock("<system-reminder>\nThe zeppelin is moored.\n</system-reminder>", Origin.CODE)
    asked = Message("user", (reminder, TextBlock("Which default port?", Origin.TYPED)))
    _, response = ask(EmbeddedModel(), request(asked, tools=TOOLS))
    call = response.content[-1]
    assert isinstance(call, ToolUseBlock) and call.input["pattern"] == r"(\b|_)(default|port)"


def test_the_same_request_always_gets_the_same_answer_and_ids_are_unique(root: Path) -> None:
    asked = request(person("Which default port does the server use?"), tools=TOOLS)
    one, two = ask(EmbeddedModel(), asked), ask(EmbeddedModel(), asked)
    assert one == two
    events, response = one
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert response.content[0] == TextBlock(text, Origin.MODEL)
    assert [event.id for event in events if isinstance(event, ToolCallStarted)] == [response.content[-1].wire()["id"]]
    assert response.usage.input_tokens > 50 and response.usage.output_tokens > 5
    calls = [call.id for message in converse(root, asked)[2].messages for call in message.tool_uses]
    assert len(calls) == len(set(calls)) == 2


def test_what_it_has_no_task_for_ends_at_once(root: Path) -> None:
    _, _, after = converse(root, request(person("Which default port does the server use?"), tools=TOOLS))
    schema = {"type": "object", "properties": {"files": {"type": "array"}}, "required": ["files"]}
    response = answered_for(request(*after.messages, output_schema=schema, purpose=Purpose.RECALL))
    assert Message("assistant", response.content).text == '{"files": []}'
    response = answered_for(request(*after.messages, tools=TOOLS, purpose=Purpose.CLEANUP))
    assert response.content == (TextBlock("Nothing to add.", Origin.MODEL),)


def answered_for(asked: Request) -> Response:
    return ask(EmbeddedModel(), asked)[1]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Where is start_server defined?", ["start_server"]),
        ('What does "cache miss" mean here?', ["cache miss", "cache", "miss"]),
        ("What's the server's port?", ["server", "port"]),
        ("Which ports are open?", ["port", "open"]),
        ("Why does parseHeaders fail, e.g. in the proxy settings?", ["parseHeaders", "setting", "fail", "proxy"]),
        ("Thank you!", []),
        ("Wie heißt der Port?", ["Port"]),
        ("¿Dónde está el puerto?", ["puerto"]),
        ("ポートは何番ですか", ["ポート"]),
        ("我们什么时候部署？", ["部署"]),
        ("Which ferries run on Fridays?", ["ferry", "Friday", "run"]),
    ],
)
def test_key_terms(text: str, terms: list[str]) -> None:
    assert list(read_question(text).terms) == terms


def test_a_term_is_met_where_a_word_begins() -> None:
    question = read_question("which port")
    lines = ["PORT = 1", "maxPort", "maxPortNumber", "max_ports", "the port", "import os", "support", "portfolio"]
    assert [fit(line, question) > 0 for line in lines] == [True] * 5 + [False] * 3
    assert fit("a package manager", read_question("Which package management?")) >= 2
    assert fit("two ferries", read_question("Which ferry?")) and fit("one ferry", read_question("Which ferries?"))


def test_the_smallest_value_of_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "names": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "score": {"type": "number", "minimum": 1},
            "maybe": {"type": ["string", "null"]},
            "either": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
            "optional": {"type": "string"},
        },
        "required": ["kind", "names", "score", "maybe", "either"],
    }
    assert smallest(schema) == {"kind": "a", "names": [""], "score": 1, "maybe": None, "either": False}


@given(st.lists(st.text(max_size=80), min_size=1, max_size=4))
@settings(max_examples=count(35, 1_000), deadline=None)
def test_whatever_is_said_it_answers(texts: list[str]) -> None:
    messages: list[Message] = []
    for text in texts:
        messages += [person(text), Message("assistant", (TextBlock("Yes.", Origin.MODEL),))]
    _, response = ask(EmbeddedModel(), request(*messages[:-1], tools=TOOLS))
    assert response.content and response.stop_reason in ("end_turn", "tool_use")


def test_it_runs_a_command_that_is_asked_for_and_quotes_what_it_printed() -> None:
    asked = request(person("Please run `wc -l src/*.py`."), tools=TOOLS)
    _, first = ask(EmbeddedModel(), asked)
    call = first.content[-1]
    assert isinstance(call, ToolUseBlock)
    assert (call.name, call.input) == ("Bash", {"command": "wc -l src/*.py"})
    _, second = ask(EmbeddedModel(), answered(asked, first, "  3 src/a.py\n"))
    assert "3 src/a.py" in Message("assistant", second.content).text
    assert second.stop_reason == "end_turn"
