"""Rules in the CLI's language, by their text. What it makes of them: tests/e2e/test_permission_rules_cli.py."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.evaluate import check_permissions
from agent_kit.policy.rules import FilePermission
from agent_kit.scope import ConfigError, FileScope
from agent_kit.sdk.permission_rules import PermissionRules, permission_rules

BOTH = ("read", "write")
TOOLS = ("Read", "Grep", "Glob", "Write", "Edit")
NAME = "SessionConfig.permissions"


def deny(*paths: str, operations: Sequence[str] = BOTH) -> FilePermission:
    return FilePermission(operations=list(operations), paths=list(paths), mode="deny")


def other(mode: str, *paths: str, operations: Sequence[str] = BOTH) -> FilePermission:
    return FilePermission(operations=list(operations), paths=list(paths), mode=mode)


def listed(*rules: FilePermission, project: str = "/w", field: str = NAME) -> RuleList:
    return compile_rules(rules, project_dir=project, home="/home/ada", field=field, native=False)


def scope(*writable: str) -> FileScope:
    return FileScope(project_dir="/w", writable_dirs=writable, home="/home/ada")


def said(*rules: FilePermission, project: str = "/w") -> PermissionRules:
    return permission_rules([listed(*rules, project=project)], (), scope("/w"), TOOLS)


def bodies(found: PermissionRules, tool: str = "Edit") -> list[str]:
    """What stands in the rules of one tool, without those for what is below."""
    texts = [rule[len(tool) + 1 : -1] for rule in found.deny if rule.startswith(tool + "(")]
    return [text for text in texts if text == "//**" or not text.endswith("/**")]


SAID = [
    ("notes/a.md", ["//w/notes/a.md"]),
    ("./notes", ["//w/notes"]),
    ("notes", ["//**/notes"]),  # anywhere
    ("notes/**", ["//w/notes/*"]),  # what is in it, and no file of that name
    ("notes/*", ["//w/notes/*"]),
    ("./notes/", ["//w/notes/*"]),
    ("notes/", ["//**/notes/*"]),
    ("notes/.", ["//w/notes/*"]),
    (".", ["//w"]),
    ("~", ["//home/ada"]),
    ("~/x/*.md", ["//home/ada/x/*.md"]),
    ("/srv/x", ["//srv/x"]),
    ("*.pem", ["//**/*.pem"]),
    ("**/.env", ["//**/.env"]),
    ("a/**/b", ["//w/a/**/b"]),
    ("a/**/b*", ["//w/a/**/b*"]),
    ("**", ["//**"]),
    ("*", ["//**"]),
    ("/**", ["//**"]),
    ("*.{key,pem}", ["//**/*.key", "//**/*.pem"]),
    ("{x/a,b*}", ["//w/x/a", "//**/b*"]),
    (r"x/\{a,b\}", [r"//w/x/\{a,b\}"]),
    (r"x/\{a,b\}*", [r"//w/x/\{a,b\}*"]),
    (r"x/\*a", [r"//w/x/\*a"]),
    (r"x/a\*", [r"//w/x/a[\*]"]),
    (r"x/*\*", [r"//w/x/*[\*]"]),
    (r"x/\[a\]", [r"//w/x/\[a\]"]),
    (r"x/\!a", [r"//w/x/\!a"]),
    (r"\#a", [r"//**/\#a"]),
    ("x/[ab]c", ["//w/x/[ab]c"]),
    ("x/[0-9]c", ["//w/x/[0-9]c"]),
    ("x/[a-zA-Z]c", ["//w/x/[a-zA-Z]c"]),
    ("x/a b", ["//w/x/a b"]),
    ("x/a\\ ", ["//w/x/a\\ "]),
    ("x/*\\ ", ["//w/x/*\\ "]),
    ("x/a  ", ["//w/x/a"]),
    ("x/a*\u3000", ["//w/x/a*"]),  # as FilePermission reads it
    ("x\u3000/a", ["//w/x\u3000/a"]),
    ("x /a*", ["//w/x\\ /a*"]),
    ("x/a (1)", ["//w/x/a (1)"]),
    ("x/a)b(", ["//w/x/a)b("]),
    ("x/~", ["//w/x/~"]),
    ("x/caf\u00e9", ["//w/x/caf\u00e9", "//w/x/cafe\u0301"]),
    ("x/*\u00e9", ["//w/x/*\u00e9", "//w/x/*e\u0301"]),
    ("x/at 9.41 AM.png", ["//w/x/at 9.41 AM.png", "//w/x/at 9.41\u202fAM.png"]),
]


@pytest.mark.parametrize(("pattern", "expected"), SAID)
def test_a_deny_rule_is_said_as_the_cli_reads_it(pattern: str, expected: list[str]) -> None:
    found = said(deny(pattern))
    assert bodies(found, "Edit") == bodies(found, "Read") == expected
    assert found.unsaid == found.unfiltered == ()


def test_what_a_rule_names_is_closed_with_all_below() -> None:
    assert said(deny("x/a", operations=["write"])).deny == ("Edit(//w/x/a)", "Edit(//w/x/a/**)")


def test_the_folders_of_the_project_and_home_are_names_and_no_patterns() -> None:
    assert bodies(said(deny("./a*", "./b"), project="/w {x,y} [1]")) == [
        r"//w \{x,y\} \[1\]/a*",
        r"//w \{x,y\} \[1\]/b",
    ]


def test_no_rule_is_said_twice() -> None:
    found = said(deny("a/x", "a/x"), deny("./a/x"))
    assert len(found.deny) == len({*found.deny}) == 4


def test_a_windows_rule_is_said_without_its_colon() -> None:
    windows = compile_rules(
        [deny("notes/*.md", "D:\\x\\y")],
        project_dir="C:\\w",
        home="C:\\Users\\ada",
        platform="windows",
    )
    place = FileScope(project_dir="C:\\w", platform="windows", home="C:\\Users\\ada")
    found = permission_rules([windows], ["keys/**"], place, TOOLS)
    assert bodies(found) == ["//c/w/notes/*.md", "//d/x/y", "//c/w/keys/*"]


UNSAID = [
    ("x/a??", "several '?'"),
    ("x/?*?", "several '?'"),
    (r"x/\??*?", "several '?'"),
    (r"x/a\?", "no way to write"),
    (r"x/a\\b", "no way to write"),
    (r"x/*\\b", "no way to write"),
    ("x/[!a]", "the brackets"),
    ("x/[^a]", "the brackets"),
    ("x/[]a]", "the brackets"),
    ("x/[a-c]1", "the brackets"),  # to the CLI also A to C
    ("x/[A-Z]*", "the brackets"),
    ("x/[\u00e9]a", "the brackets"),
    ("x/[a\u00e9]", "the brackets"),
    ("x/[+-9]", "the brackets"),
    ("x\u3000/a*", "white space"),
    ("*/", "for folders"),
    ("/*/*", "for folders"),
]


@pytest.mark.parametrize(("pattern", "why"), UNSAID)
def test_what_the_cli_reads_otherwise_is_unsaid(pattern: str, why: str) -> None:
    found = said(deny("ok/a", pattern))
    assert bodies(found) == ["//w/ok/a"]
    [sentence] = found.unsaid
    assert sentence.startswith(f"{NAME}[0] is left to the gate, ")
    assert why in sentence


@pytest.mark.parametrize("pattern", ["x/a?", "x/?b?", "x/?*", "?/a?", "x/?[ab]?"])
def test_a_single_question_mark_is_said_and_named(pattern: str) -> None:
    found = said(deny(pattern))
    assert bodies(found)[0].endswith("/" + pattern)
    assert "beyond U+FFFF" in found.unsaid[0]


def test_allowing_and_asking_make_no_rule_and_no_sentence() -> None:
    assert said(other("allow", "a/**"), other("interrupt", "/9/**")) == PermissionRules()


CARVED = [
    # (earlier, denied): whether the CLI may have the rule
    ("a/ok/**", "a/**", False),
    ("a/**", "a/x", False),
    ("a/x", "a/x", False),
    ("**", "a/x", False),
    ("*.md", "a/x", False),  # a folder may be called "a/x/b.md", or a file "a/x.md/x"
    ("a/x", "**/.env", False),
    ("a/*.md", "a/x", False),
    ("a/x*", "a/xy", False),
    ("a/x", "b/x", True),
    ("a/x", "a/xy", True),
    ("a/xy", "a/x", True),
    ("a/x*", "a/y*", True),
    ("a/x*/z", "a/y", True),
    ("a/x/", "a/y/", True),
    (r"a/\*x", "a/x*", True),
    (r"a/\*x", "a/*x", False),
    ("a/X", "a/x", False),  # the CLI ignores case
    ("a/X*", "a/xy", False),
    ("a/caf\u00e9*", "a/caf*", False),
    ("a/cafe\u0301*", "a/caf\u00e9", False),
    ("a/e\u0301*", "a/e*", False),  # decomposed, it begins with an e
    ("a/e\u0323\u0301", "a/\u00e9*", False),
]


@pytest.mark.parametrize("mode", ["allow", "interrupt"])
@pytest.mark.parametrize(("earlier", "denied", "sayable"), CARVED)
def test_a_rule_that_an_earlier_one_may_carve_into_is_unsaid(
    mode: str, earlier: str, denied: str, sayable: bool
) -> None:
    found = said(other(mode, earlier), deny(denied))
    assert bool(found.deny) is sayable
    assert bool(found.unsaid) is not sayable
    assert sayable or f"{NAME}[0]" in found.unsaid[0]


def test_a_later_rule_carves_nothing_out() -> None:
    found = said(deny("a/x"), other("allow", "a/**"), other("interrupt", "**"))
    assert bodies(found) == ["//w/a/x"]


def test_a_later_rule_for_a_name_that_differs_in_case_does() -> None:
    found = said(deny("a/x"), other("allow", "a/X"))
    assert found.deny == ()
    assert "differs" in found.unsaid[0]


def test_an_earlier_rule_for_another_operation_carves_nothing_out() -> None:
    found = said(other("allow", "a/**", operations=["read"]), deny("a/x", operations=["write"]))
    assert found.deny == ("Edit(//w/a/x)", "Edit(//w/a/x/**)")


def test_only_the_operation_that_is_carved_into_is_unsaid() -> None:
    found = said(other("allow", "a/**", operations=["read"]), deny("a/x"))
    assert found.deny == ("Edit(//w/a/x)", "Edit(//w/a/x/**)")
    assert f"{NAME}[1] is left to the gate for reading, " in found.unsaid[0]


def test_an_allow_rule_of_another_list_carves_nothing_out() -> None:
    denied = listed(deny("c/x"), deny("a/x"), field="AgentSpec.permissions")
    lists = [listed(other("allow", "**")), denied]
    found = permission_rules(lists, (), scope("/w"), TOOLS)
    assert bodies(found) == ["//w/c/x", "//w/a/x"]
    assert found.unsaid == ()


def test_a_read_rule_is_unsaid_where_writing_is_open() -> None:
    found = said(deny("a/x", operations=["read"]))
    assert found.deny == ()
    assert found.unsaid[0].endswith('against reading "a/x" would be one against writing, too.')


CLOSED_TO_WRITING = [
    (("/w/b",), TOOLS, ()),  # the folder isn't writable
    (("/w",), ("Read", "Bash"), ()),  # nothing writes
    (("/w",), TOOLS, (deny("a/x", operations=["write"]),)),
    (("/w",), TOOLS, (deny("a/**", operations=["write"]),)),
    (("/w",), TOOLS, (deny("**", operations=["write"]),)),
    (("/w",), TOOLS, (deny("*", operations=["write"]),)),
    (("/w",), TOOLS, (deny("./a", operations=["write"]),)),
]


@pytest.mark.parametrize(("writable", "tools", "rules"), CLOSED_TO_WRITING)
def test_a_read_rule_is_said_where_nothing_may_be_written(
    writable: tuple[str, ...], tools: tuple[str, ...], rules: tuple[FilePermission, ...]
) -> None:
    both = listed(deny("a/x", operations=["read"]), *rules)
    found = permission_rules([both], (), scope(*writable), tools)
    assert bodies(found, "Read") == ["//w/a/x"]


OPEN_TO_WRITING = [
    ("a/x", deny("a/x/**", operations=["write"])),  # a file in the folder's place
    ("a/x", deny("a/*", operations=["write"])),  # which may hold it, and isn't looked into
    ("a/**", deny("a/x", operations=["write"])),
    ("a/x*", deny("a/x", operations=["write"])),
    ("a/x", deny("a/y?", "a/?", "a/x??", operations=["write"])),
]


@pytest.mark.parametrize(("pattern", "rule"), OPEN_TO_WRITING)
def test_a_read_rule_is_unsaid_where_something_may_be_written(
    pattern: str, rule: FilePermission
) -> None:
    assert bodies(said(deny(pattern, operations=["read"]), rule), "Read") == []


def test_writable_in_another_case_is_writable() -> None:
    found = permission_rules([listed(deny("a/x", operations=["read"]))], (), scope("/w/A"), TOOLS)
    assert found.deny == ()


def test_deny_paths_close_reading_and_writing() -> None:
    found = permission_rules([], ["**/.env", "keys/*", "b??", "~/x"], scope("/w"), TOOLS)
    assert (
        bodies(found, "Read")
        == bodies(found, "Edit")
        == [
            "//**/.env",
            "//w/keys/*",
            "//home/ada/x",
        ]
    )
    assert [sentence.split(" ")[0] for sentence in found.unsaid] == ["deny_paths[2]"]


def test_no_rule_carves_into_deny_paths() -> None:
    found = permission_rules([listed(other("allow", "**"))], ["**/.env"], scope("/w"), TOOLS)
    assert bodies(found) == ["//**/.env"]


def test_a_faulty_pattern_in_deny_paths_is_a_fault() -> None:
    with pytest.raises(ConfigError, match=r"deny_paths\[1\]"):
        permission_rules([], ["a", "../x"], scope("/w"), TOOLS)


def test_rules_that_hold_for_some_agents_are_unsaid() -> None:
    replaced = [
        listed(deny("a/x"), other("allow", "**"), field="AgentSpec.permissions"),
        listed(deny("**/.env", operations=["read"]), field="subagents['b'].permissions"),
    ]
    found = permission_rules([listed(deny("c/x"))], (), scope(), TOOLS, replaceable=replaced)
    assert bodies(found) == ["//w/c/x"]
    assert [sentence.split(" ")[0] for sentence in found.unsaid] == [
        "AgentSpec.permissions[0]",
        "subagents['b'].permissions[0]",
    ]
    assert found.unfiltered == ("subagents['b'].permissions[0]",)


def test_an_unsaid_rule_without_a_folder_filters_no_search() -> None:
    rules = [deny("b?"), deny("x/b?"), deny("c?", operations=["write"]), deny("c*")]
    assert said(*rules).unfiltered == (f"{NAME}[0]",)


ASKED = [
    # (rules, what the CLI asks about, so that Edit tells nothing of it)
    ([other("interrupt", "a/**")], ["//w/a/*"]),
    ([other("interrupt", "a/x.md")], ["//w/a/x.md"]),
    ([other("interrupt", "**/*.csv")], ["//**/*.csv"]),
    ([other("interrupt", "/srv/**")], []),  # nothing is written there
    ([other("interrupt", "a/**", operations=["write"])], []),  # it may be read
    ([deny("a/**")], []),  # the CLI holds it
    ([deny("a/**", operations=["read"])], ["//w/a/*"]),
    ([deny("a/**", operations=["write"])], []),
    ([other("allow", "a/y*"), deny("a/**")], ["//w/a/*"]),
    ([other("allow", "a/y*", operations=["read"]), deny("a/**")], []),  # nothing is written there
    ([deny("a/b[!c]")], ["//w/a"]),  # what it can't spell: the folder
    ([deny("a/b?")], ["//w/a"]),  # what "?" misses, too
    ([deny("a/b?", operations=["read"])], ["//w/a"]),
    ([deny("b[!c]")], ["//**"]),
    ([deny("a\\\\/b[!c]")], ["//**"]),  # a folder that it can't spell, either
]


@pytest.mark.parametrize(("rules", "expected"), ASKED)
def test_the_cli_asks_before_it_reads_what_edit_could_guess_at(
    rules: list[FilePermission], expected: list[str]
) -> None:
    ask = said(*rules).ask
    assert [
        rule[5:-1] for rule in ask if not rule.endswith("/**)") or rule == "Read(//**)"
    ] == expected
    assert all(f"Read({body}/**)" in ask for body in expected if body != "//**")


def test_rules_of_one_agent_are_asked_about_as_well() -> None:
    one = listed(deny("a/**"), field="subagents['b'].permissions")
    assert "Read(//w/a/*)" in permission_rules([], (), scope("/w"), TOOLS, replaceable=[one]).ask


def test_without_edit_there_is_nothing_to_guess_with() -> None:
    rules = listed(other("interrupt", "a/**"))
    assert permission_rules([rules], (), scope("/w"), ("Read", "Write")).ask == ()


def test_a_sentence_names_a_few_of_many_reasons() -> None:
    [sentence] = said(deny(*(f"x/{number}??" for number in range(9)))).unsaid
    assert sentence.count("several '?' in") == 3
    assert sentence.endswith("; 6 more of its patterns can't, either.")


def test_a_sentence_is_one_line_whatever_the_pattern() -> None:
    [sentence] = said(deny("x/{}a\nb\u202e??")).unsaid
    assert sentence.isprintable()


# Links, on the disk.
def on_disk(project: Path, *rules: FilePermission) -> PermissionRules:
    lists = [compile_rules(rules, project_dir=str(project), field=NAME)]
    return permission_rules(lists, (), FileScope(project_dir=str(project)), TOOLS)


def test_a_folder_that_is_a_link_is_closed_under_both_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    found = on_disk(tmp_path, deny("link/x", "link/*.md", "link/**"))
    names = ("x", "*.md", "*")
    assert bodies(found) == [f"/{tmp_path}/{at}/{n}" for n in names for at in ("link", "real")]
    assert found.unsaid == ()


@pytest.mark.parametrize("pattern", ["./link", "./link/", "{./link,./real}", r"./\[link\]"])
def test_a_rule_that_names_a_link_is_unsaid(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "[link]").symlink_to("real")
    found = on_disk(tmp_path, deny(pattern))
    assert not any("link" in body.removeprefix(f"/{tmp_path}") for body in bodies(found))
    assert "is a link" in found.unsaid[0]


def test_a_rule_that_names_a_link_through_a_link_is_unsaid(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real" / "link").symlink_to("../elsewhere")
    assert on_disk(tmp_path, deny("folder/link")).deny == ()


def test_a_rule_that_names_a_link_under_its_other_name_is_unsaid(tmp_path: Path) -> None:
    (tmp_path / unicodedata.normalize("NFD", "caf\u00e9")).symlink_to("x")
    (tmp_path / "at 1\u202fAM.png").symlink_to("x")
    assert on_disk(tmp_path, deny("./caf\u00e9", "./at 1 AM.png")).deny == ()


def test_a_rule_that_names_a_loop_is_unsaid(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    found = on_disk(tmp_path, deny("./loop"))
    assert found.deny == ()
    assert "can't be followed" in found.unsaid[0]


def test_a_folder_whose_real_name_is_no_text_is_unsaid(tmp_path: Path) -> None:
    (tmp_path / "\udcff").mkdir()
    (tmp_path / "link").symlink_to("\udcff")
    found = on_disk(tmp_path, deny("link/*.md", "link/x"))
    assert bodies(found) == [f"/{tmp_path}/link/*.md", f"/{tmp_path}/link/x"]
    assert "half a character" in found.unsaid[0]


def test_an_earlier_rule_carves_under_the_real_name_of_its_folder_too(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert on_disk(tmp_path, other("allow", "link/ok"), deny("real/**")).deny == ()


def test_no_sdk_is_loaded() -> None:
    code = "import sys, agent_kit.sdk.permission_rules; print('claude_agent_sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# Laws. The CLI is a small model of it: gitignore over absolute paths, "/**" at the end cut off.
PIECES = [
    "a",
    "b",
    "A",
    "ab",
    "*",
    "**",
    "?",
    ".",
    "[ab]",
    "[!a]",
    "[a-b]",
    "\\*",
    "\\a",
    "{a,b}",
    " ",
]
NAMES = ["a", "A", "b", "B", "ab", "aB", "Ab", "AB", ".a", ".A", "*"]
PATHS = [  # with those that differ in case
    "/" + "/".join(names)
    for depth, used in ((1, NAMES), (2, NAMES), (3, ["a", "A", "b", "B", "ab", ".a"]))
    for names in product(used, repeat=depth)
]
SEGMENTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join)
PATTERNS = st.builds(
    lambda lead, names, end: lead + "/".join(names) + end,
    st.sampled_from(["", "", "/", "./", "**/"]),
    st.lists(SEGMENTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "", "/", "/**", "/*"]),
)


def _rule(mode: str, operations: list[str], paths: list[str]) -> FilePermission | None:
    try:
        return FilePermission(operations=operations, paths=paths, mode=mode)
    except ConfigError:
        return None


RULES = st.builds(
    _rule,
    st.sampled_from(["deny", "deny", "deny", "allow", "interrupt"]),
    st.sampled_from([["read"], ["write"], ["read", "write"]]),
    st.lists(PATTERNS, min_size=1, max_size=2),
)


def model(rules: Sequence[str], tool: str) -> GitIgnoreSpec:
    lines = [rule[len(tool) + 2 : -1] for rule in rules if rule.startswith(tool + "(")]
    return GitIgnoreSpec.from_lines(
        "/**" if line == "/**" else line.removesuffix("/**") for line in lines
    )


@settings(max_examples=300)
@given(
    rules=st.lists(RULES, min_size=1, max_size=4),
    project=st.sampled_from(["/", "/a"]),
    writable=st.sampled_from([(), ("/",), ("/a",), ("/a/b",)]),
)
def test_what_a_cli_rule_refuses_the_rules_deny(
    rules: list[FilePermission | None], project: str, writable: tuple[str, ...]
) -> None:
    kept = [rule for rule in rules if rule is not None]
    lists = listed(*kept, project=project)
    place = FileScope(project_dir=project, writable_dirs=writable, home="/home/ada")
    found = permission_rules([lists], (), place, TOOLS)
    assume(found.deny)

    read, edit = model(found.deny, "Read"), model(found.deny, "Edit")
    for path in PATHS:
        if read.match_file(path[1:]):
            assert check_permissions(lists, "read", path) == "deny"
            if any((path + "/").startswith(f"{folder.rstrip('/')}/") for folder in writable):
                # What denies reading anywhere is said all the same: see the module.
                anywhere = model([each for each in found.deny if "(//**" in each], "Read")
                denied = check_permissions(lists, "write", path) == "deny"
                assert denied or anywhere.match_file(path[1:])
        if edit.match_file(path[1:]):
            assert check_permissions(lists, "write", path) == "deny"


def caseless(spec: Sequence[str], tool: str) -> GitIgnoreSpec:
    return model([tool + rule[len(tool) :].lower() for rule in spec], tool)


@settings(max_examples=200)
@given(rules=st.lists(RULES, min_size=1, max_size=4))
def test_what_it_refuses_beside_differs_in_case_only(rules: list[FilePermission | None]) -> None:
    lists = listed(*(rule for rule in rules if rule is not None), project="/a")
    found = permission_rules([lists], (), scope("/"), TOOLS)
    assume(found.deny)

    edit = caseless([rule for rule in found.deny if rule.startswith("Edit")], "Edit")
    paths = [path for path in PATHS if path.count("/") < 3]
    denied = {path.lower() for path in paths if check_permissions(lists, "write", path) == "deny"}
    assert {path.lower() for path in paths if edit.match_file(path[1:].lower())} <= denied


@settings(max_examples=300)
@given(rule=RULES, project=st.sampled_from(["/", "/a"]))
def test_a_rule_that_stands_alone_is_said_whole_or_named(
    rule: FilePermission | None, project: str
) -> None:
    assume(rule is not None and rule.mode == "deny")
    lists = listed(rule, project=project)
    found = permission_rules([lists], (), scope(), TOOLS)
    if not found.unsaid:
        for operation, tool in (("read", "Read"), ("write", "Edit")):
            spec = model(found.deny, tool)
            for path in PATHS:
                is_denied = check_permissions(lists, operation, path) == "deny"
                assert spec.match_file(path[1:]) == is_denied
