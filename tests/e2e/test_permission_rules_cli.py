"""What the real CLI makes of ``permission_rules``: only the rules are on here, no hook, no authorizer.

The CLI has to refuse exactly the files that ``check_permissions`` denies. The same calls without
rules are the control.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit.policy.compiled import compile_rules
from agent_kit.policy.evaluate import check_permissions
from agent_kit.policy.rules import FilePermission
from agent_kit.scope import FileScope
from agent_kit.sdk.permission_rules import PermissionRules, permission_rules
from agent_kit.sdk.rules import pattern_rules
from agent_kit.testing import AnsweredBy, CallRecord, SessionRun, ToolCall, run_session

pytestmark = pytest.mark.e2e

TOOLS = ("Read", "Grep", "Glob", "Write", "Edit", "NotebookEdit")
BOTH = ("read", "write")
NFC = "caf\u00e9"
NFD = unicodedata.normalize("NFD", NFC)


def _options(root: Path, deny: Iterable[str]) -> ClaudeAgentOptions:
    """Of a session in ``root/cwd``, with its settings in a file."""
    settings = root / "settings.json"
    settings.write_text(json.dumps({"permissions": {"deny": list(deny)}}))
    return ClaudeAgentOptions(
        cwd=root / "cwd",
        settings=str(settings),
        setting_sources=[],
        tools=list(TOOLS),
        allowed_tools=list(TOOLS),
    )


def _session(root: Path, deny: Iterable[str], calls: Sequence[ToolCall]) -> SessionRun:
    (root / "cwd").mkdir(exist_ok=True)
    run = asyncio.run(run_session(_options(root, deny), [tuple(calls)], timeout=120))
    assert run.stderr == ()
    assert run.unplayed == ()
    return run


def _read(path: Path | str) -> ToolCall:
    return ToolCall("Read", {"file_path": str(path)})


def _write(path: Path | str) -> ToolCall:
    return ToolCall("Write", {"file_path": str(path), "content": "new"})


def _grep(path: Path) -> ToolCall:
    return ToolCall(
        "Grep", {"pattern": "canary", "path": str(path), "output_mode": "content", "head_limit": 0}
    )


def _glob(path: Path) -> ToolCall:
    return ToolCall("Glob", {"pattern": "**/*", "path": str(path)})


def _rule(*paths: str, operations: Sequence[str] = BOTH, mode: str = "deny") -> FilePermission:
    return FilePermission(operations=list(operations), paths=list(paths), mode=mode)


def _said(project: Path, *rules: FilePermission) -> PermissionRules:
    listed = compile_rules(rules, project_dir=str(project), home=str(project))
    scope = FileScope(project_dir=str(project), writable_dirs=["."])
    return permission_rules([listed], (), scope, TOOLS)


def _denied(
    project: Path, files: Iterable[str], operation: str, *rules: FilePermission
) -> set[str]:
    listed = compile_rules(rules, project_dir=str(project), home=str(project))
    return {
        name
        for name in files
        if check_permissions(listed, operation, str(project / name)) == "deny"
    }


# A tree in which every pattern below has what it means, and neighbours.
FILES = (
    *("notes", "folder/a.md", "folder/b.txt", "folder/sub/c.md", "folder2/a.md", "folder.md"),
    *("x/k", "x/y/k", "x/y/z/k", "x/y/k1", "y/x/k", "xk", "k/f", "x/a.key", "x/y/b.key"),
    *(".env", "x/.env", ".env.local", "x/.env.d/f", "env", "..data/f", "data/f", ".x/k.pem"),
    *("k.pem", "x/k.pem", "k.pem.md", "p.pem/f", "a.txt", "b.txt", "c.txt", "ab.txt", "{a,b}.txt"),
    *(
        "a1",
        "Q1",
        "Z1",
        "01",
        "m0",
        "[ab]",
        "[ab].txt",
        "*b",
        "bb",
        "a*",
        "aa",
        "a*b",
        "a?",
        "a\\b",
    ),
    *("!x", "#x", "\\!x", "s p/a b", "s p/ab", "sp/a b", "a (1)", "a (2)", "a) Bash(b", "a(", "a"),
    *("~t", "~/t", "t", "-rf", "rf", "$HOME", "a:b", "a,b", "a, Bash", "l\nf", "lf", "'q'", '"q"'),
    *(NFC, f"{NFC}s", f"x/{NFC}/f", f"{NFD}2", "cafe", "\u4e2d\u6587/f", "\u4e2d", "\U0001f600"),
    *(
        "w\u3000z/f",
        "w/f",
        " lead/f",
        "lead/f",
        "at 1.41 AM.png.txt",
        "n{o",
        "no",
        "@(a)",
        "h/i.md",
    ),
)

# Below the project.
FIXED = (
    "folder/a.md",
    "./folder",
    "./folder/",
    "./notes/",  # a file
    "folder/**",
    "notes/**",  # a file
    "folder/*",
    "folder/*.md",
    "folder/**/*.md",
    "x/**/k",
    "x/**/k*",
    "x/**/y/**",
    "x/*/k",
    "./x*/k",
    "x*/**",
    "./*.md",
    "./*",
    "./*/",
    ".",
    "./a*",
    "./a***",
    "./{a,b}.txt",
    r"./\{a,b\}.txt",
    "./{x/k,folder/**,z}",
    "./[ab].txt",
    "./[a-zA-Z]1",
    "./[0-9][0-9]",
    "./m[0-9]",
    r"./\[ab\]",
    r"./\[ab\]*",
    r"./\*b",
    r"./a\*",
    r"./a\*b",
    r"./*\*",
    r"./\!x",
    r"./\#x",
    "./!x",
    "./#x",
    "s p/a b",
    "s*/a b",
    "./a (1)",
    "./a (*",
    "./a) Bash(b",
    "./a(",
    "./~t",
    "~/t",
    "~/h/*",
    "./~",
    "./-rf",
    "./$HOME",
    "./a:b",
    "./a,b",
    "./a, Bash",
    "./l\nf",
    "./l*f",
    "./'q'",
    './"q"',
    "./.env",
    "./.*",
    "./..data",
    f"./{NFC}",
    f"./{NFD}",
    f"./*{NFC}*",
    f"x/{NFC}/**",
    "\u4e2d\u6587/*",
    "./\U0001f600",
    "w\u3000z/f",
    "./k?pem",
    "./?1",
    "./l?f",
    " lead/f",
    "./n{o",
    "./@(a)",
    "h//i.md",
    "./h/./i.md",
)
# Anywhere: each has a session of its own.
ANYWHERE = (
    "*.pem",
    ".env",
    "**/.env",
    ".env*",
    "k",
    "k/",
    "**/k*",
    "**/x/k",
    "**/x/**/k",
    "{.env,*.pem}",
    "[ab].txt",
    "a b",
    NFC,
    r"\#x",
    "~t",
    "*",
)


MOST = 7  # of each kind, for one pattern


def _some(pattern: str, denied: set[str]) -> list[str]:
    """Files that a pattern denies, and the nearest that it doesn't."""
    others = [name for name in FILES if name not in denied]
    return sorted(denied)[:MOST] + difflib.get_close_matches(pattern, others, n=MOST, cutoff=0)


def _plant(base: Path, files: Iterable[str]) -> None:
    base.mkdir(exist_ok=True)
    for name in files:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(f"canary({FILES.index(name)})")


def _refused(names: Sequence[str], calls: Iterable[CallRecord]) -> set[str]:
    locks = {name: call.lock for name, call in zip(names, calls, strict=True)}
    assert set(locks.values()) <= {AnsweredBy.RAN, AnsweredBy.RULES}
    return {name for name, lock in locks.items() if lock is AnsweredBy.RULES}


def _asked(base: Path, names: Iterable[str]) -> list[ToolCall]:
    return [*(_read(base / name) for name in names), _grep(base), _glob(base)]


def _kept(base: Path, names: Sequence[str], calls: Sequence[CallRecord]) -> set[str]:
    """The files that Read refused, which are those that Grep and Glob left out."""
    *reads, grep, glob = calls
    kept = _refused(names, reads)
    assert {n for n in names if f"canary({FILES.index(n)})" not in str(grep.result)} == kept
    assert {n for n in names if f"{base}/{n}\n" not in f"{glob.result}\n"} == kept
    return kept


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("t (1) [x] {a,b}")


def _names(root: Path, pattern: str) -> list[str]:
    return _some(pattern, _denied(root, FILES, "read", _rule(pattern)))


@pytest.fixture(scope="module")
def reading(root: Path) -> dict[str, set[str]]:
    """What each pattern below the project keeps from being read, in a project of its own."""
    deny: list[str] = []
    calls: list[ToolCall] = []
    for number, pattern in enumerate(FIXED):
        base, names = root / str(number), _names(root, pattern)
        _plant(base, names)
        deny += _said(base, _rule(pattern)).deny
        calls += _asked(base, names)
    run, at, kept = _session(root, deny, calls), 0, {}
    for number, pattern in enumerate(FIXED):
        names = _names(root, pattern)
        kept[pattern] = _kept(root / str(number), names, run.calls[at : at + len(names) + 2])
        at += len(names) + 2
    return kept


@pytest.fixture(scope="module")
def writing(root: Path) -> dict[str, set[str]]:
    """What each keeps from being written, by a rule for writing alone. No file is there before."""
    deny: list[str] = []
    calls: list[ToolCall] = []
    new = root / "new"
    new.mkdir()
    for number, pattern in enumerate(FIXED):
        (new / str(number)).mkdir()
        deny += _said(new / str(number), _rule(pattern, operations=["write"])).deny
        calls += [_write(new / str(number) / name) for name in _names(root, pattern)]
    assert all(rule.startswith("Edit(") for rule in deny)
    run, at, kept = _session(new, deny, calls), 0, {}
    for number, pattern in enumerate(FIXED):
        names = _names(root, pattern)
        kept[pattern] = _refused(names, run.calls[at : at + len(names)])
        assert {n for n in names if not (new / str(number) / n).exists()} == kept[pattern]
        at += len(names)
    return kept


@pytest.mark.parametrize("pattern", FIXED)
def test_what_a_rule_denies_is_refused_and_nothing_beside(
    root: Path, reading: dict[str, set[str]], writing: dict[str, set[str]], pattern: str
) -> None:
    denied = _denied(root, _names(root, pattern), "read", _rule(pattern))
    assert reading[pattern] == denied
    assert writing[pattern] == denied
    assert denied or pattern in ("./notes/", "notes/**")  # those are for folders


@pytest.mark.parametrize("pattern", ANYWHERE)
def test_a_pattern_without_a_folder_is_refused_everywhere(tmp_path: Path, pattern: str) -> None:
    base = tmp_path / "out"
    names = _names(base, pattern)
    _plant(base, names)
    found = _said(tmp_path / "cwd", _rule(pattern))
    assert found.unsaid == ()
    run = _session(tmp_path, found.deny, _asked(base, names))
    assert _kept(base, names, run.calls) == _denied(base, names, "read", _rule(pattern)) != set()


def test_a_pattern_without_a_folder_is_written_nowhere(tmp_path: Path) -> None:
    rule = _rule(*(each for each in ANYWHERE if each != "*"), operations=["write"])
    base = tmp_path / "out"
    run = _session(tmp_path, _said(base, rule).deny, [_write(base / name) for name in FILES])
    denied = _denied(base, FILES, "write", rule)
    assert _refused(FILES, run.calls) == denied
    assert 10 < len(denied) < len(FILES) - 40


def test_without_rules_every_file_is_open(tmp_path: Path) -> None:
    base = tmp_path / "out"
    _plant(base, FILES)
    new = [_write(tmp_path / "new" / name) for name in FILES]
    run = _session(tmp_path, (), [*_asked(base, FILES), *new])
    assert _kept(base, FILES, run.calls[: len(FILES) + 2]) == set()
    assert _refused(FILES, run.calls[len(FILES) + 2 :]) == set()


# Why some patterns are left unsaid: as rules, they would refuse one of these files wrongly.
WRONGLY = (
    ("./??", "\U0001f600"),  # two of what JavaScript calls characters
    ("./??", NFC[-1]),  # in a search: two bytes
    (r"./a\?b", "aXb"),
    (r"./a\\b", "aXb"),
    ("./[!a]1", "a1"),
    ("./[^a]1", "a1"),
    ("./[a-c]1", "B1"),
    ("./[A-Z]*", "notes"),
    ("./*[\u00e9]b", "xeb"),  # an e and an accent, decomposed
)


@pytest.mark.parametrize(("pattern", "name"), WRONGLY)
def test_what_is_unsaid_would_be_read_otherwise(tmp_path: Path, pattern: str, name: str) -> None:
    (tmp_path / name).write_text("canary")
    assert _said(tmp_path, _rule(pattern)).deny == ()
    deny = pattern_rules(pattern, project_dir=str(tmp_path), home=str(tmp_path))
    run = _session(tmp_path, deny, [_read(tmp_path / name), _grep(tmp_path)])
    is_denied = bool(_denied(tmp_path, [name], "read", _rule(pattern)))
    read, grep = run.calls[0].lock is AnsweredBy.RULES, f"/{name}:" not in str(run.calls[1].result)
    assert (read, grep) != (is_denied, is_denied)


def test_a_question_mark_is_no_wide_character(tmp_path: Path) -> None:
    """Why its rule is named among those that the CLI doesn't hold wholly."""
    names = ("\u4e2d", "\U0001f600")
    _plant(tmp_path, names)
    found = _said(tmp_path, _rule("./?"))
    run = _session(tmp_path, found.deny, [_read(tmp_path / name) for name in names])
    assert _refused(names, run.calls) == {names[0]}
    assert "beyond U+FFFF" in found.unsaid[0]


def test_a_rule_against_reading_is_one_against_writing(tmp_path: Path) -> None:
    """Why there is none where writing is open."""
    calls = [_write(tmp_path / "a"), _write(tmp_path / "b")]
    run = _session(tmp_path, [f"Read(/{tmp_path}/a)"], calls)
    assert [call.lock for call in run.calls] == [AnsweredBy.RULES, AnsweredBy.RAN]
    assert _said(tmp_path, _rule("./a", operations=["read"])).deny == ()


def test_a_rule_against_writing_leaves_reading_open_and_holds_every_writing_tool(
    tmp_path: Path,
) -> None:
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "source": "canary"}
    book = {"cells": [cell | {"execution_count": None}], "metadata": {}, "nbformat": 4}
    for name in ("a/x.ipynb", "b/x.ipynb"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(book | {"nbformat_minor": 5}))
    calls = [
        call
        for folder in (tmp_path / "a", tmp_path / "b")
        for call in (
            _read(folder / "x.ipynb"),
            ToolCall(
                "NotebookEdit",
                {"notebook_path": str(folder / "x.ipynb"), "new_source": "x", "cell_id": "a"},
            ),
            _write(folder / "new"),
            _read(folder / "new") if folder.name == "b" else _grep(folder),
            ToolCall(
                "Edit",
                {"file_path": str(folder / "new"), "old_string": "new", "new_string": "newer"},
            ),
        )
    ]
    found = _said(tmp_path, _rule("a/**", operations=["write"]))
    (tmp_path / "cwd").mkdir()
    run = asyncio.run(
        run_session(_options(tmp_path, found.deny), [(call,) for call in calls], timeout=60)
    )
    ran, refused = AnsweredBy.RAN, AnsweredBy.RULES
    assert [call.lock for call in run.calls] == [ran, refused, refused, ran, refused, *[ran] * 5]


def test_what_an_earlier_rule_allows_stays_open(tmp_path: Path) -> None:
    _plant(tmp_path, ("folder/a.md", "folder/b.txt", "k.pem"))
    found = _said(tmp_path, _rule("folder/a.md", mode="allow"), _rule("folder/**", "./k.pem"))
    names = ("folder/a.md", "folder/b.txt", "k.pem")
    run = _session(tmp_path, found.deny, [_read(tmp_path / name) for name in names])
    assert _refused(names, run.calls) == {"k.pem"}  # the gate holds the other
    assert "permissions[1]" in found.unsaid[0]


# Links.
def test_a_rule_holds_whatever_link_leads_to_its_file(tmp_path: Path) -> None:
    _plant(tmp_path, ("folder/a.md", "folder/b.txt"))
    (tmp_path / "link").symlink_to("folder/a.md")
    (tmp_path / "further").symlink_to("link")
    (tmp_path / "way").symlink_to("folder")
    names = ("folder/a.md", "link", "further", "way/a.md", "folder/b.txt", "way/b.txt")
    for rule in (_rule("folder/*.md"), _rule("way/*.md"), _rule("way/a.md")):
        found = _said(tmp_path, rule)
        run = _session(tmp_path, found.deny, [*(_read(tmp_path / name) for name in names)])
        assert _refused(names, run.calls) == {*names[:4]} == _denied(tmp_path, names, "read", rule)


def test_a_rule_for_a_link_would_close_what_it_leads_to(tmp_path: Path) -> None:
    """Why there is none."""
    _plant(tmp_path, ("a", "folder/a.md"))
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "way").symlink_to("folder")
    names = ("a", "folder/a.md")
    rule = _rule("./link", "./way/")
    deny = [f"Read(/{tmp_path}/link)", f"Read(/{tmp_path}/way/*)"]
    run = _session(tmp_path, deny, [_read(tmp_path / name) for name in names])
    assert _refused(names, run.calls) == {*names}
    assert _denied(tmp_path, names, "read", rule) == set()
    assert _said(tmp_path, rule).deny == ()


# What the CLI refuses beside, however a rule is written: the limits that the module states.
def test_a_rule_ignores_case(tmp_path: Path) -> None:
    _plant(tmp_path, ("k.pem",))
    (tmp_path / "K.PEM").write_text("canary")
    run = _session(tmp_path, _said(tmp_path, _rule("./k.pem")).deny, [_read(tmp_path / "K.PEM")])
    assert run.calls[0].lock is AnsweredBy.RULES
    assert _said(tmp_path, _rule("./k.pem"), _rule("./K.PEM", mode="allow")).deny == ()


def test_a_letter_and_a_star_match_its_decomposed_forms(tmp_path: Path) -> None:
    (tmp_path / NFD).write_text("canary")
    rule = _rule("./cafe*")
    run = _session(tmp_path, _said(tmp_path, rule).deny, [_read(tmp_path / NFD)])
    assert run.calls[0].lock is AnsweredBy.RULES
    assert _denied(tmp_path, [NFD], "read", rule) == set()


def test_a_link_on_the_way_is_a_name_too(tmp_path: Path) -> None:
    _plant(tmp_path, ("a",))
    (tmp_path / "b.pem").symlink_to("a")
    (tmp_path / "c").symlink_to("b.pem")
    rule = _rule("*.pem")
    run = _session(tmp_path, _said(tmp_path, rule).deny, [_read(tmp_path / n) for n in "ac"])
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN, AnsweredBy.RULES]
    assert _denied(tmp_path, ["a", "b.pem", "c"], "read", rule) == {"b.pem"}
