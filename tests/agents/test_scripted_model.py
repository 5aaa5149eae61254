"""What the scripted model promises: to speak its protocols, and to play its script by results."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import script as scripts
import toolbox as toolboxes
from clients import (
    Anthropic,
    Called,
    ChatCompletions,
    Client,
    Connect,
    Gemini,
    Heard,
    Ollama,
    Responses,
    Vertex,
)
from script import Call, Script, Step, Turn, edit, read, shell, write
from scripted_model import ASIDE, ScriptedModel
from toolbox import Toolbox

ROOT = Path("/shop")
LONG = "“Good morning!” says the shop, in more words than fit into one piece of a stream.\n"
SCRIPT = Script(
    (
        Turn(
            "Tidy up.",
            (
                Step((write("a.txt", LONG),), "I write, in a good many words, what I have to say."),
                Step((read("b.txt"), shell("rm c.txt"))),
                Step((edit("b.txt", "two", "three"),), "Two is three."),
            ),
            "Tidy now: every shelf, every corner.",
        ),
        Turn("Open.", (Step((shell("echo open"),)),), "Open now."),
    )
)
CLIENTS: dict[str, tuple[Connect, Toolbox]] = {
    "anthropic": (Anthropic, toolboxes.claude),
    "responses": (Responses, toolboxes.codex),
    "chat": (ChatCompletions, toolboxes.pi),
    "gemini": (Gemini, toolboxes.gemini),
    "vertex": (Vertex, toolboxes.gemini),
    "ollama": (Ollama, toolboxes.opencode),
}


@pytest.fixture(params=CLIENTS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_official_client_hears_the_script_as_it_is_written(protocol: str, stream: bool) -> None:
    with serve(protocol) as model:
        client = connect(protocol, model, stream=stream)
        heard = [*converse(client, "Tidy up."), *converse(client, "Open.")]

    assert heard == expected(protocol, 0) + expected(protocol, 1)
    assert [request.played for request in model.requests] == [
        *("step 0.0", "step 0.1", "step 0.2", "final 0"),
        *("step 1.0", "final 1"),
    ]


def test_model_is_told_what_the_tools_gave_back(protocol: str) -> None:
    with serve(protocol) as model:
        converse(connect(protocol, model), "Tidy up.")

    results = list(model.requests[-1].results.values())
    assert results == ["result 0", "result 0", "result 1", "result 0"]


def test_request_sent_again_gets_the_same_answer(protocol: str) -> None:
    with serve(protocol) as model:
        client = connect(protocol, model)
        client.say("Tidy up.")
        first = client.hear()
        repeated = connect(protocol, model)
        repeated.say("Tidy up.")

        assert repeated.hear() == first


def test_request_without_tools_is_an_aside(protocol: str) -> None:
    with serve(protocol) as model:
        client = CLIENTS[protocol][0](model.url, [], True)
        client.say("Find a title for this: Tidy up.")

        assert client.hear() == Heard(ASIDE, [])
        assert [request.played for request in model.requests] == ["aside"]


def test_prompt_that_is_not_in_the_script_is_an_aside(protocol: str) -> None:
    with serve(protocol) as model:
        client = connect(protocol, model)
        client.say("Sing.")

        assert client.hear() == Heard(ASIDE, [])


@pytest.mark.parametrize("name", ["anthropic", "responses", "chat"])
def test_results_may_come_in_any_order_but_all_must_come(name: str) -> None:
    with serve(name) as model:
        client = connect(name, model)
        client.say("Tidy up.")
        client.give(client.hear().calls[0], "written")
        left, right = client.hear().calls
        client.give(right, "removed")

        assert client.hear().calls == [left, right]
        client.give(left, "read")
        assert client.hear().text == "Two is three."


def test_calls_of_two_servers_have_different_ids() -> None:
    with serve("anthropic") as one, serve("anthropic") as other:
        ids = []
        for model in (one, other):
            client = connect("anthropic", model)
            client.say("Tidy up.")
            ids.append(client.hear().calls[0].id)

    assert ids[0] != ids[1]


def test_prompt_counts_wherever_the_agent_puts_it_among_its_own_words() -> None:
    with serve("chat") as model:
        client = connect("chat", model)
        client.say("<reminder>Be brief.</reminder>\nTidy up.\n")
        client.say("<reminder>It is Monday.</reminder>")

        assert client.hear().calls


def test_held_answer_comes_when_it_is_released(protocol: str) -> None:
    held = Script((Turn("Wait.", (), "Waited.", hold="door"), Turn("Go.", (), "Gone.")))
    with serve(protocol, held) as model:
        waiting = Later(connect(protocol, model), "Wait.")
        model.wait_until_held("door")
        passing = connect(protocol, model)
        passing.say("Go.")

        assert passing.hear().text == "Gone."
        assert waiting.heard is None
        model.release("door")
        assert waiting.join() == Heard("Waited.", [])


def test_step_is_held_after_the_steps_before_it_were_done() -> None:
    held = Script((Turn("Go.", (Step((shell("a"),)), Step((shell("b"),), hold="half way"))),))
    with serve("chat", held) as model:
        client = connect("chat", model)
        client.say("Go.")
        client.give(client.hear().calls[0], "done")
        waiting = Later(client)
        model.wait_until_held("half way")
        model.release("half way")

        assert [call.arguments for call in waiting.join().calls] == [{"command": "b"}]


def test_waiting_for_a_hold_that_nobody_reaches_fails() -> None:
    with serve("chat") as model, pytest.raises(TimeoutError, match="the hold 'door'"):
        model.wait_until_held("door", timeout=0.01)


def test_client_that_hangs_up_disturbs_nobody() -> None:
    held = Script((Turn("Wait.", (), LONG * 1000, hold="door"), Turn("Go.", (), "Gone.")))
    with serve("chat", held) as model:
        body = {
            "model": "m",
            "stream": True,
            "messages": [{"role": "user", "content": "Wait."}],
            "tools": [{"type": "function", "function": {"name": "bash"}}],
        }
        with pytest.raises(TimeoutError):
            post(f"{model.url}/v1/chat/completions", body, timeout=0.2)
        model.release("door")
        client = connect("chat", model)
        client.say("Go.")

        assert client.hear().text == "Gone."


def test_anything_else_is_not_found_and_kept() -> None:
    with serve("chat") as model:
        for path, body in (("/v1/models", None), ("/v1/embeddings", {"input": "x"})):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                post(model.url + path, body)

    assert [request[:3] for request in model.requests] == [
        ("GET", "/v1/models", {"unread": ""}),
        ("POST", "/v1/embeddings", {"unread": '{"input": "x"}'}),
    ]
    assert {request.played for request in model.requests} == {"none"}


def test_tools_offered_in_groups_among_the_input_are_seen() -> None:
    group = {
        "type": "namespace",
        "name": "functions",
        "tools": [{"type": "custom", "name": "exec"}],
    }
    body = {
        "model": "m",
        "input": [
            {"type": "additional_tools", "role": "developer", "tools": [group]},
            {"type": "message", "role": "user", "content": "Open."},
        ],
    }
    with ScriptedModel(SCRIPT, toolboxes.codex_code_mode, ROOT) as model:
        answer = post(f"{model.url}/v1/responses", body)

    assert model.requests[0].tools == ("exec",)
    assert answer["output"][0]["input"] == 'text(await tools.exec_command({"cmd": "echo open"}));'


@pytest.mark.parametrize("toolbox", [toolboxes.claude, toolboxes.codex, toolboxes.gemini])
def test_call_of_no_known_role_is_a_tool_of_the_agents_own(toolbox: Toolbox) -> None:
    assert toolbox(Call("Agent", {"prompt": "x"}), ROOT) == ("Agent", {"prompt": "x"})


def test_script_file_reads_as_the_script_it_was_written_from(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(
        json.dumps(
            {
                "turns": [
                    {
                        "prompt": "Go.",
                        "steps": [
                            {
                                "text": "I go.",
                                "calls": [
                                    {"write": {"path": "a", "content": "b"}},
                                    {"shell": {"command": "c"}},
                                ],
                                "hold": "half way",
                            }
                        ],
                        "final": "Gone.",
                    },
                    {"prompt": "Rest."},
                ]
            }
        )
    )

    step = Step((write("a", "b"), shell("c")), "I go.", "half way")
    assert scripts.load(path) == Script((Turn("Go.", (step,), "Gone."), Turn("Rest.")))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "missing in a script: turns"),
        ({"turns": [{"steps": []}]}, "missing in a script: prompt"),
        ({"turns": [{"prompt": "x", "finale": "y"}]}, "unknown in a script: finale"),
        ({"turns": [{"prompt": "x", "steps": [{"text": "y"}]}]}, "missing in a script: calls"),
    ],
)
def test_script_file_with_a_mistake_is_refused(
    tmp_path: Path, content: dict[str, Any], problem: str
) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(content))

    with pytest.raises(ValueError, match=problem):
        scripts.load(path)


class Later:
    """A client that hears in the background."""

    def __init__(self, client: Client, prompt: str = "") -> None:
        if prompt:
            client.say(prompt)
        self.heard: Heard | None = None
        self._client = client
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def join(self) -> Heard:
        self._thread.join(60)
        assert self.heard is not None
        return self.heard

    def _hear(self) -> None:
        self.heard = self._client.hear()


def serve(protocol: str, script: Script = SCRIPT) -> ScriptedModel:
    return ScriptedModel(script, CLIENTS[protocol][1], ROOT)


def connect(protocol: str, model: ScriptedModel, *, stream: bool = True) -> Client:
    make, toolbox = CLIENTS[protocol]
    calls = [call for turn in SCRIPT.turns for step in turn.steps for call in step.calls]
    return make(model.url, sorted({toolbox(call, ROOT)[0] for call in calls}), stream)


def converse(client: Client, prompt: str) -> list[Heard]:
    """One turn as an agent plays it: every call gets a result, until there are none."""
    client.say(prompt)
    heard = [client.hear()]
    while heard[-1].calls:
        for place, call in enumerate(heard[-1].calls):
            client.give(call, f"result {place}")
        heard.append(client.hear())
    return [_without_ids(each) for each in heard]


def expected(protocol: str, turn: int) -> list[Heard]:
    toolbox = CLIENTS[protocol][1]
    steps = [
        Heard(step.text, [Called(None, *toolbox(call, ROOT)) for call in step.calls])
        for step in SCRIPT.turns[turn].steps
    ]
    return [*steps, Heard(SCRIPT.turns[turn].final, [])]


def post(url: str, body: dict[str, Any] | None, timeout: float = 30) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=timeout) as response:
        return json.loads(response.read())


def _without_ids(heard: Heard) -> Heard:
    return Heard(heard.text, [call._replace(id=None) for call in heard.calls])
