"""A running watcher, asked by other processes: one short-lived command finds the events that a
long-lived process has been gathering, as git does with its fsmonitor.

`serve` answers on a unix domain socket that only the user may open; `connect` gives a
`RemoteWatcher`, used like a `Watcher`, or None when nobody listens. A request is one line of
JSON, and so is its answer; a connection may carry several. Paths are hexadecimal, since names
may be any bytes:

    {"add": ["737263"], "since": "5f0c…:41"}   both may be left out; `add` is done first
    {"refused": [], "token": "5f0c…:57", "lost": false, "paths": ["7372632f612e7079"]}

An answer with an `error` in it ends the connection. Every wait on either side has an end. A client
that gets no answer is `broken`: it reports everything as lost, and the token that it gave before
must not be kept, since a directory may have been listed without being watched.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from mulligan.errors import Busy, Unsupported, UsageError
from mulligan.worktree.watch.inotify import Changes, Watcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType

MAX_REQUEST_BYTES = 1 << 20
MAX_ANSWER_BYTES = 64 << 20
MAX_CONNECTIONS = 64
SOCKET_TIMEOUT_S = 2.0  # seconds that a server waits for a request, and for its answer to be taken
_MAX_ADDRESS = 100  # bytes of a socket's path; the kernel takes 107, others fewer


def serve(watcher: Watcher, path: str) -> Server:
    """Answer questions at the path, in daemon threads, until the result is closed.

    A socket that a dead server left behind is replaced. Raises `Busy` when a live one listens
    there, and `UsageError` when something else than a socket has that name.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        # The file takes its mode from the socket, so there is no moment in which others could
        # open it. (umask would do the same, to every thread of the process.)
        os.fchmod(listener.fileno(), 0o600)
        with _directory(path) as directory, _locked(directory, path):
            _bind(listener, path, directory)
            os.chmod(os.path.basename(path), 0o600, dir_fd=directory)
            listener.listen(MAX_CONNECTIONS)
            identity = _identity(path, directory)
        return Server(watcher, listener, path, identity)
    except BaseException:
        listener.close()
        raise


def connect(path: str, timeout: float = 0.5) -> RemoteWatcher | None:
    """A watcher that somebody serves at the path; None when nobody listens there.

    The timeout is for the connection, and again for each request.
    """
    connection = _dial(path, timeout)
    return None if connection is None else RemoteWatcher(path, connection, timeout)


class RemoteWatcher:
    """A `Watcher` in another process; safe to use from several threads.

    `add` sends at once and returns when the directory is watched, so it may be listed then.
    That is a round trip for each directory: who knows many beforehand, from the last look, names
    them with `add_many` first, and `add` has nothing to send for those until the next `since`.
    """

    def __init__(self, path: str, connection: socket.socket, timeout: float) -> None:
        self.broken = False
        self._path = path
        self._timeout = timeout
        self._connection: socket.socket | None = connection
        self._lock = threading.Lock()
        self._added: set[bytes] = set()

    def add(self, directory: bytes) -> bool:
        """As `Watcher.add`; False also when nobody answers, and then `broken` is True."""
        with self._lock:
            return directory in self._added or self._add([directory])

    def add_many(self, directories: Iterable[bytes]) -> bool:
        """Watch all of them, in few requests; whether all are watched."""
        every = True
        with self._lock:
            batch: list[bytes] = []
            size = 0
            for directory in directories:
                batch.append(directory)
                size += 2 * len(directory) + 3
                if size > MAX_REQUEST_BYTES // 4:
                    every &= self._add(batch)
                    batch, size = [], 0
            return (not batch or self._add(batch)) and every

    def since(self, token: str | None) -> Changes:
        """As `Watcher.since`; everything is lost when nobody answers."""
        with self._lock:
            self._added.clear()
            answer = self._ask({"since": token})
            return Changes(frozenset(), True, "") if answer is None else answer.changes

    def close(self) -> None:
        with self._lock:
            self._break()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _add(self, directories: list[bytes]) -> bool:
        answer = self._ask({"add": [directory.hex() for directory in directories]})
        if answer is None:
            return False
        self._added.update(directories)
        self._added.difference_update(answer.refused)
        return not answer.refused

    def _ask(self, request: dict[str, object]) -> _Answer | None:
        """The answer; None, and broken for good, when there is none in time."""
        if self.broken:
            return None
        line = _encode(request)
        answer = self._exchange(line)
        if answer == b"":
            # The server hangs up on who is silent for a while, and any request may be repeated.
            # One that was started anew meanwhile does not know our tokens: they are lost.
            if self._connection is not None:
                self._connection.close()
            self._connection = _dial(self._path, self._timeout)
            answer = self._exchange(line)
        try:
            return _Answer.of(answer or b"")
        except (ValueError, TypeError, KeyError, RecursionError):
            self._break()
            return None

    def _exchange(self, line: bytes) -> bytes | None:
        """One line for another; b"" when the other side has hung up, None when it is mute."""
        if self._connection is None:
            return None
        deadline = time.monotonic() + self._timeout
        try:
            self._connection.settimeout(self._timeout)
            self._connection.sendall(line)
            return _read_line(self._connection, bytearray(), MAX_ANSWER_BYTES, deadline)
        except (BrokenPipeError, ConnectionResetError):
            return b""
        except (OSError, _TooLong):
            return None

    def _break(self) -> None:
        self.broken = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Server:
    """A socket that answers for a watcher, until `close`. The watcher stays open."""

    def __init__(
        self, watcher: Watcher, listener: socket.socket, path: str, identity: tuple[int, int] | None
    ) -> None:
        self._watcher = watcher
        self._listener = listener
        self._path = path
        self._identity = identity
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="watch-socket", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering, and remove the socket unless another server has taken its place."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        with (
            suppress(OSError, Busy),
            _directory(self._path) as directory,
            _locked(directory, self._path),
        ):
            if _identity(self._path, directory) == self._identity:
                os.unlink(os.path.basename(self._path), dir_fd=directory)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._thread.join(SOCKET_TIMEOUT_S)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()  # until close() wakes it
            except OSError:
                if not self._closed:
                    time.sleep(0.1)  # out of file descriptors, perhaps: that may pass
                continue
            with self._lock:
                welcome = not self._closed and len(self._connections) < MAX_CONNECTIONS
                if welcome:
                    self._connections.add(connection)
            try:
                if welcome:
                    # One thread each, so that a silent client keeps nobody else waiting.
                    threading.Thread(target=self._talk, args=(connection,), daemon=True).start()
                    continue
            except RuntimeError:  # no more threads
                with self._lock:
                    self._connections.discard(connection)
            connection.close()

    def _talk(self, connection: socket.socket) -> None:
        buffer = bytearray()
        try:
            while True:
                deadline = time.monotonic() + SOCKET_TIMEOUT_S
                line = _read_line(connection, buffer, MAX_REQUEST_BYTES, deadline)
                if not line:
                    return
                answer = self._answer(line)
                connection.settimeout(SOCKET_TIMEOUT_S)
                connection.sendall(_encode(answer))
                if "error" in answer:
                    return
        except _TooLong:
            with suppress(OSError):
                connection.settimeout(SOCKET_TIMEOUT_S)
                connection.sendall(_encode({"error": "request too long"}))
        except OSError:
            return
        finally:
            with self._lock:
                self._connections.discard(connection)
                connection.close()

    def _answer(self, line: bytes) -> dict[str, object]:
        try:
            request = _decode(line)
            directories = [bytes.fromhex(directory) for directory in request.get("add", [])]
            since = request.get("since")
            if not isinstance(since, str | None):
                raise TypeError("since must be a token or null")
        except (ValueError, TypeError, RecursionError) as error:
            return {"error": str(error)}
        for directory in directories:
            # Another spelling of a path would be another directory to the watcher.
            if directory and not {b"", b".", b".."}.isdisjoint(directory.split(b"/")):
                return {"error": f"not a path inside the project: {directory.hex()}"}
        refused = [directory.hex() for directory in directories if not self._watcher.add(directory)]
        if "since" not in request:
            return {"refused": refused}
        changes = self._watcher.peek(since)
        lost = (
            changes.lost or sum(2 * len(path) + 4 for path in changes.paths) > MAX_ANSWER_BYTES // 2
        )
        paths = [] if lost else [path.hex() for path in changes.paths]
        return {"refused": refused, "token": changes.token, "lost": lost, "paths": paths}


class _Answer(NamedTuple):
    """What a client makes of the server's line."""

    refused: list[bytes]
    changes: Changes

    @classmethod
    def of(cls, line: bytes) -> Self:
        answer = _decode(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        refused = [bytes.fromhex(path) for path in answer["refused"]]
        paths = frozenset(bytes.fromhex(path) for path in answer.get("paths", []))
        token = str(answer.get("token", ""))
        return cls(refused, Changes(paths, not token or bool(answer["lost"]), token))


def _encode(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _decode(line: bytes) -> dict[str, Any]:
    message = json.loads(line)
    if not isinstance(message, dict):
        raise TypeError("a message is a JSON object")
    return message


class _TooLong(Exception):
    """A line that does not end within its limit."""


def _read_line(connection: socket.socket, buffer: bytearray, limit: int, deadline: float) -> bytes:
    """The next line; b"" when the other side has closed. What follows it stays in the buffer.

    Raises `TimeoutError` at the deadline, however slowly the line drips in.
    """
    searched = 0
    while (end := buffer.find(b"\n", searched)) < 0:
        searched = len(buffer)
        if searched > limit:
            raise _TooLong
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        data = connection.recv(1 << 18)
        if not data:
            return b""
        buffer += data
    if end > limit:
        raise _TooLong
    line = bytes(buffer[: end + 1])
    del buffer[: end + 1]
    return line


def _bind(listener: socket.socket, path: str, directory: int) -> None:
    name = os.path.basename(path)
    try:
        listener.bind(_address(path, directory))
        return
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    # A connection to a plain file is refused as well: that is no reason to remove it.
    if not stat.S_ISSOCK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        raise UsageError(f"{path} is there and is no socket; nothing was changed.")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0.5)
        try:
            probe.connect(_address(path, directory))
        except ConnectionRefusedError:
            os.unlink(name, dir_fd=directory)
        except OSError as error:
            raise Busy(f"A watcher listens at {path} already, and is busy.") from error
        else:
            raise Busy(f"A watcher listens at {path} already.")
    listener.bind(_address(path, directory))


def _dial(path: str, timeout: float) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        with _directory(path) as directory:
            connection.connect(_address(path, directory))
    except (OSError, Unsupported):
        connection.close()
        return None
    return connection


def _address(path: str, directory: int) -> bytes:
    """What to bind or connect to: a short way to the same file where the path is too long."""
    address = os.fsencode(path)
    if len(address) > _MAX_ADDRESS:
        address = b"/proc/self/fd/%d/%b" % (directory, os.path.basename(address))
    if len(address) > _MAX_ADDRESS or not os.path.isdir(os.path.dirname(address) or b"."):
        raise Unsupported(f"{path} is too long for a socket here; give it a shorter place.")
    return address


@contextmanager
def _directory(path: str) -> Iterator[int]:
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield directory
    finally:
        os.close(directory)


@contextmanager
def _locked(directory: int, path: str) -> Iterator[None]:
    """Keep two servers that start at once from removing each other's socket as a stale one."""
    import fcntl

    deadline = time.monotonic() + SOCKET_TIMEOUT_S
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise Busy(f"Another watcher is being started at {path}.") from error
            time.sleep(0.01)
        else:
            break
    yield  # closing the directory unlocks it


def _identity(path: str, directory: int) -> tuple[int, int] | None:
    try:
        status = os.stat(os.path.basename(path), dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
