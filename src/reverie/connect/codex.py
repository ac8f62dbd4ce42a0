"""Codex: its `hooks.json`, and which of our hooks it trusts.

Codex skips a hook until the user has trusted it (`/hooks`). What is trusted is in `config.toml`, with a hash that only
Codex computes: `ask_hooks` asks the installed program for it. Other hooks and settings keep their bytes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from reverie.connect.files import UserFile
from reverie.connect.json_text import append_item, get_items, get_value, remove_items, remove_value
from reverie.connect.plugin_files import hook_entry
from reverie.errors import ReverieError, UserError
from reverie.parsing import Unparsable, load_json, load_toml
from reverie.paths import same
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.types import Json, JsonObject

AGENT = "codex"
HOOKS_KIND = "codex hooks"
TRUST_KIND = "codex trust"
EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SessionEnd")
_OURS = f"/connect/{AGENT}/hook.sh"
_BEGIN, _END = "# Hooks of Reverie, trusted by `reverie connect codex --trust-hooks`", "# End of the hooks of Reverie"
_ENTRY = re.compile(r'(?m)^\[hooks\.state\."[^"\n]*"\]\ntrusted_hash = "[^"\n]*"\n')
_ASK_S = 30.0


@dataclass(frozen=True, slots=True)
class CodexHook:
    """One of our hooks as Codex sees it."""

    key: str
    hash: str
    trusted: bool
    enabled: bool


def add_hooks(file: UserFile, script: Path) -> str:
    """The text of `hooks.json` with our hooks behind those that are there."""
    data, text = file.parse(), file.text if file.text.strip() else "{}\n"
    if not isinstance(data.get("hooks", {}), dict):
        raise UserError(f"{file.path}: `hooks` is not an object; nothing was changed. Correct it first.")
    for event in EVENTS:
        there = get_value(data, ("hooks", event))
        if there is not None and not isinstance(there, list):
            raise UserError(f"{file.path}: `hooks.{event}` is not a list; nothing was changed. Correct it first.")
        group: Json = {"hooks": [cast("Json", hook_entry(shlex.quote(str(script)), event))]}
        if group in get_items(data, ("hooks", event)):
            continue
        text = append_item(remove_items(text, ("hooks", event), _is_ours), ("hooks", event), group)
    return text


def _is_ours(group: Json) -> bool:
    commands = [str(get_value(one, ("command",))) for one in get_items(group, ("hooks",))]
    return bool(commands) and all(_OURS in command for command in commands)


def strip_hooks(text: str, before: str) -> str:
    """`hooks.json` without our hooks, and without lists that only they needed."""
    old: Json = load_json(before) if before.strip() else {}
    for event in EVENTS:
        text = remove_items(text, ("hooks", event), _is_ours)
    for route in (*(("hooks", event) for event in EVENTS), ("hooks",)):
        if get_value(old, route) is None and get_value(load_json(text), route) in ([], {}):
            text = remove_value(text, route)
    return text


def add_trust(file: UserFile, hooks: Iterable[CodexHook]) -> str:
    """The text of `config.toml` with the hashes of our hooks, as Codex itself records them."""
    text = strip_trust(file.text, "")
    try:
        data = load_toml(text)
    except Unparsable as error:
        raise UserError(f"{file.path}: is not valid TOML ({error}); nothing was changed. Correct it first.") from error
    known = _trusted(data)
    missing = [hook for hook in hooks if known.get(hook.key) != hook.hash]
    for hook in missing:
        if hook.key in known:
            raise UserError(f"{file.path}: has an older entry for {hook.key}; run /hooks in Codex instead.")
    if not missing:
        return text
    lines = [f"[hooks.state.{json.dumps(hook.key)}]\ntrusted_hash = {json.dumps(hook.hash)}\n" for hook in missing]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    changed = f"{text}{gap}{_BEGIN}\n{''.join(lines)}{_END}\n"
    try:
        load_toml(changed)
    except Unparsable as error:
        raise UserError(f"{file.path}: hooks cannot be added to it ({error}); run /hooks in Codex instead.") from error
    return changed


def strip_trust(text: str, _before: str) -> str:
    """`config.toml` without what `add_trust` added. Lines that somebody wrote between ours stay."""
    start, end = text.find(_BEGIN), text.find(_END)
    if start < 0 or end < start:
        return text
    head, inside = text[:start], _ENTRY.sub("", text[start + len(_BEGIN) + 1 : end])
    head = head[:-1] if head.endswith("\n\n") else head
    return head + inside + text[end + len(_END) :].removeprefix("\n")


def _trusted(config: JsonObject) -> dict[str, str]:
    """The hash that is trusted for each hook."""
    state = get_value(config, ("hooks", "state"))
    keys = list(cast("JsonObject", state)) if isinstance(state, dict) else []
    found = {key: get_value(state, (key, "trusted_hash")) for key in keys}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def count_trusted(codex: Path) -> tuple[int, int]:
    """How many of our hooks are in `hooks.json`, and how many of these the user has trusted at some time."""
    path = codex / "hooks.json"
    try:
        data: Any = load_json(read_regular_text(path))
    except (OSError, Unparsable, UnicodeDecodeError):
        return 0, 0
    try:
        known = _trusted(load_toml(read_regular_text(codex / "config.toml")))
    except (OSError, Unparsable, UnicodeDecodeError):
        known = {}
    keys: list[str] = []  # without the folder: Codex may write it with or without its links
    for event in EVENTS:
        snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in event).removeprefix("_")
        for index, group in enumerate(get_items(data, ("hooks", event))):
            if _is_ours(group):
                keys.append(f"/hooks.json:{snake}:{index}:0")
    homes = (str(codex), os.path.realpath(codex))
    return len(keys), sum(any(home + key in known for home in homes) for key in keys)


def ask_hooks(program: str, codex: Path, cwd: Path, hooks: Path) -> list[CodexHook]:
    """Asks Codex about the hooks in this file that are ours. Raises `ReverieError` if it does not answer."""
    requests = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "reverie", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(cwd)]}},
    )
    environment = {**os.environ, "CODEX_HOME": str(codex), "REVERIE_INSIDE": "1"}
    try:
        with subprocess.Popen(
            [program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=cwd,
            start_new_session=True,
        ) as process:
            try:
                found = _talk(process, requests)
            finally:
                _end(process)
        listed = [one for part in cast("list[Any]", found["result"]["data"]) for one in part["hooks"]]
        return [
            CodexHook(str(one["key"]), str(one["currentHash"]), one["trustStatus"] == "trusted", bool(one["enabled"]))
            for one in listed
            if _OURS in str(one.get("command")) and same(Path(one["sourcePath"]), hooks)
        ]
    except (OSError, ValueError) as error:
        raise ReverieError(f"{program} could not be asked about its hooks ({error}); run /hooks in Codex.") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ReverieError(f"{program} gave an answer of another form; run /hooks in Codex.") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the program with its children: the installed one is a script that starts another."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _talk(process: subprocess.Popen[bytes], requests: Iterable[Mapping[str, object]]) -> Any:
    """Sends all requests, and returns the answer to the last one."""
    import threading

    assert process.stdin is not None and process.stdout is not None
    limit = threading.Timer(_ASK_S, _end, (process,))
    limit.start()
    try:
        for request in requests:
            process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            answer: Any = load_json(line)
            if isinstance(answer, dict) and cast("dict[str, Any]", answer).get("id") == 2:
                if "result" not in answer:
                    raise ValueError("it refused")
                return cast("Any", answer)
    finally:
        limit.cancel()
    raise ValueError("it gave no answer")
