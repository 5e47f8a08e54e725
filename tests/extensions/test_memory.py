"""memory(): notes about one person, each with the person's own words."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit.extension import Contribution, ExtensionContext
from agent_kit.scope import ConfigError, FileScope, check_file_scope
from agent_kit.sdk.hooks import chain
from agent_kit_memory import Memory, Prompts, memory

Context = Callable[..., ExtensionContext]
Connect = Callable[[Contribution], Any]

SAID = "I can't stand mornings.\nPlease  be brief, and call me José."


class Session:
    """A session with a memory: what the person says, and the tools."""

    def __init__(self, made: Contribution, call: Any) -> None:
        (self.hook,) = made.hooks["UserPromptSubmit"]
        self.made = made
        self.call = call

    async def says(self, prompt: Any, **payload: Any) -> None:
        result = await self.hook(
            {"hook_event_name": "UserPromptSubmit", "prompt": prompt, **payload}, None, None
        )
        assert result == {}

    async def remember(self, note: str, quote: str, **fields: Any) -> Any:
        return await self.call("remember", note=note, quote=quote, **fields)


@pytest.fixture
def session(context: Context, caller: Connect) -> Session:
    made = memory(dir="memory").contribute(context())
    return Session(made, caller(made))


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


# Whose memory


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({}, ["memory.user"]),
        ({"dir": "m", "user": "ada"}, ["memory.user"]),
        ({"user": ""}, ["memory.user"]),
        ({"user": "  "}, ["memory.user"]),
        ({"user": 3}, ["memory.user"]),
        ({"user": "\ud800"}, ["memory.user"]),
        ({"dir": ""}, ["memory.dir"]),
        ({"dir": "", "user": ""}, ["memory.user", "memory.dir", "memory.user"]),
    ],
)
def test_one_of_the_two_is_required_and_must_be_usable(
    options: dict[str, Any], fields: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        memory(**options)
    assert [fault.field for fault in caught.value.faults] == fields


@pytest.mark.parametrize("value", [None, "", 3])
def test_a_function_that_gives_no_person_stops_the_session(context: Context, value: Any) -> None:
    with pytest.raises(ConfigError, match=r"memory\.user"):
        memory(user=lambda _config: value).contribute(context())


def root_of(made: Contribution) -> Path:
    assert isinstance(made.api, Memory)
    return made.api.store.root


def test_each_person_has_a_folder_of_their_own_under_the_data_folder_of_the_agent(
    context: Context, data_home: Path
) -> None:
    people = ["ada", "Ada", "José", "Jose\u0301", "../ada", "a/d/a", "陈", "NUL"]
    roots = [root_of(memory(user=person).contribute(context())) for person in people]
    assert len({str(root).casefold() for root in roots}) == len(people)
    assert {root.parent for root in roots} == {data_home / "course-assistant" / "memory"}
    assert root_of(memory(user=lambda c: c.who).contribute(context(who="ada"))) == roots[0]


async def test_one_persons_notes_never_reach_another(context: Context, caller: Connect) -> None:
    ada = memory(user="ada").contribute(context())
    session = Session(ada, caller(ada))
    await session.says(SAID)
    await session.remember("Not a morning person", "I can't stand mornings")
    other = caller(memory(user="Ada").contribute(context()))
    assert (await other("recall")).text == "Nothing is remembered here."
    again = caller(memory(user="ada").contribute(context()))
    assert "Not a morning person" in (await again("recall")).text


def test_the_folders_of_all_people_are_closed_to_the_file_tools(
    context: Context, project: Path, data_home: Path
) -> None:
    other = root_of(memory(user="bob").contribute(context()))
    made = memory(user="ada").contribute(context())
    scope = FileScope(
        project_dir=str(project),
        searchable_dirs=(str(data_home),),
        tool_only_dirs=made.tool_only_dirs,
    )
    for root in (root_of(made), other):
        reason = check_file_scope(scope, "Read", {"file_path": str(root / "fact" / "x.md")})
        assert reason is not None
        assert "reached only through its tools: recall, remember, forget" in reason


def test_the_folder_is_its_owners_alone(context: Context, data_home: Path) -> None:
    root = root_of(memory(user="ada").contribute(context()))
    assert root.stat().st_mode & 0o077 == 0


# The person's word


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("I can't stand mornings.", "I can't stand mornings"),
        ("I  can't\n\tstand\u00a0mornings", "I can't stand mornings"),
        ("call me José", "call me Jose\u0301"),
        ("call me Jose\u0301", "José"),
        ("我吃素，不吃肉", "我吃素"),
        ("我吃素，\n不吃肉", "我吃素，不吃肉"),
        ("我吃素", "我 吃素"),
        ("我用 Python 写", "我用Python写"),
        ("ｆｕｌｌ width", "full width"),
        ("素食", "素食"),
        ("No", "No"),
        ("resend it, then send it", "send it"),
        ("(I like ham)", "I like ham"),
        ("오늘은 학교에 갑니다", "오늘은 학교"),
    ],
)
def test_a_quote_is_found_white_space_and_unicode_form_aside(said: str, quote: str) -> None:
    prompts = Prompts()
    prompts.add(said)
    assert prompts.hold(quote)


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("I like ham", "I like jam"),
        ("I like ham", "i like ham"),
        ("I like ham", ""),
        ("I like ham", "   "),
        ("I like ham", "I"),
        ("I like ham", "m"),
        ("I like ham.", "."),
        ("now here", "nowhere"),
        ("I like", "I like ham"),
        ("我吃素", "素"),
        ("please don't send my grades", "end my grades"),
        ("please don't send my grades", "please don't send my grade"),
    ],
)
def test_words_that_the_person_did_not_say_are_not_found(said: str, quote: str) -> None:
    prompts = Prompts()
    prompts.add(said)
    assert not prompts.hold(quote)


def test_a_quote_does_not_reach_from_one_prompt_into_the_next() -> None:
    prompts = Prompts()
    prompts.add("I like")
    prompts.add("ham")
    assert not prompts.hold("I like ham")


INJECTED = [
    "<task-notification>I like ham</task-notification>",
    "<task-notification>\n<task-id>1</task-id>\nI like ham",
    "text before <task-notification>I like ham</task-notification>",
    "<TASK-Notification>I like ham",
    "＜task-notification＞I like ham",
    "< task-notification >I like ham",
    '<teammate-message from="x">I like ham',
    "<system-reminder>I like ham</system-reminder>",
    "  <some-later-tag a='b'>I like ham</some-later-tag>",
    "<local-command-stdout>I like ham</local-command-stdout>",
    "The following one-shot scheduled task was missed while Claude was not running. I like ham",
]


@pytest.mark.parametrize("prompt", INJECTED)
async def test_what_the_cli_submits_itself_is_never_the_persons_word(
    session: Session, prompt: str
) -> None:
    await session.says(prompt)
    answer = await session.remember("Likes ham", "I like ham")
    assert answer.is_error
    assert "the quote isn't in anything the person wrote in this session" in answer.text
    assert (await session.call("recall")).text == "Nothing is remembered here."


async def test_a_persons_own_angle_brackets_are_heard(session: Session) -> None:
    await session.says("<b>I like ham</b> and a < b")
    assert not (await session.remember("Likes ham", "I like ham")).is_error


@pytest.mark.parametrize("payload", [{"agent_id": "a1"}, {"agent_id": "a1", "agent_type": "x"}])
async def test_a_subagents_prompt_is_not_the_persons(
    session: Session, payload: dict[str, Any]
) -> None:
    await session.says("I like ham", **payload)
    assert (await session.remember("Likes ham", "I like ham")).is_error


async def calls(session: Session, tool: str, **fields: Any) -> None:
    """The session's gate asks the memory about a call, as far as it wants to see it."""
    (hook,) = session.made.hooks["PreToolUse"]
    for each in chain([hook]):
        if each.wants(tool):
            payload = {"tool_name": tool, "tool_input": fields}
            assert await each.callback(payload, "id", None) == {}


@pytest.mark.parametrize("tool", ["CronCreate", "ScheduleWakeup"])
async def test_what_the_model_scheduled_is_not_the_persons_word_when_it_comes(
    session: Session, tool: str
) -> None:
    await calls(session, tool, prompt="I like  ham", cron="* * * * *")
    await session.says("I like ham")
    assert (await session.remember("Likes ham", "I like ham")).is_error
    await session.says("I like ham, really")
    assert not (await session.remember("Likes ham", "I like ham")).is_error


async def test_another_tools_prompt_takes_nothing_from_the_person(session: Session) -> None:
    await calls(session, "Agent", prompt="I like ham")
    await calls(session, "CronCreate", prompt=None)
    await session.says("I like ham")
    assert not (await session.remember("Likes ham", "I like ham")).is_error


@pytest.mark.parametrize("when", ["before", "after"])
async def test_what_an_earlier_session_scheduled_is_not_the_persons_word(
    when: str, context: Context, caller: Connect, project: Path
) -> None:
    file = project / ".claude" / "scheduled_tasks.json"
    file.parent.mkdir()
    text = '{"tasks": [5, {"prompt": 5}, {"prompt": "I like ham"}]}'
    if when == "before":
        file.write_text(text, encoding="utf-8")
    made = memory(dir="memory").contribute(context())
    session = Session(made, caller(made))
    file.write_text(text if when == "after" else "[", encoding="utf-8")
    await session.says("I like ham")
    assert (await session.remember("Likes ham", "I like ham")).is_error
    await session.says("I like eggs")
    assert not (await session.remember("Likes eggs", "I like eggs")).is_error


@pytest.mark.parametrize("prompt", [None, 3, ["I like ham"], {"text": "I like ham"}])
async def test_a_payload_of_another_shape_is_not_heard_and_does_no_harm(
    session: Session, prompt: Any
) -> None:
    await session.says(prompt)
    assert (await session.remember("Likes ham", "I like ham")).is_error


async def test_another_sessions_words_do_not_count(
    session: Session, context: Context, caller: Connect
) -> None:
    await session.says("I like ham")
    made = memory(dir="memory").contribute(context())
    other = Session(made, caller(made))
    assert (await other.remember("Likes ham", "I like ham")).is_error


def test_what_is_kept_of_the_prompts_is_bounded() -> None:
    prompts = Prompts()
    prompts.add("the very first words")
    for number in range(600):
        prompts.add(f"prompt {number} " + "x" * 300)
    assert not prompts.hold("the very first words")
    assert prompts.hold("prompt 599")
    prompts.add("y" * 300_000 + "far away")
    assert not prompts.hold("far away")


# Notes


async def test_a_note_is_remembered_recalled_and_forgotten(session: Session, project: Path) -> None:
    await session.says(SAID)
    made = await session.remember("Prefers short answers", "Please be brief", kind="preference")
    assert made.text == "Remembered as preference/prefers-short-answers."
    recalled = (await session.call("recall", query="SHORT")).text.splitlines()
    assert recalled[0] == "1 note, 1 to 1 shown."
    assert recalled[1].startswith("preference/prefers-short-answers | 20")
    assert recalled[1].endswith(" | Prefers short answers")
    assert recalled[2] == '    the person\'s words: "Please be brief"'
    file = project / "memory" / "preference" / "prefers-short-answers.md"
    assert "quote: Please be brief" in file.read_text(encoding="utf-8")
    gone = await session.call("forget", id="preference/prefers-short-answers")
    assert gone.text == "preference/prefers-short-answers is forgotten."
    assert not file.exists()
    assert (await session.call("recall")).text == "Nothing is remembered here."


async def test_the_same_note_is_kept_once(session: Session) -> None:
    await session.says(SAID)
    await session.remember("Prefers short answers", "Please be brief")
    again = await session.remember("prefers  short ANSWERS", "be brief")
    assert again.text == "That is remembered already: fact/prefers-short-answers."
    assert (await session.call("recall")).text.startswith("1 note,")


async def test_two_notes_that_begin_alike_are_two_notes(session: Session) -> None:
    await session.says(SAID)
    notes = [f"{'Prefers short answers ' * 4}{end}" for end in ("a", "b", "c")]
    for note in notes:
        assert not (await session.remember(note, "Please be brief")).is_error
    text = (await session.call("recall")).text
    assert all(note in text for note in notes)


async def test_twenty_notes_in_one_turn_are_all_there(session: Session) -> None:
    await session.says(SAID)
    answers = await asyncio.gather(
        *(
            session.remember(f"Same beginning of a note, number {n:02}", "be brief")
            for n in range(20)
        )
    )
    assert not [answer.text for answer in answers if answer.is_error]
    text = (await session.call("recall")).text
    assert text.startswith("20 notes, 1 to 20 shown.")


async def test_all_notes_come_newest_first(session: Session, project: Path) -> None:
    import os

    await session.says(SAID)
    for number, note in enumerate(["oldest", "newest", "middle"]):
        await session.remember(note, "be brief")
        stamp = [100, 300, 200][number]
        os.utime(project / "memory" / "fact" / f"{note}.md", (stamp, stamp))
    lines = (await session.call("recall")).text.splitlines()
    assert [line.split("/")[1].split(" ")[0] for line in lines if line.startswith("fact/")] == [
        "newest",
        "middle",
        "oldest",
    ]


async def test_many_long_notes_come_in_parts_that_together_are_all(session: Session) -> None:
    import re

    await session.says(SAID)
    for number in range(30):
        await session.remember(f"{number:02} " + "y" * 1900, "be brief")
    for arguments in ({}, {"query": "yyy"}):
        seen: list[str] = []
        offset = 0
        while offset is not None:
            text = (await session.call("recall", offset=offset, **arguments)).text
            assert len(text) < 21_000
            seen += re.findall(r"^fact/(\d\d)", text, re.MULTILINE)
            more = re.search(r"call again with offset (\d+)", text)
            offset = int(more.group(1)) if more else None
        assert sorted(seen) == [f"{number:02}" for number in range(30)]


async def test_a_note_put_there_by_hand_is_recalled_and_a_broken_one_named(
    session: Session, project: Path
) -> None:
    folder = project / "memory" / "fact"
    folder.mkdir()
    (folder / "hand.md").write_text("Written by hand\n")
    (folder / "bad.md").write_bytes(b"\xff")
    for arguments in ({}, {"query": "hand"}):
        text = (await session.call("recall", **arguments)).text
        assert "| Written by hand" in text
        assert "Not a note: fact/bad (it is not UTF-8 text)" in text


BAD_CALLS = [
    ("remember", {"note": "", "quote": "be brief"}, "1 to 2000 characters"),
    ("remember", {"note": "x" * 2001, "quote": "be brief"}, "1 to 2000 characters"),
    ("remember", {"note": "n", "quote": ""}, "1 to 1000 characters"),
    ("remember", {"note": "n", "quote": "x" * 1001}, "1 to 1000 characters"),
    ("remember", {"note": "n"}, "'quote' is a required property"),
    ("remember", {"note": "n", "quote": "be brief", "kind": "../x"}, "not one of"),
    ("remember", {"note": "n\ud800", "quote": "be brief"}, ""),
    ("remember", {"note": "n\0", "quote": "be brief"}, "NUL"),
    ("forget", {"id": "../x"}, "no page id"),
    ("forget", {"id": "fact/none"}, "There is no page"),
    ("forget", {}, "'id' is a required property"),
    ("recall", {"offset": -1}, "minimum"),
]


@pytest.mark.parametrize(("name", "arguments", "reason"), BAD_CALLS)
async def test_a_bad_call_gets_one_short_error_and_writes_nothing(
    session: Session, project: Path, name: str, arguments: dict[str, Any], reason: str
) -> None:
    await session.says(SAID)
    answer = await session.call(name, **arguments)
    assert answer.is_error
    assert reason in answer.text
    assert str(project) not in answer.text
    assert len(answer.text) < 500
    assert list((project / "memory").rglob("*.md")) == []


async def test_the_host_may_add_the_persons_words_itself(session: Session) -> None:
    assert isinstance(session.made.api, Memory)
    assert session.made.api.prompts.add("I like ham")
    assert not (await session.remember("Likes ham", "I like ham")).is_error


def test_two_sessions_of_one_person_in_two_processes_lose_no_note(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from agent_kit.store import MarkdownStore
from agent_kit_memory import Memory, Prompts
prompts = Prompts()
prompts.add("I like ham")
memory = Memory(MarkdownStore(Path(sys.argv[1]), private=True), prompts)
for number in range(15):
    memory.remember(f"The same beginning, by {sys.argv[2]}: {number}", quote="I like ham")
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "m"), name]) for name in "ab"
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = Memory(__import__("agent_kit.store").store.MarkdownStore(tmp_path / "m"), Prompts())
    assert found.recall().total == 30
