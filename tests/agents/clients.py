"""The official client libraries, each behind the same three words: say, give a result, hear.

They prove that the scripted model speaks its protocols: what they make of its answers is what
any program that uses them would.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import anthropic
import ollama
import openai
from google import genai

KEY = "scripted-key"
MODEL = "scripted-model"

# Nothing here reads what a tool takes, so one shape does for all of them.
_ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}


class Called(NamedTuple):
    id: str | None
    name: str
    arguments: Any


class Heard(NamedTuple):
    text: str
    calls: list[Called]


class Client(Protocol):
    """A conversation with a model. `hear` asks for its next words and adds them to the history."""

    def say(self, text: str) -> None: ...

    def give(self, call: Called, result: str) -> None: ...

    def hear(self) -> Heard: ...


Connect = Callable[[str, list[str], bool], Client]


class Anthropic:
    def __init__(self, url: str, tools: list[str], stream: bool) -> None:
        self._client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)
        self._tools = [{"name": name, "input_schema": _ANYTHING} for name in tools]
        self._stream = stream
        self._history: list[Any] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "content": text})

    def give(self, call: Called, result: str) -> None:
        block = {"type": "tool_result", "tool_use_id": call.id, "content": result}
        self._history.append({"role": "user", "content": [block]})

    def hear(self) -> Heard:
        messages: Any = self._client.messages
        asked = {"model": MODEL, "max_tokens": 100, "messages": self._history, "tools": self._tools}
        if self._stream:
            with messages.stream(**asked) as stream:
                message = stream.get_final_message()
        else:
            message = messages.create(**asked)
        self._history.append({"role": "assistant", "content": message.content})
        return Heard(
            "".join(block.text for block in message.content if block.type == "text"),
            [
                Called(block.id, block.name, block.input)
                for block in message.content
                if block.type == "tool_use"
            ],
        )


class Responses:
    """OpenAI's newer interface; `apply_patch` is offered as a tool that takes plain text."""

    def __init__(self, url: str, tools: list[str], stream: bool) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        self._tools = [
            {"type": "custom", "name": name}
            if name == "apply_patch"
            else {"type": "function", "name": name, "parameters": _ANYTHING}
            for name in tools
        ]
        self._stream = stream
        self._history: list[Any] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "content": text})

    def give(self, call: Called, result: str) -> None:
        kind = "custom_tool_call" if isinstance(call.arguments, str) else "function_call"
        output = {"type": f"{kind}_output", "call_id": call.id, "output": result}
        self._history.append(output)

    def hear(self) -> Heard:
        responses: Any = self._client.responses
        asked = {"model": MODEL, "input": self._history, "tools": self._tools}
        if self._stream:
            with responses.stream(**asked) as stream:
                response = stream.get_final_response()
        else:
            response = responses.create(**asked)
        self._history += [item.model_dump(exclude_none=True) for item in response.output]
        return Heard(
            response.output_text,
            [
                Called(item.call_id, item.name, item.input)
                if item.type == "custom_tool_call"
                else Called(item.call_id, item.name, json.loads(item.arguments))
                for item in response.output
                if item.type != "message"
            ],
        )


class ChatCompletions:
    def __init__(self, url: str, tools: list[str], stream: bool) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        self._tools = _functions(tools)
        self._stream = stream
        self._history: list[Any] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "content": text})

    def give(self, call: Called, result: str) -> None:
        self._history.append({"role": "tool", "tool_call_id": call.id, "content": result})

    def hear(self) -> Heard:
        completions: Any = self._client.chat.completions
        asked = {"model": MODEL, "messages": self._history, "tools": self._tools or openai.omit}
        if self._stream:
            with completions.stream(**asked) as stream:
                completion = stream.get_final_completion()
        else:
            completion = completions.create(**asked)
        message = completion.choices[0].message
        calls = message.tool_calls or []
        self._history.append(
            {
                "role": "assistant",
                "content": message.content,
                "tool_calls": [_plain_call(call) for call in calls] or openai.omit,
            }
        )
        return Heard(
            message.content or "",
            [
                Called(call.id, call.function.name, json.loads(call.function.arguments))
                for call in calls
            ],
        )


class Gemini:
    """With `vertex` the same library asks under other paths."""

    def __init__(self, url: str, tools: list[str], stream: bool, *, vertex: bool = False) -> None:
        self._client = genai.Client(
            vertexai=vertex, api_key=KEY, http_options=genai.types.HttpOptions(base_url=url)
        )
        self._tools: list[Any] = [{"function_declarations": [{"name": name} for name in tools]}]
        self._stream = stream
        self._history: list[Any] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "parts": [{"text": text}]})

    def give(self, call: Called, result: str) -> None:
        response = {"name": call.name, "response": {"output": result}}
        self._history.append({"role": "user", "parts": [{"function_response": response}]})

    def hear(self) -> Heard:
        models: Any = self._client.models
        asked = {"model": MODEL, "contents": self._history, "config": {"tools": self._tools}}
        if self._stream:
            answers = list(models.generate_content_stream(**asked))
        else:
            answers = [models.generate_content(**asked)]
        parts = [part for each in answers for part in each.candidates[0].content.parts]
        kept = [part for part in parts if part.text != ""]
        self._history.append({"role": "model", "parts": kept})
        calls = [part.function_call for part in parts if part.function_call]
        return Heard(
            "".join(part.text or "" for part in parts),
            [Called(call.id, call.name, call.args) for call in calls],
        )


class Vertex(Gemini):
    def __init__(self, url: str, tools: list[str], stream: bool) -> None:
        super().__init__(url, tools, stream, vertex=True)


class Ollama:
    def __init__(self, url: str, tools: list[str], stream: bool) -> None:
        self._client = ollama.Client(host=url)
        self._tools = _functions(tools)
        self._stream = stream
        self._history: list[Any] = []

    def say(self, text: str) -> None:
        self._history.append({"role": "user", "content": text})

    def give(self, call: Called, result: str) -> None:
        self._history.append({"role": "tool", "tool_name": call.name, "content": result})

    def hear(self) -> Heard:
        client: Any = self._client
        answered = client.chat(MODEL, self._history, tools=self._tools, stream=self._stream)
        messages = [each.message for each in (answered if self._stream else [answered])]
        self._history += messages
        return Heard(
            "".join(message.content or "" for message in messages),
            [
                Called(None, call.function.name, dict(call.function.arguments))
                for message in messages
                for call in message.tool_calls or ()
            ],
        )


def _functions(tools: list[str]) -> list[Any]:
    return [
        {"type": "function", "function": {"name": name, "parameters": _ANYTHING}} for name in tools
    ]


def _plain_call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}
