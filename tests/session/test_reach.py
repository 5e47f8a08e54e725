"""What a plan says of denied paths, rules and folders that reach nothing of the session."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit import FilePermission, Subagent, deny_paths
from agent_kit.scope import check_file_scope

ROOT = " (a leading / is the file system's root, not the project's)"
VARIABLE = " (variables aren't read here)"
HOMES = " (of homes only your own is read, as ~/)"


def rule(mode: str, *paths: str, on: Any = ("read", "write")) -> FilePermission:
    return FilePermission(operations=on, paths=paths, mode=mode)


def told(world, *, opened: Any = ("drafts",), **fields: Any) -> list[str]:
    """The notes, without those on who holds a rule and whom it asks."""
    plan = world.plan(extra_writable_dirs=opened, **fields)
    others = ("nobody is asked", "is left to the gate")
    return [note for note in plan.notes if not any(other in note for other in others)]


IDLE = [
    ("/policies/**", f"there is no /policies{ROOT}"),
    ("/policies/p.md", f"there is no /policies{ROOT}"),
    ("polices/**", "there is no {project}/polices"),
    ("polices/p.md", "there is no {project}/polices"),
    ("{polices,polcies}/**", "there is no {project}/polices"),
    ("$HOME/x", "there is no {project}/$HOME" + VARIABLE),
    ("${HOME}/x", None),
    ("~root/x", "there is no {project}/~root" + HOMES),
    ("~/gone/**", "there is no {home}/gone"),
    ("/*.pem", "/*.pem is in no folder of the session" + ROOT),
    ("{root}/other/**", "{root}/other/** is in no folder of the session"),
    ("{root}/other/*/x", "{root}/other/*/x is in no folder of the session"),
    ("~/*.pem", "{home}/*.pem is in no folder of the session"),
    ("{root}/o*/x", "{root}/o*/x is in no folder of the session"),
]
MEANT = [
    "drafts/*.md",
    "drafts/later.md",
    "file.txt",
    "sources/**",  # closed as it is, and in the project
    "sources/{a,b}*.md",
    "{sources,polices}/**",
    "*.pem",
    "**/.env",
    "**/polices/**",
    "/**/*.key",
    "{root}/**/*.key",
    "{root}/p*/x",
    "{root}/[p]roject/x",
    "{root}/project/drafts/x",
]


def filled(world, text: str) -> str:
    for name in ("root", "project", "home"):
        text = text.replace(f"{{{name}}}", str(getattr(world, name)))
    return text


@pytest.mark.parametrize(("text", "said"), IDLE)
def test_a_denied_path_that_closes_nothing_of_the_session_is_told(
    world, text: str, said: str | None
) -> None:
    world.has("other/x")
    given = filled(world, text)
    found = told(world, denied_paths=[given])
    if said is None:  # braces are no alternatives in a plain path
        assert found == [
            f"denied_paths={given!r} closes nothing: there is no {world.project}/{given[:-2]}{VARIABLE}"
        ]
        return
    open_ = " that is open to file tools" if "no folder of the session" in said else ""
    if text.startswith("{polices"):
        assert found[0].endswith(f"closes nothing: {filled(world, said)}")
    else:
        assert found == [f"denied_paths={given!r} closes nothing{open_}: {filled(world, said)}"]


@pytest.mark.parametrize(("text", "said"), [row for row in IDLE if row[1] is not None])
@pytest.mark.parametrize(("mode", "verb"), [("deny", "closes"), ("interrupt", "asks about")])
def test_a_rule_that_reaches_nothing_of_the_session_is_told(
    world, text: str, said: str, mode: str, verb: str
) -> None:
    world.has("other/x")
    given = filled(world, text)
    rules = [rule("allow", "drafts/**"), rule(mode, "*.x", given)]
    open_ = " that is open to file tools" if "no folder of the session" in said else ""
    assert told(world, permissions=rules) == [
        f"SessionConfig.permissions[1]: {given!r} {verb} nothing{open_}: {filled(world, said)}"
    ]


@pytest.mark.parametrize("text", MEANT)
def test_of_what_may_close_something_nothing_is_told(world, text: str) -> None:
    given = filled(world, text)
    assert told(world, denied_paths=[given]) == []
    about = [n for n in told(world, permissions=[rule("deny", given)]) if "closes nothing" in n]
    assert about == []


@pytest.mark.parametrize("text", ["drafts/*.{env,key", "**/*.{{a,b}", "*.{a[}],b"])
def test_a_brace_that_never_closes_is_told(world, text: str) -> None:
    said = "has a brace that never closes, which is part of the name"
    assert told(world, denied_paths=[text]) == [f"denied_paths={text!r} {said}"]
    assert f"SessionConfig.permissions[0]: {text!r} {said}" in told(
        world, permissions=[rule("deny", text)]
    )
    assert told(world, authorizers=[deny_paths([text])]) == [f"deny_paths: {text!r} {said}"]


@pytest.mark.parametrize("text", [r"*.\{env", "*.[{]env", "*.}env", "*.{env}", "*{{env}}"])
def test_a_brace_that_closes_or_is_a_character_is_not(world, text: str) -> None:
    assert not any("brace" in note for note in told(world, denied_paths=[text]))


def test_alternatives_of_a_plain_path_are_a_rules_alone(world) -> None:
    text = "sources/{a,b}.md"
    world.has("project/sources/a.md=x")
    (note,) = told(world, denied_paths=[text])
    assert note.endswith("write one entry for each")
    plan = world.plan(denied_paths=[text])
    given = {"file_path": str(world.project / "sources/a.md")}
    assert "off limits" not in str(check_file_scope(plan.scope, "Read", given))
    assert told(world, permissions=[rule("deny", text)]) == []


def test_the_rules_of_an_agent_of_subagents_and_of_deny_paths_are_looked_at(world) -> None:
    own = Subagent(description="d", prompt="p", permissions=[rule("deny", "c/**")])
    spec = {"permissions": [rule("deny", "b/**")], "subagents": {"own": own}}
    found = told(world, spec=spec, authorizers=[deny_paths(["a/**", "drafts/**"])])
    assert [note.partition(" closes")[0] for note in found] == [
        "deny_paths: 'a/**'",
        "AgentSpec.permissions[0]: 'b/**'",
        "subagents['own'].permissions[0]: 'c/**'",
    ]


def test_a_folder_that_is_written_with_a_slash_must_be_there(world) -> None:
    assert told(world, denied_paths=["drafts/"]) == [
        "extra_writable_dirs='drafts' opens nothing: 'drafts/' in denied_paths closes all of it"
    ]
    assert told(world, denied_paths=["polices/"]) == [
        f"denied_paths='polices/' closes nothing: there is no {world.project}/polices"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[abc", "closes nothing: there is no such file, and its bracket never closes"),
        ("drafts/[abc", "closes nothing: there is no such file, and its bracket never closes"),
        (
            "drafts/{a,b}",
            "closes nothing: there is no such file, and braces mean alternatives only",
        ),
        ("{a,b", "closes nothing: there is no such file, and braces mean alternatives only"),
        ("!x", "closes nothing: there is no such file, and an exclamation mark takes nothing back"),
        ("x.env", "names one path, which doesn't exist: write '**/x.env' for the name anywhere"),
    ],
)
def test_a_name_that_may_be_meant_as_a_pattern_is_told(world, text: str, said: str) -> None:
    (note,) = told(world, denied_paths=[text])
    assert note.startswith(f"denied_paths={text!r} {said}")
    world.has(f"project/{text}=x")
    assert told(world, denied_paths=[text]) == []


# --- folders ---------------------------------------------------------------------------------------


def test_a_session_without_an_open_folder_is_told(world, part: Any) -> None:
    none = "no folder is open: name one in extra_readable_dirs, extra_writable_dirs or workspace"
    assert told(world, opened=()) == [none]
    assert told(world, opened=("drafts",)) == []
    assert told(world, opened=(), extra_readable_dirs=["sources"]) == []


@pytest.mark.parametrize("denied", ["drafts", "drafts/**", "drafts/*", "**/drafts", "./d*"])
def test_a_folder_that_is_opened_and_closed_as_a_whole_is_told(world, denied: str) -> None:
    assert told(world, denied_paths=[denied]) == [
        f"extra_writable_dirs='drafts' opens nothing: {denied!r} in denied_paths closes all of it"
    ]
    (note,) = told(world, opened=(), extra_readable_dirs=["drafts"], denied_paths=[denied])
    assert note.startswith("extra_readable_dirs='drafts' opens nothing")


@pytest.mark.parametrize("denied", ["drafts/*.md", "**/.env", "drafts/a/**"])
def test_a_folder_of_which_a_part_is_closed_is_not(world, denied: str) -> None:
    world.has("project/drafts/a/")
    assert told(world, denied_paths=[denied]) == []


# --- what a rule allows ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "on", "how"),
    [
        (["sources/**"], ["write"], "writing 'sources/**'"),
        (["policies/**"], ["read", "write"], "reading and writing 'policies/**'"),
        (["policies/**", "~/x"], ["read"], "reading 'policies/**', '~/x'"),
        (["drafts/closed/**"], ["read"], "reading 'drafts/closed/**'"),
    ],
)
def test_a_rule_that_allows_what_the_scope_does_not_open_is_told(
    world, paths: list[str], on: list[str], how: str
) -> None:
    given = {"extra_readable_dirs": ["sources"], "denied_paths": ["drafts/closed"]}
    world.has("project/drafts/closed/")
    (note,) = told(world, permissions=[rule("allow", *paths, on=on)], **given)
    assert note == (
        f"SessionConfig.permissions[0] allows nothing: {how} is what the scope doesn't open, and no"
        " rule can"
    )


@pytest.mark.parametrize(
    ("paths", "on"),
    [
        (["sources/**"], ["read", "write"]),
        (["policies/**", "drafts/*.md"], ["write"]),
        (["*.md"], ["write"]),
        (["**"], ["read"]),
    ],
)
def test_a_rule_that_allows_something_open_is_not(world, paths: list[str], on: list[str]) -> None:
    given = {"extra_readable_dirs": ["sources"]}
    assert told(world, permissions=[rule("allow", *paths, on=on)], **given) == []


def test_what_is_read_only_is_not_open_to_be_written(world, part: Any) -> None:
    from agent_kit import Contribution

    brings = Contribution(read_only_dirs=("drafts/originals",))
    world.has("project/drafts/originals/")
    spec = {"extensions": [part(brings=brings)]}
    found = told(world, spec=spec, permissions=[rule("allow", "drafts/originals/**", on=["write"])])
    assert [note for note in found if "allows nothing: writing" in note]


def test_of_a_rule_that_an_earlier_one_covers_that_alone_is_told(world) -> None:
    rules = [rule("allow", "drafts/**"), rule("deny", "drafts/a/**")]
    (note,) = told(world, permissions=rules)
    assert note == (
        "SessionConfig.permissions[1] DENIES NOTHING: the first rule that matches decides, and"
        " SessionConfig.permissions[0] before it allows what it is meant to close. Put"
        " SessionConfig.permissions[1] in front."
    )
    rules = [rule("allow", "sources/x/**"), rule("allow", "sources/x/y/**")]
    (note,) = [note for note in told(world, permissions=rules) if "[1]" in note]
    assert note == (
        "SessionConfig.permissions[1] never decides: SessionConfig.permissions[0] always matches"
        " first. Put it in front, or leave it out."
    )
