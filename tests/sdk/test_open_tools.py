"""A person's yes opens no more of a tool than the session has, in the narrower reading of a rule."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk.open_tools import OpenTools


def opened(rule: str, tool: str, **given: Any) -> bool:
    return OpenTools(whole=frozenset(), rules=(rule,)).objection(tool, given) is None


def test_file_tools_mcp_tools_and_whole_tools_are_open_with_any_input() -> None:
    tools = OpenTools(whole=frozenset({"Bash"}))
    for name in (*FILE_TOOLS, "mcp__mail__send", "Bash"):
        assert tools.objection(name, {}) is None


@pytest.mark.parametrize("name", ["WebFetch", "Monitor", "mcp__mail", "mcp____send", "Bash\u202e"])
def test_another_tool_is_not_open(name: str) -> None:
    said = OpenTools(whole=frozenset({"Bash"})).objection(name, {})
    assert said is not None
    assert "isn't an allowed tool" in said
    assert "\u202e" not in said


def test_what_a_narrowing_rule_leaves_out_is_refused_by_its_words() -> None:
    tools = OpenTools(whole=frozenset(), rules=("Bash(git status:*)", "WebFetch(domain:a.example)"))
    assert tools.objection("Bash", {"command": "ls"}) == (
        '"Bash" is allowed in this session only as Bash(git status:*), and only as one plain command.'
    )
    assert tools.objection("WebFetch", {"url": "http://b.example"}) == (
        '"WebFetch" is allowed in this session only as WebFetch(domain:a.example).'
    )


COMMANDS = [
    ("git status:*", "git status", True),
    ("git status:*", "git status -s", True),
    ("git status:*", "git statusx", False),
    ("git status:*", "git  status", False),
    ("git status", "git status", True),
    ("git status", "git status -s", False),
    ("git *", "git log", True),
    ("git *", "git", False),
    ("git * --stat", "git log --stat", True),
    ("*", "anything at all", True),
    (":*", "anything", False),
    # Only a star stands for something: not what Python's fnmatch reads into a pattern.
    ("ls [ab]*", "ls a", False),
    ("ls ?*", "ls a", False),
    ("ls [!x]*", "ls a", False),
    ("ls .*", "ls x", False),
    ("echo (x)*", "echo x", False),
    # More than one command, or one that isn't plain.
    ("echo:*", "echo a; id", False),
    ("echo:*", "echo a\nid", False),
    ("echo:*", "echo a && id", False),
    ("echo:*", "echo a | sh", False),
    ("echo:*", "echo $(id)", False),
    ("echo:*", "echo `id`", False),
    ("echo:*", "echo a > f", False),
    ("echo:*", "echo $HOME", False),
    ("echo:*", "echo ~/x", False),
    ("echo:*", "echo 'a'", False),
    ("echo:*", 'echo "a"', False),
    ("echo:*", "echo *", False),
    ("echo:*", "echo a\\", False),
    ("echo:*", "echo a & id", False),
    ("echo:*", "", False),
]


@pytest.mark.parametrize(("content", "command", "opens"), COMMANDS)
def test_a_rule_for_commands_covers_single_plain_ones(
    content: str, command: str, opens: bool
) -> None:
    assert opened(f"Bash({content})", "Bash", command=command) is opens


ADDRESSES = [
    ("domain:example.com", "https://example.com/a?b#c", True),
    ("domain:example.com", "http://EXAMPLE.com:8080", True),
    ("domain:Example.com", "https://example.com", True),
    ("domain:*.example.com", "https://a.example.com/", True),
    ("domain:example.com", "https://a.example.com/", False),
    ("domain:example.com", "https://example.com.evil.org/", False),
    ("domain:example.com", "https://evil.org/example.com", False),
    ("domain:example.com", "https://evil.org?@example.com", False),
    ("domain:example.com", "https://evil.org#@example.com", False),
    # Programs disagree on whose host that is.
    ("domain:example.com", "https://evil.org\\@example.com/", False),
    ("domain:example.com", "https://evil.org\\.example.com/", False),
    ("domain:*.example.com", "https://evil.org\\.example.com/", False),
    ("domain:example.com", "https://user@example.com/", False),
    ("domain:example.com", "https://example.com@evil.org/", False),
    ("domain:example.com", "https:\\\\example.com", False),
    ("domain:example.com", "https:/example.com", False),
    ("domain:example.com", "https://exam\tple.com", False),
    ("domain:example.com", " https://example.com", False),
    ("domain:example.com", "https://example.com/a b", False),
    ("domain:example.com", "https://example.com\n", False),
    ("domain:example.com", "https://ｅxample.com", False),
    ("domain:kit.org", "https://\u212ait.org", False),
    ("domain:*", "https://[::1]/", False),
    ("domain:*", "file:///etc/passwd", False),
    ("domain:*", "https://a%2eb/", False),
    ("domain:[ae]xample.com", "https://example.com", False),
    ("domain:?xample.com", "https://example.com", False),
    ("domain:exampleXcom", "https://example.com", False),
    ("example.com", "https://example.com", False),
    ("url:example.com", "https://example.com", False),
]


@pytest.mark.parametrize(("content", "url", "opens"), ADDRESSES)
def test_a_rule_for_a_domain_covers_addresses_that_every_program_reads_alike(
    content: str, url: str, opens: bool
) -> None:
    assert opened(f"WebFetch({content})", "WebFetch", url=url) is opens


@pytest.mark.parametrize(
    ("rule", "tool", "given", "opens"),
    [
        ("Skill(sums)", "Skill", {"skill": "sums"}, True),
        ("Skill(sums)", "Skill", {"skill": "sums:more"}, False),
        ("Skill(sum*)", "Skill", {"skill": "sums"}, False),
        ("Agent(helper)", "Agent", {"subagent_type": "helper"}, True),
        ("Agent(helper)", "Agent", {}, False),
        ("Agent(helper)", "Task", {"subagent_type": "helper"}, False),
        ("Bash(echo:*)", "Bash", {"command": ["echo a"]}, False),
        ("Bash(echo:*)", "Bash", {}, False),
        ("Bash(echo:*", "Bash", {"command": "echo a"}, False),
        ("Bash", "Bash", {"command": "echo a"}, False),
        ("Monitor(x)", "Monitor", {"": "x"}, True),
        ("Monitor(x)", "Monitor", {"command": "x"}, False),
    ],
)
def test_a_rule_for_another_tool_covers_what_it_names_exactly(
    rule: str, tool: str, given: dict[str, Any], opens: bool
) -> None:
    assert opened(rule, tool, **given) is opens


EDITS = [
    ("Bash(rm:*)", {"Bash"}),
    ("Edit(//x/**)", {"Write", "Edit", "MultiEdit", "NotebookEdit"}),  # the CLI's rule for each
    ("Read(//x/**)", set(FILE_TOOLS)),  # what it closes can be neither searched nor written
    ("Agent(helper)", {"Agent", "Task"}),
    ("Task(helper)", {"Agent", "Task"}),
    ("mcp__mail__send(x)", {"mcp__mail__send"}),
]


@pytest.mark.parametrize(("closed", "tools"), EDITS)
def test_the_input_of_what_a_deny_rule_closes_in_part_cant_be_edited(
    closed: str, tools: set[str]
) -> None:
    every = {*FILE_TOOLS, "Bash", "Agent", "Task", "mcp__mail__send", "mcp__mail__list"}
    gate = OpenTools(whole=frozenset(every), closed=(closed,))
    refused = {tool for tool in every if gate.edit_objection(tool, {}) is not None}
    assert refused == tools
    assert "can't be edited" in (gate.edit_objection(next(iter(tools)), {}) or "")
    assert all(gate.objection(tool, {}) is None for tool in every)


def test_an_edit_opens_no_more_than_the_rules() -> None:
    tools = OpenTools(whole=frozenset(), rules=("Bash(echo:*)",))
    assert tools.edit_objection("Bash", {"command": "echo a"}) is None
    assert tools.edit_objection("Bash", {"command": "id"}) is not None
