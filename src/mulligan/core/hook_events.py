"""What an agent's hooks tell of, in words that all agents share."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from typing import Any, NamedTuple, Self

from mulligan.core.hook_kinds import KINDS


class HookEvent(NamedTuple):
    """One event of an agent. What it does not say is `None`.

    `text` is the prompt, or the agent's last words; `input` is what a tool was given, and `paths`
    are files that it is to write, or has written. A sub-agent's events are `off_path`. `log` is
    where the agent keeps its own account of the session, `part` the session within it if it holds
    several. `id` names the event, so that it is recorded once though it is told twice.
    """

    kind: str
    agent: str
    session: str
    directory: str
    text: str | None = None
    call: str | None = None
    tool: str | None = None
    paths: tuple[str, ...] = ()
    ok: bool | None = None
    duration: float | None = None
    model: str | None = None
    mode: str | None = None
    source: str | None = None
    log: str | None = None
    part: str = ""
    process: int | None = None
    input: Any = None
    off_path: bool = False
    id: str | None = None

    def as_json(self) -> dict[str, Any]:
        found = self._asdict()
        found["paths"] = list(self.paths)
        return found

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Raises `ValueError` for what is no happening."""
        given = {name: value for name, value in content.items() if name in cls._fields}
        paths = given.get("paths", ())
        if not isinstance(paths, list | tuple) or not all(isinstance(each, str) for each in paths):
            raise ValueError("The paths of a happening are a list of texts.")
        given["paths"] = tuple(paths)
        texts = ("kind", "agent", "session", "directory")
        if not all(isinstance(given.get(name), str) and given[name] for name in texts):
            raise ValueError("A happening says its kind, agent, session and directory.")
        if given["kind"] not in KINDS:
            raise ValueError(f"There is no happening {given['kind']!r}.")
        return cls(**given)


class HookReply(NamedTuple):
    """What there is to say after a happening: to the agent, and to its user."""

    to_agent: str | None = None
    to_user: str | None = None

    def as_json(self) -> dict[str, Any]:
        return self._asdict()
