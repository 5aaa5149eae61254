"""`python -m mulligan` is the `mulligan` command."""

from mulligan.cli.main import main

main()
