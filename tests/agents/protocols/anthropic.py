"""Anthropic Messages: a list of content blocks, streamed as events that open and close them."""

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
    event,
    pieces,
    words,
)

PATHS = r"/v1/messages"
MEDIA_TYPE = "text/event-stream"


def read(path: str, body: JSON) -> Asked:
    return Asked(
        body["model"],
        bool(body.get("stream")),
        tuple(tool["name"] for tool in body.get("tools", ())),
        tuple(_items(body["messages"])),
    )


def answer(reply: Reply) -> JSON:
    content: list[JSON] = [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.calls:
        content.append(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        )
    return {**_message(reply), "content": content, **_end(reply), "usage": _usage(OUTPUT_TOKENS)}


def stream(reply: Reply) -> Iterator[bytes]:
    start = {**_message(reply), "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message={**start, "usage": _usage(1)})
    yield _event("ping")
    if reply.text:
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in pieces(reply.text):
            yield _event(
                "content_block_delta", index=0, delta={"type": "text_delta", "text": piece}
            )
        yield _event("content_block_stop", index=0)
    for index, call in enumerate(reply.calls, 1 if reply.text else 0):
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield _event("content_block_start", index=index, content_block=block)
        for piece in pieces(call.encoded):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta=_end(reply), usage={"output_tokens": OUTPUT_TOKENS})
    yield _event("message_stop")


def _items(messages: list[JSON]) -> Iterator[Said | Result]:
    for message in messages:
        if message["role"] != "user":
            continue
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                yield Result(block["tool_use_id"], words(block.get("content")))
            elif block["type"] == "text":
                yield Said(block["text"])


def _message(reply: Reply) -> JSON:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _end(reply: Reply) -> JSON:
    return {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}


def _usage(output: int) -> JSON:
    return {"input_tokens": INPUT_TOKENS, "output_tokens": output}


def _event(kind: str, **fields: object) -> bytes:
    return event({"type": kind, **fields}, kind)
