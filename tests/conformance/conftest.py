"""A workspace on the test's project, checked with the product's own `verify` at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import mulligan


@pytest.fixture
def workspace(project: Path) -> Iterator[mulligan.Workspace]:
    with mulligan.open(project) as opened:
        yield opened
        assert opened.maintenance.verify().problems == ()
