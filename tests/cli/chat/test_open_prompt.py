"""The prompt that stays open during a turn: what is typed is seen, waits, and can be taken back."""

from __future__ import annotations

import re
import time

from tests.cli.conftest import Command
from tests.cli.terminal import PROMPT, Terminal

CTRL_C, CTRL_D, ESC, UP = "\x03", "\x04", "\x1b", "\x1b[A"
SLOW = """
when /first/
  slow 0.05
  say WORDS60
end
when /talk/
  slow 0.1
  say WORDS9000
end
say [{text}]
""".replace("WORDS60", "word " * 60).replace("WORDS9000", "word " * 9_000)


def chat(reverie: Command, *args: str, columns: int = 80, slow_keys: bool = False, **more: str) -> Terminal:
    env = {**reverie.env, **more}
    return Terminal("chat", *args, cwd=reverie.work, env=env, columns=columns, slow_keys=slow_keys)


def test_what_is_typed_during_a_turn_is_seen_waits_and_is_sent_in_order(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script(SLOW * 4)) as terminal:
        terminal.say("the first")
        terminal.until("word word")
        terminal.press("second message")
        terminal.until("second message")
        terminal.press("\r")
        terminal.until("waits: second message")
        terminal.press("a third\r")
        terminal.until("waits: a third")
        terminal.press(UP)
        terminal.until("a third")
        terminal.press(" one\r")
        terminal.until("[second message]")
        terminal.until("[a third one]")
        terminal.until(PROMPT)
        screen = "\n".join(terminal.screen)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert screen.count("word") == 60, screen
    assert screen.index("› the first") < screen.index("› second message") < screen.index("› a third one")
    assert screen.count("second message") == 2 and "waits:" not in screen


def test_a_lone_escape_stops_the_turn_at_once_and_keeps_what_is_typed(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script(SLOW)) as terminal:
        terminal.say("talk to me")
        terminal.until("word word")
        terminal.press("half a sent")
        terminal.until("half a sent")
        terminal.press(ESC)
        terminal.until("Stopped.")
        terminal.until(PROMPT)
        time.sleep(0.2)
        terminal.press("ence\r")
        terminal.until("› half a sentence")


def test_commands_that_only_show_run_during_a_turn(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script(SLOW)) as terminal:
        terminal.say("talk to me")
        terminal.until("word word")
        terminal.press("/context\r")
        terminal.until("200,000")
        terminal.until("word word")
        terminal.press(CTRL_C)
        terminal.until("Ctrl-C again leaves")
        assert terminal.leave() == 0


def test_keys_of_a_message_do_not_answer_a_question(reverie: Command) -> None:
    gate = 'call Glob {"pattern": "*"}\n---\n'
    model = reverie.script(gate + 'call Bash {"command": "touch made.txt"}\n---\nsay Over.\n---\nsay [{text}]\n')
    go = reverie.work / "go"
    reverie.home.mkdir()
    (reverie.home / "settings.toml").write_text(
        f'[[hooks.PreToolUse]]\nmatcher = "Glob"\ncommand = "until [ -e {go} ]; do sleep 0.02; done"\n'
    )
    with chat(reverie, "--model", model, slow_keys=True) as terminal:
        terminal.say("make it")
        terminal.press("pppppppp")
        terminal.until("pppppppp")
        go.touch()
        terminal.until("no ›")
        terminal.press("pppppppp")
        terminal.press(ESC)
        terminal.until("Over.")
        terminal.press("\r")
        terminal.until("[pppppppppppppppp]")
    assert not (reverie.work / "made.txt").exists()


def test_a_key_that_is_held_down_does_not_answer_the_next_question(reverie: Command) -> None:
    calls = "".join(f'call Bash {{"command": "touch made-{number}.txt"}}\n---\n' for number in (1, 2))
    with chat(reverie, "--model", reverie.script(calls + "say Over.\n"), slow_keys=True) as terminal:
        terminal.press("make them")
        terminal.until("make them")
        terminal.press("\r")
        terminal.until("no ›")
        terminal.press("p")
        terminal.until("no ›")
        terminal.press("pppppp")
        terminal.press(ESC)
        terminal.until("Over.")
    assert (reverie.work / "made-1.txt").exists() and not (reverie.work / "made-2.txt").exists()


def test_after_a_command_during_a_turn_the_chat_still_says_that_it_works(reverie: Command) -> None:
    with chat(reverie, "--model", reverie.script("wait 1000\nsay Never.\n")) as terminal:
        terminal.say("go")
        terminal.until("working")
        terminal.press("/cost\r")
        terminal.until("Nothing was spent")
        terminal.until("working")
        terminal.press("/modle\r")  # no wait for the end of the turn
        terminal.until("did you mean /mode")
        terminal.press(ESC)
        terminal.until("Stopped.")
        terminal.press(CTRL_D)
        assert terminal.ended() == 0


def test_history_search_an_editor_and_the_keys_of_vi(reverie: Command) -> None:
    editor = reverie.work / "edit.sh"
    editor.write_text('#!/bin/sh\nsleep 0.5\nprintf " and more" >> "$1"\n')
    editor.chmod(0o755)
    model = reverie.script("slow 0.05\nsay STREAM\n".replace("STREAM", "word " * 20) + "---\nsay [{text}]\n" * 3)
    with chat(reverie, "--model", model, EDITOR=str(editor)) as terminal:
        terminal.say("alpha beta")
        terminal.until("word word")
        terminal.press("draft")
        terminal.until("draft")
        terminal.press("\x07")  # Ctrl-G, during the turn
        terminal.until("and more")
        terminal.press("\r")
        terminal.until("[draft and more]")
        terminal.press("\x12alp")  # Ctrl-R
        terminal.until("alpha beta")
        terminal.press("\r")  # takes what was found
        time.sleep(0.2)
        terminal.press("\r")
        terminal.until("[alpha beta]")
        terminal.say("/vi")
        terminal.until("keys of vi are on")
        terminal.press("wrong word")
        terminal.press(ESC)
        terminal.until("NORMAL")
        terminal.press("0ceright")
        terminal.press("\r")
        terminal.until("[right word]")
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
        screen = "\n".join(terminal.screen)
    assert screen.count("word word word word") >= 1 and screen.count("› alpha beta") == 2, screen


def test_escape_twice_goes_back_and_shift_tab_changes_the_mode(reverie: Command) -> None:
    call = '{"file_path": "new.txt", "content": "made"}'
    model = reverie.script(f"say First.\n---\ncall Write {call}\n---\nsay Written.\n")
    with chat(reverie, "--model", model, slow_keys=True) as terminal:
        terminal.say("one")
        terminal.until("First.")
        terminal.wait_for_prompt()
        for _ in range(2):
            time.sleep(0.5)  # two at once would be another key
            terminal.press(ESC)
        terminal.until("before which message")
        terminal.press("\r")
        terminal.until("Back to before: one")
        terminal.until(PROMPT)
        terminal.press(" again\x1b[Z")  # Shift-Tab
        terminal.until("accept edits")
        terminal.press("\r")
        terminal.until("First.")
        terminal.say("two")
        terminal.until("Written.")  # without a question
        terminal.say("/export talk.md")
        terminal.until("Wrote ")
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert (reverie.work / "new.txt").read_text() == "made"
    exported = (reverie.work / "talk.md").read_text()
    assert "one again\n\n## Reverie\n\nFirst.\n\n## You\n\ntwo\n\n## Reverie\n\n- `Write new.txt`" in exported


def test_lines_of_our_own_break_between_words_in_a_narrow_terminal(reverie: Command) -> None:
    call = '{"file_path": "a_long_name_of_a_file.txt", "content": "made"}'
    model = reverie.script(f"call Write {call}\n---\nsay Over.\n")
    with chat(reverie, "--theme", "light", "--model", model, columns=40) as terminal:
        terminal.say("write it")
        terminal.until("no ›")
        shown = terminal.screen
        time.sleep(0.6)
        terminal.press("n")
        terminal.until("Why not?")
        terminal.press("\r")
        terminal.until("Over.")
        raw = terminal.raw
    assert "\x1b[35m" in raw and not re.search(r"\x1b\[(\d+;)*3[36]m", raw)  # no yellow and no cyan on white
    assert max(len(line) for line in shown if "/" not in line) <= 40, shown
    reason = next(at for at, line in enumerate(shown) if line.startswith("  Write changes"))
    assert shown[reason].rstrip() == "  Write changes" and shown[reason + 1].startswith("  /"), shown
