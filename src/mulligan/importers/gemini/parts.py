"""What the parts of a Gemini CLI log say: where a file belongs, texts, calls, changes of files."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from mulligan.importers import edit_data
from mulligan.importers.json_log import open_log, read_json_file
from mulligan.importers.records import Session
from mulligan.importers.values import as_dict, as_list, as_str


def opened(path: str) -> tuple[Session, str, bool]:
    """The session that a file's place tells, its project's folder, and whether it is aside."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    if os.path.basename(folder) == "chats":
        return Session(stem), os.path.dirname(folder), False
    if name.startswith("checkpoint-"):
        return Session(f"{stem}-{os.path.basename(folder)}"), folder, False
    return Session(os.path.basename(folder)), os.path.dirname(os.path.dirname(folder)), True


def directory_of(project: str, digest: str) -> str | None:
    """The directory that a project's folder stands for: its name is a hash of it, or a word."""
    name = os.path.basename(project)
    try:
        with open_log(os.path.join(project, ".project_root")) as file:
            if path := file.read(1 << 16).decode(errors="replace").strip():
                return path
    except OSError:
        pass
    place = os.path.dirname(os.path.dirname(project))
    words = as_dict(_settings(os.path.join(place, "projects.json")).get("projects"))
    trusted = _settings(os.path.join(place, "trustedFolders.json"))
    for path in (*words, *trusted):
        hashed = hashlib.sha256(path.encode()).hexdigest()
        if words.get(path) == name or hashed in (name, digest):
            return path
    return None


def parts_of(content: object) -> list[dict[str, Any]]:
    """The parts of a content, which may be a text, one part, or a list of either."""
    parts = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else as_dict(part) for part in parts]


def text_of(content: object) -> str:
    """The text of a content, without thoughts; media are named in brackets."""
    texts = []
    for part in parts_of(content):
        media = as_str(as_dict(part.get("inlineData")).get("mimeType"))
        if part.get("thought") is not True:
            texts.append(as_str(part.get("text")) or (f"[{media}]" if media else ""))
    return "\n".join(filter(None, texts))


def thoughts_of(message: dict[str, Any]) -> list[str]:
    """What the model thought before it spoke."""
    told = map(as_dict, as_list(message.get("thoughts")))
    whole = ((as_str(one.get("subject")), as_str(one.get("description"))) for one in told)
    texts = ["\n".join(filter(None, words)) for words in whole]
    texts += [
        as_str(part.get("text"))
        for part in parts_of(message.get("content"))
        if part.get("thought") is True
    ]
    return [text for text in texts if text.strip()]


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message: as they were carried out, else as the model asked for them."""
    calls = [as_dict(call) for call in as_list(message.get("toolCalls"))]
    told = {as_str(call.get("id")) for call in calls}
    asked = (as_dict(part.get("functionCall")) for part in parts_of(message.get("content")))
    return [*calls, *(call for call in asked if call and as_str(call.get("id")) not in told)]


def response_text(part: object) -> str:
    """What a tool gave back."""
    response = as_dict(as_dict(part).get("functionResponse")).get("response")
    values = as_dict(response)
    text = as_str(values.get("output")) or as_str(values.get("error"))
    return text or (json.dumps(response, ensure_ascii=False) if response else text_of(part))


def edit_in(display: dict[str, Any]) -> dict[str, Any] | None:
    """The change of a file that the display of a result shows."""
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
