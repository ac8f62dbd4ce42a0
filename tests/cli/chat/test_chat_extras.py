"""What the chat offers around messages: own commands, pictures, files, sessions to resume, folded output, the end."""

from __future__ import annotations

import asyncio
import base64
import time
from pathlib import Path

from reverie.cli.chat.markdown_stream import MarkdownStream
from reverie.cli.chat.palette import rank
from reverie.cli.chat.project_files import ProjectFiles
from reverie.cli.output import Paint
from reverie.cli.screen import STYLE
from tests.cli.conftest import Command
from tests.cli.terminal import PROMPT, Terminal
from tests.work import cpu_limit

CTRL_D, CTRL_O, ENTER, DOWN = "\x04", "\x0f", "\r", "\x1b[B"
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def chat(reverie: Command, *args: str, columns: int = 80) -> Terminal:
    return Terminal("chat", *args, cwd=reverie.work, env=reverie.env, columns=columns)


def test_a_command_of_the_user_runs_at_once_and_is_no_word_of_the_user(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script("say I see: {text}\n")) as terminal:
        terminal.say("!echo $((6 * 7))")
        terminal.until("  42")
        terminal.say("go on")
        terminal.until("The user ran this command: echo $((6 * 7))")
        terminal.until("go on")
    record = next(line for line in reverie.transcripts()[0].read_text().splitlines() if "user ran this" in line)
    assert '"origin": "tool"' in record or '"origin":"tool"' in record or "<tool-text>" in record


def test_lines_of_a_pipe_run_no_commands(reverie: Command) -> None:
    done = reverie("chat", "--model", reverie.script("say [{text}]\n"), stdin="!touch made.txt\n")
    assert done.stdout == "[!touch made.txt]\n" and not (reverie.work / "made.txt").exists()


def test_a_picture_goes_along_or_the_message_is_not_sent(reverie: Command) -> None:
    for name in ("p.png", "my p.png"):
        (reverie.work / name).write_bytes(PICTURE)
    (reverie.work / "no.png").write_text("not a picture")
    with chat(reverie, "--model", reverie.script("say Seen.\n---\nsay Again.\n")) as terminal:
        terminal.say("what is @missing.png")
        terminal.until("The message was not sent.")
        terminal.say("what is @no.png")
        terminal.until("is not a picture. The message was not sent.")
        terminal.say("what is @p.png?")
        terminal.until("Seen.")
        terminal.until(PROMPT)
        terminal.press("and @my")
        terminal.until("my p.png")
        terminal.press("\t")
        terminal.until('p.png"')
        terminal.press(ENTER)
        time.sleep(0.2)
        terminal.press(ENTER)
        terminal.until("Again.")
    assert reverie.transcripts()[0].read_text().count('"image/png"') == 2


def test_a_session_is_picked_by_typing_in_a_narrow_terminal(reverie: Command) -> None:
    model = reverie.script("say Noted.\n---\nsay Again.\n")
    for title in ("Paint the boat", "Mend the sails of the ship"):
        reverie("run", "--model", model, title)
    with chat(reverie, "--model", model, columns=40) as terminal:
        terminal.until(PROMPT)
        terminal.press("/resume\r")
        terminal.until("Continue which session?")
        terminal.until("Paint the boat")
        terminal.press("boat")
        terminal.until("1 of 2")
        assert max(map(len, terminal.screen)) <= 40
        terminal.press(ENTER)
        terminal.until("Continuing")
        terminal.until("Paint the boat")
        terminal.say("and now")
        terminal.until("Again.")
        terminal.until(PROMPT)
        time.sleep(0.3)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
        terminal.until("continue with: reverie chat --resume")


def test_long_output_is_folded_and_shown_on_request(reverie: Command) -> None:
    (reverie.work / "lines.txt").write_text("".join(f"row {number}\n" for number in range(40)))
    script = reverie.script('think Hm.\ncall Bash {"command": "cat lines.txt"}\n---\nsay Over.\n')
    with chat(reverie, "--model", script) as terminal:
        terminal.say("look")
        terminal.until("thought for")
        folded = terminal.until("more lines · /show 2")
        assert "row 2" in folded and "row 5" not in folded
        terminal.until("Over.")
        terminal.until(PROMPT)
        terminal.press(CTRL_O)
        terminal.until("row 39")
        terminal.say("/show 1")
        terminal.until("Hm.")


def test_a_change_is_shown_in_short(reverie: Command) -> None:
    (reverie.work / "server.py").write_text("# server\nport = 1\n")
    script = reverie.script(
        'call Read {"file_path": "server.py"}\n---\n'
        'call Edit {"file_path": "server.py", "old_string": "port = 1", "new_string": "port = 2"}\n---\nsay Over.\n'
    )
    with chat(reverie, "--model", script, "--permission-mode", "accept_edits") as terminal:
        terminal.say("change it")
        terminal.until("✓ Edit server.py")
        shown = terminal.until("Over.")
        assert "- port = 1" in shown and "2 + port = 2" in shown


def find(files: ProjectFiles, typed: str) -> list[str]:
    return asyncio.run(files.find(typed))


def test_letters_find_commands_and_files() -> None:
    names = ["context", "compact", "cost", "resume", "remember"]
    assert rank("con", names, str)[0] == "context"
    assert rank("rsm", names, str) == ["resume"]
    assert rank("", names, str) == names


def test_files_are_found_by_their_letters_without_ignored_ones_and_secrets(tmp_path: Path) -> None:
    for name in ("src/deep/harbour_master.py", "docs/harm.md", "build/harbour.o", ".env", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("build/\n")
    files = ProjectFiles(tmp_path)
    assert find(files, "harm") == ["docs/harm.md", "src/deep/harbour_master.py"]
    assert find(files, "sdhm") == ["src/deep/harbour_master.py"]
    assert find(files, "env") == []
    assert "src/" in find(files, "")


def test_a_hundred_thousand_files_are_searched_quickly(tmp_path: Path) -> None:
    files = ProjectFiles(tmp_path)
    names = [f"package_{number % 300}/module_{number}/source_{number}.py" for number in range(100_000)]
    files.set_names(names)
    with cpu_limit(10):
        assert find(files, "source_99999")[0].endswith("source_99999.py")
        assert find(files, "pms9") != []
        assert find(files, "nothing like it") == []


def test_the_plain_chat_draws_nothing_and_says_everything_in_words(reverie: Command) -> None:
    made = 'think Hm.\ncall Bash {"command": "touch made.txt"}\n---\nsay It is **made**.\n'
    model = reverie.script(made + "---\nsay [{text}]\n" * 2)
    with chat(reverie, "--plain", "--model", model) as terminal:
        terminal.until("/help lists the commands.")
        terminal.press("make it\n")
        terminal.until("Tool: Bash $ touch made.txt")
        terminal.until("Run it again? Type p for in the project")
        terminal.press("always look at the tests\n")  # a message, and not the answer "always"
        terminal.until("waits as a message")
        terminal.press("pasted\np\n!touch pasted.txt\n")  # neither an answer nor a command
        time.sleep(0.3)
        assert not (reverie.work / "made.txt").exists()
        terminal.press("p\n")
        terminal.until("Finished after")
        terminal.until("It is **made**.")
        terminal.until("Ready.")
        terminal.until("[always look at the tests]")
        terminal.until("pasted\np\n!touch pasted.txt")
        terminal.until("Ready.")
        terminal.press("/exit\n")
        assert terminal.ended() == 0
        assert "\x1b" not in terminal.raw and not set(terminal.raw) & set("✓✗›⋯·■✻▰")
    assert (reverie.work / "made.txt").exists() and not (reverie.work / "pasted.txt").exists()


def test_the_answer_is_copied_only_on_request(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script("say Take this \x1b]52;c;ZXZpbA==\x07 away.\n")) as terminal:
        terminal.say("hello")
        terminal.until("away.")
        assert "\x1b]52;" not in terminal.raw
        terminal.say("/copy")
        terminal.until("to the clipboard")
        terminal.until(PROMPT)
        terminal.press("/exprt")
        terminal.until("/export ")
        terminal.press(ENTER)  # letters of a command: Enter completes it
        terminal.until("ort")
        terminal.press(" talk.md" + ENTER)
        terminal.until("Wrote ")
        assert "Take this ␛]52;c;" in (reverie.work / "talk.md").read_text()
        copied = terminal.raw.split("\x1b]52;c;")[1].split("\x07")[0]
        assert base64.b64decode(copied).decode().startswith("Take this")


def test_emphasis_and_links_are_shown_and_other_signs_stay() -> None:
    out = list[str]()
    stream = MarkdownStream(out.append, Paint(True), 200)
    given = "*Some words* of [the docs](https://x.org/a_b), not *args, snake_case, 2 * 3, [x] or an open *end"
    for char in given:
        stream.feed(char)
    stream.finish()
    plain = STYLE.sub("", "".join(out))
    assert plain == "Some words of the docs (https://x.org/a_b), not *args, snake_case, 2 * 3, [x] or an open *end\n"
    assert Paint(True).italic("Some") in "".join(out) and Paint(True).underlined("docs") in "".join(out)
