"""`mulligan hook AGENT`: read one event from stdin, record it, print one answer.

If a server runs, the event is sent to it: the project is open there already, and nothing of the
engine is imported. Else this process records it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time

from mulligan.clock import now_s
from mulligan.core.hook_kinds import PROMPT
from mulligan.protocols.agents import AGENTS, PLUGIN_AGENTS
from mulligan.protocols.hooks.translate import answer, refusal, translate
from mulligan.workspace.project.home import home_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

    from mulligan.protocols.hooks.translate import Payload

MAX_EVENT_BYTES = 64 << 20
MAX_LOG_BYTES = 1 << 20
LOCK_TIMEOUT_S = 20
SERVER_TIMEOUT_S = 30
ANSWER_TIMEOUT_S = 100
PLUGIN_ANSWER_TIMEOUT_S = 50
"""A prompt is answered before its agent stops waiting and sends it unprotected."""
SHELLS = (b"sh", b"bash", b"dash", b"zsh", b"fish", b"ash")


def process(arguments: list[str]) -> NoReturn:
    """Run a hook and exit at once, without freeing memory, which takes a fifth of the time."""
    gc.disable()
    code = main(arguments)
    sys.stderr.flush()
    os._exit(code)


class OutOfTime(KeyboardInterrupt):
    """Recording a prompt took too long. A KeyboardInterrupt, so that no handler swallows it."""


def main(arguments: list[str]) -> int:
    """Run a hook; return exit code 0 even on failure: a refusal is in the answer."""
    strict = "--strict" in arguments
    if not arguments or arguments[0] not in AGENTS or len(arguments) > 2:
        sys.stderr.write(f"usage: mulligan hook {{{'|'.join(AGENTS)}}} [--strict]\n")
        return 2 if strict or not arguments else 0
    agent = arguments[0]
    begun = time.monotonic()
    event: Payload | None = None
    try:
        payload = _read_payload()
        event = translate(agent, payload, _agent_process())
        if event is None:
            if strict and agent not in PLUGIN_AGENTS:
                raise ValueError("The event names no session, or is no prompt.")
            return 0
        reply = _send_to_server(event) or _record_here(event, begun, strict=strict)
        _print(answer(agent, str(payload.get("hook_event_name", "")), reply))
    except BaseException as problem:
        _log_failure(agent, event, problem)
        _print(_failure_answer(agent, event, problem, strict=strict))
    return 0


def _print(text: str) -> None:
    if text:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def _failure_answer(
    agent: str, event: Payload | None, problem: BaseException, *, strict: bool
) -> str:
    """Return the answer to an event that was not recorded: refuse a prompt, or warn its user."""
    if event is None:
        # A plugin passes --strict with every event, a command hook only with prompts.
        is_prompt, strict = strict and agent not in PLUGIN_AGENTS, True
    else:
        is_prompt = event["kind"] == PROMPT
        strict = is_prompt and (strict or _is_strict(event))
    if not is_prompt:
        return ""
    if strict:
        reason = f"Mulligan cannot protect this prompt: {problem} See `mulligan doctor`."
        return refusal(agent, reason)
    warning = f"Mulligan: this prompt is not protected: {problem} See `mulligan doctor`."
    return answer(agent, "", {"to_user": warning})


def log_path() -> str:
    """Return the path of the log of failures, which `doctor` shows."""
    return os.path.join(home_directory(), "hooks.log")


def _read_payload() -> Payload:
    content = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
    if len(content) > MAX_EVENT_BYTES:
        raise ValueError(f"The event is larger than {MAX_EVENT_BYTES >> 20} MiB.")
    payload = json.loads(content)
    if not isinstance(payload, dict):
        raise ValueError("The event is not a JSON object.")
    return payload


def _agent_process() -> int | None:
    """Return the agent's process: the nearest ancestor that is no shell."""
    parent = os.getppid()
    try:
        while parent > 1:
            with open(f"/proc/{parent}/stat", "rb") as file:
                name, _close, rest = file.read().rpartition(b")")
            if name.partition(b"(")[2] not in SHELLS:
                break
            parent = int(rest.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return parent if parent > 1 else None


def _is_strict(event: Payload) -> bool:
    """Return whether the settings are strict; False if they cannot be read. Never raises."""
    from mulligan.errors import RefusedRoot
    from mulligan.workspace.project.location import find_project
    from mulligan.workspace.settings.settings import read_settings

    try:
        home = home_directory()
        try:
            project = find_project(event["directory"], home)
        except RefusedRoot:
            project = find_project(event["directory"], home, allow_any_root=True)
        return read_settings(home, project.root, project.directory).strict
    except Exception:
        return False


def _record_here(event: Payload, begun: float, *, strict: bool) -> Payload:
    """Record an event in this process; a prompt within the time that its agent waits."""
    if event["kind"] != PROMPT:
        return _record(event, strict=strict)
    import signal

    seconds = PLUGIN_ANSWER_TIMEOUT_S if event["agent"] in PLUGIN_AGENTS else ANSWER_TIMEOUT_S

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime(f"Recording takes longer than {seconds} seconds.")

    signal.signal(signal.SIGALRM, stop)
    # A timer of 0 would disarm it.
    signal.setitimer(signal.ITIMER_REAL, max(0.01, begun + seconds - time.monotonic()))
    try:
        return _record(event, strict=strict)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _record(event: Payload, *, strict: bool) -> Payload:
    from mulligan.core.hook_events import HookEvent
    from mulligan.errors import RefusedRoot
    from mulligan.workspace.hooks import record_event
    from mulligan.workspace.opening import open_project

    try:
        project = open_project(event["directory"], automatic=True, wait=LOCK_TIMEOUT_S)
    except RefusedRoot:
        if event["kind"] == PROMPT and (strict or _is_strict(event)):
            raise
        # The agent runs in a home directory or a system folder: there is no project to protect.
        return {}
    with project:
        project.journal.leave_log()
        return record_event(project, HookEvent.from_json(event)).as_json()


def _send_to_server(event: Payload) -> Payload | None:
    """Send an event to the server; return None if no server runs, or it failed."""
    path = os.path.join(home_directory(), "server.sock")
    if not os.path.exists(path):
        return None
    # Importing `socket` would take a fifth of the hook's time.
    import _socket

    # If the server times out, this process records the event, too; its id prevents a duplicate.
    event["id"] = os.urandom(16).hex()
    body = json.dumps(event).encode()
    request = (
        b"POST /api/v1/happened HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    )
    connection = _socket.socket(_socket.AF_UNIX)
    try:
        connection.settimeout(SERVER_TIMEOUT_S)
        connection.connect(path)
        connection.sendall(request + body)
        received = b""
        while piece := connection.recv(1 << 16):
            received += piece
    except OSError:
        return None
    finally:
        connection.close()
    head, _gap, content = received.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        return None
    reply = json.loads(content)
    return reply if isinstance(reply, dict) else None


def _log_failure(agent: str, event: Payload | None, problem: BaseException) -> None:
    """Append a failure to the log for `doctor`; give up if the log cannot be written."""
    try:
        path = log_path()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > MAX_LOG_BYTES:
            os.replace(path, path + ".1")
        line = {
            "at": now_s(),
            "agent": agent,
            "kind": event["kind"] if event else None,
            "directory": event["directory"] if event else None,
            "problem": f"{type(problem).__name__}: {problem}",
        }
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError:
        return
