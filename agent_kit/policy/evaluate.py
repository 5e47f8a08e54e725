"""``check_permissions`` and ``check_search``: what a list of rules says, outside a session."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.names import named
from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict, stricter
from agent_kit.scope import globs
from agent_kit.scope.disk import Unresolvable
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.flavour import Malformed
from agent_kit.scope.text import JS_SPACE

__all__ = ["Rules", "check_permissions", "check_search", "compiled"]

Rules = RuleList | Sequence[FilePermission]


def check_permissions(
    rules: Rules,
    operation: str,
    path: str,
    *,
    project_dir: str | os.PathLike[str] | None = None,
    cwd: str | None = None,
    home: str | None = None,
) -> RuleVerdict:
    """What ``rules`` say of reading or writing ``path``: ``"allow"`` when none of them matches.

    ``path`` is relative to ``cwd`` (default: ``project_dir``). It is judged as written and as
    resolved, and the stricter verdict counts; one that can't be judged is denied. ``rules`` may be
    compiled (:func:`compile_rules`), which spares time; ``project_dir`` and ``home`` are theirs then.

    Raises ConfigError for faulty rules and an ``operation`` other than ``"read"`` and ``"write"``.

    >>> rules = [
    ...     FilePermission(operations=["write"], paths=["drafts/**"], mode="allow"),
    ...     FilePermission(operations=["write"], paths=["**"], mode="interrupt"),
    ... ]
    >>> str(check_permissions(rules, "write", "drafts/a.md", project_dir="/work"))
    'allow'
    >>> str(check_permissions(rules, "write", "b.md", project_dir="/work"))
    'interrupt'
    """
    listed = compiled(rules, project_dir, home)
    if not isinstance(operation, str) or operation not in tuple(Operation):
        remedy = "write 'read' or 'write'."
        raise ConfigError([Fault(field="operation", value=operation, remedy=remedy)])
    try:
        found = named(listed, path, cwd)
    except (Malformed, Unresolvable):
        return RuleVerdict.DENY
    return listed.judge(Operation(operation), found.names, found.folder).verdict


def check_search(
    rules: Rules,
    path: str | None,
    pattern: str | None = None,
    *,
    project_dir: str | os.PathLike[str] | None = None,
    cwd: str | None = None,
    home: str | None = None,
) -> RuleVerdict:
    """What ``rules`` say of a search (Grep, Glob, LS) from ``path``: all that it may reach is judged.

    Denied when it starts in a denied place. Denied, or else asked, when something below can meet a
    rule that denies or interrupts and no earlier rule allows it. A deny pattern with no fixed folder
    (``**/.env``) stops no search: the CLI's own rule leaves its hits out.

    ``path`` is relative to ``cwd`` (default: ``project_dir``), which it is when left out. ``pattern``
    is a Glob's: one that climbs is judged over the folder that it climbs to, an absolute one where
    it starts. The rest is as for :func:`check_permissions`.

    >>> rules = [FilePermission(operations=["read"], paths=["private/**"], mode="interrupt")]
    >>> str(check_search(rules, ".", project_dir="/work"))
    'interrupt'
    >>> str(check_search(rules, "notes", project_dir="/work"))
    'allow'
    """
    listed = compiled(rules, project_dir, home)
    verdict = RuleVerdict.ALLOW
    try:
        for text, tail in _starts(listed, path, pattern):
            found = named(listed, text, cwd, tail)
            folder = found.folder or not found.exists
            whole = listed.judge_all(Operation.READ, found.names, folder, filtered=True)
            verdict = stricter(verdict, whole.verdict)
    except (Malformed, Unresolvable):
        return RuleVerdict.DENY
    return verdict


def _starts(rules: RuleList, path: Any, pattern: Any) -> Iterator[tuple[str, str]]:
    """Every place where a search may start, as a text and what is below it. Raises Malformed."""
    here = "." if path is None or (isinstance(path, str) and not path.strip(JS_SPACE)) else path
    if pattern is None:
        yield here, ""
        return
    if not isinstance(here, str) or not isinstance(pattern, str):
        raise Malformed("it is no text")
    slashed = pattern.replace("\\", "/") if rules.flavour.name == "windows" else pattern
    if not globs.climbs(slashed):
        yield from globs.starts(here, pattern, rules.flavour)
        return
    # As high as all its ".." lead, whatever else stands between them.
    up = "/".join([".."] * slashed.count(".."))
    for text, _ in globs.starts(here, slashed.partition("..")[0] + "*", rules.flavour):
        yield f"{text.rstrip('/')}/{up}" if text.strip("/") else "/", ""
    yield f"{here.rstrip('/')}/{up}" if here.strip("/") else "/", ""


def compiled(
    rules: Rules, project_dir: str | os.PathLike[str] | None, home: str | None
) -> RuleList:
    """``rules`` as they are judged. Raises ConfigError, also for rules without a project."""
    if isinstance(rules, RuleList):
        return rules
    if project_dir is None:
        remedy = "name the folder that relative patterns and paths are relative to."
        raise ConfigError([Fault(field="project_dir", value=None, remedy=remedy)])
    return compile_rules(rules, project_dir=project_dir, home=home)
