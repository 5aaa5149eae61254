"""Ollama's /api/chat: lines of JSON, streamed unless the request says otherwise.

A result names the tool and not the call, so the order of results has to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from protocols.conversation import (
    INPUT_TOKENS,
    JSON,
    OUTPUT_TOKENS,
    Asked,
    Reply,
    Result,
    Said,
    pieces,
)

PATHS = r"/api/chat"
MEDIA_TYPE = "application/x-ndjson"


def read(path: str, body: JSON) -> Asked:
    return Asked(
        body["model"],
        bool(body.get("stream", True)),
        tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
        tuple(_items(body["messages"])),
    )


def answer(reply: Reply) -> JSON:
    calls = {"tool_calls": _calls(reply)} if reply.calls else {}
    return {**_message(reply, reply.text, **calls), **_END}


def stream(reply: Reply) -> Iterator[bytes]:
    for piece in pieces(reply.text):
        yield _line(_message(reply, piece))
    for call in _calls(reply):
        yield _line(_message(reply, "", tool_calls=[call]))
    yield _line({**_message(reply, ""), **_END})


def _items(messages: list[JSON]) -> Iterator[Said | Result]:
    for message in messages:
        if message["role"] == "tool":
            yield Result(message.get("tool_call_id"), message["content"])
        elif message["role"] == "user":
            yield Said(message["content"])


def _calls(reply: Reply) -> list[JSON]:
    return [
        {"id": call.id, "function": {"index": i, "name": call.name, "arguments": call.arguments}}
        for i, call in enumerate(reply.calls)
    ]


def _message(reply: Reply, text: str, **more: object) -> JSON:
    message = {"role": "assistant", "content": text, **more}
    created = "2026-01-01T00:00:00Z"
    return {"model": reply.model, "created_at": created, "message": message, "done": False}


def _line(data: JSON) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


_END = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 3_000_000,
    "load_duration": 1_000_000,
    "prompt_eval_count": INPUT_TOKENS,
    "prompt_eval_duration": 1_000_000,
    "eval_count": OUTPUT_TOKENS,
    "eval_duration": 1_000_000,
}
