"""``check_delete``: a deletion is all or nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent_kit.policy.compiled import RuleList
from agent_kit.policy.evaluate import Rules, compiled
from agent_kit.policy.names import Named, folder_of, named
from agent_kit.policy.rules import Operation, RuleVerdict, stricter
from agent_kit.scope.disk import Unresolvable
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.flavour import Malformed
from agent_kit.scope.judge import check_file_scope
from agent_kit.scope.text import is_well_formed

__all__ = ["check_delete"]


def check_delete(
    rules: Rules,
    path: str,
    *,
    project_dir: str | os.PathLike[str] | None = None,
    scope: FileScope | None = None,
    tree: Iterable[str] | None = None,
    cwd: str | None = None,
    home: str | None = None,
) -> RuleVerdict:
    """What ``rules`` say of deleting ``path`` with all that is in it, for tools that delete.

    One thing in it that a rule denies refuses the whole; one under a rule that interrupts makes the
    whole ask. An existing folder is walked, following no link; what may not be looked at is judged by
    the patterns. ``tree`` is used in its place: the paths in the folder, absolute, or relative to
    ``path`` or to ``cwd``. For what doesn't exist the patterns are judged: what they may match counts.

    ``scope`` is the session's: what it doesn't let be written is denied, too. The rest is as for
    :func:`check_permissions`. Deleting is an operation of kind ``"write"``.
    """
    listed = compiled(rules, project_dir, home)
    try:
        found = named(listed, path, cwd)
        verdict = listed.judge(Operation.WRITE, found.names, found.folder).verdict
        if scope is not None and check_file_scope(scope, "Write", {"file_path": path}, cwd=cwd):
            return RuleVerdict.DENY
        for each in _inside(listed, found, tree, cwd, look=scope is not None):
            if verdict is RuleVerdict.DENY:
                break
            verdict = stricter(verdict, _one(listed, scope, each))
    except (Malformed, Unresolvable):
        return RuleVerdict.DENY
    return verdict


class _Inside(NamedTuple):
    """Something in the folder, by all its names. ``whole``: with all below it, unseen."""

    names: tuple[str, ...]
    folder: bool
    whole: bool = False


def _one(rules: RuleList, scope: FileScope | None, each: _Inside) -> RuleVerdict:
    if scope is not None and _is_closed(scope, each):
        return RuleVerdict.DENY
    if each.whole:
        whole = rules.judge_all(Operation.WRITE, each.names, each.folder, filtered=False)
        return whole.verdict
    return rules.judge(Operation.WRITE, each.names, each.folder).verdict


def _is_closed(scope: FileScope, each: _Inside) -> bool:
    for name in each.names:
        if check_file_scope(scope, "Write", {"file_path": scope._compiled.flavour.display(name)}):
            return True
        if each.whole:
            _, below = scope._compiled.closed.find(name, folder=True)
            if below.denied is not None or below.tools_only is not None:
                return True
    return False


def _inside(
    rules: RuleList, found: Named, tree: Iterable[str] | None, cwd: str | None, *, look: bool
) -> Iterator[_Inside]:
    """What is deleted with the path. ``look`` says that more than the patterns must be asked."""
    if tree is not None:
        yield from _listed(rules, found, tree, cwd)
        return
    whole = _Inside(found.names, found.folder, whole=True)
    if not found.exists:
        yield whole
    elif look or _one(rules, None, whole) is not RuleVerdict.ALLOW:
        for name in found.names:
            yield from _walked(rules.flavour.display(name), rules)


def _walked(path: str, rules: RuleList) -> Iterator[_Inside]:
    """Everything in a folder; nothing in what is no folder."""
    folders = [path] if os.path.isdir(path) else []
    while folders:
        here = folders.pop()
        try:
            entries = list(os.scandir(here))
        except OSError:
            yield _Inside((rules.flavour.absolute(here, "/"),), folder=True, whole=True)
            continue
        for entry in entries:
            folder = entry.is_dir(follow_symlinks=False)
            if folder:
                folders.append(entry.path)
            yield _Inside((rules.flavour.absolute(entry.path, "/"),), folder)


def _listed(
    rules: RuleList, found: Named, tree: Iterable[str], cwd: str | None
) -> Iterator[_Inside]:
    for text in tree:
        if not isinstance(text, str) or not is_well_formed(text):
            raise Malformed("it is no text that a name can hold")
        bases = (*found.names, folder_of(rules, cwd))
        given = dict.fromkeys(rules.flavour.absolute(text, base) for base in bases)
        folder = text.endswith("/") or any(stat.S_ISDIR(rules.locate(path).mode) for path in given)
        tails = [path[len(n) :] for path in given for n in found.names if _is_in(path, n)]
        names = [name + tail for tail in tails for name in found.names] or given
        yield _Inside(tuple(dict.fromkeys(names)), folder)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
