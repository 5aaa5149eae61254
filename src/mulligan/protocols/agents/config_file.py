"""Read and write an agent's configuration file, of the user or of a project.

Files of the user may lie behind links (dotfiles): they are changed where they lie. A project's
files came with a clone perhaps, and its links may lead anywhere: below the project no link is
followed, neither to read nor to write.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mulligan.errors import UsageError

MAX_BYTES = 16 << 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
CODING = ("utf-8", "surrogateescape")


class ConfigFile(NamedTuple):
    """A file by its path, and the project that it belongs to: None for one of the user."""

    path: str
    project: str | None

    def read(self) -> str | None:
        """The text; None if there is no file. Odd bytes come back as they were by `write`.

        Raises `UsageError` for what is no file of text: a link in a project, a pipe, a huge file.
        """
        try:
            with self._opened() as (folder, name):
                fd = os.open(name, os.O_RDONLY | FILE, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise self._refused(problem) from problem
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UsageError(f"{self.path} is not a regular file; nothing was changed.")
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UsageError(f"{self.path} is larger than {MAX_BYTES >> 20} MiB; not read.")
        return content.decode(*CODING)

    def write(self, text: str | None) -> None:
        """Replace the file in one step, or remove it. Raises `UsageError` as `read` does."""
        with self._opened(make=text is not None) as (folder, name):
            mode = self._mode(folder, name)
            if text is None:
                os.unlink(name, dir_fd=folder)
                return
            temporary = f"{name}.{os.getpid()}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE
            try:
                with open(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    file.write(text.encode(*CODING))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise

    def missing_folders(self) -> Iterator[str]:
        """The folders that a write will make, innermost first."""
        folder = os.path.dirname(self.path)
        while not os.path.isdir(folder):
            yield folder
            folder = os.path.dirname(folder)

    def remove_folders(self, folders: Iterable[str]) -> None:
        """Remove those folders that are empty."""
        for path in folders:
            with (
                contextlib.suppress(OSError, UsageError),
                ConfigFile(path, self.project)._opened() as (folder, name),
            ):
                os.rmdir(name, dir_fd=folder)

    def _mode(self, folder: int, name: str) -> int | None:
        """The permissions of the present file; None if there is none."""
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"{self.path} is not a regular file; nothing was changed.")
        return stat.S_IMODE(status.st_mode)

    @contextlib.contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder that the file lies in, open, and the file's name there."""
        if self.project is None:
            above, name = os.path.split(os.path.realpath(self.path))
            if make:
                os.makedirs(above, exist_ok=True)
            fd = os.open(above, FOLDER)
        else:
            *folders, name = os.path.relpath(self.path, self.project).split(os.sep)
            fd = self._walked(self.project, folders, make=make)
        try:
            yield fd, name
        finally:
            os.close(fd)

    def _walked(self, project: str, folders: list[str], *, make: bool) -> int:
        """Open a folder of the project, one name after the other, and through no link."""
        fd = os.open(project, FOLDER)
        try:
            for name in folders:
                if name == os.pardir:
                    raise UsageError(f"{self.path} is not in {project}.")
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=fd)
                if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise self._behind_link()
                inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=fd)
                os.close(fd)
                fd = inner
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _refused(self, problem: OSError) -> Exception:
        """What to raise where the file cannot be opened: a link is refused in words."""
        with contextlib.suppress(OSError), self._opened() as (folder, name):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return self._behind_link()
        return problem

    def _behind_link(self) -> UsageError:
        return UsageError(
            f"{self.path} is a symbolic link, or lies behind one, and may lead out of the project: "
            "nothing was read or written. Remove the link, or install for all your projects, "
            "without --project."
        )
