"""Which front matter starts an agent. What the CLI makes of it: tests/e2e/test_skills_that_start_agents.py."""

from __future__ import annotations

import pytest

from agent_kit.sdk.catalogue import forks
from agent_kit.sdk.commands import Command, Commands, Place

ANY = (None,)


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("context: fork", ("general-purpose",)),
        ("context: fork\nagent:", ("general-purpose",)),
        ("context: fork\nagent: Explore", ("Explore",)),
        ('context: fork\n"agent" : "Explore"  # x', ("Explore",)),
        # where two readers may differ
        ("{context: fork, agent: Explore}", ANY),
        ("context: fork\nagent: [Explore]", ANY),
        ('context: fork\nagent: "Expl\\x6fre"', ANY),
        ("context: fork\nagent: Plan\nagent: Explore", ANY),
        ("x: &a Explore\ncontext: fork\nagent: *a", ANY),
        ("x: &a fork\ny: &a inline\ncontext: *a", ANY),
        ("context: fork\ncontext: inline", ANY),
        ("Context: Fork", ANY),
        ("metadata:\n  context: fork", ANY),
        ("x: y\u2028context: fork\ny: z", ANY),
        ("context: inline\u0085x: fork", ANY),
        ("context: fork\rx: y", ANY),
        # no YAML
        ("x: y: z\ncontext: fork", ANY),
        ("x: a fork: z", ANY),
        ('x: y: z\ncontext: "f\\x6frk"', ANY),
        ("x: y: z\ncontext: fo\x07rk", ANY),
        ("x: y: z", ()),
        # starts none
        ("agent: Explore", ()),
        ("context: inline", ()),
        ("description: forks a project in this context", ()),
    ],
)
def test_a_front_matter_starts_an_agent_of_this_type(
    head: str, found: tuple[str | None, ...]
) -> None:
    assert forks(f"---\n{head}\n---\nbody") == found


@pytest.mark.parametrize("body", ["context: fork", "x\n---\ncontext: fork\n---\n", "", "---"])
def test_a_body_without_front_matter_starts_none(body: str) -> None:
    assert forks(body) == ()


def test_every_name_of_a_file_starts_what_any_file_of_that_name_does() -> None:
    def made(name: str, *kinds: str | None, aliases: tuple[str, ...] = ()) -> Command:
        place = Place(folder="/p")
        return Command(
            name=name, file=f"/p/{kinds}", body="", place=place, forks=kinds, aliases=aliases
        )

    found = (made("a", "x", aliases=("b",)), made("b", None), made("a"), made("c"), made("a", "x"))
    assert Commands(found=found).forks == {"a": ("x",), "b": ("x", None)}
