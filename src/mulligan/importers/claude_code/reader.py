"""Claude Code: one JSONL file a session, in a folder for each project.

Lines form a tree by `uuid` and `parentUuid`. Many of them are no entries (attachments, progress,
snapshots of files), and the tree passes through them: a child of such a line becomes a child of
the nearest entry above it. Sub-agents write lines marked `isSidechain`: in older versions into
the session's file, then into `agent-<id>.jsonl` beside it, now into `<session>/subagents/`. They
are read along with their session, below the call that spawned them.
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
from mulligan.importers.folders import files_below, path_from_env
from mulligan.importers.json_log import read_json_lines
from mulligan.importers.records import Compacted, Importer, Problem, Record, Session, Source
from mulligan.importers.values import as_dict, as_list, as_str, as_timestamp


def find(home: str, environment: Mapping[str, str]) -> Iterator[Source]:
    """The sessions of a user, oldest first; after them what sub-agents left without a session."""
    configured = path_from_env(environment, "CLAUDE_CONFIG_DIR", home)
    config = path_from_env(environment, "XDG_CONFIG_HOME", home) or os.path.join(home, ".config")
    # Some versions kept to the second place.
    usual = [os.path.join(home, ".claude"), os.path.join(config, "claude")]
    alone = []
    for place in [configured] if configured else usual:
        root = os.path.join(place, "projects")
        for path in sorted(files_below(root, ".jsonl"), key=_age):
            project, *rest = os.path.relpath(path, root).split(os.sep)
            agent = os.path.basename(path).startswith("agent-")
            if len(rest) == 1 and not agent:
                yield Source(path)
            elif len(rest) == 1:
                # Whose it is only its lines tell; what its session brings along comes again here.
                alone.append(path)
            elif agent and not _is_log(os.path.join(root, project, f"{rest[0]}.jsonl")):
                alone.append(path)
    yield from map(Source, alone)


def read(source: Source) -> Iterator[Record]:
    """The session in a file, with its sub-agents; or the entries of one sub-agent's file."""
    return _Reader(source.path).records()


IMPORTER: Final = Importer("claude-code", find, read)

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_AGENT: Final = re.compile(r"[\w-]{1,100}")
_SPOKEN: Final = ("user", "assistant", "system")
_CALLS: Final = (TOOL_CALL, TOOL_RESULT, FILE_EDIT)

# Lines about the program rather than the conversation.
_SILENT: Final = frozenset(
    {
        *("progress", "attachment", "queue-operation", "file-history-snapshot", "last-prompt"),
        *("summary", "custom-title", "ai-title", "agent-name", "agent-color", "agent-setting"),
        *("tag", "mode", "permission-mode", "pr-link", "worktree-state", "content-replacement"),
        *("attribution-snapshot", "task-summary", "bridge-session"),
    }
)


def _age(path: str) -> tuple[int, str]:
    try:
        return os.lstat(path).st_mtime_ns, path
    except OSError:
        return 0, path


def _is_log(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


class _Chain:
    """The main conversation, or that of one sub-agent."""

    def __init__(self, *, off_path: bool, root: str | None = None, prefix: str = "") -> None:
        self.off_path = off_path
        self.root = root  # the call that spawned the sub-agent
        self.prefix = prefix
        self.last = root
        self.run: set[str] = set()  # the calls and results since anything was said


class _Place(NamedTuple):
    """Where a line stands: its last entry, or else the nearest above it, and its chain."""

    entry: str | None
    chain: _Chain


class _Reader:
    """Reads one session's file and what belongs to it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.stem = os.path.basename(path).removesuffix(".jsonl")
        alone = self.stem.startswith("agent-")
        self.main = _Chain(off_path=alone, prefix=f"{self.stem}:" if alone else "")
        self.session: Session | None = None
        self.time: str | None = None
        self.titles: dict[str, str] = {}
        self.summaries: dict[str, str] = {}  # by the line that they end with
        self.places: dict[str, _Place] = {}
        self.depths: dict[str | None, int] = {None: 0}  # entries above, back to a compaction
        self.calls: dict[str, Call] = {}
        self.prompts: dict[str, str] = {}  # of sub-agents, and the calls that have them
        self.waiting: dict[str, str | None] = {}  # sub-agents to be read, and their calls
        self.brought: set[str] = set()
        self.boundary: dict[str, Any] | None = None

    def records(self) -> Iterator[Record]:
        for number, line in read_json_lines(self.path):
            yield from self._line(self.path, number, line, self.main)
        # A boundary at the very end is left to the next reading: its summary is still to come.
        self.boundary = None
        if self.session is None or self.main.off_path:
            return
        ended = self.time
        folder = os.path.join(self.path.removesuffix(".jsonl"), "subagents")
        for path in sorted(files_below(folder, ".jsonl"), key=_age):
            name = os.path.basename(path)
            if name.startswith("agent-"):
                self.waiting.setdefault(name[len("agent-") : -len(".jsonl")], None)
        yield from self._agents()
        yield self.session._replace(title=self._title(), updated_at=ended)

    def _line(
        self, path: str, number: int, line: dict[str, Any] | Problem, home: _Chain
    ) -> Iterator[Record]:
        if isinstance(line, Problem):
            yield line
            return
        kind = as_str(line.get("type"))
        if kind not in _SPOKEN and kind not in _SILENT:
            yield Problem(path, number, f"Unknown type of line: {kind[:40] or 'none'}.")
        self._note_title(line)
        said = kind in _SPOKEN or kind == "attachment"
        if not said and not isinstance(line.get("uuid"), str):
            return
        uuid = as_str(line.get("uuid")) or f"{home.prefix}L{number}"
        pending = self.boundary is not None and self.boundary["uuid"] == uuid
        if uuid in self.places or uuid in self.depths or pending:
            return
        self.time = as_timestamp(line.get("timestamp")) or self.time
        if kind == "system" and line.get("subtype") == "compact_boundary":
            yield from self._flush_boundary(home)
            self.boundary = line | {"uuid": uuid}
            return
        if kind == "user" and line.get("isCompactSummary") is True:
            yield from self._compaction(line | {"uuid": uuid}, home)
            return
        if said:
            yield from self._flush_boundary(home)
        yield from self._bring_agent(line, home)
        for record in self._placed(line, uuid, home):
            if isinstance(record, Unknown):
                yield Problem(path, number, record.reason)
            else:
                yield record

    def _placed(self, line: dict[str, Any], uuid: str, home: _Chain) -> Iterator[Record | Unknown]:
        """The entries of a line, one below the other, below the line's parent."""
        chain, parent = self._parent(line, home)
        made = 0
        for draft in drafts(line, self.calls):
            if isinstance(draft, NewEntry):
                # Calls that were made at once fork the log's tree, where a result hangs below its
                # call, though the conversation did not fork: they are put one below the other.
                if made == 0 and draft.type != USER_INPUT and parent in chain.run:
                    parent = chain.last
                id = uuid if made == 0 else f"{uuid}:{made}"
                made += 1
                if id in self.depths:
                    continue
                entry = draft._replace(
                    id=id, parent=parent, created_at=self.time, off_path=chain.off_path
                )
                yield from self._begun(line)
                self._note(entry, id, chain)
                parent = id
                yield entry
            elif isinstance(draft, Unknown):
                yield draft
            elif draft.call in self.calls:
                # What was asked for may be a whole file, and is not needed any more.
                self.calls[draft.call] = self.calls[draft.call]._replace(input={})
                yield draft
        self.places[uuid] = _Place(parent, chain)

    def _parent(self, line: dict[str, Any], home: _Chain) -> tuple[_Chain, str | None]:
        """The chain that a line continues, and the entry above it."""
        said = line.get("parentUuid", "")
        known = self.places.get(said) if isinstance(said, str) else None
        off_path = home.off_path or line.get("isSidechain") is True
        if known is not None and known.chain.off_path == off_path:
            return known.chain, known.entry
        if off_path and not home.off_path:
            prompt = text_of(as_dict(line.get("message")).get("content"))
            root = known.entry if known is not None else self.prompts.get(prompt)
            return _Chain(off_path=True, root=root), root
        # Below a line that is missing it goes on where the chain stands.
        return home, home.root if said is None else home.last

    def _note(self, entry: NewEntry, id: str, chain: _Chain) -> None:
        """Keeps what later lines may refer to."""
        self.depths[id] = self.depths.get(entry.parent, 0) + 1
        chain.last = id
        if entry.type in _CALLS:
            chain.run.add(id)
        else:
            chain.run.clear()
        if entry.model and not chain.off_path and self.session is not None:
            self.session = self.session._replace(model=entry.model)
        data = entry.data or {}
        if entry.type == TOOL_CALL and data["call"]:
            asked = as_dict(data["input"])
            self.calls.setdefault(data["call"], Call(id, data["name"], asked))
            if prompt := as_str(asked.get("prompt")):
                self.prompts[prompt] = id

    def _flush_boundary(self, home: _Chain) -> Iterator[Record]:
        if self.boundary is not None:
            yield from self._compaction(self.boundary, home)

    def _compaction(self, line: dict[str, Any], home: _Chain) -> Iterator[Record]:
        """The marker of a compaction: the boundary, if there is one, and the summary below it."""
        boundary = self.boundary or line
        self.boundary = None
        above = boundary.get("logicalParentUuid") or boundary.get("parentUuid")
        known = self.places.get(above) if isinstance(above, str) else None
        # Older versions begin a new tree with the summary; it is still what came before.
        chain, parent = known.chain if known else home, known.entry if known else home.last
        id = boundary["uuid"]
        data: dict[str, Any] = {"compactedCount": self.depths.get(parent, 0)}
        if summary := text_of(as_dict(line.get("message")).get("content")):
            data["summary"] = summary
        if trigger := as_str(as_dict(boundary.get("compactMetadata")).get("trigger")):
            data["trigger"] = trigger
        time = as_timestamp(boundary.get("timestamp")) or self.time
        yield from self._begun(line)
        yield NewEntry(COMPACT_MARKER, summary, data, id, parent, time, off_path=chain.off_path)
        yield Compacted(id)
        self.depths[id] = 0
        chain.last = id
        chain.run.clear()
        self.places[id] = self.places[line["uuid"]] = _Place(id, chain)

    def _bring_agent(self, line: dict[str, Any], home: _Chain) -> Iterator[Record]:
        """Reads the sub-agent whose result a line is, unless it was only sent off."""
        details = as_dict(line.get("toolUseResult"))
        agent = as_str(details.get("agentId"))
        if not agent or agent in self.brought:
            return
        blocks = map(as_dict, as_list(as_dict(line.get("message")).get("content")))
        ids = (as_str(block.get("tool_use_id")) for block in blocks)
        call = next((self.calls[id].entry for id in ids if id in self.calls), None)
        if home is self.main and details.get("status") != "async_launched":
            time = self.time
            yield from self._agent(agent, call)
            self.time = time
        else:
            self.waiting.setdefault(agent, call)

    def _agents(self) -> Iterator[Record]:
        """What the waiting sub-agents did, and those that they spawned in turn."""
        while self.waiting:
            agent = next(iter(self.waiting))
            yield from self._agent(agent, self.waiting.pop(agent))

    def _agent(self, agent: str, call: str | None) -> Iterator[Record]:
        if agent in self.brought or not _AGENT.fullmatch(agent):
            return
        self.brought.add(agent)
        name = f"agent-{agent}.jsonl"
        nested = os.path.join(self.path.removesuffix(".jsonl"), "subagents", name)
        beside = os.path.join(os.path.dirname(self.path), name)
        path = next(filter(_is_log, (nested, beside)), None)
        if path is None:
            return
        chain = _Chain(off_path=True, root=call, prefix=f"agent-{agent}:")
        try:
            for number, line in read_json_lines(path):
                yield from self._line(path, number, line, chain)
        except OSError as error:
            yield Problem(path, 0, f"Cannot be read: {error.strerror}.")

    def _begun(self, line: dict[str, Any]) -> Iterator[Record]:
        """Before the first entry its session: by the name of the file, or by the lines."""
        if self.session is not None:
            return
        said = as_str(line.get("sessionId"))
        id = said if said and not _UUID.fullmatch(self.stem) else self.stem
        self.session = Session(id, as_str(line.get("cwd")) or None)
        if not self.main.off_path:
            # A session resumed by older versions begins with the lines of the one before it.
            origin = as_str(as_dict(line.get("forkedFrom")).get("sessionId")) or said or id
            self.session = self.session._replace(
                created_at=self.time, forked_from=origin if origin != id else None
            )
        yield self.session

    def _note_title(self, line: dict[str, Any]) -> None:
        match line.get("type"):
            case "custom-title":
                self.titles["custom"] = as_str(line.get("customTitle"))
            case "ai-title":
                self.titles["ai"] = as_str(line.get("aiTitle"))
            case "summary":
                self.summaries[as_str(line.get("leafUuid"))] = as_str(line.get("summary"))

    def _title(self) -> str | None:
        # Summaries of the project's other sessions are found in a file, too.
        own = (text for leaf, text in self.summaries.items() if leaf in self.places)
        return self.titles.get("custom") or self.titles.get("ai") or next(own, "") or None
