"""The five agents as programs: where they are installed, and how each is run without a screen.

They are installed by npm, in the versions named here, into a cache outside of the checkout:
`MULLIGAN_AGENTS_CACHE`, or `~/.cache/mulligan-agents`. One that cannot be had is an error and
never a reason to skip a test.

An agent gets a home of its own and nothing of the caller's environment but the path, so that it
sees none of their settings, keys and proxies. What it would look up on the network by itself is
turned off where it can be.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import toolbox
from toolbox import Toolbox

# Taken down when this is imported: later, every test has a home and an environment of its own.
_ENVIRONMENT = dict(os.environ)
CACHE = Path(_ENVIRONMENT.get("MULLIGAN_AGENTS_CACHE", Path.home() / ".cache/mulligan-agents"))

KEY = "scripted-key"
MODEL = "scripted-model"


class NotInstalled(Exception):
    """An agent could not be installed; the text says what npm said."""


class Place(NamedTuple):
    """Where an agent is to work: its project, its home, and the model it talks to."""

    project: Path
    home: Path
    url: str


class Command(NamedTuple):
    arguments: list[str]
    environment: dict[str, str]


class Program(NamedTuple):
    """What npm installs: a package in one version, with a program of this name in it."""

    name: str
    package: str
    version: str

    def install(self) -> Path:
        """The program's path; installs it first if the cache does not have this version."""
        place = CACHE / f"{self.name}-{self.version}"
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                _npm_install(f"{self.package}@{self.version}", place)
        return place / "node_modules" / ".bin" / self.name


class Agent(NamedTuple):
    """A program with a way to run it. `resuming` are the arguments that go on with a session.

    Nothing here lets an agent trust what it would not: hooks that need somebody's word for it
    get that from the test, as `options` or in the environment.
    """

    name: str
    program: Program
    toolbox: Toolbox
    resuming: tuple[str, ...]
    command_line: Callable[[Place, str, tuple[str, ...]], Command]

    def command(
        self,
        place: Place,
        prompt: str,
        *,
        resume: bool = False,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Command:
        """How to run one turn; with `resume` it goes on with the project's last session."""
        given = (*options, *(self.resuming if resume else ()))
        arguments, own = self.command_line(place, prompt, given)
        basic = {"HOME": str(place.home), "PATH": _ENVIRONMENT["PATH"], "LANG": "C.UTF-8"}
        return Command(
            [str(self.program.install()), *arguments], {**basic, **own, **(environment or {})}
        )

    def start(
        self,
        place: Place,
        prompt: str,
        *,
        resume: bool = False,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:
        """The running program, at the head of a process group of its own."""
        command = self.command(
            place, prompt, resume=resume, options=options, environment=environment
        )
        return subprocess.Popen(
            command.arguments,
            cwd=place.project,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self,
        place: Place,
        prompt: str,
        *,
        resume: bool = False,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """One turn from start to end."""
        with self.start(
            place, prompt, resume=resume, options=options, environment=environment
        ) as process:
            try:
                output, errors = process.communicate(timeout=timeout)
            except BaseException:
                kill(process)
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL, to the whole group: Codex is a small program that starts the real one."""
    os.killpg(process.pid, signal.SIGKILL)


def _npm_install(package: str, place: Path) -> None:
    partial = place.with_name(f"{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(partial), package]
    try:
        done = subprocess.run(
            command, env=_ENVIRONMENT, capture_output=True, text=True, timeout=600, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"{package} cannot be installed: {error}") from error
    if done.returncode:
        raise NotInstalled(f"{package} cannot be installed:\n{done.stdout}{done.stderr}")
    partial.rename(place)


def _claude(place: Place, prompt: str, options: tuple[str, ...]) -> Command:
    allowed = ["--allowedTools", "Bash(*)", "Write", "Edit", "Read"]
    return Command(
        ["-p", prompt, "--permission-mode", "acceptEdits", *allowed, *options],
        {
            "ANTHROPIC_BASE_URL": place.url,
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def _codex(place: Place, prompt: str, options: tuple[str, ...]) -> Command:
    return _codex_with("gpt-5.5", _UNBOUND, place, prompt, options)


def _codex_code_mode(place: Place, prompt: str, options: tuple[str, ...]) -> Command:
    return _codex_with("gpt-6-luna", _UNBOUND, place, prompt, options)


def _codex_sandboxed(place: Place, prompt: str, options: tuple[str, ...]) -> Command:
    return _codex_with("gpt-5.5", ("--sandbox", "workspace-write"), place, prompt, options)


def _codex_with(
    model: str, bounds: tuple[str, ...], place: Place, prompt: str, options: tuple[str, ...]
) -> Command:
    """The model's name decides which tools Codex offers; for one it does not know, no patches."""
    provider = {
        "name": json.dumps("scripted"),
        "base_url": json.dumps(f"{place.url}/v1"),
        "wire_api": json.dumps("responses"),
        "env_key": json.dumps("SCRIPTED_KEY"),
        "supports_websockets": "false",
    }
    table = ", ".join(f"{key} = {value}" for key, value in provider.items())
    settings = {"model_providers.scripted": f"{{{table}}}", "model_provider": '"scripted"'}
    return Command(
        [
            *("exec", "--skip-git-repo-check", *bounds, "--disable", "plugins", "-m", model),
            *(part for key, value in settings.items() for part in ("-c", f"{key}={value}")),
            *options,
            prompt,
        ],
        {"SCRIPTED_KEY": KEY},
    )


def _gemini(place: Place, prompt: str, options: tuple[str, ...]) -> Command:
    """With a model named, it does not first ask another one which to use."""
    return Command(
        [
            *("-p", prompt, "--approval-mode", "yolo", "--skip-trust", "-m", "gemini-2.5-flash"),
            *options,
        ],
        {
            "GOOGLE_GENAI_USE_VERTEXAI": "true",
            "GOOGLE_API_KEY": KEY,
            "GOOGLE_VERTEX_BASE_URL": place.url,
        },
    )


def _opencode(place: Place, prompt: str, options: tuple[str, ...]) -> Command:
    """Its settings go to a file of the test's, beside what a user or an installer would write."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": KEY},
        "models": {MODEL: {}},
    }
    settings = place.home / "scripted-opencode.json"
    _write_json(
        settings,
        {
            "provider": {"scripted": provider},
            "model": f"scripted/{MODEL}",
            "permission": {"*": "allow"},
        },
    )
    return Command(
        ["run", "--auto", *options, prompt],
        {
            "OPENCODE_CONFIG": str(settings),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
    )


def _pi(place: Place, prompt: str, options: tuple[str, ...]) -> Command:
    provider = {
        "baseUrl": f"{place.url}/v1",
        "apiKey": KEY,
        "api": "openai-completions",
        "models": [{"id": MODEL}],
    }
    models = place.home / ".pi/agent/models.json"
    _write_json(models, {"providers": {"scripted": provider}})
    return Command(
        ["-p", "--provider", "scripted", "--model", MODEL, *options, prompt],
        {"PI_OFFLINE": "1"},
    )


def _write_json(path: Path, data: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2))


_CLAUDE = Program("claude", "@anthropic-ai/claude-code", "2.1.197")
_CODEX = Program("codex", "@openai/codex", "0.166.0")
_GEMINI = Program("gemini", "@google/gemini-cli", "0.61.0")
_OPENCODE = Program("opencode", "opencode-ai", "1.18.33")
_PI = Program("pi", "@mariozechner/pi-coding-agent", "0.73.1")

_LAST = ("resume", "--last")
_UNBOUND = ("--dangerously-bypass-approvals-and-sandbox",)

AGENTS = {
    agent.name: agent
    for agent in (
        Agent("claude", _CLAUDE, toolbox.claude, ("--continue",), _claude),
        Agent("codex", _CODEX, toolbox.codex, _LAST, _codex),
        Agent("codex-code-mode", _CODEX, toolbox.codex_code_mode, _LAST, _codex_code_mode),
        Agent("gemini", _GEMINI, toolbox.gemini, ("--resume", "latest"), _gemini),
        Agent("opencode", _OPENCODE, toolbox.opencode, ("--continue",), _opencode),
        Agent("pi", _PI, toolbox.pi, ("--continue",), _pi),
    )
}

SANDBOXED = Agent("codex", _CODEX, toolbox.codex, _LAST, _codex_sandboxed)
"""Codex with the sandbox that its users have; the others run in the test's own."""
