"""OpenAI Chat Completions: one message with tool calls, streamed as changes to it."""

from __future__ import annotations

from collections.abc import Iterator

from protocols.conversation import (
    INPUT_TOKENS,
    JSON,
    OUTPUT_TOKENS,
    Asked,
    Reply,
    Result,
    Said,
    ToolCall,
    event,
    pieces,
    words,
)

PATHS = r"/chat/completions"
MEDIA_TYPE = "text/event-stream"


def read(path: str, body: JSON) -> Asked:
    return Asked(
        body["model"],
        bool(body.get("stream")),
        tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
        tuple(_items(body["messages"])),
    )


def answer(reply: Reply) -> JSON:
    message: JSON = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.calls:
        message["tool_calls"] = [_call(call, call.encoded) for call in reply.calls]
    choice = {"index": 0, "message": message, "finish_reason": _end(reply), "logprobs": None}
    return {**_head(reply, "chat.completion"), "choices": [choice], "usage": _USAGE}


def stream(reply: Reply) -> Iterator[bytes]:
    yield _chunk(reply, {"role": "assistant", "content": ""})
    for piece in pieces(reply.text):
        yield _chunk(reply, {"content": piece})
    for index, call in enumerate(reply.calls):
        yield _chunk(reply, {"tool_calls": [{"index": index, **_call(call, "")}]})
        for piece in pieces(call.encoded):
            part = {"index": index, "function": {"arguments": piece}}
            yield _chunk(reply, {"tool_calls": [part]})
    yield _chunk(reply, {}, _end(reply))
    yield event({**_head(reply, "chat.completion.chunk"), "choices": [], "usage": _USAGE})
    yield b"data: [DONE]\n\n"


def _items(messages: list[JSON]) -> Iterator[Said | Result]:
    for message in messages:
        if message["role"] == "tool":
            yield Result(message["tool_call_id"], words(message["content"]))
        elif message["role"] == "user":
            yield Said(words(message["content"]))


def _call(call: ToolCall, arguments: str) -> JSON:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chunk(reply: Reply, delta: JSON, end: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}
    return event({**_head(reply, "chat.completion.chunk"), "choices": [choice]})


def _head(reply: Reply, kind: str) -> JSON:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 0, "model": reply.model}


def _end(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


_USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}
