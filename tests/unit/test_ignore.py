"""The ignore rules, row by row; every row is checked against git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mulligan.worktree.ignore import patterns, scope
from mulligan.worktree.ignore.ruleset import MAX_FILE_BYTES, MAX_WILDCARD_TOKENS
from mulligan.worktree.ignore.scope import DEFAULT_EXCLUDES, Reason, Rules, Scope, root_scope

# (content of .gitignore, path with a slash at the end if it is a directory, ignored?)
ROWS: list[tuple[bytes, bytes, bool]] = [
    # lines
    (b"", b"a", False),
    (b"a", b"a", True),
    (b"\n\na\n\n", b"a", True),
    (b"#a", b"#a", False),
    (b"\\#a", b"#a", True),
    (b" #a", b" #a", True),
    (b"a #b", b"a", False),
    (b"a #b", b"a #b", True),
    (b"a\r\nb\r\n", b"a", True),
    (b"a\r\nb\r\n", b"b", True),
    (b"a\r", b"a", True),
    (b"a\r\r\n", b"a\r", True),
    (b"a\rb", b"a\rb", True),
    (b"\r\n", b"a", False),
    (b"\xef\xbb\xbfa\n", b"a", True),
    (b"\xef\xbb\xbf#a\n", b"#a", False),
    (b"b\n\xef\xbb\xbfa\n", b"a", False),
    (b"a\0b", b"a", True),
    (b"\xff", b"\xff", True),
    (b"\xc3\xa9*", b"\xc3\xa9t\xc3\xa9", True),
    (b"\xc3?", b"\xc3\xa9", True),
    (b"?", b"\xc3\xa9", False),
    (b"??", b"\xc3\xa9", True),
    # spaces
    (b"a  ", b"a", True),
    (b"a\\ ", b"a ", True),
    (b"a\\  ", b"a ", True),
    (b"a\\\\ ", b"a\\", True),
    (b"a b", b"a b", True),
    (b" a", b" a", True),
    (b" a", b"a", False),
    (b"a\t", b"a", False),
    (b"a\t", b"a\t", True),
    (b"   ", b" ", False),
    (b"d/ ", b"d/", True),
    # negation: the last match wins
    (b"a\n!a", b"a", False),
    (b"!a\na", b"a", True),
    (b"*\n!a", b"a", False),
    (b"*\n!a", b"b", True),
    (b"\\!a", b"!a", True),
    (b"!!a\n", b"!a", False),
    (b"*\n!!a", b"!a", False),
    (b"!", b"!", False),
    (b"d/\n!d/a", b"d/a", True),
    (b"d/*\n!d/a", b"d/a", False),
    (b"d/*\n!d/a", b"d/b", True),
    (b"*\n!*/\n!*.c", b"d/a.c", False),
    (b"*\n!*/\n!*.c", b"d/a.o", True),
    # anchors
    (b"a", b"d/a", True),
    (b"/a", b"a", True),
    (b"/a", b"d/a", False),
    (b"d/a", b"d/a", True),
    (b"/d/a", b"d/a", True),
    (b"d/a", b"e/d/a", False),
    (b"/", b"d/", False),
    (b"//", b"d/", False),
    (b"//a", b"a", False),
    (b"d//a", b"d/a", False),
    (b"./a", b"a", False),
    (b"\\/a", b"a", False),
    (b"d\\/a", b"d/a", True),
    (b"d\\/a", b"e/d/a", False),
    # directories
    (b"a/", b"a", False),
    (b"a/", b"a/", True),
    (b"a/", b"a/b/c", True),
    (b"a/", b"d/a/", True),
    (b"/a/", b"d/a/", False),
    (b"d/a/", b"d/a", False),
    (b"d/a/", b"d/a/", True),
    (b"d/a/", b"e/d/a/", False),
    (b"a//", b"a/", False),
    (b"a\\/", b"a/", False),
    (b"*/", b"a", False),
    (b"*/", b"a/", True),
    # one star, question mark
    (b"*.o", b"a.o", True),
    (b"*.o", b".o", True),
    (b"*.o", b"a.oo", False),
    (b"*.o", b"d/e/a.o", True),
    (b"a*", b"a", True),
    (b"a*", b"ab", True),
    (b"a*", b"ba", False),
    (b"a*c", b"abbc", True),
    (b"a*c", b"a\nc", True),
    (b"*a*b*", b"xaxxbx", True),
    (b"*a*b*", b"bxa", False),
    (b"*ab*ab", b"abab", True),
    (b"*ab*ab", b"ab", False),
    (b"*ab?b", b"abababxb", True),
    (b"a?c", b"a\nc", True),
    (b"?", b"ab", False),
    (b"a\\*", b"a*", True),
    (b"a\\*", b"ab", False),
    (b"\\a", b"a", True),
    (b"d/*", b"d/a", True),
    (b"d/*.c", b"d/a.c", True),
    (b"d/*.c", b"d/e/a.c", False),
    (b"*/a", b"d/a", True),
    (b"*/a", b"a", False),
    (b"*/a", b"d/e/a", False),
    (b"d?a", b"d/a", False),
    (b"d/?/a", b"d/e/a", True),
    (b"d/a*b*c", b"d/axbxbc", True),
    (b"*x*/a", b"wxy/a", True),
    (b"*x*/a", b"w/x/a", False),
    (b"/*/*b*c/d", b"a/bbc/d", True),
    # two stars
    (b"**", b"d/a", True),
    (b"**/a", b"a", True),
    (b"**/a", b"d/e/a", True),
    (b"**/d/a", b"e/d/a", True),
    (b"**/d/a", b"d/a", True),
    (b"**/d/a", b"ed/a", False),
    (b"d/**", b"d", False),
    (b"d/**", b"d/a", True),
    (b"d/**", b"d/e/a", True),
    (b"d/**", b"e/d/a", False),
    (b"d/**/a", b"d/a", True),
    (b"d/**/a", b"d/e/f/a", True),
    (b"d/**/a", b"e/d/a", False),
    (b"d/***/a", b"d/e/f/a", True),
    (b"d/**/e/**/a", b"d/x/e/y/z/a", True),
    (b"d/**/e/**/a", b"d/x/y/z/a", False),
    (b"**/**/a", b"a", True),
    (b"/**", b"a", True),
    (b"/**/", b"a", False),
    (b"/**/", b"a/", True),
    (b"**/", b"d/e/", True),
    (b"d/**b", b"d/ab", True),
    (b"d/**b", b"d/e/b", False),
    (b"d/a**", b"d/ab", True),
    (b"d/**/*", b"d/e", True),
    (b"**\\/a", b"a", False),
    (b"**\\/a", b"d/a", True),
    (b"d/**\\/a", b"d/e/a", True),
    (b"d/**\\/a", b"d/a", False),
    # two stars after a literal beginning: git forgets what stood before them
    (b"a**/b", b"ab", True),
    (b"a**/b", b"ax/b", True),
    (b"a**/b", b"ax/y/b", True),
    (b"a**/b", b"c/ab", False),
    (b"?a**/b", b"xay/z/b", False),
    (b"d/a**", b"d/ab/c/e", True),
    (b"d/a**/**/b", b"d/ax/y/b", True),
    (b"d/a**/**/b", b"d/ab", True),
    (b"d/a**\\/b", b"d/ab", False),
    (b"d/a**\\/b", b"d/ax/b", True),
    # brackets
    (b"[ab]", b"b", True),
    (b"[ab]", b"c", False),
    (b"[!a]", b"b", True),
    (b"[!a]", b"a", False),
    (b"[^a]", b"a", False),
    (b"[^a]", b"^", True),
    (b"[a^]", b"^", True),
    (b"[a!]", b"!", True),
    (b"[!ab]x", b"\nx", True),
    (b"[a-c]", b"b", True),
    (b"[c-a]", b"b", False),
    (b"[a-]", b"-", True),
    (b"[-a]", b"-", True),
    (b"[a-c-e]", b"-", True),
    (b"[a-c-e]", b"d", False),
    (b"[]a]", b"]", True),
    (b"[!]a]", b"]", False),
    (b"[]-a]", b"^", True),
    (b"[\\]]", b"]", True),
    (b"[\\a-c]", b"b", True),
    (b"[a\\-c]", b"b", False),
    (b"[a-\\c]", b"b", True),
    (b"[\\\\]", b"\\", True),
    (b"[*?]", b"*", True),
    (b"[*?]", b"a", False),
    (b"[[]", b"[", True),
    (b"[[a]", b"[", True),
    (b"[a", b"[a", False),
    (b"a[", b"a[", False),
    (b"[]", b"[]", False),
    (b"[a\\]", b"a", False),
    (b"a\\[b]", b"a[b]", True),
    (b"a\\", b"a\\", False),
    (b"a\\", b"a", False),
    (b"[[:digit:]]", b"7", True),
    (b"[[:digit:]]", b"x", False),
    (b"[![:digit:]]", b"x", True),
    (b"[[:digit:]x]", b"x", True),
    (b"[[:nonsense:]]", b"n", False),
    (b"[[:digit]", b"d", True),
    (b"[[:digit]", b"[", True),
    (b"[[:]", b":", True),
    (b"[[::]]", b":", False),
    (b"[[:digit:", b"7", False),
    (b"[1-[:digit:]]", b"2", False),
    (b"[0-[:alpha:]]", b"@]", True),
    (b"d[/]a", b"d/a", False),
    (b"d[!x]a", b"d/a", False),
    (b"/d[.-0]a", b"d/a", False),
    (b"/d[.-0]a/b", b"d/a/b", False),
    (b"/d[!x]a/b", b"d/a/b", False),
    (b"/d[!x]a/b", b"dya/b", True),
    (b"\\[a]", b"[a]", True),
    (b"[\xc3]\xa9", b"\xc3\xa9", True),
    (b"[\x80-\xff]", b"\x90", True),
]


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="asks git")


def decide_path(
    scope: Scope, path: bytes, is_dir: bool, read: Callable[[bytes], tuple[bytes | None, ...]]
) -> Reason:
    """Walk down like the scanner, and stop at the first excluded directory."""
    *parents, last = path.split(b"/")
    for depth, name in enumerate(parents, 1):
        if reason := scope.decide(name, True):
            return reason
        gitignore, mulliganignore, *rest = read(b"/".join(parents[:depth]))
        scope = scope.enter(
            name,
            gitignore=gitignore,
            mulliganignore=mulliganignore,
            info_exclude=rest[0] if rest else None,
        )
    return scope.decide(last, is_dir)


@pytest.mark.parametrize(("gitignore", "path", "ignored"), ROWS)
def test_a_pattern_means_what_it_means_to_git(gitignore: bytes, path: bytes, ignored: bool) -> None:
    scope = root_scope(gitignore=gitignore, defaults=False)
    reason = decide_path(scope, path.rstrip(b"/"), path.endswith(b"/"), lambda _: (None, None))
    assert reason == (Reason.GITIGNORE if ignored else Reason.IN_SCOPE)


@needs_git
def test_git_agrees_with_every_row(tmp_path: Path) -> None:
    for number, (gitignore, path, _) in enumerate(ROWS):
        folder = os.path.join(os.fsencode(tmp_path), b"%d" % number)
        inside = path + b"inside" if path.endswith(b"/") else path
        os.makedirs(os.path.dirname(os.path.join(folder, inside)))
        write(os.path.join(folder, inside), b"")
        write(os.path.join(folder, b".gitignore"), gitignore)
    listed = {path.split(b"/")[0] for path in untracked(tmp_path) if b"/.gitignore" not in path}
    for number, row in enumerate(ROWS):
        assert (b"%d" % number not in listed) == row[2], row


@needs_git
def test_a_named_class_holds_the_same_bytes_as_in_git(tmp_path: Path) -> None:
    names = [b"x" + bytes((byte,)) for byte in range(1, 256) if byte != ord("/")]
    for name in patterns._CLASSES:
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        write(os.path.join(folder, b".gitignore"), b"x[[:%b:]]\n.gitignore\n" % name)
        for each in names:
            write(os.path.join(folder, each), b"")
    ours = set()
    for name in patterns._CLASSES:
        rules = Rules.parse(b"x[[:%b:]]\n" % name)
        ours |= {name + b"/" + each for each in names if not rules.match(each, False)}
    assert ours == untracked(tmp_path)


def test_one_file_says_ignored_or_not_ignored_or_nothing() -> None:
    rules = Rules.parse(b"*.o\n!keep.o\n/d/sub/\n")
    assert rules.match(b"a.o", False) is True
    assert rules.match(b"x/y/keep.o", False) is False
    assert rules.match(b"a.c", False) is None
    assert rules.match(b"d/sub", True) is True
    assert rules.match(b"d/sub", False) is None
    assert rules.match(b"d/sub/a.c", False) is None  # only the path itself is judged


def test_patterns_with_many_stars_do_not_take_forever() -> None:
    names = Rules.parse(b"*a" * 40 + b"*b")
    assert names.match(b"a" * 250, False) is None
    assert names.match(b"a" * 250 + b"b", False) is True
    paths = Rules.parse(b"**/" + b"*a*a*/**/" * 20 + b"end")
    assert paths.match(b"aa/" * 100 + b"other", False) is None
    assert paths.match(b"aa/" * 100 + b"end", False) is True
    assert paths.match(b"aa/" * 19 + b"end", False) is None


@pytest.mark.parametrize("pattern", [b"*a%05d*b", b"[ab]%05d", b"*/x%05d", b"d*/**/x%05d"])
def test_wildcards_count_up_to_a_bound(pattern: bytes) -> None:
    """Every name is tried on each wildcard: 10,000 would cost milliseconds a name."""
    lines = [pattern % number for number in range(10_000)]
    rules = Rules.parse(b"\n".join(lines))
    counting = [each for each in lines if rules.match(sample(each), False)]
    assert counting == lines[:1000]


@pytest.mark.parametrize("pattern", [b"a%05d", b"a%05d*", b"*a%05d", b"/d/a%05d", b"**/a%05d"])
def test_words_prefixes_and_suffixes_all_count(pattern: bytes) -> None:
    lines = [pattern % number for number in range(10_000)]
    rules = Rules.parse(b"\n".join([*(b"*x%05d*y" % number for number in range(1500)), *lines]))
    assert all(rules.match(sample(each), False) for each in lines)


def test_a_long_wildcard_counts_for_several() -> None:
    lines = [b"%03d/" % number + b"a/" * 500 + b"*/x" for number in range(40)]
    rules = Rules.parse(b"\n".join(lines))
    counting = [each for each in lines if rules.match(sample(each), False)]
    assert counting == lines[: MAX_WILDCARD_TOKENS // 1007]


def test_an_ignore_file_counts_up_to_a_size() -> None:
    rules = Rules.parse(b"first\n" + b"#" * (MAX_FILE_BYTES - 10) + b"\nlast\n")
    assert rules.match(b"first", False)
    assert rules.match(b"last", False) is None


def test_directories_share_the_patterns_that_count_in_several() -> None:
    """Otherwise every directory would compile its own mixture of patterns."""
    rules = Rules.parse(
        b"\n".join(b"*%d*/[ab]*%03d*z" % (number % 10, number) for number in range(900))
    )
    one, both = rules.extra(b"d1/"), rules.extra(b"d12/")
    assert (len(one), len(both)) == (1, 2)
    assert one[0] is both[0]
    assert rules.match(b"d12/a_002_z", False)
    assert rules.match(b"d1/a_002_z", False) is None


def sample(pattern: bytes) -> bytes:
    """A path that a pattern matches."""
    path = pattern.lstrip(b"/").replace(b"[ab]", b"a").replace(b"/**/", b"/")
    return path.replace(b"*", b"_")


@pytest.mark.parametrize("name", [b".git", b".mulligan-tmp-", b".mulligan-tmp-1f"])
def test_no_rule_brings_back_what_is_always_out_of_scope(name: bytes) -> None:
    scope = root_scope(mulliganignore=b"!" + name + b"\n!*", defaults=False)
    assert scope.decide(name, True) is Reason.ALWAYS
    assert scope.decide(name, False) is Reason.ALWAYS


def test_the_case_of_dot_git_counts_only_where_file_names_have_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if sys.platform == "linux":
        assert root_scope().decide(b".Git", True) is Reason.IN_SCOPE
    monkeypatch.setattr(scope, "_ANY_CASE", True)
    assert root_scope().decide(b".Git", True) is Reason.ALWAYS
    assert root_scope().decide(b".gitignore", False) is Reason.IN_SCOPE


@pytest.mark.parametrize("pattern", DEFAULT_EXCLUDES)
def test_each_default_exclude_holds_until_a_mulliganignore_switches_it_off(pattern: str) -> None:
    name = pattern.rstrip("/").replace("*", "x").encode()
    is_dir = pattern.endswith("/")
    line = b"!" + pattern.encode()
    assert root_scope().decide(name, is_dir) is Reason.DEFAULT
    assert root_scope().enter(b"deep").decide(name, is_dir) is Reason.DEFAULT
    assert root_scope(gitignore=line).decide(name, is_dir) is Reason.DEFAULT
    assert root_scope(mulliganignore=line).decide(name, is_dir) is Reason.IN_SCOPE
    assert root_scope(defaults=False).decide(name, is_dir) is Reason.IN_SCOPE


def test_files_that_only_share_a_name_with_an_excluded_directory_are_kept() -> None:
    for name in (b".env", b"build", b"Cargo.lock", b"package-lock.json"):
        assert root_scope().decide(name, False) is Reason.IN_SCOPE


def test_a_default_exclude_that_git_ignores_too_counts_as_a_default_exclude() -> None:
    scope = root_scope(gitignore=b"node_modules\nsecret\n")
    assert scope.decide(b"node_modules", True) is Reason.DEFAULT
    assert scope.decide(b"secret", False) is Reason.GITIGNORE


def test_a_mulliganignore_wins_over_git_from_any_depth() -> None:
    scope = root_scope(mulliganignore=b"!*.keep\n*.drop\n")
    inner = scope.enter(b"d", gitignore=b"*.keep\n!*.drop\n")
    assert inner.decide(b"a.keep", False) is Reason.IN_SCOPE
    assert inner.decide(b"a.drop", False) is Reason.MULLIGANIGNORE
    deeper = inner.enter(b"e", mulliganignore=b"a.keep\n!a.drop")
    assert deeper.decide(b"a.keep", False) is Reason.MULLIGANIGNORE
    assert deeper.decide(b"a.drop", False) is Reason.IN_SCOPE
    assert deeper.decide(b"b.drop", False) is Reason.MULLIGANIGNORE


def test_a_deeper_gitignore_wins_and_the_excludes_files_come_last() -> None:
    scope = root_scope(
        global_excludes=b"*.a\n*.b\n*.c\n",
        info_exclude=b"!*.b\n*.d\n",
        gitignore=b"!*.c\n!*.d\n*.e\n",
        defaults=False,
    )
    decided = {suffix: scope.decide(b"x." + suffix, False).name for suffix in (b"a", b"b", b"c")}
    assert decided == {b"a": "GITIGNORE", b"b": "IN_SCOPE", b"c": "IN_SCOPE"}
    assert scope.decide(b"x.d", False) is Reason.IN_SCOPE
    inner = scope.enter(b"d", gitignore=b"*.d\n!*.e\n")
    assert inner.decide(b"x.d", False) is Reason.GITIGNORE
    assert inner.decide(b"x.e", False) is Reason.IN_SCOPE
    assert scope.decide(b"x.e", False) is Reason.GITIGNORE


def test_patterns_with_a_slash_count_from_the_directory_of_their_file() -> None:
    scope = root_scope(gitignore=b"/d/a\n/a\ne/f/g\n")
    assert scope.decide(b"a", False)
    inner = scope.enter(b"d", gitignore=b"/b\ne/c\n")
    assert inner.decide(b"a", False)
    assert inner.decide(b"b", False)
    deeper = inner.enter(b"e")
    assert [deeper.decide(name, False) for name in (b"a", b"b", b"c")] == [0, 0, 1]
    assert not scope.enter(b"e").enter(b"f").decide(b"a", False)
    assert scope.enter(b"e").enter(b"f").decide(b"g", False)


def test_a_nested_repository_keeps_the_outer_gitignore_and_has_its_own_exclude() -> None:
    scope = root_scope(
        gitignore=b"*.o\n", info_exclude=b"outer\n/top\n", global_excludes=b"/globe\n"
    )
    nested = scope.enter(b"lib", info_exclude=b"/inner\n")
    assert nested.decide(b"a.o", False)
    assert nested.decide(b"inner", False)
    assert not nested.decide(b"outer", False)
    assert nested.decide(b"globe", False)  # it is at the top of its repository
    below = nested.enter(b"src")
    assert not below.decide(b"inner", False)
    assert not below.decide(b"globe", False)
    assert not scope.enter(b"lib", info_exclude=b"").decide(b"outer", False)
    assert scope.enter(b"lib").decide(b"outer", False)


def test_a_project_inside_a_work_tree_obeys_the_rules_above_it() -> None:
    scope = root_scope(
        outer=[(b"sub/proj", b"/sub/proj/a\n*.x\n*.y\nproj\n"), (b"proj", b"/proj/d/b\n!*.y\n")],
        info_prefix=b"sub/proj",
        info_exclude=b"/sub/proj/c\n/e\n",
        global_excludes=b"sub/proj/d/f\n",
        gitignore=b"!keep.x\n",
    )
    assert [scope.decide(name, False) for name in (b"a", b"b", b"c", b"e")] == [1, 0, 1, 0]
    assert [scope.decide(name, False) for name in (b"1.x", b"1.y", b"keep.x")] == [1, 0, 0]
    inner = scope.enter(b"d")
    assert [inner.decide(name, False) for name in (b"a", b"b", b"c", b"f")] == [0, 1, 0, 1]


def test_a_path_is_out_of_scope_with_the_first_directory_that_is() -> None:
    files: dict[bytes, tuple[bytes | None, bytes | None]] = {
        b"a": (b"/b/c\n", None),
        b"a/b": (None, b"!c\nd\n"),
    }
    asked = []

    def read(path: bytes) -> tuple[bytes | None, bytes | None]:
        asked.append(path)
        return files.get(path, (None, None))

    scope = root_scope(gitignore=b"skip/\n")
    assert decide_path(scope, b"a/b/c", False, read) is Reason.IN_SCOPE
    assert asked == [b"a", b"a/b"]
    assert decide_path(scope, b"a/b/d", True, read) is Reason.MULLIGANIGNORE
    assert decide_path(scope, b"a/b/d/x/y", False, read) is Reason.MULLIGANIGNORE
    asked.clear()
    assert decide_path(scope, b"skip/x/y", False, read) is Reason.GITIGNORE
    assert decide_path(scope, b"lib/.git/config", False, read) is Reason.ALWAYS
    assert asked == [b"lib"]
    assert decide_path(scope, b"node_modules/x", False, read) is Reason.DEFAULT

    nested = {b"lib": (None, None, b"/local\n")}
    answer = decide_path(scope, b"lib/local", False, lambda path: nested[path])
    assert answer is Reason.GITIGNORE


def test_the_key_changes_with_everything_that_can_change_a_decision() -> None:
    def below(scope: Scope) -> Scope:
        return scope.enter(b"d").enter(b"e")

    scopes = [
        root_scope(),
        root_scope(defaults=False),
        root_scope(gitignore=b"a"),
        root_scope(gitignore=b"b"),
        root_scope(mulliganignore=b"a"),
        root_scope(info_exclude=b"a"),
        root_scope(global_excludes=b"a"),
        root_scope(outer=[(b"p", b"a")], info_prefix=b"p"),
        root_scope(outer=[(b"q", b"a")], info_prefix=b"q"),
        root_scope(outer=[(b"p", b"")], info_prefix=b"p"),
    ]
    scopes += [below(scope) for scope in scopes]
    top = root_scope()
    scopes += [
        *(top.enter(b"de"), top.enter(b"d"), top.enter(b"d").enter(b"f")),
        *(top.enter(b"d", gitignore=b""), top.enter(b"d", gitignore=b"a")),
        *(top.enter(b"d", mulliganignore=b"a"), top.enter(b"d", info_exclude=b"a")),
        top.enter(b"d", gitignore=b"a", mulliganignore=b"a"),
    ]
    assert len({scope.key for scope in scopes}) == len(scopes)
    assert all(len(scope.key) == 16 for scope in scopes)
    again = root_scope(gitignore=b"a").enter(b"d", gitignore=b"b").enter(b"e")
    assert again.key == root_scope(gitignore=b"a").enter(b"d", gitignore=b"b").enter(b"e").key


def untracked(top: Path) -> set[bytes]:
    subprocess.run(["git", "init", "-q", top], check=True)
    listing = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(listing, cwd=top, capture_output=True, check=True)
    return set(done.stdout.split(b"\0")) - {b""}


def write(path: bytes, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
