"""The state of one RPC connection: the open project and the selected session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mulligan.errors import NotFound
from mulligan.protocols.params import Params

if TYPE_CHECKING:
    from mulligan.workspace.results.sessions import Session
    from mulligan.workspace.workspace import Workspace

Event = dict[str, Any]


class RpcSession:
    """A project, opened at first use, and the session that commands act on."""

    def __init__(self, open_workspace: Callable[[], Workspace], session: str | None = None) -> None:
        self._open_workspace = open_workspace
        self._workspace: Workspace | None = None
        self._session_id = session
        self.send_event: Callable[[Event], None] = lambda event: None
        """Send an event to the client before the command goes on."""
        self.ask_client: Callable[[Event], Event | None] | None = None
        """Send an event and wait for the client's reply; None if the client sent another line."""

    @property
    def workspace(self) -> Workspace:
        if self._workspace is None:
            self._workspace = self._open_workspace()
        return self._workspace

    @property
    def session(self) -> Session:
        """The selected session, else the one changed last, which is selected from then on."""
        try:
            session = self.workspace.sessions.get(self._session_id or "@")
        except NotFound:
            if self._session_id is not None:
                raise
            raise NotFound("The project has no session yet; new_session creates one.") from None
        self._session_id = session.id
        return session

    def select(self, session: str) -> None:
        """Make commands act on another session."""
        self._session_id = self.workspace.sessions.get(session).id

    def unselect(self) -> None:
        """Make commands act on the session changed last."""
        self._session_id = None

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()


class RpcParams(Params, frozen=True, kw_only=True, rename="camel"):
    """The parameters of a command, in camelCase on the wire."""


class CommandResult(NamedTuple):
    """The data of a response, and the events to send before it."""

    data: Any
    events: tuple[Event, ...] = ()
