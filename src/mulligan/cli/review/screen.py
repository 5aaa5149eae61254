"""The full-screen review: keys in, decisions to the workspace, and what is pending on the screen.

Each decision is about exactly what is shown: should it have changed meanwhile, nothing is done and
the new state is shown. The review follows the disk and the sessions by itself.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mulligan.cli.output import Output, plural
from mulligan.cli.review.lines import changed_by, whose
from mulligan.cli.review.page import ScreenState, room_for_lines, rows, scroll_limit
from mulligan.cli.review.position import (
    Cursor,
    after,
    count_found,
    first,
    found,
    looked_at_again,
    rebuilt,
    stepped,
    stepped_file,
)
from mulligan.cli.review.terminal import PASTED, Terminal
from mulligan.core.coverage import decode_path, encode_path
from mulligan.core.diff import split_lines
from mulligan.errors import (
    Busy,
    MulliganError,
    NotFound,
    NothingToUndo,
    Unsupported,
    WouldLoseWork,
)
from mulligan.workspace.results.review import PendingHunk, Review

if TYPE_CHECKING:
    from mulligan.workspace.workspace import Workspace

LOOK_SECONDS = 1.0
WAIT_SECONDS = 2.0
PATHS_AT_ONCE = 100
SCROLL_COLUMNS = 16


def show(out: Output, session: str | None) -> int:
    """Reviews on the terminal until the reader has enough; gives the exit code."""
    with _opened(out) as workspace:
        sitting = ReviewSession(workspace, session)
        out.clear_progress()
        if not sitting.total:
            out.say("Nothing is pending.")
            return 0
        workspace.project.progress = _silent
        with Terminal() as terminal:
            sitting.run(terminal)
    if sitting.decisions:
        out.say(
            f"{plural(len(sitting.decisions), 'decision')} made. "
            "`mulligan undo` takes them back, one at a time."
        )
    return 0 if terminal.stopped is None else 128 + terminal.stopped


class Decision(NamedTuple):
    """What was decided, so that it can be taken back: the operation, and what it was about."""

    operation: int
    hunk: str
    path: str
    words: str


class ReviewSession:
    """One review, from opening the screen to leaving it."""

    def __init__(self, workspace: Workspace, session: str | None) -> None:
        self.decisions: list[Decision] = []
        self._workspace = workspace
        self._session = session and workspace.sessions.get(session).id
        self._colours = not os.environ.get("NO_COLOR")
        self._done = False
        self._alone = False
        self._stamp: tuple[object, ...] = ()
        self._token: str | None = None
        self._looked_at = 0.0
        self._pause = LOOK_SECONDS
        self._sight = ScreenState(
            os.path.basename(workspace.root) or workspace.root, first(Review(()))
        )
        self._look()

    @property
    def total(self) -> int:
        """How many changes are pending."""
        return self._sight.place.total

    def run(self, terminal: Terminal) -> None:
        """Draws, waits for keys and does what they say, until there is enough."""
        self._terminal = terminal
        self._workspace.project.wait = min(self._workspace.project.wait, WAIT_SECONDS)
        while not self._done and terminal.stopped is None:
            columns, height = terminal.size
            terminal.draw(rows(self._sight, columns, height, colours=self._colours))
            for key in terminal.keys(LOOK_SECONDS):
                self._pressed(key)
                if self._done:
                    return
            self._follow()

    def _pressed(self, key: str) -> None:
        sight = self._sight = self._sight._replace(message="")
        if key in ("interrupt", "suspend", "redraw"):
            _ANYWHERE[key](self)
        elif sight.prompt is not None:
            self._typed(key, sight.prompt)
        elif sight.helping:
            self._sight = sight._replace(helping=False)
        elif key in _ACTIONS and (sight.place.total or key in _WITHOUT_CHANGES):
            _ACTIONS[key](self)

    def _typed(self, key: str, prompt: str) -> None:
        """A key while the reader says what to search for."""
        sight = self._sight
        if key == "escape":
            self._sight = sight._replace(prompt=None, needle="")
        elif key == "enter":
            self._sight = sight._replace(prompt=None)
            self._search(1, here=True)
        elif key == "backspace":
            self._sight = sight._replace(prompt=prompt[:-1], needle=prompt[:-1])
        else:
            key = key.removeprefix(PASTED)
            if len(key) == 1 and key.isprintable():
                self._sight = sight._replace(prompt=prompt + key, needle=prompt + key)

    def _search(self, step: int, *, here: bool = False) -> None:
        needle = self._sight.needle
        if not needle:
            return
        place = found(self._sight.place, needle, step, here=here)
        if place is None:
            self._say(f"{needle!r} is in no pending change.")
            return
        self._show(place)
        at, total = count_found(place, needle)
        self._say(f"{needle!r}: {at} of {total}; Tab for the next, / to search again")

    def _keep(self, ids: list[str]) -> None:
        file = self._sight.place.file
        with self._deciding():
            done = self._workspace.review.keep(*ids, paths=[file.path], session=file.session)
            words = f"Kept {_changes(done.hunks)} in {file.path}."
            self._decided(done.operations, ids, words)

    def _discard(self, ids: list[str], *, force: bool = False) -> None:
        file = self._sight.place.file
        with self._deciding():
            done = self._workspace.review.discard(
                *ids, paths=[file.path], session=file.session, force=force
            )
            operations = [each.operation for each in done.results if each.operation is not None]
            skipped = [skip for each in done.results for skip in each.skipped]
            if not operations:
                reason = skipped[0].reason if skipped else "it is undone already"
                self._look_again()
                self._say(f"Left alone, because {reason.partition(';')[0]}.")
                return
            words = f"Undid {_changes(done.hunks)} in {file.path}."
            if skipped:
                words += f" Left alone: {plural(len(done.conflicts) or len(skipped), 'change')}."
            self._decided(operations, [id for id in ids if id not in done.conflicts], words)

    def _decided(self, operations: Sequence[int], ids: list[str], words: str) -> None:
        path = self._sight.place.file.path
        self.decisions += [Decision(each, ids[0], path, words) for each in operations]
        self._look_again(after(self._sight.place, set(ids)), paths=self._only(path))
        self._say(f"{words} u takes it back.")

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        """Nobody else does anything meanwhile; what goes wrong is said, and leaves all as it is."""
        try:
            with self._workspace.project.locked():
                self._alone = self._state() == self._stamp
                yield
        except NotFound:
            self._look_again()
            self._say("It was changed since it was shown, so nothing was done. Look again.")
        except Busy:
            self._say("Another process is at work on the project; try again.")
        except MulliganError as problem:
            self._look_again()
            self._say(str(problem))

    def _only(self, path: str) -> list[str]:
        """Where to look after a decision: at one path, if nobody else has done anything since."""
        return [path.rstrip("/")] if self._alone else []

    def _take_back(self) -> None:
        if not self.decisions:
            self._say("Nothing was decided here yet. `mulligan undo` takes back what was before.")
            return
        last = self.decisions[-1]
        with self._deciding():
            try:
                done = self._workspace.undo(expect=last.operation)
            except (NothingToUndo, WouldLoseWork):
                self._say("Something else was done since; leave, and see `mulligan operations`.")
                return
            if done.operation is None:
                reason = done.skipped[0].reason if done.skipped else "nothing is left of it"
                self._say(f"Not taken back, because {reason.partition(';')[0]}.")
                return
            self.decisions.pop()
            self._look_again(last.hunk, paths=self._only(last.path))
            self._say(f"Taken back: {last.words}")

    def _undo_one(self, *, force: bool) -> None:
        hunk = self._sight.place.hunk
        if hunk.mixed and not force:
            self._say(f"Not undone: {self._sight.others}. N undoes it with them.")
            return
        self._discard([hunk.id], force=force)

    def _edit(self) -> None:
        hunk = self._sight.place.hunk
        path = os.path.join(self._workspace.project.location.root, encode_path(hunk.path))
        if not os.path.isfile(path):
            self._say("There is no file to edit any more.")
            return
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            command = [*shlex.split(editor), f"+{max(hunk.new_start, 1)}", os.fsdecode(path)]
            with self._terminal.suspended():
                subprocess.run(command, check=False)
        except (OSError, ValueError) as problem:
            self._say(f"{editor} cannot be started: {problem}")
            return
        self._look_again()

    def _suspend(self) -> None:
        with self._terminal.suspended():
            os.kill(os.getpid(), signal.SIGSTOP)
        self._look_again()

    def _quit(self) -> None:
        self._done = True

    def _redraw(self) -> None:
        self._terminal.forget()

    def _refresh(self) -> None:
        self._terminal.forget()
        self._look_again()
        self._say("Looked again.")

    def _scroll(self, pages: float) -> None:
        columns, height = self._terminal.size
        room = room_for_lines(self._sight, columns, height)
        top = self._sight.top + int(pages * max(room - 1, 1))
        limit = scroll_limit(self._sight, columns, height)
        self._sight = self._sight._replace(top=max(0, min(top, limit)))

    def _shifted(self, step: int) -> None:
        self._sight = self._sight._replace(shift=max(0, self._sight.shift + step))

    def _ids_of_file(self) -> list[str]:
        return [hunk.id for hunk in self._sight.place.file.hunks]

    def _ask(self) -> None:
        self._sight = self._sight._replace(prompt="", needle="")

    def _help(self) -> None:
        self._sight = self._sight._replace(helping=True)

    def _say(self, message: str) -> None:
        self._sight = self._sight._replace(message=message)

    def _show(self, place: Cursor) -> None:
        """Goes to a place; what was scrolled begins at its beginning again."""
        sight = self._sight
        whose_work = others = ""
        lines: tuple[str, ...] = ()
        if place.total:
            whose_work = self._whose(place.hunk.session)
            others = changed_by(self._workspace, place.hunk)
            lines = self._disk_lines(place.hunk)
        sessions = {file.session for file in place.files}
        names = {}
        if len(sessions) > 1:
            names = {each: whose(self._workspace, each) for each in sessions}
        same = bool(place.total and sight.place.total and place.hunk.id == sight.place.hunk.id)
        self._sight = sight._replace(
            place=place, whose=whose_work, others=others, lines=lines, names=names,
            top=sight.top if same else 0, shift=sight.shift if same else 0,
        )  # fmt: skip

    def _whose(self, session: str) -> str:
        title = self._workspace.sessions.get(session).title
        return f"{whose(self._workspace, session)}  {title}".rstrip()

    def _disk_lines(self, hunk: PendingHunk) -> tuple[str, ...]:
        """The file around a change; nothing where it does not hold what the change says."""
        if hunk.kind == "whole":
            return ()
        try:
            content = self._workspace.read_disk(hunk.path)
        except (NotFound, OSError):
            return ()
        lines = tuple(map(decode_path, split_lines(content)))
        start = hunk.new_start - 1
        return lines if lines[start : start + len(hunk.new_lines)] == hunk.new_lines else ()

    def _state(self) -> tuple[object, ...]:
        """What tells, at little cost, that there may be something new besides the disk."""
        latest = self._workspace.operations(1)
        return (latest[0].number if latest else 0, self._workspace.project.head())

    def _follow(self) -> None:
        """Looks again if something has happened; not more often than it can be afforded."""
        if time.monotonic() - self._looked_at < self._pause:
            return
        watcher = self._workspace.project.watcher
        if watcher is None:
            self._look_again()
            return
        seen = watcher.peek(self._token)
        too_much = seen.lost or b"" in seen.paths or len(seen.paths) > PATHS_AT_ONCE
        if too_much or self._state() != self._stamp:
            self._look_again()
        elif seen.paths:
            self._look_again(paths=[decode_path(path) for path in seen.paths])
            self._token = seen.token
        else:
            self._looked_at = time.monotonic()

    def _look(self, wanted: str | None = None, *, paths: Sequence[str] = ()) -> None:
        """Looks at everything, or only at some paths, and goes to a change that is wanted."""
        started = time.monotonic()
        stamp, token = self._state(), self._now()
        try:
            pending = self._workspace.review.pending(session=self._session, paths=paths)
        finally:
            self._looked_at = time.monotonic()
            self._pause = max(LOOK_SECONDS, 4 * (self._looked_at - started))
        self._stamp = stamp
        if paths:
            pending = looked_at_again(self._sight.place, paths, pending)
        else:
            self._token = token
        self._show(rebuilt(self._sight.place, pending, wanted))

    def _look_again(self, wanted: str | None = None, *, paths: Sequence[str] = ()) -> None:
        """The same, if nobody else is at work; until they are done, what was seen last is shown."""
        try:
            self._look(wanted, paths=paths)
        except Busy:
            return

    def _now(self) -> str | None:
        """Up to where the watcher's news are known."""
        watcher = self._workspace.project.watcher
        return watcher.peek(None).token if watcher is not None else None


_ANYWHERE: dict[str, Callable[[ReviewSession], None]] = {
    "interrupt": ReviewSession._quit,
    "suspend": ReviewSession._suspend,
    "redraw": ReviewSession._redraw,
}
_ACTIONS: dict[str, Callable[[ReviewSession], None]] = {
    "j": lambda each: each._show(stepped(each._sight.place, 1)),
    "k": lambda each: each._show(stepped(each._sight.place, -1)),
    "J": lambda each: each._show(stepped_file(each._sight.place, 1)),
    "K": lambda each: each._show(stepped_file(each._sight.place, -1)),
    "y": lambda each: each._keep([each._sight.place.hunk.id]),
    "n": lambda each: each._undo_one(force=False),
    "N": lambda each: each._undo_one(force=True),
    "a": lambda each: each._keep(each._ids_of_file()),
    "d": lambda each: each._discard(each._ids_of_file()),
    "u": ReviewSession._take_back,
    "/": ReviewSession._ask,
    "enter": lambda each: each._search(1),
    "shift tab": lambda each: each._search(-1),
    "e": ReviewSession._edit,
    "r": ReviewSession._refresh,
    "?": ReviewSession._help,
    "q": ReviewSession._quit,
    " ": lambda each: each._scroll(1),
    "b": lambda each: each._scroll(-1),
    "right": lambda each: each._shifted(SCROLL_COLUMNS),
    "left": lambda each: each._shifted(-SCROLL_COLUMNS),
}
_ACTIONS |= {
    "down": _ACTIONS["j"],
    "up": _ACTIONS["k"],
    "tab": _ACTIONS["enter"],
    "page down": _ACTIONS[" "],
    "page up": _ACTIONS["b"],
}
_WITHOUT_CHANGES = ("u", "r", "?", "q")


@contextmanager
def _opened(out: Output) -> Iterator[Workspace]:
    """The project, watched if that is possible here: then looking again costs what changed."""
    with ExitStack() as stack:
        try:
            workspace = stack.enter_context(out.workspace(watch=True))
        except Unsupported:
            workspace = stack.enter_context(out.workspace())
        yield workspace


def _changes(hunks: Sequence[str]) -> str:
    return "the change" if len(hunks) == 1 else plural(len(hunks), "change")


def _silent(stage: str, done: int, total: int | None) -> None:
    return
