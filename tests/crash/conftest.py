"""Fixtures of the crash tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("harness", "situations", "talks")

from harness import Child, Scene  # noqa: E402


@pytest.fixture(scope="session")
def child(_home_of_the_run: None) -> Iterator[Child]:
    server = Child()
    yield server
    server.close()


@pytest.fixture
def scene(child: Child) -> Iterator[Scene]:
    """Where nothing is slow: what a sync does is modelled here, and never waited for."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    base = Path(tempfile.mkdtemp(prefix="mulligan-crash-", dir=memory)).resolve()
    yield Scene(base, child)
    shutil.rmtree(base)
