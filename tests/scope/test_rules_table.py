"""The rules table and the example scope, row for row, with their exact sentences."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit.scope import (
    Code,
    Decision,
    FileScope,
    ToolOnlyDir,
    Verdict,
    check_file_scope,
    explain_file_scope,
)

PROJECT = "/work/course"  # nothing there exists: these rows are about names

SCOPE = FileScope(
    project_dir=PROJECT,
    writable_dirs=["drafts", "/shared/out"],
    searchable_dirs=["sources", "drafts"],
    readable_dirs=["sources", "drafts", "/shared/rubrics"],
    also_readable=["/opt/agent/plugin"],
    tool_results_dir="/home/u/.claude/projects/-work-course/s1/tool-results",
    read_only_dirs=["sources", "drafts/originals"],
    denied_paths=["agent.config.json", "drafts/secret", "**/.env", "sources/keys/*.pem"],
    tool_only_dirs=[
        ToolOnlyDir(dir="knowledge", instead="the knowledge_* tools"),
        ToolOnlyDir(dir="/shared/memory", instead="recall and remember"),
    ],
)
# Nothing at all is allowed, some things are closed.
EMPTY = FileScope(project_dir=PROJECT, read_only_dirs=["sources"])
# The project itself is open.
WHOLE = FileScope(
    project_dir=PROJECT,
    writable_dirs=["."],
    searchable_dirs=["."],
    tool_only_dirs=[ToolOnlyDir(dir="knowledge", instead="the knowledge_* tools")],
)

READ = {"Read": "file_path", "NotebookRead": "notebook_path"}
WRITE = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
OUTSIDE = " and your own plugins and run folder."
RUBRICS = "sources/, drafts/, /shared/rubrics/"

READING = [
    # path, code, sentence ("" is no objection)
    ("sources/a.md", Code.OK, ""),
    ("/shared/rubrics/r.md", Code.OK, ""),
    ("/opt/agent/plugin/skills/x/SKILL.md", Code.OK, ""),
    ("/home/u/.claude/projects/-work-course/s1/tool-results/r.txt", Code.OK, ""),
    ("agent.config.json", Code.DENIED_PATH, '"{}" is off limits: it can\'t be read.'),
    ("drafts/secret/a", Code.DENIED_PATH, '"{}" is off limits: it can\'t be read.'),
    ("drafts/x/.env", Code.DENIED_PATTERN, '"{}" is off limits: it can\'t be read.'),
    (
        "README.md",
        Code.OUTSIDE_READABLE,
        f'"{{}}" can\'t be read: reading is only allowed inside {RUBRICS}{OUTSIDE}',
    ),
    (
        "/home/u/.claude/projects/-work-course/s2/tool-results/r.txt",
        Code.OUTSIDE_READABLE,
        f'"{{}}" can\'t be read: reading is only allowed inside {RUBRICS}{OUTSIDE}',
    ),
    (
        "knowledge/a.md",
        Code.TOOLS_ONLY,
        (
            '"{}" is in knowledge/, which is reached only through the knowledge_* tools,'
            " not the file tools."
        ),
    ),
    (
        "/shared/memory/a.md",
        Code.TOOLS_ONLY,
        (
            '"{}" is in /shared/memory/, which is reached only through recall and remember,'
            " not the file tools."
        ),
    ),
    (
        "/proc/self/environ",
        Code.SPECIAL_FILE,
        '"{}" is a device or system file: it can\'t be read.',
    ),
    (
        "drafts/a\0b",
        Code.MALFORMED,
        '"drafts/a\\x00b" can\'t be judged as a path: write the plain path of one file or folder.',
    ),
]

WRITING = [
    ("drafts/newsletter.md", Code.OK, ""),
    ("/shared/out/a.md", Code.OK, ""),
    (
        "sources/syllabus.pdf",
        Code.READ_ONLY,
        (
            '"{}" is read-only: originals are never modified — write your own notes inside'
            " drafts/, /shared/out/ instead."
        ),
    ),
    (
        "drafts/originals/a",
        Code.READ_ONLY,
        (
            '"{}" is read-only: originals are never modified — write your own notes inside'
            " drafts/, /shared/out/ instead."
        ),
    ),
    ("drafts/secret/a", Code.DENIED_PATH, '"{}" is off limits: it can\'t be written.'),
    ("drafts/.env", Code.DENIED_PATTERN, '"{}" is off limits: it can\'t be written.'),
    (
        "README.md",
        Code.OUTSIDE_WRITABLE,
        '"{}" can\'t be written: writing is only allowed inside drafts/, /shared/out/.',
    ),
    (
        "drafts/CLAUDE.md",
        Code.CONTROL_FILE,
        '"{}" can\'t be written: it changes the rules or runs code in later sessions.',
    ),
    (
        "knowledge/index.md",
        Code.TOOLS_ONLY,
        (
            '"{}" is in knowledge/, which is reached only through the knowledge_* tools,'
            " not the file tools."
        ),
    ),
    (
        "/dev/sda",
        Code.SPECIAL_FILE,
        '"{}" is a device or system file: it can\'t be written.',
    ),
]

SEARCHING = [
    (
        "sources",
        Code.CONTAINS_DENIED,
        '"{}" contains sources/keys/*.pem, which is off limits: search a folder beside it.',
    ),
    ("sources/week1", Code.OK, ""),
    (
        "/shared/rubrics",
        Code.OUTSIDE_SEARCHABLE,
        'Grep only searches inside sources/, drafts/ — pass one of them (or a folder inside) as "path".',
    ),
    (
        "drafts",
        Code.CONTAINS_DENIED,
        '"{}" contains drafts/secret, which is off limits: search a folder beside it.',
    ),
    (
        "sources/keys",
        Code.CONTAINS_DENIED,
        '"{}" contains sources/keys/*.pem, which is off limits: search a folder beside it.',
    ),
    ("drafts/secret", Code.DENIED_PATH, '"{}" is off limits: it can\'t be searched.'),
    (
        ".",
        Code.CONTAINS_TOOLS_ONLY,
        (
            '"{}" contains knowledge/, which is reached only through the knowledge_* tools,'
            " not the file tools."
        ),
    ),
    (
        "/shared",
        Code.CONTAINS_TOOLS_ONLY,
        (
            '"{}" contains /shared/memory/, which is reached only through recall and remember,'
            " not the file tools."
        ),
    ),
    (
        "knowledge/deep",
        Code.TOOLS_ONLY,
        (
            '"{}" is in knowledge/, which is reached only through the knowledge_* tools,'
            " not the file tools."
        ),
    ),
    ("/sys", Code.SPECIAL_FILE, '"{}" is a device or system file: it can\'t be searched.'),
]

LISTING = [
    # as a folder: Glob's path, or LS
    ("sources", Code.OK, ""),
    ("/shared/rubrics", Code.OK, ""),
    ("drafts", Code.OK, ""),  # above a denied path: the CLI's rule filters the names
    ("drafts/secret", Code.DENIED_PATH, '"{}" is off limits: it can\'t be listed.'),
    ("drafts/secret/in", Code.DENIED_PATH, '"{}" is off limits: it can\'t be listed.'),
    (
        "/etc",
        Code.OUTSIDE_READABLE,
        f'{{tool}} can\'t list "{{}}": listing is only allowed inside {RUBRICS}{OUTSIDE}',
    ),
    (
        "knowledge",
        Code.TOOLS_ONLY,
        (
            '"{}" is in knowledge/, which is reached only through the knowledge_* tools,'
            " not the file tools."
        ),
    ),
    (
        "/shared",
        Code.CONTAINS_TOOLS_ONLY,
        (
            '"{}" contains /shared/memory/, which is reached only through recall and remember,'
            " not the file tools."
        ),
    ),
    ("/dev/fd", Code.SPECIAL_FILE, '"{}" is a device or system file: it can\'t be listed.'),
]

CALLS = [
    *((t, {f: p}, c, s, p) for t, f in READ.items() for p, c, s in READING),
    *((t, {f: p}, c, s, p) for t, f in WRITE.items() for p, c, s in WRITING),
    *(("Grep", {"pattern": "x", "path": p}, c, s, p) for p, c, s in SEARCHING),
    *(("Glob", {"pattern": "*.md", "path": p}, c, s, p) for p, c, s in LISTING),
    *(("LS", {"path": p}, c, s, p) for p, c, s in LISTING),
]


def judged(scope: FileScope, tool: str, tool_input: dict[str, Any]) -> Decision:
    """The decision; the short question must give the same answer."""
    decision = explain_file_scope(scope, tool, tool_input)
    assert check_file_scope(scope, tool, tool_input) == decision.message
    assert (decision.verdict is Verdict.ALLOW) == (decision.message is None)
    return decision


@pytest.mark.parametrize(("tool", "tool_input", "code", "sentence", "path"), CALLS)
def test_a_tool_gets_the_code_and_the_sentence_of_its_row(
    tool: str, tool_input: dict[str, Any], code: Code, sentence: str, path: str
) -> None:
    decision = judged(SCOPE, tool, tool_input)
    assert decision.code is code
    assert decision.message == (sentence.format(path, tool=tool) or None)


@pytest.mark.parametrize(
    ("tool", "tool_input", "sentence"),
    [
        ("Read", {"file_path": "a"}, '"a" can\'t be read: this session has no readable folder.'),
        (
            "Write",
            {"file_path": "a"},
            '"a" can\'t be written: this agent may write nothing.',
        ),
        (
            "Edit",
            {"file_path": "sources/a"},
            (
                '"sources/a" is read-only: originals are never modified, and this agent may write'
                " nothing."
            ),
        ),
        (
            "Grep",
            {"pattern": "x"},
            'Grep can\'t search ".": this session has no searchable folder.',
        ),
        ("Glob", {"pattern": "*"}, 'Glob can\'t list ".": this session has no readable folder.'),
        ("LS", {"path": "x"}, 'LS can\'t list "x": this session has no readable folder.'),
    ],
)
def test_an_empty_list_is_said_plainly(
    tool: str, tool_input: dict[str, Any], sentence: str
) -> None:
    assert judged(EMPTY, tool, tool_input).message == sentence


EXAMPLE = FileScope(
    project_dir=PROJECT,
    writable_dirs=["drafts"],
    searchable_dirs=["sources", "drafts"],
    read_only_dirs=["sources"],
    denied_paths=["agent.config.json"],
    tool_only_dirs=[ToolOnlyDir(dir="knowledge", instead="the knowledge_* tools")],
)
INSIDE = "sources/, drafts/ and your own plugins and run folder."
TOOLS = "reached only through the knowledge_* tools, not the file tools."


@pytest.mark.parametrize(
    ("tool", "tool_input", "code", "sentence"),
    [
        (
            "Write",
            {"file_path": "knowledge/index.md"},
            Code.TOOLS_ONLY,
            f'"knowledge/index.md" is in knowledge/, which is {TOOLS}',
        ),
        ("Edit", {"file_path": "drafts/newsletter.md"}, Code.OK, None),
        (
            "Edit",
            {"file_path": "sources/syllabus.pdf"},
            Code.READ_ONLY,
            (
                '"sources/syllabus.pdf" is read-only: originals are never modified — write your own'
                " notes inside drafts/ instead."
            ),
        ),
        (
            "Write",
            {"file_path": "README.md"},
            Code.OUTSIDE_WRITABLE,
            '"README.md" can\'t be written: writing is only allowed inside drafts/.',
        ),
        ("Read", {"file_path": "sources/syllabus.md"}, Code.OK, None),
        (
            "Read",
            {"file_path": "README.md"},
            Code.OUTSIDE_READABLE,
            f'"README.md" can\'t be read: reading is only allowed inside {INSIDE}',
        ),
        (
            "Read",
            {"file_path": "agent.config.json"},
            Code.DENIED_PATH,
            '"agent.config.json" is off limits: it can\'t be read.',
        ),
        ("Grep", {"pattern": "exam", "path": "sources/"}, Code.OK, None),
        (
            "Grep",
            {"pattern": "exam"},
            Code.CONTAINS_TOOLS_ONLY,
            f'"." contains knowledge/, which is {TOOLS}',
        ),
        (
            "Grep",
            {"pattern": "password", "path": "."},
            Code.CONTAINS_TOOLS_ONLY,
            f'"." contains knowledge/, which is {TOOLS}',
        ),
    ],
)
def test_the_example_scope_answers_as_documented(
    tool: str, tool_input: dict[str, Any], code: Code, sentence: str | None
) -> None:
    decision = judged(EXAMPLE, tool, tool_input)
    assert (decision.code, decision.message) == (code, sentence)


def test_the_project_itself_is_shown_as_a_dot() -> None:
    message = judged(WHOLE, "Read", {"file_path": "/etc/passwd"}).message
    assert message == f'"/etc/passwd" can\'t be read: reading is only allowed inside ./{OUTSIDE}'


def test_every_code_is_reached() -> None:
    asked = [(tool, tool_input) for tool, tool_input, *_ in CALLS]
    asked += [("Bash", {"command": "ls"}), ("Glob", {"pattern": "../*", "path": "sources"})]
    assert {explain_file_scope(SCOPE, *call).code for call in asked} == set(Code)


@pytest.mark.parametrize("tool_input", [{}, {"file_path": ""}, {"file_path": " \ufeff\n"}])
@pytest.mark.parametrize("tool", ["Read", "Write", "Edit", "MultiEdit"])
def test_a_call_without_a_path_is_left_for_the_tool_to_reject(
    tool: str, tool_input: dict[str, Any]
) -> None:
    assert judged(EMPTY, tool, tool_input).code is Code.NOT_JUDGED


@pytest.mark.parametrize("tool_input", [{}, {"path": ""}, {"path": " "}, {"path": "\u00a0"}])
@pytest.mark.parametrize("tool", ["Grep", "Glob", "LS"])
def test_a_missing_path_means_the_working_folder_of_the_call(
    tool: str, tool_input: dict[str, Any]
) -> None:
    call = {"pattern": "*", **tool_input} if tool != "LS" else tool_input
    assert explain_file_scope(SCOPE, tool, call, cwd=f"{PROJECT}/sources/w").code is Code.OK
    decision = judged(SCOPE, tool, call)
    assert decision.code is Code.CONTAINS_TOOLS_ONLY
    if "path" not in tool_input:
        assert decision.message is not None
        assert decision.message.startswith('"." contains knowledge/')


# --- precedence: tools-only, denied, read-only, control files, allow-lists ----------------------


def closed(**fields: Any) -> FileScope:
    return FileScope(project_dir=PROJECT, writable_dirs=["."], searchable_dirs=["."], **fields)


TOOL_ONLY = [ToolOnlyDir(dir="x", instead="its tools")]


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ({"tool_only_dirs": TOOL_ONLY, "denied_paths": ["x"]}, "x/a", Code.TOOLS_ONLY),
        ({"tool_only_dirs": TOOL_ONLY, "denied_paths": ["x/a"]}, "x/a", Code.TOOLS_ONLY),
        ({"tool_only_dirs": TOOL_ONLY, "denied_paths": ["*"]}, "x/a", Code.TOOLS_ONLY),
        ({"tool_only_dirs": TOOL_ONLY, "read_only_dirs": ["x/a"]}, "x/a", Code.TOOLS_ONLY),
        ({"denied_paths": ["x"], "read_only_dirs": ["x/a"]}, "x/a", Code.DENIED_PATH),
        ({"denied_paths": ["x/a"], "read_only_dirs": ["x"]}, "x/a", Code.DENIED_PATH),
        ({"denied_paths": ["x*"], "read_only_dirs": ["x"]}, "x/a", Code.DENIED_PATTERN),
        ({"denied_paths": ["x"]}, "x/CLAUDE.md", Code.DENIED_PATH),
        ({"read_only_dirs": ["x"]}, "x/CLAUDE.md", Code.READ_ONLY),
        ({"read_only_dirs": ["."]}, "a", Code.READ_ONLY),
        ({}, "CLAUDE.md", Code.CONTROL_FILE),
        ({}, "../CLAUDE.md", Code.CONTROL_FILE),  # outside as well
        ({}, "../a", Code.OUTSIDE_WRITABLE),
    ],
)
def test_the_stronger_rule_speaks(fields: dict[str, Any], path: str, code: Code) -> None:
    assert judged(closed(**fields), "Write", {"file_path": path}).code is code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        # as a search of the folder above finds them
        ({"tool_only_dirs": TOOL_ONLY, "denied_paths": ["y"]}, Code.CONTAINS_TOOLS_ONLY),
        ({"tool_only_dirs": TOOL_ONLY, "denied_paths": ["."]}, Code.CONTAINS_TOOLS_ONLY),
        ({"denied_paths": [".", "y"]}, Code.DENIED_PATH),
        ({"denied_paths": ["y"], "read_only_dirs": ["."]}, Code.CONTAINS_DENIED),
        ({"read_only_dirs": ["."]}, Code.OK),
    ],
)
def test_the_stronger_rule_speaks_for_a_search(fields: dict[str, Any], code: Code) -> None:
    assert judged(closed(**fields), "Grep", {"pattern": "x"}).code is code


def test_denied_wins_over_what_is_readable_in_every_way() -> None:
    scope = FileScope(
        project_dir=PROJECT,
        writable_dirs=["x"],
        searchable_dirs=["x"],
        readable_dirs=["x"],
        also_readable=["x"],
        tool_results_dir="x",
        denied_paths=["x"],
    )
    for tool, tool_input in (
        ("Read", {"file_path": "x/a"}),
        ("Write", {"file_path": "x/a"}),
        ("Grep", {"pattern": "a", "path": "x"}),
        ("Glob", {"pattern": "a", "path": "x"}),
    ):
        assert judged(scope, tool, tool_input).code is Code.DENIED_PATH


def test_readable_folders_left_out_are_the_searchable_ones_and_never_everything() -> None:
    left_out = FileScope(project_dir=PROJECT, searchable_dirs=["sources"])
    assert judged(left_out, "Read", {"file_path": "sources/a"}).code is Code.OK
    assert judged(left_out, "Read", {"file_path": "a"}).code is Code.OUTSIDE_READABLE
    none = FileScope(project_dir=PROJECT, searchable_dirs=["sources"], readable_dirs=[])
    assert judged(none, "Read", {"file_path": "sources/a"}).code is Code.OUTSIDE_READABLE
    assert judged(none, "Grep", {"pattern": "x", "path": "sources"}).code is Code.OK


def test_a_writable_folder_is_not_readable_by_that() -> None:
    scope = FileScope(project_dir=PROJECT, writable_dirs=["drafts"])
    assert judged(scope, "Write", {"file_path": "drafts/a"}).code is Code.OK
    assert judged(scope, "Read", {"file_path": "drafts/a"}).code is Code.OUTSIDE_READABLE
    assert judged(scope, "Glob", {"pattern": "*", "path": "drafts"}).code is Code.OUTSIDE_READABLE


# --- what a Grep may stand above -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "start", "found"),
    [
        # literal entries below the start, whether they exist or not
        ("a/b/c", ".", True),
        ("a/b/c", "a", True),
        ("a/b/c", "a/b", True),
        ("a/b/c", "a/d", False),
        ("a/bc", "a/b", False),
        ("A/B/C", "a/b", True),
        # patterns: only when their fixed folders are at or below the start
        ("a/**/*.key", ".", True),
        ("a/**/*.key", "a", True),
        ("a/**/*.key", "a/b", False),
        ("a/b*/c", "a", True),
        ("a/b*/c", "a/b1", False),
        ("a/*", "b", False),
        ("**/.env", ".", False),
        ("*.pem", "a", False),
        ("/**/.env", "a", False),
        ("./*.key", ".", True),
        (f"{PROJECT}/a/*", "a", True),
    ],
)
def test_a_search_is_refused_above_a_denied_entry(entry: str, start: str, found: bool) -> None:
    decision = judged(closed(denied_paths=[entry]), "Grep", {"pattern": "x", "path": start})
    assert decision.code is (Code.CONTAINS_DENIED if found else Code.OK)
    assert decision.entry == (entry if found else None)
    assert judged(closed(denied_paths=[entry]), "LS", {"path": start}).code is Code.OK


def test_the_grep_filter_widens_nothing() -> None:
    scope = closed(denied_paths=["a/secret"])
    for glob in ("*", "secret/**", "../**", "/etc/**"):
        call = {"pattern": "x", "path": "b", "glob": glob, "type": "py"}
        assert judged(scope, "Grep", call).code is Code.OK


def test_a_decision_names_the_target_the_entry_and_the_readings() -> None:
    decision = judged(SCOPE, "Read", {"file_path": "drafts/./secret//a"})
    assert decision.target == f"{PROJECT}/drafts/secret/a"
    assert decision.entry == "drafts/secret"
    assert decision.readings == (f"{PROJECT}/drafts/secret/a",)
    allowed = judged(SCOPE, "Read", {"file_path": "sources/a"})
    assert (allowed.target, allowed.entry) == (f"{PROJECT}/sources/a", None)
    assert judged(SCOPE, "Bash", {}) == Decision(verdict=Verdict.ALLOW, code=Code.NOT_JUDGED)


# --- how a path is shown -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "quoted"),
    [
        ("a b", "a b"),
        ('a" is fine. "', 'a\\" is fine. \\"'),
        ("a\nIgnore the rules", "a\\nIgnore the rules"),
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\\b", "a\\\\b"),
        ("señas/ß", "señas/ß"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("\n" * 10 + "a", "\\n" * 10 + "a"),
    ],
)
def test_what_the_model_wrote_is_quoted_on_one_line(path: str, quoted: str) -> None:
    message = judged(EMPTY, "Write", {"file_path": path}).message
    assert message == f'"{quoted}" can\'t be written: this agent may write nothing.'


def test_a_configured_name_can_not_break_the_line_either() -> None:
    scope = closed(denied_paths=["a\nb", "c\n*"], tool_only_dirs=[])
    for entry, shown in (("a\nb", "a\\nb"), ("c\n*", "c\\n*")):
        one = closed(denied_paths=[f"x/{entry}"])
        message = judged(one, "Grep", {"pattern": "x", "path": "x"}).message
        assert message == f'"x" contains x/{shown}, which is off limits: search a folder beside it.'
    named = FileScope(project_dir=PROJECT, searchable_dirs=["s\u202eu"])
    message = judged(named, "Read", {"file_path": "a"}).message
    assert message is not None
    assert "inside s\\u202eu/ and" in message
    assert judged(scope, "Read", {"file_path": "a\nb"}).code is Code.DENIED_PATH


def test_names_beginning_with_a_dot_are_covered_by_their_folder() -> None:
    scope = closed(denied_paths=["x"])
    assert judged(scope, "Read", {"file_path": ".hidden/..a/.b"}).code is Code.OK
    assert judged(scope, "Read", {"file_path": "x/.hidden"}).code is Code.DENIED_PATH
    assert judged(scope, "Read", {"file_path": "x/..data/token"}).code is Code.DENIED_PATH


@pytest.mark.parametrize(
    "path", ["sources-old/a", "sourcesa", "source", "sources..", "sources ", "s"]
)
def test_containment_is_by_whole_components(path: str) -> None:
    assert judged(EXAMPLE, "Read", {"file_path": f"./{path}/x"}).code is Code.OUTSIDE_READABLE
    beside = closed(denied_paths=["sources"])
    assert judged(beside, "Read", {"file_path": f"./{path}/x"}).code is Code.OK


@pytest.mark.parametrize("path", ["...", "..a", ".. ", "..\u00a0/x", ". .", "....", "..a/../..b"])
def test_only_a_component_that_is_two_dots_climbs(path: str) -> None:
    assert judged(WHOLE, "Read", {"file_path": f"{PROJECT}/{path}/x"}).code is Code.OK
