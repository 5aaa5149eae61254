"""`mulligan mcp` with a client that is not the SDK's own: the MCP Inspector, from npm.

It is another implementation of the protocol, in another language. Beyond the registry that it is
installed from it needs no network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import Program

INSPECTOR = Program("mcp-inspector", "@modelcontextprotocol/inspector", "2.12.0")


class Inspector:
    """Starts the program anew for each request, as its command line does."""

    def __init__(self, project: Path, home: Path) -> None:
        self._project = project
        server = [sys.executable, "-m", "mulligan", "-C", str(project), "mcp"]
        setting = ["-e", f"MULLIGAN_HOME={home}"]
        self._command = [str(INSPECTOR.install()), "--cli", *setting, *server]

    def ask(self, method: str, *more: str) -> Any:
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LANG": "C.UTF-8"}
        done = subprocess.run(
            [*self._command, "--method", method, *more],
            cwd=self._project, env=environment, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def call(self, tool: str, **given: str) -> Any:
        arguments = [f"--tool-arg={name}={value}" for name, value in given.items()]
        return self.ask("tools/call", "--tool-name", tool, *arguments)


@pytest.fixture
def inspector(project: Path, mulligan_home: Path) -> Inspector:
    (project / "a.txt").write_text("first\n")
    return Inspector(project, mulligan_home)


def test_it_sees_the_tools_and_which_of_them_destroy(inspector: Inspector) -> None:
    tools = {tool["name"]: tool["annotations"] for tool in inspector.ask("tools/list")["tools"]}
    assert len(tools) == 11
    destructive = {name for name, hints in tools.items() if hints["destructiveHint"]}
    assert destructive == {"restore", "undo"}
    assert tools["status"]["readOnlyHint"] is True


def test_it_takes_a_checkpoint_plans_a_restore_and_carries_it_out(
    inspector: Inspector, project: Path
) -> None:
    taken = inspector.call("take_checkpoint", message="by the Inspector")["structuredContent"]
    (project / "a.txt").write_text("second\n")
    name = taken["checkpoint"]
    refused = inspector.call("restore", checkpoint=name, plan="not a plan")
    assert refused["isError"] is True
    assert refused["structuredContent"]["error"]["code"] == "would_lose_work"
    plan = inspector.call("plan_restore", checkpoint=name)["structuredContent"]
    assert plan["restored"] == ["a.txt"]
    done = inspector.call("restore", checkpoint=name, plan=plan["plan"])["structuredContent"]
    assert done["restored"] == ["a.txt"]
    assert (project / "a.txt").read_text() == "first\n"


def test_it_reads_resources(inspector: Inspector) -> None:
    taken = inspector.call("take_checkpoint", message="to be read")["structuredContent"]
    uri = f"mulligan://checkpoint/{taken['checkpoint']}"
    listed = inspector.ask("resources/list")["resources"]
    assert uri in [each["uri"] for each in listed]
    (content,) = inspector.ask("resources/read", "--uri", uri)["contents"]
    assert content["mimeType"] == "text/markdown" and "to be read" in content["text"]
