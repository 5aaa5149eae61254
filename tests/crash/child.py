"""The process that gets killed.

A server that has everything imported and forks for each request, so that a kill costs
milliseconds; the forked process carries out some verbs and is killed, for real, immediately before
its n-th effect on the file system. Effects are counted by standing between Mulligan and the system:
the functions of `os` and `open` are replaced before Mulligan is imported, SQLite writes through a
VFS of ours, and the system calls that exchange names and sync a file system are wrapped.

With each effect goes a record of what it did, by inode, in the words of `disk.Disk`; from those the
tests work out what a loss of power would leave behind. A request and an answer are one line of JSON
each; the records go through a file, written just before the kill.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import json
import os
import pickle
import signal
import sys
import threading
import traceback

import apsw

REAL = {
    name: getattr(os, name)
    for name in (
        "chmod", "chown", "fchmod", "fsync", "ftruncate", "link", "mkdir", "open", "pwrite",
        "rename", "replace", "rmdir", "symlink", "truncate", "unlink", "utime", "write",
    )
}  # fmt: skip
REAL_OPEN = builtins.open


class Recorder:
    """Counts effects, keeps what they did, and kills when the time has come."""

    def __init__(self) -> None:
        self.active = False
        self.kill_at = 0
        self.report = ""
        self.effects: list[str] = []
        self.log: list[tuple] = []
        self.lock = threading.RLock()

    @contextlib.contextmanager
    def effect(self, kind: str):
        """Around one effect; the block appends its records to `log` once it has happened."""
        if not self.active:
            yield []
            return
        with self.lock:
            self.effects.append(kind)
            if len(self.effects) == self.kill_at:
                self.effects.pop()
                self.save()
                os.kill(os.getpid(), signal.SIGKILL)
            done: list[tuple] = []
            yield done
            self.log.append(("effect", kind))
            self.log += done

    def save(self) -> None:
        with REAL_OPEN(self.report, "wb") as file:
            pickle.dump((self.effects, self.log), file)


recorder = Recorder()


def inode(path, dir_fd=None, *, follow_symlinks=False) -> int:
    return os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks).st_ino


def place(path, dir_fd=None) -> tuple[int, bytes]:
    """The inode of the folder that a path lies in, and its name there."""
    folder, name = os.path.split(os.fsencode(path))
    if dir_fd is None:
        return os.stat(folder or b".").st_ino, name
    return (os.stat(folder, dir_fd=dir_fd) if folder else os.fstat(dir_fd)).st_ino, name


def exists(path, dir_fd=None) -> bool:
    try:
        os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _open(path, flags, mode=0o777, *, dir_fd=None):
    if flags & os.O_TMPFILE == os.O_TMPFILE:
        with recorder.effect("create nameless") as done:
            fd = REAL["open"](path, flags, mode, dir_fd=dir_fd)
            status = os.fstat(fd)
            done.append(("nameless", status.st_ino, status.st_mode & 0o7777))
            return fd
    if not flags & os.O_CREAT:
        return REAL["open"](path, flags, mode, dir_fd=dir_fd)
    if exists(path, dir_fd):
        if not flags & os.O_TRUNC:
            return REAL["open"](path, flags, mode, dir_fd=dir_fd)
        with recorder.effect("truncate") as done:
            fd = REAL["open"](path, flags, mode, dir_fd=dir_fd)
            done.append(("truncate", os.fstat(fd).st_ino, 0))
            return fd
    with recorder.effect("create") as done:
        fd = REAL["open"](path, flags, mode, dir_fd=dir_fd)
        status = os.fstat(fd)
        done.append(("create", *place(path, dir_fd), status.st_ino, status.st_mode & 0o7777))
        return fd


def _write(fd, data):
    with recorder.effect("write") as done:
        at = os.fstat(fd).st_size if _appends(fd) else os.lseek(fd, 0, os.SEEK_CUR)
        count = REAL["write"](fd, data)
        done.append(("write", os.fstat(fd).st_ino, at, bytes(data)[:count]))
        return count


def _appends(fd) -> bool:
    import fcntl

    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND)


def _pwrite(fd, data, offset):
    with recorder.effect("write") as done:
        count = REAL["pwrite"](fd, data, offset)
        done.append(("write", os.fstat(fd).st_ino, offset, bytes(data)[:count]))
        return count


def _fsync(fd):
    with recorder.effect("sync") as done:
        REAL["fsync"](fd)
        done.append(("sync", os.fstat(fd).st_ino))


def _renaming(name):
    def renamed(source, target, *, src_dir_fd=None, dst_dir_fd=None):
        with recorder.effect(name) as done:
            places = (*place(source, src_dir_fd), *place(target, dst_dir_fd))
            REAL[name](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            done.append(("rename", *places))

    return renamed


def _link(source, target, *, src_dir_fd=None, dst_dir_fd=None, follow_symlinks=True):
    with recorder.effect("link") as done:
        REAL["link"](
            source,
            target,
            src_dir_fd=src_dir_fd,
            dst_dir_fd=dst_dir_fd,
            follow_symlinks=follow_symlinks,
        )
        found = inode(source, src_dir_fd, follow_symlinks=follow_symlinks)
        done.append(("link", *place(target, dst_dir_fd), found))


def _symlink(target, path, target_is_directory=False, *, dir_fd=None):
    with recorder.effect("symlink") as done:
        REAL["symlink"](target, path, target_is_directory, dir_fd=dir_fd)
        done.append(("symlink", *place(path, dir_fd), inode(path, dir_fd), os.fsencode(target)))


def _unlink(path, *, dir_fd=None):
    if not exists(path, dir_fd):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    with recorder.effect("unlink") as done:
        REAL["unlink"](path, dir_fd=dir_fd)
        done.append(("remove", *place(path, dir_fd)))


def _mkdir(path, mode=0o777, *, dir_fd=None):
    if exists(path, dir_fd):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    with recorder.effect("mkdir") as done:
        REAL["mkdir"](path, mode, dir_fd=dir_fd)
        status = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
        done.append(("mkdir", *place(path, dir_fd), status.st_ino, status.st_mode & 0o7777))


def _rmdir(path, *, dir_fd=None):
    with recorder.effect("rmdir") as done:
        REAL["rmdir"](path, dir_fd=dir_fd)
        done.append(("remove", *place(path, dir_fd)))


def _truncate(path, length):
    with recorder.effect("truncate") as done:
        REAL["truncate"](path, length)
        done.append(("truncate", os.stat(path).st_ino, length))


def _ftruncate(fd, length):
    with recorder.effect("truncate") as done:
        REAL["ftruncate"](fd, length)
        done.append(("truncate", os.fstat(fd).st_ino, length))


def _chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    with recorder.effect("chmod") as done:
        if isinstance(path, int):
            REAL["fchmod"](path, mode)
            done.append(("chmod", os.fstat(path).st_ino, mode))
            return
        REAL["chmod"](path, mode, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        found = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        done.append(("chmod", found.st_ino, mode))


def _fchmod(fd, mode):
    with recorder.effect("chmod") as done:
        REAL["fchmod"](fd, mode)
        done.append(("chmod", os.fstat(fd).st_ino, mode))


def _counted(name):
    def counted(*given, **named):
        with recorder.effect(name):
            return REAL[name](*given, **named)

    return counted


class Written:
    """A file open for writing whose bytes go out as the buffered ones of Python do: at the end."""

    def __init__(self, path, mode: str, encoding: str | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        flags |= os.O_APPEND if "a" in mode else os.O_EXCL if "x" in mode else os.O_TRUNC
        self._encoding = None if "b" in mode else encoding or "utf-8"
        self._buffer = bytearray()
        self._fd = os.open(path, flags, 0o666)

    def write(self, data) -> int:
        self._buffer += data.encode(self._encoding) if self._encoding else data
        return len(data)

    def flush(self) -> None:
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            os.write(self._fd, data)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        self.flush()
        os.close(self._fd)

    def __enter__(self):
        return self

    def __exit__(self, *problem) -> None:
        self.close()


def _builtin_open(file, mode="r", buffering=-1, encoding=None, *rest, **named):
    if recorder.active and any(each in mode for each in "wax"):
        return Written(file, mode, encoding)
    return REAL_OPEN(file, mode, buffering, encoding, *rest, **named)


class CountingFiles(apsw.VFS):
    """SQLite's own files: what it writes, syncs, cuts and deletes counts like all the rest."""

    def __init__(self) -> None:
        super().__init__("counting", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802
        return CountingFile(name, flags)

    def xDelete(self, path, sync):  # noqa: N802
        if not exists(path):
            super().xDelete(path, sync)
            return
        with recorder.effect("sqlite delete") as done:
            super().xDelete(path, sync)
            folder, name = place(path)
            done.append(("remove", folder, name))
            if sync:
                done.append(("sync", folder))


class CountingFile(apsw.VFSFile):
    def __init__(self, name, flags) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        # Whoever may have to create a journal syncs its folder, be the journal there or not.
        journal = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        creates = bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        self._may_be_new = creates and bool(flags[0] & journal)
        if path is None or exists(path):
            super().__init__("unix", name, flags)
        else:
            with recorder.effect("sqlite create") as done:
                super().__init__("unix", name, flags)
                if exists(path):
                    status = os.stat(path)
                    mode = status.st_mode & 0o7777
                    done.append(("create", *place(path), status.st_ino, mode))
        self._folder = os.stat(os.path.dirname(path)).st_ino if path else 0
        self._inode = inode(path) if path and exists(path) else 0

    def xWrite(self, data, offset):  # noqa: N802
        with recorder.effect("sqlite write") as done:
            super().xWrite(data, offset)
            done.append(("write", self._inode, offset, bytes(data)))

    def xTruncate(self, size):  # noqa: N802
        with recorder.effect("sqlite truncate") as done:
            super().xTruncate(size)
            done.append(("truncate", self._inode, size))

    def xSync(self, flags):  # noqa: N802
        with recorder.effect("sqlite sync") as done:
            super().xSync(flags)
            done.append(("sync", self._inode))
            # SQLite syncs the folder of a journal with the first sync of the journal itself.
            if self._may_be_new:
                done.append(("sync", self._folder))
                self._may_be_new = False


def stand_between() -> CountingFiles:
    os.open, os.write, os.pwrite, os.fsync = _open, _write, _pwrite, _fsync
    os.rename, os.replace = _renaming("rename"), _renaming("replace")
    os.link, os.symlink, os.unlink, os.remove = _link, _symlink, _unlink, _unlink
    os.mkdir, os.rmdir, os.truncate, os.ftruncate = _mkdir, _rmdir, _truncate, _ftruncate
    os.chmod, os.fchmod = _chmod, _fchmod
    os.chown, os.utime = _counted("chown"), _counted("utime")
    builtins.open = _builtin_open
    return CountingFiles()


def wrap_exchange() -> None:
    from mulligan.worktree.fs import rename

    call = rename._system_call()
    if call is None:
        return
    names = {rename.EXCHANGE: "exchange", rename.NOREPLACE: "rename"}

    def counted(source_fd, source, target_fd, target, how) -> None:
        with recorder.effect(f"{names[how]} (renameat2)") as done:
            places = (*place(source, source_fd), *place(target, target_fd))
            call(source_fd, source, target_fd, target, how)
            done.append((names[how], *places))

    rename._system_call = lambda: counted


def wrap_sync() -> None:
    from mulligan.worktree.fs import sync

    call = sync._syncfs()
    if call is None:
        return

    def counted(fd) -> int:
        with recorder.effect("sync all") as done:
            failed = call(fd)
            if not failed:
                done.append(("sync all",))
            return failed

    sync._syncfs = lambda: counted


def say(workspace, session, words):
    from mulligan.core.entries import NewEntry

    return workspace.sessions.append(session, *(NewEntry("user_input", each) for each in words))


def take_in(workspace, agent, path):
    from mulligan.workspace.transfer.import_logs import import_logs

    return import_logs(workspace.project.home, agent, paths=(path,))


VERBS = {"say": say, "take_in": take_in}
"""Beside those of a workspace: requests are JSON, and cannot hold entries."""


def carry_out(request) -> None:
    """Opens the project and does one verb after the other; each that returned is acknowledged."""
    from operator import attrgetter

    import mulligan
    from mulligan.store import writer
    from mulligan.worktree.restore import apply

    apply.MAX_SEPARATE_SYNCS = request.get("few", apply.MAX_SEPARATE_SYNCS)
    writer.MAX_PACK_BYTES = request.get("pack_limit", writer.MAX_PACK_BYTES)
    writer.WRITE_BUFFER_BYTES = request.get("buffer", writer.WRITE_BUFFER_BYTES)
    recorder.report = request["report"]
    recorder.kill_at = request.get("kill_at", 0)
    recorder.active = True
    with mulligan.open(request["project"], home=request["home"]) as workspace:
        recorder.log.append(("ack", "open", [each.state for each in workspace.project.recovered]))
        for verb, named in request["steps"]:
            if verb in VERBS:
                value = VERBS[verb](workspace, **named)
            else:
                value = attrgetter(verb)(workspace)(**named)
            recorder.log.append(("ack", verb, value))
    recorder.active = False
    recorder.save()


def serve() -> None:
    import mulligan.workspace.workspace
    from mulligan.store import gc, verify  # noqa: F401
    from mulligan.worktree.restore import apply  # noqa: F401

    wrap_exchange()
    wrap_sync()
    print(json.dumps({"ready": mulligan.__file__}), flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                carry_out(json.loads(line))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)


if __name__ == "__main__":
    between = stand_between()
    serve()
