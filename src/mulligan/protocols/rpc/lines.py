"""The RPC transport: commands as JSON lines on stdin, responses and events on stdout.

    {"id": "1", "type": "get_modified_files"}
    {"id": "1", "type": "response", "command": "get_modified_files", "success": true, "data": {…}}

Commands run one after the other. Every line gets exactly one response, in order; an invalid line
gets an error. The end of stdin ends the server.

A command can ask the client before it acts: it sends an event, and the next line is the reply. If
that line is no reply, the command is cancelled and the line is run after it.
"""

from __future__ import annotations

import json
from typing import IO, Any

from mulligan.errors import MulliganError, UsageError
from mulligan.protocols.params import convert_params
from mulligan.protocols.rpc.commands import COMMANDS
from mulligan.protocols.rpc.rpc_session import Event, RpcSession

MAX_LINE_BYTES = 32 << 20
MAX_NAME_CHARACTERS = 60


def serve(rpc: RpcSession, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    """Answer lines until stdin ends or the client closes stdout."""
    unread: list[bytes] = []

    def send_event(event: Event) -> None:
        outgoing.write(_encode(event))
        outgoing.flush()

    def ask_client(event: Event) -> Event | None:
        send_event(event)
        line = incoming.readline(MAX_LINE_BYTES + 1)
        reply = _parse_reply(line, f"{event['type']}_result")
        if reply is None:
            unread.append(line)
        return reply

    rpc.send_event, rpc.ask_client = send_event, ask_client
    while (line := unread.pop() if unread else incoming.readline(MAX_LINE_BYTES + 1)) != b"":
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_line(incoming)
            too_long = UsageError(f"A line has more than {MAX_LINE_BYTES} bytes.")
            lines = [_error_response("parse", {}, too_long)]
        elif not line.strip():
            continue
        else:
            lines = answer(rpc, line)
        try:
            outgoing.write(b"".join(map(_encode, lines)))
            outgoing.flush()
        except BrokenPipeError:
            return


def answer(rpc: RpcSession, line: bytes) -> list[dict[str, Any]]:
    """Run the command in a line; return its events and then its response."""
    name = "parse"
    given: dict[str, Any] = {}
    try:
        given = _parse_line(line)
        name = given["type"]
        command = COMMANDS.get(name)
        if command is None:
            known = ", ".join(COMMANDS)
            raise UsageError(f"Unknown command: {_shorten(name)}. Known commands: {known}.")
        result = command.run(rpc, convert_params(command.params, given))
        response = _envelope(given, name) | {"success": True, "data": result.data}
        return [*result.events, response]
    except Exception as problem:
        # Whatever failed, the client gets a response and can send the next command.
        return [_error_response(name, given, problem)]


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"Failed to parse command: {problem or 'nested too deeply'}") from None
    if not isinstance(content, dict) or not isinstance(content.get("type"), str):
        raise UsageError("Failed to parse command: it must be an object with a `type`.")
    return content


def _parse_reply(line: bytes, type: str) -> dict[str, Any] | None:
    """Return the line as a reply of this type; None if it is anything else."""
    try:
        content = _parse_line(line)
    except UsageError:
        return None
    return content if content["type"] == type else None


def _error_response(name: str, given: dict[str, Any], problem: Exception) -> dict[str, Any]:
    code = problem.code if isinstance(problem, MulliganError) else "failed"
    text = str(problem) or type(problem).__name__
    return _envelope(given, _shorten(name)) | {"success": False, "error": text, "code": code}


def _envelope(given: dict[str, Any], name: str) -> dict[str, Any]:
    id = given.get("id")
    echoed = {"id": id} if isinstance(id, str | int) else {}
    return echoed | {"type": "response", "command": name}


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode("ascii") + b"\n"


def _skip_line(incoming: IO[bytes]) -> None:
    """Discard the rest of a line that is too long."""
    while (piece := incoming.readline(1 << 20)) and not piece.endswith(b"\n"):
        continue


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARACTERS else f"{name[:MAX_NAME_CHARACTERS]}…"
