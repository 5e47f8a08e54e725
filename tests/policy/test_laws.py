"""Laws of rules, over random lists and paths of a small alphabet. No disk is looked at."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.delete import check_delete
from agent_kit.policy.evaluate import check_permissions, check_search
from agent_kit.policy.lookup import NEVER, Lookup
from agent_kit.policy.patterns import parse_rule_pattern
from agent_kit.policy.rules import FilePermission, RuleVerdict, stricter
from agent_kit.policy.subtree import Numbered, Subtrees
from agent_kit.scope.flavour import POSIX

NAMES = ["a", "b", "ab", "A", ".a", "b.a"]
MAGIC = [*NAMES, "*", "**", "a*", "?", "[ab]", "*b", "\\a", "***", "*.a", "*.b.a"]
SEGMENTS = st.sampled_from([*MAGIC, "**", "**", "*"])


def joined(head: str, names: list[str], tail: str) -> str:
    return head + "/".join(names) + tail


PATTERNS = st.builds(
    joined,
    st.sampled_from(["/", "/", "", "**/", "/a/", "/a/b/"]),
    st.lists(SEGMENTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/**"]),
)
PATHS = st.lists(st.sampled_from(NAMES), max_size=4).map(lambda names: "/" + "/".join(names))
MODES = st.sampled_from(list(RuleVerdict))
RULES = st.lists(
    st.builds(
        lambda paths, mode: FilePermission(operations=["read", "write"], paths=paths, mode=mode),
        st.lists(PATTERNS, min_size=1, max_size=2),
        MODES,
    ),
    max_size=5,
)
DENIED_STARS = FilePermission(
    operations=["read", "write"], paths=["/a/***", "/a/a"], mode=RuleVerdict.DENY
)
SLOW = settings(max_examples=400)

EVERYTHING = ["/"] + [
    "/" + "/".join(names)
    for depth in (1, 2, 3)
    for names in itertools.product(["a", "b", "ab", ".a"], repeat=depth)
]


def listed(rules: Any) -> RuleList:
    return compile_rules(rules, project_dir="/a", native=False)


def read(rules: Any, path: str) -> RuleVerdict:
    return check_permissions(rules, "read", path)


def by_pathspec(rules: list[FilePermission], path: str) -> RuleVerdict:
    """First match wins, each pattern asked of the library, one after the other."""
    for rule in rules:
        for source in rule.paths:
            for pattern in parse_rule_pattern(source, "/a", "/", POSIX):
                spec = GitIgnoreSpec.from_lines([pattern.folded])
                if spec.match_file(path[1:]):
                    return RuleVerdict(rule.mode)
    return RuleVerdict.ALLOW


@SLOW
@given(rules=RULES, path=PATHS.filter("/".__ne__), folder=st.booleans())
@example(rules=[DENIED_STARS], path="/a", folder=True)
def test_the_first_pattern_that_gitignore_matches_decides(
    rules: list[FilePermission], path: str, folder: bool
) -> None:
    text = path + "/" if folder else path
    verdict = read(listed(rules), text)
    event(str(verdict))
    assert verdict == by_pathspec(rules, text)


HEADS = ["/a/", "/a/b/", "/b.a/", "/a/**/", "/a/b/**/", "**/", "/**/"]
TAILS = ["*.a", "*.b.a", "*.\\a", "*.", "a", "b.a", "a/", "b.a/", "a/**", "*", "**/"]
TREE = [
    "/" + "/".join(names)
    for depth in (1, 2, 3, 4)
    for names in itertools.product(["a", "b", ".a", "b.a"], repeat=depth)
]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("head", HEADS)
def test_names_and_endings_below_a_folder_are_filed_as_gitignore_reads_them(
    head: str, tail: str
) -> None:
    parsed = parse_rule_pattern(head + tail, "/a", "/", POSIX)
    lookup = Lookup([(0, pattern) for pattern in parsed])
    spec = GitIgnoreSpec.from_lines([pattern.folded for pattern in parsed])
    for path, folder in itertools.product(TREE, (True, False)):
        text = f"{path}/" if folder else path
        assert (lookup.first(path, folder) == 0) is spec.match_file(text[1:]), text


@SLOW
@given(patterns=st.lists(PATTERNS, min_size=40, max_size=60), path=PATHS, folder=st.booleans())
def test_many_patterns_are_found_as_few_are(patterns: list[str], path: str, folder: bool) -> None:
    """More than 32 with magic are filed by an index."""
    parsed = [
        (number, pattern)
        for number, source in enumerate(patterns)
        for pattern in parse_rule_pattern(source, "/a", "/", POSIX)
    ]
    one_by_one = min(
        (number for number, p in parsed if Lookup([(number, p)]).first(path, folder) != NEVER),
        default=NEVER,
    )
    assert Lookup(parsed).first(path, folder) == one_by_one


@given(rules=RULES, path=PATHS)
def test_what_stands_behind_a_match_never_counts(rules: list[FilePermission], path: str) -> None:
    for end in range(len(rules)):
        number = listed(rules).judge("read", (path,), False).number  # type: ignore[arg-type]
        if number is not None and number <= end:
            assert read(listed(rules[: end + 1]), path) == read(listed(rules), path)


@given(rules=RULES, path=PATHS, mode=MODES)
def test_a_rule_in_front_wins(rules: list[FilePermission], path: str, mode: RuleVerdict) -> None:
    first = FilePermission(operations=["read"], paths=[path if path != "/" else "**"], mode=mode)
    assert read(listed([first, *rules]), path) == mode


@given(rules=RULES, path=PATHS, other=PATHS)
def test_of_several_names_the_stricter_verdict_counts(
    rules: list[FilePermission], path: str, other: str
) -> None:
    compiled = listed(rules)
    both = compiled.judge("read", (path, other), False).verdict  # type: ignore[arg-type]
    assert both == stricter(read(compiled, path), read(compiled, other))


def is_below(path: str, folder: str) -> bool:
    return folder == "/" or path == folder or path.startswith(folder + "/")


def fixed_only(rules: list[FilePermission]) -> list[FilePermission]:
    """The rules without the deny patterns that have no fixed folder: the CLI leaves their hits out."""
    kept = []
    for rule in rules:
        paths = [
            path
            for path in rule.paths
            if rule.mode != "deny"
            or all(p.fixed is not None for p in parse_rule_pattern(path, "/a", "/", POSIX))
        ]
        if paths:
            kept.append(FilePermission(operations=rule.operations, paths=paths, mode=rule.mode))
    return kept


@SLOW
@given(rules=RULES, folder=PATHS)
@example(
    rules=[
        FilePermission(operations=["read"], paths=["/a/b"], mode="allow"),
        FilePermission(operations=["read"], paths=["/a/**"], mode="deny"),
    ],
    folder="/a",
)
def test_a_search_allows_nothing_that_a_read_below_would_not(
    rules: list[FilePermission], folder: str
) -> None:
    verdict = check_search(listed(rules), folder)
    event(str(verdict))
    fixed = listed(fixed_only(rules))
    for path in EVERYTHING:
        if is_below(path, folder) and path != folder:
            assert stricter(read(fixed, path), verdict) == verdict, path


class Matched:
    """A lookup that can't tell that no rule matches: each mode is asked for itself."""

    def first(self, _path: str, _folder: bool) -> int:
        return 0


@SLOW
@given(rules=RULES, folder=PATHS, filtered=st.booleans(), is_folder=st.booleans())
def test_a_folder_that_no_rule_matches_is_judged_as_if_each_mode_were_asked(
    rules: list[FilePermission], folder: str, filtered: bool, is_folder: bool
) -> None:
    items = [
        Numbered(number, RuleVerdict(rule.mode), pattern)
        for number, rule in enumerate(rules)
        for source in rule.paths
        for pattern in parse_rule_pattern(source, "/a", "/", POSIX)
    ]
    lookup = Lookup([(item.number, item.pattern) for item in items])
    short, long = (
        Subtrees(items, first, lambda _path, _folder: False)  # type: ignore[arg-type]
        for first in (lookup, Matched())
    )
    event("matched" if lookup.first(folder, is_folder) != NEVER else "free")
    asked = (folder,)
    assert short.judge(asked, is_folder, filtered=filtered) == long.judge(
        asked, is_folder, filtered=filtered
    )


@SLOW
@given(rules=RULES, folder=PATHS)
def test_a_search_that_starts_in_a_denied_place_is_denied(
    rules: list[FilePermission], folder: str
) -> None:
    start = folder if folder == "/" else folder + "/"
    if read(listed(rules), start) == "deny":
        assert check_search(listed(rules), start) == "deny"


@SLOW
@given(rules=RULES, folder=PATHS)
def test_a_deletion_is_all_or_nothing(rules: list[FilePermission], folder: str) -> None:
    """By the patterns, and by a list of what is there; the first is never the milder."""
    compiled = listed(rules)
    below = [path for path in EVERYTHING if is_below(path, folder) and path != folder]
    expected = check_permissions(compiled, "write", folder)
    for path in below:
        expected = stricter(expected, check_permissions(compiled, "write", path))
    event(str(expected))
    assert check_delete(compiled, folder, tree=below) == expected
    by_patterns = check_delete(compiled, folder)
    assert stricter(by_patterns, expected) == by_patterns


@given(rules=RULES, path=PATHS, folder=PATHS)
def test_rules_that_never_decide_change_nothing(
    rules: list[FilePermission], path: str, folder: str
) -> None:
    compiled = listed(rules)
    shadowed = {shadow.rule for shadow in compiled.shadows}
    event(f"{len(shadowed)} shadowed")
    rest = listed([rule for number, rule in enumerate(rules) if number not in shadowed])
    for text in (path, path + "/"):
        assert read(compiled, text) == read(rest, text)
