"""Commands as lines of JSON on stdin, answers and events as lines on stdout.

    {"id": "1", "type": "get_modified_files"}
    {"id": "1", "type": "response", "command": "get_modified_files", "success": true, "data": {…}}

One command after another; each gets exactly one answer, in order, whatever it was. A line that
makes no sense gets an answer that says so. The end of stdin ends it.

A command can ask the client before it acts: it sends an event, and the next line is the reply. If
that line is no reply, the command is cancelled and the line is answered after it.
"""

from __future__ import annotations

import json
from typing import IO, Any

from mulligan.errors import MulliganError, UsageError
from mulligan.protocols.arguments import taken
from mulligan.protocols.rpc.commands import COMMANDS, RpcSession

LINE_LIMIT = 32 << 20
MAX_SHOWN_CHARACTERS = 60


def serve(desk: RpcSession, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    """Answers lines until there are no more, or nobody reads the answers."""
    unread: list[bytes] = []

    def tell(event: dict[str, Any]) -> None:
        outgoing.write(_encoded(event))
        outgoing.flush()

    def ask(event: dict[str, Any]) -> dict[str, Any] | None:
        tell(event)
        line = incoming.readline(LINE_LIMIT + 1)
        reply = _reply(line, f"{event['type']}_result")
        if reply is None:
            unread.append(line)
        return reply

    desk.tell, desk.ask = tell, ask
    while (line := unread.pop() if unread else incoming.readline(LINE_LIMIT + 1)) != b"":
        if len(line) > LINE_LIMIT and not line.endswith(b"\n"):
            _pass_over(incoming)
            lines = [_failed("parse", {}, UsageError(f"A line has more than {LINE_LIMIT} bytes."))]
        elif not line.strip():
            continue
        else:
            lines = answer(desk, line)
        try:
            outgoing.write(b"".join(map(_encoded, lines)))
            outgoing.flush()
        except BrokenPipeError:
            return


def answer(desk: RpcSession, line: bytes) -> list[dict[str, Any]]:
    """What a line is answered with: events, if it caused any, and the response."""
    name = "parse"
    given: dict[str, Any] = {}
    try:
        given = _command(line)
        name = given["type"]
        command = COMMANDS.get(name)
        if command is None:
            known = ", ".join(COMMANDS)
            raise UsageError(f"Unknown command: {_short(name)}. There are: {known}.")
        done = command.run(desk, **taken(command.arguments, given))
        response = _envelope(given, name) | {"success": True, "data": done.data}
        return [*done.events, response]
    except Exception as problem:
        # Whatever it was: one who asked is answered, and may ask again.
        return [_failed(name, given, problem)]


def _command(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"Failed to parse command: {problem or 'nested too deeply'}") from None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise UsageError("Failed to parse command: it must be an object with a `type`.")
    return found


def _reply(line: bytes, type: str) -> dict[str, Any] | None:
    """The line as a reply of this type; None if it is anything else."""
    try:
        found = _command(line)
    except UsageError:
        return None
    return found if found["type"] == type else None


def _failed(name: str, given: dict[str, Any], problem: Exception) -> dict[str, Any]:
    code = problem.code if isinstance(problem, MulliganError) else "failed"
    words = str(problem) or type(problem).__name__
    return _envelope(given, _short(name)) | {"success": False, "error": words, "code": code}


def _envelope(given: dict[str, Any], name: str) -> dict[str, Any]:
    id = given.get("id")
    known = {"id": id} if isinstance(id, str | int) else {}
    return known | {"type": "response", "command": name}


def _encoded(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode("ascii") + b"\n"


def _pass_over(incoming: IO[bytes]) -> None:
    """Reads the rest of a line that is too long, and forgets it."""
    while (piece := incoming.readline(1 << 20)) and not piece.endswith(b"\n"):
        continue


def _short(name: str) -> str:
    return name if len(name) <= MAX_SHOWN_CHARACTERS else f"{name[:MAX_SHOWN_CHARACTERS]}…"
