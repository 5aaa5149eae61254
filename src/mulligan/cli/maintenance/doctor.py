"""`mulligan doctor`"""

from __future__ import annotations

import os

import click

from mulligan.cli.group import command
from mulligan.cli.output import Output, escape_text
from mulligan.errors import NotFound
from mulligan.workspace.project.location import home_directory
from mulligan.workspace.results.files import Finding

MARKS = {"ok": ("✓", "green"), "note": ("·", "cyan"), "problem": ("✗", "red")}


@command(
    "doctor",
    examples="""
mulligan doctor
mulligan doctor --json
""",
)
def doctor(out: Output) -> int:
    """Explain what is wrong here, and how to mend it. Changes nothing."""
    from mulligan.protocols.agents.finding import agent_findings
    from mulligan.protocols.agents.shape import InstallScope

    user = os.path.expanduser("~")
    try:
        with out.workspace() as workspace:
            findings = workspace.maintenance.doctor()
            place = InstallScope(user, os.environ, workspace.root)
    except NotFound as problem:
        findings = [Finding("note", "project", str(problem))]
        place = InstallScope(user, os.environ)
    findings += agent_findings(home_directory(), place)
    problems = [each for each in findings if each.level == "problem"]
    if out.as_json:
        out.data({"findings": [each.as_json() for each in findings], "healthy": not problems})
    else:
        for each in findings:
            mark, colour = MARKS[each.level]
            out.line(f"{click.style(mark, fg=colour)} {each.subject}: {escape_text(each.message)}")
            if each.fix:
                out.line(f"    {escape_text(each.fix)}")
    return 1 if problems else 0
