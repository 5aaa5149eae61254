"""Gemini's generateContent, under the paths of the Gemini API and of Vertex alike.

The stream is one of server-sent events, which is what every client asks for (`alt=sse`). Calls
have an id, but a client need not give it back with the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

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
)

PATHS = r"/models/[^/]+:(?:generateContent|streamGenerateContent)"
MEDIA_TYPE = "text/event-stream"


def read(path: str, body: JSON) -> Asked:
    model, verb = re.split("[/:]", urlsplit(path).path)[-2:]
    return Asked(
        model,
        verb == "streamGenerateContent",
        tuple(
            function["name"]
            for tool in body.get("tools") or ()
            for function in tool.get("functionDeclarations", ())
        ),
        tuple(_items(body["contents"])),
    )


def answer(reply: Reply) -> JSON:
    parts: list[JSON] = [{"text": reply.text}] if reply.text else []
    return _response(reply, parts + _calls(reply), last=True)


def stream(reply: Reply) -> Iterator[bytes]:
    for piece in pieces(reply.text):
        yield event(_response(reply, [{"text": piece}]))
    for part in _calls(reply):
        yield event(_response(reply, [part]))
    yield event(_response(reply, [{"text": ""}], last=True))


def _items(contents: list[JSON]) -> Iterator[Said | Result]:
    for content in contents:
        if content.get("role") == "model":
            continue
        for part in content["parts"]:
            if "functionResponse" in part:
                result = part["functionResponse"]
                answered = result["response"]
                text = answered.get("output", answered.get("error", answered))
                yield Result(result.get("id"), str(text))
            elif "text" in part:
                yield Said(part["text"])


def _calls(reply: Reply) -> list[JSON]:
    return [
        {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}
        for call in reply.calls
    ]


def _response(reply: Reply, parts: list[JSON], *, last: bool = False) -> JSON:
    candidate: JSON = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "modelVersion": reply.model,
        "responseId": reply.id,
        "usageMetadata": _USAGE,
    }


_USAGE = {
    "promptTokenCount": INPUT_TOKENS,
    "candidatesTokenCount": OUTPUT_TOKENS,
    "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
}
