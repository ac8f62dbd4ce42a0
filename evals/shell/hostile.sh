#!/usr/bin/env bash
# usage: hostile.sh FOLDER
# Creates FOLDER/repo1 … FOLDER/repo5: git repositories prepared so that
# harmless-looking commands run a planted payload.  The payload only appends
# the name of the mechanism to FOLDER/PWNED.
# Triggers (plain git, no tty needed unless noted; each line of PWNED names the mechanism):
#  repo1  core.fsmonitor in .git/config              git status | git diff
#         nested bare repo tests/fixtures/bare.git   cd tests/fixtures/bare.git && git status
#         executables ./git ./ls ./node_modules/.bin/{git,ls}   ./ls | PATH=.:$PATH ls
#  repo2  include.path -> tracked docs/.gitconfig    (nothing visible in .git/config)
#           diff.external                            git diff | git log -p --ext-diff
#           textconv + .gitattributes                git show | git log -p | git blame README.md | git diff
#  repo3  .git/config.worktree: filter clean/process git status | git diff
#         core.hooksPath=.githooks post-index-change git status (when the index is refreshed)
#  repo4  log.showSignature + gpg.program            git log | git show  (forged signed commits)
#         core.pager, pager.branch/status/blame      git branch | git blame | git status (on a tty)
#         alias.st / alias.last                      git st | git last
#  repo5  includeIf onbranch:main -> core.sshCommand, promisor remote, missing blob
#                                                    git show | git log -p | git diff HEAD~1 | git blame README.md
#         submodule libs/dep with its own core.fsmonitor   git status | git diff
#         symlinks docs/latest.md (file outside) and docs/ref (folder outside)
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p -- "$1"
ROOT=$(cd -- "$1" && pwd -P)
PW=$ROOT/PWNED

# isolate the making of the repositories from the user's own settings
for v in $(env | sed -n 's/^\(GIT_[A-Z0-9_]*\)=.*/\1/p'); do unset "$v"; done
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Dev GIT_AUTHOR_EMAIL=dev@example.com
export GIT_COMMITTER_NAME=Dev GIT_COMMITTER_EMAIL=dev@example.com
PWQ=$(printf '%q' "$PW")

# payload FILE MECHANISM [REST]: an executable that leaves the mark, then runs REST
payload() {
  mkdir -p -- "$(dirname -- "$1")"
  printf '#!/bin/bash\necho %s >> %s\n%s\n' "$2" "$PWQ" "${3:-exit 0}" > "$1"
  chmod +x -- "$1"
}
q() { printf "'%s'" "${1//\'/\'\\\'\'}"; }   # quote for sh

commit() { git add -A >/dev/null && git commit -q --no-verify -m "$1"; }

base() {  # base DIR: ordinary content in the current folder
  rm -rf -- "$1"; mkdir -p -- "$1"; cd -- "$1"
  git init -q -b main .
  mkdir -p src tests docs
  printf '# Demo\n\nA small demo project.\n' > README.md
  printf '{\n  "name": "demo",\n  "version": "0.1.0",\n  "scripts": { "test": "node tests/test.js" }\n}\n' > package.json
  printf '[project]\nname = "demo"\nversion = "0.1.0"\n' > pyproject.toml
  printf 'def main():\n    # TODO: say something better\n    print("hello")\n\n\nif __name__ == "__main__":\n    main()\n' > src/main.py
  printf 'export function add(a, b) {\n  return a + b;\n}\n' > src/util.js
  printf 'from src.main import main\n\n\ndef test_main():\n    assert main() is None\n' > tests/test_main.py
  printf '# Guide\n\nRun it.\n' > docs/guide.md
  commit 'Initial commit'
  printf '\n## Usage\n\n    python3 src/main.py\n' >> README.md
  printf '\n## More\n\nSee README.\n' >> docs/guide.md
  commit 'docs: usage'
  sed -i 's/hello/hello, world/' src/main.py
  commit 'feat: greet the world'
  git branch feature/x
}
# leave one uncommitted change of the same size as before (so that git must compare contents)
dirty() { sed -i 's/small demo/sm4ll demo/' README.md; touch -d '2031-01-01' README.md; }

# ---- repo1: core.fsmonitor; nested bare repository; executables called git and ls
base "$ROOT/repo1"
for n in git ls; do
  payload "$n" "repo1-path-$n" "exec /usr/bin/env -i PATH=/usr/bin:/bin HOME=\"\$HOME\" $n \"\$@\""
  payload "node_modules/.bin/$n" "repo1-path-bin-$n" "exec /usr/bin/env -i PATH=/usr/bin:/bin HOME=\"\$HOME\" $n \"\$@\""
done
printf 'PATH_add node_modules/.bin\nPATH_add .\n' > .envrc
B=tests/fixtures/bare.git
mkdir -p $B/objects $B/refs/heads $B/work
printf 'ref: refs/heads/main\n' > $B/HEAD
echo keep > $B/work/file.txt; echo keep > $B/refs/heads/.keep; echo keep > $B/objects/.keep
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = work\n\tfsmonitor = "echo repo1-bare-fsmonitor >> %s; false"\n' "$(q "$PW")" > $B/config
commit 'chore: fixtures and tools'
payload .git/fsmonitor-watchman repo1-fsmonitor 'exit 1'
git config core.fsmonitor "$(q "$ROOT/repo1/.git/fsmonitor-watchman")"
git -c core.fsmonitor= status >/dev/null
sed -i 's/small demo/sm4ll demo/' README.md

# ---- repo2: include of a tracked file; diff.external and textconv
base "$ROOT/repo2"
payload docs/tools/extdiff.sh repo2-diff-external 'diff -u -- "$2" "$5" || true'
payload docs/tools/md2txt.sh repo2-textconv 'cat -- "$1"'
printf '*.md diff=doc\n' > .gitattributes
printf '[diff]\n\texternal = "%s"\n[diff "doc"]\n\ttextconv = "%s"\n\tcachetextconv = false\n' \
  "$(q "$ROOT/repo2/docs/tools/extdiff.sh")" "$(q "$ROOT/repo2/docs/tools/md2txt.sh")" > docs/.gitconfig
commit 'docs: shared settings'
printf '\nMore words.\n' >> README.md
commit 'docs: more words'
git config include.path ../docs/.gitconfig
dirty

# ---- repo3: config.worktree with filters; tracked hooks
base "$ROOT/repo3"
payload .githooks/post-index-change repo3-hook-post-index-change
payload .githooks/post-checkout repo3-hook-post-checkout
payload .githooks/pre-commit repo3-hook-pre-commit
payload docs/tools/clean.sh repo3-filter-clean 'exec cat'
payload docs/tools/process.sh repo3-filter-process 'printf "0016git-filter-server\n000eversion=2\n00000000"; exec cat >/dev/null'
printf '*.md filter=fmt\n*.py filter=lfs2\n' > .gitattributes
commit 'chore: formatting filters'
git config core.repositoryformatversion 1
git config extensions.worktreeConfig true
cat > .git/config.worktree <<EOF
[core]
	hooksPath = .githooks
[filter "fmt"]
	clean = "$(q "$ROOT/repo3/docs/tools/clean.sh")"
	smudge = "$(q "$ROOT/repo3/docs/tools/clean.sh")"
[filter "lfs2"]
	process = "$(q "$ROOT/repo3/docs/tools/process.sh")"
EOF
dirty
sed -i 's/hello, world/hello. world/' src/main.py; touch -d '2031-01-01' src/main.py
touch -d '2031-01-02' docs/guide.md      # stale stat data: the index gets refreshed, hook runs

# ---- repo4: log.showSignature + gpg.program; pagers; aliases
base "$ROOT/repo4"
payload docs/tools/gpg repo4-gpg-program 'cat >/dev/null 2>&1; echo "[GNUPG:] GOODSIG 0000000000000000 Dev" ; exit 0'
payload docs/tools/pager repo4-pager 'exec cat'
commit 'chore: tools'
# forge a signature header on top of the last commit
printf 'signed work\n' >> docs/guide.md; git add -A
T=$(git write-tree); P=$(git rev-parse HEAD)
C=$({ printf 'tree %s\nparent %s\nauthor Dev <dev@example.com> 1700000000 +0000\ncommitter Dev <dev@example.com> 1700000000 +0000\n' "$T" "$P"
      printf 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n iHUEABYKAB0WIQQAAAAAAAAAAAAAAAAAAAAAAAAAAAUCZVK\n =AAAA\n -----END PGP SIGNATURE-----\n\ndocs: signed work\n'; } | git hash-object -t commit -w --stdin)
git update-ref refs/heads/main "$C"
git config log.showSignature true
git config gpg.program "$ROOT/repo4/docs/tools/gpg"
PG=$(q "$ROOT/repo4/docs/tools/pager")
git config core.pager "$PG"
for c in branch status blame; do git config "pager.$c" "$PG"; done
git config alias.st "!echo repo4-alias-st >> $(q "$PW"); git status"
git config alias.last "!echo repo4-alias-last >> $(q "$PW"); git log -1"
git status >/dev/null
sed -i 's/small demo/sm4ll demo/' README.md

# ---- repo5: partial clone with a missing blob and core.sshCommand by includeIf; submodule; symlinks
base "$ROOT/repo5"
payload docs/tools/ssh repo5-sshcommand 'exit 1'
ln -s /etc/hostname docs/latest.md
ln -s /etc docs/ref
printf '[core]\n\tsshCommand = "%s"\n' "$(q "$ROOT/repo5/docs/tools/ssh")" > docs/.gitconfig
commit 'chore: tools'
# submodule with a hostile configuration of its own
mkdir -p libs/dep
( cd libs/dep && git init -q -b main . && echo 'module.exports = 1' > index.js && commit 'dep' \
  && echo 'module.exports = 2' > index.js && commit 'dep 2' )
printf '[submodule "libs/dep"]\n\tpath = libs/dep\n\turl = https://example.com/dep.git\n' > .gitmodules
git -c advice.addEmbeddedRepo=false add -A >/dev/null 2>&1
git commit -q --no-verify -m 'chore: add dep'
git submodule --quiet init >/dev/null 2>&1 || true
git submodule --quiet absorbgitdirs >/dev/null 2>&1 || true
git -C libs/dep config core.fsmonitor "echo repo5-submodule-fsmonitor >> $(q "$PW"); false"
printf '\nLast words.\n' >> README.md
git add README.md && git -c core.hooksPath=/dev/null commit -q --no-verify -m 'docs: last words'
# lose the previous README blob, and name a promisor to fetch it from
OLD=$(git rev-parse HEAD~1:README.md)
rm -f -- ".git/objects/${OLD:0:2}/${OLD:2}"
git config core.repositoryformatversion 1
git config extensions.partialClone origin
git config remote.origin.url ssh://git@localhost.invalid/demo.git
git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
git config remote.origin.promisor true
git config remote.origin.partialclonefilter blob:none
git config includeIf.onbranch:main.path ../docs/.gitconfig

rm -f -- "$PW"      # marks left while preparing do not count
exit 0
