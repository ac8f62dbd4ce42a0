"""Commands that destroy, and an undo that restores every byte; the project's own repository does not change."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from reverie.tools.snapshots import ProjectSnapshots

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
DESTRUCTIVE = r"""
rm -rf src
rm -f new.txt
rm -rf *
find . -path ./.git -prune -o -type f -exec rm -f {} +
rm -rf .config .hidden
mv src lib
mv new.txt src/main.py
mv -f ignored/notes.log new.txt
cp /dev/null src/main.py
: > README.md
truncate -s 1 data.bin
truncate -s 100000 data.bin
sed -i s/a/b/g README.md src/main.py new.txt
perl -pi -e 's/\r\n/\n/' crlf.txt
sed -i 's/$/\r/' README.md
chmod -x run.sh
chmod +x README.md
ln -sf elsewhere link
rm link; echo file > link
rm new.txt; mkdir new.txt; touch new.txt/x
rm -rf src; echo file > src
rm -rf folder-link; mkdir folder-link; touch folder-link/x
printf x > "$(printf 'odd\nname')"
rm -f "$(printf 'bad\377name')"
rm -f 'name with spaces.txt' ' leading' -- '-dash' ':(glob)x' '*'
rm -rf ignored
echo x >> ignored/notes.log
rm -rf nested/file.txt
rm -rf nested-untracked
git checkout -q HEAD -- .
git reset -q --hard
git clean -qfdx
git rm -rfq src
dd if=/dev/urandom of=data.bin bs=1 count=9 conv=notrunc status=none
tar cf /dev/null .; rm -rf deep
rm -rf deep/a/b/c
mv deep/a deep/z; rmdir deep/a 2>/dev/null; true
echo '* filter=x text eol=crlf' > .gitattributes; echo '*' > .gitignore; rm -f new.txt
rm -f .gitattributes .gitignore; rm -rf ignored
echo '!*' > ignored/.gitignore; echo y > ignored/notes.log
for f in *; do [ -f "$f" ] && echo gone > "$f"; done; true
touch -d 2001-01-01 README.md; printf 'Canary\n' > README.md
""".strip().splitlines()


def _content(project: Path) -> dict[bytes, tuple[object, ...]]:
    """Every file, link and folder that is not empty; git keeps no others. Repositories are compared on their own."""
    found: dict[bytes, tuple[object, ...]] = {}
    for folder, folders, names in os.walk(os.fsencode(project)):
        folders[:] = [name for name in folders if name != b".git"]
        for name in (*names, *(name for name in folders if os.path.islink(os.path.join(folder, name)))):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                found[path] = ("link", os.readlink(path))
            elif name != b".git":
                with open(path, "rb") as file:
                    found[path] = (bool(status.st_mode & 0o100), file.read())
    return found


def _repository(folder: Path) -> dict[str, bytes]:
    """The bytes of each file; git marks objects that it finds as used, by their time."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _run(project: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run([*GIT, *words], cwd=project, check=True, capture_output=True, env=environment)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("template") / "project"
    for folder in ("src", "ignored", "deep/a/b/c", "nested", ".config", ".hidden"):
        (project / folder).mkdir(parents=True)
    (project / ".gitattributes").write_text("*.txt text eol=crlf\n*.py filter=upper ident\n*.bin -text\n")
    (project / ".gitignore").write_text("ignored/\n*.log\n")
    for name in ("README.md", "src/main.py", "src/other.py", "deep/a/b/c/file", ".config/x", ".hidden/y"):
        (project / name).write_text(f"Canary {name} $Id$\n")
    (project / "crlf.txt").write_bytes(b"one\r\ntwo\r\nmixed\nthree\r\n")
    (project / "data.bin").write_bytes(bytes(range(256)) * 40)
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("README.md")
    (project / "folder-link").symlink_to("deep")
    _run(project, "init", "-q", ".")
    _run(project, "config", "filter.upper.clean", "tr a-z A-Z")
    _run(project, "config", "filter.upper.smudge", "touch pwned; cat")
    _run(project, "add", "-A")
    _run(project, "commit", "-qm", "first")
    _run(project / "nested", "init", "-q", ".")
    (project / "nested/file.txt").write_text("nested\n")
    _run(project / "nested", "add", "-A")
    _run(project / "nested", "commit", "-qm", "nested")
    (project / "nested-untracked").mkdir()
    _run(project / "nested-untracked", "init", "-q", ".")
    (project / "nested-untracked/work.txt").write_text("never added\n")
    (project / "new.txt").write_bytes(b"untracked\r\nand mixed\n")
    (project / "src/main.py").write_text("changed and not staged $Id: x $\n")
    (project / "ignored/notes.log").write_text("by hand\n")
    for name in ("odd\nname", "name with spaces.txt", " leading", "-dash", ":(glob)x", "*"):
        (project / name).write_text(f"{name}\n")
    Path(os.fsdecode(os.fsencode(project) + b"/bad\377name")).write_text("bytes\n")
    return project


@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_an_undo_restores_every_byte(command: str, template: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(template, project, symlinks=True)
    before, repository = _content(project), _repository(project / ".git")
    snapshots = ProjectSnapshots(project, tmp_path / "store")
    snapshot = snapshots.take()
    assert _repository(project / ".git") == repository
    own = command.startswith("git ")
    subprocess.run(["bash", "-c", command], cwd=project, check=False, capture_output=True)
    changed = _repository(project / ".git")
    snapshots.restore(snapshot)
    after = _content(project)
    assert {path: state for path, state in after.items() if path in before} == before
    assert _repository(project / ".git") == changed and (own or changed == repository)
    assert not (project / "pwned").exists()


def test_a_second_snapshot_sees_what_came_after_the_first(template: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(template, project, symlinks=True)
    snapshots = ProjectSnapshots(project, tmp_path / "store")
    first = snapshots.take()
    (project / "later.txt").write_text("later")
    second = snapshots.take()
    (project / "later.txt").write_text("other")
    snapshots.restore(second)
    assert (project / "later.txt").read_text() == "later"
    undone = snapshots.restore(first)
    assert "later.txt" in undone.removed and not (project / "later.txt").exists()
    snapshots.restore(undone.before)
    assert (project / "later.txt").read_text() == "later"
