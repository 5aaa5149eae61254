"""OpenAI Responses: a list of output items, streamed as events that carry their place in it.

A call with a mapping for arguments is a function call; one with plain text is a call of a custom
tool, which takes its input as it is.
"""

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

PATHS = r"/responses"
MEDIA_TYPE = "text/event-stream"


def read(path: str, body: JSON) -> Asked:
    return Asked(
        body["model"],
        bool(body.get("stream")),
        tuple(_tools(body)),
        tuple(_items(body["input"])),
    )


def answer(reply: Reply) -> JSON:
    return _response(reply, "completed", _output(reply))


def stream(reply: Reply) -> Iterator[bytes]:
    # Every event is numbered, from the first to the last.
    for number, data in enumerate(_events(reply)):
        yield event({**data, "sequence_number": number}, data["type"])


def _events(reply: Reply) -> Iterator[JSON]:
    yield {"type": "response.created", "response": _response(reply, "in_progress", [])}
    yield {"type": "response.in_progress", "response": _response(reply, "in_progress", [])}
    for index, item in enumerate(_output(reply)):
        place = {"output_index": index, "item_id": item["id"]}
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        if item["type"] == "message":
            yield from _text_events(item["content"][0], {**place, "content_index": 0})
        elif item["type"] == "function_call":
            yield from _input_events("function_call_arguments", "arguments", item, place)
        else:
            yield from _input_events("custom_tool_call_input", "input", item, place)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": answer(reply)}


def _text_events(part: JSON, place: JSON) -> Iterator[JSON]:
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _input_events(kind: str, field: str, item: JSON, place: JSON) -> Iterator[JSON]:
    for piece in pieces(item[field]):
        yield {"type": f"response.{kind}.delta", **place, "delta": piece}
    yield {"type": f"response.{kind}.done", **place, "name": item["name"], field: item[field]}


def _begun(item: JSON) -> JSON:
    """The item as it is announced, with nothing yet in the field that the events will fill."""
    fields = {"message": "content", "function_call": "arguments", "custom_tool_call": "input"}
    field = fields[item["type"]]
    return {**item, field: type(item[field])(), "status": "in_progress"}


def _output(reply: Reply) -> list[JSON]:
    items: list[JSON] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        head = {"type": "message", "id": f"msg_{reply.id}", "role": "assistant"}
        items.append({**head, "status": "completed", "content": [part]})
    return items + [_call(call) for call in reply.calls]


def _call(call: ToolCall) -> JSON:
    """A tool of a group is called by the group's name and its own, with a dot between them."""
    group, _dot, name = call.name.rpartition(".")
    common = {"call_id": call.id, "name": name, "status": "completed"}
    if group:
        common["namespace"] = group
    if isinstance(call.arguments, str):
        common |= {"type": "custom_tool_call", "id": f"ctc_{call.id}", "input": call.arguments}
    else:
        common |= {"type": "function_call", "id": f"fc_{call.id}", "arguments": call.encoded}
    return common


def _response(reply: Reply, status: str, output: list[JSON]) -> JSON:
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": 0,
        "model": reply.model,
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "usage": _USAGE if status == "completed" else None,
    }


_USAGE = {
    "input_tokens": INPUT_TOKENS,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": OUTPUT_TOKENS,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


def _tools(body: JSON) -> Iterator[str]:
    """Tools are offered with the request, or among its input; and there may be groups of them."""
    entries = body["input"] if isinstance(body["input"], list) else []
    offered = [*(body.get("tools") or ())]
    for entry in entries:
        if entry.get("type") == "additional_tools":
            offered += entry["tools"]
    for tool in offered:
        if tool["type"] == "namespace":
            yield from (each["name"] for each in tool["tools"])
        else:
            yield tool.get("name", tool["type"])


def _items(entries: str | list[JSON]) -> Iterator[Said | Result]:
    if isinstance(entries, str):
        yield Said(entries)
        return
    for entry in entries:
        if entry.get("type") in ("function_call_output", "custom_tool_call_output"):
            yield Result(entry["call_id"], words(entry["output"]))
        elif entry.get("role") == "user":
            yield Said(words(entry["content"]))
        elif entry.get("type") == "agent_message":
            # To a sub-agent, its agent is the user. What it says is as the model wrote it, which
            # a real one encrypts.
            parts = (each.get("text") or each.get("encrypted_content") for each in entry["content"])
            yield Said("\n".join(part for part in parts if part))
