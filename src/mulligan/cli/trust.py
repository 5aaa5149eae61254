"""`mulligan trust`"""

from __future__ import annotations

import sys

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_terminal, escape_text, plural
from mulligan.errors import UsageError
from mulligan.workspace.trust import ProjectRuleFile, accept, revoke, rule_files


@command(
    "trust",
    examples="""
mulligan trust               shows the files, and asks
mulligan trust .mulliganignore --yes
mulligan trust --json        what is in effect, and what is not
mulligan trust --revoke      nothing of the project's own weakens anything any more
""",
)
@click.argument("paths", nargs=-1)
@click.option("--yes", is_flag=True, help="Accept without asking.")
@click.option("--revoke", "is_revoke", is_flag=True, help="Take all acceptance back.")
def trust(out: Output, paths: tuple[str, ...], yes: bool, is_revoke: bool) -> None:
    """Accept what the project's own .mulligan.toml and .mulliganignore files weaken.

    Agents and strangers write those too. Until you accept one, what would protect less than your
    own settings has no effect. Accepted is the file as it is now: once changed, it asks again.
    """
    if is_revoke and (paths or yes):
        raise UsageError("--revoke takes back everything; say it without paths and --yes.")
    with out.workspace(create=True) as workspace:
        if is_revoke:
            revoke(workspace.project)
        found = rule_files(workspace.project, workspace.project.paths(out.paths(paths)))
        asked = [each for each in found if each.can_be_accepted]
        if not out.as_json:
            _show(out, found)
        wanted = yes or (not out.as_json and not is_revoke and bool(asked) and _agreed(asked))
        done = accept(workspace.project, asked) if wanted else ()
        if out.as_json:
            rows = rule_files(workspace.project, workspace.project.paths(out.paths(paths)))
            out.data({"files": [each.as_json() for each in rows], "accepted": list(done)})
            return
    _say_what_was_done(out, asked, done, is_revoke=is_revoke)


def _agreed(asked: list[ProjectRuleFile]) -> bool:
    question = f"Accept {plural(len(asked), 'file')}?"
    return sys.stdin.isatty() and click.confirm(question, default=False, err=True)


def _say_what_was_done(
    out: Output, asked: list[ProjectRuleFile], done: tuple[str, ...], *, is_revoke: bool
) -> None:
    if is_revoke:
        out.say("Nothing of the project's own is accepted any more.")
    elif not asked:
        out.say("There is nothing to accept.")
    elif not done:
        out.say("Nothing was accepted. `mulligan trust --yes` accepts what is shown above.")
    else:
        out.say(f"Accepted {', '.join(map(escape_text, done))}.")
        for path in sorted({each.path for each in asked} - set(done)):
            out.say(
                f"{escape_text(path)} was changed meanwhile, and is not accepted; look at it again."
            )


def _show(out: Output, found: list[ProjectRuleFile]) -> None:
    for each in found:
        state = "accepted" if each.accepted else "not accepted"
        state = f"broken: {escape_text(each.problem)}" if each.problem else state
        out.line(f"{click.style(escape_text(each.path), bold=True)}  {state}")
        if each.weakens:
            is_settings = each.path.endswith(".toml")
            word = "weakens" if is_settings else "leaves out"
            out.line(f"  {word}: {', '.join(map(escape_text, each.weakens))}")
        if not each.problem:
            for line in each.content.splitlines():
                out.line(f"  | {escape_terminal(line)}")
