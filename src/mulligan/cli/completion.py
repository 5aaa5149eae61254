"""`mulligan completion`"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mulligan.cli.group import command
from mulligan.cli.output import Output


@command(
    "completion",
    examples="""
mulligan completion bash >> ~/.bashrc
mulligan completion zsh >> ~/.zshrc
mulligan completion fish > ~/.config/fish/completions/mulligan.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(out: Output, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and checkpoints."""
    from mulligan.cli.group import mulligan

    kind = get_completion_class(shell)
    assert kind is not None
    names = ("mulligan", "mull")
    scripts = [kind(mulligan, {}, name, "_MULLIGAN_COMPLETE").source() for name in names]
    script = "\n".join(scripts)
    if out.as_json:
        out.data({"shell": shell, "script": script})
    else:
        out.line(script)
