"""Parse the parts of a Gemini CLI log: file locations, texts, calls, edits."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, NamedTuple

from mulligan.importers import edit_data
from mulligan.importers.json_log import open_log, read_json_file
from mulligan.importers.values import as_dict, as_list, as_str


class LogLocation(NamedTuple):
    """What the path of a log says of it."""

    session: str
    project_folder: str
    is_subagent: bool = False


def locate(path: str) -> LogLocation:
    """Tell the session and the project's folder from the path of a log."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    if os.path.basename(folder) == "chats":
        return LogLocation(stem, os.path.dirname(folder))
    if name.startswith("checkpoint-"):
        return LogLocation(f"{stem}-{os.path.basename(folder)}", folder)
    project_folder = os.path.dirname(os.path.dirname(folder))
    return LogLocation(os.path.basename(folder), project_folder, is_subagent=True)


def directory_of(project_folder: str, digest: str) -> str | None:
    """Return the directory of a project, whose folder is named by its hash or by a word."""
    name = os.path.basename(project_folder)
    try:
        with open_log(os.path.join(project_folder, ".project_root")) as file:
            if path := file.read(1 << 16).decode(errors="replace").strip():
                return path
    except OSError:
        pass
    place = os.path.dirname(os.path.dirname(project_folder))
    words = as_dict(_settings(os.path.join(place, "projects.json")).get("projects"))
    trusted = _settings(os.path.join(place, "trustedFolders.json"))
    for path in (*words, *trusted):
        hashed = hashlib.sha256(path.encode()).hexdigest()
        if words.get(path) == name or hashed in (name, digest):
            return path
    return None


def parts_of(content: object) -> list[dict[str, Any]]:
    """Return the parts of a content, which is a text, one part, or a list of either."""
    parts = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else as_dict(part) for part in parts]


def text_of(content: object) -> str:
    """Join the texts of a content, without thoughts; name media in brackets."""
    texts = []
    for part in parts_of(content):
        media = as_str(as_dict(part.get("inlineData")).get("mimeType"))
        if part.get("thought") is not True:
            texts.append(as_str(part.get("text")) or (f"[{media}]" if media else ""))
    return "\n".join(filter(None, texts))


def thoughts_of(message: dict[str, Any]) -> list[str]:
    """Return the model's thoughts, from their own field and from the content."""
    thoughts = map(as_dict, as_list(message.get("thoughts")))
    fields = ((as_str(one.get("subject")), as_str(one.get("description"))) for one in thoughts)
    texts = ["\n".join(filter(None, each)) for each in fields]
    texts += [
        as_str(part.get("text"))
        for part in parts_of(message.get("content"))
        if part.get("thought") is True
    ]
    return [text for text in texts if text.strip()]


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the executed calls of a message, and the model's other requests for calls."""
    executed = [as_dict(call) for call in as_list(message.get("toolCalls"))]
    ids = {as_str(call.get("id")) for call in executed}
    requested = (as_dict(part.get("functionCall")) for part in parts_of(message.get("content")))
    return [*executed, *(call for call in requested if call and as_str(call.get("id")) not in ids)]


def response_text(part: object) -> str:
    """Return the output or error of a tool."""
    response = as_dict(as_dict(part).get("functionResponse")).get("response")
    values = as_dict(response)
    text = as_str(values.get("output")) or as_str(values.get("error"))
    return text or (json.dumps(response, ensure_ascii=False) if response else text_of(part))


def edit_in(display: dict[str, Any]) -> dict[str, Any] | None:
    """Describe the edit in the display of a result, if there is one."""
    path = as_str(display.get("filePath")) or as_str(display.get("fileName"))
    if not path or "fileDiff" not in display:
        return None
    old, new = display.get("originalContent"), display.get("newContent")
    created = display.get("isNewFile", not old) is True
    if created and isinstance(new, str):
        return edit_data.created(path, new)
    if isinstance(old, str) and isinstance(new, str):
        return edit_data.replaced(path, [(old, new)])
    return edit_data.from_diff(path, "modify", as_str(display.get("fileDiff")))


def _settings(path: str) -> dict[str, Any]:
    try:
        value = read_json_file(path)
    except OSError:
        return {}
    return value if isinstance(value, dict) else {}
