"""What the parts of a Gemini CLI log say: where a file belongs, texts, calls, changes of files."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from mulligan.importers import changes
from mulligan.importers.lines import json_file, mapping, open_log, sequence, string
from mulligan.importers.records import Session


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
    words = mapping(_settings(os.path.join(place, "projects.json")).get("projects"))
    trusted = _settings(os.path.join(place, "trustedFolders.json"))
    for path in (*words, *trusted):
        hashed = hashlib.sha256(path.encode()).hexdigest()
        if words.get(path) == name or hashed in (name, digest):
            return path
    return None


def parts_of(content: object) -> list[dict[str, Any]]:
    """The parts of a content, which may be a text, one part, or a list of either."""
    parts = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else mapping(part) for part in parts]


def text_of(content: object) -> str:
    """The text of a content, without thoughts; media are named in brackets."""
    texts = []
    for part in parts_of(content):
        media = string(mapping(part.get("inlineData")).get("mimeType"))
        if part.get("thought") is not True:
            texts.append(string(part.get("text")) or (f"[{media}]" if media else ""))
    return "\n".join(filter(None, texts))


def thoughts_of(message: dict[str, Any]) -> list[str]:
    """What the model thought before it spoke."""
    told = map(mapping, sequence(message.get("thoughts")))
    whole = ((string(one.get("subject")), string(one.get("description"))) for one in told)
    texts = ["\n".join(filter(None, words)) for words in whole]
    texts += [
        string(part.get("text"))
        for part in parts_of(message.get("content"))
        if part.get("thought") is True
    ]
    return [text for text in texts if text.strip()]


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a message: as they were carried out, else as the model asked for them."""
    calls = [mapping(call) for call in sequence(message.get("toolCalls"))]
    told = {string(call.get("id")) for call in calls}
    asked = (mapping(part.get("functionCall")) for part in parts_of(message.get("content")))
    return [*calls, *(call for call in asked if call and string(call.get("id")) not in told)]


def response_text(part: object) -> str:
    """What a tool gave back."""
    response = mapping(mapping(part).get("functionResponse")).get("response")
    values = mapping(response)
    text = string(values.get("output")) or string(values.get("error"))
    return text or (json.dumps(response, ensure_ascii=False) if response else text_of(part))


def edit_in(display: dict[str, Any]) -> dict[str, Any] | None:
    """The change of a file that the display of a result shows."""
    path = string(display.get("filePath")) or string(display.get("fileName"))
    if not path or "fileDiff" not in display:
        return None
    old, new = display.get("originalContent"), display.get("newContent")
    created = display.get("isNewFile", not old) is True
    if created and isinstance(new, str):
        return changes.created(path, new)
    if isinstance(old, str) and isinstance(new, str):
        return changes.replaced(path, [(old, new)])
    return changes.unified(path, "modify", string(display.get("fileDiff")))


def _settings(path: str) -> dict[str, Any]:
    try:
        value = json_file(path)
    except OSError:
        return {}
    return value if isinstance(value, dict) else {}
