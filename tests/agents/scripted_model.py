"""A model that plays a script, served on loopback in the protocols that agents speak.

    with ScriptedModel(script, toolbox.claude, project) as model:
        run_an_agent_against(model.url)
        assert model.requests[-1].played == "final 0"

What is said next follows from the request alone, never from how many came before: the last prompt
of the script that the user said chooses the turn, the results of its tool calls that came since
choose the step. So an agent may retry, resume, or ask something in between. A request that offers
no tools is such an aside (a title, a summary, a check of the quota) and gets some plain words; so
does one in which no prompt of the script was said. An agent that compacts its history in the
middle of a turn takes the results away with it: the turn begins anew.

Every request is kept. Ids of tool calls differ from one server to the next, as a model's do:
agents that work at the same time in one project need a server each.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NamedTuple
from urllib.parse import urlsplit

import script as scripts
import toolbox as toolboxes
from protocols import anthropic, gemini, ollama, openai_chat, openai_responses
from protocols.conversation import JSON, Asked, Reply, Result, Said, ToolCall
from script import Call, Script, Step
from toolbox import Toolbox

ASIDE = "As you like."

_PROTOCOLS: tuple[ModuleType, ...] = (anthropic, openai_responses, openai_chat, gemini, ollama)


class Request(NamedTuple):
    """A request as it came, and what was played for it: "step 0.2", "final 0", "aside", "none".

    `results` are the tool results since the prompt: the call's id, and the text the model saw.
    """

    method: str
    path: str
    body: JSON
    tools: tuple[str, ...]
    played: str
    results: dict[str, str]


class Played(NamedTuple):
    """A place in the script, and what is to be said there."""

    name: str
    text: str
    calls: tuple[ToolCall, ...]
    hold: str
    results: dict[str, str]


class ScriptedModel:
    """The server; it runs while its `with` block does."""

    def __init__(self, script: Script, toolbox: Toolbox, root: Path, *, port: int = 0) -> None:
        self.requests: list[Request] = []
        self._script = script
        self._toolbox = toolbox
        self._root = root
        self._token = uuid.uuid4().hex[:8]
        self._changed = threading.Condition()
        self._held: set[str] = set()
        self._released: set[str] = set()
        self._closed = False
        self._server = _Server(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """Where it listens, without a path at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def wait_until_held(self, name: str, timeout: float = 120) -> None:
        """Returns when an answer with this hold is being kept back."""
        with self._changed:
            if not self._changed.wait_for(lambda: name in self._held, timeout):
                raise TimeoutError(f"no agent came as far as the hold {name!r} in {timeout} s")

    def release(self, name: str) -> None:
        """Lets answers with this hold go, the one kept back and those to come."""
        with self._changed:
            self._released.add(name)
            self._changed.notify_all()

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def reply(self, method: str, path: str, body: JSON, asked: Asked) -> Reply:
        """Decides what to say, and keeps it back for as long as the script says so."""
        played = self._play(asked)
        with self._changed:
            self.requests.append(
                Request(method, path, body, asked.tools, played.name, played.results)
            )
            if played.hold:
                self._held.add(played.hold)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed or played.hold in self._released)
        return Reply(uuid.uuid4().hex, asked.model, played.text, played.calls)

    def note(self, method: str, path: str, body: JSON) -> None:
        """Keeps a request that is not for the model to answer."""
        with self._changed:
            self.requests.append(Request(method, path, body, (), "none", {}))

    def _play(self, asked: Asked) -> Played:
        said = list(_prompts(self._script, asked))
        if not asked.tools or not said:
            return Played("aside", ASIDE, (), "", {})
        index, since = said[-1]
        turn = self._script.turns[index]
        steps = [self._calls(index, number, step) for number, step in enumerate(turn.steps)]
        order = [call.id for calls in steps for call in calls]
        results = dict(_results(asked.items[since:], order))
        for number, (step, calls) in enumerate(zip(turn.steps, steps, strict=True)):
            if not all(call.id in results for call in calls):
                return Played(f"step {index}.{number}", step.text, calls, step.hold, results)
        return Played(f"final {index}", turn.final, (), turn.hold, results)

    def _calls(self, turn: int, number: int, step: Step) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(f"call_{self._token}_{turn}_{number}_{place}", *self._tool(call))
            for place, call in enumerate(step.calls)
        )

    def _tool(self, call: Call) -> toolboxes.Tool:
        return self._toolbox(call, self._root)


def _prompts(script: Script, asked: Asked) -> Iterator[tuple[int, int]]:
    """The turns that were begun, each with the place in the conversation where."""
    for place, item in enumerate(asked.items):
        if isinstance(item, Said):
            for index, turn in enumerate(script.turns):
                if turn.prompt in item.text:
                    yield index, place


def _results(items: tuple[Said | Result, ...], order: list[str]) -> Iterator[tuple[str, str]]:
    results = [item for item in items if isinstance(item, Result)]
    for place, result in enumerate(results):
        if result.id is not None:
            yield result.id, result.text
        elif place < len(order):
            yield order[place], result.text


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ScriptedModel, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.model = model


class _Handler(BaseHTTPRequestHandler):
    """One connection of an agent. Whatever is no request for words is noted and not found."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._not_found()

    def do_HEAD(self) -> None:
        self._not_found()

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        for protocol in _PROTOCOLS:
            if re.search(rf"(?:{protocol.PATHS})$", urlsplit(self.path).path):
                return self._answer(protocol, json.loads(content))
        return self._not_found(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing: the requests are kept, the test's output is not for them."""

    def _answer(self, protocol: ModuleType, body: JSON) -> None:
        asked: Asked = protocol.read(self.path, body)
        reply = self.server.model.reply("POST", self.path, body, asked)
        try:
            if asked.stream:
                self._send_in_pieces(protocol.MEDIA_TYPE, protocol.stream(reply))
            else:
                self._send(200, protocol.answer(reply))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # The agent was killed, or changed its mind.

    def _not_found(self, content: bytes = b"") -> None:
        self.server.model.note(self.command, self.path, {"unread": content.decode("latin-1")})
        self._send(404, {"error": {"type": "not_found_error", "message": "not scripted"}})

    def _send(self, status: int, data: JSON) -> None:
        content = json.dumps(data, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _send_in_pieces(self, media_type: str, stream: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in stream:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def main(arguments: list[str]) -> None:
    """Serves SCRIPT.json to AGENT, working in PROJECT, until interrupted: to look by hand."""
    path, agent, root, *port = arguments
    script = scripts.load(Path(path))
    toolbox = getattr(toolboxes, agent)
    with ScriptedModel(script, toolbox, Path(root), port=int(*port)) as model:
        print(model.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
