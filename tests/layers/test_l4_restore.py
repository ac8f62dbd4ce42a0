"""What comes back after a compaction beside the files read last: skills that were taken up, and the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.layers.l4_compaction.restore import is_plan, is_skill
from reverie.session import Session
from tests.layers.talks import compaction_script, flags
from tests.sessions import in_session, script, turn

OFF = "session_notes = false\n[microcompact]\neconomic = false\n"


def skill(folder: Path, name: str, text: str) -> Path:
    path = folder / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def after_reading(tmp_path: Path, own_home: Path, paths: list[str]) -> list[str]:
    """The blocks that a compaction brings once these were read one by one, except for the list of all skills."""
    flags(own_home, OFF)
    calls = "".join(f'call Read {{"file_path": "{path}"}}\n---\n' for path in paths)
    model = script(tmp_path, calls + "say done\n" + compaction_script())

    async def work(session: Session) -> list[str]:
        await turn(session, "read them: " + "all of these, please, and mind what they say. " * 300)
        await session.compact()
        brought = [entry.message for entry in session.view.entries if entry.brought]
        texts = [block.wire()["text"] for message in brought[1:] for block in message.content]
        return [text for text in texts if not text.startswith("<system-reminder>\nSkills:")]

    return in_session(work, cwd=tmp_path, model=model, overrides={"permissions.mode": "accept_all"})


def test_skills_that_were_read_come_back_newest_first_and_not_among_the_files(tmp_path: Path, own_home: Path) -> None:
    ours = skill(tmp_path / ".reverie", "release", "How a release is made.")
    theirs = skill(tmp_path / ".claude", "review", "How a review is done.")
    users = skill(own_home / ".reverie", "tone", "How letters are written.")
    skill(tmp_path / ".reverie", "unread", "Nobody asked for this.")
    for number in range(1, 7):
        (tmp_path / f"f{number}.txt").write_text(f"file {number}\n")
    blocks = after_reading(
        tmp_path, own_home, [str(ours), *(f"f{number}.txt" for number in range(1, 7)), str(theirs), str(users)]
    )
    assert [block.split("\n")[1].split(" was")[0] for block in blocks[:3]] == [
        "The skill tone",
        "The skill review",
        "The skill release",
    ]
    assert "How a release is made." in blocks[2] and not any("Nobody" in block for block in blocks)
    files = [block for block in blocks if "read again from disk after the compaction" in block]
    assert [block.split("\n")[1].split(",")[0] for block in files] == [
        str(tmp_path / f"f{n}.txt") for n in (6, 5, 4, 3, 2)
    ]


def test_skills_keep_to_their_budgets(tmp_path: Path, own_home: Path) -> None:
    """5,000 tokens each and 25,000 in all: of seven long ones five come back, each cut, and a short one whole."""
    paths = [
        skill(tmp_path / ".claude", f"s{n}", f"skill {n}\n" + "mind every word of this\n" * 1_500) for n in range(7)
    ]
    blocks = after_reading(tmp_path, own_home, [str(path) for path in paths])
    shown = [block for block in blocks if block.startswith("<tool-text>\nThe skill")]
    assert len(shown) == 5 and "The skill s6 " in shown[0] and "The skill s2 " in shown[4]
    assert all(19_000 < len(block) < 20_400 and "its beginning only" in block for block in shown)


def test_a_skill_changed_meanwhile_comes_back_as_it_is_now_and_one_that_is_gone_does_not(
    tmp_path: Path, own_home: Path
) -> None:
    flags(own_home, OFF)
    one = skill(tmp_path / ".reverie", "one", "as it was")
    two = skill(tmp_path / ".reverie", "two", "as it was too")
    calls = "".join(f'call Read {{"file_path": "{path}"}}\n---\n' for path in (one, two))
    model = script(tmp_path, calls + "say done\n" + compaction_script())

    async def work(session: Session) -> str:
        await turn(session, "read them " * 2_000)
        one.write_text("as it is now")
        two.unlink()
        await session.compact()
        return "\n".join(e.message.text for e in session.view.entries if e.brought)

    text = in_session(work, cwd=tmp_path, model=model)
    assert "as it is now" in text and "as it was too" not in text


def test_the_plan_touched_last_comes_back_and_does_not_count_among_the_files(tmp_path: Path, own_home: Path) -> None:
    plans = tmp_path / ".claude" / "plans"
    plans.mkdir(parents=True)
    for name in ("old", "new"):
        (plans / f"{name}.md").write_text(f"the {name} plan")
    for number in range(1, 6):
        (tmp_path / f"f{number}.txt").write_text(f"file {number}\n")
    named = [str(plans / "old.md"), str(plans / "new.md"), *(f"f{number}.txt" for number in range(1, 6))]
    blocks = after_reading(tmp_path, own_home, named)
    assert blocks[0].startswith("<plan-text>\nThe plan being followed is ") and "the new plan" in blocks[0]
    assert not any("the old plan" in block for block in blocks)
    assert sum("read again from disk after the compaction:" in block for block in blocks[1:]) == 5


@pytest.mark.parametrize(
    ("path", "skilled", "planned"),
    [
        ("/p/.claude/skills/x/SKILL.md", True, False),
        ("/p/.reverie/skills/x/SKILL.md", True, False),
        ("/home/r/skills/x/SKILL.md", True, False),
        ("/p/skills/x/SKILL.md", False, False),
        ("/p/.claude/skills/SKILL.md", False, False),
        ("/p/.claude/skills/x/notes.md", False, False),
        ("/p/.claude/plans/a.md", False, True),
        ("/home/r/plans/a.md", False, True),
        ("/p/plans/a.md", False, False),
        ("/p/.claude/plans/sub/a.md", False, False),
        ("/p/.claude/plans/a.txt", False, False),
        ("/SKILL.md", False, False),
        ("/a.md", False, False),
    ],
)
def test_what_a_skill_and_a_plan_are_told_by(path: str, skilled: bool, planned: bool) -> None:
    home = Path("/home/r")
    assert (is_skill(Path(path), home), is_plan(Path(path), home)) == (skilled, planned)
