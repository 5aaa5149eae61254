"""A hook beside a running server: it hands the event over, and does nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from serving import Server

import mulligan

HEAVY = ("mulligan.core.hook_events", "mulligan.workspace.workspace", "mulligan.journal", "apsw")


def test_a_hook_hands_its_event_to_the_server_and_imports_nothing_of_the_engine(
    project: Path, mulligan_home: Path
) -> None:
    (project / "a").write_text("1\n")
    with Server(mulligan_home):
        imported = told(project, "UserPromptSubmit", prompt="Go.")
        assert not [name for name in imported if name.startswith(HEAVY)]
        (project / "a").write_text("2\n")
        imported = told(project, "Stop", last_assistant_message="Gone.")
        assert not [name for name in imported if name.startswith(HEAVY)]

    with mulligan.open(project) as workspace:
        (session,) = workspace.sessions.list().sessions
        assert (session.id, session.agent) == ("s1", "claude-code")
        assert [hunk.path for hunk in workspace.review.pending().hunks] == ["a"]
        assert workspace.maintenance.verify().problems == ()


def told(project: Path, event: str, **more: str) -> set[str]:
    """Tells a hook of an event, as an agent does; gives the modules that it imported."""
    payload = {"hook_event_name": event, "session_id": "s1", "cwd": str(project), **more}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "mulligan", "hook", "claude-code"],
        input=json.dumps(payload).encode(), env=os.environ, capture_output=True, check=True,
        timeout=60,
    )  # fmt: skip
    return {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
