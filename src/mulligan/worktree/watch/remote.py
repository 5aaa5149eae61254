"""Query a watcher in another process, as git does with its fsmonitor daemon.

`serve` answers on a unix domain socket that only the user may open; `connect` returns a
`RemoteWatcher`, used like a `Watcher`, or None if no server listens. A request is one line of JSON,
and so is its answer; a connection may carry several. Paths are hexadecimal, since names may be any
bytes:

    {"add": ["737263"], "since": "5f0c…:41"}   both are optional; `add` is done first
    {"refused": [], "token": "5f0c…:57", "lost": false, "paths": ["7372632f612e7079"]}

An answer with an `error` ends the connection. Every wait on either side has a timeout. A client
that gets no answer is `broken`: it reports `lost`, and the caller must drop its last token,
since a directory may have been listed without a watch.
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
SOCKET_TIMEOUT_S = 2.0  # for a request to arrive, and for its answer to be sent
_MAX_ADDRESS_BYTES = 100  # Linux allows 107, other kernels fewer


def serve(watcher: Watcher, path: str) -> Server:
    """Serve the watcher at a socket path, in daemon threads, until the result is closed.

    Replaces the socket of a dead server. Raises `Busy` if a server listens there, and `UsageError`
    if the path is not a socket.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        # The file inherits the socket's mode, so other users can never open it. (umask would do
        # the same, but for every thread of the process.)
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
    """Connect to the watcher served at a path; None if no server listens there.

    The timeout holds for the connection and for each request.
    """
    connection = _dial(path, timeout)
    return None if connection is None else RemoteWatcher(path, connection, timeout)


class RemoteWatcher:
    """A `Watcher` in another process; thread-safe.

    Each `add` is a round trip. A scanner that knows directories from the last scan passes them to
    `add_many` first; `add` then sends nothing for these until the next `since`.
    """

    def __init__(self, path: str, connection: socket.socket, timeout: float) -> None:
        self.broken = False
        self._path = path
        self._timeout = timeout
        self._connection: socket.socket | None = connection
        self._lock = threading.Lock()
        self._added: set[bytes] = set()

    def add(self, directory: bytes) -> bool:
        """Watch a directory, like `Watcher.add`; without an answer, False and `broken`."""
        with self._lock:
            return directory in self._added or self._add([directory])

    def add_many(self, directories: Iterable[bytes]) -> bool:
        """Watch several directories in few requests; return whether all are watched."""
        all_watched = True
        with self._lock:
            batch: list[bytes] = []
            size = 0
            for directory in directories:
                batch.append(directory)
                size += 2 * len(directory) + 3
                if size > MAX_REQUEST_BYTES // 4:
                    all_watched &= self._add(batch)
                    batch, size = [], 0
            return (not batch or self._add(batch)) and all_watched

    def since(self, token: str | None) -> Changes:
        """Return the changes, like `Watcher.since`; without an answer, `lost`."""
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
        """Send a request; return None, and stay broken, without an answer in time."""
        if self.broken:
            return None
        line = _encode(request)
        answer = self._exchange(line)
        if answer == b"":
            # The server closes idle connections; connect again and repeat the request. A new
            # server does not know our tokens and answers `lost`.
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
        """Send a line and read one; b"" if the server closed the connection, None on timeout."""
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
    """Serves a watcher on a socket until `close`; the watcher stays open."""

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
        """Stop, and remove the socket unless another server has replaced it."""
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
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
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
                    time.sleep(0.1)  # perhaps out of file descriptors: try again
                continue
            with self._lock:
                is_accepted = not self._closed and len(self._connections) < MAX_CONNECTIONS
                if is_accepted:
                    self._connections.add(connection)
            try:
                if is_accepted:
                    # One thread each, so that a silent client does not block others.
                    threading.Thread(
                        target=self._serve_connection, args=(connection,), daemon=True
                    ).start()
                    continue
            except RuntimeError:  # can't start new thread
                with self._lock:
                    self._connections.discard(connection)
            connection.close()

    def _serve_connection(self, connection: socket.socket) -> None:
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
            # The watcher takes another spelling of a path for another directory.
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
    """A parsed answer of the server."""

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
    """A line is longer than its limit."""


def _read_line(connection: socket.socket, buffer: bytearray, limit: int, deadline: float) -> bytes:
    """Return the next line; b"" if the peer closed. The rest stays in the buffer.

    Raises `TimeoutError` at the deadline, even if bytes keep arriving.
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
    # Connecting to a regular file is refused as well, and that must not be removed.
    if not stat.S_ISSOCK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        raise UsageError(f"{path} exists and is not a socket; nothing was changed.")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0.5)
        try:
            probe.connect(_address(path, directory))
        except ConnectionRefusedError:
            os.unlink(name, dir_fd=directory)
        except OSError as error:
            raise Busy(f"A watcher already listens at {path} and does not answer.") from error
        else:
            raise Busy(f"A watcher already listens at {path}.")
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
    """Return the address to bind or connect to; through /proc if the path is too long."""
    address = os.fsencode(path)
    if len(address) > _MAX_ADDRESS_BYTES:
        address = b"/proc/self/fd/%d/%b" % (directory, os.path.basename(address))
    if len(address) > _MAX_ADDRESS_BYTES or not os.path.isdir(os.path.dirname(address) or b"."):
        raise Unsupported(f"{path} is too long for a socket path; use a shorter one.")
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
    """Keep two servers that start at once from removing each other's socket."""
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
