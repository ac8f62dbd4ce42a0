"""Who asks, what a folder hands to a model, and what "always" covers: three doors that are closed by mechanisms.

Never: a decision of the user by what an agent started, in whatever way it starts it; a secret in the instructions of a
project; a rule that was offered for one command and covers another one.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from reverie.permissions.offers import make_offer
from reverie.permissions.patterns import find_covering_rule, parse_rule
from reverie.permissions.rules import ToolCall
from reverie.runtime.agent_above import mark_environment, mark_words
from tests.attack.arena import Arena, World, in_child

REFUSED = "an agent has started this"
DECISIONS = (
    *("trust --yes", "memory inbox accept x", "memory inferred confirm x", "memory purge x", "memory edit x"),
    *("permissions remove 1", "connect claude-code", "mcp add x -- true", "web --link", "dream accept", "acp"),
)
STEPS = (
    "env -i HOME=$HOME REVERIE_HOME=$REVERIE_HOME {}",
    "env -u AI_AGENT {}",
    "setsid -w {}",
    "nohup {} 2>&1 | cat",
    "sh -c {q}",
    "exec {}",
    "(ulimit -x unlimited; {})",
    "(ulimit -x 7; {})",
    "script -qec {q} /dev/null",
    f"{shlex.quote(sys.executable)} -c 'import pty, sys; pty.spawn(sys.argv[1:])' sh -c {{q}}",
    f"{shlex.quote(sys.executable)} -c 'import os, sys; os.fork() and (os.wait(), os._exit(0)); os.setsid();"
    " os.fork() and (os.wait(), os._exit(0)); os.execvp(sys.argv[1], sys.argv[1:])' sh -c {q}",
)
SECRETS = (
    *(".env", ".env.local", "config/secrets.json", "deep/a b/server.key", ".git/config", "../.ssh/id_rsa"),
    *("../.netrc", "../.config/gh/hosts.yml", "../.docker/config.json", "../notes.txt", ".aws/credentials"),
)
"""From the project; what is above it is outside of it."""
PLACES = (
    *("AGENTS.md", "CLAUDE.md", "AGENTS.local.md", ".claude/CLAUDE.md", ".reverie/AGENTS.md", "note.md"),
    *(".claude/rules/a.md", ".reverie/rules/x/y.md", ".claude/commands/go.md", ".claude/skills/s/SKILL.md"),
    ".claude/agents/helper.md",
)
SHOWN = (
    *("make test", "python -m pip list", "git clean -n", "gofmt -l", "npm test", "cargo build *", "ls:*", "echo 'a *'"),
    *("FOO=1 make", "cd sub && make", "echo hi # why", "make\ttest", "git commit -m 'a:*'", "a | b", "find . -name *"),
)
WORSE = (
    *("{}; rm -rf ~", "{} && id", "{} | sh", "{}\nid", "CC=./evil {}", "cd /tmp && {}", "{} $(id)", "{} `id`"),
    *("{} > ~/.bashrc", "({}; id)", "{} --force", "env -i {}", "{} #", "{} &", "'{}'", "\\{}", "{}\\\nx", "{}\r x"),
    *("{} evil", "X={}", "! {}", "{} <(id)", "{}\0x", "time {}", "{{ {}; }}", "{} || id", "{}x", "x{}"),
)


def attack(arena: Arena) -> None:
    """Commands below an agent, instruction files of a hostile project, and commands beside the one that was shown."""
    for _ in range(arena.count(2, 12)):
        _agents_shell(arena)
    for _ in range(arena.count(3, 30)):
        _instructions(arena)
    for _ in range(arena.count(20, 500)):
        _always(arena)


def _agents_shell(arena: Arena) -> None:
    world, pick = arena.world(), arena.chance.choice
    text = f"{shlex.quote(sys.executable)} -m reverie {(decision := pick(DECISIONS))}"
    for _ in range(arena.chance.randrange(4)):
        text = pick(STEPS).format(text, q=shlex.quote(text))

    def work() -> None:
        os.chdir(world.work)
        words = mark_words(["/bin/sh", "-c", f"({text}) </dev/null; true"])
        os.execve(words[0], words, mark_environment(world.env))

    done = in_child(work)
    # A way that does not start the command (a shell word behind `env`) is no case.
    if REFUSED in done.out + done.err or not _did_not_start(done.out + done.err):
        wrong = REFUSED not in done.out + done.err
        arena.judge(f"`{decision}` is not refused in {text!r}: {(done.out + done.err)[-300:]}" if wrong else None)


def _did_not_start(said: str) -> bool:
    return any(sign in said for sign in ("Syntax error", "not found", "No such file", "ailed to execute"))


def _instructions(arena: Arena) -> None:
    world, chance = arena.world(), arena.chance
    mark = f"hunter-{chance.randrange(10**9)}-mark"
    _fill(world, mark)
    ways = list[str]()
    for place in chance.sample(PLACES, 4):
        file, secret = world.work / place, world.work / chance.choice(SECRETS)
        file.parent.mkdir(parents=True, exist_ok=True)
        way = chance.choice(("symlink", "hard link", "include", "linked folder"))
        if way == "symlink":
            file.symlink_to(os.path.relpath(secret, file.parent) if chance.random() < 0.5 else secret.resolve())
        elif way == "hard link":
            file.hardlink_to(secret)
        else:
            if way == "linked folder":
                (world.work / f"to{len(ways)}").symlink_to(secret.parent.resolve())
                secret = world.work / f"to{len(ways)}" / secret.name
            file.write_text(_including(arena, secret, file), encoding="utf-8")
        ways.append(f"{place}: {way} of {secret}")
    if not os.path.lexists(world.work / "AGENTS.md"):
        (world.work / "AGENTS.md").write_text("Be brief.\n@note.md\n")
    done = in_child(lambda: _show(world))
    if arena.judge_ended(done, "; ".join(ways)):
        arena.judge(f"a secret reaches the model: {'; '.join(ways)}" if mark in done.out else None)


def _fill(world: World, mark: str) -> None:
    (world.work / ".git/objects").mkdir(parents=True)
    (world.work / ".git/refs").mkdir()
    (world.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
    # The project is below the home, as it is for most people.
    world.env["HOME"] = str(world.work.parent)
    for name in SECRETS:
        path = world.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[core]\nKEY={mark}\n")


def _including(arena: Arena, secret: Path, file: Path) -> str:
    chance = arena.chance
    named = chance.choice((str(secret), os.path.relpath(secret, file.parent), f"~/{secret.name}", f"./{secret.name}"))
    named = chance.choice((named, named.replace("/", "//"), named.replace("/", "/./"), named.upper(), f"{named}#x"))
    named = named.replace(" ", "\\ ") + chance.choice(("", ".", ",", ")", "**"))
    text = chance.choice(("@{}\n", "See @{} there.\n", "- @{}\n", "> @{}\n", "a\n\n@{}\n@{}\n")).replace("{}", named)
    head = "---\nname: helper\ndescription: Helps.\npaths: '**'\n---\n"
    return head + text if chance.random() < 0.5 or "agents" in file.parts else text


def _show(world: World) -> None:
    """Prints all that the files of a project hand to a model."""
    os.environ.clear()
    os.environ.update(world.env)
    from reverie.agents.definition import load_definitions
    from reverie.instructions import load_instructions
    from reverie.instructions.commands import load_commands
    from reverie.paths import Places
    from reverie.settings import load_settings

    settings = load_settings(world.work, managed_dir=world.home / "etc")
    places = Places.of(world.work, settings)
    found = load_instructions(places, settings, managed_dir=world.home / "etc")
    print([file.text for file in found.files], [rule.text for rule in found.conditional_rules])
    print([command.body for command in load_commands(places, settings).named.values()])
    print(load_definitions(places))


def _always(arena: Arena) -> None:
    shown = arena.chance.choice(SHOWN)
    worse = shown
    for _ in range(arena.chance.randint(1, 2)):
        worse = arena.chance.choice(WORSE).replace("{}", worse).replace("{{", "{").replace("}}", "}")
    rules = [parse_rule(rule) for rule in make_offer(_call(shown)).rules]
    if rules:
        arena.judge(None if find_covering_rule(_call(shown), rules) else f"the offer does not cover {shown!r}")
        wrong = find_covering_rule(_call(worse), rules)
        arena.judge(f"the offer for {shown!r} covers {worse!r}" if wrong else None)


def _call(command: str) -> ToolCall:
    return ToolCall("1", "Bash", {"command": command}, read_only=False, cwd=Path("/"))
