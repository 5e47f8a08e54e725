"""What the real CLI makes of the rules that we write: only lock 2 is on here, no hook.

Every odd name is denied once as a file and once as a folder. Its canary must be in no request, and
its neighbour, whose name differs in one character, must stay readable wherever the language can
tell the two apart. The same calls without rules are the control.
"""

from __future__ import annotations

import asyncio
import json
import string
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions
from pathspec import GitIgnoreSpec

from agent_kit.sdk.rules import RuleSet, deny_rules, edit_rules, pattern_rules, write_rules
from agent_kit.testing import AnsweredBy, CallRecord, SessionRun, ToolCall, run_session

pytestmark = pytest.mark.e2e

ANY = "the language has only ? for this character"
TAB = "ripgrep drops white space at the end, and knows only ? for it"
TRIMMED = "the CLI trims paths: no file tool opens a file of this name"


@dataclass(frozen=True, slots=True)
class Name:
    """A name to deny, its neighbour, and why the language can't tell them apart, if it can't."""

    name: str
    near: str
    merged: str = ""

    @property
    def opens(self) -> bool:
        """Whether Read can open a file of this name at all."""
        return self.name.strip(SPACE) == self.name


SPACE = " \t\n\u3000\u2028"
NFC = "caf\u00e9"
NFD = unicodedata.normalize("NFD", NFC)
LONG = 255  # bytes in a name
MARKS = [mark for mark in string.punctuation if mark != "/"]


def _merged(mark: str) -> str:
    return ANY if mark in "?\\" else ""


NAMES = (
    *(Name(f"a{mark}b", "aZb", _merged(mark)) for mark in MARKS),
    *(Name(f"{mark}b", "Zb", _merged(mark)) for mark in "!#$*+-.=?@[\\]^{|}~"),
    *(Name(f"a{mark}", "aZ", _merged(mark)) for mark in MARKS),
    # more than one
    Name("[ab]", "a"),
    Name("[!ab]", "c"),
    Name("[a-z]{1,2}", "b1"),
    Name("a[b]c", "abc"),
    Name("{a,b}", "a"),
    Name("**", "ab"),
    Name("a**", "abc"),
    Name("*.*", "a.b"),
    Name("??", "ab", ANY),
    Name("??", "abc"),
    Name("a\\*", "a\\b"),
    Name("a\\[b]", "a\\b"),
    Name("\\\\", "ab", ANY),
    Name("\\!a", "\\a"),
    Name("a (1)", "a (2)"),
    Name("a()", "a"),
    Name("((a)", "(a)"),
    Name("a, Bash", "a, Edit"),
    Name("a) Bash(b", "a) Bash(c"),
    Name("Read(a)", "Read(b)"),
    Name("x:*", "x:y"),
    Name("@(a|b)", "a"),
    Name("!(a)", "b"),
    Name("..config", "config"),
    Name("...", "...b1"),
    Name("$HOME", "HOME"),
    Name("%41", "A"),
    Name("-rf *", "-rf a"),
    # white space and control characters
    Name("a b", "ab"),
    Name("a\nb", "a"),
    Name("a\tb", "a b"),
    Name("a\rb", "ab"),
    Name("\x01\x7f", "\x01"),
    Name("\x1b[31m", "\x1b31m"),
    Name("a\x85", "a"),
    Name(" a", "Za"),
    Name("a ", "aZ"),
    Name("a  ", "a Z"),
    Name("a\t", "aZ", TAB),
    Name("a\n", "aZ", TAB),
    Name("a\u3000", "aZZ"),
    Name("a\u2028", "aZZ"),
    # scripts
    Name(NFC, NFC + "s"),
    Name(NFD, NFD + "s"),
    Name("\u4e2d\u6587", "\u4e2d"),
    Name("\U0001f600", "\U0001f601"),
    Name("\u05d0\u05d1", "\u05d0"),
    Name("\u202eabc", "abc"),
    Name("\u0130", "I"),
    Name("stra\u00dfe", "strasse"),
    # long
    Name("x" * LONG, "x" * (LONG - 1)),
    Name("\u4e2d" * (LONG // 3), "\u4e2d" * (LONG // 3 - 1)),
)
IDS = [f"{number}-{ascii(name.name[:12])}" for number, name in enumerate(NAMES)]


KINDS = ("file", "folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One session's answers: Read by kind, number and side, and the hits of all searches."""

    run: SessionRun
    reads: dict[tuple[str, int, str], CallRecord]
    grep: str
    glob: str


def _canary(kind: str, number: int, side: str) -> str:
    return f"canary({kind}-{number}-{side})"


def _thing(tree: Path, kind: str, number: int, side: str) -> Path:
    """The thing that is denied, or its neighbour: alone with it in a folder, fifty to a shelf."""
    name = NAMES[number].name if side == "denied" else NAMES[number].near
    return tree / kind / f"shelf{number // 50}" / str(number) / name


def _grow(tree: Path, sides: Sequence[str]) -> dict[tuple[str, int, str], Path]:
    """Every file of the table, or those of one side."""
    grown = {}
    for kind in KINDS:
        for number in range(len(NAMES)):
            for side in sides:
                path = _thing(tree, kind, number, side)
                path = path if kind == "file" else path / "file"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_canary(kind, number, side))
                grown[kind, number, side] = path
    return grown


def _settings(root: Path, rules: RuleSet) -> str:
    """A file: so many rules are too long for an argument."""
    path = root / "settings.json"
    permissions = {"deny": list(rules.deny), "allow": list(rules.allow)}
    path.write_text(json.dumps({"permissions": permissions}))
    return str(path)


def _session(
    root: Path,
    rules: RuleSet,
    calls: Sequence[ToolCall],
    *,
    allowed: Sequence[str] = ("Read", "Grep", "Glob", "Write", "Edit"),
) -> SessionRun:
    options = ClaudeAgentOptions(
        cwd=root / "project",
        settings=_settings(root, rules),
        setting_sources=[],
        tools=["Read", "Grep", "Glob", "Write", "Edit"],
        allowed_tools=list(allowed),
    )
    (root / "project").mkdir(exist_ok=True)
    return asyncio.run(run_session(options, [tuple(calls)], timeout=120))


def _read(path: Path | str) -> ToolCall:
    return ToolCall("Read", {"file_path": str(path)})


def _grep(path: Path) -> ToolCall:
    return ToolCall(
        "Grep", {"pattern": "canary", "path": str(path), "output_mode": "content", "head_limit": 0}
    )


def _glob(path: Path) -> ToolCall:
    return ToolCall("Glob", {"pattern": "**/*", "path": str(path)})


def _write(path: Path) -> ToolCall:
    return ToolCall("Write", {"file_path": str(path), "content": "new"})


def _try(root: Path, rules: RuleSet, sides: Sequence[str]) -> Tried:
    grown = _grow(root / "tree", sides)
    shelves = [shelf for kind in KINDS for shelf in sorted((root / "tree" / kind).iterdir())]
    searches = [ask(shelf) for ask in (_grep, _glob) for shelf in shelves]
    run = _session(root, rules, [*map(_read, grown.values()), *searches])
    results = [call.result or "" for call in run.calls[len(grown) :]]
    return Tried(
        run=run,
        reads=dict(zip(grown, run.calls, strict=False)),
        grep="\n".join(results[: len(shelves)]) + "\n",
        glob="\n".join(results[len(shelves) :]) + "\n",
    )


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    root = tmp_path_factory.mktemp("ruled")
    denied = [
        str(_thing(root / "tree", kind, number, "denied"))
        for kind in KINDS
        for number in range(len(NAMES))
    ]
    return _try(root, write_rules(denied_literals=denied), ("denied", "near"))


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Tried:
    return _try(tmp_path_factory.mktemp("control"), RuleSet(), ("denied",))


def _listed(kind: str, number: int, name: str) -> str:
    """A name as Glob gives it."""
    return f"/{number}/{name}/file\n" if kind == "folder" else f"/{number}/{name}\n"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(len(NAMES)), ids=IDS)
def test_a_denied_name_reaches_no_request(ruled: Tried, kind: str, number: int) -> None:
    assert not ruled.run.saw(_canary(kind, number, "denied"))
    if NAMES[number].opens or kind == "folder":
        assert ruled.reads[kind, number, "denied"].lock is AnsweredBy.RULES
    assert _listed(kind, number, NAMES[number].name) not in ruled.glob


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(len(NAMES)), ids=IDS)
def test_a_neighbour_stays_open_where_the_language_can_tell(
    ruled: Tried, kind: str, number: int
) -> None:
    is_open = not NAMES[number].merged
    expected = AnsweredBy.RAN if is_open else AnsweredBy.RULES
    assert ruled.reads[kind, number, "near"].lock is expected
    assert (_canary(kind, number, "near") in ruled.grep) is is_open
    assert (_listed(kind, number, NAMES[number].near) in ruled.glob) is is_open


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(len(NAMES)), ids=IDS)
def test_without_rules_every_name_is_open(control: Tried, kind: str, number: int) -> None:
    canary = _canary(kind, number, "denied")
    if NAMES[number].opens or kind == "folder":
        assert canary in (control.reads[kind, number, "denied"].result or "")
    assert canary in control.grep
    assert _listed(kind, number, NAMES[number].name) in control.glob


def test_the_cli_takes_every_rule_without_a_word(ruled: Tried) -> None:
    assert ruled.run.stderr == ()


# What the CLI may be asked for when the file has another name.
def test_a_screenshot_is_closed_under_its_other_name(tmp_path: Path) -> None:
    shots = [tmp_path / "Shot at 9.41\u202fAM.png", tmp_path / "Shot at 9.42 PM.png"]
    others = [tmp_path / "Shot at 9.41 AM.png", tmp_path / "Shot at 9.42\u202fPM.png"]
    for shot in shots:
        shot.write_bytes(b"\x89PNG\r\n\x1a\n")
    rules = write_rules(denied_literals=[str(shot) for shot in shots])

    run = _session(tmp_path, rules, [_read(path) for path in (*shots, *others)])

    assert [call.lock for call in run.calls] == [AnsweredBy.RULES] * 4


def test_both_unicode_forms_are_closed_by_either(tmp_path: Path) -> None:
    for name in (NFC, NFD):
        (tmp_path / name).write_text(f"canary({len(name)})")

    for configured in (NFC, NFD):
        rules = write_rules(denied_literals=[str(tmp_path / configured)])
        calls = [_read(tmp_path / NFC), _read(tmp_path / NFD), _grep(tmp_path)]
        run = _session(tmp_path, rules, calls)
        assert [call.lock for call in run.calls[:2]] == [AnsweredBy.RULES] * 2
        assert not run.saw("canary(")


def test_a_name_that_is_no_utf8_is_closed(tmp_path: Path) -> None:
    odd = tmp_path / "tree" / "a\udcffb"
    odd.mkdir(parents=True)
    (odd / "file").write_text("canary(1)")
    (tmp_path / "tree" / "a\udce4\udcb8c").write_text("canary(2)")
    (tmp_path / "tree" / "abc").write_text("canary(3)")
    denied = [str(path) for path in (tmp_path / "tree").iterdir() if path.name != "abc"]

    for rules, seen in ((write_rules(denied_literals=denied), {3}), (RuleSet(), {1, 2, 3})):
        calls = [_grep(tmp_path / "tree"), _glob(tmp_path / "tree")]
        run = _session(tmp_path, rules, calls)
        assert {number for number in (1, 2, 3) if run.saw(f"canary({number})")} == seen


def test_case_does_not_matter_to_a_rule(tmp_path: Path) -> None:
    (tmp_path / "Secret.TXT").write_text("canary(1)")
    rules = write_rules(denied_literals=[str(tmp_path / "sEcret.txt")])
    run = _session(tmp_path, rules, [_read(tmp_path / "Secret.TXT"), _grep(tmp_path)])
    assert run.calls[0].lock is AnsweredBy.RULES
    assert not run.saw("canary(")


def test_a_link_is_closed_by_the_rules_for_both_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("canary(1)")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "further").symlink_to(tmp_path / "link")
    names = [str(tmp_path / name) for name in ("link", "real")]
    calls = [_read(tmp_path / name) for name in ("real", "link", "further")]
    run = _session(tmp_path, write_rules(denied_literals=names), [*calls, _grep(tmp_path)])
    assert [call.lock for call in run.calls[:3]] == [AnsweredBy.RULES] * 3
    assert not run.saw("canary(")


def test_a_denied_root_closes_everything(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("canary(1)")
    calls = [_read(tmp_path / "file"), _grep(tmp_path), _glob(tmp_path), _write(tmp_path / "new")]
    run = _session(tmp_path, write_rules(denied_literals=["/"]), calls)
    assert [call.lock for call in run.calls] == [AnsweredBy.RULES] * 4
    assert not (tmp_path / "new").exists()


def test_an_edit_rule_closes_a_folder_to_writing_only(tmp_path: Path) -> None:
    folder = tmp_path / "sources [1]"
    folder.mkdir()
    (folder / "file").write_text("canary(1)")
    edit = ToolCall(
        "Edit",
        {"file_path": str(folder / "file"), "old_string": "canary", "new_string": "x"},
    )
    calls = [_read(folder / "file"), _write(folder / "new"), _write(tmp_path / "sources 1"), edit]
    run = _session(tmp_path, RuleSet(deny=edit_rules(str(folder))), calls)
    assert [call.lock for call in run.calls] == [
        AnsweredBy.RAN,
        AnsweredBy.RULES,
        AnsweredBy.RAN,
        AnsweredBy.RULES,
    ]


# Each in a folder of its own, for a folder whose name is no pattern either. Against git's language.
PATTERNS = (
    "*.pem",
    ".env",
    ".env*",
    "*",
    "a?c",
    "[ab].txt",
    "[a-c]1",
    "[0-9][0-9]",
    "*.[ch]",
    "a**c",
    r"\*b*",
    r"*\*",
    r"\[ab\]*",
    r"\!x*",
    r"\#x*",
    "x/*.key",
    "x/**/k*",
    "**/x/k*",
    "x/**",
    "x*/",
    "*(1)*",
    "{a,b}*",
    "*.{pem,key}",
    "n{o*",
    "*\u00e9*",
    "[\u00e9]*",
    "*~",
    "$*",
    "*^x",
    "* *",
    "*a",
    "*.*.*",
)
# The language has something narrower only: then what is denied beside what git matches.
WIDER = {
    "[!a]1": {"a1"},
    "[^a]1": {"a1"},
    r"*\?": {"@"},
    r"*\\": {"[", "]", "z]", "^", "[ab]"},
    "???": {"e\u0301"},  # three bytes
    "[]x]*": None,  # a class with a bracket in it is any one character
}
FILES = (
    *(".env", ".env.local", "k.pem", "K.PEM", "a.key", "x/a.key", "x/k1", "x/y/k1", "x/y/z/k1"),
    *("abc", "axxc", "ac", "a.txt", "b.txt", "c.txt", "a1", "B1", "d1", "12", "1", "m.c", "m.cc"),
    *("*b", "bb", "a*", "ab", "[ab]", "[ab]x", "!x", "#x", "xx/file", "xy", "f(1)", "f(2)"),
    *(
        "n{o",
        "no",
        "{a",
        "e\u0301",
        "\u00e9",
        "t~",
        "$x",
        "y^x",
        "s t",
        "v.w.x",
        "?",
        "q?",
        "@",
        "^",
    ),
    *("\\", "[", "]", "z]", "x/p.pem", "y/x/k2"),
)


@pytest.fixture(scope="module")
def patterned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """For each pattern the files that the CLI keeps from Grep and from Glob."""
    root = tmp_path_factory.mktemp("patterns")
    tree = root / "t [1]"
    denied, calls = [], []
    for number, pattern in enumerate((*PATTERNS, *WIDER)):
        base = tree / str(number)
        for name in FILES:
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text(f"canary({FILES.index(name)})")
        denied += _below(base, pattern)
        calls += [_grep(base), _glob(base)]
    run = _session(root, RuleSet(deny=tuple(denied)), calls)
    assert run.stderr == ()
    hidden = {}
    for number, pattern in enumerate((*PATTERNS, *WIDER)):
        grep, glob = (str(run.calls[2 * number + at].result) for at in (0, 1))
        found = {name for name in FILES if f"canary({FILES.index(name)})" in grep}
        assert found == {name for name in FILES if f"/{number}/{name}\n" in glob + "\n"}
        hidden[pattern] = {*FILES} - found
    return hidden


def _below(base: Path, pattern: str) -> tuple[str, ...]:
    """The rules of ``pattern`` as if ``base`` were the root of git's work tree."""
    if "/" in pattern.rstrip("/") and not pattern.startswith("**"):
        return pattern_rules(pattern, project_dir=str(base))
    escaped = str(base).replace("[", r"\[").replace("]", r"\]")
    return pattern_rules(f"{escaped}/**/{pattern.removeprefix('**/')}")


def _git(pattern: str) -> set[str]:
    """What git would match, as far as case does not matter."""
    import bracex

    lines = bracex.expand(pattern.lower(), keep_escapes=True)
    both = lines + [unicodedata.normalize("NFD", line) for line in lines]
    spec = GitIgnoreSpec.from_lines(both)
    return {name for name in FILES if spec.match_file(name.lower())}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_rules_of_a_pattern_match_as_git_does(
    patterned: dict[str, set[str]], pattern: str
) -> None:
    assert patterned[pattern] == _git(pattern)


@pytest.mark.parametrize("pattern", WIDER)
def test_where_the_language_is_poorer_the_rules_match_more_never_less(
    patterned: dict[str, set[str]], pattern: str
) -> None:
    beside = patterned[pattern] - _git(pattern)
    assert _git(pattern) <= patterned[pattern]
    assert WIDER[pattern] is None or beside == WIDER[pattern]


def test_a_pattern_without_a_slash_applies_outside_the_project_too(tmp_path: Path) -> None:
    for name in ("project/.env", "project/a/.env", "out/.env", "out/.env.d/x", "out/b/.env/k"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"canary({name})")
    rules = write_rules(denied_patterns=["**/.env"], project_dir=str(tmp_path / "project"))

    run = _session(tmp_path, rules, [_grep(tmp_path), _read(tmp_path / "out/b/.env/k")])

    assert run.calls[1].lock is AnsweredBy.RULES
    assert run.saw("canary(out/.env.d/x)")
    assert not any(run.saw(f"canary({name}") for name in ("project", "out/.env)", "out/b"))


# The CLI asks about any path with a component that ends so, whatever a rule allows.
SUSPICIOUS = (".", *SPACE)


def test_an_allow_rule_grants_its_folder_and_nothing_else(tmp_path: Path) -> None:
    """No tool is allowed as a whole here."""
    odd = list(dict.fromkeys(name.name for name in NAMES))
    for number, name in enumerate(odd):
        for text in (name, f"Z{number}"):
            folder = tmp_path / str(number) / text
            folder.mkdir(parents=True)
            (folder / "file").write_text(f"canary({number}-{text == name})")
    folders = [tmp_path / str(number) / name for number, name in enumerate(odd)]
    rules = write_rules(readable_dirs=map(str, folders))

    calls = [_read(folder / "file") for folder in folders]
    calls += [_read(folder.parent / f"Z{number}" / "file") for number, folder in enumerate(folders)]
    run = _session(tmp_path, rules, calls, allowed=())

    granted, others = run.calls[: len(odd)], run.calls[len(odd) :]
    for folder, call in zip(folders, granted, strict=True):
        asked = str(folder) in rules.inexact or folder.name.endswith(SUSPICIOUS)
        assert call.lock is (AnsweredBy.RULES if asked else AnsweredBy.RAN), folder.name
    assert {call.lock for call in others} == {AnsweredBy.RULES}
    assert 10 < len(rules.inexact) < 30  # those with a ? or a backslash


def test_a_writable_folder_is_writable_but_for_its_control_files(tmp_path: Path) -> None:
    drafts = tmp_path / "drafts"
    (drafts / "a").mkdir(parents=True)
    rules = write_rules(
        writable_dirs=[str(drafts)],
        control_dirs=[str(drafts)],
        control_names=("claude.md", ".git", ".mcp.json"),
    )
    open_names = ("new.md", "a/b/new.md", "CLAUDE.md.txt", "a/git")
    closed_names = ("CLAUDE.md", "a/claude.MD", ".git", "a/b/.git/hooks/x", "a/.mcp.json")
    outside = (tmp_path / "project/new.md", tmp_path / "new.md")
    paths = [*(drafts / name for name in (*open_names, *closed_names)), *outside]

    run = _session(tmp_path, rules, [_write(path) for path in paths], allowed=())

    assert [path for path in paths if path.exists()] == [drafts / name for name in open_names]
    assert [call.lock for call in run.calls[len(open_names) :]] == [AnsweredBy.RULES] * 7


def test_a_denied_file_is_closed_though_its_folder_is_allowed(tmp_path: Path) -> None:
    for name in ("open", "closed"):
        (tmp_path / name).write_text(f"canary({name})")
    rules = write_rules(readable_dirs=[str(tmp_path)], denied_literals=[str(tmp_path / "closed")])
    run = _session(tmp_path, rules, [_read(tmp_path / "closed"), _grep(tmp_path)], allowed=())
    assert run.calls[0].lock is AnsweredBy.RULES
    assert run.saw("canary(open)")
    assert not run.saw("canary(closed)")


def test_a_single_slash_would_match_nothing(tmp_path: Path) -> None:
    """Why no rule may begin with one."""
    (tmp_path / "file").write_text("canary(1)")
    [rule] = [rule for rule in deny_rules(str(tmp_path / "file")) if rule.startswith("Read")][:1]
    run = _session(tmp_path, RuleSet(deny=(rule.replace("//", "/"),)), [_read(tmp_path / "file")])
    assert run.saw("canary(1)")
