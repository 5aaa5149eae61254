"""Settings: explained, checked, kept for the project; and nothing is forgotten unasked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from browsing import Served
from playwright.sync_api import expect


def settings(served: Served, open_tab: Callable[..., Any]) -> Any:
    tab = open_tab(served, f"/p/{served.project}/settings")
    expect(tab.locator(".setting").first).to_be_visible()
    return tab


def checkpoints(served: Served) -> int:
    return len(served.get(f"/projects/{served.project}/checkpoints?limit=200")["checkpoints"])


def test_a_setting_is_changed_checked_and_taken_back(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = settings(served, open_tab)
    row = tab.locator(".setting").filter(has_text="Largest file")
    field = row.get_by_role("textbox")
    expect(field).to_have_value("100 MB")
    field.fill("many")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.press("Enter")
    assert served.get(f"/projects/{served.project}/settings")["max_file_size"] == 100 << 20
    field.fill("1.5 GB")
    field.press("Enter")
    expect(row).to_contain_text("Set for this project.")
    assert served.get(f"/projects/{served.project}/settings")["max_file_size"] == 3 << 29
    row.get_by_role("button", name="Back to the default").click()
    expect(field).to_have_value("100 MB")
    tab.get_by_label("Guard small ignored files").uncheck()
    expect(tab.get_by_text("Saved for this project.").first).to_be_visible()
    assert served.get(f"/projects/{served.project}/settings")["guard"] is False


def test_what_the_project_itself_says_cannot_be_set_here(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    (served.root / ".mulligan.toml").write_text("[review]\nkeep_on_commit = false\n")
    tab = settings(served, open_tab)
    row = tab.locator(".setting").filter(has_text="Keep changes on commit")
    expect(row).to_contain_text(".mulligan.toml")
    expect(row.get_by_role("switch")).to_be_disabled()


def test_what_the_project_weakens_is_shown_and_counts_only_once_accepted(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    (served.root / ".mulligan.toml").write_text("[checkpoints]\nguard = false\n")
    (served.root / ".mulliganignore").mkdir()
    tab = settings(served, open_tab)
    panel = tab.locator("#trust")
    expect(panel).to_contain_text("is not an ordinary file")
    expect(panel).to_contain_text("Not accepted. Weakens: guard")
    expect(tab.get_by_label("Guard small ignored files")).to_be_checked()
    panel.get_by_role("button", name="Accept", exact=True).click()
    expect(panel).to_contain_text("Accepted. Weakens: guard")
    expect(tab.get_by_label("Guard small ignored files")).not_to_be_checked()
    panel.get_by_role("button", name="Revoke all").click()
    expect(tab.get_by_label("Guard small ignored files")).to_be_checked()


def test_rules_forget_nothing_until_they_are_asked_to(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    before = checkpoints(served)
    tab = settings(served, open_tab)
    forget = tab.get_by_role("button", name="Forget now…")
    expect(forget).to_be_disabled()
    row = tab.locator(".setting").filter(has_text="Keep the last")
    row.get_by_role("textbox").fill("2")
    row.get_by_role("textbox").press("Enter")
    expect(tab.get_by_text("Forgets all but the last 2 checkpoints.")).to_be_visible()
    assert checkpoints(served) == before

    forget.click()
    dialog = tab.get_by_role("dialog")
    expect(dialog).to_contain_text("would be forgotten")
    dialog.get_by_role("button", name="Cancel").click()
    assert checkpoints(served) == before

    forget.click()
    dialog.get_by_role("button", name="Forget").and_(dialog.locator(".danger:enabled")).click()
    expect(tab.locator(".toast").filter(has_text="Forgot")).to_be_visible()
    assert 0 < checkpoints(served) < before
    assert served.get(f"/projects/{served.project}/pending")["total"] > 0


def test_a_default_exclude_is_taken_back_in_and_the_own_rules_are_edited(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    (served.root / "node_modules").mkdir()
    (served.root / "node_modules/one.js").write_text("1\n")
    for name in ("one.log", "two.log", "three.pyc"):
        (served.root / name).write_text("1\n")
    with served.workspace() as workspace:
        workspace.checkpoint()
    file = served.root / ".mulliganignore"
    tab = settings(served, open_tab)
    group = tab.locator(".excludes li").filter(has_text="Installed JavaScript packages")
    expect(group).to_contain_text("1 file")
    expect(tab.get_by_role("button", name="*.log 2 files here")).to_be_visible()
    expect(tab.get_by_role("button", name="*.pyc 1 file here")).to_be_visible()
    chip = group.get_by_role("button", name="node_modules/")
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    assert file.read_text() == "!node_modules/\n"
    area = tab.get_by_label(".mulliganignore")
    expect(area).to_have_value("!node_modules/\n")
    area.fill("!node_modules/\nsecrets/\n")
    tab.get_by_role("button", name="Save").click()
    expect(tab.get_by_role("button", name="Save")).to_be_disabled()
    assert file.read_text() == "!node_modules/\nsecrets/\n"
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "false")
    assert file.read_text() == "secrets/\n"
    tab.get_by_role("button", name="Undo", exact=True).last.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    with served.workspace() as workspace:
        assert workspace.maintenance.verify().clean


def test_rules_that_somebody_else_changed_meanwhile_are_not_overwritten(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    file = served.root / ".mulliganignore"
    file.write_text("one/\n")
    tab = settings(served, open_tab)
    area = tab.get_by_label(".mulliganignore")
    expect(area).to_have_value("one/\n")
    area.fill("two/\n")
    file.write_text("theirs/\n")
    for _ in range(2):
        tab.get_by_role("button", name="Save").click()
        expect(tab.get_by_text("was changed meanwhile").last).to_be_visible()
    assert file.read_text() == "theirs/\n"
    expect(area).to_have_value("two/\n")
    tab.get_by_role("button", name="Cancel").click()
    expect(area).to_have_value("theirs/\n")


def test_the_store_says_what_takes_the_room_and_what_can_be_freed(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    tab = settings(served, open_tab)
    legend = tab.locator(".parts-legend")
    for part in ("Contents of files", "Sessions and log", "Search", "Indexes"):
        expect(legend).to_contain_text(part)
    expect(tab.locator(".parts-bar rect").first).to_be_visible()
    tab.get_by_role("button", name="How much?").click()
    expect(tab.get_by_text("could be freed")).to_be_visible()


def test_f_ya_1_all_sessions_are_cleared_when_asked_twice(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    def sessions() -> int:
        return len(served.get(f"/projects/{served.project}/sessions")["sessions"])

    before = sessions()
    assert before > 0
    tab = settings(served, open_tab)
    ask = tab.get_by_role("button", name="Delete all sessions…")
    ask.click()
    dialog = tab.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{before} session")
    dialog.locator(".danger:enabled").click()
    expect(dialog).to_contain_text("cannot be undone")
    dialog.get_by_role("button", name="Cancel").click()
    assert sessions() == before
    ask.click()
    dialog.locator(".danger:enabled").filter(has_text="Delete ").click()
    assert sessions() == before
    dialog.get_by_role("button", name="Delete for good").click()
    expect(tab.get_by_text(f"Deleted {before} session")).to_be_visible()
    assert sessions() == 0


def test_fast_typing_through_the_saved_text_loses_no_letter(
    served: Served, open_tab: Callable[..., Any]
) -> None:
    (served.root / ".mulliganignore").write_text("kept/\n")
    area = settings(served, open_tab).get_by_label(".mulliganignore")
    expect(area).to_have_value("kept/\n")
    area.evaluate(
        """async area => {
            for (const text of ["kept/", "kept/\\n", "kept/\\ns"]) {
                area.value = text;
                area.dispatchEvent(new Event("input", { bubbles: true }));
                await Promise.resolve();
            }
            await new Promise(done => setTimeout(done, 200));
        }"""
    )
    expect(area).to_have_value("kept/\ns")
