"""What the tests with real agents get: each agent in turn, and somebody who works with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import AGENTS, Agent
from user import User, person


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]


@pytest.fixture
def user(agent: Agent, project: Path, tmp_path: Path) -> User:
    return person(agent, project, tmp_path / "home of the user")
