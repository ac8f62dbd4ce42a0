"""What the librarian says: short sentences with gaps, in English. It understands questions in five languages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

Key: TypeAlias = Literal[
    "hello",
    "welcome",
    "cannot",
    "nothing",
    "nothing_known",
    "you",
    "you_said",
    "i_said",
    "left",
    "memory",
    "instructions",
    "earlier",
    "index",
    "saved",
    "beside",
    "known",
    "logged",
    "forgot",
    "which",
    "none_to_forget",
    "memory_off",
    "memory_empty",
    "memory_holds",
    "heard",
    "printed",
    "printed_nothing",
    "kept",
    "failed",
    "more_lines",
    "no_agents",
    "agents_work",
    "no_last",
    "last",
    "found",
    "work",
    "doubt",
    "secret",
    "refused",
    "ask_run",
    "ask_forget",
    "not_asked",
]

ABOUT = (
    "I am Reverie's embedded mind: no key, no network, no weights. I do not think or write code; I look things up and "
    "keep things. Ask me about this project, about what is remembered or about earlier sessions, and I answer with "
    "where I found it. “Remember that …” and “forget …” keep and drop a memory; “run `…`” runs a command. For a model "
    "that thinks, set ANTHROPIC_API_KEY or OPENAI_API_KEY, or point `--model openai:<model>` and OPENAI_BASE_URL at a "
    "local server; memory and sessions stay as they are."
)
"""Said once per conversation; later a shorter text is enough."""

_WORDS: dict[Key, str] = {
    "ask_run": "To run {what}, say only that: “run {what}”.",
    "ask_forget": "To forget something, say only that: “forget …”.",
    "not_asked": "Only you can ask me for that: say it again, as a message of your own.",
    "hello": "Hello.",
    "welcome": "You are welcome.",
    "cannot": (
        "(I only look things up. For a model that thinks, set ANTHROPIC_API_KEY or OPENAI_API_KEY; “what can you do?” "
        "says more.)"
    ),
    "nothing_known": "I remember nothing about {what} yet.",
    "you": "you",
    "nothing": "I found nothing about {what}. I looked in {places}.",
    "you_said": "Earlier in this conversation you said: {text}",
    "i_said": "Earlier in this conversation I said: {text}",
    "left": "From the notes of this conversation: {text}",
    "memory": "From memory, {file} ({age}): {text}",
    "instructions": "From the instructions, {file}: {text}",
    "earlier": "In an earlier session ({day}, {session}) you said: {text}",
    "index": "The memory index has {file}: {text}",
    "saved": "I will remember that, in {file}: {text}",
    "beside": "{file} may be about the same: “{text}” Both are kept.",
    "known": "I remember that already, in {file}: {text}",
    "logged": "It is in the daily log, {file}: {text}",
    "forgot": "I forgot {file}: {text}\n`reverie memory undo` brings it back.",
    "which": "Several memories fit. Which one should I forget?\n{list}\nSay `forget` with its file name.",
    "none_to_forget": "I remember nothing about {what}, so there is nothing to forget.",
    "memory_off": "Memory is switched off here, so I can keep nothing; `reverie doctor` says which rule decided that.",
    "memory_empty": "My memory of this project is empty. Tell me “remember that …”, or correct me as we work.",
    "memory_holds": "This is what I remember{about}:\n{list}",
    "heard": (
        "I heard that, and it stays in this conversation. What is worth keeping is saved after the turn; “remember "
        "that …” makes sure of it."
    ),
    "printed": "It printed:",
    "printed_nothing": "It ran and printed nothing.",
    "kept": "It printed {size}; all of it is in {path}. It begins:",
    "failed": "It did not work:",
    "more_lines": "… and {count} more lines",
    "no_agents": "No agents can be started here.",
    "agents_work": "{count} agents are at work; their reports come as messages.",
    "no_last": "I did not find an earlier session in this folder.",
    "last": "The last session here was on {day} ({session}). You said:\n{list}",
    "found": "I looked for {what} and found this in {where}:",
    "work": "Making or changing something needs a model that thinks, and I am not one. I can show you the places.",
    "doubt": 'I did not keep that: {why}. To keep it anyway: `reverie remember "…"`.',
    "secret": "I will not keep that: it contains {kind}, and secrets are never stored. Tell me where it is instead.",
    "refused": "It was not saved: {why}",
}
_PLACES = ("memory", "the instruction files", "the files here", "earlier sessions")


def places(*, memory: bool, files: bool, past: bool) -> str:
    """Where it looked, as a list."""
    return join_words([name for name, is_so in zip(_PLACES, (memory, True, files, past), strict=True) if is_so])


def word(key: Key, **gaps: str) -> str:
    """The sentence with its gaps filled."""
    return _WORDS[key].format(**gaps)


def join_words(words: Sequence[str]) -> str:
    """“a, b and c”."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
