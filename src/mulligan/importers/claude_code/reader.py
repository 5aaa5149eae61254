"""Import Claude Code's sessions: one JSONL file each, in a folder per project.

Lines form a tree by `uuid` and `parentUuid`. Many lines have no entries (attachments, progress,
file snapshots); their children become children of the nearest entry above. Lines of sub-agents
are marked `isSidechain`. Old versions wrote them into the session's file, later ones into
`agent-<id>.jsonl` beside it, current ones into `<session>/subagents/`. They are read with their
session, below the call that spawned them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mulligan.core.entries import (
    COMPACT_MARKER,
    FILE_EDIT,
    TOOL_CALL,
    TOOL_RESULT,
    USER_INPUT,
    NewEntry,
)
from mulligan.importers.claude_code.lines import Call, Unknown, drafts, text_of
from mulligan.importers.folders import files_below, is_plain_file, path_from_env
from mulligan.importers.json_log import read_json_lines
from mulligan.importers.records import Compacted, Importer, Problem, Record, Session, Source
from mulligan.importers.values import as_dict, as_list, as_str, as_timestamp


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """Find a user's sessions, oldest first, then sub-agents whose session is missing."""
    configured = path_from_env(environment, "CLAUDE_CONFIG_DIR", home)
    config = path_from_env(environment, "XDG_CONFIG_HOME", home) or os.path.join(home, ".config")
    # Some versions used the second folder.
    defaults = [os.path.join(home, ".claude"), os.path.join(config, "claude")]
    orphans = []
    for place in [configured] if configured else defaults:
        root = os.path.join(place, "projects")
        for path in sorted(files_below(root, ".jsonl"), key=_mtime):
            project, *rest = os.path.relpath(path, root).split(os.sep)
            is_agent = os.path.basename(path).startswith("agent-")
            if len(rest) == 1 and not is_agent:
                yield Source(path)
            elif len(rest) == 1:
                # Only its lines name its session, which may have been read with it already.
                orphans.append(path)
            elif is_agent and not is_plain_file(os.path.join(root, project, f"{rest[0]}.jsonl")):
                orphans.append(path)
    yield from map(Source, orphans)


def read(source: Source) -> Iterator[Record]:
    """Read the session in a file with its sub-agents, or one sub-agent's file."""
    return _Reader(source.path).records()


IMPORTER: Final = Importer("claude-code", find, read)

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_AGENT_ID: Final = re.compile(r"[\w-]{1,100}")
_MESSAGE_TYPES: Final = ("user", "assistant", "system")
_TOOL_TYPES: Final = (TOOL_CALL, TOOL_RESULT, FILE_EDIT)

# Lines about the program, not the conversation.
_IGNORED_TYPES: Final = frozenset(
    {
        *("progress", "attachment", "queue-operation", "file-history-snapshot", "last-prompt"),
        *("summary", "custom-title", "ai-title", "agent-name", "agent-color", "agent-setting"),
        *("tag", "mode", "permission-mode", "pr-link", "worktree-state", "content-replacement"),
        *("attribution-snapshot", "task-summary", "bridge-session"),
    }
)


def _mtime(path: str) -> tuple[int, str]:
    try:
        return os.lstat(path).st_mtime_ns, path
    except OSError:
        return 0, path


class _Chain:
    """The main conversation, or that of one sub-agent."""

    def __init__(self, *, off_path: bool, root: str | None = None, prefix: str = "") -> None:
        self.off_path = off_path
        self.root = root  # the call that spawned the sub-agent
        self.prefix = prefix
        self.last_entry = root
        self.tool_entries: set[str] = set()  # calls, results and edits since the last message


class _LinePosition(NamedTuple):
    """A line's chain, and its last entry or the nearest one above."""

    chain: _Chain
    entry: str | None


class _Reader:
    """Convert one session's file, and those of its sub-agents, to records."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stem = os.path.basename(path).removesuffix(".jsonl")
        is_agent = self.stem.startswith("agent-")
        self.main = _Chain(off_path=is_agent, prefix=f"{self.stem}:" if is_agent else "")
        self.session: Session | None = None
        self.time: str | None = None
        self.titles: dict[str, str] = {}
        self.summaries: dict[str, str] = {}  # by the uuid of the last line summarised
        self.lines: dict[str, _LinePosition] = {}  # by uuid
        # By entry, the number of entries above it since the last compaction.
        self.depths: dict[str | None, int] = {None: 0}
        self.calls: dict[str, Call] = {}
        self.prompts: dict[str, str] = {}  # of sub-agents, and the entries of their calls
        self.pending_agents: dict[str, str | None] = {}  # and the entries of their calls
        self.agents_read: set[str] = set()
        self.pending_boundary: dict[str, Any] | None = None  # of a compaction

    def records(self) -> Iterator[Record]:
        """Yield the records of the session and of its sub-agents."""
        for number, line in read_json_lines(self.path):
            yield from self._read_line(self.path, number, line, self.main)
        # The next import reads a boundary at the end, once its summary is written.
        self.pending_boundary = None
        if self.session is None or self.main.off_path:
            return
        ended_at = self.time
        folder = os.path.join(self.path.removesuffix(".jsonl"), "subagents")
        for path in sorted(files_below(folder, ".jsonl"), key=_mtime):
            name = os.path.basename(path)
            if name.startswith("agent-"):
                self.pending_agents.setdefault(name[len("agent-") : -len(".jsonl")], None)
        yield from self._read_pending_agents()
        yield self.session._replace(title=self._title(), updated_at=ended_at)

    def _read_line(
        self, path: str, number: int, line: dict[str, Any] | Problem, home: _Chain
    ) -> Iterator[Record]:
        if isinstance(line, Problem):
            yield line
            return
        kind = as_str(line.get("type"))
        if kind not in _MESSAGE_TYPES and kind not in _IGNORED_TYPES:
            yield Problem(path, number, f"Unknown type of line: {kind[:40] or 'none'}.")
        self._remember_title(line)
        is_spoken = kind in _MESSAGE_TYPES or kind == "attachment"
        if not is_spoken and not isinstance(line.get("uuid"), str):
            return
        uuid = as_str(line.get("uuid")) or f"{home.prefix}L{number}"
        is_pending = self.pending_boundary is not None and self.pending_boundary["uuid"] == uuid
        if uuid in self.lines or uuid in self.depths or is_pending:
            return
        self.time = as_timestamp(line.get("timestamp")) or self.time
        if kind == "system" and line.get("subtype") == "compact_boundary":
            yield from self._flush_boundary(home)
            self.pending_boundary = line | {"uuid": uuid}
            return
        if kind == "user" and line.get("isCompactSummary") is True:
            yield from self._compaction(line | {"uuid": uuid}, home)
            return
        if is_spoken:
            yield from self._flush_boundary(home)
        yield from self._read_agent_of_result(line, home)
        for record in self._link_entries(line, uuid, home):
            if isinstance(record, Unknown):
                yield Problem(path, number, record.reason)
            else:
                yield record

    def _link_entries(
        self, line: dict[str, Any], uuid: str, home: _Chain
    ) -> Iterator[Record | Unknown]:
        """Yield the entries of a line as a chain below the line's parent."""
        chain, parent = self._parent(line, home)
        count = 0
        for draft in drafts(line, self.calls):
            if isinstance(draft, NewEntry):
                # Results of parallel calls are children of their own calls in the log. Chain
                # them instead, since the conversation did not fork.
                if count == 0 and draft.type != USER_INPUT and parent in chain.tool_entries:
                    parent = chain.last_entry
                id = uuid if count == 0 else f"{uuid}:{count}"
                count += 1
                if id in self.depths:
                    continue
                entry = draft._replace(
                    id=id, parent=parent, created_at=self.time, off_path=chain.off_path
                )
                yield from self._begin_session(line)
                self._remember_entry(entry, id, chain)
                parent = id
                yield entry
            elif isinstance(draft, Unknown):
                yield draft
            elif draft.call in self.calls:
                # The input may be a whole file, and is no longer needed.
                self.calls[draft.call] = self.calls[draft.call]._replace(input={})
                yield draft
        self.lines[uuid] = _LinePosition(chain, parent)

    def _parent(self, line: dict[str, Any], home: _Chain) -> _LinePosition:
        """Return the chain that a line continues, and its parent entry."""
        parent_uuid = line.get("parentUuid", "")
        parent = self.lines.get(parent_uuid) if isinstance(parent_uuid, str) else None
        off_path = home.off_path or line.get("isSidechain") is True
        if parent is not None and parent.chain.off_path == off_path:
            return parent
        if off_path and not home.off_path:
            prompt = text_of(as_dict(line.get("message")).get("content"))
            root = parent.entry if parent is not None else self.prompts.get(prompt)
            return _LinePosition(_Chain(off_path=True, root=root), root)
        # If the parent line is missing, continue from the chain's last entry.
        return _LinePosition(home, home.root if parent_uuid is None else home.last_entry)

    def _remember_entry(self, entry: NewEntry, id: str, chain: _Chain) -> None:
        """Remember what later lines may refer to."""
        self.depths[id] = self.depths.get(entry.parent, 0) + 1
        chain.last_entry = id
        if entry.type in _TOOL_TYPES:
            chain.tool_entries.add(id)
        else:
            chain.tool_entries.clear()
        if entry.model and not chain.off_path and self.session is not None:
            self.session = self.session._replace(model=entry.model)
        data = entry.data or {}
        if entry.type == TOOL_CALL and data["call"]:
            input = as_dict(data["input"])
            self.calls.setdefault(data["call"], Call(id, data["name"], input))
            if prompt := as_str(input.get("prompt")):
                self.prompts[prompt] = id

    def _flush_boundary(self, home: _Chain) -> Iterator[Record]:
        if self.pending_boundary is not None:
            yield from self._compaction(self.pending_boundary, home)

    def _compaction(self, line: dict[str, Any], home: _Chain) -> Iterator[Record]:
        """Yield the marker of a compaction from its boundary line, if any, and its summary."""
        boundary = self.pending_boundary or line
        self.pending_boundary = None
        uuid_above = boundary.get("logicalParentUuid") or boundary.get("parentUuid")
        above = self.lines.get(uuid_above) if isinstance(uuid_above, str) else None
        # In older versions the summary begins a new tree: attach it to the chain's last entry.
        chain, parent = above or (home, home.last_entry)
        id = boundary["uuid"]
        data: dict[str, Any] = {"compactedCount": self.depths.get(parent, 0)}
        if summary := text_of(as_dict(line.get("message")).get("content")):
            data["summary"] = summary
        if trigger := as_str(as_dict(boundary.get("compactMetadata")).get("trigger")):
            data["trigger"] = trigger
        time = as_timestamp(boundary.get("timestamp")) or self.time
        yield from self._begin_session(line)
        yield NewEntry(COMPACT_MARKER, summary, data, id, parent, time, off_path=chain.off_path)
        yield Compacted(id)
        self.depths[id] = 0
        chain.last_entry = id
        chain.tool_entries.clear()
        self.lines[id] = self.lines[line["uuid"]] = _LinePosition(chain, id)

    def _read_agent_of_result(self, line: dict[str, Any], home: _Chain) -> Iterator[Record]:
        """Read the sub-agent whose result a line holds; later if it runs in the background."""
        details = as_dict(line.get("toolUseResult"))
        agent = as_str(details.get("agentId"))
        if not agent or agent in self.agents_read:
            return
        blocks = map(as_dict, as_list(as_dict(line.get("message")).get("content")))
        ids = (as_str(block.get("tool_use_id")) for block in blocks)
        call = next((self.calls[id].entry for id in ids if id in self.calls), None)
        if home is self.main and details.get("status") != "async_launched":
            time_before = self.time
            yield from self._read_agent(agent, call)
            self.time = time_before
        else:
            self.pending_agents.setdefault(agent, call)

    def _read_pending_agents(self) -> Iterator[Record]:
        """Read the pending sub-agents, and those that they spawned."""
        while self.pending_agents:
            agent = next(iter(self.pending_agents))
            yield from self._read_agent(agent, self.pending_agents.pop(agent))

    def _read_agent(self, agent: str, call: str | None) -> Iterator[Record]:
        if agent in self.agents_read or not _AGENT_ID.fullmatch(agent):
            return
        self.agents_read.add(agent)
        name = f"agent-{agent}.jsonl"
        nested = os.path.join(self.path.removesuffix(".jsonl"), "subagents", name)
        beside = os.path.join(os.path.dirname(self.path), name)
        path = next(filter(is_plain_file, (nested, beside)), None)
        if path is None:
            return
        chain = _Chain(off_path=True, root=call, prefix=f"agent-{agent}:")
        try:
            for number, line in read_json_lines(path):
                yield from self._read_line(path, number, line, chain)
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")

    def _begin_session(self, line: dict[str, Any]) -> Iterator[Record]:
        """Yield the session before its first entry; its id is the file name's if that is a UUID."""
        if self.session is not None:
            return
        line_session = as_str(line.get("sessionId"))
        id = line_session if line_session and not _UUID.fullmatch(self.stem) else self.stem
        self.session = Session(id, as_str(line.get("cwd")) or None)
        if not self.main.off_path:
            # In older versions a resumed session begins with a copy of the previous one's lines.
            forked_from = as_str(as_dict(line.get("forkedFrom")).get("sessionId"))
            origin = forked_from or line_session or id
            self.session = self.session._replace(
                created_at=self.time, forked_from=origin if origin != id else None
            )
        yield self.session

    def _remember_title(self, line: dict[str, Any]) -> None:
        match line.get("type"):
            case "custom-title":
                self.titles["custom"] = as_str(line.get("customTitle"))
            case "ai-title":
                self.titles["ai"] = as_str(line.get("aiTitle"))
            case "summary":
                self.summaries[as_str(line.get("leafUuid"))] = as_str(line.get("summary"))

    def _title(self) -> str | None:
        # A file also holds summaries of other sessions of the project.
        own = (text for leaf, text in self.summaries.items() if leaf in self.lines)
        return self.titles.get("custom") or self.titles.get("ai") or next(own, "") or None
