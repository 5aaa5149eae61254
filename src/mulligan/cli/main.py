"""The entry point: find the command and run it.

A command's module is imported only when that command runs: hooks pay for the start at every tool
call.
"""

from __future__ import annotations

import gc
import os
import sys

SWITCH_INTERVAL_S = 0.0005
GC_THRESHOLD_OBJECTS = 100_000


def main() -> None:
    """Run the `mulligan` command."""
    _open_standard_descriptors()
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Before anything else is imported: scripts ask for the version often.
        from mulligan.version import __version__

        print(f"mulligan {__version__}")
        return
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        # An agent waits for each hook: not even click is imported.
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


def _open_standard_descriptors() -> None:
    """Open descriptors 0 to 2, which `2>&-` or some supervisors leave closed.

    Otherwise a file of the store could get such a number, and messages would be written into it.
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
