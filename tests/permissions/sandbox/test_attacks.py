"""Every attack of the table, in every profile, with every kind of layers, as two users: nothing is harmed."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from reverie.permissions.sandbox.order import Attempt
from reverie.permissions.sandbox.probe import close_helpers, find_layers
from reverie.permissions.sandbox.profiles import Profile, Sandbox
from tests.counts import SOAK
from tests.other_users import OWNER, needs_root, run_as
from tests.permissions.sandbox.attacks import ATTACKS, command_of
from tests.permissions.sandbox.world import LIMITS, PYTHON, World, layers_of, make_base, run_sandboxed

_ABIS = (1, 2, 3, 4, 5, 6, 7) if SOAK else (7,)  # 119 attacks per case, fork bombs among them
READING = [f"{kind} {abi}" for kind in ("namespaces", "landlock") for abi in _ABIS]
WRITING = ["namespaces 1", "namespaces 7"] if SOAK else ["namespaces 7"]
CASES = [(layers, Profile.READ_ONLY) for layers in READING]
CASES += [(layers, profile) for layers in WRITING for profile in (Profile.WORKSPACE, Profile.REPOSITORY)]


def skip_without(layers: str) -> None:
    """Skips a test on a machine on which these layers do not work."""
    found, wanted = find_layers(), layers_of(layers)
    if wanted.namespaces and not found.namespaces:
        pytest.skip(f"namespaces do not work here: {found.why_not}")
    if found.landlock < wanted.landlock:
        pytest.skip(f"Landlock has version {found.landlock} here: {found.why_not}")


def changed(before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]]) -> list[str]:
    return [f"changed {path}" for path in sorted({*before, *after}) if before.get(path) != after.get(path)]


def attack(base: Path, layers: str, profile: Profile) -> dict[str, list[str]]:
    """What went wrong, by the name of the attack."""
    os.environ["HOME"] = str(base / "home")
    world, wrong = World(base), dict[str, list[str]]()
    try:
        sandbox = Sandbox(world.project, layers_of(layers), LIMITS)
        outside, protected = world.states(), world.protected(profile)
        for name in ATTACKS:
            report, output = run_sandboxed(sandbox, command_of(name, world), profile)
            found = [*world.wrong(output), *changed(outside, world.states())]
            found += changed(protected, world.protected(profile))
            if report.status is None:
                found.append(f"it was not run or its end is not known: {report.error}")
            if (base / "survivor").exists():
                found.append("a process was left")
            if found:
                wrong[name] = [*found, output[-500:]]
            if found or profile is not Profile.READ_ONLY:
                world.make_project()
                outside, protected = world.states(), world.protected(profile)
    finally:
        close_helpers()
        world.close()
    return wrong


@pytest.mark.parametrize(("layers", "profile"), CASES)
def test_no_attack_harms(layers: str, profile: Profile) -> None:
    skip_without(layers)
    assert attack(make_base(), layers, profile) == {}


@needs_root
@pytest.mark.parametrize(("layers", "profile"), CASES)
def test_no_attack_of_another_user_harms(layers: str, profile: Profile) -> None:
    skip_without(layers)
    base = make_base()
    os.chown(base, OWNER, OWNER)

    def work() -> dict[str, list[str]]:
        sys.executable = PYTHON  # Python itself may be in a private folder of root's
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"
        os.chdir("/")
        return attack(base, layers, profile)

    try:
        assert run_as(OWNER, work) == {}
    finally:
        shutil.rmtree(base, ignore_errors=True)


_QUIET = """
ls -la
id
whoami; date; uname -a
cat README.md | head -3 | wc -l
python3 -c 'print(1)'
git status
git log -3 --stat; git diff; git branch -a; git stash list
grep -rn canary src | sort | uniq -c
find . -name '*.py' | xargs wc -l
for f in src/*; do wc -l $f; done | tail -1
sed -n 1,5p README.md; awk '{n++} END {print n}' README.md
x=$(git rev-parse HEAD); echo ${x:0:7}
diff <(git show HEAD:README.md) README.md
make -n
du -sh src; stat README.md; file README.md; tree
mktemp; echo x > $TMPDIR/a; sort README.md > $TMPDIR/b; echo x >/dev/null 2>&1; echo x | tee /dev/null
tar czf $TMPDIR/a.tgz src; tar tzf $TMPDIR/a.tgz; gzip -k $TMPDIR/b
sleep 0.01 & wait; timeout 5 true; kill -0 $$; nice true; bash -c 'exit 0'
python3 -c "import tempfile, subprocess; tempfile.mkdtemp(); subprocess.run(['true'])"
""".strip().splitlines()


@pytest.mark.parametrize("layers", ["namespaces 7", "namespaces 1", "landlock 7", "landlock 1"])
def test_harmless_commands_try_nothing(layers: str) -> None:
    skip_without(layers)
    world = World(make_base())
    os.environ["HOME"] = str(world.home)
    try:
        sandbox = Sandbox(world.project, layers_of(layers), LIMITS)
        for command in _QUIET:
            report, output = run_sandboxed(sandbox, command, Profile.READ_ONLY)
            assert report.attempts == (), (command, output)
    finally:
        close_helpers()
        world.close()


_TRIED = {
    "git -c user.name=a -c user.email=b@c commit --allow-empty -qm x; true": "write",
    "git add README.md; true": "write",
    "make -f - all <<< 'all:; echo x > made' || true": "write",
    "touch new || true": "write",
    "echo x > new; true": "write",
    "sed -i s/a/b/ README.md; true": "write",
    "chmod 777 README.md; true": "write",
    "ln -s a b; true": "write",
    "echo x > ~/.bashrc; true": "write",
    'echo x > /dev/shm/reverie-x; [ -n "$NOTHING" ]; true': "write",
    f"{PYTHON} -c \"open('new', 'w')\" 2>/dev/null; true": "write",
    "curl -s http://127.0.0.1:9 | head -1": "network",
    "echo x > /dev/tcp/192.0.2.1/80; true": "network",
}


@pytest.mark.parametrize("layers", ["namespaces 7", "landlock 7", "landlock 1"])
def test_what_was_tried_is_said(layers: str) -> None:
    skip_without(layers)
    world = World(make_base())
    os.environ["HOME"] = str(world.home)
    try:
        sandbox = Sandbox(world.project, layers_of(layers), LIMITS)
        for command, kind in _TRIED.items():
            if "/dev/shm" in command and layers.startswith("namespaces"):
                continue  # there it is a private folder
            report, output = run_sandboxed(sandbox, command, Profile.READ_ONLY)
            assert report.status == 0, (command, output)
            kinds = {attempt.kind for attempt in report.attempts}
            expected = kind if kind != "network" or layers.startswith("namespaces") else "socket"
            assert expected in kinds, (command, report, output)
        service = f"{PYTHON} -c \"import socket; socket.socket(1).connect('{world.run}/stream')\" 2>&1; true"
        report, _ = run_sandboxed(sandbox, service, Profile.READ_ONLY)
        assert Attempt("service", f"{world.run}/stream") in report.attempts
    finally:
        close_helpers()
        world.close()


def test_many_attempts_do_not_hide_one_that_matters() -> None:
    skip_without("landlock 1")
    world = World(make_base())
    os.environ["HOME"] = str(world.home)
    try:
        sandbox = Sandbox(world.project, find_layers(), LIMITS)
        name = "\\x01" * 200
        command = f"for n in {{1..500}}; do : > cache/$'{name}'$n; done 2>/dev/null; touch README.md; true"
        (world.project / "cache").mkdir()
        report, _ = run_sandboxed(sandbox, command, Profile.READ_ONLY)
        assert report.status == 0 and sandbox.serious(report)
        assert sandbox.profile_for(sandbox.serious(report)) is Profile.FREE
    finally:
        close_helpers()
        world.close()


def test_secrets_stay_hidden_when_folders_move_and_times_lie() -> None:
    skip_without("namespaces 7")
    world = World(make_base())
    os.environ["HOME"] = str(world.home)
    show = "grep -rIh key= . 2>/dev/null; cat $(find . -name '.env*' -o -name 'server.pem') 2>/dev/null"
    try:
        for move in (
            'stat=$(stat -c %y .); mv config conf; touch -d "$stat" .',
            "mkdir -p node_modules; mv config node_modules/x; touch -d 2001-01-01 . node_modules",
            "mkdir -p a/objects; mv config a/objects/y; mv a/objects/y a/objects/z",
            "cp -r src other; rm -rf src/main.py; mv src lib; mv other src",
        ):
            sandbox = Sandbox(world.project, layers_of("namespaces 7"), LIMITS)
            for command in ("true", move, show, "mv node_modules nm; mv a b", show, show):
                _, output = run_sandboxed(sandbox, command, Profile.WORKSPACE)
                assert world.mark not in output, (move, command)
            world.make_project()
    finally:
        close_helpers()
        world.close()
