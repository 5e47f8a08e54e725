"""The same rules and questions through other rule engines, each with the rules in its natural form.

``agent_kit`` looks at the disk for every question, to resolve links; the others look at the text alone.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from agent_kit.policy import FilePermission, check_permissions, compile_rules
from agent_kit.scope.patterns import alternatives, is_pattern
from benchmarks.measure import (
    Effort,
    Row,
    Samples,
    _block,
    _loops,
    alternate,
    figure,
    quiet,
    seconds,
    take_turns,
)

__all__ = [
    "ENGINES",
    "UNEXPLAINED",
    "Ask",
    "Engine",
    "Question",
    "ask_all",
    "measure",
    "questions",
    "rules",
]

SIZES: Final = (100, 1000)
UNEXPLAINED: Final = "unexplained"
_LONG: Final = 10.0  # seconds for the blocks of one figure

Ask = Callable[[str], str]
"""A path to read, to "allow", "deny" or "interrupt"."""


class Engine(NamedTuple):
    """``differs`` says why it may answer otherwise, by the kind of a question."""

    name: str
    licence: str
    make: Callable[[Sequence[FilePermission], str], Ask]
    remark: str = ""
    differs: Mapping[str, str] = {}


class Question(NamedTuple):
    kind: str
    path: str
    expected: str


# --- the rules, and what is asked ---

_MODES = ("allow", "deny", "interrupt", "deny")
_FOLDER, _ENDING, _NAME, _GLOB, _BRACES = _KINDS = (
    "{project}/data/d{n}/**",
    "/**/*.ext{n}",
    "/**/name{n}",
    "{project}/src/m{n}/*.x{n}",
    "{project}/conf{n}/{{a,b}}/*.key",
)
_EXCEPTED = 5  # the folder rule that the first rule makes an exception to


def rules(size: int, project: str) -> list[FilePermission]:
    """``size`` rules of five kinds, by turns; the first excepts a folder from a later one."""
    listed = [_rule(_KINDS[n % 5].format(project=project, n=n), _MODES[n % 4]) for n in range(size)]
    return [_rule(f"{project}/data/d{_EXCEPTED}/open/**", "allow"), *listed[1:]]


def _rule(pattern: str, mode: str) -> FilePermission:
    return FilePermission(operations=["read"], paths=[pattern], mode=mode)


def questions(size: int, project: str) -> list[Question]:
    """200 paths, with what gitignore's reading of the rules says; links and folders are made."""
    found = [
        Question(kind, text.format(p=project, n=n, j=j, m=n + 1), _MODES[n % 4] if hit else "allow")
        for kind, hit, rule, count, text in _ASKED
        for j, n in enumerate(_numbers(rule, count, size, every=kind == "plain"))
    ]
    found += [
        # Two rules match, and the later one is the folder's.
        Question("order", f"{project}/data/d{n}/file.ext{n - 9}", _MODES[(n - 9) % 4])
        for n in _numbers(_FOLDER, 5, size)
    ]
    for n in _numbers(_FOLDER, 10, size):
        os.makedirs(f"{project}/data/d{n}", exist_ok=True)
        if not os.path.lexists(link := f"{project}/link{n}"):
            os.symlink(f"{project}/data/d{n}", link)
    os.makedirs(f"{project}/docs", exist_ok=True)
    return found


_ASKED = (
    ("plain", True, _FOLDER, 10, "{p}/data/d{n}/file{j}.md"),
    ("plain", True, _ENDING, 10, "{p}/docs/page{j}.ext{n}"),
    ("plain", True, _NAME, 10, "{p}/docs/name{n}"),
    ("plain", True, _GLOB, 10, "{p}/src/m{n}/a.x{n}"),
    ("plain", True, _BRACES, 10, "{p}/conf{n}/b/a.key"),
    ("plain", False, _FOLDER, 20, "{p}/docs/page{j}.md"),
    ("plain", False, _FOLDER, 10, "{p}/data/d{n}x/file.md"),
    ("plain", False, _ENDING, 10, "{p}/docs/page.ext{n}x"),
    ("plain", False, _BRACES, 10, "{p}/conf{n}/c/a.key"),
    ("exception", False, _FOLDER, 10, "{p}/data/d5/open/file{j}.md"),
    ("order", True, _FOLDER, 5, "{p}/data/d{n}/file.ext{m}"),
    ("dot", True, _FOLDER, 10, "{p}/data/d{n}/.env"),
    ("dot", True, _NAME, 5, "{p}/docs/.hidden/name{n}"),
    ("dot", True, _ENDING, 5, "{p}/docs/.page.ext{n}"),
    ("case", False, _FOLDER, 10, "{p}/DATA/d{n}/file.md"),
    ("link", True, _FOLDER, 10, "{p}/link{n}/file.md"),
    ("spelling", True, _FOLDER, 5, "{p}/docs/../data/d{n}/file.md"),
    ("spelling", True, _FOLDER, 5, "{p}//data/./d{n}/file.md"),
    ("folder", True, _FOLDER, 10, "{p}/data/d{n}"),
    ("inside", True, _NAME, 5, "{p}/docs/name{n}/inside.md"),
    ("inside", True, _GLOB, 5, "{p}/src/m{n}/a.x{n}/inside.md"),
    ("deeper", False, _GLOB, 10, "{p}/src/m{n}/below/a.x{n}"),
)


def _numbers(kind: str, count: int, size: int, *, every: bool = False) -> list[int]:
    """Numbers of ``count`` rules of a kind, spread over the list; without ``every`` none that allows."""
    fit = [
        n for n in range(10, size) if _KINDS[n % 5] == kind and (every or _MODES[n % 4] != "allow")
    ]
    return [fit[at * len(fit) // count] for at in range(count)]


# What a rule may have to say: the rules (pattern and mode), a path, and the answer.
_PROBES: Final = {
    "interrupt": ([("/p/a/**", "interrupt")], "/p/a/x", "interrupt"),
    "an exception": ([("/p/a/b/**", "allow"), ("/p/a/**", "deny")], "/p/a/b/x", "allow"),
    "not one of these characters": ([("/p/[!a]x", "deny")], "/p/bx", "deny"),
    "alternatives": ([("/p/{a,b}/**", "deny")], "/p/b/x", "deny"),
    "** at any depth": ([("/p/**/x.key", "deny")], "/p/a/b/x.key", "deny"),
    "* in one folder only": ([("/p/a/*.key", "deny")], "/p/a/b/x.key", "allow"),
    "case": ([("/p/a/**", "deny")], "/p/A/x", "allow"),
    "names with a leading dot": ([("/p/**", "deny")], "/p/.env", "deny"),
    "what is in a folder": ([("/p/a", "deny")], "/p/a/x", "deny"),
    "..": ([("/p/a/**", "deny")], "/p/b/../a/x", "deny"),
    "links": ([("{project}/data/d10/**", "deny")], "{project}/link-10/x", "deny"),
}


# --- the engines ---


def _agent_kit(listed: Sequence[FilePermission], project: str) -> Ask:
    compiled = compile_rules(listed, project_dir=project)
    return lambda path: check_permissions(compiled, "read", path)


def _deepagents(listed: Sequence[FilePermission], _project: str) -> Ask:
    filesystem = importlib.import_module("deepagents.middleware.filesystem")
    check = filesystem._check_fs_permission
    own = [
        filesystem.FilesystemPermission(
            operations=[str(word) for word in rule.operations],
            paths=list(rule.paths),
            mode=str(rule.mode),
        )
        for rule in listed
    ]
    return lambda path: str(check(own, "read", path))


_CASBIN = """
[request_definition]
r = op, path
[policy_definition]
p = kind, op, path, eft, mode
[policy_effect]
e = priority(p.eft) || deny
[matchers]
m = r.op == p.op && ( \
    p.kind == "folder" && keyMatch(r.path, p.path) || \
    p.kind == "glob" && globMatch(r.path, p.path) || \
    p.kind == "regex" && regexMatch(r.path, p.path))
"""


def _casbin(listed: Sequence[FilePermission], _project: str) -> Ask:
    casbin = importlib.import_module("casbin")
    model = casbin.Model()
    model.load_model_from_text(_CASBIN)
    enforcer = casbin.Enforcer(model)
    policies = [
        [kind, str(operation), path, "allow" if rule.mode == "allow" else "deny", str(rule.mode)]
        for rule in listed
        for operation in rule.operations
        for pattern in rule.paths
        for text in alternatives(pattern)
        for kind, path in (_as_casbin(text),)
    ]
    policies.append(["folder", "read", "/*", "allow", "allow"])  # without a match it would deny
    assert enforcer.add_policies(policies)
    return lambda path: str(enforcer.enforce_ex("read", path)[1][4])


def _as_casbin(pattern: str) -> tuple[str, str]:
    head = pattern.removesuffix("/**")
    if not is_pattern(head):
        return "folder", head if head == pattern else f"{head}/*"
    return ("regex", _regex(pattern)) if "**" in pattern else ("glob", pattern)


def _regex(pattern: str) -> str:
    meant = {"/**/": "/(?:.*/)?", "/**": "/.*", "*": "[^/]*"}
    pieces = re.split(r"(/\*\*(?:/|$)|\*)", pattern)
    return "".join(["^", *(meant.get(piece) or re.escape(piece) for piece in pieces), "$"])


def _cedarpy(listed: Sequence[FilePermission], _project: str) -> Ask:
    cedar = importlib.import_module("cedarpy")
    # A rule that allows says nothing: all is permitted, and what forbids has the last word.
    texts = [_as_cedar(rule) for rule in listed if rule.mode != "allow"]
    everything = "permit (principal, action, resource);"
    policies = cedar.PolicySet.from_str("\n".join([everything, *texts]))

    def ask(path: str) -> str:
        request = {
            "principal": 'Agent::"main"',
            "action": 'Action::"read"',
            "resource": {"type": "File", "id": path},
            "context": {"path": path},
        }
        found = cedar.is_authorized(request, policies, [_entity(path)])
        if found.allowed:
            return "allow"
        modes = found.diagnostics.id_annotations_by_reason.values()
        return "deny" if "deny" in modes else "interrupt"

    return ask


def _as_cedar(rule: FilePermission) -> str:
    """``like`` knows one wildcard, which crosses folders; a rule with a class is left out."""
    said = []
    for text in (text for pattern in rule.paths for text in alternatives(pattern)):
        head = text.removesuffix("/**")
        if not is_pattern(head):
            said.append(f"resource in Folder::{json.dumps(head)}")
        elif "[" not in text and "?" not in text:
            like = text.replace("/**/", "*/").replace("**", "*")
            said.append(f"context.path like {json.dumps(like)}")
    if not said:
        return ""
    scope = '(principal, action == Action::"read", resource)'
    return f'@id("{rule.mode}") forbid {scope} when {{ {" || ".join(said)} }};'


def _entity(path: str) -> dict[str, Any]:
    """The file with the folders above it, which the host tells Cedar with each question."""
    above, parents = path, []
    while above != "/":
        above = above.rpartition("/")[0] or "/"
        parents.append({"type": "Folder", "id": above})
    return {"uid": {"type": "File", "id": path}, "attrs": {}, "parents": parents}


_TEXT_ALONE = "it judges the text that it is given"
_INSIDE = "a pattern that matches a folder says nothing of what is in it"
_ITSELF = "folder/** isn't the folder itself"
_KIT = Engine("agent_kit", "Apache-2.0", _agent_kit)
ENGINES: Final = (
    Engine(
        "deepagents",
        "MIT",
        _deepagents,
        "its middleware refuses .., and asks again with the resolved path",
        {
            "dot": "* and ** match no name with a leading dot",
            "link": f"{_TEXT_ALONE}; its middleware asks again with the resolved path",
            "spelling": f"{_TEXT_ALONE}; its middleware cleans it before, and refuses ..",
            "folder": _ITSELF,
            "inside": _INSIDE,
        },
    ),
    Engine(
        "casbin",
        "Apache-2.0",
        _casbin,
        "interrupt is a field of the rule that refused, which the host reads; "
        "alternatives are several rules, ** is a regular expression",
        {
            "link": _TEXT_ALONE,
            "spelling": _TEXT_ALONE,
            "folder": _ITSELF,
            "inside": _INSIDE,
        },
    ),
    Engine(
        "cedarpy",
        "Apache-2.0",
        _cedarpy,
        "interrupt is an annotation of the policies that forbade, which the host reads",
        {
            "exception": "what forbids has the last word, in whatever order",
            "order": "there is no order: the strictest wins",
            "deeper": "* crosses folders",
            "link": _TEXT_ALONE,
            "spelling": _TEXT_ALONE,
            "folder": "a File in a Folder isn't the Folder itself",
            "inside": _INSIDE,
        },
    ),
)


# --- the figures ---


def measure(effort: Effort) -> Iterator[Row]:
    """Microseconds of a question, over those of ``agent_kit``, and where the answers differ."""
    with _project() as project:
        for size in SIZES:
            yield from _kit(size, project, effort)
        yield _said(_KIT, project)
        for engine in ENGINES:
            try:
                engine.make([], project)
            except (ImportError, AttributeError) as error:  # AttributeError: another version
                yield _missing(engine, error)
                continue
            for size in SIZES:
                yield from _compared(engine, size, project, effort)
            yield _said(engine, project)


@contextmanager
def _project() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as root:
        project = os.path.realpath(root) + "/course"
        os.makedirs(f"{project}/data/d10")
        os.symlink(f"{project}/data/d10", f"{project}/link-10")
        yield project


def _kit(size: int, project: str, effort: Effort) -> Iterator[Row]:
    ask, path = _agent_kit(rules(size, project), project), _untouched(project)
    samples = alternate(lambda: os.path.realpath(path), lambda: ask(path), effort)
    yield samples.ratio(
        f"engines.agent_kit.{size}", f"agent_kit, {size:,} rules, none matches : realpath"
    )
    yield _building(_KIT, size, project, effort)


def _untouched(project: str) -> str:
    return f"{project}/docs/page.md"


def _building(engine: Engine, size: int, project: str, effort: Effort) -> Row:
    listed = rules(size, project)
    taken = [seconds(lambda: engine.make(listed, project))[0] * 1e3 for _ in range(effort.builds)]
    what = f"{engine.name}, getting {size:,} rules ready"
    return figure(f"engines.{engine.name}.{size}.build", what, "ms", taken, statistic="minimum")


def _compared(engine: Engine, size: int, project: str, effort: Effort) -> Iterator[Row]:
    listed, asked = rules(size, project), questions(size, project)
    kit, other = _agent_kit(listed, project), engine.make(listed, project)
    key, what = f"engines.{engine.name}.{size}", f"{engine.name}, {size:,} rules"
    last = alternatives(_KINDS[(size - 1) % 5].format(project=project, n=size - 1))[-1]
    for end, told, path, expected in (
        ("none", "none matches", _untouched(project), "allow"),
        ("last", "the last matches", last.replace("*", "a"), _MODES[(size - 1) % 4]),
    ):
        assert kit(path) == other(path) == expected, f"{key}.{end}: it isn't what it says"
        samples = _turns(kit, other, path, effort)
        yield samples.ratio(f"{key}.{end}", f"{what}, {told} : agent_kit")
    samples, differ = ask_all(kit, other, asked, effort)
    yield samples.ratio(f"{key}.all", f"{what}, each of {len(asked)} paths : agent_kit")
    yield _building(engine, size, project, effort)
    share = 100 - 100 * differ.total() / len(asked)
    yield figure(f"{key}.agrees", f"{what}, answers as agent_kit gives them", "%", [share])
    for kind, count in sorted(differ.items()):
        told, why = f"{what}, other answers: {kind}", engine.differs.get(kind, UNEXPLAINED)
        yield figure(f"{key}.differs.{kind}", told, "", [float(count)], note=why)


def _turns(kit: Ask, other: Ask, path: str, effort: Effort) -> Samples:
    """Fewer blocks where an engine is slow."""
    taken, _ = seconds(lambda: other(path))
    blocks = max(5, min(effort.blocks, round(_LONG / taken)))
    return alternate(lambda: kit(path), lambda: other(path), replace(effort, blocks=blocks))


def ask_all(
    kit: Ask, other: Ask, asked: Sequence[Question], effort: Effort
) -> tuple[Samples, Counter[str]]:
    """Seconds of each question, and how many answers differ, by the kind of the question."""
    sides = [_Side(ask, asked, effort) for ask in (kit, other)]
    with quiet():
        samples = take_turns(sides[0].next, sides[1].next, len(asked))
    answers = zip(asked, sides[0].answers, sides[1].answers, strict=True)
    return samples, Counter(question.kind for question, ours, theirs in answers if ours != theirs)


class _Side:
    """An engine that is asked one question after another."""

    def __init__(self, ask: Ask, asked: Sequence[Question], effort: Effort) -> None:
        self.answers: list[str] = []
        self._ask, self._left, self._answer = ask, iter(asked), ""
        self._loops = _loops(lambda: ask(asked[0].path), effort.block)

    def next(self) -> float:
        path = next(self._left).path

        def action() -> None:
            self._answer = self._ask(path)

        taken = _block(action, self._loops)
        self.answers.append(self._answer)
        return taken


def _said(engine: Engine, project: str) -> Row:
    """Of what a rule may have to say, how much it can, and what not."""
    missing = [name for name, probe in _PROBES.items() if not _can_say(engine, project, *probe)]
    said = float(len(_PROBES) - len(missing))
    parts = [f"not: {', '.join(missing)}"] if missing else []
    note = "; ".join([*parts, engine.remark] if engine.remark else parts)
    named = engine.name if engine is _KIT else f"{engine.name} {version(engine.name)}"
    what = f"{named} ({engine.licence}) can say, of {len(_PROBES)}"
    return figure(f"engines.{engine.name}.says", what, "", [said], note=note)


def _can_say(
    engine: Engine, project: str, listed: list[tuple[str, str]], path: str, expected: str
) -> bool:
    own = [_rule(pattern.replace("{project}", project), mode) for pattern, mode in listed]
    return engine.make(own, project)(path.replace("{project}", project)) == expected


def _missing(engine: Engine, error: Exception) -> Row:
    note = f"pip install 'agent-kit[compare]' ({type(error).__name__}: {error})"
    return figure(
        f"engines.{engine.name}.missing", f"{engine.name}: not measured", "", [0.0], note=note
    )
