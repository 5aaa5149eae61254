"""The page's client and the server agree: every request and every type is in the document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mulligan.server.openapi import document

SOURCES = Path(__file__).resolve().parents[2] / "ui/src"
SOURCE = "".join((SOURCES / name).read_text("utf-8") for name in ("api.ts", "types.ts"))
CALL = re.compile(r"\b(get|post|put|patch|remove|text)(?:<[^;(]*?>)?\(\s*\"(/[^\"]+)\"", re.DOTALL)
METHODS = {"remove": "delete", "text": "get"}
INTERFACE = re.compile(r"export interface (\w+)(?: extends (\w+))? \{(.*?)\n\}", re.DOTALL)
FIELD = re.compile(r"^  (\w+)(\??):", re.MULTILINE)
OWN = {"Choice", "SearchQuery"}
"""What requests are made of; their answers are in the document."""

CALLS = sorted({(METHODS.get(verb, verb), path) for verb, path in CALL.findall(SOURCE)})
INTERFACES = {name: (base, body) for name, base, body in INTERFACE.findall(SOURCE)}


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_every_request_is_one_that_the_server_has(method: str, path: str) -> None:
    assert method in document()["paths"].get(f"/api/v1{path}", {})


def test_there_are_requests_to_compare() -> None:
    assert len(CALLS) > 35
    assert len(INTERFACES) > 30


@pytest.mark.parametrize("name", sorted(set(INTERFACES) - OWN))
def test_every_field_that_the_page_reads_is_one_that_the_server_gives(name: str) -> None:
    schemas = document()["components"]["schemas"]
    given = _properties(schemas, schemas[name])
    read = _fields(name)
    if name == "Session":
        given |= {"pending"}  # only in lists
    if name == "FileChange":
        given |= {"patch"}  # only in differences
    assert read <= given


def _fields(name: str) -> set[str]:
    base, body = INTERFACES[name]
    return {field for field, _ in FIELD.findall(body)} | (_fields(base) if base else set())


def _properties(schemas: dict[str, dict], schema: dict) -> set[str]:
    found = set(schema.get("properties", {}))
    for part in schema.get("allOf", ()):
        found |= _properties(
            schemas, schemas[part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        )
    return found
