"""`reverie chat`: on a terminal, with keys pressed as a person would, and from a pipe."""

from __future__ import annotations

import re
import signal
import time

import pytest

from reverie.simulator import Simulator
from reverie.simulator.http import running
from tests.cli.conftest import Command
from tests.cli.terminal import PROMPT, Terminal

CTRL_C, CTRL_D, ALT_ENTER, TAB = "\x03", "\x04", "\x1b\r", "\t"

EDIT = """
say Let me look.
call Read {"file_path": "server.py"}
---
call Edit {"file_path": "server.py", "old_string": "port = 1", "new_string": "port = 2"}
---
say The port is **2** now.
---
say And again.
"""


def chat(reverie: Command, *args: str, **more: str) -> Terminal:
    return Terminal("chat", *args, cwd=reverie.work, env={**reverie.env, **more})


def test_a_turn_an_edit_that_is_allowed_and_leaving(reverie: Command) -> None:
    (reverie.work / "server.py").write_text("# server\nport = 1\n")
    with chat(reverie, "--model", reverie.script(EDIT)) as terminal:
        terminal.say("Change the port")
        terminal.until("✓ Read server.py")
        shown = terminal.until("Allow?")
        assert "? Edit server.py" in shown
        assert "- port = 1" in shown
        assert "2 + port = 2" in shown
        terminal.until("no ›")
        assert "port = 1" in (reverie.work / "server.py").read_text()
        terminal.press("y")
        terminal.until("✓ Edit server.py")
        terminal.until("The port is 2 now.")
        terminal.until(PROMPT)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert "port = 2" in (reverie.work / "server.py").read_text()


def test_a_refusal_with_a_reason_reaches_the_model(reverie: Command) -> None:
    model = reverie.script('call Bash {"command": "touch made.txt"}\n---\nsay I was told: {result}\n')
    with chat(reverie, "--model", model) as terminal:
        terminal.say("make it")
        terminal.until("touch made.txt")
        terminal.until("no ›")
        terminal.press("n")
        terminal.until("Why not?")
        terminal.press("not today\r")
        terminal.until("I was told: Exit code 1")
        terminal.until("[The user refused: not today]")
        terminal.until(PROMPT)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert not (reverie.work / "made.txt").exists()


def test_an_answer_for_the_session_asks_once(reverie: Command) -> None:
    call = 'call Bash {"command": "echo x >> log.txt"}\n---\n'
    with chat(reverie, "--model", reverie.script(call * 3 + "say All three.\n")) as terminal:
        terminal.say("three times")
        shown = terminal.until("for this session: Bash(echo x >> log.txt)") + terminal.until("no ›")
        assert "always" not in shown, "a command with a redirection is not saved"
        terminal.press("s")
        terminal.until("All three.")
        assert terminal.shown.count("? Bash $") == 1
    assert (reverie.work / "log.txt").read_text() == "x\n" * 3


def test_a_command_runs_again_in_the_project_and_its_changes_are_undone(reverie: Command) -> None:
    call = 'call Bash {"command": "echo x > made.txt; rm old.txt"}\n---\n'
    (reverie.work / "old.txt").write_text("old\n")
    with chat(
        reverie, "--model", reverie.script('call Bash {"command": "ls"}\n---\n' + call + "say Done.\n")
    ) as terminal:
        terminal.say("make it")
        assert "sandbox" in terminal.until("? Bash $ echo x")
        shown = " ".join(terminal.until("no ›").split())
        assert "it tried to write made.txt, to write old.txt" in shown and "parts of it may have run" in shown
        assert "p in the project" in shown and "o outside of the sandbox" in shown
        assert not (reverie.work / "made.txt").exists() and (reverie.work / "old.txt").exists()
        terminal.press("p")
        assert "asked" in terminal.until("Done.")
        assert (reverie.work / "made.txt").exists() and not (reverie.work / "old.txt").exists()
        terminal.say("/undo files")
        assert "old.txt, made.txt" in terminal.until("no ›")
        terminal.press("y")
        terminal.until("Removed: made.txt")
    assert not (reverie.work / "made.txt").exists() and (reverie.work / "old.txt").read_text() == "old\n"


def test_what_was_typed_before_a_question_is_no_answer_to_it(reverie: Command) -> None:
    model = reverie.script('wait 1\ncall Bash {"command": "touch made.txt"}\n---\nsay Over.\n')
    with chat(reverie, "--model", model) as terminal:
        terminal.say("make it")
        terminal.press("yyyy")
        terminal.until("no ›")
        time.sleep(0.5)
        assert not (reverie.work / "made.txt").exists()
        terminal.press("\x1b")
        terminal.until("Over.")
    assert not (reverie.work / "made.txt").exists()


def test_hidden_characters_of_a_command_are_shown(reverie: Command) -> None:
    model = reverie.script('call Bash {"command": "echo \\u202e\\u001b[2Jx > y"}\n---\nsay Over.\n')
    with chat(reverie, "--model", model) as terminal:
        terminal.say("make it")
        assert "echo <U+202E>␛[2Jx > y" in terminal.until("Run it again?")
        assert "\x1b[2J" not in terminal.raw.split("make it")[1]


def test_only_what_is_offered_is_an_answer(reverie: Command) -> None:
    call = 'call Bash {"command": "touch made.txt; ls *"}\n---\n'  # no rule can say this, so there is no "always"
    with chat(reverie, "--model", reverie.script(call + "say Over.\n")) as terminal:
        terminal.say("make it")
        assert "always" not in terminal.until("no ›").split("Run it again?")[1]
        terminal.press("axmy\r")
        terminal.press("p")
        assert "always" not in terminal.until("Over.")
        terminal.say("/clear")
        terminal.until("Continue?")
        terminal.press("ax")
        terminal.press("y")
        assert "always" not in terminal.until("This is a new conversation.")
    assert (reverie.work / "made.txt").exists()


def test_nothing_is_allowed_before_its_last_page_was_shown(reverie: Command) -> None:
    lines = "\\n".join(f"line {number}" for number in range(1_005))
    call = f'call Write {{"file_path": "made.txt", "content": "{lines}\\nevil"}}\n---\n'
    with chat(reverie, "--model", reverie.script(call + "say Over.\n")) as terminal:
        terminal.say("make it")
        shown = terminal.until("no ›")
        assert "6 more lines" in shown and "evil" not in shown
        assert "yes" not in shown.split("Allow?")[1] and "always" not in shown.split("Allow?")[1]
        terminal.press("yYaA")
        terminal.press("m")
        assert "evil" in terminal.until("yes")
        terminal.until("no ›")
        assert not (reverie.work / "made.txt").exists()
        terminal.press("y")
        terminal.until("Over.")
    assert (reverie.work / "made.txt").exists()


def test_ctrl_c_stops_the_turn_and_twice_leaves(reverie: Command) -> None:
    model = reverie.script("slow 0.1\nsay " + "word " * 500 + "\n---\nsay Back again.\n")
    with chat(reverie, "--model", model) as terminal:
        terminal.say("talk to me")
        terminal.until("word word")
        terminal.press(CTRL_C)
        terminal.until("Stopped.")
        terminal.until(PROMPT)
        time.sleep(2.2)  # longer than two presses may lie apart
        terminal.press(CTRL_C)
        terminal.until("Ctrl-C again leaves")
        assert terminal.leave() == 0
    assert "word" in reverie("sessions", "show", "last", "--json").stdout or reverie.transcripts()


def test_ctrl_c_in_a_question_stops_the_turn(reverie: Command) -> None:
    model = reverie.script('call Bash {"command": "touch made.txt"}\n---\nsay never\n')
    with chat(reverie, "--model", model) as terminal:
        terminal.say("make it")
        terminal.until("no ›")
        terminal.press(CTRL_C)
        terminal.until("Stopped.")
        terminal.until(PROMPT)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert not (reverie.work / "made.txt").exists()


@pytest.mark.parametrize("at", ["prompt", "turn", "question"])
def test_sigterm_closes_the_chat_wherever_it_is(reverie: Command, at: str) -> None:
    script = 'call Bash {"command": "touch made.txt"}\n' if at == "question" else "slow 0.1\nfill 9000\n"
    with chat(reverie, "--model", reverie.script(script)) as terminal:
        if at == "prompt":
            terminal.until(PROMPT)
        else:
            terminal.say("go on then")
            terminal.until("no ›") if at == "question" else time.sleep(0.5)
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.ended() == 143
    assert list(reverie.home.glob("projects/*/*/session.lock")) == []


def test_several_lines_and_history(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script("repeat forever\n  say [{text}]\nend\n")) as terminal:
        terminal.until(PROMPT)
        terminal.press("one")
        terminal.until("one")
        terminal.press(ALT_ENTER + "two\\")
        terminal.until("two\\")
        terminal.press("\r")
        time.sleep(0.2)
        terminal.press("three")
        terminal.until("three")
        terminal.press("\r")
        terminal.until("[one")
        terminal.until("two")
        terminal.until("three]")
        terminal.until(PROMPT)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    history = next((reverie.home / "history").iterdir())
    assert history.stat().st_mode & 0o777 == 0o600
    assert "+one\n+two\n+three\n" in history.read_text()


def test_commands_and_their_completion(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script("repeat forever\n  say [{text}]\nend\n")) as terminal:
        terminal.until(PROMPT)
        terminal.press("/con")
        terminal.until("how full the window is")
        terminal.press(TAB)
        terminal.until("/context")
        terminal.press("\r")
        terminal.press("\r")
        terminal.until("200,000")
        terminal.say("/nosuch")
        terminal.until("There is no command '/nosuch'")
        terminal.say("hello")
        terminal.until("[hello]")
        terminal.say("/cost")
        terminal.until("came from the cache")
        terminal.say("/clear")
        terminal.until("from the window. Continue?")
        terminal.press("y")
        terminal.until("This is a new conversation.")
        terminal.say("/model nosuch")
        terminal.until("There is no model 'nosuch'")
        terminal.say("/model embedded")
        terminal.until("The model is now embedded.")
        terminal.say("/exit")
        assert terminal.ended() == 0


def test_a_model_that_nobody_knows_is_doubted_at_once(reverie: Command) -> None:
    with running(Simulator()) as url:
        reverie.extra |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}
        with chat(reverie, "--model", reverie.script("say x\n")) as terminal:
            terminal.until(PROMPT)
            terminal.press("/model anthropic:nonesuch\r")
            terminal.until("does not list anthropic:nonesuch; /model scripted:")
            terminal.until("does not know anthropic:nonesuch")
            terminal.until("The model is now anthropic:nonesuch.")
            terminal.say("/exit")
            assert terminal.ended() == 0


def test_files_are_completed_after_an_at_sign(reverie: Command) -> None:
    (reverie.work / "harbour.py").write_text("")
    with chat(reverie, "--model", reverie.script("say [{text}]\n")) as terminal:
        terminal.until(PROMPT)
        terminal.press("read @har")
        terminal.until("harbour.py")
        terminal.press(TAB)
        time.sleep(0.3)
        terminal.press("\r")
        time.sleep(0.3)
        terminal.press("\r")
        terminal.until("[read @harbour.py]")


def test_a_file_name_cannot_turn_the_line_around_in_a_completion(reverie: Command) -> None:
    (reverie.work / "har\u202eyp.exe").write_text("")
    (reverie.work / "harbour\nFAKE").write_text("")
    with chat(reverie, "--model", reverie.script("say [{text}]\n")) as terminal:
        terminal.until(PROMPT)
        terminal.press("read @har")
        terminal.until("har<U+202E>yp.exe")
        terminal.until("harbour FAKE")
        terminal.press(TAB)
        time.sleep(0.3)
        terminal.press("\r")
        time.sleep(0.3)
        assert "\u202e" not in terminal.raw


def test_a_chat_is_resumed_with_a_recap(reverie: Command) -> None:
    reverie("run", "--model", reverie.script("say The answer was seven.\n---\nsay Once more.\n"), "What was it?")
    with chat(reverie, "--continue") as terminal:
        terminal.until("Continuing")
        terminal.until("What was it?")
        terminal.until("The answer was seven.")
        terminal.say("again")
        terminal.until("Once more.")


def test_no_color_means_no_colour(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script("say **Bold** it is.\n"), NO_COLOR="1") as terminal:
        terminal.say("hello")
        terminal.until("**Bold** it is.")
        terminal.until(PROMPT)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
        assert not re.search(r"\x1b\[[0-9;]*\b[34][0-9]m", terminal.raw), "a colour was used"


def test_a_narrow_terminal_is_wrapped_by_words(reverie: Command) -> None:
    script = reverie.script("say " + "wordy " * 40 + "END\n")
    with Terminal("chat", "--model", script, cwd=reverie.work, env=reverie.env, columns=40) as terminal:
        terminal.say("hello")
        terminal.until("END")
        terminal.until(PROMPT)
        lines = [line for line in terminal.screen if "wordy" in line]
        assert max(map(len, lines)) <= 40 and sum(line.count("wordy") for line in lines) == 40


# -- from a pipe --------------------------------------------------------------------------------------------------


def test_each_line_of_a_pipe_is_a_turn(reverie: Command) -> None:
    model = reverie.script("repeat forever\n  say [{text}]\nend\n")
    done = reverie("chat", "--model", model, stdin="one\n\ntwo\n/cost\n")
    assert done.stdout.startswith("[one]\n[two]\n") and "main             2" in done.stdout
    assert len(reverie.transcripts()) == 1


def test_a_pipe_that_ends_without_a_line_is_fine(reverie: Command) -> None:
    assert reverie("chat").stdout == ""


def test_invalid_bytes_in_a_pipe_are_replaced(reverie: Command) -> None:
    model = reverie.script("say [{text}]\n")
    assert reverie("chat", "--model", model, stdin=b"caf\xe9\n").stdout == "[caf\ufffd]\n"


def test_the_first_turn_that_fails_gives_the_exit_code(reverie: Command) -> None:
    model = reverie.script("when /bad/\n  fail authentication\n  say never\nend\nsay [{text}]\n")
    done = reverie("chat", "--model", model, stdin="bad\ngood\n", code=5)
    assert "reverie: " in done.stderr


def test_a_command_in_a_pipe_can_leave(reverie: Command) -> None:
    done = reverie("chat", "--model", reverie.script("say [{text}]\n"), stdin="/exit\nnever said\n")
    assert done.stdout == ""


def test_always_is_saved_listed_and_removed(reverie: Command) -> None:
    call = 'call Bash {"command": "mkdir made"}\n---\nsay Over.\n---\n'
    with chat(reverie, "--model", reverie.script(call + "say Bye.\n")) as terminal:
        terminal.say("make it")
        terminal.until("for this session, or always: Bash(mkdir made)")
        terminal.until("no ›")
        terminal.press("a")
        terminal.until("Over.")
        terminal.say("/permissions")
        terminal.until("settings.local.toml:3")
        terminal.say("/permissions remove Bash(mkdir made)")
        terminal.until("Removed Bash(mkdir made) from")
    assert (reverie.work / "made").is_dir()
    assert "mkdir" not in (reverie.work / ".reverie/settings.local.toml").read_text()


def test_a_rule_that_cannot_be_saved_is_not_called_saved(reverie: Command) -> None:
    (reverie.work / ".reverie").mkdir(exist_ok=True)
    (reverie.work / ".reverie/settings.local.toml").symlink_to(reverie.home / "outside.toml")
    call = 'call Bash {"command": "mkdir made"}\n---\nsay Over.\n---\n'
    with chat(reverie, "--model", reverie.script(call + "say Bye.\n")) as terminal:
        terminal.say("make it")
        terminal.until("no ›")
        terminal.press("a")
        shown = terminal.until("Over.")
    assert "leads out of the project" in shown and "Saved in" not in shown
    assert not (reverie.home / "outside.toml").exists()
