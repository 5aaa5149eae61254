"""The OpenAPI document says what is so: every error has a status, every route is described."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from serving import Api, Server

from mulligan import errors
from mulligan.errors import MulliganError
from mulligan.server.http import errors_json
from mulligan.server.openapi import MEANINGS, document, endpoints


def classes(base: type[MulliganError]) -> Iterator[type[MulliganError]]:
    yield base
    for each in base.__subclasses__():
        yield from classes(each)


def test_every_error_has_a_status() -> None:
    codes = {each.code for each in classes(MulliganError) if each.__module__ == errors.__name__}
    assert codes <= set(errors_json.STATUS)
    assert len(codes) == 14


def test_every_status_of_an_error_is_described() -> None:
    described = {int(status) for status in MEANINGS} | {405}
    assert set(errors_json.STATUS.values()) <= described


def test_the_document_is_served_and_every_schema_in_it_is_one(client: httpx2.Client) -> None:
    served = client.get("/api/v1/openapi.json").json()
    assert served == document()
    assert served["openapi"].startswith("3.1")
    for schema in served["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_reference_leads_somewhere() -> None:
    found = document()

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for each in value.values():
                yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    for reference in references(found):
        place = found
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]


def test_names_of_operations_are_unique() -> None:
    names = [
        operation["operationId"]
        for methods in document()["paths"].values()
        for operation in methods.values()
    ]
    assert len(names) == len(set(names)) == len(list(endpoints()))


@pytest.mark.parametrize(
    "endpoint", list(endpoints()), ids=lambda each: f"{each.method} {each.path}"
)
def test_a_function_takes_the_parts_of_its_path(endpoint: Any) -> None:
    wanted = set(endpoint.hints) - {"return", "hub", "workspace", "request", "query", "body"}
    assert wanted <= set(endpoint.in_path)
    assert set(endpoint.in_path) <= wanted | {"project"}
    assert endpoint.summary and not endpoint.summary.endswith(".")


def test_generated_requests_get_described_answers(
    server: Server, opened: Api, tmp_path: Path
) -> None:
    """schemathesis asks for all that the document allows, and some more; long with an argument."""
    opened.post("/sessions", {}, 201)
    project = opened.base.rpartition("/")[2]
    config = tmp_path / "schemathesis.toml"
    names = {"project": project, "session": "@", "checkpoint": "@"}
    lines = [f'"path.{name}" = "{value}"' for name, value in names.items()]
    config.write_text("\n".join(["[parameters]", *lines]))
    checks = (
        "not_a_server_error", "status_code_conformance", "response_schema_conformance",
        "content_type_conformance",
    )  # fmt: skip
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run",
            f"{server.url}/api/v1/openapi.json", "-H", f"Authorization: Bearer {server.token}",
            "--exclude-path", "/api/v1/events",  # It would not end.
            "--checks", ",".join(checks), "--phases", "fuzzing",
            "--max-examples", os.environ.get("MULLIGAN_EXAMPLES", "4"), "--seed", "1",
        ],
        capture_output=True, check=False, timeout=280, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


class Outside(HTMLParser):
    """What a page loads, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href")]
        assert tag != "script"
        assert "style" not in dict(attrs)


def test_the_reference_can_be_read_without_anything_from_elsewhere(client: httpx2.Client) -> None:
    response = client.get("/api/docs")
    assert response.headers["content-type"].startswith("text/html")
    page = Outside()
    page.feed(response.text)
    assert page.found
    assert all(each.startswith(("/", "#")) for each in page.found)
    assert client.get("/api/docs.css").headers["content-type"].startswith("text/css")
    for endpoint in endpoints():
        assert endpoint.path.replace("{", "{") in response.text
