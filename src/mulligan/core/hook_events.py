"""Define hook events and replies in terms that all agents share."""

# Annotations are not postponed here: a NamedTuple would compile each of them, at every start.

from typing import Any, NamedTuple, Self

from mulligan.core.hook_kinds import KINDS


class HookEvent(NamedTuple):
    """One event of an agent; unknown fields are `None`.

    `text` is the prompt, or the agent's final message. `input` is the tool's input, `paths` the
    files that the tool writes. A sub-agent's events are `off_path`. `log` is the agent's own log
    file, `part` the session within a log that holds several. `id` makes recording idempotent.
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
        return self._asdict() | {"paths": list(self.paths)}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Parse an event, ignoring unknown fields; raise `ValueError` if invalid."""
        fields = {name: value for name, value in content.items() if name in cls._fields}
        paths = fields.get("paths", ())
        if not isinstance(paths, list | tuple) or not all(isinstance(each, str) for each in paths):
            raise ValueError("paths must be a list of strings.")
        fields["paths"] = tuple(paths)
        required = ("kind", "agent", "session", "directory")
        if not all(isinstance(fields.get(name), str) and fields[name] for name in required):
            raise ValueError("kind, agent, session and directory must be non-empty strings.")
        if fields["kind"] not in KINDS:
            raise ValueError(f"Unknown kind of hook event: {fields['kind']!r}.")
        return cls(**fields)


class HookReply(NamedTuple):
    """Messages for the agent and its user after a hook event."""

    to_agent: str | None = None
    to_user: str | None = None

    def as_json(self) -> dict[str, Any]:
        return self._asdict()
