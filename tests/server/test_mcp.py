"""`mulligan mcp`: a real process, spoken to by the official SDK's client over its pipes."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError, StdioServerParameters

import mulligan
from mulligan.core.entries import NewEntry
from mulligan.protocols.mcp.server import make_server
from mulligan.protocols.mcp.tools import TOOLS, LazyWorkspace

READING = {
    "list_checkpoints", "status", "diff", "plan_restore", "search_sessions", "read_file_at",
    "list_sessions", "pending_changes",
}  # fmt: skip


def talk(project: Path, conversation: Callable[[Client], Awaitable[None]], **more: Any) -> None:
    """Starts the program in a project, and has a client talk to it."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "mulligan", "mcp"], cwd=project, env=dict(os.environ)
    )

    async def main() -> None:
        with anyio.fail_after(120):
            async with Client(server, **more) as client:
                await conversation(client)

    anyio.run(main)


async def call(client: Client, name: str, **given: Any) -> Any:
    done = await client.call_tool(name, given)
    assert not done.is_error, done
    return done.structured_content


async def refused(client: Client, name: str, **given: Any) -> str:
    """The code of the error that a call ends with."""
    done = await client.call_tool(name, given)
    assert done.is_error, done
    code = str(done.structured_content["error"]["code"])
    assert done.content[0].text.startswith(f"{code}: ")
    return code


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_described_with_what_they_may_do(project: Path, mode: str) -> None:
    async def conversation(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == READING | {"take_checkpoint", "restore", "undo"}
        for name, tool in tools.items():
            hints = tool.annotations
            assert tool.description and hints is not None
            assert hints.read_only_hint is (name in READING), name
            assert hints.destructive_hint is (name in ("restore", "undo")), name
            assert hints.idempotent_hint is (name not in ("take_checkpoint", "undo")), name
            assert hints.open_world_hint is False
            assert tool.input_schema["type"] == "object"
        assert tools["restore"].input_schema["required"] == ["checkpoint", "plan"]

    talk(project, conversation, mode=mode)


def test_a_restore_wants_a_plan_that_was_seen_and_still_holds(project: Path) -> None:
    (project / "a.txt").write_text("first\n")

    async def conversation(client: Client) -> None:
        taken = await call(client, "take_checkpoint", message="before the work")
        name = taken["checkpoint"]
        (project / "a.txt").write_text("second\n")
        (project / "b.txt").write_text("new\n")
        assert await refused(client, "restore", checkpoint=name) == "usage"
        assert await refused(client, "restore", checkpoint=name, plan="f" * 20) == "would_lose_work"
        plan = await call(client, "plan_restore", checkpoint=name)
        assert (plan["restored"], plan["deleted"]) == (["a.txt"], ["b.txt"])
        assert plan == await call(client, "plan_restore", checkpoint=name)
        # A plan is for what it was made for, and for the files as they were then.
        other = await refused(
            client, "restore", checkpoint=name, plan=plan["plan"], paths=["a.txt"]
        )
        assert other == "would_lose_work"
        (project / "a.txt").write_text("third\n")
        stale = await refused(client, "restore", checkpoint=name, plan=plan["plan"])
        assert stale == "would_lose_work"
        assert (project / "a.txt").read_text() == "third\n"
        plan = await call(client, "plan_restore", checkpoint=name)
        done = await call(client, "restore", checkpoint=name, plan=plan["plan"])
        assert (done["restored"], done["deleted"]) == (["a.txt"], ["b.txt"])
        assert (project / "a.txt").read_text() == "first\n" and not (project / "b.txt").exists()
        again = await refused(client, "restore", checkpoint=name, plan=plan["plan"])
        assert again == "would_lose_work"

    talk(project, conversation)
    with mulligan.open(project) as workspace:
        workspace.undo()
        assert (project / "a.txt").read_text() == "third\n"
        assert workspace.maintenance.verify().clean


def test_an_undo_says_first_what_it_would_do(project: Path) -> None:
    (project / "a.txt").write_text("first\n")

    async def conversation(client: Client) -> None:
        taken = await call(client, "take_checkpoint")
        (project / "a.txt").write_text("second\n")
        plan = await call(client, "plan_restore", checkpoint=taken["checkpoint"])
        await call(client, "restore", checkpoint=taken["checkpoint"], plan=plan["plan"])
        would = await call(client, "undo")
        assert would["restored"] == ["a.txt"] and "Nothing was undone" in would["note"]
        assert (project / "a.txt").read_text() == "first\n"
        done = await call(client, "undo", plan=would["plan"])
        assert done["restored"] == ["a.txt"] and done["operation"]
        assert (project / "a.txt").read_text() == "second\n"
        assert await refused(client, "undo", plan=would["plan"]) in (
            "would_lose_work", "nothing_to_undo"
        )  # fmt: skip

    talk(project, conversation)


def test_changes_and_old_versions_are_read(project: Path) -> None:
    (project / "a.txt").write_text("first\n")
    (project / "raw.bin").write_bytes(bytes(range(256)))

    async def conversation(client: Client) -> None:
        assert await refused(client, "status") == "not_found"
        assert await refused(client, "list_sessions") == "not_found"
        await call(client, "take_checkpoint", message="one")
        (project / "a.txt").write_text("second\n")
        (project / "raw.bin").unlink()
        status = await call(client, "status")
        rows = {row["path"]: row["status"] for row in status["changed_files"]}
        assert rows == {"a.txt": "modified", "raw.bin": "deleted"}
        patch = await client.call_tool("diff", {"paths": ["a.txt"]})
        assert "-first\n+second\n" in patch.content[0].text
        old = await client.call_tool("read_file_at", {"checkpoint": "@", "path": "a.txt"})
        assert old.content[0].text == "first\n"
        assert old.structured_content["truncated"] is False
        raw = await call(client, "read_file_at", checkpoint="@", path="raw.bin")
        assert base64.b64decode(raw["base64"]) == bytes(range(256))
        part = await call(client, "read_file_at", checkpoint="@", path="a.txt", offset=2, limit=2)
        assert (part["size"], part["truncated"]) == (6, True)
        for number in range(3):
            await call(client, "take_checkpoint", message=str(number))
        page = await call(client, "list_checkpoints", limit=2)
        assert [each["message"] for each in page["checkpoints"]] == ["2", "1"]
        assert page["has_more"] is True
        rest = await call(client, "list_checkpoints", before=page["checkpoints"][-1]["checkpoint"])
        assert [each["message"] for each in rest["checkpoints"]] == ["0", "one"]
        assert await refused(client, "read_file_at", checkpoint="@", path="../../etc/passwd") == (
            "usage"
        )
        assert await refused(client, "read_file_at", checkpoint="zzz", path="a.txt") == "not_found"

    talk(project, conversation)


def test_sessions_are_listed_searched_reviewed_and_read(project: Path) -> None:
    (project / "a.txt").write_text("first\n")
    with mulligan.open(project) as workspace:
        session = workspace.sessions.create(agent="claude-code", title="The login").id
        workspace.sessions.begin_turn(session, "fix the login")
        workspace.sessions.append(session, NewEntry("assistant_output", "The token had expired."))
        (project / "a.txt").write_text("fixed\n")
        step = workspace.sessions.end_turn(session)

    async def conversation(client: Client) -> None:
        listed = await call(client, "list_sessions")
        assert listed["sessions"][0]["session"] == session
        found = await call(client, "search_sessions", query="expired token")
        assert "<mark>expired</mark>" in found["hits"][0]["snippet"]
        pending = await call(client, "pending_changes")
        assert [file["path"] for file in pending["files"]] == ["a.txt"]
        resources = {each.uri: each for each in (await client.list_resources()).resources}
        assert resources[f"mulligan://session/{session}"].title == "The login"
        read = await client.read_resource(f"mulligan://session/{session}")
        assert read.contents[0].mime_type == "text/markdown"
        assert "The token had expired." in read.contents[0].text
        taken = await client.read_resource(f"mulligan://checkpoint/{step.checkpoint}")
        assert "a.txt" in taken.contents[0].text
        templates = (await client.list_resource_templates()).resource_templates
        assert {each.uri_template for each in templates} == {
            "mulligan://session/{id}", "mulligan://checkpoint/{id}"
        }  # fmt: skip
        for uri in ("mulligan://session/nobody", "mulligan://nonsense/x", "file:///etc/passwd"):
            with pytest.raises(MCPError) as problem:
                await client.read_resource(uri)
            assert problem.value.code in (-32002, -32602)
        with pytest.raises(MCPError):
            await client.call_tool("no_such_tool", {})

    talk(project, conversation)


def test_a_directory_that_is_no_project_is_refused_and_the_server_goes_on(
    mulligan_home: Path,
) -> None:
    async def conversation(client: Client) -> None:
        assert await refused(client, "take_checkpoint") == "refused_root"
        assert (await client.list_resources()).resources == []

    talk(Path(os.environ["HOME"]), conversation)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
NAMES = sorted({name for tool in TOOLS.values() for name in tool.params.__struct_encode_fields__})


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(TOOLS)),
    arguments=st.dictionaries(st.sampled_from(NAMES), JSON | st.sampled_from(["@", "..", "a.txt"])),
)
def test_any_arguments_get_an_answer_or_an_error_of_the_tool(
    project: Path, name: str, arguments: dict[str, Any]
) -> None:
    (project / "a.txt").write_text("first\n")

    async def main() -> None:
        place = LazyWorkspace(lambda create: mulligan.open(project))
        try:
            async with Client(make_server(place)) as client:
                done = await client.call_tool(name, arguments)
        finally:
            place.close()
        if done.is_error:
            assert done.structured_content["error"]["code"] != "failed", (name, arguments, done)

    anyio.run(main)
