"""Exports: nothing is lost in JSONL, nothing breaks out of Markdown or HTML, git agrees."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from git_command import git
from mulligan import Workspace
from mulligan.core.entries import TYPES, NewEntry
from mulligan.core.times import nanoseconds
from mulligan.errors import Corrupt, NotFound, UsageError
from mulligan.exporters import html, markdown
from mulligan.exporters.records import Branch, SessionContent
from mulligan.importers.mulligan_jsonl import read
from mulligan.importers.records import Label, Leaf, Problem, Session, SessionSettings, Source
from mulligan.workspace.results.sessions import Entry
from mulligan.workspace.results.sessions import Session as SessionResult
from mulligan.workspace.transfer.import_logs import import_logs

HOSTILE = (
    "</pre></details></article><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\"'><svg onload=alert(3)> &lt;b&gt; javascript:alert(4) ```` \x1b[2J\x00\u202e"
)

ALLOWED_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "article", "h1", "h2"),
    *("p", "a", "span", "code", "pre", "b", "details", "summary"),
}
ALLOWED_ATTRIBUTES = {
    "", "class", "id", "href", "lang", "charset", "http-equiv", "content", "name",
}  # fmt: skip
SESSION = SessionResult(
    "s", "agent", "title", None, None, "/project", None, "stopped", None, "", False, False, {},
    None, None, "2026-11-16T03:00:00.000Z", "2026-11-16T03:00:00.000Z",
)  # fmt: skip


@pytest.fixture
def workspace(project: Path) -> Iterator[Workspace]:
    with mulligan.open(project) as opened:
        yield opened


def call(name: str, id: str, **data: Any) -> NewEntry:
    return NewEntry("tool_call", "", {"name": name, "call": id, "status": "success", **data})


def turn(workspace: Workspace, session: str, message: str, files: dict[str, str]) -> str | None:
    """A turn that writes these files; gives the entry of its end."""
    workspace.sessions.begin_turn(session, message)
    for name, content in files.items():
        path = Path(workspace.root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return workspace.sessions.end_turn(session).entry


def rich(workspace: Workspace) -> str:
    """A session with everything that one can hold."""
    session = workspace.sessions.create(agent="claude-code", title="All of it", model="m1").id
    workspace.sessions.change(
        session, memory="remember", auto_approve_commands=True,
        sensitive_file_patterns={".env": False},
    )  # fmt: skip
    first = turn(workspace, session, "Begin", {"a.txt": "1\n"})
    assert first is not None
    workspace.sessions.label(first, " good ", session)
    workspace.sessions.append(
        session,
        NewEntry("assistant_output", "Thinking…", {"kind": "reasoning"}, model="m2"),
        call("Bash", "c1", input={"command": "ls"}, output="a.txt\n", duration=12.5),
        NewEntry("tool_result", "a.txt\n", {"call": "c1"}),
        NewEntry("file_edit", "", {"path": "caf\udce9", "operation": "modify", "diff": "@@\n"}),
        NewEntry("assistant_output", "Sub-agent", off_path=True, plan_item="p1"),
        NewEntry("ui_event", "", {"number": 0.1, "list": [None, True, {"deep": ["ü", "\u2028"]}]}),
    )
    turn(workspace, session, "One way ✓ with 漢字 and\r\nlines\t\u2028", {"a.txt": "2\n"})
    workspace.sessions.goto(first, session=session, summarize=True)
    turn(workspace, session, "Another", {"b.txt": "3\n"})
    workspace.sessions.compact(session, summary="So far")
    turn(workspace, session, "And on", {"c.txt": "4\n"})
    workspace.sessions.goto(first, session=session, skip_files=True)
    return session


def exported(workspace: Workspace, session: str, format: str) -> str:
    return "".join(workspace.sessions.export(session, format))


def read_back(folder: Path, content: str) -> list[Any]:
    path = folder / "session.jsonl"
    path.write_bytes(content.encode())
    return list(read(Source(str(path))))


def kept(workspace: Workspace, records: list[Any], session: str) -> None:
    """Keeps what was read in a session, as an import does."""
    workspace.sessions.append(session, *(each for each in records if isinstance(each, NewEntry)))
    for each in records:
        if isinstance(each, Label):
            workspace.sessions.label(each.entry, each.label, session)
        elif isinstance(each, SessionSettings):
            workspace.sessions.change(session, agent=each.agent, **each.values)
        elif isinstance(each, Leaf) and each.id is not None:
            workspace.sessions.goto(each.id, session=session, skip_files=True)


def test_jsonl_can_be_read_back_without_loss(workspace: Workspace, tmp_path: Path) -> None:
    session = rich(workspace)
    content = exported(workspace, session, "jsonl")
    assert content.isascii()
    records = read_back(tmp_path, content)
    assert not [each for each in records if isinstance(each, Problem)]
    found = records[0]
    assert isinstance(found, Session) and found.title == "All of it" and found.model == "m1"
    copy = workspace.sessions.create(
        title=found.title, model=found.model, directory=found.directory
    ).id
    kept(workspace, records, copy)
    head, *lines = map(json.loads, content.splitlines())
    again, *copied = map(json.loads, exported(workspace, copy, "jsonl").splitlines())
    assert copied == lines
    own = {"session", "status", "created_at", "updated_at"}
    # What may be done without asking is the user's to say, not a file's.
    own |= {"auto_approve_commands", "auto_approve_sensitive_edits"}
    assert {name: value for name, value in again.items() if name not in own} == {
        name: value for name, value in head.items() if name not in own
    }
    assert head["agent"] == "claude-code" and head["memory"] == "remember"
    assert {line["type"] for line in lines} > {"unrevert_point", "branch_summary", "compact_marker"}


def test_jsonl_can_be_imported_into_another_home_without_loss(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    session = rich(workspace)
    file = tmp_path / "session.jsonl"
    file.write_text(exported(workspace, session, "jsonl"))
    home = str(tmp_path / "home")
    done = import_logs(home, "mulligan", paths=(str(file),))
    assert done.problems == () and done.sessions == 1
    with mulligan.open(project, home=home) as other:
        head, *copied = map(json.loads, exported(other, session, "jsonl").splitlines())
        assert other.maintenance.verify().clean
    original, *lines = map(json.loads, file.read_text().splitlines())
    # The checkpoints are in the home that they were taken in.
    assert copied == [line | {"checkpoint": None} for line in lines]
    own = {"status": "stopped", "source": str(file)}
    # What may be done without asking is the user's to say, not a file's.
    own |= {"auto_approve_commands": False, "auto_approve_sensitive_edits": False}
    assert head == original | own
    again = import_logs(home, "mulligan", paths=(str(file),), again=True)
    assert again.entries == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"type": "user_input"}', "without an id"),
        ('{"type": "nonsense", "entry": "x"}', "type 'nonsense'"),
        ('{"type": "user_input", "entry": "x", "parent": "gone"}', "parent gone"),
        ('{"type": "user_input", "entry": "e1"}', "second entry e1"),
        ('{"type": "user_input", "ent', "Not JSON"),
        ("[]", "Not a JSON object"),
    ],
)
def test_an_invalid_line_is_reported_and_the_rest_is_read(
    tmp_path: Path, line: str, reason: str
) -> None:
    head = '{"type": "session", "format": "mulligan", "version": 1, "session": "s"}'
    good = '{"type": "user_input", "entry": "%s", "content": "hello"}'
    records = read_back(tmp_path, "\n".join([head, good % "e1", line, "", good % "e2"]) + "\n")
    (problem,) = (each for each in records if isinstance(each, Problem))
    assert problem.line == 3 and reason in problem.reason
    assert [each.id for each in records if isinstance(each, NewEntry)] == ["e1", "e2"]


@pytest.mark.parametrize(
    "head",
    [
        '{"type": "session", "version": 3, "id": "another agent"}',
        '{"type": "session", "format": "mulligan", "version": 2, "session": "s"}',
        '{"type": "session", "format": "mulligan", "version": 1}',
        "not json",
    ],
)
def test_a_file_that_is_not_an_export_is_refused(tmp_path: Path, head: str) -> None:
    (only,) = read_back(tmp_path, head + '\n{"type": "user_input", "entry": "x"}\n')
    assert isinstance(only, Problem) and only.line == 1


def hostile(workspace: Workspace) -> str:
    session = workspace.sessions.create(agent=HOSTILE, title=HOSTILE, model=HOSTILE).id
    entry = turn(workspace, session, HOSTILE, {"<img src=x>": HOSTILE.replace("\0", "") + "\n"})
    assert entry is not None
    workspace.sessions.label(entry, HOSTILE, session)
    workspace.sessions.append(
        session,
        NewEntry("assistant_output", f"{HOSTILE}\n```html\n{HOSTILE}\n"),
        NewEntry("assistant_output", HOSTILE, {"kind": "reasoning"}),
        call(HOSTILE, "c1", input={HOSTILE: HOSTILE}, output=HOSTILE),
        call("List", "c2", input=[HOSTILE, {"a": 1}]),
        NewEntry("tool_result", HOSTILE, {"call": "nobody", "name": HOSTILE}),
        NewEntry("file_edit", "", {"path": HOSTILE, "operation": HOSTILE, "diff": f"+{HOSTILE}"}),
        NewEntry("file_edit", "", {"path": 7, "operation": None, "additions": "many"}),
        NewEntry("step_snapshot", "", {"diff": {HOSTILE: [HOSTILE, 1]}, "baselineTreeHash": "zz"}),
        NewEntry("step_snapshot", "", {"diff": "odd", "snapshotTreeHash": 7}),
        NewEntry("compact_marker", HOSTILE, {"compactedCount": HOSTILE}),
        NewEntry("branch_summary", HOSTILE),
        NewEntry("system_message", HOSTILE),
    )
    return session


class Tags(HTMLParser):
    """Every tag with its attributes, and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: set[tuple[str, str]] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _value in attrs} | {(tag, "")}
        for name, value in attrs:
            assert name != "href" or str(value).startswith("#e")
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_one_page_that_hostile_content_cannot_break_out_of(workspace: Workspace) -> None:
    content = exported(workspace, hostile(workspace), "html")
    tags = Tags()
    tags.feed(content)
    tags.close()
    assert tags.open == []
    assert {tag for tag, _attribute in tags.found} == ALLOWED_TAGS
    assert {attribute for _tag, attribute in tags.found} <= ALLOWED_ATTRIBUTES
    assert "<script>alert(1)</script>" in tags.text
    assert not set(content) & {"\0", "\x1b", "\u202e", "\r"}
    assert "default-src 'none'" in content and "prefers-color-scheme: dark" in content
    assert "http://" not in content and "https://" not in content


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_no_control_character_is_in_a_document(workspace: Workspace, format: str) -> None:
    controls = "".join(map(chr, [*range(9), *range(11, 32), *range(0x7F, 0xA0)]))
    session = workspace.sessions.create(title=f"t{controls}", agent=f"a{controls}").id
    turn(workspace, session, f"Say {controls} it", {f"f{controls[1:]}": controls})
    content = exported(workspace, session, format)
    assert "Say" in content and not set(content) & set(controls)


def test_html_folds_calls_and_colours_diffs(workspace: Workspace) -> None:
    content = exported(workspace, rich(workspace), "html")
    assert "<b>Bash</b> <code>ls</code>" in content and "12 ms" in content
    assert '<span class="new">+2</span>' in content and '<span class="old">-1</span>' in content
    assert "caf\\xe9" in content
    assert content.count('class="branch"') >= 2


def test_markdown_keeps_hostile_content_inside_its_fences(workspace: Workspace) -> None:
    content = exported(workspace, hostile(workspace), "markdown")
    assert "\x1b" not in content and "\0" not in content
    fence = ""
    for line in content.splitlines():
        inner = line.removeprefix("> ")
        if not fence and inner.startswith("```"):
            fence = inner[: len(inner) - len(inner.lstrip("`"))]
        elif fence and inner.strip() == fence:
            fence = ""
    assert fence == ""
    head = content.splitlines()[0]
    assert head.startswith("# ") and "<script>" not in head.replace("\\<", "")


def test_markdown_shows_the_conversation_in_order(workspace: Workspace) -> None:
    session = workspace.sessions.create(agent="me", title="Sums").id
    workspace.sessions.begin_turn(session, "Add *one*")
    workspace.sessions.append(
        session,
        NewEntry("assistant_output", "Here:\n```python\nx = 1"),
        call("Bash", "c1", input={"command": "make `x`"}, output="ok\n" * 100, duration=61_000),
    )
    (Path(workspace.root) / "sum.py").write_text("x = 1\n")
    workspace.sessions.end_turn(session)
    content = exported(workspace, session, "markdown")
    order = [
        "# Sums\n", "## You\n", "> Add *one*\n", "### Assistant\n", "```python\nx = 1\n```\n",
        "- **Bash** `` make `x` `` — success, 1 min 1 s", "… 40 more lines", "**The turn changed",
        "- created `sum.py` +1 −0", "```diff\n--- /dev/null\n+++ b/sum.py\n", "+x = 1\n",
    ]  # fmt: skip
    places = [content.index(each) for each in order]
    assert places == sorted(places)


def test_an_edit_that_was_shown_is_not_shown_again_at_the_end_of_its_turn(
    workspace: Workspace,
) -> None:
    session = workspace.sessions.create().id
    workspace.sessions.begin_turn(session, "Two files, one by a command")
    edit = workspace.sessions.start_edit(session, ["by_tool"])
    (Path(workspace.root) / "by_tool").write_text("tool\n")
    workspace.sessions.finalize_edit(edit)
    (Path(workspace.root) / "by_command").write_text("command\n")
    workspace.sessions.end_turn(session)
    content = exported(workspace, session, "markdown")
    assert content.count("\n+tool\n") == 1 and content.count("\n+command\n") == 1


def test_a_session_whose_checkpoints_were_forgotten_can_still_be_read(workspace: Workspace) -> None:
    session = workspace.sessions.create().id
    turn(workspace, session, "Once", {"a": "1\n"})
    workspace.review.approve(session)
    for number in range(3):
        (Path(workspace.root) / "a").write_text(f"{number + 2}\n")
        workspace.checkpoint()
    workspace.maintenance.forget(keep_last=1)
    workspace.maintenance.gc()
    assert "created `a`" in exported(workspace, session, "markdown")


def test_unknown_formats_and_sessions_are_refused(workspace: Workspace) -> None:
    session = workspace.sessions.create().id
    with pytest.raises(UsageError):
        workspace.sessions.export(session, "pdf")
    with pytest.raises(NotFound):
        workspace.sessions.export("nope", "jsonl")


def held(repository: Path, commit: str) -> dict[bytes, tuple[bytes, bytes]]:
    """By path the mode and the bytes of everything in a commit."""
    found = {}
    for line in git(repository, "ls-tree", "-r", "-z", commit).split(b"\0")[:-1]:
        facts, _tab, path = line.partition(b"\t")
        mode, _kind, blob = facts.split()
        found[path] = (mode, git(repository, "cat-file", "blob", blob.decode()))
    return found


def expected(workspace: Workspace, checkpoint: str) -> dict[bytes, tuple[bytes, bytes]]:
    found = {}
    for each in workspace.entries(checkpoint):
        if each.kind == "directory" or each.guarded:
            continue
        mode = b"100755" if int(each.mode, 8) & 0o100 else b"100644"
        content = workspace.read(checkpoint, each.path)
        kind = b"120000" if each.kind == "link" else mode
        found[os.fsencode(each.path)] = (kind, content)
    return found


def odd_states(root: Path) -> Iterator[str]:
    """Changes one after the other that a tree of files can go through."""
    odd = os.fsencode(root) + b'/\xff "quoted" \\ \n\ttab'
    (root / "plain").write_text("1\n")
    with open(odd, "wb") as file:
        file.write(bytes(range(256)))
    (root / "link").symlink_to(os.fsdecode(b"nowhere/\xfe"))
    (root / "empty").write_bytes(b"")
    yield "odd names"
    (root / "plain").chmod(0o755)
    (root / "link").unlink()
    (root / "link").write_text("a file now\n")
    os.rename(odd, os.fsencode(root / "renamed"))
    yield "modes and kinds"
    (root / "plain").unlink()
    (root / "plain").mkdir()
    (root / "plain/inside").write_text("deeper\n")
    (root / "hollow/deep").mkdir(parents=True)
    yield "a folder in place of a file"
    (root / "plain/inside").unlink()
    (root / "plain").rmdir()
    (root / "plain").write_text("a file again\n")
    yield "a file in place of a folder"


def test_git_holds_exactly_what_the_checkpoints_hold(
    workspace: Workspace, project: Path, tmp_path: Path
) -> None:
    session = workspace.sessions.create(agent="me").id
    states = odd_states(project)
    for message in ("one", "two\x1b", "three", "four"):
        workspace.sessions.begin_turn(session, message)
        next(states)
        workspace.sessions.end_turn(session)
    done = workspace.sessions.export_git(session, str(tmp_path / "new"), "work")
    assert done.created and done.empty_folders == ("hollow",) and done.refused == ()
    log = git(tmp_path / "new", "log", "--reverse", "--format=%H %an %at %ct %s").decode()
    checkpoints = [each for each in workspace.log()[::-1] if each.session == session]
    assert len(log.splitlines()) == len(checkpoints) == done.commits == 9
    for line, checkpoint in zip(log.splitlines(), checkpoints, strict=True):
        commit, author, authored, committed, subject = line.split(" ", 4)
        assert (author, subject) == ("mulligan", checkpoint.message.replace("\x1b", "\ufffd"))
        moment = nanoseconds(checkpoint.created_at) // 1_000_000_000
        assert int(authored) == int(committed) == moment
        assert held(tmp_path / "new", commit) == expected(workspace, checkpoint.id)
        assert checkpoint.id.encode() in git(tmp_path / "new", "log", "-1", "--format=%B", commit)
    git(tmp_path / "new", "fsck", "--strict")


def test_git_export_leaves_work_tree_index_and_current_branch_alone(
    workspace: Workspace, tmp_path: Path
) -> None:
    repository = tmp_path / "theirs"
    git(tmp_path, "init", "--quiet", "-b", "main", "theirs")
    (repository / "file").write_text("theirs\n")
    git(repository, "add", "file")
    git(repository, "commit", "--quiet", "-m", "theirs")
    (repository / "staged").write_text("staged\n")
    git(repository, "add", "staged")
    (repository / "file").write_text("being edited\n")
    hook = repository / ".git/hooks/reference-transaction"
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    before = [
        git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD"),
        git(repository, "symbolic-ref", "HEAD"), (repository / ".git/index").read_bytes(),
    ]  # fmt: skip
    session = workspace.sessions.create().id
    turn(workspace, session, "One", {"a": "1\n"})
    done = workspace.sessions.export_git(session, str(repository))
    assert not done.created
    assert git(repository, "show", f"{done.branch}:a") == b"1\n"
    assert before == [
        git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD"),
        git(repository, "symbolic-ref", "HEAD"), (repository / ".git/index").read_bytes(),
    ]  # fmt: skip
    assert not list(repository.rglob("ran"))
    git(repository, "checkout", "--quiet", "-f", "-b", "mine/main")
    with pytest.raises(UsageError, match="checked out"):
        workspace.sessions.export_git(session, str(repository), "mine")


def test_a_session_that_went_on_is_added_to_its_branch_and_nothing_else_is_overwritten(
    workspace: Workspace, tmp_path: Path
) -> None:
    session = workspace.sessions.create().id
    turn(workspace, session, "One", {"a": "1\n"})
    first = workspace.sessions.export_git(session, str(tmp_path / "r"), "work")
    assert workspace.sessions.export_git(session, str(tmp_path / "r"), "work").head == first.head
    turn(workspace, session, "Two", {"a": "2\n"})
    second = workspace.sessions.export_git(session, str(tmp_path / "r"), "work")
    assert second.head != first.head and second.commits == first.commits + 2
    assert first.head.encode() in git(tmp_path / "r", "log", "--format=%H", second.branch)
    other = workspace.sessions.create().id
    turn(workspace, other, "Other", {"b": "1\n"})
    with pytest.raises(UsageError, match="another --prefix"):
        workspace.sessions.export_git(other, str(tmp_path / "r"), "work")
    assert git(tmp_path / "r", "rev-parse", second.branch).decode().strip() == second.head


def test_a_fork_has_the_commits_that_it_shares_with_its_origin(
    workspace: Workspace, tmp_path: Path
) -> None:
    session = workspace.sessions.create().id
    turn(workspace, session, "One", {"a": "1\n"})
    copy = workspace.sessions.fork(session).id
    turn(workspace, copy, "Two", {"a": "2\n"})
    done = workspace.sessions.export_git(copy, str(tmp_path / "r"))
    versions = git(tmp_path / "r", "log", "--reverse", "--format=%s", done.branch).decode()
    assert "One" in versions and "Two" in versions


@pytest.mark.parametrize("branch", ["", "-x", "a..b", "a b", "@{1}", "x.lock", "a\nb"])
def test_a_name_that_cannot_be_a_branch_is_refused(
    workspace: Workspace, tmp_path: Path, branch: str
) -> None:
    session = workspace.sessions.create().id
    if branch:
        with pytest.raises(UsageError):
            workspace.sessions.export_git(session, str(tmp_path / "r"), branch)
        assert not (tmp_path / "r").exists()
    else:
        assert workspace.sessions.export_git(session, str(tmp_path / "r"), branch).branch


def test_a_folder_with_other_things_in_it_is_not_made_a_repository(
    workspace: Workspace, tmp_path: Path
) -> None:
    session = workspace.sessions.create().id
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/file").write_text("mine")
    git(tmp_path, "init", "--quiet")
    for place in ("docs", "docs/file"):
        # A repository further up is not the one that was named.
        with pytest.raises(UsageError, match="neither a git repository nor empty"):
            workspace.sessions.export_git(session, str(tmp_path / place))
    assert os.listdir(tmp_path / "docs") == ["file"]


def test_git_export_writes_no_branch_if_an_object_cannot_be_read(
    workspace: Workspace, project: Path, tmp_path: Path, mulligan_home: Path
) -> None:
    session = workspace.sessions.create().id
    content = os.urandom(3000).hex()
    turn(workspace, session, "One", {"a": content})
    packs = list(mulligan_home.rglob("*.pack"))
    assert packs
    for pack in packs:
        pack.write_bytes(pack.read_bytes()[:40] + b"\0" * (pack.stat().st_size - 40))
    with mulligan.open(project) as fresh, pytest.raises(Corrupt):
        fresh.sessions.export_git(session, str(tmp_path / "r"), "work")
    assert git(tmp_path / "r", "for-each-ref") == b""


TEXT = st.text(
    st.sampled_from("<>&\"'`~#*_[]|\\-+@ \n\r\t\0\x1b\x85\u2028\u202e\udcff/abscriptpre="),
    max_size=40,
)
DATA = st.none() | st.dictionaries(
    st.sampled_from(
        ["name", "input", "output", "status", "call", "duration", "path", "operation", "diff",
         "additions", "compactedCount", "kind", "is_error", "old_path", "baselineTreeHash"]
    ),
    TEXT | st.integers() | st.floats() | st.none() | st.lists(TEXT, max_size=3)
    | st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=2), max_size=2),
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(TYPES), TEXT, DATA, TEXT), max_size=8))
def test_no_entry_breaks_a_page_or_a_document(
    drawn: list[tuple[str, str, dict[str, Any] | None, str]],
) -> None:
    entries = [
        Entry(f"e{number}", "s", number, None, type, "2026-11-16T03:00:00.000Z", content, data,
              None, None, None, False, False, label or None, 1)
        for number, (type, content, data, label) in enumerate(drawn)
    ]  # fmt: skip
    session: Any = SESSION._replace(title=drawn[0][1] if drawn else "")
    story = SessionContent(session, entries, [Branch(entries, True)], lambda entry: ())
    tags = Tags()
    tags.feed("".join(html.page(story)))
    tags.close()
    assert tags.open == []
    assert {tag for tag, _attribute in tags.found} <= ALLOWED_TAGS
    assert {attribute for _tag, attribute in tags.found} <= ALLOWED_ATTRIBUTES
    document = "".join(markdown.document(story))
    document.encode()
    assert not {each for each in document if each < " "} - {"\n", "\t"}
