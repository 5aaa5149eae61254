"""What every command answers with `--json`: the fields, and what is in them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from run import mull, quick, write

CHECKPOINT = {
    "checkpoint", "tree", "kind", "message", "created_at", "files", "bytes", "coverage",
}  # fmt: skip
CHANGED = {
    "path", "status", "additions", "deletions", "diff", "base_content", "is_binary",
    "is_too_large",
}  # fmt: skip
RESTORED = {
    "operation", "safety_checkpoint", "restored", "deleted", "skipped", "dirty", "verified",
}  # fmt: skip
MIB = 1 << 20


def status_of(project: Path) -> dict[str, dict[str, Any]]:
    found = quick("--json", "status", project=project).json["changed_files"]
    assert [each["path"] for each in found] == sorted(each["path"] for each in found)
    assert all(each.keys() >= CHANGED for each in found)
    return {each["path"]: each for each in found}


def test_checkpoint_answers_with_its_identity_counts_changes_and_coverage(project: Path) -> None:
    write(project, {"a": "12", "d/b": "345"})
    os.mkfifo(project / "pipe")
    found = quick("checkpoint", "-m", "one", "--json", project=project).json
    assert found.keys() >= CHECKPOINT | {"changes"}
    assert found["changes"] == {"added": 2, "modified": 0, "deleted": 0}
    assert (found["files"], found["bytes"]) == (2, 5)
    assert (found["kind"], found["message"]) == ("manual", "one")
    assert found["coverage"]["complete"] is False
    assert found["coverage"]["skipped"] == [{"path": "pipe", "reason": "is a named pipe"}]
    assert len(found["tree"]) == 64 and found["created_at"].endswith("Z")
    write(project, {"a": "x", "c": "x"})
    (project / "d/b").unlink()
    (project / "pipe").unlink()
    found = quick("checkpoint", "--json", project=project).json
    assert found["changes"] == {"added": 1, "modified": 1, "deleted": 1}
    assert found["coverage"]["complete"] is True and found["coverage"]["skipped"] == []


def test_log_lists_checkpoints_newest_first(project: Path) -> None:
    ids = [quick("checkpoint", "--json", project=project).json["checkpoint"] for _ in range(3)]
    found = quick("log", "--json", project=project).json["checkpoints"]
    assert [each["checkpoint"] for each in found] == ids[::-1]
    assert all(each.keys() >= CHECKPOINT for each in found)
    assert len(quick("log", "-n", "2", "--json", project=project).json["checkpoints"]) == 2
    assert quick("log", "-n", "0", "--json", project=project).json == {"checkpoints": []}


def test_status_describes_text_that_was_added_modified_or_deleted(project: Path) -> None:
    write(project, {"modified": "1\n2\n3\n", "deleted": "1\n2", "same": "s", "emptied": "x\n"})
    taken = quick("checkpoint", "--json", project=project).json["checkpoint"]
    write(project, {"modified": "1\ntwo\n3\n4\n", "added": "a\nb\n", "emptied": ""})
    (project / "deleted").unlink()
    answer = quick("status", "--json", project=project).json
    assert answer["checkpoint"] == taken
    found = status_of(project)
    assert found.keys() == {"added", "deleted", "emptied", "modified"}
    check = {name: {key: found[name][key] for key in CHANGED - {"path"}} for name in found}
    plain = {"is_binary": False, "is_too_large": False}
    assert check["added"] == plain | {
        "status": "added", "additions": 2, "deletions": 0, "diff": None, "base_content": None,
    }  # fmt: skip
    assert check["deleted"] == plain | {
        "status": "deleted", "additions": 0, "deletions": 2, "diff": None, "base_content": "1\n2",
    }  # fmt: skip
    assert check["modified"] == plain | {
        "status": "modified", "additions": 2, "deletions": 1, "base_content": "1\n2\n3\n",
        "diff": "--- a/modified\n+++ b/modified\n@@ -1,3 +1,4 @@\n 1\n-2\n+two\n 3\n+4\n",
    }  # fmt: skip
    assert (check["emptied"]["additions"], check["emptied"]["deletions"]) == (0, 1)


@pytest.mark.parametrize(
    ("content", "binary"),
    [
        (b"text\n", False),
        ("ünïcode\n".encode(), False),
        (b"a\0b\n", True),
        (b"x" * 8000 + b"\0", True),
        (b"caf\xe9\n", False),
        ("wide".encode("utf-16"), True),
        (b"\r\n\t\x1b[0m", False),
        (b"", False),
    ],
)
def test_status_of_binary_content_has_no_lines_and_no_base(
    project: Path, content: bytes, binary: bool
) -> None:
    write(project, {"was": content, "changed": content + b"old", "stays": ""})
    quick("checkpoint", project=project)
    (project / "was").unlink()
    write(project, {"changed": content + b"new", "is": content})
    found = status_of(project)
    for name in ("was", "changed", "is"):
        assert found[name]["is_binary"] is binary
        if binary:
            assert (found[name]["additions"], found[name]["deletions"]) == (0, 0)
            assert found[name]["diff"] is None and found[name]["base_content"] is None
    if not binary:
        assert found["was"]["base_content"] == content.decode(errors="replace")
        assert found["changed"]["diff"] is not None


def test_status_of_files_above_one_mebibyte_has_no_content(project: Path) -> None:
    line = b"0123456789abcde\n"
    exact, above = line * (MIB // 16), line * (MIB // 16) + b"\n"
    write(project, {"exact": exact, "above": above, "grows": "1\n", "gone": above})
    quick("checkpoint", project=project)
    write(project, {"exact": b"F" + exact[1:], "above": b"F" + above[1:], "grows": above})
    write(project, {"new": above})
    (project / "gone").unlink()
    found = status_of(project)
    assert {name for name, each in found.items() if each["is_too_large"]} == {
        "above", "grows", "gone", "new",
    }  # fmt: skip
    for name in ("above", "grows", "gone", "new"):
        assert found[name]["diff"] is None and found[name]["base_content"] is None
    assert found["exact"]["base_content"] == exact.decode()
    assert (found["exact"]["additions"], found["exact"]["deletions"]) == (1, 1)


def test_status_of_modes_links_and_crlf(project: Path) -> None:
    write(project, {"mode": "1\n", "crlf": "a\r\nb\r\n", "tail": "a\nb"})
    (project / "link").symlink_to("one")
    quick("checkpoint", project=project)
    (project / "mode").chmod(0o755)
    write(project, {"crlf": "a\r\nc\r\n", "tail": "a\nb\n"})
    (project / "link").unlink()
    (project / "link").symlink_to("two")
    found = status_of(project)
    assert {name: each["status"] for name, each in found.items()} == dict.fromkeys(
        ("crlf", "link", "mode", "tail"), "modified"
    )
    assert (found["mode"]["additions"], found["mode"]["diff"]) == (0, None)
    assert found["crlf"]["base_content"] == "a\r\nb\r\n"
    assert "-b\r\n+c\r\n" in found["crlf"]["diff"]
    assert "\\ No newline at end of file" in found["tail"]["diff"]
    assert found["link"]["base_content"] == "one"


def test_diff_lists_files_with_renames_between_any_two_states(project: Path) -> None:
    write(project, {"a": "1\n", "moved": "".join(f"{n}\n" for n in range(30))})
    first = quick("checkpoint", "--json", project=project).json["checkpoint"]
    (project / "moved").rename(project / "renamed")
    write(project, {"a": "2\n"})
    second = quick("checkpoint", "--json", project=project).json["checkpoint"]
    write(project, {"a": "3\n"})
    both = quick("diff", first, second, "--json", project=project).json
    assert (both["from"], both["to"]) == (first, second)
    rows = {each["path"]: each for each in both["files"]}
    assert rows.keys() == {"a", "renamed"}
    assert (rows["renamed"]["status"], rows["renamed"]["old_path"]) == ("renamed", "moved")
    disk = quick("diff", "--json", project=project).json
    assert (disk["from"], disk["to"]) == (second, None)
    assert [each["path"] for each in disk["files"]] == ["a"]
    one = quick("diff", "@1", "@", str(project / "a"), "--json", project=project).json
    assert [each["path"] for each in one["files"]] == ["a"]
    assert "-1\n+2\n" in one["files"][0]["diff"]


def test_show_gives_a_checkpoint_with_its_entries_or_the_bytes_of_a_file(project: Path) -> None:
    content = bytes(range(256))
    write(project, {"d/bin": content})
    quick("checkpoint", "-m", "shown", project=project)
    found = quick("show", "@", "--json", project=project).json
    assert found.keys() >= CHECKPOINT and found["message"] == "shown"
    entries = {each["path"]: each for each in found["entries"]}
    assert entries["d/bin"]["kind"] == "file" and entries["d/bin"]["size"] == 256
    assert entries["d/bin"]["id"] == hashlib.sha256(content).hexdigest()
    file = quick("show", "@:d/bin", "--json", project=project).json
    assert base64.b64decode(file["content_base64"]) == content
    assert (file["path"], file["size"]) == ("d/bin", 256)


def test_restore_undo_and_redo_say_what_they_did(project: Path) -> None:
    write(project, {"a": "1", "gone": "1"})
    first = quick("checkpoint", "--json", project=project).json["checkpoint"]
    write(project, {"a": "2", "new": "2"})
    (project / "gone").unlink()
    plan = quick("restore", "@", "--preview", "--json", project=project).json
    assert plan["preview"] is True and (project / "a").read_text() == "2"
    done = quick("restore", "@", "--json", project=project).json
    assert done.keys() >= RESTORED
    assert done["restored"] == ["a", "gone"] and done["deleted"] == ["new"]
    assert {key: done[key] for key in ("restored", "deleted", "skipped", "dirty")} == {
        key: plan[key] for key in ("restored", "deleted", "skipped", "dirty")
    }
    assert done["dirty"] == ["a", "new"] and done["skipped"] == []
    assert done["verified"] is True and isinstance(done["operation"], int)
    shown = quick("show", f"{done['safety_checkpoint']}:new", project=project)
    assert shown.stdout == b"2"
    undone = quick("undo", "--json", project=project).json
    assert undone.keys() >= RESTORED and undone["undoes"] == done["operation"]
    assert undone["restored"] == ["a", "new"] and undone["deleted"] == ["gone"]
    again = quick("redo", "--json", project=project).json
    assert again.keys() >= RESTORED and again["undoes"] == undone["operation"]
    assert again["restored"] == ["a", "gone"] and again["deleted"] == ["new"]
    rows = quick("operations", "--json", project=project).json["operations"]
    assert [(row["kind"], row["state"]) for row in rows] == [
        ("redo", "applied"), ("undo", "applied"), ("restore", "applied"), ("checkpoint", "applied"),
    ]  # fmt: skip
    assert [row["operation"] for row in rows] == [4, 3, 2, 1]
    assert rows[2]["target"] == first
    assert len(quick("operations", "-n", "1", "--json", project=project).json["operations"]) == 1


def test_skipped_paths_come_with_their_reasons(project: Path) -> None:
    write(project, {"a": "1", "b": "1"})
    quick("checkpoint", project=project)
    write(project, {"b": "2"})
    quick("checkpoint", project=project)
    write(project, {"a": "mine"})
    done = quick("restore", "@1", "--keep-dirty", "--json", project=project).json
    assert done["restored"] == ["b"]
    assert [each["path"] for each in done["skipped"]] == ["a"] and done["skipped"][0]["reason"]
    assert (project / "a").read_text() == "mine"


def test_verify_gc_forget_doctor_and_completion_answer_with_data(project: Path) -> None:
    for number in range(4):
        write(project, {"a": os.urandom(3000).hex(), "b": str(number)})
        quick("checkpoint", project=project)
    assert quick("verify", "--json", project=project).json["clean"] is True
    assert quick("verify", "--json", project=project).json["problems"] == []
    planned = quick("forget", "--keep-last", "1", "--dry-run", "--json", project=project).json
    assert len(planned["forgotten"]) == 3 and planned["dry_run"] is True
    dropped = quick("forget", "--keep-last", "1", "--json", project=project).json
    assert dropped["forgotten"] == planned["forgotten"] and dropped["kept"] == 1
    would = quick("gc", "--dry-run", "--json", project=project).json
    freed = quick("gc", "--json", project=project).json
    assert freed.keys() >= {"removed", "freed_bytes"}
    assert freed["removed"] == would["removed"] > 0 and freed["freed_bytes"] > 8000
    doctor = quick("doctor", "--json", project=project).json
    assert doctor["healthy"] is True
    assert {"level", "subject", "message", "fix"} <= doctor["findings"][0].keys()
    script = quick("completion", "bash", "--json", project=project).json
    assert script["shell"] == "bash" and "mulligan" in script["script"]


def test_forget_without_options_does_as_the_settings_say(project: Path) -> None:
    for number in range(3):
        write(project, {"a": str(number)})
        quick("checkpoint", project=project)
    refused = quick("forget", project=project, code=2)
    assert "[retention]" in refused.stderr
    write(project, {".mulligan.toml": "[retention]\nkeep_last = 2\n"})
    quick("forget", project=project, code=2)
    quick("trust", "--yes", project=project)
    assert quick("forget", "--json", project=project).json["kept"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["show", "nope"], 3, "not_found"),
        (["status", "--wrong"], 2, "usage"),
        (["undo"], 3, "nothing_to_undo"),
        (["restore", "@", "no-such-path"], 3, "not_found"),
        (["restore", "@", "../outside"], 2, "usage"),
        (["restore", "@", "--force", "--keep-dirty"], 2, "usage"),
        (["forget"], 2, "usage"),
        (["forget", "--older-than", "soon"], 2, "usage"),
        (["forget", "--max-size", "much"], 2, "usage"),
    ],
)
def test_errors_are_data_too(project: Path, arguments: list[str], code: int, word: str) -> None:
    write(project, {"a": "1"})
    quick("checkpoint", project=project)
    done = quick("--json", *arguments, project=project, code=code)
    assert done.json["error"]["code"] == word
    assert done.json["error"]["message"] in done.stderr.replace("\n", " ")


ODD = [
    b"latin-\xff", b"new\nline", b'quo"te', b"back\\slash", b"tab\t", b"\x01\x1b[31m",
    "ünï".encode(), b" ", b"-n", b"@1", b"a:b", b"\xed\xa0\x80", "\U0001f600".encode(),
]  # fmt: skip


def test_odd_names_give_valid_json_everywhere(project: Path) -> None:
    for name in ODD:
        write(project, {os.fsdecode(name): "1\n"})
    names = sorted(os.fsdecode(name) for name in ODD)
    first = quick("checkpoint", "--json", project=project).json
    assert first["files"] == len(ODD)
    for name in ODD[::2]:
        write(project, {os.fsdecode(name): "2\n"})
    for name in ODD[1::2]:
        (project / os.fsdecode(name)).unlink()
    os.mkfifo(project / os.fsdecode(b"pipe\xff\n"))
    found = quick("status", "--json", project=project).json
    assert sorted(each["path"] for each in found["changed_files"]) == names
    assert [each["path"] for each in found["coverage"]["skipped"]] == [os.fsdecode(b"pipe\xff\n")]
    assert len(quick("diff", "--json", project=project).json["files"]) == len(ODD)
    entries = quick("show", "@", "--json", project=project).json["entries"]
    assert sorted(each["path"] for each in entries) == names
    assert sorted(quick("restore", "@", "--json", project=project).json["restored"]) == names
    notes = quick("doctor", "--json", project=project).json["findings"]
    assert [each["message"] for each in notes if "pipe" in each["message"]]
    for command in ("status", "diff", "log", "operations", "doctor"):
        quick(command, project=project, code=None)
    quick("undo", "--json", project=project)
    quick("log", "--json", project=project)


def test_json_can_be_read_by_other_programs(project: Path) -> None:
    write(project, {"a": "1\n", "ü": "1\n"})
    mull("checkpoint", cwd=project)
    write(project, {"a": "2\n"})
    read = "import json,sys; print(json.load(sys.stdin)['changed_files'][0]['path'])"
    status = mull("status", "--json", cwd=project)
    assert status.stderr == ""
    assert status.stdout.isascii() and status.stdout.count(b"\n") == 1
    done = subprocess.run(
        ["python3", "-c", read], input=status.stdout, capture_output=True, check=True
    )
    assert done.stdout == b"a\n" and json.loads(status.stdout)
