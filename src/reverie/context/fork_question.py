"""Asks the model one question about a conversation: the same bytes plus one message, answered in text.

Summaries are written this way. The tools stay in the request because they are part of its prefix; a tool call counts as
a failed answer. Only the cost is recorded; the conversation does not change.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from reverie.context.conversation import Conversation, announcement
from reverie.context.request import assemble
from reverie.errors import ModelError
from reverie.layers.base import AskFork, Break, BreakCause, EffectResult
from reverie.models.base import Finished, Request, Response
from reverie.origins import task
from reverie.types import Message

_numbers = count(1)
_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
PLAIN = "a plain request with its own system prompt"
PART = "only a part of the conversation is in the request"


async def ask(conversation: Conversation, effect: AskFork) -> EffectResult:
    """Returns the answer to one directive. The result is not `ok` if the model does anything but answer."""
    thread = f"{effect.purpose.value}-ask-{next(_numbers)}"
    asking = conversation.forked(conversation.log, purpose=effect.purpose, thread=thread, reused=False)
    request = _request(conversation, effect, thread)
    response: Response | None = None
    try:
        async for event in asking.send(request):
            if isinstance(event, Finished):
                response = event.response
    except ModelError as error:
        return EffectResult(ok=False, text=str(error), error=error)
    assert response is not None, "a stream without its end is an error of the sender"
    return _judge_response(response)


def _request(conversation: Conversation, effect: AskFork, thread: str) -> Request:
    view = conversation.log.view
    header = view.header
    assert header is not None, "a conversation has a header before it is asked about"
    is_plain = effect.system is not None
    if effect.system is not None:
        header = replace(header, system=(effect.system,), thinking=None, effort=None)
    own = PLAIN if is_plain else PART if effect.messages is not None else None
    breaks = [*conversation.announced, *conversation.pipeline.breaking]
    breaks += [Break(BreakCause.APART, own)] if own is not None else []
    messages = view.messages() if effect.messages is None else effect.messages
    return assemble(
        header,
        _with_directive(messages, effect.directive),
        max_tokens=effect.max_tokens,
        capabilities=conversation.model.capabilities,
        purpose=effect.purpose,
        conversation=conversation.log.session_id,
        thread=thread,
        announced_break=announcement(breaks),
        reused=False,
        sent=conversation.sent,
        own_from=len(messages) - 1,
        images_left_out=0 if is_plain else conversation.images_left_out,
        cache_edits=view.sent_cache_edits() if effect.messages is None else None,
        server_edits=view.server_edits if effect.messages is None else None,
    )


def _with_directive(messages: tuple[Message, ...], directive: str) -> tuple[Message, ...]:
    block = task(directive)
    if messages and messages[-1].role == "user":
        return (*messages[:-1], replace(messages[-1], content=(*messages[-1].content, block)))
    return (*messages, Message("user", (block,)))


def _judge_response(response: Response) -> EffectResult:
    message = Message("assistant", response.content)
    if message.tool_uses:
        return EffectResult(ok=False, text="the model called a tool instead of answering", usage=response.usage)
    if response.stop_reason in _CUT_OFF:
        return EffectResult(ok=False, text="the answer was cut off", usage=response.usage, cut_off=True)
    if response.stop_reason == "refusal":
        return EffectResult(ok=False, text="the model refused to answer", usage=response.usage)
    return EffectResult(ok=True, text=message.text, usage=response.usage)
