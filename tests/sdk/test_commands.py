"""Whether a skill or command may be run. What the CLI makes of bodies: tests/e2e/test_skills_and_commands.py."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.scope import ConfigError, FileScope
from agent_kit.sdk import catalogue
from agent_kit.sdk.catalogue import find_commands
from agent_kit.sdk.commands import Command, Commands, Place, refused_command, refused_skill
from agent_kit.sdk.expansion import expanded, plain_words, text_of
from agent_kit.sdk.gate import create_file_scope_gate
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.testing import tree

PLUGIN = '{"name": "plug"}'


class Project:
    """``course`` is readable but for ``closed.md`` and what lies beside it."""

    def __init__(self, root: Path) -> None:
        self.root = tree(
            root,
            [
                "course/open.md=open",
                "course/my notes.md=open",
                "course/closed.md=closed",
                "out.md=out",
                "home/",
                f"plug/.claude-plugin/plugin.json={PLUGIN}",
            ],
        )
        self.course, self.plug = str(root / "course"), str(root / "plug")
        self.places = (
            Place(folder=self.plug, plugin="plug", trusted=True),
            Place(folder=f"{self.course}/.claude"),
        )
        self.scope = FileScope(
            project_dir=self.course,
            searchable_dirs=(".",),
            also_readable=(self.plug,),
            denied_paths=("closed.md",),
            home=str(root / "home"),
        )

    def has(self, *entries: str) -> Project:
        for entry in entries:
            (self.root / entry.partition("=")[0]).unlink(missing_ok=True)
            tree(self.root, [entry])
        return self

    def commands(self, **fields: object) -> Commands:
        found = find_commands(self.places)
        names = frozenset(each.name for each in found)
        return Commands(
            **{
                "offered": names,
                "skills": names,
                "found": found,
                "places": self.places,
                **fields,
            }
        )

    def refused(self, body: str, args: str = "", header: str = "description: d") -> str | None:
        self.has(f"course/.claude/commands/it.md=---\n{header}\n---\n{body}")
        return refused_command(self.scope, self.commands(), "it", args, self.course)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# --- names -------------------------------------------------------------------------------------

NAMES = [
    ("plug/skills/cite/SKILL.md", "plug:cite"),
    ("plug/SKILL.md", "plug:plug"),
    ("plug/commands/list.md", "plug:list"),
    ("plug/commands/a/b/list.md", "plug:a:b:list"),
    ("plug/commands/a/SKILL.md", "plug:a"),
    ("plug/commands/.hidden.md", "plug:.hidden"),
    ("plug/commands/UP.MD", "plug:UP.MD"),
    ("course/.claude/skills/cite/SKILL.md", "cite"),
    ("course/.claude/commands/list.md", "list"),
    ("course/.claude/commands/a/b.md", "a:b"),
    ("course/.claude/commands/Caps.md", "Caps"),
    ("course/.claude/commands/dot.ted.md", "dot.ted"),
    ("course/.claude/commands/SKILL.md", "commands"),
]


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_a_file_is_called_as_the_cli_calls_it(project: Project, file: str, name: str) -> None:
    project.has(f"{file}=body")
    found = find_commands(project.places)
    assert [(each.name, each.file, each.body) for each in found] == [
        (name, str(project.root / file), "body")
    ]


@pytest.mark.parametrize(
    "file",
    [
        "course/.claude/skills/cite/skill.md",
        "course/.claude/skills/a/b/SKILL.md",
        "course/.claude/skills/loose.md",
        "course/.claude/commands/x.txt",
        "course/.claude/commands/x",
    ],
)
def test_what_the_cli_takes_for_none_is_none(project: Project, file: str) -> None:
    project.has(f"{file}=body")
    assert find_commands(project.places) == ()


def test_a_manifest_names_further_folders_files_and_texts(project: Project) -> None:
    manifest = '{"name": "plug", "skills": ["./more"], "commands": ["./extra", "./one.md"]}'
    project.has(
        f"plug/.claude-plugin/plugin.json={manifest}",
        "plug/skills/std/SKILL.md=x",
        "plug/more/ms/SKILL.md=x",
        "plug/extra/ex.md=x",
        "plug/one.md=x",
        "plug/commands/not.md=x",
    )
    names = {each.name for each in find_commands(project.places)}
    assert names == {"plug:std", "plug:ms", "plug:ex", "plug:one"}


def test_a_manifest_may_hold_a_command_itself(project: Project) -> None:
    manifest = (
        '{"name": "plug", "commands": {"inline": {"content": "see @closed.md"},'
        ' "about": {"source": "./x.md"}}}'
    )
    project.has(f"plug/.claude-plugin/plugin.json={manifest}", "plug/x.md=about")
    found = {each.name: each.body for each in find_commands(project.places)}
    assert found == {"plug:inline": "see @closed.md", "plug:about": "about"}
    reason = refused_command(project.scope, project.commands(), "plug:inline", "", project.course)
    assert reason is not None
    assert "@closed.md" in reason


def test_links_that_lead_in_a_circle_end(project: Project) -> None:
    project.has("course/.claude/commands/a/x.md=x", "course/.claude/commands/a/up => ..")
    assert {each.name for each in find_commands(project.places)} == {"a:x"}


@pytest.mark.parametrize("kind", ["commands/c{}.md", "skills/s{}/SKILL.md"])
def test_more_files_than_are_looked_at_are_an_error(
    project: Project, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "MAX_FILES", 3)
    project.has(*(f"course/.claude/{kind.format(number)}=x" for number in range(3)))
    assert len(find_commands(project.places)) == 3
    project.has(f"course/.claude/{kind.format(3)}=x")
    with pytest.raises(ConfigError, match="setting_sources=.*take some out"):
        find_commands(project.places)


@pytest.mark.parametrize("kind", ["commands", "skills"])
def test_more_names_than_are_looked_at_are_an_error(
    project: Project, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.has(*(f"course/.claude/{kind}/{name}.txt" for name in range(4)))
    monkeypatch.setattr(catalogue, "MAX_NAMES", 4)
    assert find_commands(project.places) == ()
    monkeypatch.setattr(catalogue, "MAX_NAMES", 3)
    with pytest.raises(ConfigError, match=f"{kind}.*more than 3 names"):
        find_commands(project.places)


@pytest.mark.parametrize("limit", ["MAX_TEXT", "MAX_TEXTS"])
def test_more_text_than_is_read_is_an_error(
    project: Project, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, limit, 100)
    project.has("plug/commands/a.md=" + "x" * 100)
    assert len(find_commands(project.places)) == 1
    project.has("plug/commands/a.md=" + "x" * 101)
    with pytest.raises(ConfigError, match="plugins="):
        find_commands(project.places)


def test_a_call_is_refused_when_files_came_over_the_limit(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "MAX_FILES", 2)
    project.has("course/.claude/commands/it.md=x", "course/.claude/commands/b.md=x")
    (hook,) = create_file_scope_gate(project.scope, commands=project.commands()).hooks
    payload = {"tool_name": "Skill", "tool_input": {"skill": "it"}, "cwd": project.course}
    assert asyncio.run(hook(payload, "toolu_1", {})) == {}  # type: ignore[arg-type]
    project.has("course/.claude/commands/c.md=x")
    answer = asyncio.run(hook(payload, "toolu_1", {}))  # type: ignore[arg-type]
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_quoted_name_counts_where_the_front_matter_is_no_yaml(project: Project) -> None:
    project.has('plug/skills/cite/SKILL.md=---\ndescription: a: b\n"name": Quote\n---\nx')
    (found,) = find_commands(project.places)
    assert found.aliases == ("Quote", "plug:Quote")


def test_a_name_in_the_front_matter_is_one_more(project: Project) -> None:
    project.has("plug/skills/cite/SKILL.md=---\nname: Quote It\ndescription: a: b\n---\nx")
    (found,) = find_commands(project.places)
    assert (found.name, found.aliases) == ("plug:cite", ("Quote It", "plug:Quote It"))


@pytest.mark.parametrize("name", ["it", "/it", " it\n", "\ufeff/it"])
def test_a_name_is_read_as_the_cli_reads_it(project: Project, name: str) -> None:
    project.has("course/.claude/commands/it.md=x")
    assert refused_command(project.scope, project.commands(), name, "", project.course) is None


@pytest.mark.parametrize("name", ["other", "IT", "", "//it", "it @closed.md", "\0", "plug:it"])
def test_a_name_that_is_none_of_the_sessions_is_refused(project: Project, name: str) -> None:
    project.has("course/.claude/commands/it.md=x")
    reason = refused_command(project.scope, project.commands(), name, "", project.course)
    assert reason is not None
    assert "none of this session's" in reason


def test_a_file_that_came_later_under_the_same_name_is_refused(project: Project) -> None:
    project.has("plug/commands/it.md=x")
    commands = project.commands()
    skill = {"skill": "plug:it"}
    assert refused_skill(project.scope, commands, skill, project.course) is None
    project.has("course/.claude/skills/evil/SKILL.md=---\nname: plug:it\n---\nx")
    reason = refused_skill(project.scope, commands, skill, project.course)
    assert reason is not None
    assert "not this session's" in reason


def test_the_model_calls_only_what_is_its_own(project: Project) -> None:
    project.has("course/.claude/commands/it.md=x", "course/.claude/commands/typed.md=x")
    commands = project.commands(skills=frozenset({"it"}), builtin=frozenset({"compact"}))
    for name, called in {"it": True, "typed": False, "compact": False}.items():
        reason = refused_skill(project.scope, commands, {"skill": name}, project.course)
        assert (reason is None) == called
        assert refused_command(project.scope, commands, name, "", project.course) is None


@pytest.mark.parametrize(
    "tool_input", [None, "it", 7, {}, {"skill": None}, {"skill": ["it"]}, {"args": "x"}]
)
def test_a_malformed_call_is_refused(project: Project, tool_input: object) -> None:
    project.has("course/.claude/commands/it.md=x")
    assert refused_skill(project.scope, project.commands(), tool_input, project.course) is not None


# --- bodies and arguments ------------------------------------------------------------------------

REFUSED = [
    ("see @closed.md", ""),
    ("see @../out.md.", ""),
    ('see @"closed.md"', ""),
    ("@$ARGUMENTS", "closed.md"),
    ("@$ARGUMENTS", "../out.md and more"),
    ("@$0", "closed.md"),
    ("@$1", "x closed.md"),
    ("@$1", "x 'closed.md'"),
    ("@$ARGUMENTS[1]", 'x "closed.md"'),
    ("@../$0.md", "out"),
    ("@$0$1", "clo sed.md"),
    ("$0$1", "@ closed.md"),
    ('@"$0', 'closed.md"'),
    ("@\u00a0@$0", "closed.md"),
    ("nothing", "@closed.md"),
    ("nothing", "x '@closed.md'"),
    ("nothing @", "closed.md @closed.md"),
    ('@"x', '/../closed.md"'),
    # what the CLI puts in afterwards
    ("@${CLAUDE_PROJECT_DIR}/../out.md", ""),
    ("nothing", "@${CLAUDE_PROJECT_DIR}/../out.md"),
    ("$0", "'@${CLAUDE_PROJECT_DIR}/closed.md'"),
    ("nothing", "@${CLAUDE_SKILL_DIR}/open.md"),
    ("nothing", "@${CLAUDE_EFFORT}"),
    ("@${CLAUDE_SESSION_ID}/../closed.md", ""),
    ('@"a b ${CLAUDE_EFFORT}"', ""),
    # what only a shell could read
    ("@$0", "cl'o'sed.md;x"),
    ("@$0", "A=1 closed.md"),
    ('@"x $0"', "/../closed.md;x"),
    ("@$0", "if closed.md"),
    ("@$0", "x\nclosed.md"),
    ("take $0", "'@'closed.md; x"),
]

ALLOWED = [
    ("Cite exactly, with the line. Write to ada@example.org.", ""),
    ("Use @dataclass and @property, (@closed.md) and `@closed.md`.", ""),
    ("see @open.md", ""),
    ('see @"my notes.md"', ""),
    ("@$ARGUMENTS", "open.md"),
    ("@$ARGUMENTS", ""),
    ("Review @$0 for $1.", "open.md clarity"),
    ("Review @$0 for $1.", "'my notes.md' clarity"),
    ("What they named: $ARGUMENTS", "don't forget; it's @ 5 pm & \"late\" (mail bob@x.org)"),
    ("The person wants $0", "what's new? nothing (yet); 100% sure!"),
    ("Costs $5 and $100, in ${HOME}, for $name", "x"),
    ("Fix issue #$ARGUMENTS, then run `make $0`.", "12"),
    ("@${CLAUDE_PROJECT_DIR}/open.md", ""),
    ("in ${CLAUDE_SESSION_ID}", "a"),
    ("@${CLAUDE_PROJECT_DIR}/$0", "open.md"),
    ("@$" + "9" * 5000, "x"),
    ("nothing", "@${CLAUDE_PROJECT_DIR}/open.md"),
]


@pytest.mark.parametrize(("body", "args"), REFUSED)
def test_a_body_that_would_mention_something_closed_is_refused(
    project: Project, body: str, args: str
) -> None:
    assert project.refused(body, args) is not None


@pytest.mark.parametrize(("body", "args"), ALLOWED)
def test_a_usual_body_is_not_refused(project: Project, body: str, args: str) -> None:
    assert project.refused(body, args) is None


@pytest.mark.parametrize(
    "header",
    [
        "arguments: file",
        "arguments: [x, file]",
        "arguments:\n  - x\n  - file",
        "description: a: b: c\narguments: [x, file]",
        "argument-hint: [a] [b]\narguments: x file",
        "description: [a] @b\narguments: |\n  x file",
    ],
)
def test_named_arguments_are_put_in(project: Project, header: str) -> None:
    args = "closed.md" if header == "arguments: file" else "open.md closed.md"
    assert project.refused("@$file", args, header) is not None
    assert project.refused("@$file", args.replace("closed", "open"), header) is None


def test_names_that_cannot_be_read_are_taken_for_any(project: Project) -> None:
    header = "description: [x\n\targuments: file"
    assert project.refused("@$file", "closed.md", header) is not None
    assert project.refused("no mention of $file", "closed.md", header) is None


def test_the_front_matter_mentions_nothing(project: Project) -> None:
    assert project.refused("x", header="description: see @closed.md") is None


@pytest.mark.parametrize("before", ["\n", "-", "---\x85\nx\n", "--- x\n"])
def test_what_is_no_front_matter_to_the_cli_is_judged(project: Project, before: str) -> None:
    text = f"{before}---\nfoo: @closed.md\n---\nx"
    project.has(f"course/.claude/commands/it.md={text}")
    assert refused_command(project.scope, project.commands(), "it", "", project.course)


@pytest.mark.parametrize("then", ["see @open.md", None])
def test_a_body_counts_as_planned_and_as_it_is_now(project: Project, then: str | None) -> None:
    project.has("course/.claude/commands/it.md=see @closed.md")
    commands = project.commands()
    file = project.root / "course/.claude/commands/it.md"
    if then is None:
        file.unlink()
    else:
        file.write_text(then)
    assert refused_command(project.scope, commands, "it", "", project.course) is not None
    file.write_text("see @open.md")
    commands = project.commands()
    assert refused_command(project.scope, commands, "it", "", project.course) is None
    file.write_text("see @closed.md")
    assert refused_command(project.scope, commands, "it", "", project.course) is not None


@pytest.mark.parametrize("target", ["course/closed.md", "out.md"])
def test_a_body_that_is_a_link_to_something_closed_is_refused(
    project: Project, target: str
) -> None:
    for link in ("course/.claude/commands/it.md", "plug/commands/it.md"):
        file = project.root / link
        file.parent.mkdir(parents=True)
        file.symlink_to(project.root / target)
    commands = project.commands()
    assert refused_command(project.scope, commands, "it", "", project.course)
    assert refused_command(project.scope, commands, "plug:it", "", project.course)


def test_a_folder_whose_name_mentions_something_closed_is_refused(project: Project) -> None:
    project.has("course/.claude/skills/it @closed.md/SKILL.md=x")
    name = "it @closed.md"
    reason = refused_command(project.scope, project.commands(), name, "", project.course)
    assert reason is not None


def test_a_plugins_file_may_be_opened_whatever_the_scope_says(tmp_path: Path) -> None:
    project = Project(tmp_path).has("plug/skills/it/SKILL.md=see @${CLAUDE_PLUGIN_ROOT}/ref.md")
    project.has("plug/ref.md=x")
    assert refused_command(project.scope, project.commands(), "plug:it", "", project.course) is None
    closed = FileScope(project_dir=project.course, home=str(tmp_path / "home"))
    reason = refused_command(closed, project.commands(), "plug:it", "", project.course)
    assert reason is not None  # for the mention: that is a file like any other
    assert "ref.md" in reason
    project.has("plug/skills/it/SKILL.md=x")
    assert refused_command(closed, project.commands(), "plug:it", "", project.course) is None


@pytest.mark.parametrize("tools", ["WebFetch", "Read, WebFetch", "[WebFetch]", "'*'", "Web*"])
def test_a_projects_file_opens_no_tool_that_is_narrowed(project: Project, tools: str) -> None:
    project.has(f"course/.claude/commands/it.md=---\nallowed-tools: {tools}\n---\nx")
    commands = project.commands(narrowed=frozenset({"WebFetch"}))
    reason = refused_command(project.scope, commands, "it", "", project.course)
    assert reason is not None
    assert "WebFetch" in reason
    assert not refused_command(project.scope, project.commands(), "it", "", project.course)


def test_without_commands_the_arguments_alone_are_judged(project: Project) -> None:
    def judge(args: str) -> tuple[object, ...]:
        given = {"skill": "any:thing", "args": args}
        return ScopeJudge().judge(project.scope, "Skill", given, project.course)

    for args, open_ in {"@open.md": True, "@closed.md": False, "'@closed.md'": False}.items():
        reason, named, code = judge(args)
        assert (reason is None, bool(named), code is None) == (open_,) * 3
    assert judge("@${CLAUDE_PROJECT_DIR}/../out.md")[0] is not None


# --- laws ----------------------------------------------------------------------------------------

ODD = st.lists(
    st.sampled_from(["$ARGUMENTS", "${CLAUDE_", "}", "\0", "\ud800", *"@$01K\"'\\ /.[]{#;\n\t"]),
    max_size=12,
).map("".join)


@given(body=ODD, args=ODD, names=st.lists(ODD, max_size=2))
def test_no_text_raises(body: str, args: str, names: list[str]) -> None:
    scope = FileScope(project_dir=os.sep + "nowhere", home="/nowhere")
    place = Place(folder="/nowhere", trusted=True)
    command = Command(
        name="it", file="/nowhere/it.md", body=body, place=place, arguments=tuple(names)
    )
    commands = Commands(offered=frozenset({"it"}), skills=frozenset({"it"}), found=(command,))
    for name in ("it", body):
        refused_command(scope, commands, name, args, "/nowhere")
        refused_skill(scope, commands, {"skill": name, "args": args}, "/nowhere")


EXPANDED = [
    ("$ARGUMENTS|$0|$1|$2", "a b", "a b|a|b|$2"),
    ("$ARGUMENTS[1]|$ARGUMENTS[2]|$ARGUMENTS[x]", "a b", "b|$ARGUMENTS[2]|a b[x]"),
    ("\\$0|\\$ARGUMENTS|$$0", "a", "$0|$ARGUMENTS|$a"),
    ("$00|$10|$1x|$1.md|$0\u00e9", "a b", "a|$10|$1x|b.md|a\u00e9"),
    ("$n|$m|$nm|$n[0]", "a", "a||$nm|$n[0]"),
]


@pytest.mark.parametrize(("text", "args", "result"), EXPANDED)
def test_arguments_are_put_in_as_the_cli_does(text: str, args: str, result: str) -> None:
    words = plain_words(args)
    forms = list(expanded(text, args, words or (args,), ("n", "m"), {}))
    assert result in forms


WORDS = [
    ("a b", ("a", "b")),
    (" a\tb ", ("a", "b")),
    ("'a b'\"c d\"e f", ("a bc de", "f")),
    ("a '' b", ("a", "", "b")),
    ("a\u00a0b c", ("a\u00a0b", "c")),
    ("~/x a? -b 5% +c", ("~/x", "a?", "-b", "5%", "+c")),
    *((text, None) for text in ("a;b", "a\\ b", "$x", "a=b c", "'a", "if a", "a\nb", "# a", "a\0")),
]


@pytest.mark.parametrize(("args", "words"), WORDS)
def test_plain_arguments_are_taken_apart_as_the_cli_does(
    args: str, words: tuple[str, ...] | None
) -> None:
    assert plain_words(args) == words


def test_only_a_usual_front_matter_is_left_out() -> None:
    assert text_of("\ufeff---\r\ndescription: d\r\n---\r\nbody") == "body"
    for text in ("body", "---\na: b", "\n---\na\n---\nb", "---\na --- b\n---\nc"):
        assert text_of(text) == text
