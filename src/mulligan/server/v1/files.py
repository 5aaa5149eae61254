"""The bytes of files, exactly: of a checkpoint, or as they are on the disk. Ranges are honoured.

Whatever a file holds, a browser is told that it is text or bytes, never a page.
"""

from __future__ import annotations

import os
import re
import stat
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from mulligan.core import tree
from mulligan.core.coverage import decode_path
from mulligan.errors import NotFound
from mulligan.journal import checkpoints
from mulligan.server.api import Router
from mulligan.server.http.errors_json import MESSAGE_LIMIT, RequestRefused, too_large
from mulligan.server.projects.registry import Registry
from mulligan.workspace.imported import check_files_allowed
from mulligan.workspace.workspace import Workspace
from mulligan.worktree.fs.safe_paths import OPEN_FILE, Directories

section = Router("files")
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
LOOKED_AT = 8192


FILE_LIMIT = 1 << 30


class Content(NamedTuple):
    """The bytes of a file; `id` is their SHA-256, in hex, where that is known beforehand."""

    data: bytes
    id: str


class FileQuery(NamedTuple):
    path: str


@section.get(
    "/projects/{project}/checkpoints/{checkpoint}/file",
    "The exact bytes of a file in a checkpoint",
    content="application/octet-stream",
)
def in_checkpoint(
    workspace: Workspace, request: Request, checkpoint: str, query: FileQuery
) -> Response:
    return served(request, content_in_checkpoint(workspace, checkpoint, query.path))


@section.get(
    "/projects/{project}/file",
    "The exact bytes of a file as it is on the disk",
    content="application/octet-stream",
)
def on_disk(workspace: Workspace, request: Request, query: FileQuery) -> Response:
    return served(request, content_on_disk(workspace, query.path))


def routes(hub: Registry) -> list[BaseRoute]:
    return section.routes(hub)


def content_in_checkpoint(workspace: Workspace, name: str, path: str) -> Content:
    """A file of a checkpoint, guarded ones included."""
    row = checkpoints.resolve(workspace.project.journal, name)
    way = workspace.project.path(path)
    for root in (row.tree, row.guarded):
        entry = tree.find(root, way, workspace.project.load) if way else None
        if entry is not None and not entry.is_directory:
            if entry.size > FILE_LIMIT:
                raise too_large(FILE_LIMIT)
            return Content(workspace.project.store.get(entry.id), entry.id.hex())
    raise NotFound(f"Checkpoint {row.id} has no file {path}.")


def content_on_disk(workspace: Workspace, path: str) -> Content:
    """An ordinary file as it is now, reached without following a link."""
    check_files_allowed(workspace.project)
    way = workspace.project.path(path)
    folder, _slash, name = way.rpartition(b"/")
    try:
        if not name or b".git" in way.split(b"/"):
            raise NotFound(f"There is no file {path} for you here.")
        with Directories(workspace.project.location.root) as directories:
            fd = os.open(name, OPEN_FILE, dir_fd=directories.open(folder))
            with open(fd, "rb") as file:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise NotFound(f"{path} is not an ordinary file.")
                if status.st_size > MESSAGE_LIMIT:
                    raise too_large(MESSAGE_LIMIT)
                looks = f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
                return Content(file.read(MESSAGE_LIMIT), looks)
    except OSError as problem:
        reason = problem.strerror or "cannot be read"
        raise NotFound(f"{decode_path(way)}: {reason}.") from problem


def served(request: Request, content: Content) -> Response:
    """All of a file, or the part that was asked for, or that nothing has changed."""
    tag = f'"{content.id}"'
    headers = {"etag": tag, "accept-ranges": "bytes", "cache-control": "private, no-cache"}
    if _is_named(tag, request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    kind = "text/plain; charset=utf-8" if _is_text(content.data) else "application/octet-stream"
    wanted = request.headers.get("range")
    # A part of something else than the client has the beginning of would be worse than all of it.
    part = None
    if wanted is not None and request.headers.get("if-range", tag) == tag:
        part = _part(wanted, len(content.data))
    if part is None:
        return Response(content.data, headers=headers, media_type=kind)
    start, end = part
    headers["content-range"] = f"bytes {start}-{end - 1}/{len(content.data)}"
    return Response(content.data[start:end], 206, headers, kind)


def _part(wanted: str, size: int) -> tuple[int, int] | None:
    """The range that was asked for; `None` for several, which are answered with everything."""
    found = RANGE.fullmatch(wanted.strip())
    if found is None or found[0] == "bytes=-":
        return None
    first, last = found.groups()
    if first:
        start = int(first)
        end = min(size, int(last) + 1) if last else size
        if last and int(last) < start:
            return None
    else:
        start, end = max(0, size - int(last)), size
    if start >= size or start >= end:
        raise RequestRefused(
            "range", f"The file has {size} bytes.", {"content-range": f"bytes */{size}"}
        )
    return start, end


def _is_named(tag: str, given: str) -> bool:
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in given.split(","))


def _is_text(data: bytes) -> bool:
    if b"\0" in data[:LOOKED_AT]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
