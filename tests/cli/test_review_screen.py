"""The full-screen review, on a real pseudo-terminal that an emulator reads: keys in, screen out."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from screen import Screen, running

import mulligan
from mulligan.cli.review import position
from mulligan.cli.review.colours import STYLES, highlight, language_of
from mulligan.cli.review.page import ScreenState, rows
from mulligan.cli.review.text import Span, clipped, marked, safe, width, width_of
from mulligan.workspace.results.review import PendingFile, PendingHunk, Review
from run import quick, write

BEFORE = "".join(f"line {number}\n" for number in range(1, 41))
CODE = 'import os\n\n\ndef add(a, b):\n    # the sum\n    return a + b\n\n\nNAME = "x"\n'
LEAVE = b"\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"


def changed(*numbers: int, text: str = BEFORE) -> str:
    for number in numbers:
        text = text.replace(f"line {number}\n", f"CHANGED {number}\n")
    return text


def ids(project: Path) -> list[str]:
    found = quick("pending", "--json", project=project).json
    return [hunk["hunk"] for file in found["files"] for hunk in file["hunks"]]


@pytest.fixture
def worked(project: Path) -> Path:
    """A project in which an agent changed three files; five changes are pending."""
    write(project, {"app.py": CODE, "notes.txt": BEFORE, "old.txt": "old\n"})
    quick("turn", "begin", "--new", "--agent", "robot", "make it better", project=project)
    write(
        project,
        {
            "app.py": CODE.replace("a + b", "a * b").replace('"x"', '"y"'),
            "notes.txt": changed(5, 30),
        },
    )
    (project / "old.txt").unlink()
    quick("turn", "end", "@", project=project)
    return project


@pytest.fixture
def screen(worked: Path) -> Iterator[Screen]:
    with running("review", cwd=worked) as screen:
        screen.until("Change 1 of 5")
        yield screen
        if screen.exit is None:
            screen.press("q")
            assert screen.wait() == 0
    quick("verify", project=worked)


def test_the_screen_says_where_the_reader_is_and_whose_work_it_is(
    screen: Screen, worked: Path
) -> None:
    top, *middle = screen.lines
    assert worked.name in top and "+4 −5" in top and "robot" in top and "make it better" in top
    assert middle[0].startswith("▸M app.py") and middle[0].endswith("+2 −2")
    assert [line[1] for line in middle[:3]] == ["M", "M", "D"]
    assert "app.py  line 6  +1 −1  turn 0" in screen.text
    assert " 6 −     return a + b" in screen.text
    assert " 6 +     return a * b" in screen.text
    assert " 5       # the sum" in screen.text
    assert 'NAME = "y"' in screen.text, "the file goes on below the change"
    assert "y keep" in screen.lines[-1] and "q quit" in screen.lines[-1]


def test_j_and_k_go_through_all_changes_and_around_the_end(screen: Screen) -> None:
    for change in (2, 3, 4, 5, 1):
        screen.press("j")
        screen.until(f"Change {change} of 5")
    screen.press("k")
    screen.until("Change 5 of 5")
    assert "▸D old.txt" in screen.text
    screen.press("\x1b[B")
    screen.until("Change 1 of 5")


def test_capital_j_and_k_go_from_file_to_file(screen: Screen) -> None:
    for path, change in (("notes.txt", 3), ("old.txt", 5), ("app.py", 1)):
        screen.press("J")
        screen.until(f"Change {change} of 5")
        assert re.search(rf"▸. {path}", screen.text)
    screen.press("K")
    screen.until("Change 5 of 5")


def test_y_keeps_a_change_and_goes_on_to_the_next(screen: Screen, worked: Path) -> None:
    first, second, *rest = ids(worked)
    before = (worked / "app.py").read_text()
    screen.press("y")
    screen.until("Change 1 of 4")
    assert "Kept the change in app.py. u takes it back." in screen.text
    assert "app.py  line 9" in screen.text
    assert (worked / "app.py").read_text() == before
    assert ids(worked) == [second, *rest] and first not in rest


def test_n_undoes_a_change_on_the_disk_and_u_takes_that_back(screen: Screen, worked: Path) -> None:
    pending, before = ids(worked), (worked / "notes.txt").read_text()
    screen.press("J")
    screen.until("Change 3 of 5")
    screen.press("n")
    screen.until("Change 3 of 4")
    assert (worked / "notes.txt").read_text() == changed(30)
    screen.press("u")
    screen.until("Change 3 of 5")
    assert "Taken back: Undid the change in notes.txt." in screen.text
    assert (worked / "notes.txt").read_text() == before
    assert ids(worked) == pending


def test_a_and_d_decide_on_a_whole_file_and_the_last_decision_leaves_nothing(
    screen: Screen, worked: Path
) -> None:
    screen.press("a")
    screen.until("Kept 2 changes in app.py")
    screen.press("d")
    screen.until("Undid 2 changes in notes.txt")
    screen.press("d")
    screen.until("Nothing is pending any more")
    assert "a * b" in (worked / "app.py").read_text()
    assert (worked / "notes.txt").read_text() == BEFORE
    assert (worked / "old.txt").read_text() == "old\n"
    screen.press("jyn/")
    for change in ("1 of 1", "1 of 3", "1 of 5"):
        screen.press("u")
        screen.until(f"Change {change}")
    screen.press("u")
    screen.until("Nothing was decided here yet")


def test_after_a_decision_on_the_last_change_of_a_file_the_next_file_follows(
    screen: Screen,
) -> None:
    screen.press("j")
    screen.until("Change 2 of 5")
    screen.press("y")
    screen.until("Kept")
    assert "Change 2 of 4" in screen.text and "▸M notes.txt" in screen.text


def test_lines_that_the_user_changed_are_not_undone_unless_forced(
    screen: Screen, worked: Path
) -> None:
    screen.press("J")
    screen.until("Change 3 of 5")
    write(worked, {"notes.txt": changed(5, 30).replace("CHANGED 5", "CHANGED 5, mine")})
    screen.until("you changed lines in here")
    assert "Change 3 of 5" in screen.text and "▸M!notes.txt" in screen.text
    screen.press("n")
    screen.until("Not undone: you changed lines in here. N undoes it with them.")
    screen.press("d")
    screen.until("Undid the change in notes.txt. Left alone: 1 change.")
    assert (worked / "notes.txt").read_text() == BEFORE.replace("line 5\n", "CHANGED 5, mine\n")
    screen.press("K" if "▸D old.txt" in screen.text else "J")
    screen.until("▸M!notes.txt")
    screen.press("d")
    screen.until("Left alone, because")
    screen.press("N")
    screen.until("Undid the change in notes.txt.")
    assert (worked / "notes.txt").read_text() == BEFORE


def test_the_screen_follows_what_others_do_and_keeps_the_readers_place(
    screen: Screen, worked: Path
) -> None:
    screen.press("J")
    screen.until("Change 3 of 5")
    quick("turn", "begin", "--new", "--agent", "other", "one more", project=worked)
    write(worked, {"aaa.txt": "new\n"})
    quick("turn", "end", "@", project=worked)
    screen.until("Change 4 of 6")
    assert "▸M notes.txt" in screen.text and "CHANGED 5" in screen.text
    quick("keep", "app.py", project=worked)
    screen.until("Change 2 of 4")
    assert "▸M notes.txt" in screen.text
    quick("keep", "notes.txt", project=worked)
    screen.until("▸D old.txt")


def test_a_decision_is_about_what_was_shown_and_nothing_else(screen: Screen, worked: Path) -> None:
    pending = ids(worked)
    os.kill(screen.pid, signal.SIGSTOP)
    quick("turn", "begin", "@", "again", project=worked)
    write(worked, {"app.py": (worked / "app.py").read_text().replace("a * b", "a / b")})
    quick("turn", "end", "@", project=worked)
    screen.press("y")
    os.kill(screen.pid, signal.SIGCONT)
    screen.until("It was changed since it was shown, so nothing was done.")
    assert "a / b" in screen.text
    assert len(ids(worked)) == 5 and ids(worked)[1:] == pending[1:]


def test_u_takes_back_no_more_than_what_was_decided_here(screen: Screen, worked: Path) -> None:
    screen.press("y")
    screen.until("Change 1 of 4")
    quick("turn", "begin", "@", "again", project=worked)
    write(worked, {"new.txt": "new\n"})
    quick("turn", "end", "@", project=worked)
    screen.press("u")
    screen.until("Something else was done since")
    assert (worked / "new.txt").exists()
    quick("undo", project=worked)
    screen.until("of 4")
    screen.press("u")
    screen.until("Change 1 of 5")


def test_search_finds_lines_and_paths_and_goes_on_with_tab_and_enter(screen: Screen) -> None:
    screen.press("/changed")
    screen.until("/changed")
    screen.press("\r")
    screen.until("'changed': 1 of 2")
    assert "Change 3 of 5" in screen.text
    screen.press("\t")
    screen.until("'changed': 2 of 2")
    screen.press("\r")
    screen.until("'changed': 1 of 2")
    screen.press("\x1b[Z")
    screen.until("'changed': 2 of 2")
    screen.press("/old.tx\x7fxt\r")
    screen.until("Change 5 of 5")
    screen.press("/nowhere\r")
    screen.until("'nowhere' is in no pending change.")
    screen.press("/zzz\x1b")
    screen.until("y keep")
    assert "Change 5 of 5" in screen.text


def test_what_is_pasted_decides_nothing_but_can_be_searched_for(
    screen: Screen, worked: Path
) -> None:
    pending = ids(worked)
    screen.press("\x1b[200~yes, and now undo: nNdaq\r\x1b[201~j")
    screen.until("Change 2 of 5")
    assert ids(worked) == pending
    screen.press("/\x1b[200~old.txt\x1b[201~\r")
    screen.until("Change 5 of 5")


def test_e_opens_the_editor_at_the_line_and_the_screen_comes_back(worked: Path) -> None:
    editor = worked.parent / "editor"
    editor.write_text('#!/bin/sh\necho "EDITING $1 $2"\necho "# mine" >> "$2"\n')
    editor.chmod(0o755)
    with running("review", cwd=worked, env={"VISUAL": "", "EDITOR": str(editor)}) as screen:
        screen.until("Change 1 of 5")
        screen.press("e")
        screen.until(lambda: (worked / "app.py").read_text().endswith("# mine\n"))
        screen.until("# mine")
        assert f"EDITING +6 {worked}/app.py".encode() in screen.written
        screen.press("j")
        screen.until("Change 2 of 5")
        screen.press("q")
        assert screen.wait() == 0
    assert len(ids(worked)) == 5, "what the user wrote is not pending"


def test_help_lists_the_keys_and_any_key_closes_it(screen: Screen) -> None:
    screen.press("?")
    screen.until("take back the last decision")
    assert "undo it though somebody changed lines in it" in screen.text
    screen.press("y")
    screen.until("▸M app.py")
    assert "Change 1 of 5" in screen.text


def test_the_screen_fits_itself_to_the_terminal(screen: Screen) -> None:
    for columns, height in ((140, 30), (36, 10), (80, 24)):
        screen.resize(columns, height)

        def fits(columns: int = columns, height: int = height) -> bool:
            top, bottom = screen.lines[0], screen.lines[height - 1]
            return (
                "Change 1 of 5" in top
                and "y keep" in bottom
                and ("J/K files" in bottom) == (columns > 80)
                and ("│" in screen.text) == (columns > 110)
                and screen.style(height - 1, columns - 1).reverse
            )

        screen.until(fits)
        assert len(screen.lines) == height and "a * b" in screen.text


def test_a_long_change_can_be_scrolled(project: Path) -> None:
    write(project, {"a.txt": "a\n"})
    quick("turn", "begin", "--new", "more", project=project)
    write(project, {"a.txt": "a\n" + "".join(f"number {n} {'x' * 90}end{n}\n" for n in range(200))})
    quick("turn", "end", "@", project=project)
    with running("review", cwd=project) as screen:
        screen.until("number 0")
        screen.press(" ")
        screen.until(lambda: "number 25 " in screen.text and "number 0 " not in screen.text)
        screen.press("b")
        screen.until("number 0 ")
        assert "end1\n" not in screen.text
        screen.press("\x1b[C" * 2)
        screen.until("end1\n")
        screen.press("\x1b[C" + " " * 20)
        screen.until("end199")


@pytest.mark.parametrize("how", ["q", "\x03"])
def test_leaving_gives_the_terminal_back(worked: Path, how: str) -> None:
    with running("review", cwd=worked) as screen:
        before = screen.attributes()
        screen.until("Change 1 of 5")
        assert screen.attributes() != before
        screen.press(how)
        assert screen.wait() == 0
        assert screen.attributes() == before
        assert screen.written.endswith(LEAVE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_review_and_the_terminal_is_given_back(worked: Path, number: int) -> None:
    with running("review", cwd=worked) as screen:
        before = screen.attributes()
        screen.until("Change 1 of 5")
        screen.press("y")
        screen.until("Change 1 of 4")
        os.kill(screen.pid, number)
        assert screen.wait() == 128 + number
        assert screen.attributes() == before
        assert LEAVE in screen.written
        assert "1 decision made. `mulligan undo` takes" in screen.text


def test_an_error_ends_the_review_and_the_terminal_is_given_back(
    worked: Path, mulligan_home: Path
) -> None:
    with running("review", cwd=worked) as screen:
        before = screen.attributes()
        screen.until("Change 1 of 5")
        os.kill(screen.pid, signal.SIGSTOP)
        shutil.rmtree(worked)
        os.kill(screen.pid, signal.SIGCONT)
        assert screen.wait() == 1
        assert screen.attributes() == before
        assert LEAVE in screen.written and b"Traceback" not in screen.written


def test_ctrl_z_stops_the_review_and_it_comes_back(screen: Screen) -> None:
    screen.press("\x1a")
    deadline = time.monotonic() + 20
    while os.waitpid(screen.pid, os.WNOHANG | os.WUNTRACED) == (0, 0):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(screen.pid, signal.SIGCONT)
    screen.press("j")
    screen.until("Change 2 of 5")


def test_nothing_in_a_file_or_a_name_reaches_the_terminal_as_a_command(project: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b2J\r\x08\x0e\u202eevil"
    write(project, {"a.txt": "a\n"})
    quick("turn", "begin", "--new", "--agent", f"agent{evil}", f"message{evil}", project=project)
    write(project, {f"name{evil}": f"text{evil}\n", "b.py": f'"""{evil}\n'})
    with open(os.fsencode(project) + b"/bytes\xff", "wb") as file:
        file.write(b"caf\xe9 \x1b[31m\n")
    quick("turn", "end", "@", project=project)
    with running("review", cwd=project) as screen:
        screen.until("Change 1 of 3")
        screen.press("j")
        screen.until("Change 2 of 3")
        screen.press("j")
        screen.until("text\\x1b]0;owned")
        screen.press(f"/{evil.replace(chr(27), '').replace(chr(13), '').replace(chr(8), '')}\r")
        screen.until("is in no pending change")
        screen.press("y")
        screen.until("Change 1 of 2")
        screen.press("q")
        assert screen.wait() == 0
        ours = re.compile(
            rb"\x1b\[\d+;1H|\x1b\[\d+G|\r?\x1b\[2K|\x1b\[[\d;]*m|\x1b\[\?(?:1049|25|7|2004)[hl]|\x1b\[2J"
        )
        left = ours.sub(b"", screen.written).replace(b"\r\n", b"")
        assert left.decode().isprintable(), re.findall(rb".{20}[\x00-\x1f\x7f-\x9f].{20}", left)
        assert screen.written.count(b"\x1b[2J") == 1, "only when the screen was opened"


def test_wide_characters_do_not_move_what_stands_beside_them(project: Path) -> None:
    write(project, {"a.txt": "a\n"})
    quick("turn", "begin", "--new", "--agent", "机器人", "你好 🎉", project=project)
    write(project, {"日本語/ファイル名.md": "# 見出し 🎉\ncafe\u0301\n" + "漢字" * 80 + "\n"})
    quick("turn", "end", "@", project=project)
    with running("review", cwd=project, columns=120, rows=20) as screen:
        screen.until("Change 1 of 1")
        assert all(screen.style(row, 36).data == "│" for row in range(1, 19))
        assert "机器人" in screen.text.replace(" ", "")
        screen.resize(60, 20)
        screen.until(lambda: "│" not in screen.text and "y keep" in screen.lines[19])
        assert screen.style(0, 59).reverse and screen.style(19, 59).reverse


def test_no_color_is_honoured(worked: Path) -> None:
    colour = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)(?:;\d+)*m")
    with running("review", cwd=worked, env={"NO_COLOR": "1"}) as screen:
        screen.until("Change 1 of 5")
        screen.press("q")
        screen.wait()
        assert not colour.search(screen.written)
    with running("review", cwd=worked) as screen:
        screen.until("Change 1 of 5")
        row = next(at for at, line in enumerate(screen.lines) if "a * b" in line)
        line = screen.lines[row]
        assert screen.style(row, line.index("+")).fg == "green"
        assert screen.style(row, line.index("return")).fg == "magenta"
        assert screen.style(row - 1, line.index("+")).fg == "red"
        assert screen.style(row - 1, line.index("return")).fg == "red"
        screen.press("q")
        screen.wait()


def test_with_nothing_pending_no_screen_is_opened(project: Path) -> None:
    quick("checkpoint", project=project)
    with running("review", cwd=project) as screen:
        assert screen.wait() == 0
        assert "Nothing is pending." in screen.text and b"1049" not in screen.written


def test_a_terminal_that_cannot_be_drawn_on_gets_text(worked: Path) -> None:
    with running("review", cwd=worked, env={"TERM": "dumb"}) as screen:
        assert screen.wait() == 0
        assert (
            "+    return a * b" in screen.text.replace("\x1b", "") and b"1049" not in screen.written
        )


def test_what_an_agent_is_just_doing_is_seen(screen: Screen, worked: Path) -> None:
    quick("turn", "begin", "@", "again", project=worked)
    write(worked, {"app.py": (worked / "app.py").read_text() + "# more\n"})
    screen.until(lambda: "# more" in screen.text and " of 5" in screen.text)
    screen.press("u")
    screen.until("Nothing was decided here yet")
    write(worked, {"zzz.txt": "z\n"})
    screen.until("Change 1 of 6")
    screen.press("y")
    screen.until("Kept")
    write(worked, {"zzz.txt": "more\n"})
    screen.press("u")
    screen.until("Something else was done since")
    assert (worked / "zzz.txt").read_text() == "more\n"


def test_one_session_can_be_reviewed_alone(worked: Path) -> None:
    quick("turn", "begin", "--new", "--agent", "other", "one more", project=worked)
    write(worked, {"aaa.txt": "new\n"})
    quick("turn", "end", "@", project=worked)
    with running("review", "--session", "@", cwd=worked) as screen:
        screen.until("Change 1 of 1")
        assert "other" in screen.lines[0]
        screen.press("n")
        screen.until("Nothing is pending any more")
    assert not (worked / "aaa.txt").exists() and len(ids(worked)) == 5


def test_with_several_sessions_each_file_says_whose_it_is(worked: Path) -> None:
    quick("turn", "begin", "--new", "--agent", "other", "one more", project=worked)
    write(worked, {"notes.txt": changed(5, 15, 30)})
    quick("turn", "end", "@", project=worked)
    with running("review", cwd=worked) as screen:
        screen.until("Change 1 of 6")
        mine = [line.split() for line in screen.lines if "notes.txt" in line]
        assert [(words[1], words[2]) for words in mine] == [
            ("notes.txt", "robot"),
            ("notes.txt", "other"),
        ]
        screen.press("q")
        assert screen.wait() == 0


def review_of(*files: tuple[str, int], session: str = "s") -> Review:
    def hunk(path: str, index: int) -> PendingHunk:
        name = f"{path}{index}"
        return PendingHunk(name, session, path, "lines", index, index, (), (name,), False)

    return Review(
        tuple(
            PendingFile(
                session, path, "modified", False, False, None, None,
                tuple(hunk(path, index) for index in range(1, count + 1)),
            )
            for path, count in files
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "at", "after", "wanted", "seen"),
    [
        ([("a", 2), ("b", 2)], 2, [("b", 2)], None, "b1"),
        ([("a", 2), ("b", 2), ("c", 1)], 2, [("a", 2), ("c", 1)], None, "c1"),
        ([("a", 2), ("b", 2)], 3, [("a", 2)], None, "a1"),
        ([("a", 3)], 2, [("a", 2)], None, "a2"),
        ([("a", 3)], 0, [("a", 3)], "a3", "a3"),
        ([("a", 3)], 1, [("a", 3)], "gone", "a2"),
        ([], 0, [("a", 1)], None, "a1"),
    ],
)
def test_a_place_is_kept_when_the_review_is_made_anew(
    before: list[tuple[str, int]],
    at: int,
    after: list[tuple[str, int]],
    wanted: str | None,
    seen: str,
) -> None:
    place = position.first(review_of(*before))._replace(at=at)
    assert position.rebuilt(place, review_of(*after), wanted).hunk.id == seen


def test_a_place_in_an_empty_review_stays_one() -> None:
    empty = position.first(Review(()))
    assert position.stepped(empty, 1) == position.stepped_file(empty, 1) == empty
    assert position.after(empty, ()) is None and position.found(empty, "x") is None
    full = position.first(review_of(("a", 1)))
    assert position.rebuilt(full, Review(())).total == 0


TEXT = st.text(st.characters(codec=None), max_size=60)
VISIBLE = re.compile(r"\x1b\[\d*G|\x1b\[[\d;]*m")


@given(TEXT)
def test_safe_text_is_printable(text: str) -> None:
    assert safe(text).isprintable()


@given(TEXT, st.integers(0, 30), st.integers(0, 30))
def test_what_is_clipped_fits(text: str, columns: int, start: int) -> None:
    spans = clipped([Span(safe(text)), Span("abc", "bold")], columns, start)
    assert width_of(spans) <= columns


@given(
    st.sampled_from(["a.py", "a.ts", "a.c", "a.go", "a.rs", "a.sh", "a.sql", "a.json", "a.html"]),
    st.lists(st.text(st.sampled_from("ab1 \"'`#/*-<!\\\n(x日"), max_size=20), max_size=4),
    st.text(st.sampled_from("ab\"'x"), max_size=2),
)
def test_highlighting_changes_no_character(path: str, lines: list[str], needle: str) -> None:
    end: str | None = None
    for line in lines:
        spans, end = highlight(line, language_of(path), end)
        spans = marked(spans, needle)
        assert "".join(span.text for span in spans) == line
        assert all(span.style in STYLES for span in spans)


@pytest.mark.parametrize(
    ("path", "line", "styles"),
    [
        ("a.py", "def f(): # x", [("def", "keyword"), ("# x", "comment")]),
        ("a.py", 'x = "a\\"b" + 12', [('"a\\"b"', "string"), ("12", "number")]),
        ("a.rs", "fn f<'a>(x: &'a str) // 'c'", [("fn", "keyword"), ("// 'c'", "comment")]),
        ("a.ts", "/*a*/ let `b`", [("/*a*/", "comment"), ("let", "keyword"), ("`b`", "string")]),
        ("a.unknown", "def f(): # x", []),
        ("Dockerfile", "# x", [("# x", "comment")]),
    ],
)  # fmt: skip
def test_highlighting_knows_keywords_strings_comments_and_numbers(
    path: str, line: str, styles: list[tuple[str, str]]
) -> None:
    spans, end = highlight(line, language_of(path))
    assert [tuple(span) for span in spans if span.style] == styles and end is None


def test_a_text_over_several_lines_is_one_text() -> None:
    language = language_of("a.py")
    _spans, end = highlight('x = """begin', language)
    assert end == '"""'
    spans, end = highlight("def in a text", language, end)
    assert spans == [Span("def in a text", "string")] and end == '"""'
    spans, end = highlight('end""" or None', language, end)
    assert spans[0] == Span('end"""', "string") and end is None


@given(st.integers(0, 130), st.integers(0, 40), st.integers(0, 4), st.booleans(), st.booleans())
def test_every_row_fits_at_every_size(
    columns: int, height: int, at: int, helping: bool, colours: bool
) -> None:
    lines = tuple(f"行 {number} x\ty\n" for number in range(1, 30))
    hunk = PendingHunk(
        "h1", "s", "dir/ファイル.py", "lines", 9, 9, ("旧\n",), lines[8:10], True, (0,)
    )
    whole = hunk._replace(id="h2", kind="whole", old_lines=(), new_lines=())
    files = tuple(
        PendingFile("s", path, "modified", False, False, "0644", "0755", (hunk, whole))
        for path in ("dir/ファイル.py", "b" * 200, "c")
    )
    place = position.first(Review(files))._replace(at=at)
    names = {"s": "agent 标题"} if at % 2 else {}
    sight = ScreenState(
        "プロジェクト", place, "agent 标题", lines, needle="x", helping=helping, names=names
    )
    found = rows(sight, columns, height, colours=colours)
    assert len(found) == height
    for row in found:
        parts = [VISIBLE.sub("", part) for part in re.split(r"\x1b\[37G", row)]
        assert sum(map(width, parts)) <= columns
        assert all(part.isprintable() for part in parts)
        assert len(parts) == 1 or width(parts[0]) <= 36


def test_the_library_gives_what_the_screen_shows(worked: Path) -> None:
    with mulligan.open(worked) as workspace:
        assert [hunk.id for hunk in workspace.review.pending().hunks] == ids(worked)
