"""`mulligan hook AGENT`: one event on stdin, one answer on stdout, and never in the way.

With a server running the event goes there, where the project is open already, and nothing of the
engine is imported; else it is recorded right here. Either way the agent waits no longer than it
must.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time

from mulligan.clock import now_s
from mulligan.core.hook_kinds import PROMPT
from mulligan.protocols.hooks.translate import AGENTS, PLUGINS, answer, refusal, translated
from mulligan.workspace.project.home import home_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

    from mulligan.protocols.hooks.translate import Payload

MAX_EVENT_BYTES = 64 << 20
MAX_LOG_BYTES = 1 << 20
WAIT_SECONDS = 20
SERVER_SECONDS = 30
ANSWER_SECONDS = 100
PLUGIN_ANSWER_SECONDS = 50
"""A prompt is answered within these: an agent that has stopped waiting sends it unprotected."""
SHELLS = (b"sh", b"bash", b"dash", b"zsh", b"fish", b"ash")


def process(arguments: list[str]) -> NoReturn:
    """Runs a hook as all that this process does: it ends at once, without tidying up memory.

    An agent waits for it, and that would be a fifth of the time.
    """
    gc.disable()
    code = main(arguments)
    sys.stderr.flush()
    os._exit(code)


class OutOfTime(KeyboardInterrupt):
    """A prompt took too long to record. Like an interrupt it passes through every handler."""


def main(arguments: list[str]) -> int:
    """Runs a hook; gives the exit code, which is 0 whatever happens: a no is in the answer."""
    strict = "--strict" in arguments
    if not arguments or arguments[0] not in AGENTS or len(arguments) > 2:
        sys.stderr.write(f"usage: mulligan hook {{{'|'.join(AGENTS)}}} [--strict]\n")
        return 2 if strict or not arguments else 0
    agent = arguments[0]
    begun = time.monotonic()
    happening: Payload | None = None
    try:
        payload = _payload()
        happening = translated(agent, payload, _agents_process())
        if happening is None:
            if strict and agent not in PLUGINS:
                raise ValueError("It names no session, or is no prompt.")
            return 0
        told = _at_the_server(happening) or _here(happening, begun, strict=strict)
        _say(answer(agent, str(payload.get("hook_event_name", "")), told))
    except BaseException as problem:
        _note(agent, happening, problem)
        _say(_unprotected(agent, happening, problem, strict=strict))
    return 0


def _say(said: str) -> None:
    if said:
        sys.stdout.write(said + "\n")
        sys.stdout.flush()


def _unprotected(
    agent: str, happening: Payload | None, problem: BaseException, *, strict: bool
) -> str:
    """The answer to an event that was not recorded: a prompt is refused, or its user told."""
    if happening is None:
        # A plugin gives the option with every event, a command hook only with prompts.
        is_prompt, strict = strict and agent not in PLUGINS, True
    else:
        is_prompt = happening["kind"] == PROMPT
        strict = is_prompt and (strict or _is_strict(happening))
    if not is_prompt:
        return ""
    if strict:
        reason = f"Mulligan cannot protect this prompt: {problem} See `mulligan doctor`."
        return refusal(agent, reason)
    told = f"Mulligan: this prompt is not protected: {problem} See `mulligan doctor`."
    return answer(agent, "", {"to_user": told})


def log_path() -> str:
    """Where hooks write what went wrong; `doctor` shows it."""
    return os.path.join(home_directory(), "hooks.log")


def _payload() -> Payload:
    content = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
    if len(content) > MAX_EVENT_BYTES:
        raise ValueError("The event is larger than any event should be.")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError("The event is no object.")
    return found


def _agents_process() -> int | None:
    """The agent's own process: whoever called the hook, or the one above the shells in between."""
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


def _is_strict(happening: Payload) -> bool:
    """Whether the settings say so; what cannot be read says nothing. Never raises."""
    from mulligan.errors import RefusedRoot
    from mulligan.workspace.project.location import find_project
    from mulligan.workspace.settings.settings import read_settings

    try:
        home = home_directory()
        try:
            project = find_project(happening["directory"], home)
        except RefusedRoot:
            project = find_project(happening["directory"], home, allow_any_root=True)
        return read_settings(home, project.root, project.directory).strict
    except Exception:
        return False


def _here(happening: Payload, begun: float, *, strict: bool) -> Payload:
    """Records a happening in this process; a prompt within the time that its agent waits."""
    if happening["kind"] != PROMPT:
        return _recorded(happening, strict=strict)
    import signal

    seconds = PLUGIN_ANSWER_SECONDS if happening["agent"] in PLUGINS else ANSWER_SECONDS

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime(f"It takes longer than {seconds} seconds to record.")

    signal.signal(signal.SIGALRM, stop)
    # A timer of 0 would be none.
    signal.setitimer(signal.ITIMER_REAL, max(0.01, begun + seconds - time.monotonic()))
    try:
        return _recorded(happening, strict=strict)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _recorded(happening: Payload, *, strict: bool) -> Payload:
    from mulligan.core.hook_events import HookEvent
    from mulligan.errors import RefusedRoot
    from mulligan.workspace.hooks import happened
    from mulligan.workspace.opening import open_project

    try:
        project = open_project(happening["directory"], automatic=True, wait=WAIT_SECONDS)
    except RefusedRoot:
        if happening["kind"] == PROMPT and (strict or _is_strict(happening)):
            raise
        # The agent runs in a home directory or a system folder: there is no project to protect.
        return {}
    with project:
        project.journal.leave_log()
        return happened(project, HookEvent.from_json(happening)).as_json()


def _at_the_server(happening: Payload) -> Payload | None:
    """Tells the server, if one is running; `None` if there is none, or it cannot help."""
    path = os.path.join(home_directory(), "server.sock")
    if not os.path.exists(path):
        return None
    # What `socket` would add to it is a fifth of such a hook's time.
    import _socket

    # If the server is too slow, both may record the event: by its id it is recorded once.
    happening["id"] = os.urandom(16).hex()
    body = json.dumps(happening).encode()
    request = (
        b"POST /api/v1/happened HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    )
    line = _socket.socket(_socket.AF_UNIX)
    try:
        line.settimeout(SERVER_SECONDS)
        line.connect(path)
        line.sendall(request + body)
        received = b""
        while piece := line.recv(1 << 16):
            received += piece
    except OSError:
        return None
    finally:
        line.close()
    head, _gap, content = received.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        return None
    found = json.loads(content)
    return found if isinstance(found, dict) else None


def _note(agent: str, happening: Payload | None, problem: BaseException) -> None:
    """Writes down what went wrong, for `doctor`; what cannot even be written down is let go."""
    try:
        path = log_path()
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > MAX_LOG_BYTES:
            os.replace(path, path + ".1")
        line = {
            "at": now_s(),
            "agent": agent,
            "kind": happening["kind"] if happening else None,
            "directory": happening["directory"] if happening else None,
            "problem": f"{type(problem).__name__}: {problem}",
        }
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError:
        return
