"""The entrance: finds the command, runs it, and turns errors into words and exit codes.

A command's module is imported only when that command runs: starting is a cost that hooks pay at
every tool call.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The `mulligan` command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Before anything else is imported: people and scripts ask for this often.
        from mulligan.version import __version__

        print(f"mulligan {__version__}")
        return
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        # At every step of an agent: not even the command line's own package is needed.
        from mulligan.protocols.hooks.run import process

        process(sys.argv[2:])
    from mulligan.cli.group import mulligan

    mulligan(prog_name="mulligan")


if __name__ == "__main__":
    main()
