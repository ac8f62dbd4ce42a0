"""Rules with `paths:` come beside the result of the call that touched such a file: once, and not in the prefix."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.session import Session
from reverie.storage.transcript.records import Rewind
from tests.sessions import in_session, script, turn


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".claude" / "rules").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".claude" / "rules" / "py.md").write_text("---\npaths: '*.py'\n---\nPython is written with care.\n")
    (folder / ".claude" / "rules" / "ts.md").write_text("---\npaths: '*.ts'\n---\nTypeScript too.\n")
    for name in ("a.py", "b.py", "c.txt"):
        (folder / name).write_text("content\n")
    return folder


PLAY = """say Looking.
call Read {"file_path": "c.txt"}
---
call Read {"file_path": "a.py"}
call Read {"file_path": "b.py"}
call Read {"file_path": "missing.ts"}
---
call Read {"file_path": "a.py"}
---
say Done.
---
call Read {"file_path": "b.py"}
---
say Again.
---
call Read {"file_path": "a.py"}
---
say Once more.
"""


def said(session: Session) -> str:
    return str([message.wire() for message in session.view.messages()])


def test_once_beside_the_results(project: Path, tmp_path: Path) -> None:
    async def work(session: Session) -> tuple[str, list[object]]:
        await turn(session, "go")
        messages = session.view.messages()
        return said(session), [message.wire() for message in messages]

    text, messages = in_session(work, cwd=project, model=script(tmp_path, PLAY))
    assert text.count("Python is written with care.") == 1
    assert "TypeScript too." not in text, "a file that could not be read was not touched"
    beside = next(message for message in messages if "with care" in str(message))
    kinds = [block["type"] for block in beside["content"]]  # type: ignore[index]
    assert kinds == ["tool_result"] * 3 + ["text"]


def test_a_resumed_session_knows(project: Path, tmp_path: Path) -> None:
    in_session(lambda s: turn(s, "go"), cwd=project, model=script(tmp_path, PLAY))

    async def again(session: Session) -> str:
        await turn(session, "and now?")
        return said(session)

    assert in_session(again, cwd=project, resume="last").count("Python is written with care.") == 1


@pytest.mark.breaks_prefix("the conversation is rewound by hand, which nobody announces here")
def test_what_is_out_of_view_is_shown_again(project: Path, tmp_path: Path) -> None:
    async def work(session: Session) -> str:
        await turn(session, "go")
        session.log.append(Rewind(head=None, reason="clear"))
        await turn(session, "anew")
        return said(session)

    play = 'repeat forever\n  call Read {"file_path": "a.py"}\n  ---\n  say Done.\nend\n'
    assert in_session(work, cwd=project, model=script(tmp_path, play)).count("Python is written with care.") == 1


def test_a_flag_switches_it_off(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_FLAG_RULES", "0")

    async def work(session: Session) -> str:
        await turn(session, "go")
        return said(session)

    assert "with care" not in in_session(work, cwd=project, model=script(tmp_path, PLAY))


def test_a_bare_session_has_none(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_BARE", "1")

    async def work(session: Session) -> str:
        await turn(session, "go")
        return said(session)

    assert "with care" not in in_session(work, cwd=project, model=script(tmp_path, PLAY))


def test_a_long_rule_is_cut(project: Path, tmp_path: Path) -> None:
    (project / ".claude" / "rules" / "py.md").write_text("---\npaths: '*.py'\n---\n" + "word " * 10_000)

    async def work(session: Session) -> str:
        await turn(session, "go")
        return said(session)

    text = in_session(work, cwd=project, model=script(tmp_path, PLAY))
    assert "Cut after 40,000 characters" in text and len(text) < 60_000
