"""What every test gets: a home of its own, and a project to work on.

No test may read or write what belongs to the person who runs it. So the places where Mulligan,
git and other programs look for a user's data point to an empty directory, a fresh one for each
test; fixtures that outlive a test see another, made for the whole run.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# The same examples at every run, so that a failure is the change's and not the day's; `long`
# looks for new ones. Neither judges by the clock: other work may share the machine.
_PATIENT = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# Without shrinking: a failure in an everyday run is to be seen soon; `long` makes it small.
_QUICK = tuple(phase for phase in Phase if phase not in (Phase.shrink, Phase.explain))
settings.register_profile("ci", _PATIENT, derandomize=True, phases=_QUICK)
settings.register_profile("long", _PATIENT, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# What a shell lets its background jobs ignore (`nohup`, `&`), the programs under test would too.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        is_int = _number == signal.SIGINT
        signal.signal(_number, signal.default_int_handler if is_int else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def mulligan_home(
    _home_of_the_run: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The test's own MULLIGAN_HOME, which does not exist yet."""
    with _living_in(tmp_path_factory.mktemp("user")) as home:
        yield home


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty directory, outside of MULLIGAN_HOME."""
    return tmp_path_factory.mktemp("project")


@pytest.fixture(autouse=True, scope="session")
def _home_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with _living_in(tmp_path_factory.mktemp("run")):
        yield


@contextlib.contextmanager
def _living_in(user: Path) -> Iterator[Path]:
    home = user / "mulligan"
    places = {
        "HOME": user,
        "MULLIGAN_HOME": home,
        "XDG_CACHE_HOME": user / "cache",
        "XDG_CONFIG_HOME": user / "config",
        "XDG_DATA_HOME": user / "data",
        "XDG_STATE_HOME": user / "state",
        "GIT_CONFIG_GLOBAL": user / "gitconfig",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "Ada Author",
        "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Carl Committer",
        "GIT_COMMITTER_EMAIL": "carl@example.org",
    }
    # Not `monkeypatch`: a test that undoes its own changes half way would undo these too.
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            # A git hook that runs the tests sets GIT_DIR, which points at the caller's work.
            if name.startswith(("GIT_", "MULLIGAN_")):
                environment.delenv(name)
        for name, value in places.items():
            environment.setenv(name, str(value))
        yield home
