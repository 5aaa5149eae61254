"""`mulligan diff` writes patches that `git apply` takes, and that lead to the same files."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from run import COMMAND, quick, write

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")

LINES = "".join(f"line {number}\n" for number in range(1, 31))

CASES = {
    "modified": ("printf 'a\\nb\\nc\\n' > f", "printf 'a\\nB\\nc\\n' > f"),
    "several hunks": (f"printf '{LINES}' > f", "sed -i -e 3d -e 20s/20/twenty/ -e 30d f"),
    "added": ("echo x > other", "printf 'a\\nb\\n' > d/new"),
    "deleted": ("printf 'a\\nb\\n' > f; echo x > other", "rm f"),
    "empty added": ("echo x > other", "touch empty"),
    "empty deleted": ("touch empty; echo x > other", "rm empty"),
    "emptied": ("echo x > f", ": > f"),
    "filled": (": > f", "echo x > f"),
    "mode": ("echo x > f", "chmod 755 f"),
    "mode back": ("echo x > f; chmod 755 f", "chmod 644 f"),
    "mode that git does not know": ("echo x > f", "chmod 600 f; echo y > f"),
    "mode and content": ("echo x > f", "chmod 755 f; echo y >> f"),
    "added executable": ("echo x > other", "echo run > f; chmod 755 f"),
    "renamed": (f"printf '{LINES}' > f", "mv f g"),
    "renamed into a folder": (f"printf '{LINES}' > f", "mv f d/g"),
    "renamed, edited, executable": (
        f"printf '{LINES}' > f",
        "mv f g; sed -i 5s/5/five/ g; chmod 755 g",
    ),
    "two renamed crosswise": (
        f"printf '{LINES}' > a; printf 'x{LINES}y' > b",
        "mv a t; mv b a; mv t b",
    ),
    "no final newline before": ("printf 'a\\nb' > f", "printf 'a\\nb\\n' > f"),
    "no final newline after": ("printf 'a\\nb\\n' > f", "printf 'a\\nb' > f"),
    "no final newline at all": ("printf 'a\\nb' > f", "printf 'c\\nb' > f"),
    "added without newline": ("echo x > other", "printf 'a' > f"),
    "crlf": ("printf 'a\\r\\nb\\r\\n' > f", "printf 'a\\r\\nc\\r\\n' > f"),
    "crlf to lf": ("printf 'a\\r\\nb\\r\\n' > f", "printf 'a\\nb\\n' > f"),
    "carriage returns inside": ("printf 'a\\rb\\n' > f", "printf 'a\\rc\\n' > f"),
    "form feeds and separators": ("printf 'a\\fb\\n\\xe2\\x80\\xa8' > f", "printf 'a\\fc\\n' > f"),
    "blank lines": ("printf '\\n\\n\\n' > f", "printf '\\n\\nx\\n\\n' > f"),
    "lines like headers": ("printf -- '--- a\\n+++ b\\n@@ x\\n' > f", "printf -- '-- a\\n' > f"),
    "link changed": ("ln -s one l; echo x > other", "ln -sfn two l"),
    "link added": ("echo x > other", "ln -s other l"),
    "link deleted": ("ln -s one l; echo x > other", "rm l"),
    "file becomes link": ("echo x > f; echo y > other", "rm f; ln -s other f"),
    "link becomes file": ("ln -s other f; echo y > other", "rm f; echo x > f"),
    "link with the bytes of a deleted file": ("printf g > f", "rm f; ln -s g h"),
    "file becomes folder": ("echo x > f", "rm f; mkdir f; echo y > f/in"),
    "folder becomes file": ("mkdir e; echo x > e/in", "rm -r e; echo y > e"),
    "spaces": ("echo x > 'a b'; echo x > ' '", "echo y > 'a b'; chmod 755 ' '"),
    "space renamed": (f"printf '{LINES}' > 'a b'", "mv 'a b' 'c d '"),
    "quotes": ("echo x > 'a\"b'", "echo y > 'a\"b'; chmod 755 'a\"b'"),
    "backslash added": ("echo x > other", "echo y > 'a\\b'"),
    "tab mode": ("echo x > $'a\\tb'", "chmod 755 $'a\\tb'"),
    "newline": ("echo x > $'a\\nb'", "echo y > $'a\\nb'"),
    "newline renamed": (f"printf '{LINES}' > $'a\\nb'", "mv $'a\\nb' $'c\\nd\"e'"),
    "newline deleted": ("echo x > $'a\\nb'; echo x > other", "rm $'a\\nb'"),
    "umlaut": ("echo x > ü", "mv ü ä; echo y > ö"),
    "not UTF-8": ("echo x > $'a\\xff'", "echo y > $'a\\xff'; echo z > $'b\\xfe'"),
    "text not UTF-8": (
        "printf 'caf\\351\\none\\n' > f",
        "printf 'caf\\350\\none\\n' > f; printf '\\225\\134\\r\\n' > g",
    ),
    "binary": ("printf 'a\\0b' > f; echo x > g", "printf 'a\\0c' > f; echo y > g"),
    "binary added": ("echo x > other", "head -c 5000 /dev/urandom > f"),
    "binary deleted": ("head -c 300 /dev/urandom > f; echo x > other", "rm f"),
    "binary emptied": ("printf 'a\\0b' > f", ": > f"),
    "binary becomes text": ("printf 'a\\0b' > f", "echo text > f"),
    "binary renamed": ("head -c 5000 /dev/urandom > f", "mv f d/g; chmod 755 d/g"),
    "large text": ("seq 200000 > f", "seq 200001 > f"),
    "folders": ("mkdir e; echo x > f", "rmdir e; mkdir n; chmod 700 d; echo y > f"),
    "like git's prefixes": ("mkdir -p a/b; echo x > a/b/a", "echo y > a/b/a; echo z > b"),
}


@pytest.mark.parametrize("name", CASES)
def test_git_applies_the_patch_and_arrives_at_the_same_files(
    project: Path, tmp_path: Path, name: str
) -> None:
    start, change = CASES[name]
    sh(project, f"mkdir d; echo stays > d/stays; {start}")
    other = tmp_path / "other"
    shutil.copytree(project, other, symlinks=True)
    sh(other, "git init -q; git add -A -f; git commit -qm start")
    quick("checkpoint", project=project)
    sh(project, change)
    patch = quick("diff", project=project).stdout
    done = subprocess.run(
        ["git", "apply", "-v", "--whitespace=nowarn"],
        cwd=other,
        input=patch,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (patch, done.stderr)
    assert looks(other) == looks(project), patch


def test_the_patch_between_two_checkpoints_applies_too(project: Path, tmp_path: Path) -> None:
    write(project, {"f": LINES, "moved": LINES + "x\n"})
    other = tmp_path / "other"
    shutil.copytree(project, other)
    quick("checkpoint", project=project)
    write(project, {"f": LINES.replace("7", "seven"), "new": "n"})
    (project / "moved").rename(project / "was moved")
    quick("checkpoint", project=project)
    patch = quick("diff", "@1", "@", project=project).stdout
    assert b"rename from moved\nrename to was moved\n" in patch
    sh(other, "git init -q")
    subprocess.run(["git", "apply"], cwd=other, input=patch, check=True)
    assert looks(other) == looks(project)


def test_stat_says_how_many_lines_and_no_more(project: Path) -> None:
    write(project, {"f": LINES, "gone": "1\n2\n"})
    quick("checkpoint", project=project)
    write(project, {"f": LINES + "more\n", "new": "other\n"})
    (project / "gone").unlink()
    done = quick("diff", "--stat", project=project)
    assert [line.split() for line in done.lines] == [
        ["M", "f", "+1", "−0"],
        ["D", "gone", "+0", "−2"],
        ["A", "new", "+1", "−0"],
    ]
    assert "3 files" in done.stderr and "+2 −2" in done.stderr


def test_a_file_that_is_too_large_for_a_patch_is_named_and_the_rest_applies(
    project: Path, tmp_path: Path
) -> None:
    write(project, {"text": "old\n", "mode": "x"})
    shutil.copytree(project, tmp_path / "other")
    quick("checkpoint", project=project)
    write(project, {"text": "new\n", "large": bytes((16 << 20) + 1)})
    (project / "mode").chmod(0o755)
    done = quick("diff", project=project)
    assert "Not in the patch" in done.stderr and "large" in done.stderr
    subprocess.run(["git", "apply"], cwd=tmp_path / "other", input=done.stdout, check=True)
    (project / "large").unlink()
    assert looks(tmp_path / "other") == looks(project)


def test_on_a_terminal_binary_files_are_named_and_nothing_disturbs_it(project: Path) -> None:
    write(project, {"bin": b"\0old", "large": "old\n" * (1 << 18), "text": "old\n"})
    quick("checkpoint", project=project)
    write(project, {"large": "old\n" * (1 << 18) + "new\n"})
    write(project, {"bin": b"\0new", "text": "\x1b]0;title\x07 \u202e\tnew\n"})
    seen = on_a_terminal(project, "diff")
    assert "Binary files a/bin and b/bin differ" in seen
    assert "Large files a/large and b/large differ" in seen
    assert "\\x1b]0;title\\x07 \\xe2\\x80\\xae\tnew" in seen
    assert not re.search(r"\x1b[^\[]|\x07|\u202e", seen)


def on_a_terminal(project: Path, *arguments: str) -> str:
    """What a terminal is sent."""
    leader, follower = os.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=project, stdout=follower, stderr=subprocess.DEVNULL
    ):
        os.close(follower)
        seen = b""
        # On Linux, reading ends with an error once the last program has closed its side.
        with contextlib.suppress(OSError):
            while part := os.read(leader, 65536):
                seen += part
    os.close(leader)
    return seen.decode()


def sh(directory: Path, command: str) -> None:
    subprocess.run(["bash", "-ec", command], cwd=directory, check=True)


def looks(project: Path) -> dict[bytes, tuple[bool, bytes]]:
    """Each file with its bytes and whether it is executable, which is all that git knows."""
    top, found = os.fsencode(project), {}
    for directory, folders, files in os.walk(top):
        folders[:] = [each for each in folders if each != b".git"]
        for each in files:
            path = os.path.join(directory, each)
            name = os.path.relpath(path, top)
            if os.path.islink(path):
                found[name] = (False, b"link to " + os.readlink(path))
            else:
                executable = bool(os.stat(path).st_mode & 0o100)
                with open(path, "rb") as file:
                    found[name] = (executable, file.read())
    return found
