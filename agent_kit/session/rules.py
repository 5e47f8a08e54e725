"""The rules of lock 2 for one scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from agent_kit.scope import FileScope
from agent_kit.scope.compiled import Mark
from agent_kit.scope.control import CONTROL_NAMES
from agent_kit.scope.index import Rank
from agent_kit.sdk.outside import outside_patterns
from agent_kit.sdk.rules import RuleSet, spell, write_rules
from agent_kit.session.links import closed_names
from agent_kit.session.tools import Tools

__all__ = ["rules_for"]


def rules_for(scope: FileScope, tools: Tools) -> tuple[RuleSet, bool]:
    """What the scope says, in the CLI's rule language; the tools' own narrowing rules come along.

    Also whether every name in the writable folders was looked at (see ``session.links``).
    """
    compiled = scope._compiled
    closed = {
        rank: [path for path, entry in compiled.closed_paths if entry.rank is rank] for rank in Rank
    }
    written = [path for path, mark in compiled.opened_paths if mark is Mark.WRITE]
    links, whole = closed_names(scope, dict.fromkeys(written))
    rules = write_rules(
        denied_literals=closed[Rank.DENIED],
        denied_patterns=[pattern.absolute for pattern in compiled.patterns],
        read_only_dirs=[*closed[Rank.READ_ONLY], *closed[Rank.TOOLS_ONLY], *links],
        control_dirs=[] if scope.writable_control_files else written,
        control_names=CONTROL_NAMES,
        readable_dirs=[path for path, mark in compiled.opened_paths if mark is Mark.READ],
        writable_dirs=written,
        platform=scope.platform,
    )
    outside = outside_patterns(written, _speller(scope.platform))
    deny = (*rules.deny, *(f"Edit({pattern})" for pattern in outside))
    return replace(rules, deny=deny, allow=(*rules.allow, *tools.rules)), whole


@cache
def _speller(platform: str) -> Callable[[str], str | None]:
    """The same for every session: what is worked out with it is remembered."""
    return partial(spell, platform=platform)
