"""A whole afternoon: agents work, their user decides, regrets, goes back and finds things again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browsing import Served
from playwright.sync_api import expect

from mulligan.cli.demo.script import Agent

OLD = 'task = {"number": len(tasks) + 1, "title": title, "done": False}'
NEW = 'task = {"number": len(tasks) + 1, "title": title.strip(), "done": False}'
GREETING = 'print("usage: kettle add TITLE | list | done NUMBER")'
SHORTER = 'print("usage: kettle COMMAND")'


def test_three_turns_are_reviewed_rewound_branched_and_found(
    fresh: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(fresh, f"/p/{fresh.project}/review")
    expect(tab.get_by_text("Nothing to review")).to_be_visible()
    place = tab.locator(".stepper-place")
    store, main = fresh.root / "kettle/store.py", fresh.root / "kettle/__main__.py"

    with fresh.workspace() as workspace:
        agent = Agent(workspace, "claude-code", "a-model", "Tidy the store")

        # Three turns; each appears while the page is open. The user edits a file in between.
        agent.asked("Strip titles, and shorten the usage.")
        agent.edits("kettle/store.py", (OLD, NEW))
        agent.edits("kettle/__main__.py", (GREETING, SHORTER))
        agent.says("Titles are stripped of marzipan.")
        agent.ends()
        expect(place).to_have_text("Change 1 of 2")
        notes = fresh.root / "notes/release.txt"
        notes.write_text(notes.read_text() + "- mine\n")
        agent.asked("Write a changelog.")
        agent.writes("CHANGES.md", "# Changes\n\n- titles are stripped\n")
        agent.ends()
        expect(place).to_have_text("Change 1 of 3")
        agent.asked("Drop the ideas.")
        agent.runs("rm notes/ideas.txt")
        agent.ends()
        expect(place).to_have_text("Change 1 of 4")
        # What the user wrote himself is not for him to review.
        expect(tab.get_by_text("release.txt")).to_have_count(0)

        # Two are kept, one is undone, and that is taken back.
        first = tab.locator(".hunk-head.is-active")
        expect(first).to_be_visible()
        tab.keyboard.press("y")
        expect(place).to_have_text("Change 1 of 3")
        tab.keyboard.press("y")
        expect(place).to_have_text("Change 1 of 2")
        expect(tab.get_by_text("Kept a change in kettle/__main__.py.")).to_be_visible()
        tab.keyboard.press("n")
        expect(place).to_have_text("Change 1 of 1")
        expect(tab.get_by_text("Undid a change in kettle/store.py.")).to_be_visible()
        assert OLD in store.read_text()
        tab.keyboard.press("u")
        expect(place).to_have_text("Change 1 of 2")
        assert NEW in store.read_text()
        assert SHORTER in main.read_text()
        assert workspace.review.stats()[agent.session].files == 2

        # Back to before the second message: what it would do is shown, and can be undone.
        tab.goto(f"{fresh.url}/p/{fresh.project}/session?id={agent.session}")
        asked = tab.locator(".entry-user_input").filter(has_text="Write a changelog.")
        asked.get_by_role("button", name="Return here").click()
        dialog = tab.get_by_role("dialog")
        expect(dialog.locator(".plan-part").filter(has_text="Delete")).to_contain_text("CHANGES.md")
        expect(dialog.locator(".plan-part").filter(has_text="Write")).to_contain_text("ideas.txt")
        dialog.get_by_role("button", name="Return with files").click()
        expect(
            tab.get_by_text("The conversation and the files are back at this point.")
        ).to_be_visible()
        assert not (fresh.root / "CHANGES.md").exists()
        assert (fresh.root / "notes/ideas.txt").exists()
        assert "- mine\n" in notes.read_text()
        expect(tab.get_by_text("The session is back before this message.")).to_be_visible()
        tab.get_by_role("button", name="Undo", exact=True).click()
        expect(tab.get_by_text("The return is undone.")).to_be_visible()
        assert (fresh.root / "CHANGES.md").exists()
        assert not (fresh.root / "notes/ideas.txt").exists()

        # Once more, without the files; and on from there, on a branch.
        asked = tab.locator(".entry-user_input").filter(has_text="Write a changelog.")
        asked.get_by_role("button", name="Return here").click()
        dialog.get_by_label("Only the conversation").check()
        dialog.get_by_role("button", name="Return without files").click()
        expect(tab.get_by_text("No file was changed")).to_be_visible()
        assert (fresh.root / "CHANGES.md").exists()
        agent.asked("No changelog. Say goodbye instead.")
        agent.says("Goodbye, and thanks for all the fish.")
        agent.ends()
        expect(tab.locator(".tree-node")).to_have_count(4)
        expect(tab.locator(".tree-node.is-active")).to_have_count(2)
        expect(tab.get_by_text("thanks for all the fish")).to_be_visible()

        # What was said long ago is found, and the hit leads back to it.
        tab.keyboard.press("/")
        tab.get_by_label("Search everything").fill("marzipan")
        expect(tab.locator(".hit")).to_have_count(1)
        tab.keyboard.press("Enter")
        expect(tab.locator(".entry.is-target")).to_contain_text("marzipan")
        assert workspace.maintenance.verify().clean


def test_approving_and_resetting_a_session(served: Served, open_tab: Callable[..., Any]) -> None:
    session = served.session("Due dates for tasks")
    tab = open_tab(served, f"/p/{served.project}/session?id={session}")
    expect(tab.get_by_text("not approved")).to_be_visible()
    tab.get_by_role("button", name="Reset…").click()
    dialog = tab.get_by_role("dialog")
    expect(dialog.locator(".plan-part").first).to_be_visible()
    dialog.get_by_role("button", name="Reset the files").click()
    expect(tab.get_by_text("Reset: the files are back at the last approved state.")).to_be_visible()
    assert not (served.root / "kettle/dates.py").exists()
    expect(tab.get_by_role("button", name="Approve")).to_be_hidden()
    tab.get_by_role("button", name="Undo", exact=True).click()
    expect(tab.get_by_role("button", name="Approve")).to_be_visible()
    assert (served.root / "kettle/dates.py").exists()
    tab.get_by_role("button", name="Approve").click()
    expect(tab.get_by_text("not approved")).to_be_hidden()
    assert served.pending() == 0


def test_a_checkpoint_is_restored_in_part_with_a_preview_and_undone(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/checkpoints?part=files")
    first = tab.locator(".point").last
    first.click()
    tab.get_by_label("Choose kettle/store.py").check()
    tab.get_by_role("button", name="Restore 1 file…").click()
    dialog = tab.get_by_role("dialog")
    before = (served.root / "kettle/store.py").read_bytes()
    expect(dialog.locator(".plan-part")).to_contain_text("kettle/store.py")
    assert (served.root / "kettle/store.py").read_bytes() == before
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(tab.get_by_text("Restored: 1 file changed.")).to_be_visible()
    assert b"due" not in (served.root / "kettle/store.py").read_bytes()
    tab.get_by_role("button", name="Undo", exact=True).click()
    expect(tab.get_by_text("The restore is undone.")).to_be_visible()
    assert (served.root / "kettle/store.py").read_bytes() == before


def test_a_restore_is_undone_with_a_key_right_after(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/checkpoints")
    tab.locator(".point").last.click()
    tab.get_by_role("button", name="Restore…").click()
    tab.get_by_role("button", name="Restore", exact=True).click()
    expect(tab.get_by_text("Restored:")).to_be_visible()
    assert not (served.root / "kettle/dates.py").exists()
    expect(tab.get_by_role("dialog")).to_have_count(0)
    tab.keyboard.press("u")
    expect(tab.get_by_text("The restore is undone.")).to_be_visible()
    assert (served.root / "kettle/dates.py").exists()
    with served.workspace() as workspace:
        assert workspace.maintenance.verify().clean


def test_keeping_and_undoing_everything_asks_first(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab(served, f"/p/{served.project}/review")
    tab.get_by_role("button", name="Undo all").click()
    tab.get_by_role("button", name="Cancel").click()
    assert served.pending() == 15
    tab.get_by_role("button", name="Undo all").click()
    tab.get_by_role("button", name="Undo 15 changes").click()
    expect(tab.get_by_text("Nothing to review")).to_be_visible()
    expect(tab.get_by_text("Undid 15 changes in 9 files.")).to_be_visible()
    assert not (served.root / "kettle/dates.py").exists()
    tab.get_by_role("button", name="Take back").click()
    expect(tab.locator(".stepper-place")).to_have_text("Change 1 of 15")
    assert (served.root / "kettle/dates.py").exists()


def test_a_session_is_renamed_and_deleted(served: Served, open_tab: Callable[..., Any]) -> None:
    session = served.session("Thoughts on syncing")
    tab = open_tab(served, f"/p/{served.project}/session?id={session}")
    tab.get_by_role("button", name="Rename").click()
    tab.get_by_label("Title").fill("Syncing, one day")
    tab.get_by_label("Title").press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_have_text("Syncing, one day")
    tab.get_by_role("button", name="Delete…").click()
    tab.get_by_role("button", name="Delete the session").click()
    expect(tab.locator(".session-row")).to_have_count(5)
    expect(tab.get_by_text("Syncing, one day")).to_have_count(0)


def test_what_an_agent_may_do_without_asking_is_set_for_a_session(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    session = served.session("Due dates for tasks")
    tab = open_tab(served, f"/p/{served.project}/session?id={session}")
    tab.get_by_role("button", name="Approvals…").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Run commands").check()
    dialog.get_by_label("Pattern", exact=True).fill("**/*.md")
    dialog.get_by_role("button", name="Add").click()
    dialog.get_by_label("Pattern", exact=True).fill("**/.env*")
    dialog.get_by_role("button", name="Add").click()
    first = dialog.locator(".patterns li").first
    first.get_by_role("button", name="Do not ask").click()
    expect(first.get_by_role("button", name="Do not ask")).to_have_attribute("aria-pressed", "true")
    dialog.get_by_role("button", name="Done").click()
    found = served.get(f"/projects/{served.project}/sessions/{session}")
    assert found["auto_approve_commands"] is True
    assert found["auto_approve_sensitive_edits"] is False
    assert list(found["sensitive_file_patterns"].items()) == [
        ("**/*.md", True), ("**/.env*", False),
    ]  # fmt: skip
