"""Files that lead a browser to the page, so that the code is not in the list of processes.

    home/open/NAME.html    mode 600 in a folder of mode 700; leads to the address when opened

The code in a file works once, and for minutes; the next file and the server's end delete it.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from html import escape

from mulligan.clock import now_s
from mulligan.server.http.access import CODE_SECONDS

FOLDER = "open"
CONTENT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Mulligan</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={page}"></head>
<body><p><a href="{page}">Open Mulligan</a></p></body></html>
"""


def write_page_file(home: str, page: str) -> str:
    """Write a file that leads to an address; return its path."""
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chmod(folder, 0o700)
    delete_page_files(home, older_than=CODE_SECONDS)
    path = os.path.join(folder, f"{secrets.token_hex(8)}.html")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(CONTENT.format(page=escape(page)))
    return path


def delete_page_files(home: str, *, older_than: float = 0.0) -> None:
    """Delete the files whose codes have expired, or all of them."""
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(os.path.join(home, FOLDER)) as rows,
    ):
        for row in rows:
            with suppress(OSError):
                age = now_s() - row.stat(follow_symlinks=False).st_mtime
                if not older_than or age > older_than:
                    os.unlink(row.path)
