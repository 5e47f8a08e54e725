"""The scripted model as an HTTP endpoint, without the CLI."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from agent_kit.testing import IssuedCall, Say, ScriptedModel, ToolCall, ToolResult, Turn

READ = ToolCall("Read", {"file_path": "a.txt"})
TOOLS = [{"name": "Read"}]


@pytest.fixture(autouse=True)
def _own_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call ids hold a random part of the model's own; here it is ``own``."""
    monkeypatch.setattr("agent_kit.testing._plays.secrets.token_hex", lambda _size: "own")


def send(
    model: ScriptedModel,
    method: str,
    path: str,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    host = model.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=5)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def ask(model: ScriptedModel, *messages: object, agent: str | None = None, **body: object) -> Any:
    """One message request; the answer's content blocks."""
    whole = {"model": "m", "messages": messages, "tools": TOOLS, **body}
    headers = {} if agent is None else {"x-claude-code-agent-id": agent}
    status, text = send(model, "POST", "/v1/messages?beta=true", json.dumps(whole), headers)
    assert status == 200, text
    return json.loads(text)["content"]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def result(call_id: str, content: object, **more: object) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}
    return {"role": "user", "content": [block]}


def names(blocks: list[dict[str, Any]]) -> list[str]:
    return [block.get("name", block.get("text", "")) for block in blocks]


# --- the endpoint ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", None),
        ("HEAD", "/", None),
        ("POST", "/v1/messages/count_tokens", "{}"),
        ("POST", "/api/event_logging/batch", "no json"),
        ("DELETE", "/v1/files/x", None),
    ],
)
def test_every_other_request_gets_a_harmless_answer(
    method: str, path: str, body: str | None
) -> None:
    with ScriptedModel(["only once"]) as model:
        status, text = send(model, method, path, body)
        assert (status, text) in [(200, ""), (200, "{}"), (200, '{"input_tokens": 1}')]
        assert names(ask(model)) == ["only once"]
        assert [(r.method, r.path, r.text) for r in model.requests[:1]] == [
            (method, path, body or "")
        ]


def test_the_answer_to_a_head_request_has_no_body() -> None:
    with ScriptedModel() as model:
        port = int(model.url.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            plain.sendall(b"HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: plain.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n")


def test_tokens_are_counted() -> None:
    with ScriptedModel() as model:
        _, text = send(model, "POST", "/v1/messages/count_tokens?beta=true", "{}")
    assert json.loads(text) == {"input_tokens": 1}


def test_a_stream_spells_the_same_message_as_the_json_answer() -> None:
    step = (READ, Say("é and more"), ToolCall("Grep", {"pattern": "x"}))
    with ScriptedModel([step]) as model:
        plain = ask(model)
    with ScriptedModel([step]) as model:
        body = json.dumps({"model": "m", "messages": [], "tools": TOOLS, "stream": True})
        _, text = send(model, "POST", "/v1/messages", body)
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    kinds = [line[7:] for line in text.splitlines() if line.startswith("event: ")]
    assert kinds == [event["type"] for event in events]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert rebuilt(events) == plain


def rebuilt(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for event in events:
        match event["type"], event.get("delta", {}).get("type"):
            case "content_block_start", _:
                blocks.append(event["content_block"])
            case _, "text_delta":
                blocks[event["index"]]["text"] += event["delta"]["text"]
            case _, "input_json_delta":
                blocks[event["index"]]["input"] = json.loads(event["delta"]["partial_json"])
    return blocks


def test_text_alone_ends_the_turn() -> None:
    with ScriptedModel(["bye"]) as model:
        whole = json.dumps({"model": "m", "messages": [], "tools": TOOLS})
        _, text = send(model, "POST", "/v1/messages", whole)
    assert json.loads(text)["stop_reason"] == "end_turn"


def test_what_is_asked_of_another_host_is_refused_and_listed() -> None:
    with ScriptedModel() as model:
        status, _ = send(model, "CONNECT", "example.invalid:443")
        other, _ = send(model, "GET", "http://example.invalid/x")
        assert (status, other) == (403, 403)
        assert model.outside == ("example.invalid:443", "http://example.invalid/x")


async def test_it_listens_only_inside_its_block() -> None:
    model = ScriptedModel()
    with pytest.raises(RuntimeError, match="isn't running"):
        _ = model.url
    async with model:
        url = model.url
        with pytest.raises(RuntimeError, match="runs already"):
            model.start()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(url.removeprefix("http://"), timeout=5).request("GET", "/")
    model.stop()


# --- scripts ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script", ["text", READ, [3], [()], [(READ, 3)], [None], [ToolCall("Agent", {}, script="x")]]
)
def test_what_is_no_script_is_refused_at_once(script: Any) -> None:
    with pytest.raises(TypeError, match="is"):
        ScriptedModel(script)
    with pytest.raises(TypeError, match="is"):
        ScriptedModel(subagents={"p": script})


def test_steps_are_played_in_order_and_then_the_model_is_done() -> None:
    with ScriptedModel([READ, (READ, "meanwhile"), Say("bye")]) as model:
        said = [names(ask(model)) for _ in range(5)]
    assert said == [["Read"], ["Read", "meanwhile"], ["bye"], ["Done."], ["Done."]]


def test_a_call_is_made_exactly_as_it_is_written() -> None:
    odd = {"file_path": ["not", "text"], "x\x00y": None, "é": "😀"}
    with ScriptedModel([ToolCall("No Such Tool", odd)]) as model:
        [block] = ask(model)
    assert block == {
        "type": "tool_use",
        "id": "toolu_own_0001",
        "name": "No Such Tool",
        "input": odd,
    }


def test_a_side_request_takes_no_step() -> None:
    with ScriptedModel(["bye"]) as model:
        title = ask(model, user("Give a title."), tools=[])
        assert names(title) == ["Untitled"]
        assert names(ask(model)) == ["bye"]
        assert [request.side for request in model.requests] == [True, False]


def test_a_conversation_without_tools_is_no_side_request() -> None:
    with ScriptedModel(["bye"], subagents={"p": ["me too"]}) as model:
        assert names(ask(model, tools=[], context_management={"edits": []})) == ["bye"]
        assert names(ask(model, user("p"), tools=[], agent="a1")) == ["me too"]


def test_a_function_sees_the_prompt_and_the_results_of_its_last_step() -> None:
    turns: list[Turn] = []

    def script(turn: Turn) -> object:
        turns.append(turn)
        return (READ, READ) if turn.number == 0 else None

    with ScriptedModel(script) as model:  # type: ignore[arg-type]
        ask(model, user("<system-reminder>x</system-reminder>"), user("the prompt"))
        later = [result("toolu_own_0002", [{"type": "text", "text": "two"}], is_error=True)]
        later.insert(0, result("toolu_own_0001", "one"))
        assert names(ask(model, user("the prompt"), *later)) == ["Done."]
    assert [turn.prompt for turn in turns] == ["the prompt", "the prompt"]
    assert (turns[0].number, turns[0].results, turns[0].agent) == (0, (), None)
    assert turns[1].results == (
        ToolResult(call_id="toolu_own_0001", name="Read", text="one", is_error=False),
        ToolResult(call_id="toolu_own_0002", name="Read", text="two", is_error=True),
    )
    assert turns[1].messages[0] == user("the prompt")
    assert turns[1].body["model"] == "m"


def test_a_function_may_look_at_the_record() -> None:
    with ScriptedModel(lambda turn: str(model.saw("canary"))) as model:
        assert names(ask(model, user("nothing"))) == ["False"]
        assert names(ask(model, user("a canary"))) == ["True"]


def test_results_of_earlier_steps_are_not_in_the_turn() -> None:
    def script(turn: Turn) -> ToolCall | str:
        return READ if turn.number < 2 else f"{len(turn.results)}"

    with ScriptedModel(script) as model:
        ask(model)
        ask(model, result("toolu_own_0001", "one"))
        answer = ask(model, result("toolu_own_0001", "one"), result("toolu_own_0002", "two"))
    assert names(answer) == ["1"]


def test_what_a_function_raises_is_kept_and_the_cli_gets_an_error() -> None:
    def script(turn: Turn) -> str:
        raise LookupError(f"request {turn.body['n']}")

    with ScriptedModel(script) as model:
        status, text = send(model, "POST", "/v1/messages", json.dumps({"tools": TOOLS, "n": 1}))
        assert status == 400
        assert "LookupError" in json.loads(text)["error"]["message"]
        send(model, "POST", "/v1/messages", json.dumps({"tools": TOOLS, "n": 2}))
    assert isinstance(model.error, LookupError)
    assert str(model.error) == "request 1"


def test_a_function_that_returns_no_step_is_an_error() -> None:
    with ScriptedModel(lambda turn: 3) as model:  # type: ignore[arg-type, return-value]
        status, _ = send(model, "POST", "/v1/messages", json.dumps({"tools": TOOLS}))
    assert status == 400
    assert isinstance(model.error, TypeError)


# --- subagents -------------------------------------------------------------------------------


def agent_call(prompt: str, *says: str) -> ToolCall:
    return ToolCall("Agent", {"prompt": prompt, "subagent_type": "t"}, script=list(says))


def test_a_subagent_plays_the_script_of_the_call_with_its_prompt() -> None:
    with ScriptedModel([(agent_call("p", "short"), agent_call("p one", "long")), "main"]) as model:
        ask(model)
        reminder = user("<system-reminder>about p one</system-reminder>")["content"]
        first = {"role": "user", "content": [*reminder, *user("p")["content"]]}
        assert names(ask(model, first, agent="a1")) == ["short"]
        assert names(ask(model, user("p one"), agent="a2")) == ["long"]
        assert names(ask(model)) == ["main"]
        assert [request.agent for request in model.requests] == [None, "a1", "a2", None]


def test_a_rewritten_prompt_still_finds_the_nearest_script() -> None:
    with ScriptedModel([(agent_call("p", "short"), agent_call("p one", "long"))]) as model:
        ask(model)
        assert names(ask(model, user("Be kind. p one"), agent="a2")) == ["long"]


def test_two_subagents_with_one_prompt_play_a_script_each() -> None:
    with ScriptedModel([(agent_call("p", "x", "x2"), agent_call("p", "y"))]) as model:
        ask(model)
        order = ["a1", "a2", "a1", "a2"]
        said = [names(ask(model, user("p"), agent=agent))[0] for agent in order]
    assert said == ["x", "y", "x2", "Done."]


def test_a_subagent_is_found_by_a_text_in_its_prompt() -> None:
    with ScriptedModel(["main"], subagents={"lion": ["roar"], "cat": ["meow"]}) as model:
        assert names(ask(model, user("you are a cat"), agent="a1")) == ["meow"]
        assert names(ask(model, user("you are a dog"), agent="a2")) == ["Done."]
        assert names(ask(model)) == ["main"]


def test_a_subagent_is_found_by_its_type_before_any_text() -> None:
    calls = (ToolCall("Agent", {"prompt": "a cat", "subagent_type": "lion"}), agent_call("cat b"))
    plain = ToolCall("Agent", {"prompt": "nobody"})
    scripts = {"cat": ["meow"], "lion": ["roar"], "general-purpose": ["hello"]}
    with ScriptedModel(
        [(*(ToolCall(c.name, c.input) for c in calls), plain)], subagents=scripts
    ) as m:
        ask(m)
        assert names(ask(m, user("a cat"), agent="a1")) == ["roar"]
        assert names(ask(m, user("cat b"), agent="a2")) == ["meow"]  # its type is no key
        assert names(ask(m, user("nobody"), agent="a3")) == ["hello"]
        assert names(ask(m, user("a cat"), agent="a4")) == ["meow"]  # no call tells its type


def test_a_script_that_no_subagent_was_given_is_unplayed() -> None:
    scripts = {"auditor": [READ, "end"], "cat": ["meow"], "f": lambda turn: "x"}
    with ScriptedModel(["main"], subagents=scripts) as model:
        ask(model)
        assert list(model.unplayed) == [READ, "end", "meow"]
        ask(model, user("a cat"), agent="a1")
        assert list(model.unplayed) == [READ, "end"]


def test_the_script_of_the_call_goes_before_the_table() -> None:
    with ScriptedModel([agent_call("p", "own")], subagents={"p": ["table"]}) as model:
        ask(model)
        assert names(ask(model, user("p"), agent="a1")) == ["own"]


def test_a_function_plays_the_subagents_that_have_no_script() -> None:
    def script(turn: Turn) -> ToolCall | str:
        if turn.agent is None and turn.number == 0:
            return ToolCall("Agent", {"prompt": "p", "subagent_type": "t"})
        return f"{turn.agent} {turn.agent_type} {turn.prompt} {turn.number}"

    with ScriptedModel(script) as model:
        ask(model, user("go"))
        assert names(ask(model, user("p"), agent="a1")) == ["a1 t p 0"]
        assert names(ask(model, user("p"), agent="a1")) == ["a1 t p 1"]
        assert names(ask(model, user("go"))) == ["None None go 1"]


# --- the record ------------------------------------------------------------------------------


def test_calls_and_results_are_recorded() -> None:
    with ScriptedModel([(READ, agent_call("p"))]) as model:
        ask(model)
        ask(model, result("toolu_own_0001", "one"), result("toolu_9999", "not ours"))
        assert model.issued[0] == IssuedCall(call_id="toolu_own_0001", call=READ, agent=None)
        assert [issued.call.name for issued in model.issued] == ["Read", "Agent"]
    assert {key: value.text for key, value in model.results.items()} == {"toolu_own_0001": "one"}


def test_the_model_knows_what_it_saw_and_where() -> None:
    with ScriptedModel() as model:
        ask(model, user("nothing"))
        ask(model, user('a "canary"'))
    assert model.saw('a "canary"')
    assert not model.saw("a canary")
    assert model.where('a "canary"') == ("#1.messages[0].content[0].text",)
    assert model.where("canary")[-1] == "#1 raw"


def test_steps_that_nobody_reached_are_listed() -> None:
    with ScriptedModel(["a", agent_call("p", "x", "y"), "b"], subagents={"q": ["z"]}) as model:
        assert len(model.unplayed) == 4
        ask(model)
        ask(model)
        assert list(model.unplayed) == ["b", "x", "y", "z"]
        ask(model, user("p"), agent="a1")
        ask(model)
        assert list(model.unplayed) == ["y", "z"]
        ask(model, user("p"), agent="a1")
        ask(model, user("p"), agent="a1")
        assert list(model.unplayed) == ["z"]
        ask(model, user("q"), agent="a2")
        assert list(model.unplayed) == []


def test_a_request_that_is_no_json_object_is_recorded_as_it_came() -> None:
    with ScriptedModel() as model:
        send(model, "POST", "/v1/messages", "[1, canary]")
        send(model, "POST", "/v1/messages", '["canary"]')
    assert [request.body for request in model.requests] == [{}, {}]
    assert [request.saw("canary") for request in model.requests] == [True, True]
