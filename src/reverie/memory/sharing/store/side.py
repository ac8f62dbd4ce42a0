"""A store of a memory server as a side of a sync round. What is in it is learnt from its change feed, never guessed
from our own writes: so an answer that was lost, or a process that was killed, only costs a second look. Every
write names the text that it replaces; if somebody was faster, the next round merges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from reverie.memory.sharing.rounds import Part
from reverie.memory.sharing.shared_files import Files
from reverie.memory.sharing.store.client import PAGE, StoreClient, StoreRefused, at_store
from reverie.memory.sharing.store.state import StoreState, There, hash_of
from reverie.memory.topic_file import decode, encode
from reverie.permissions.memory_paths import PermissionRefused


class StoreSide:
    """One store. `fetch` first. `check_name` raises `PermissionRefused` for a name that a memory cannot have. `reasons`
    says why files were changed here."""

    def __init__(
        self,
        client: StoreClient,
        state: StoreState,
        part: Part,
        check_name: Callable[[str], object],
        reasons: Callable[[Collection[str]], Mapping[str, str]],
    ) -> None:
        self._client = client
        self._state = state
        self._part = part
        self._check_name = check_name
        self._reasons = reasons
        self._texts: dict[str, bytes] = {}
        self._trust: dict[str, str] = {}
        self.refused: list[str] = []
        """What the server refused, each as a sentence about a file."""

    def fetch(self) -> None:
        """Learns every change since the last look. The last known one is read again: if it is not there, or another
        one, the store was set back (a restored backup), and nothing counts as common any more."""
        state, after = self._state, max(0, self._state.last - 1)
        while True:
            answer = self._client.get(at_store(state.store, "changes", own=True), after=after, limit=PAGE)
            changes: list[Mapping[str, Any]] = answer["data"]
            if after < state.last and (not changes or changes[0]["id"] != state.last_id):
                state.start_again(state.store)
                after = 0
                continue
            for change in changes:
                self._learn(change)
                state.last, state.last_id = int(change["number"]), str(change["id"])
            after = state.last
            if not answer["has_more"] or not changes:
                return

    def trust_of(self, name: str) -> str:
        """How far the server trusts a memory, as of the last `read`; empty if it does not say."""
        return self._trust.get(name, "")

    # -- the side of a round -----------------------------------------------------------------------------------------

    def read(self, ours: Files) -> tuple[Files, list[str]]:
        files, odd = dict[str, bytes](), list[str]()
        for memory in list(self._state.there.values()):
            name = memory.path.removeprefix("/")
            if not self._part.holds(name):
                continue
            try:
                self._check_name(f"{self._part.prefix}{name}")
            except PermissionRefused:
                odd.append(f"{self._part.prefix}{name} was left out: it has a name that a memory cannot have.")
                continue
            own = ours.get(name)
            data = own if own is not None and hash_of(own) == memory.sha else self._text(memory)
            if data is not None and data.strip():
                files[name], self._trust[name] = data, memory.trust
        return files, odd

    def write(self, changes: Mapping[str, bytes | None], theirs: Files) -> Collection[str]:
        self._state.sending = {name: hash_of(data) for name, data in changes.items() if data is not None}
        self._state.save()
        by_name = {one.path.removeprefix("/"): one for one in self._state.there.values()}
        arrived, renamed = set[str](), self._renamed(changes, by_name)
        reasons = self._reasons([f"{self._part.prefix}{name}" for name in changes])
        for name, data in sorted(changes.items(), key=lambda item: item[1] is None):  # a removal comes last
            if name in renamed.values() and data is None:
                continue
            why = reasons.get(f"{self._part.prefix}{name}", "")
            if self._send(name, data, by_name.get(renamed.get(name, name)), why):
                arrived |= {name, renamed.get(name, name)}
        return arrived & changes.keys()

    def _send(self, name: str, data: bytes | None, there: There | None, why: str) -> bool:
        """Sends one change. False: somebody was faster, or the server refuses the file."""
        store = self._state.store
        try:
            if data is None:
                if there is not None:
                    self._client.delete(
                        at_store(store, "memories", there.id), reason=why, expected_content_sha256=there.sha
                    )
                    self._state.there.pop(there.id, None)
                return True
            body: dict[str, Any] = {"path": f"/{name}", "content": decode(data)}
            if there is None:
                answer = self._client.post(at_store(store, "memories"), body, reason=why)
            else:
                body["precondition"] = {"type": "content_sha256", "content_sha256": there.sha}
                answer = self._client.post(at_store(store, "memories", there.id), body, reason=why)
        except StoreRefused as error:
            if error.status in (401, 403):
                raise
            if not error.is_stale:
                self.refused.append(f"{self._part.prefix}{name} was not sent: {error}")
            return False
        self._note(answer)
        return True

    def _renamed(self, changes: Mapping[str, bytes | None], by_name: Mapping[str, There]) -> dict[str, str]:
        """New names of memories that only moved, with the old ones: so they keep their id and their versions."""
        gone = {by_name[name].sha: name for name, data in changes.items() if data is None and name in by_name}
        return {
            name: gone.pop(hash_of(data))
            for name, data in changes.items()
            if data is not None and name not in by_name and hash_of(data) in gone
        }

    # -- what is there -----------------------------------------------------------------------------------------------

    def _learn(self, change: Mapping[str, Any]) -> None:
        id, path, sha = str(change["memory_id"]), change.get("path"), change.get("content_sha256")
        if change.get("operation") == "deleted" or change.get("redacted_at") or path is None or sha is None:
            if change.get("operation") == "deleted":
                self._state.there.pop(id, None)
            return
        self._state.there[id] = There(id, str(path), str(sha), str(change.get("trust") or ""))
        if change.get("content") is not None:
            self._texts[str(sha)] = encode(str(change["content"]))

    def _note(self, answer: Mapping[str, Any]) -> None:
        """Our own write. Its number counts as seen only if nobody wrote in between."""
        one = There(
            str(answer["id"]), str(answer["path"]), str(answer["content_sha256"]), str(answer.get("trust") or "")
        )
        self._state.there[one.id] = one
        if answer.get("number") == self._state.last + 1:
            self._state.last, self._state.last_id = self._state.last + 1, str(answer["memory_version_id"])

    def _text(self, memory: There) -> bytes | None:
        """The text of a memory; None if it is gone by now."""
        if memory.sha in self._texts:
            return self._texts[memory.sha]
        try:
            found = self._client.get(at_store(self._state.store, "memories", memory.id))
        except StoreRefused as error:
            if error.status != 404:
                raise
            self._state.there.pop(memory.id, None)
            return None
        data = encode(str(found["content"]))
        now = There(memory.id, str(found["path"]), str(found["content_sha256"]), str(found.get("trust") or ""))
        self._state.there[memory.id] = now
        self._texts[now.sha] = data
        return data if now.path == memory.path else None
