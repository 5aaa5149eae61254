"""The commands as people use them: words to stderr, data to stdout, and what happens on disk."""

from __future__ import annotations

import os
import pydoc
import re
import shlex
import shutil
import string
import subprocess
import sys
from pathlib import Path

import click
import pytest

import mulligan
from mulligan.cli import output
from mulligan.cli.group import COMMANDS
from mulligan.cli.group import mulligan as group
from mulligan.cli.output import Output, Progress
from mulligan.errors import MulliganError
from run import COMMAND, mull, quick, write


def taken(project: Path, *arguments: str) -> str:
    return quick("checkpoint", *arguments, project=project).stdout.decode().strip()


def error_classes(top: type[MulliganError]) -> list[type[MulliganError]]:
    return [top, *(each for below in top.__subclasses__() for each in error_classes(below))]


def test_checkpoint_prints_its_name_to_stdout_and_words_to_stderr(project: Path) -> None:
    write(project, {"a": "1"})
    done = mull("checkpoint", "-m", "first", cwd=project)
    (name,) = done.lines
    assert len(name) == 16 and name.isalnum()
    assert "1 file" in done.stderr and "1 added" in done.stderr
    assert mull("show", f"{name}:a", cwd=project).stdout == b"1"


def test_data_goes_to_stdout_and_words_to_stderr(project: Path) -> None:
    write(project, {"a": "1\n"})
    taken(project)
    assert quick("status", project=project).stdout == b""
    assert "Nothing changed" in quick("status", project=project).stderr
    write(project, {"a": "2\n", "new": "n\n"})
    done = quick("status", project=project)
    assert [line.split()[:2] for line in done.lines] == [["M", "a"], ["A", "new"]]
    assert "Since checkpoint" in done.stderr
    done = quick("restore", "@", project=project)
    assert [line.split()[:2] for line in done.lines] == [["R", "a"], ["D", "new"]]
    assert "mulligan undo" in done.stderr
    assert quick("verify", project=project).stdout == b""
    assert quick("gc", project=project).stdout == b""
    assert quick("show", "nope", project=project, code=3).stdout == b""


def test_output_to_a_file_has_no_colours_and_no_progress(project: Path) -> None:
    write(project, {f"f{number}": "x" * 1000 for number in range(300)})
    mull("checkpoint", cwd=project)
    write(project, {"f1": "y"})
    for command in ("status", "diff"):
        done = mull(command, cwd=project)
        assert b"\x1b" not in done.stdout and "\x1b" not in done.stderr


def test_log_shows_positions_that_can_be_used_as_names(project: Path) -> None:
    for message in ("one", "two", "three"):
        taken(project, "-m", message)
    lines = quick("log", project=project).lines
    assert [(line.split()[1], line.split()[-1]) for line in lines] == [
        ("@", "three"),
        ("@1", "two"),
        ("@2", "one"),
    ]


def test_show_gives_exact_bytes(project: Path) -> None:
    contents = {"bin": bytes(range(256)), "crlf": b"a\r\n", "empty": b"", "a:b": b"colon"}
    write(project, contents)
    taken(project)
    write(project, dict.fromkeys(contents, "changed"))
    for name, content in contents.items():
        assert quick("show", f"@:{name}", project=project).stdout == content
    assert mull("show", "@:bin", cwd=project).stdout == contents["bin"]


def test_guarded_files_can_be_shown_and_restored_by_name(project: Path) -> None:
    write(project, {".gitignore": ".env\n", ".env": "KEY=1\n"})
    taken(project)
    write(project, {".env": "KEY=2\n"})
    assert quick("show", "@:.env", project=project).stdout == b"KEY=1\n"
    assert quick("status", "--json", project=project).json["changed_files"] == []
    quick("restore", "@", project=project)
    assert (project / ".env").read_text() == "KEY=2\n"
    quick("restore", "@", str(project / ".env"), project=project)
    assert (project / ".env").read_text() == "KEY=1\n"
    quick("undo", project=project)
    assert (project / ".env").read_text() == "KEY=2\n"


@pytest.mark.parametrize("position", ["before", "after"])
def test_directory_and_json_are_taken_before_and_after_the_command(
    project: Path, tmp_path: Path, position: str
) -> None:
    write(project, {"a": "1"})
    options = ["-C", str(project), "--json"]
    for command in (["checkpoint"], ["show", "@"], ["undo", "--preview"]):
        line = [*options, *command] if position == "before" else [*command, *options]
        code = 3 if "undo" in command else 0
        assert isinstance(mull(*line, cwd=tmp_path, code=code).json, dict)


def test_a_relative_directory_counts_from_where_the_user_is(project: Path) -> None:
    write(project, {"sub/deeper/a": "1"})
    mull("-C", "sub", "checkpoint", cwd=project)
    write(project, {"sub/deeper/a": "2"})
    mull("-C", "sub", "restore", "@", "deeper/a", cwd=project)
    assert (project / "sub/deeper/a").read_text() == "1"


def test_a_subdirectory_works_on_the_whole_project_with_paths_from_there(project: Path) -> None:
    write(project, {"top": "1", "sub/a": "1", "sub/b": "1"})
    id = taken(project)
    write(project, {"top": "2", "sub/a": "2", "sub/b": "2"})
    below = project / "sub"
    rows = quick("status", "--json", project=below).json["changed_files"]
    assert [each["path"] for each in rows] == ["sub/a", "sub/b", "top"]
    one = quick("diff", "--json", "./a", project=below).json["files"]
    assert [each["path"] for each in one] == ["sub/a"]
    mull("restore", id, "a", "../top", cwd=below)
    assert (project / "top").read_text() + (below / "a").read_text() == "11"
    assert (below / "b").read_text() == "2"
    mull("restore", id, ".", cwd=below)
    assert (below / "b").read_text() == "1"


def test_a_path_with_spaces_and_other_oddities_works(tmp_path: Path) -> None:
    project = tmp_path / " my 'odd' pröject\n$(x) "
    write(project, {"a file": "1\n", "sub dir/b": "1\n"})
    mull("checkpoint", cwd=project)
    write(project, {"a file": "2\n", "sub dir/b": "2\n"})
    assert mull("diff", "a file", cwd=project).stdout.count(b"diff --git") == 1
    mull("restore", "@", "a file", "sub dir", cwd=project)
    assert (project / "a file").read_text() == "1\n"
    assert mull("status", "--json", cwd=project).json["changed_files"] == []


def test_undo_goes_one_further_each_time_and_redo_comes_back(project: Path) -> None:
    states = []
    for number in range(5):
        write(project, {"f": f"{number}", f"only{number}": "x"})
        taken(project)
    for steps in (1, 3, 2, 4):
        quick("restore", f"@{steps}", project=project)
        states.append((project / "f").read_text())
    assert len(set(states)) > 1
    for expected in (*states[-2::-1], "4"):
        quick("undo", project=project)
        assert (project / "f").read_text() == expected
        taken(project)
        quick("status", project=project)
    quick("undo", project=project, code=3)
    for expected in states:
        quick("redo", project=project)
        assert (project / "f").read_text() == expected
        taken(project)
    quick("redo", project=project, code=3)
    assert quick("verify", "--json", project=project).json["clean"]


def test_undo_keeps_what_was_done_since_elsewhere(project: Path) -> None:
    write(project, {"a": "1", "b": "1"})
    taken(project)
    write(project, {"a": "2"})
    quick("restore", "@", project=project)
    write(project, {"b": "mine", "new": "mine"})
    quick("undo", project=project)
    assert (project / "a").read_text() == "2"
    assert (project / "b").read_text() == (project / "new").read_text() == "mine"


def test_preview_changes_nothing_on_disk_or_in_the_log(project: Path) -> None:
    write(project, {"a": "1"})
    taken(project)
    write(project, {"a": "2"})
    quick("restore", "@", project=project)
    write(project, {"a": "3"})
    before = [quick(name, "--json", project=project).json for name in ("log", "operations")]
    for command in (["restore", "@"], ["undo"], ["restore", "@", "a"]):
        line = [each if each != "a" else str(project / "a") for each in command]
        done = quick(*line, "--preview", project=project)
        assert "Nothing was changed" in done.stderr
        assert (project / "a").read_text() == "3"
    assert before == [quick(name, "--json", project=project).json for name in ("log", "operations")]


def test_checkpoints_are_named_by_id_unambiguous_prefix_or_position(project: Path) -> None:
    ids = []
    for number in range(33):  # more than there are letters: two begin alike
        write(project, {"f": str(number)})
        with mulligan.open(project) as workspace:
            ids.append(workspace.checkpoint().id)
    first = [id[0] for id in ids]
    shared = next(letter for letter in first if first.count(letter) > 1)
    done = quick("--json", "show", shared, project=project, code=3)
    assert done.json["error"]["code"] == "ambiguous"
    assert "more characters" in done.stderr
    for number in (0, 7, 32):
        for name in (ids[number], ids[number][:12], f"@{32 - number}"):
            shown = quick("show", f"{name}:f", project=project)
            assert shown.stdout == str(number).encode()
    for name in ("@33", "@-1", "@x", "@ 1", "@99999999999", "ZZZZ", ids[0] + "0", "%", "_" * 16):
        quick("show", name, project=project, code=3)
        quick("restore", name, project=project, code=3)
    for letter in set(string.ascii_lowercase) - set(first):
        quick("show", letter, project=project, code=3)


def test_a_name_that_is_a_checkpoint_and_a_path_must_be_told_apart(project: Path) -> None:
    write(project, {"a": "1\n"})
    id = taken(project)
    write(project, {id: "a file named like it\n", "a": "2\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        quick("diff", id, project=project, code=2)
        done = quick("diff", f"./{id}", project=project)
    assert done.stdout.count(b"diff --git") == 1 and id.encode() in done.stdout


def test_a_path_is_not_taken_for_a_checkpoint_whose_id_happens_to_begin_so(project: Path) -> None:
    write(project, {"other": "1\n"})
    letter = taken(project)[0]
    write(project, {letter: "a short name\n", "other": "2\n"})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        done = quick("--json", "diff", letter, project=project)
    assert [each["path"] for each in done.json["files"]] == [letter]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status"], 0),
        (["status", "--no-such-option"], 2),
        (["no-such-command"], 2),
        (["restore"], 2),
        (["log", "-n", "-1"], 2),
        (["log", "-n", "many"], 2),
        (["restore", "@", "/etc/passwd"], 2),
        (["completion", "powershell"], 2),
        (["watch", "--checkpoint-after", "0"], 2),
        (["show", "nope"], 3),
        (["show", "@:nope"], 3),
        (["restore", "nope"], 3),
        (["restore", "@", "nope"], 3),
        (["diff", "@7"], 3),
        (["undo"], 3),
        (["redo"], 3),
        (["-C", "/no/such/directory", "status"], 3),
        (["-C", "/", "checkpoint"], 2),
    ],
)
def test_exit_codes(project: Path, arguments: list[str], code: int) -> None:
    write(project, {"a": "1"})
    taken(project)
    done = quick(*arguments, project=project, code=code)
    assert bool(done.stderr) or code == 0


def test_a_project_without_history_is_not_found_and_stays_without(
    project: Path, mulligan_home: Path
) -> None:
    for command in ("status", "log", "diff", "undo", "verify", "gc", "operations"):
        done = quick(command, project=project, code=3)
        assert "mulligan checkpoint" in done.stderr
    assert not list(mulligan_home.glob("projects/*/journal.sqlite"))


def test_a_damaged_store_gives_exit_code_1_and_says_what_to_do(
    project: Path, mulligan_home: Path
) -> None:
    write(project, {"a": os.urandom(3000)})
    taken(project)
    (pack,) = mulligan_home.glob("projects/*/objects/*.pack")
    content = bytearray(pack.read_bytes())
    content[content.index((project / "a").read_bytes()[:40])] ^= 0xFF
    pack.write_bytes(content)
    done = quick("verify", project=project, code=1)
    assert done.stdout and "repair" in done.stderr
    assert quick("--json", "verify", project=project, code=1).json["clean"] is False
    assert (
        quick("--json", "show", "@:a", project=project, code=1).json["error"]["code"] == "corrupt"
    )
    quick("verify", "--repair", project=project, code=1)
    quick("checkpoint", project=project)
    assert quick("show", "@:a", project=project).stdout == (project / "a").read_bytes()
    quick("verify", project=project)


def test_every_error_has_a_code_of_its_own_and_an_exit_status() -> None:
    everywhere = error_classes(MulliganError)
    classes = [each for each in everywhere if each.__module__ == "mulligan.errors"]
    assert len(classes) > 10
    codes = [each.code for each in classes]
    assert len(set(codes)) == len(codes)
    # Those that a room makes for itself are translated as what they are.
    assert {each.code for each in everywhere} == set(codes)
    assert {each.__name__: output.exit_status(each.code) for each in classes}
    assert set(codes) == set(output.EXIT)
    assert {output.EXIT[code] for code in codes} == {1, 2, 3, 4, 5}
    assert all(issubclass(getattr(mulligan, each.__name__), MulliganError) for each in classes)


def parsed(line: str) -> tuple[str, click.Context]:
    """The command of an example, parsed as click would, and not run."""
    words = shlex.split(line)
    assert words[0] == "mulligan"
    top = group.make_context("mulligan", words[1:])
    name, command, rest = group.resolve_command(top, [*top._protected_args, *top.args])
    assert command is not None and name is not None
    return name, command.make_context(name, rest, parent=top)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_and_every_example_parses(name: str, project: Path) -> None:
    done = quick(name, "--help", project=project)
    text = done.stdout.decode()
    assert done.stderr == "" and "Usage: mulligan" in text
    assert "--json" in text and "-C DIR" in text
    _before, found, examples = text.partition("Examples:\n")
    assert found
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("#")]
    assert lines
    assert any(line.startswith(f"mulligan {name}") for line in lines)
    for line in lines:
        for part in line.split("&&"):
            command = re.split(r"\s{2,}|[|>]", part.strip())[0]
            assert parsed(command)[0] in COMMANDS


def test_help_of_the_whole_lists_every_command(project: Path) -> None:
    text = mull("--help", cwd=project).stdout.decode()
    for name, words in COMMANDS.items():
        assert name in text and words.split(",")[0] in text
    assert mull("-h", cwd=project).stdout.decode() == text
    bare = mull(cwd=project, code=None)
    assert "Usage: mulligan" in bare.stdout.decode() + bare.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_completes_checkpoints(project: Path, shell: str) -> None:
    script = mull("completion", shell, cwd=project).stdout.decode()
    assert "_MULLIGAN_COMPLETE" in script
    if shell == "bash":
        id = mull("checkpoint", cwd=project).lines[0]
        environment = {
            **os.environ,
            "_MULLIGAN_COMPLETE": "bash_complete",
            "COMP_WORDS": f"mulligan show {id[:3]}",
            "COMP_CWORD": "2",
        }
        assert id in mull(cwd=project, env=environment).stdout.decode()


@pytest.mark.skipif(shutil.which("bash") is None, reason="asks a real bash")
def test_bash_completes_what_can_be_named_here(project: Path, tmp_path: Path) -> None:
    # No id begins with a "u".
    write(project, {"useful": "1"})
    taken(project)
    quick("turn", "begin", "--new", "message", project=project)
    write(project, {"useful": "2", "odd\nname": "2"})
    quick("turn", "end", "@", project=project)
    session = quick("sessions", "--json", project=project).json["sessions"][0]["session"]
    program = tmp_path / "mulligan"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mulligan "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def completed(*words: str) -> list[str]:
        script = (
            f"source <(mulligan completion bash); COMP_WORDS=({shlex.join(words)})\n"
            f"COMP_CWORD={len(words) - 1}; _mulligan_completion mulligan\n"
            "printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        done = subprocess.run(
            ["bash", "-c", script], cwd=project, env=environment, capture_output=True, check=True
        )
        assert done.stderr == b""
        return done.stdout.decode().split()

    assert completed("mulligan", "resto") == ["restore"]
    assert completed("mulligan", "restore", "@") == ["@", "@1", "@2"]
    assert session in completed("mulligan", "session", "show", "")
    assert session in completed("mulligan", "-C", str(project), "turn", "end", session[:3])
    assert completed("mulligan", "keep", "u") == ["useful"]
    assert completed("mulligan", "keep", "odd") == []


def test_doctor_speaks_of_agents_where_there_is_no_project_yet(project: Path) -> None:
    found = quick("doctor", "--json", project=project).json
    assert found["healthy"] and "mulligan checkpoint" in found["findings"][0]["message"]


def test_names_and_messages_cannot_disturb_the_terminal(project: Path) -> None:
    write(project, {"evil\x1b[2J\r": "1\n", "line\nbreak": "1\n"})
    os.mkfifo(project / "pipe\x1b[2J")
    taken(project, "-m", "message\x1b[2J\rwith controls")
    write(project, {"evil\x1b[2J\r": "2\n", "line\nbreak": "2\n"})
    for command in (["status"], ["show", "@"], ["log"], ["doctor"], ["restore", "@", "--preview"]):
        done = quick(*command, project=project, code=None)
        both = done.stdout.decode() + done.stderr
        assert "\x1b" not in both and "\r" not in both, command


def test_arguments_that_are_not_utf_8_are_understood_or_refused_in_words(project: Path) -> None:
    name = os.fsdecode(b"latin-\xff")
    write(project, {name: "1\n"})
    quick("checkpoint", "-m", os.fsdecode(b"caf\xe9"), project=project)
    assert len(quick("log", project=project).lines) == 1
    write(project, {name: "2\n"})
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = mull("diff", os.fsencode(name), cwd=project, env=environment)
    assert done.stdout.count(b"diff --git") == 1
    assert quick("show", f"@:{name}", project=project).stdout == b"1\n"
    quick("show", name, project=project, code=3)
    quick("restore", "@", os.fsdecode(b"no\xff"), project=project, code=3)
    quick("restore", "@", name, project=project)
    assert (project / name).read_text() == "1\n"
    quick("operations", project=project)


def test_a_hit_in_another_project_says_how_to_get_there(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other project"
    other.mkdir()
    quick("turn", "begin", "--new", "a very rare word", project=other)
    quick("checkpoint", project=project)
    lines = quick("search", "--all", "rare", project=project).lines
    (way,) = [line.strip() for line in lines if " -C " in line]
    _program, _option, directory, *rest = shlex.split(way)
    assert "rare" in quick(*rest, project=Path(directory)).stdout.decode()


def test_a_named_pipe_is_no_problem_that_could_be_mended(project: Path) -> None:
    os.mkfifo(project / "pipe")
    quick("checkpoint", project=project)
    done = quick("doctor", project=project)
    assert "it is a named pipe" in done.stdout.decode() and "permissions" not in str(done)


def test_up_beside_a_server_does_not_promise_to_end_with_a_key(project: Path) -> None:
    serving = subprocess.Popen(
        [*COMMAND, "serve", "--json"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert serving.stdout is not None and serving.stdout.readline()
    done = mull("up", "--no-browser", cwd=project)
    assert "Ctrl-C" not in done.stderr and "which goes on" in done.stderr
    with mulligan.open(project) as workspace:
        assert f"/?project={workspace.project.location.id}&code=" in done.stderr
    serving.terminate()
    serving.wait(30)
    serving.stdout.close()


def test_install_shows_what_it_writes_before_it_does(project: Path) -> None:
    """So it is seen even where nothing can be written."""
    (Path.home() / ".claude").write_text("not a folder")
    ran = quick("install", "claude-code", project=project, code=None)
    assert ran.code != 0
    assert '+    "UserPromptSubmit": [' in ran.lines
    assert (Path.home() / ".claude").read_text() == "not a folder"


def test_what_install_says_to_programs_has_no_colours(project: Path) -> None:
    (one,) = quick("install", "claude-code", "--preview", "--json", project=project).json["agents"]
    assert "\x1b" not in one["changes"][0]["diff"]


def test_uninstall_says_where_it_is_installed_if_not_there(project: Path) -> None:
    quick("checkpoint", project=project)
    quick("install", "claude-code", "--project", project=project)
    ran = quick("uninstall", "claude-code", project=project)
    assert "`mulligan uninstall claude-code --project`" in ran.stderr
    quick("uninstall", "claude-code", "--project", project=project)
    ran = quick("uninstall", "claude-code", project=project)
    assert ran.stderr == "Claude Code: nothing to change; it is not installed.\n"


def test_what_can_be_chosen_is_listed_in_one_line(project: Path) -> None:
    for name in ("install", "import"):
        ran = quick(name, project=project, code=2)
        assert "Missing argument 'AGENT'. Choose from: claude-code, codex," in ran.stderr


def test_a_folder_in_a_checkpoint_is_no_file_and_that_is_said(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "a").write_text("a\n")
    quick("checkpoint", project=project)
    ran = quick("show", "@:sub", project=project, code=3)
    assert "sub is a folder in checkpoint" in ran.stderr


def test_a_path_that_may_not_be_read_can_be_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"f": "one"})
    quick("checkpoint", project=project)
    write(project, {"f": "two"})
    monkeypatch.setattr(os, "access", lambda path, *_, **__: not str(path).endswith("f"))
    quick("restore", "@", str(project / "f"), project=project)
    assert (project / "f").read_text() == "one"


def test_a_checkpoint_says_whose_it_is_if_that_is_not_plain(project: Path) -> None:
    write(project, {"below/f": "one"})
    assert " of " not in quick("checkpoint", project=project).stderr
    assert f" of {project}, " in quick("checkpoint", project=project / "below").stderr


def test_a_file_is_no_directory_and_that_is_said(project: Path) -> None:
    write(project, {"f": "one"})
    assert "is not a directory" in quick("log", project=project / "f", code=3).stderr


def test_the_progress_line_is_gone_before_anything_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    for way in ("say", "line", "data"):
        out = Output(progress=Progress())
        assert out.progress is not None
        out.progress._on, out.progress._last = True, 0.0
        out.progress.show("restoring", 5, 10)
        [shown] = [part for part in capsys.readouterr().err.split("\r\x1b[2K") if part]
        assert len(shown) == 19
        getattr(out, way)({} if way == "data" else "words")
        assert capsys.readouterr().err.startswith("\r\x1b[2K")


def test_the_library_explains_itself() -> None:
    assert "class Workspace" in pydoc.plain(pydoc.render_doc(mulligan))
    verbs = [name for name in dir(mulligan.Workspace) if not name.startswith("_")]
    assert [name for name in verbs if not getattr(mulligan.Workspace, name).__doc__] == []
