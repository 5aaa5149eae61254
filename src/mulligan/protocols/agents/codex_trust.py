"""Trust for Codex's hooks, asked of Codex itself: its app server over stdio, one JSON a line.

`hooks/list` tells of each hook its key, its present hash and whether it is trusted;
`config/batchWrite` writes the hashes into the user's `config.toml`, as Codex does when a user says
yes. Nothing is computed here that Codex may see otherwise.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

TRUST_TIMEOUT_S = 30.0
TRUSTED = ("trusted", "managed")


class Hook(NamedTuple):
    """A hook as Codex knows it."""

    key: str
    event: str
    hash: str
    trust: str
    source: str
    command: str

    @property
    def is_trusted(self) -> bool:
        return self.trust in TRUSTED


class CannotAsk(Exception):
    """Codex did not answer; the text says why."""


def hooks(program: str, environment: Mapping[str, str], directory: str) -> list[Hook]:
    """The hooks that Codex sees in a directory; raises `CannotAsk`."""
    with _Talk(program, environment, directory) as talk:
        return talk.hooks()


def trust(
    program: str,
    environment: Mapping[str, str],
    directory: str,
    path: str,
    commands: Collection[str],
) -> list[Hook]:
    """Trust the hooks in a file that run one of the commands; gives all of these as they are then.

    Others stay as they are, however much they look alike. Raises `CannotAsk` if Codex does not
    answer.
    """

    def ours(talk: _Talk) -> list[Hook]:
        return [each for each in talk.hooks() if is_in(each, path) and each.command in commands]

    with _Talk(program, environment, directory) as talk:
        found = ours(talk)
        new = {each.key: {"trusted_hash": each.hash} for each in found if not each.is_trusted}
        if not new:
            return found
        edit = {"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": new}
        talk.ask("config/batchWrite", {"edits": [edit]})
        return ours(talk)


def is_in(hook: Hook, path: str) -> bool:
    return os.path.realpath(hook.source) == os.path.realpath(path)


def distrusted(config: str, path: str) -> str | None:
    """The text of a `config.toml` without the trust that was given to hooks of a file.

    None if it held nothing else. A text without such trust stays as it is.
    """
    kept: list[str] = []
    ours = False
    for line in config.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            ours = _is_state_of(line, path)
        if not ours:
            kept.append(line)
    left = "".join(kept)
    return config if left == config else _without_empty_state(left) or None


def _is_state_of(line: str, path: str) -> bool:
    found = re.match(r"\s*\[hooks\.state\.(\"(?:[^\"\\]|\\.)*\"|'[^']*')\]", line)
    if found is None:
        return False
    name = found[1][1:-1] if found[1].startswith("'") else json.loads(found[1])
    return str(name).rsplit(":", 3)[0] == path


def _without_empty_state(text: str) -> str:
    """Drops the heading of a table that holds nothing any more."""
    pattern = r"(?:\A|\n)\[hooks\.state\]\s*(?=\n\[|\Z)"
    if "[hooks.state." not in text:
        text = re.sub(pattern, "\n" if text.count("\n") > 1 else "", text)
    return text.lstrip("\n") if not text.strip() else text


class _Talk:
    """A conversation with Codex's app server."""

    def __init__(self, program: str, environment: Mapping[str, str], directory: str) -> None:
        self._directory = directory
        self._number = 0
        self._received = b""
        self._end = time.monotonic() + TRUST_TIMEOUT_S
        try:
            self._process = subprocess.Popen(
                [program, "app-server"],
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as problem:
            raise CannotAsk(f"codex cannot be started: {problem}") from problem

    def __enter__(self) -> _Talk:
        try:
            about = {"name": "mulligan", "title": "Mulligan", "version": "1"}
            self.ask("initialize", {"clientInfo": about})
            self._say({"method": "initialized"})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def hooks(self) -> list[Hook]:
        answer = self.ask("hooks/list", {"cwds": [self._directory]})
        return [
            Hook(
                key=str(each["key"]),
                event=str(each.get("eventName")),
                hash=str(each["currentHash"]),
                trust=str(each["trustStatus"]),
                source=str(each.get("sourcePath")),
                command=str(each.get("command") or ""),
            )
            for part in _list(answer.get("data"))
            for each in _list(part.get("hooks"))
        ]

    def ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Asks, and waits for the answer; whatever else is said in between is passed over."""
        self._number += 1
        self._say({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = self._line()
            if answer.get("id") != self._number or "method" in answer:
                continue
            if "error" in answer:
                raise CannotAsk(f"codex says to {method}: {answer['error']}")
            result = answer.get("result")
            return result if isinstance(result, dict) else {}

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as problem:
            raise CannotAsk("codex has ended without an answer") from problem

    def _line(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        with selectors.DefaultSelector() as ready:
            ready.register(stream, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not ready.select(max(0.0, self._end - time.monotonic())):
                    raise CannotAsk(f"codex has not answered within {TRUST_TIMEOUT_S:.0f} seconds")
                piece = os.read(stream.fileno(), 1 << 16)
                if not piece:
                    raise CannotAsk("codex has ended without an answer")
                self._received += piece
        line, _end, self._received = self._received.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError as problem:
            raise CannotAsk("codex has answered something that is not JSON") from problem
        return found if isinstance(found, dict) else {}


def _list(value: Any) -> Sequence[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()
