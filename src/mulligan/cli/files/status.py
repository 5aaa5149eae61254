"""`mulligan status`"""

from __future__ import annotations

from mulligan.cli.group import command
from mulligan.cli.output import Output, change_line, folder_line, guarded, uncovered


@command(
    "status",
    examples="""
mulligan status
mulligan -C ../other status
mulligan status --json
""",
)
def status(out: Output) -> None:
    """Show what changed since the last checkpoint."""
    with out.workspace() as workspace:
        found = workspace.status()
    if out.as_json:
        out.data(found.as_json())
        return
    out.say(f"Since checkpoint {found.checkpoint[:8]}:")
    for each in found.changed_files:
        note = "  (binary)" if each.is_binary else "  (large)" if each.is_too_large else ""
        if each.old_mode and each.new_mode and each.old_mode != each.new_mode:
            note += f"  {each.old_mode[-4:]} → {each.new_mode[-4:]}"
        out.line(change_line(each.status, each.path, each.additions, each.deletions, note))
    for folder in found.changed_folders:
        out.line(folder_line(folder))
    if not (found.changed_files or found.changed_folders):
        out.say("Nothing changed.")
    if found.guarded:
        out.say(guarded(found.guarded, found.checkpoint))
    for line in uncovered(found.coverage, 10):
        out.say(line)
