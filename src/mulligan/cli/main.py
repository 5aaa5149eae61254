"""The entrance: finds the command, runs it, and turns errors into words and exit codes.

A command's module is imported only when that command runs: starting is a cost that hooks pay at
every tool call.
"""

from __future__ import annotations

import gc
import os
import sys

SWITCH_INTERVAL_S = 0.0005
GC_THRESHOLD_OBJECTS = 100_000


def main() -> None:
    """The `mulligan` command."""
    _have_three()
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Before anything else is imported: people and scripts ask for this often.
        from mulligan.version import __version__

        print(f"mulligan {__version__}")
        return
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        # At every step of an agent: not even the command line's own package is needed.
        from mulligan.protocols.hooks.run import process

        process(sys.argv[2:])
    _tune_interpreter()
    from mulligan.cli.group import mulligan

    mulligan(prog_name="mulligan")


def _tune_interpreter() -> None:
    """Let threads take turns sooner and collect garbage less often; this process is ours.

    The objects of a scan all stay: looking for garbage among them takes a tenth of its time.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(GC_THRESHOLD_OBJECTS)


def _have_three() -> None:
    """Has descriptors 0 to 2 open, which `2>&-` or some supervisors leave closed.

    The next file opened would be given such a number, and that could be one of the store's: words
    that are meant for a terminal must never end up there.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (fd := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(fd, True)
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w", errors="backslashreplace")
    sys.stderr = sys.stderr or os.fdopen(2, "w", errors="backslashreplace")


if __name__ == "__main__":
    main()
